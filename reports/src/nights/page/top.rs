//! The top of a night's page: what it came to, what it was, and what it did.

use checker::verdict::Verdict;
use nights::pile::Pile;
use runs::findings::shortened;
use runs::numbers::{count, len, plural};

use super::MOST_TEXT;
use crate::html::markup::Markup;
use crate::html::verdict::{INVALID, UNKNOWN, VALID, figure};
use crate::nights::digest::{Digest, day, number, tone};

/// A triangle with an exclamation mark.
const ALERT: &str = concat!(
    r#"<svg viewBox="0 0 32 32" aria-hidden="true">"#,
    r#"<path class="sign" d="M16 1.5L31.5 30H.5z"/>"#,
    r#"<path class="in" d="M16 11.5v9m0 4.6v.2"/></svg>"#,
);

/// Characters of the verdict's sentence at most.
const MOST_SENTENCE: usize = 2000;

/// Parts of the page: their addresses and their names.
const PARTS: [(&str, &str); 8] = [
    ("findings", "Findings"),
    ("cases", "Cases"),
    ("thresholds", "Thresholds"),
    ("series", "Numbers over nights"),
    ("work", "Work done"),
    ("planted", "Planted bugs"),
    ("left-out", "Left out"),
    ("files", "Files"),
];

/// Writes the top of the page.
pub(super) fn write(m: &mut Markup, digest: &Digest<'_>) {
    let begun = &digest.night.begun;
    m.el("div", &[("class", "top")], |m| {
        m.el("span", &[], |m| {
            m.leaf("b", &[], "harness");
            m.text(&format!(" night · {}", shortened(&begun.night, MOST_TEXT)));
        });
        m.el("span", &[], |m| {
            super::time(m, begun.started_utc);
            if let Some(judged) = &digest.night.judged {
                m.text(" to ");
                super::time(m, judged.ended_utc);
            }
            m.text(&format!(" · seed {}", begun.seed));
        });
    });
    m.line();
    let class = format!("verdict {}", tone(digest.pile));
    m.el("header", &[("class", &class)], |m| {
        m.el("h1", &[], |m| {
            m.drawing(match (tone(digest.pile), digest.pile) {
                (Verdict::Valid, _) => VALID,
                (Verdict::Invalid, _) => INVALID,
                (Verdict::Unknown, Pile::Unknown) => UNKNOWN,
                (Verdict::Unknown, _) => ALERT,
            });
            m.text(digest.headline);
            let status = match digest.status() {
                Some(status) => format!("exit status {status}"),
                None => "no exit status yet".to_owned(),
            };
            m.leaf("small", &[], &status);
        });
        m.leaf("p", &[("class", "say")], &shortened(&digest.sentence, MOST_SENTENCE));
        figures(m, digest);
        m.el("dl", &[("class", "inline facts")], |m| facts(m, digest));
    });
    m.line();
    m.el("nav", &[("aria-label", "contents")], |m| {
        for (id, title) in PARTS {
            m.leaf("a", &[("href", &format!("#{id}"))], title);
        }
    });
    m.line();
}

fn figures(m: &mut Markup, digest: &Digest<'_>) {
    let (piles, not_run) = digest.piles();
    let ran = digest.cases.len() - not_run;
    let of = |wanted: Pile| piles.iter().find(|(pile, _)| *pile == wanted).map_or(0, |(_, n)| *n);
    let (elections, faults, operations) = digest.night.work();
    let asked: u64 = digest.night.attempts.iter().map(|attempt| u64::from(attempt.faults.1)).sum();
    let (worlds, broken) = digest.night.worlds_lived();
    let runs = number(digest.night.attempts.len());
    m.el("dl", &[("class", "figures")], |m| {
        let cases = format!("{} of {}", len(of(Pile::Valid)), len(digest.cases.len()));
        figure(m, "cases valid", &cases, &format!("{} run", len(ran)));
        figure(m, "runs", &count(runs), &plural(operations, "operation"));
        figure(m, "faults proven", &format!("{} of {}", count(faults), count(asked)), "");
        figure(m, "elections measured", &count(elections), "");
        let beside = if worlds == 0 { String::new() } else { format!("{} broke a rule", len(broken.len())) };
        figure(m, "worlds", &count(worlds), &beside);
    });
}

fn facts(m: &mut Markup, digest: &Digest<'_>) {
    let begun = &digest.night.begun;
    let mut fact = |name: &str, value: &str| {
        m.el("div", &[], |m| {
            m.leaf("dt", &[("class", "quiet")], name);
            m.leaf("dd", &[], &shortened(value, MOST_TEXT));
        });
    };
    fact("date", &day(digest.night));
    let budget = time_span(begun.budget_s);
    let took = digest.night.judged.as_ref().map(|judged| {
        let ns = judged.ended_utc.as_nanosecond() - begun.started_utc.as_nanosecond();
        time_span(u64::try_from(ns.max(0) / 1_000_000_000).unwrap_or(0))
    });
    match took {
        Some(took) => fact("time", &format!("{took} of a budget of {budget}")),
        None => fact("budget", &budget),
    }
    fact("build", &begun.build);
    fact("machine", &begun.machine.key());
    if let Some(profile) = &begun.profile {
        fact("profile", profile);
    }
    if let Some(here) = digest.night.shards_here() {
        fact("here", &here);
    }
}

/// Hours and minutes, or seconds where it was short.
fn time_span(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min"),
        (_, 0) => format!("{} h", count(hours)),
        _ => format!("{} h {minutes} min", count(hours)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_is_told_in_hours_and_minutes() {
        let all = [40, 720, 21_600, 20_640].map(time_span);
        assert_eq!(all, ["40 s", "12 min", "6 h", "5 h 44 min"]);
    }
}
