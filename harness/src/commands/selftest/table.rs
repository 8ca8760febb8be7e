//! What the hunts tell: a table for people, for documents, for programs.

use std::fmt::Write as _;

use anyhow::Context;
use serde_json::{Value, json};

use super::ends::{self, End};
use super::hunt::{Hunted, Outcome, Row, Size};
use crate::cli::simulator::TableFormat;
use crate::commands::screen::as_typed;
use crate::num::plural;

/// A table whose first row is its head.
pub(super) struct Grid(pub(super) Vec<Vec<String>>);

impl Grid {
    /// Columns as wide as they need, figures as they stand.
    pub(super) fn human(&self) -> String {
        let columns = self.0.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.0
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.0 {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| {
                    let is_figure = cell.chars().all(|c| c.is_ascii_digit() || c == '.');
                    if is_figure { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                })
                .collect();
            let _ = writeln!(text, "{}", cells.join("  ").trim_end());
        }
        text
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        for (at, row) in self.0.iter().enumerate() {
            let _ = writeln!(text, "| {} |", row.join(" | "));
            if at == 0 {
                let _ = writeln!(text, "|{}", "---|".repeat(row.len()));
            }
        }
        text
    }
}

pub(super) fn strings<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// What a document says before its table.
const PREFACE: &str = "# The bug zoo

Bugs that are planted in members, and what finds each of them in the simulator. Implementations of ZAB and of
fast leader election really had them, or a careful reader would make them. They are in `node/lab/mutants`, a
file each; the `node` binary has none of them. `harness list mutants` says in a line what each does. This
command prints this document:

    harness selftest --seeds 1000 --format markdown > node/lab/sim/ZOO.md

The gate runs `harness selftest --quick --against node/lab/sim/ZOO.md`, which says where the document is no
longer true.

- *inside*: what convicts first when members are inspected after every event: an invariant, or the check on
  the clients' history.
- *outside*: what clients and operators would see: histories, a member that stops, an ensemble that does not
  serve.
- *seed*: the first world, counted from 0, that convicts.
- *events/members/ops*: the size of that world's shrunk counterexample: lines of its script, members,
  operations of clients. \"-\": no script could be written that fails in the same way. CI replays the scripts
  in `tests/scripts`; each must break its rule with the bug, and nothing without it.
";

/// And behind it.
const CODA: &str =
    "What this does not show: the checks were written with these bugs in mind, so finding them is the least
that can be asked.
";

fn outcome(outcome: &Outcome) -> [String; 2] {
    match outcome {
        Outcome::Found(found) => [found.rule.name().to_owned(), found.seed.to_string()],
        Outcome::NotFound { worlds } => ["not found".to_owned(), format!("({worlds})")],
        Outcome::NotHunted => ["-".to_owned(), String::new()],
    }
}

/// How long a hunt took, where it found something.
fn seconds(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Found(found) => format!("{:.1}", found.took.as_secs_f64()),
        Outcome::NotFound { .. } | Outcome::NotHunted => String::new(),
    }
}

fn size(size: Option<Size>) -> String {
    size.map_or_else(
        || "-".to_owned(),
        |size| format!("{}/{}/{}", size.events, size.members, size.operations),
    )
}

fn grid_of_worlds(hunted: &Hunted) -> Grid {
    let head = strings(["bug", "inside", "seed", "s", "outside", "seed", "s", "events/members/ops"]);
    let row = |row: &Row| {
        let mut cells = vec![row.bug.name().to_owned()];
        for way in [&row.inside, &row.outside] {
            cells.extend(outcome(way));
            cells.push(seconds(way));
        }
        cells.push(size(row.size));
        cells
    };
    Grid(std::iter::once(head).chain(hunted.rows.iter().map(row)).collect())
}

/// The same for a document: with who had each bug, and without what is another machine's, how long it took.
fn grid_of_document(hunted: &Hunted) -> Grid {
    let head = strings(["bug", "who had it", "inside", "seed", "outside", "seed", "events/members/ops"]);
    let row = |row: &Row| {
        let mut cells = strings([row.bug.name(), row.bug.origin()]);
        cells.extend(outcome(&row.inside));
        cells.extend(outcome(&row.outside));
        cells.push(size(row.size));
        cells
    };
    Grid(std::iter::once(head).chain(hunted.rows.iter().map(row)).collect())
}

/// The rows of a document that are compared: a bug, whose it is, by what it was found, and where.
pub(super) type Cells = [String; 4];

/// What is seen inside, which the quick hunt finds too.
pub(super) fn rows(hunted: &Hunted) -> Vec<Cells> {
    let row = |row: &Row| {
        let [rule, seed] = outcome(&row.inside);
        [row.bug.name().to_owned(), row.bug.origin().to_owned(), rule, seed]
    };
    hunted.rows.iter().map(row).collect()
}

