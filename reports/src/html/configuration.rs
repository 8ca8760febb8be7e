//! Configuration: everything needed to believe the run or to do it again.

use super::Input;
use super::markup::Markup;
use super::verdict::{command, started};
use runs::findings::{Sentence, shortened};
use runs::numbers::{bytes, count, duration, memory, ms, rate, setting_ms};

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    let drawn = if input.run.is_wrapped() { "" } else { " and the same operations" };
    let finding =
        Sentence::strong(format!("The same command with the same seed draws the same schedule{drawn}."))
            .and(" What the members make of them in time is theirs.");
    m.heading("configuration", "Configuration", &finding);
    command(m, &input.results.repeat);
    m.el("div", &[("class", "configuration")], |m| {
        section(m, "Run", &run(input));
        section(m, "Drawn from the seed", &pairs(&input.run.drawn));
        section(m, "Cluster and target", &cluster(input));
        section(m, "Versions", &pairs(&input.run.versions));
        section(m, "Host", &host(input));
        section(m, "Time spent", &timings(input));
        files(m, input);
    });
    m.line();
    m.el("footer", &[], |m| {
        m.leaf("span", &[], "One file; nothing is fetched from anywhere.");
        m.el("span", &[], |m| {
            // The page knows the name of its run and not where somebody put its folder.
            m.text("Drawn again, in the folder of this page, with ");
            m.leaf("code", &[], "harness report .");
        });
    });
}

type Pairs = Vec<(String, String)>;

/// Time that no part of a run claims, from which it is worth a line.
const LEAST_REST_MS: f64 = 50.0;
/// Characters of a value at most; the whole is in run.json.
const MOST_VALUE: usize = 1000;

fn pairs(of: &std::collections::BTreeMap<String, String>) -> Pairs {
    of.iter().map(|(name, value)| (name.clone(), spaced(value))).collect()
}

/// A number with its unit as the page writes it: `2000ms` is `2 s`, `10s` is `10 s`.
fn spaced(value: &str) -> String {
    let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = value.split_at(digits);
    match (number.parse::<u64>(), unit) {
        (Ok(number), "ms") => setting_ms(number),
        (Ok(number), "s" | "us" | "ns" | "min" | "B" | "kB" | "MB") => format!("{} {unit}", count(number)),
        _ => value.to_owned(),
    }
}

fn section(m: &mut Markup, title: &str, pairs: &Pairs) {
    if pairs.is_empty() {
        return;
    }
    m.el("section", &[], |m| {
        m.leaf("h3", &[], title);
        m.el("dl", &[("class", "pairs")], |m| {
            for (name, value) in pairs {
                m.leaf("dt", &[], &shortened(name, MOST_VALUE));
                m.leaf("dd", &[], &shortened(value, MOST_VALUE));
            }
        });
    });
    m.line();
}

