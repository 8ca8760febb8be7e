//! What the hunts tell: a table for people, for documents, for programs.

use std::fmt::Write as _;

use anyhow::Context;
use serde_json::{Value, json};

use super::hunt::{Hunted, Quarry, Row, Size};
use super::real::{self, End};
use crate::cli::simulator::TableFormat;
use crate::num::plural;

/// A table whose first row is its head.
struct Grid(Vec<Vec<String>>);

impl Grid {
    /// Columns as wide as they need, figures as they stand.
    fn human(&self) -> String {
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

    fn markdown(&self) -> String {
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

fn strings<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn quarry(quarry: &Quarry) -> [String; 3] {
    match quarry {
        Quarry::Found(found) => {
            [found.rule.name().to_owned(), found.seed.to_string(), format!("{:.1}", found.took.as_secs_f64())]
        }
        Quarry::NotFound { worlds } => ["not found".to_owned(), format!("({worlds})"), String::new()],
        Quarry::NotHunted => ["-".to_owned(), String::new(), String::new()],
    }
}

fn size(size: Option<Size>) -> String {
    size.map_or_else(
        || "-".to_owned(),
        |size| format!("{}/{}/{}", size.events, size.members, size.operations),
    )
}

fn grid_of_worlds(hunted: &Hunted, with_origin: bool) -> Grid {
    let mut head = strings(["bug"]);
    head.extend(with_origin.then(|| "who had it".to_owned()));
    head.extend(strings(["inside", "seed", "s", "outside", "seed", "s", "events/members/ops"]));
    let row = |row: &Row| {
        let mut cells = vec![row.bug.name().to_owned()];
        cells.extend(with_origin.then(|| row.bug.origin().to_owned()));
        cells.extend(quarry(&row.inside));
        cells.extend(quarry(&row.outside));
        cells.push(size(row.size));
        cells
    };
    Grid(std::iter::once(head).chain(hunted.rows.iter().map(row)).collect())
}

/// The hunt in the simulator.
pub(super) fn of_worlds(hunted: &Hunted, format: TableFormat) -> anyhow::Result<String> {
    Ok(match format {
        TableFormat::Json => json_of_worlds(hunted)?,
        TableFormat::Human => format!("{}\n{}", grid_of_worlds(hunted, false).human(), end_of_worlds(hunted)),
        TableFormat::Markdown => {
            let sentence = sentence(hunted);
            format!("{}\n{sentence}\n", grid_of_worlds(hunted, true).markdown())
        }
    })
}

/// How many were found, within how many worlds, and what became of the clean build.
fn sentence(hunted: &Hunted) -> String {
    let within = |bound: u64| {
        let soon = |quarry: &Quarry| matches!(quarry, Quarry::Found(found) if found.seed < bound);
        hunted.rows.iter().filter(|row| soon(&row.inside) || soon(&row.outside)).count()
    };
    let found = hunted.rows.iter().filter(|row| row.is_found()).count();
    let outside = hunted.rows.iter().filter(|row| matches!(row.outside, Quarry::Found(_))).count();
    let clean = match hunted.clean.broken() {
        0 => "not accused".to_owned(),
        broken => format!("ACCUSED in {broken}"),
    };
    format!(
        "{found} of {} found, {} of them within 100 worlds, {outside} without looking inside; the clean build in {} worlds: \
         {clean}.",
        plural(hunted.rows.len(), "bug"),
        within(100),
        hunted.clean.seeds
    )
}

fn end_of_worlds(hunted: &Hunted) -> String {
    let mut text = String::new();
    for (seed, violation) in hunted.clean.violations.iter().take(5) {
        let _ = writeln!(text, "the clean build is accused: seed {seed}: {violation}");
        let _ = writeln!(text, "    again: harness sim --seed {seed} --trace");
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

fn json_of_quarry(quarry: &Quarry) -> Value {
    match quarry {
        Quarry::Found(found) => json!({
            "found": true,
            "check": found.rule.name(),
            "seed": found.seed,
            "seconds": found.took.as_secs_f64(),
            "sentence": found.sentence,
        }),
        Quarry::NotFound { worlds } => json!({"found": false, "worlds": worlds}),
        Quarry::NotHunted => Value::Null,
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
                "inside": json_of_quarry(&row.inside),
                "outside": json_of_quarry(&row.outside),
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
pub(super) fn of_runs(rows: &[real::Row], cluster: &str, format: TableFormat) -> anyhow::Result<String> {
    if format == TableFormat::Json {
        return json_of_runs(rows, cluster);
    }
    let mut grid = vec![strings(["bug", "nemesis", "workload", "found by", "runs", "s"])];
    let mut notes = String::new();
    for real::Row { bug, end } in rows {
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

fn json_of_runs(rows: &[real::Row], cluster: &str) -> anyhow::Result<String> {
    let rows: Vec<Value> = rows
        .iter()
        .map(|real::Row { bug, end }| {
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
    use super::*;

    #[test]
    fn a_grid_is_aligned_for_people_and_a_table_for_documents() {
        let grid = Grid(vec![strings(["bug", "seed"]), strings(["commit-alone", "7"])]);
        assert_eq!(grid.human(), "bug           seed\ncommit-alone     7\n");
        assert_eq!(grid.markdown(), "| bug | seed |\n|---|---|\n| commit-alone | 7 |\n");
    }
}