/// Where a document that was printed earlier says another thing than this hunt: a sentence each. Of bugs that
/// were not hunted nothing is said.
pub(super) fn differences(rows: &[Cells], document: &str) -> Vec<String> {
    let told: Vec<Vec<&str>> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|line| line.split(" | ").collect())
        .collect();
    let mut found = Vec::new();
    for [name, _, rule, place] in rows {
        let Some(cells) = told.iter().find(|cells| cells.first() == Some(&name.as_str())) else {
            found.push(format!("{name} has no row"));
            continue;
        };
        let said = (cells.get(2).copied().unwrap_or_default(), cells.get(3).copied().unwrap_or_default());
        if said != (rule.as_str(), place.as_str()) {
            found.push(format!("{name}: {} {} there, {rule} {place} now", said.0, said.1));
        }
    }
    found
}

/// The hunt in the simulator.
pub(super) fn of_worlds(hunted: &Hunted, format: TableFormat) -> anyhow::Result<String> {
    Ok(match format {
        TableFormat::Json => json_of_worlds(hunted)?,
        TableFormat::Human => format!("{}\n{}", grid_of_worlds(hunted).human(), end_of_worlds(hunted)),
        TableFormat::Markdown => {
            let table = grid_of_document(hunted).markdown();
            format!("{PREFACE}\n{table}\n{}\n\n{CODA}", sentence(hunted))
        }
    })
}

/// How many were found, within how many worlds, and what became of the clean build.
fn sentence(hunted: &Hunted) -> String {
    let within = |bound: u64| {
        let soon = |outcome: &Outcome| matches!(outcome, Outcome::Found(found) if found.seed < bound);
        hunted.rows.iter().filter(|row| soon(&row.inside) || soon(&row.outside)).count()
    };
    let found = hunted.rows.iter().filter(|row| row.is_found()).count();
    // A quick hunt looks inside only, and what was not tried is not told as a failure.
    let tried = hunted.rows.iter().any(|row| !matches!(row.outside, Outcome::NotHunted));
    let outside = hunted.rows.iter().filter(|row| matches!(row.outside, Outcome::Found(_))).count();
    let outside = if tried { format!(", {outside} without looking inside") } else { String::new() };
    let clean = match hunted.clean.broken() {
        0 => "not accused".to_owned(),
        broken => format!("ACCUSED in {broken}"),
    };
    format!(
        "{found} of {} found, {} of them within 100 worlds{outside}; the clean build in {} worlds: {clean}.",
        plural(hunted.rows.len(), "bug"),
        within(100),
        hunted.clean.seeds
    )
}

fn end_of_worlds(hunted: &Hunted) -> String {
    let mut text = String::new();
    for (seed, violation) in hunted.clean.violations.iter().take(5) {
        let _ = writeln!(text, "the clean build is accused: seed {seed}: {violation}");
        let _ = writeln!(text, "    again: {}", as_typed(&format!("harness sim --seed {seed} --trace")));
    }
    for row in hunted.rows.iter().filter(|row| !row.is_found()) {
        let _ = writeln!(text, "not found: {} ({}; {})", row.bug, row.bug.origin(), row.bug.summary());
    }
    let interrupted = if hunted.interrupted { " (interrupted)" } else { "" };
    let mark = match (hunted.interrupted, hunted.is_as_it_should_be()) {
        (true, _) => "?",
        (false, true) => "✓",
        (false, false) => "✗",
    };
    let _ = writeln!(text, "{mark} {} {:.0} s{interrupted}", sentence(hunted), hunted.took.as_secs_f64());
    text
}

fn json_of_outcome(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Found(found) => json!({
            "found": true,
            "check": found.rule.name(),
            "seed": found.seed,
            "seconds": found.took.as_secs_f64(),
            "sentence": found.sentence,
        }),
        Outcome::NotFound { worlds } => json!({"found": false, "worlds": worlds}),
        Outcome::NotHunted => Value::Null,
    }
}

fn json_of_worlds(hunted: &Hunted) -> anyhow::Result<String> {
    let rows: Vec<Value> = hunted
        .rows
        .iter()
        .map(|row| {
            json!({
                "bug": row.bug.name(),
                "origin": row.bug.origin(),
                "summary": row.bug.summary(),
                "inside": json_of_outcome(&row.inside),
                "outside": json_of_outcome(&row.outside),
                "shrunk": row.size.map(|size| json!({
                    "events": size.events,
                    "members": size.members,
                    "operations": size.operations,
                })),
            })
        })
        .collect();
    let clean: Vec<u64> = hunted.clean.violations.keys().copied().collect();
    pretty(&json!({
        "bugs": rows,
        "clean": {"worlds": hunted.clean.seeds, "accused": hunted.clean.broken(), "seeds": clean},
        "seconds": hunted.took.as_secs_f64(),
        "interrupted": hunted.interrupted,
    }))
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(value).context("encoding the table")?))
}

