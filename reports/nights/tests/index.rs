//! NIGHTS.md describes every field of every line of the index, and no other.

use std::collections::{BTreeMap, BTreeSet};

use nights::findings::{Found, Replays, Shrunk};
use nights::fingerprint::Shape;
use nights::index::{Alarm, Attempt, Begun, Comparison, Judged, LeftOut, Line, Merged, Purpose, Worlds};
use nights::machine::Machine;
use nights::measures::Sample;
use nights::pile::Pile;
use nights::threshold::{Judgement, Outcome};
use serde_json::Value;

fn at() -> jiff::Timestamp {
    jiff::Timestamp::UNIX_EPOCH
}

fn text(word: &str) -> String {
    word.to_owned()
}

/// A line of each kind, with all that it may have.
fn lines() -> [Line; 7] {
    let merged = Line::Merged(Merged { night: text("n") });
    [night(), attempt(), finding(), worlds(), alarm(), judged(), merged]
}

fn night() -> Line {
    let machine = Machine { cores: 2, kernel: text("Linux"), fsync_ms: Some(1.0), load: Some(0.1), jobs: 1 };
    Line::Night(Begun {
        night: text("n"),
        started_utc: at(),
        budget_s: 1,
        seed: 1,
        build: text("b"),
        machine,
        profile: Some(text("p")),
        shard: Some((1, 2)),
        cases: BTreeMap::from([(text("a"), None)]),
    })
}

fn attempt() -> Line {
    Line::Attempt(Attempt {
        night: text("n"),
        purpose: Purpose::Case,
        case: text("a"),
        repeat: 1,
        attempt: 1,
        started_utc: at(),
        took_ms: 1.0,
        seed: 1,
        pile: Pile::Valid,
        status: Some(0),
        why: text(""),
        folder: Some(text("f")),
        repeat_command: text("r"),
        series: BTreeMap::from([(text("start"), Sample { value: 1.0, n: 1 })]),
        findings: vec![text("f")],
        operations: 1,
        elections: 1,
        faults: (1, 1),
        spent_ms: 1,
        machine: text("m"),
    })
}

fn finding() -> Line {
    let shape = Shape {
        check: text("c"),
        case: text("a"),
        kinds: [text("kill-leader")].into(),
        operations: [text("read ok")].into(),
    };
    let shrunk = Shrunk {
        folder: text("f"),
        faults: (2, 1),
        clients: (2, 1),
        workload_ms: (2, 1),
        in_the_simulator: Some(true),
        runs: 3,
        seen: true,
    };
    Line::Finding(Found {
        night: text("n"),
        fingerprint: shape.fingerprint(),
        shape,
        sentence: text("s"),
        folder: text("f"),
        replays: Replays { shown: 1, of: 2 },
        shrunk: Some(shrunk),
        command: text("c"),
    })
}

fn worlds() -> Line {
    Line::Worlds(Worlds {
        night: text("n"),
        seeds: (0, 1),
        worlds: 1,
        broken: vec![(0, text("r"))],
        took_ms: 1,
        spent_ms: 1,
        failed: Some(text("f")),
    })
}

fn alarm() -> Line {
    let comparison = Comparison { against: text("b"), pairs: 8, ratio: (1.0, 2.0, 3.0), confirmed: true };
    Line::Alarm(Alarm {
        night: text("n"),
        case: text("a"),
        series: text("start"),
        value: 1.0,
        before: 1.0,
        fence: 1.0,
        comparison: Some(comparison),
        sentence: text("s"),
    })
}

fn judged() -> Line {
    let judgement = Judgement {
        threshold: text("t"),
        outcome: Outcome::Met,
        value: Some(1.0),
        samples: 1,
        sentence: text("s"),
    };
    Line::Judged(Judged {
        night: text("n"),
        ended_utc: at(),
        pile: Pile::Valid,
        status: 0,
        sentence: text("s"),
        shard: Some((1, 2)),
        interrupted: false,
        left_out: vec![LeftOut { case: text("a"), runs: 1, why: text("w") }],
        thresholds: BTreeMap::from([(text("a"), vec![judgement])]),
    })
}

/// Names of the fields, those of the values within included; not the keys of what is by name.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    const BY_NAME: [&str; 3] = ["cases", "series", "thresholds"];
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                found.insert(name.clone());
                match inner {
                    Value::Object(named) if BY_NAME.contains(&name.as_str()) => {
                        named.values().for_each(|value| fields(value, found));
                    }
                    inner => fields(inner, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_index_is_described_under_its_kind_of_line() {
    let document = include_str!("../NIGHTS.md");
    let sections: Vec<&str> = document.split("\n## ").skip(1).collect();
    let lines = lines();
    assert_eq!(sections.len(), lines.len(), "a section for each kind of line");
    for line in lines {
        let value = serde_json::to_value(&line).expect("a line");
        let kind = value["line"].as_str().expect("a kind").to_owned();
        let section = sections.iter().find(|section| section.starts_with(&format!("`{kind}`")));
        let section = section.unwrap_or_else(|| panic!("no section of `{kind}`"));
        let mut names = BTreeSet::new();
        fields(&value, &mut names);
        for name in names.iter().filter(|name| !["line", "night"].contains(&name.as_str())) {
            assert!(section.contains(&format!("`{name}`")), "{kind}: `{name}` is not described");
        }
        let rows = section.lines().filter_map(|row| row.strip_prefix("| `")?.split(" |").next());
        for name in rows.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')) {
            assert!(names.contains(name), "{kind}: `{name}` is described and is not there");
        }
    }
}
