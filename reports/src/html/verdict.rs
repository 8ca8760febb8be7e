//! The top of the page: did it hold, what was run, what was found, which command repeats it.

use checker::verdict::Verdict;

use super::Input;
use super::markup::Markup;
use runs::findings::{self, Sentence};
use runs::numbers::{count, duration, len};
use runs::results::{ElectionKind, LatencyClass, LeaderSeen};
use runs::standing::Standing;

/// Kinds of elections in the page's head at most; the part on elections has more.
const MOST_KINDS: usize = 8;

/// A circle with a tick.
pub(crate) const VALID: &str = concat!(
    r#"<svg viewBox="0 0 32 32" aria-hidden="true">"#,
    r#"<circle class="sign" cx="16" cy="16" r="15"/>"#,
    r#"<path class="in" d="M8.8 16.8l4.9 4.9 9.8-11.2"/></svg>"#,
);
/// An octagon with a cross.
pub(crate) const INVALID: &str = concat!(
    r#"<svg viewBox="0 0 32 32" aria-hidden="true">"#,
    r#"<path class="sign" d="M10 1.5h12l8.5 8.5v12L22 30.5H10L1.5 22V10z"/>"#,
    r#"<path class="in" d="M10.5 10.5l11 11m0-11l-11 11"/></svg>"#,
);
/// A triangle with a question mark.
pub(crate) const UNKNOWN: &str = concat!(
    r#"<svg viewBox="0 0 32 32" aria-hidden="true">"#,
    r#"<path class="sign" d="M16 1.5L31.5 30H.5z"/>"#,
    r#"<path class="in" d="M12.6 14.6q.2-3.4 3.5-3.4 3.3 0 3.3 3 0 1.9-1.9 3.1-1.5 1-1.5 2.9m0 4.2v.4"/>"#,
    r#"</svg>"#,
);

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    top(m, input);
    let (headline, verdict) = findings::headline(input.results);
    let class = format!("verdict {verdict}");
    m.el("header", &[("class", &class)], |m| {
        m.el("h1", &[], |m| {
            m.drawing(match verdict {
                Verdict::Valid => VALID,
                Verdict::Invalid => INVALID,
                Verdict::Unknown => UNKNOWN,
            });
            m.text(headline);
            m.leaf("small", &[], &format!("exit status {}", input.results.exit_status));
        });
        m.el("p", &[("class", "say")], |m| m.sentence(&sentence(input)));
        for note in &input.results.notes {
            m.leaf("p", &[("class", "note")], note);
        }
        figures(m, input);
        elections(m, &input.results.election_kinds);
        command(m, &input.results.repeat);
    });
    m.line();
    contents(m, input);
}

fn top(m: &mut Markup, input: &Input<'_>) {
    m.el("div", &[("class", "top")], |m| {
        m.el("span", &[], |m| {
            m.leaf("b", &[], "harness");
            m.text(&format!(" run report · {}", input.run.name));
        });
        m.leaf("span", &[], &format!("{} · seed {}", started(&input.run.started_utc), input.run.seed));
    });
    m.line();
}

/// The start as people write it; what is no timestamp is shown as it is.
pub(super) fn started(utc: &str) -> String {
    match utc.parse::<jiff::Timestamp>() {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => utc.to_owned(),
    }
}

/// The harness's sentence; where it is the one drawn from the data, with its emphasis.
fn sentence(input: &Input<'_>) -> Sentence {
    let drawn = findings::verdict(input.run, input.results, input.faults);
    let given = &input.results.sentence;
    if given.is_empty() || *given == drawn.plain() { drawn } else { Sentence::default().and(given.as_str()) }
}