fn pair(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn run(input: &Input<'_>) -> Pairs {
    let run = input.run;
    let nemeses = if run.nemeses.is_empty() { "none".to_owned() } else { run.nemeses.join(", ") };
    let mut out = vec![
        pair("name", &run.name),
        pair("started", started(&run.started_utc)),
        pair("seed", run.seed.to_string()),
        match &run.command {
            Some(words) => pair("command", words.join(" ")),
            None if run.is_wrapped() => pair("test template", run.template.clone().unwrap_or_default()),
            None => pair("workload", format!("{}, {} keys", run.workload, count(run.keys))),
        },
        pair("nemeses", nemeses),
        pair(
            "not tried",
            if run.not_tried.is_empty() { "none".to_owned() } else { run.not_tried.join(", ") },
        ),
        pair("interval", setting_ms(run.interval_ms)),
        pair("overlap", if run.overlap { "yes" } else { "no" }),
        pair("time limit", setting_ms(run.time_limit_ms)),
    ];
    if !run.is_wrapped() {
        let processes = count(run.concurrency);
        out.push(pair("rate", format!("{} operations/s, {processes} processes", rate(run.rate))));
    }
    if let Some(timeout) = run.operation_timeout_ms {
        out.push(pair("operation timeout", setting_ms(timeout)));
    }
    if let Some(least) = run.min_rate {
        out.push(pair("minimum rate", format!("{} operations/s", rate(least))));
    }
    if let Some(mutant) = &run.mutant {
        out.push(pair("planted bug", mutant));
    }
    out
}

fn cluster(input: &Input<'_>) -> Pairs {
    let run = input.run;
    let reason =
        if run.cluster_reason.is_empty() { String::new() } else { format!(" ({})", run.cluster_reason) };
    let mut out = vec![
        pair("cluster", format!("{}{reason}", run.cluster)),
        pair("target", &run.system.name),
        pair("members", format!("{}, {} observers", run.nodes, run.observers)),
    ];
    if let Some(who) = &run.system.who {
        out.push(pair("of them", who));
    }
    out.extend(pairs(&run.settings));
    out.extend(run.variables.clone());
    out
}

fn host(input: &Input<'_>) -> Pairs {
    let host = &input.run.host;
    let memory = host.memory_bytes.map(|size| format!(", {}", memory(size))).unwrap_or_default();
    let cores = if host.cores == 1 { "1 core".to_owned() } else { format!("{} cores", host.cores) };
    let mut out = vec![pair("machine", format!("{cores}{memory}")), pair("kernel", &host.kernel)];
    out.extend(pairs(&host.measured));
    if let Some(lag) = input.results.lag_ms {
        out.push(pair("harness late by", format!("{} ms at most", ms(lag))));
    }
    out
}

fn timings(input: &Input<'_>) -> Pairs {
    let timings = input.results.timings;
    let parts = [
        ("start", timings.start_ms),
        ("workload", timings.workload_ms),
        ("recovery", timings.recovery_ms),
        ("stopping", timings.stop_ms),
        ("checks", timings.check_ms),
    ];
    // What no part claims is said, so that the parts sum up.
    let rest = timings.total_ms - parts.iter().map(|(_, value)| value).sum::<f64>();
    let rest = if rest >= LEAST_REST_MS { rest } else { 0.0 };
    parts
        .into_iter()
        .chain([("between them", rest), ("all", timings.total_ms)])
        .filter(|(_, value)| *value > 0.0)
        .map(|(name, value)| pair(name, duration(value)))
        .collect()
}

fn files(m: &mut Markup, input: &Input<'_>) {
    if input.results.files.is_empty() {
        return;
    }
    m.el("section", &[], |m| {
        m.leaf("h3", &[], "Files beside this page");
        m.el("dl", &[("class", "pairs")], |m| {
            for file in &input.results.files {
                m.el("dt", &[], |m| {
                    if is_beside(&file.name) {
                        m.leaf("a", &[("href", &file.name)], &file.name);
                    } else {
                        m.text(&file.name);
                    }
                });
                let size = file.bytes.map(|size| format!(" · {}", bytes(size))).unwrap_or_default();
                m.leaf("dd", &[], &format!("{}{size}", file.what));
            }
        });
    });
}

/// Whether a name is a plain path below the run folder. Nothing else becomes a link: the page asks nothing of
/// anywhere, and a name could be an address with a scheme.
fn is_beside(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains("..")
        && !name.contains("//")
        && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_apart_from_its_unit() {
        let all = ["2000ms", "250ms", "10s", "1 s", "fast", "", "99999999999999999999s", "3.5s"].map(spaced);
        assert_eq!(all, ["2 s", "250 ms", "10 s", "1 s", "fast", "", "99999999999999999999s", "3.5s"]);
    }

    #[test]
    fn only_paths_below_the_run_folder_become_links() {
        assert!(is_beside("history.jsonl") && is_beside("nodes/1/log.txt") && is_beside("nodes/"));
        for hostile in
            ["", "/etc/passwd", "../x", "javascript:alert(1)", "https://example.org/", "//example.org"]
        {
            assert!(!is_beside(hostile), "{hostile}");
        }
    }
}
