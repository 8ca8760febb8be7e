//! Planted bugs of protocols that are written as state machines, hunted in drawn worlds and in every
//! interleaving of a few requests; and the clean protocols in the same.

use std::sync::atomic::Ordering;

use harness_protocols::Broken;
use harness_protocols::entry::{Entry, Mutant};
use harness_protocols::hunt::{Found, Limits, Shown, accused, explorations, hunt};
use serde_json::json;

use super::table::{Cells, Grid, differences, strings};
use crate::cli::SelftestArgs;
use crate::cli::simulator::TableFormat;
use crate::commands::screen::print;
use crate::commands::sim::{interruptible, jobs, protocol};
use crate::exit::{Exit, Failure};
use crate::num::plural;
use crate::progress::Progress;
use crate::text::suggest;
use crate::worlds::side_by_side;

/// Worlds in which a bug is hunted, where nobody says how many.
const WORLDS: u64 = 10_000;
/// States of an exploration.
const STATES: usize = 300_000;
/// Worlds that clean roles live through at least.
const CLEAN: u64 = 1_000;
/// Worlds that they live through at a time.
const PORTION: u64 = 100;

/// A bug, and what came of its hunt.
struct Hunted {
    entry: Entry,
    mutant: Mutant,
    found: Option<Found>,
}

/// Hunts the bugs of the protocols that are named.
pub(super) fn selftest(
    args: &SelftestArgs,
    document: Option<&str>,
    progress: &Progress,
) -> Result<Exit, Failure> {
    let entries = args.protocol.iter().map(|name| protocol::named(name)).collect::<Result<Vec<_>, _>>()?;
    let pieces = pieces(&entries, &args.only)?;
    let (limits, jobs) = (Limits { worlds: args.seeds.unwrap_or(WORLDS), states: STATES }, jobs(args.jobs)?);
    let (hunted, clean, interrupted) = interruptible(progress, |stop| {
        let of_piece = |(entry, mutant): &(Entry, Mutant), halt: &std::sync::atomic::AtomicBool| Hunted {
            entry: *entry,
            mutant: *mutant,
            found: hunt(entry, mutant.name, limits, &|| halt.load(Ordering::Relaxed)),
        };
        let told = |hunted: &Hunted| {
            let words = hunted.found.as_ref().map_or_else(|| "not found".to_owned(), in_words);
            progress.say(&format!("{} {}: {words}", hunted.entry.name, hunted.mutant.name));
        };
        let hunted: Vec<Hunted> =
            side_by_side(&pieces, jobs, stop, of_piece, told)?.into_iter().flatten().collect();
        let clean = if stop() { Vec::new() } else { clean(&hunted, limits, jobs, stop)? };
        anyhow::Ok((hunted, clean, stop()))
    })?;
    progress.clear();
    print(&table(&hunted, &clean, args))?;
    let otherwise = document.map(|document| differences(&rows(&hunted), document)).unwrap_or_default();
    for difference in &otherwise {
        progress.say(&format!("the document is no longer true: {difference}"));
    }
    let is_found = hunted.iter().all(|hunted| hunted.found.is_some());
    let is_accused = clean.iter().any(|clean| clean.broken.is_some());
    Ok(match interrupted {
        true => Exit::Interrupted,
        false if is_found && !is_accused && otherwise.is_empty() => Exit::Done,
        false => Exit::Invalid,
    })
}

/// The bugs of these names; all when none is named.
fn pieces(entries: &[Entry], only: &[String]) -> Result<Vec<(Entry, Mutant)>, Failure> {
    if let Some(entry) = entries.iter().find(|entry| entry.mutants.is_empty()) {
        return Err(Failure::usage(format!(
            "--protocol {}: it has no bugs of its own; without --protocol those of members are hunted",
            entry.name
        )));
    }
    let all = entries.iter().flat_map(|entry| entry.mutants.iter().map(move |mutant| (*entry, *mutant)));
    let all: Vec<(Entry, Mutant)> = all.collect();
    let names: Vec<&str> = all.iter().map(|(_, mutant)| mutant.name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.trim())) {
        let known = "these protocols have:";
        return Err(Failure::Usage(suggest::unknown("mutant", unknown, &names, known)));
    }
    let is_meant = |name: &str| only.is_empty() || only.iter().any(|meant| meant.trim() == name);
    Ok(all.into_iter().filter(|(_, mutant)| is_meant(mutant.name)).collect())
}

/// What a clean protocol went through, and what it broke.
struct Clean {
    name: &'static str,
    worlds: u64,
    explorations: usize,
    broken: Option<(Shown, Broken)>,
}

