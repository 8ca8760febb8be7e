//! What worlds tell a person: the figures in columns of a screen, the verdict last.

use std::fmt::Write as _;

use lab_mutants::Mutant;
use lab_sim::{Outcome, Violation};

use super::{Manner, Members, SHOWN, Small};
use crate::commands::screen::as_typed;
use crate::worlds::scripts::Replayed;
use crate::worlds::seeds::Seeds;
use crate::worlds::{self, Swept};

/// The width that everything is set for.
const WIDTH: usize = 100;
/// Columns of figures beside each other.
const COLUMNS: usize = 2;

/// A figure that can be read: `12,345`.
pub(super) fn thousands(figure: u64) -> String {
    let digits = figure.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

/// A name of the code as words.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// One world: its trace, its counts, its verdict.
pub(super) fn one(outcome: &Outcome, small: Option<&Small>, asked: bool) -> String {
    let mut text = String::new();
    for line in &outcome.trace {
        let _ = writeln!(text, "{line}");
    }
    if !outcome.trace.is_empty() {
        text.push('\n');
    }
    let rows: Vec<String> = outcome
        .counters
        .rows()
        .into_iter()
        .filter(|(name, count)| *count > 0 && *name != "virtual_ms")
        .map(|(name, count)| format!("{:<24} {:>9}", words(name), thousands(count)))
        .collect();
    text.push_str(&columns(&rows, "    "));
    let election =
        outcome.election_ms.map(|ms| format!(", led again {ms} ms after healing")).unwrap_or_default();
    let _ = writeln!(
        text,
        "\n{} of virtual time{election}, trace {:016x}",
        seconds(outcome.counters.virtual_ms),
        outcome.trace_hash
    );
    if outcome.undecided > 0 {
        let _ = writeln!(text, "undecided: {} histories were too much for the checker", outcome.undecided);
    }
    match &outcome.violation {
        None => {
            let _ = writeln!(text, "✓ VALID  seed {}: no promise was broken", outcome.drawn.seed);
        }
        Some(violation) => {
            let _ = writeln!(text, "✗ VIOLATION  seed {}: {violation}", outcome.drawn.seed);
        }
    }
    if let Some(small) = small {
        text.push_str(&made_small(small));
    } else if asked && outcome.violation.is_some() {
        text.push_str("it could not be made smaller\n");
    }
    text
}

fn made_small(Small { seed, shrunk, path }: &Small) -> String {
    format!(
        "seed {seed} made small: {} events, {} members, {} operations ({} replays)\n    {}\n    script: \
            {path}\n",
        shrunk.events, shrunk.members, shrunk.operations, shrunk.replays, shrunk.violation
    )
}

/// Rows in columns, read downwards.
fn columns(rows: &[String], between: &str) -> String {
    let height = rows.len().div_ceil(COLUMNS);
    let mut text = String::new();
    for line in 0..height {
        let cells: Vec<&str> =
            (0..COLUMNS).filter_map(|column| rows.get(column * height + line)).map(String::as_str).collect();
        let _ = writeln!(text, "{}", cells.join(between));
    }
    text
}

/// Many worlds: what was drawn, what happened, what was broken.
pub(super) fn many(
    swept: &Swept,
    seeds: Seeds,
    jobs: usize,
    manner: &Manner,
    small: &[Small],
    asked: bool,
) -> String {
    let tally = &swept.tally;
    let mut text = String::from("drawn, in so many worlds\n");
    for (group, cells) in tally.drawn() {
        let cells: Vec<String> =
            cells.iter().map(|(word, count)| format!("{word}: {}", thousands(*count))).collect();
        text.push_str(&wrapped(group, &cells));
    }
    let head = format!("{:<22} {:>9} {:>13}", "happened", "in worlds", "times");
    let _ = writeln!(text, "\n{head}  {head}");
    let rows: Vec<String> = tally
        .counters
        .rows()
        .into_iter()
        .filter(|(name, _)| *name != "virtual_ms")
        .map(|(name, count)| {
            let worlds = tally.worlds.get(name).copied().unwrap_or(0);
            format!("{:<22} {:>9} {:>13}", words(name), thousands(worlds), thousands(count))
        })
        .collect();
    text.push_str(&columns(&rows, "  "));
    let (slowest_ms, slowest_seed) = tally.slowest_election_ms;
    let elapsed_ms = u64::try_from(swept.elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = worlds::per_minute(tally.seeds, swept.elapsed);
    let _ = writeln!(
        text,
        "\n{} worlds of seeds {seeds}{} in {} on {}: {} a minute, {} a core\n{} of virtual time, {} times \
            as fast as real",
        thousands(tally.seeds),
        manner.words,
        seconds(elapsed_ms),
        crate::num::plural(jobs, "thread"),
        thousands(rate),
        thousands(rate / worlds::busy(jobs)),
        seconds(tally.counters.virtual_ms),
        thousands(tally.counters.virtual_ms / elapsed_ms)
    );
    let _ = writeln!(
        text,
        "slowest election after healing {slowest_ms} ms (seed {slowest_seed}); all traces {:016x}",
        tally.trace_hash
    );
    if tally.undecided > 0 {
        let _ = writeln!(text, "undecided: {} histories were too much for the checker", tally.undecided);
    }
    text.push_str(&violations(swept, manner, small, asked));
    text
}

/// Cells behind the name of their group, on as many lines as they need.
fn wrapped(group: &str, cells: &[String]) -> String {
    let indent = 30;
    let mut text = String::new();
    let mut line = format!("  {group:<width$}", width = indent - 2);
    let mut is_first = true;
    for cell in cells {
        if !is_first && line.chars().count() + 3 + cell.chars().count() > WIDTH {
            let _ = writeln!(text, "{},", line.trim_end());
            line = " ".repeat(indent);
            is_first = true;
        }
        if !is_first {
            line.push_str(", ");
        }
        line.push_str(cell);
        is_first = false;
    }
    let _ = writeln!(text, "{line}");
    text
}

fn violations(swept: &Swept, manner: &Manner, small: &[Small], asked: bool) -> String {
    let tally = &swept.tally;
    let interrupted = if swept.interrupted { " before the interrupt" } else { "" };
    let worlds = crate::num::plural(crate::num::index(tally.seeds), "world")
        .replace(&tally.seeds.to_string(), &thousands(tally.seeds));
    if tally.broken() == 0 {
        return format!("✓ VALID  no promise was broken in {worlds}{interrupted}\n");
    }
    let mut text = String::new();
    for (seed, violation) in tally.violations.iter().take(SHOWN) {
        text.push_str(&spelled_out(*seed, violation, manner));
    }
    let shown = u64::try_from(SHOWN).unwrap_or(u64::MAX);
    if tally.broken() > shown {
        let _ = writeln!(text, "and {} more", thousands(tally.broken() - shown));
    }
    for small in small {
        text.push_str(&made_small(small));
    }
    if asked && small.is_empty() {
        text.push_str("none of them could be made smaller\n");
    }
    let by_rule: Vec<String> =
        tally.broken.iter().map(|(rule, count)| format!("{} {}", thousands(*count), rule.name())).collect();
    let _ = writeln!(
        text,
        "✗ VIOLATION  {} of {worlds}{interrupted} broke a promise: {}",
        thousands(tally.broken()),
        by_rule.join(", ")
    );
    text
}

fn spelled_out(seed: u64, violation: &Violation, manner: &Manner) -> String {
    let again = as_typed(&manner.again(seed));
    format!("seed {seed}: {violation}\n    again: {again}\n")
}

/// A script: its trace and its verdict.
pub(super) fn replayed(replayed: &Replayed, members: Members) -> String {
    let mut text = String::new();
    match (members.mutant, members.of_the_script) {
        (None, None) => {}
        (Some(bug), named) if named == Some(bug) => {
            let _ = writeln!(text, "every member is the mutant {bug}, as the script says\n");
        }
        (Some(bug), named) => {
            let named = named.map_or("none", Mutant::name);
            let _ = writeln!(text, "every member is the mutant {bug}; the script names {named}\n");
        }
        (None, Some(bug)) => {
            let _ = writeln!(text, "the members are sound; the script names the mutant {bug}\n");
        }
    }
    for line in &replayed.trace {
        let _ = writeln!(text, "{line}");
    }
    if replayed.skipped > 0 {
        let _ = writeln!(text, "\n{} lines could not be done and were left out", replayed.skipped);
    }
    match &replayed.violation {
        None => text.push_str("\n✓ VALID  no promise was broken\n"),
        Some(violation) => {
            let _ = writeln!(text, "\n✗ VIOLATION  {violation}");
        }
    }
    let same_members = members.mutant == members.of_the_script;
    if let (Some(rule), true) = (members.breaks, same_members)
        && replayed.violation.as_ref().is_none_or(|violation| violation.rule != rule)
    {
        let rule = rule.name();
        let _ =
            writeln!(text, "the script says that `{rule}` breaks: this build does not do what its build did");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_grouped_and_cells_stay_within_the_screen() {
        assert_eq!(
            (thousands(7), thousands(1_234), thousands(1_000_000)),
            ("7".into(), "1,234".into(), "1,000,000".into())
        );
        let cells: Vec<String> = (0..20).map(|at| format!("some-fault-{at}: 4,711")).collect();
        let text = wrapped("faults", &cells);
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn columns_are_read_downwards() {
        let rows: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(columns(&rows, " "), "a c\nb\n");
    }
}
