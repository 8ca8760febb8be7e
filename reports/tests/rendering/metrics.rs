//! OpenMetrics text, read by a parser that is just strict enough: families before their samples, each family
//! once and whole, labels that end, numbers that are numbers, and the end.

use std::collections::{BTreeMap, BTreeSet};

use reports::nights::{View, open_metrics};

use crate::invented_nights::{Drawn, Ending, nights};

/// A sample: name, labels and value.
type Sample = (String, BTreeMap<String, String>, f64);

/// Panics at what the format does not allow; returns the samples.
fn samples(text: &str) -> Vec<Sample> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with EOF");
    let mut families: BTreeSet<String> = BTreeSet::new();
    let mut family = (String::new(), String::new());
    let mut all = Vec::new();
    for line in body.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            let mut words = about.splitn(3, ' ');
            let (kind, name) = (words.next().expect("a kind"), words.next().expect("a name"));
            let text = words.next().expect("a text");
            match kind {
                "TYPE" => {
                    assert!(families.insert(name.to_owned()), "{name} twice");
                    assert!(matches!(text, "gauge" | "info"), "{line}");
                    family = (name.to_owned(), text.to_owned());
                }
                "UNIT" => assert!(name == family.0 && name.ends_with(&format!("_{text}")), "{line}"),
                "HELP" => assert!(name == family.0 && !text.is_empty(), "{line}"),
                _ => panic!("no such line: {line}"),
            }
            continue;
        }
        let sample = sample(line);
        let expected = if family.1 == "info" { format!("{}_info", family.0) } else { family.0.clone() };
        assert_eq!(sample.0, expected, "a sample outside of its family");
        assert!(sample.0.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
        all.push(sample);
    }
    let keys: BTreeSet<_> = all.iter().map(|(name, labels, _)| (name, labels)).collect();
    assert_eq!(keys.len(), all.len(), "a sample occurs twice");
    all
}

fn sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).expect("a name");
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, behind) = rest.trim_start_matches(',').split_once("=\"").expect("a label");
            let mut value = String::new();
            let mut letters = behind.char_indices();
            let end = loop {
                match letters.next().expect("the value ends") {
                    (at, '"') => break at,
                    (_, '\\') => match letters.next().expect("a letter").1 {
                        'n' => value.push('\n'),
                        c @ ('\\' | '"') => value.push(c),
                        other => panic!("no escape: \\{other}"),
                    },
                    (_, c) => value.push(c),
                }
            };
            assert!(labels.insert(label.to_owned(), value).is_none(), "{label} twice: {line}");
            rest = &behind[end + 1..];
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect("a space").parse().expect("a number");
    (name.to_owned(), labels, value)
}

fn value(drawn: &Drawn, name: &str, label: Option<(&str, &str)>) -> f64 {
    let all = samples(&open_metrics(&drawn.view()));
    let wanted = |sample: &&Sample| {
        sample.0 == format!("harness_night_{name}")
            && label.is_none_or(|(label, value)| sample.1.get(label).is_some_and(|found| found == value))
    };
    all.iter().find(wanted).unwrap_or_else(|| panic!("no {name} {label:?}")).2
}

#[test]
fn every_ending_is_text_that_a_parser_takes() {
    for ending in [Ending::Valid, Ending::Failing, Ending::NotEnded, Ending::Nothing] {
        assert!(samples(&open_metrics(&nights(20, 9, ending).view())).len() > 20);
    }
    assert_eq!(open_metrics(&View { nights: &[], findings: &[], series: &[] }), "# EOF\n");
}

#[test]
fn the_numbers_are_the_nights() {
    let drawn = nights(20, 9, Ending::Failing);
    assert_eq!(value(&drawn, "cases", Some(("pile", "violation"))), 2.0);
    assert_eq!(value(&drawn, "cases", Some(("pile", "not-run"))), 1.0);
    assert_eq!(value(&drawn, "findings", Some(("state", "new"))), 1.0);
    assert_eq!(value(&drawn, "exit_status", None), 1.0);
    assert_eq!(value(&drawn, "valid", None), 0.0);
    let night = drawn.nights.last().expect("a night");
    assert_eq!(value(&drawn, "worlds", None), runs::numbers::lossy(night.worlds[0].worlds));
    assert_eq!(value(&drawn, "valid", None), 0.0);
    assert_eq!(value(&nights(20, 9, Ending::Valid), "valid", None), 1.0);
}

#[test]
fn a_series_is_named_by_its_case_its_metric_and_its_machine() {
    let drawn = nights(20, 9, Ending::Valid);
    let all = samples(&open_metrics(&drawn.view()));
    let series: Vec<&Sample> = all.iter().filter(|sample| sample.0 == "harness_night_series").collect();
    assert_eq!(series.len(), drawn.series.len());
    assert!(series.iter().all(|(_, labels, _)| labels.len() == 3 && labels["machine"].contains("cores")));
}

#[test]
fn names_from_outside_stay_labels() {
    let mut drawn = nights(3, 2, Ending::Valid);
    for series in &mut drawn.series {
        series.case.push_str("\"} 1\n# EOF\n\\");
    }
    let all = samples(&open_metrics(&drawn.view()));
    assert!(
        all.iter().any(|(_, labels, _)| labels.get("case").is_some_and(|case| case.ends_with("# EOF\n\\")))
    );
}