/// As many worlds of each clean protocol as its longest hunt took, and the explorations that found something.
fn clean(
    hunted: &[Hunted],
    limits: Limits,
    jobs: usize,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Vec<Clean>> {
    let mut all: Vec<Clean> = Vec::new();
    for one in hunted.iter().filter(|one| one.found.is_some()) {
        if all.iter().any(|clean| clean.name == one.entry.name) {
            continue;
        }
        let found = hunted.iter().filter(|other| other.entry.name == one.entry.name);
        let shown: Vec<Shown> = found.filter_map(|one| one.found.as_ref().map(|(shown, _)| *shown)).collect();
        let worlds = shown.iter().map(|shown| match shown {
            Shown::World(seed) => seed + 1,
            Shown::Interleaving(..) => limits.worlds,
        });
        let worlds = worlds.max().unwrap_or_default().max(CLEAN.min(limits.worlds));
        let mut explored: Vec<usize> = Vec::new();
        explored.extend(shown.iter().filter_map(|shown| match shown {
            Shown::World(_) => None,
            Shown::Interleaving(at, _) => Some(*at),
        }));
        explored.sort_unstable();
        explored.dedup();
        let mut portions: Vec<Vec<Shown>> =
            explored.iter().map(|at| vec![Shown::Interleaving(*at, 0)]).collect();
        let firsts = (0..worlds).step_by(usize::try_from(PORTION).unwrap_or(usize::MAX));
        portions.extend(firsts.map(|first| (first..worlds.min(first + PORTION)).map(Shown::World).collect()));
        let of_portion = |portion: &Vec<Shown>, _: &_| {
            portion.iter().find_map(|shown| Some((*shown, accused(&one.entry, *shown, limits)?)))
        };
        let broken = side_by_side(&portions, jobs, stop, of_portion, |_| {})?;
        let broken = broken.into_iter().flatten().flatten().next();
        all.push(Clean { name: one.entry.name, worlds, explorations: explored.len(), broken });
    }
    Ok(all)
}

fn in_words((shown, broken): &Found) -> String {
    format!("{}, {}", broken.rule, place(*shown))
}

/// Where something shows.
fn place(shown: Shown) -> String {
    match shown {
        Shown::World(seed) => format!("seed {seed}"),
        Shown::Interleaving(at, states) => format!("{states} states: {}", explorations(0)[at].0),
    }
}

/// A row for each bug: protocol, name, what it does, by what it was found, and where.
fn rows(hunted: &[Hunted]) -> Vec<Cells> {
    let row = |Hunted { entry, mutant, found }: &Hunted| {
        let (rule, place) = match found {
            Some((shown, broken)) => (broken.rule.clone(), place(*shown)),
            None => ("not found".to_owned(), String::new()),
        };
        let name = format!("{} {}", entry.name, mutant.name);
        [name, mutant.about.to_owned(), rule, place]
    };
    hunted.iter().map(row).collect()
}

fn table(hunted: &[Hunted], clean: &[Clean], args: &SelftestArgs) -> String {
    if let TableFormat::Json = args.format {
        let rows = hunted.iter().map(|Hunted { entry, mutant, found }| {
            json!({
                "protocol": entry.name,
                "mutant": mutant.name,
                "does": mutant.about,
                "rule": found.as_ref().map(|(_, broken)| broken.rule.clone()),
                "found": found.as_ref().map(|(shown, _)| place(*shown)),
            })
        });
        let clean = clean.iter().map(|clean| {
            json!({
                "protocol": clean.name,
                "worlds": clean.worlds,
                "explorations": clean.explorations,
                "accused": clean.broken.as_ref().map(in_words),
            })
        });
        return format!(
            "{:#}\n",
            json!({"bugs": rows.collect::<Vec<_>>(), "clean": clean.collect::<Vec<_>>()})
        );
    }
    let mut cells = vec![strings(["bug", "what it does", "found by", "at"])];
    cells.extend(rows(hunted).into_iter().map(Vec::from));
    match args.format {
        TableFormat::Markdown => {
            let command =
                format!("harness selftest --protocol {} --format markdown", args.protocol.join(","));
            format!("{}\n{}\n{}", preface(&command), Grid(cells).markdown(), end(hunted, clean))
        }
        TableFormat::Human | TableFormat::Json => {
            format!("{}\n{}", Grid(cells).human(), end(hunted, clean))
        }
    }
}

fn preface(command: &str) -> String {
    format!(
        "# Bugs of protocols\n\nBugs that are planted in protocols, and what finds each of them: the first \
         drawn world that breaks a\nproperty, or where no world does, every interleaving of a few requests. \
         This command prints this document:\n\n    {command}\n\nWith `--against` and this file it says where \
         the document is no longer true.\n"
    )
}

/// How many were found, and what became of the clean protocols.
fn end(hunted: &[Hunted], clean: &[Clean]) -> String {
    let found = hunted.iter().filter(|hunted| hunted.found.is_some()).count();
    let mut text = format!("{found} of {} found.\n", plural(hunted.len(), "bug"));
    for Clean { name, worlds, explorations, broken } in clean {
        let accused = broken
            .as_ref()
            .map_or_else(|| "not accused".to_owned(), |found| format!("ACCUSED: {}", in_words(found)));
        text.push_str(&format!(
            "{name} without a bug in {worlds} worlds and {}: {accused}.\n",
            plural(*explorations, "exploration")
        ));
    }
    text
}