/// The hunt in real members.
pub(super) fn of_runs(rows: &[ends::Row], cluster: &str, format: TableFormat) -> anyhow::Result<String> {
    if format == TableFormat::Json {
        return json_of_runs(rows, cluster);
    }
    let mut grid = vec![strings(["bug", "nemesis", "workload", "found by", "runs", "s"])];
    let mut notes = String::new();
    for ends::Row { bug, end } in rows {
        let name = bug.name();
        match end {
            End::Found { recipe, runs, took, checks, page } => {
                let seconds = format!("{:.0}", took.as_secs_f64());
                let checks = checks.join(", ");
                grid.push(strings([
                    name,
                    recipe.nemesis,
                    recipe.workload,
                    &checks,
                    &runs.to_string(),
                    &seconds,
                ]));
                let _ = writeln!(notes, "{name}: {page}");
            }
            End::NotFound { recipe, runs, took } => {
                let seconds = format!("{:.0}", took.as_secs_f64());
                let runs = runs.to_string();
                grid.push(strings([name, recipe.nemesis, recipe.workload, "not found", &runs, &seconds]));
            }
            End::CanNot(why) => {
                grid.push(strings([name, "-", "-", "not run", "0", ""]));
                let why = why.lines().next().unwrap_or_default();
                let _ = writeln!(notes, "{name} was not run: {why}");
            }
            End::SimulatorOnly(reason) => {
                grid.push(strings([name, "-", "-", &format!("simulator only: it {reason}"), "", ""]));
            }
        }
    }
    let grid = Grid(grid);
    if format == TableFormat::Markdown {
        return Ok(grid.markdown());
    }
    let tried = rows.iter().filter(|row| !matches!(row.end, End::SimulatorOnly(_))).count();
    let found = rows.iter().filter(|row| matches!(row.end, End::Found { .. })).count();
    let mark = if found == tried { "✓" } else { "✗" };
    let bugs = plural(tried, "bug");
    Ok(format!("{}\n{notes}{mark} {found} of {bugs} found on the {cluster} cluster\n", grid.human()))
}

fn json_of_runs(rows: &[ends::Row], cluster: &str) -> anyhow::Result<String> {
    let rows: Vec<Value> = rows
        .iter()
        .map(|ends::Row { bug, end }| {
            let mut value = match end {
                End::Found { recipe, runs, took, checks, page } => json!({
                    "found": true, "nemesis": recipe.nemesis, "workload": recipe.workload, "runs": runs,
                    "seconds": took.as_secs_f64(), "checks": checks, "page": page,
                }),
                End::NotFound { recipe, runs, took } => json!({
                    "found": false, "nemesis": recipe.nemesis, "workload": recipe.workload, "runs": runs,
                    "seconds": took.as_secs_f64(),
                }),
                End::CanNot(why) => json!({"found": false, "not_run": why}),
                End::SimulatorOnly(reason) => json!({"found": null, "simulator_only": reason}),
            };
            value["bug"] = json!(bug.name());
            value["origin"] = json!(bug.origin());
            value
        })
        .collect();
    pretty(&json!({"cluster": cluster, "bugs": rows}))
}

#[cfg(test)]
mod tests {
    use lab_mutants::Mutant;

    use super::*;

    fn hunted(outside: Outcome) -> Hunted {
        let found = |seed| {
            let (rule, took) = (lab_sim::Rule::Durability, std::time::Duration::from_secs(1));
            Outcome::Found(super::super::hunt::Found { seed, rule, sentence: String::new(), took })
        };
        let row = Row {
            bug: Mutant::named("commit-alone").expect("a mutant"),
            inside: found(7),
            outside,
            size: None,
        };
        Hunted { rows: vec![row], ..Hunted::default() }
    }

    #[test]
    fn what_a_quick_hunt_did_not_try_is_not_told_as_a_failure() {
        let quick = sentence(&hunted(Outcome::NotHunted));
        assert!(
            quick.starts_with("1 of 1 bug found, 1 of them within 100 worlds; the clean build"),
            "{quick}"
        );
        let tried = sentence(&hunted(Outcome::NotFound { worlds: 9 }));
        assert!(tried.contains(", 0 without looking inside;"), "{tried}");
    }

    #[test]
    fn a_document_agrees_with_the_hunt_that_printed_it_and_no_longer_when_a_seed_moves() {
        let printed = hunted(Outcome::NotFound { worlds: 400 });
        let document = of_worlds(&printed, TableFormat::Markdown).expect("a document");
        assert_eq!(differences(&rows(&hunted(Outcome::NotHunted)), &document), Vec::<String>::new());
        let moved = document.replace("| 7 |", "| 34 |");
        assert_eq!(
            differences(&rows(&printed), &moved),
            ["commit-alone: durability 34 there, durability 7 now"]
        );
        assert_eq!(differences(&rows(&printed), "# The bug zoo"), ["commit-alone has no row"]);
    }

    #[test]
    fn a_grid_is_aligned_for_people_and_a_table_for_documents() {
        let grid = Grid(vec![strings(["bug", "seed"]), strings(["commit-alone", "7"])]);
        assert_eq!(grid.human(), "bug           seed\ncommit-alone     7\n");
        assert_eq!(grid.markdown(), "| bug | seed |\n|---|---|\n| commit-alone | 7 |\n");
    }
}