fn figures(m: &mut Markup, input: &Input<'_>) {
    let results = input.results;
    let total = results.operations.total;
    m.el("dl", &[("class", "figures")], |m| {
        if !input.run.is_wrapped() {
            figure(m, "operations", &count(total.invoked), &format!("{} ok", count(total.ok)));
        }
        let faults = results.faults;
        if faults.planned == 0 {
            figure(m, "faults", "none", "");
        } else {
            let verified = format!("{} of {}", faults.verified, faults.planned);
            figure(m, "faults verified", &verified, &format!("{} leaked", faults.leaked));
        }
        if input.run.system.leader != LeaderSeen::Untold || !results.elections.is_empty() {
            figure(m, "changes of leader", &len(results.elections.len()), &one_kind(&results.election_kinds));
        }
        let writes = [LatencyClass::WriteCalm, LatencyClass::WriteFault];
        if let Some((class, summary)) =
            writes.into_iter().find_map(|class| Some((class, results.latency.get(&class)?)))
        {
            let name = if class.is_fault() { "commit latency, faults" } else { "commit latency, calm" };
            figure(m, name, &duration(summary.p50_ms), &format!("p99 {}", duration(summary.p99_ms)));
        }
        match findings::worst_outage(&results.outages) {
            None if input.run.is_wrapped() => {}
            None if total.invoked == 0 => figure(m, "worst outage", "–", "nothing on record"),
            Some(worst) => {
                let cause = worst.fault.clone().unwrap_or_else(|| "no fault".to_owned());
                figure(m, "worst outage", &duration(worst.ms()), &cause);
            }
            None => figure(m, "worst outage", "none", ""),
        }
        if let Some(own) = findings::own_outage(results) {
            figure(m, "worst of one key", &duration(own.outage.ms()), &format!("key {}", own.key));
        }
        let (label, number) = match results.verdict {
            Verdict::Invalid => ("checks violated", Standing::Invalid.count(&results.checks)),
            Verdict::Valid | Verdict::Unknown => ("checks valid", Standing::Valid.count(&results.checks)),
        };
        let of = format!("{} of {}", len(number), len(results.checks.len()));
        let took = results.timings.check_ms;
        let took = if took > 0.0 { format!("in {}", duration(took)) } else { String::new() };
        figure(m, label, &of, &took);
    });
}

/// What a change of leader costs where all were of one kind; of several a table says it.
fn one_kind(kinds: &[ElectionKind]) -> String {
    let [only] = kinds else { return String::new() };
    match (only.p50_ms, only.max_ms) {
        (Some(median), _) => format!("median {}", duration(median)),
        (None, Some(most)) => format!("{} at most", duration(most)),
        (None, None) => String::new(),
    }
}

/// What elections cost by kind of fault, in a line each.
fn elections(m: &mut Markup, kinds: &[ElectionKind]) {
    if kinds.is_empty() {
        return;
    }
    m.el("ul", &[("class", "by-kind")], |m| {
        for kind in kinds.iter().take(MOST_KINDS) {
            m.el("li", &[], |m| {
                let text = findings::kind_in_brief(kind);
                let (name, figures) = text.split_at(text.rfind(": ").map_or(text.len(), |at| at + 1));
                m.leaf("b", &[], name);
                m.text(figures);
            });
        }
        if kinds.len() > MOST_KINDS {
            m.leaf("li", &[], &format!("and {} more kinds", len(kinds.len() - MOST_KINDS)));
        }
    });
}

/// A figure of the page's head, with what stands beside it.
pub(crate) fn figure(m: &mut Markup, name: &str, value: &str, beside: &str) {
    m.el("div", &[], |m| {
        m.leaf("dt", &[], name);
        m.el("dd", &[], |m| {
            m.text(value);
            m.text(" ");
            m.leaf("small", &[], beside);
        });
    });
}

/// The command, broken only between options.
pub(crate) fn command(m: &mut Markup, command: &str) {
    m.el("pre", &[("class", "command"), ("data-copy", "")], |m| {
        let mut words: Vec<String> = Vec::new();
        for word in command.split(' ') {
            // An option keeps its value beside it.
            let joins = !word.starts_with('-')
                && words.last().is_some_and(|last| last.starts_with("--") && !last.contains(' '));
            match words.last_mut() {
                Some(last) if joins => {
                    last.push(' ');
                    last.push_str(word);
                }
                _ => words.push(word.to_owned()),
            }
        }
        for (i, word) in words.iter().enumerate() {
            if i > 0 {
                m.text(" ");
            }
            m.leaf("span", &[], word);
        }
    });
}

fn contents(m: &mut Markup, input: &Input<'_>) {
    let found = input.results.checks.iter().any(|check| check.counterexample.is_some());
    m.el("nav", &[("aria-label", "contents")], |m| {
        for (id, title) in [
            ("counterexample", "Counterexample"),
            ("timeline", "Timeline"),
            (
                "elections",
                if input.run.system.leader == LeaderSeen::Untold { "Outages" } else { "Elections" },
            ),
            ("terms", "Changes of the holder"),
            ("latency", "Commit latency"),
            ("faults", "Faults"),
            ("checks", "Checks"),
            ("configuration", "Configuration"),
        ] {
            let is_there = match id {
                "counterexample" => found,
                "terms" => input.run.session_ms.is_some(),
                "latency" => !input.run.is_wrapped(),
                _ => true,
            };
            if is_there {
                m.leaf("a", &[("href", &format!("#{id}"))], title);
            }
        }
    });
    m.line();
}
