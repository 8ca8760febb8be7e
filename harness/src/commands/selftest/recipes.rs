//! Planted bugs of recipes, hunted in a model of an ensemble; and the sound recipes in the same worlds.

use lab_apps::hunt::{Hunted, WORLDS, accused, hunt};
use serde_json::json;

use super::table::{Grid, strings};
use crate::cli::SelftestArgs;
use crate::cli::simulator::TableFormat;
use crate::commands::screen::print;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;

/// Worlds in which sound recipes must not be accused, where nobody says how many.
const CLEAN: u64 = 2000;

/// Hunts them all. A bug that is not found, and a sound recipe that is accused, end it with status 1.
pub(super) fn selftest(args: &SelftestArgs, progress: &Progress) -> Result<Exit, Failure> {
    if !args.only.is_empty() {
        return Err(Failure::usage("--only: bugs of recipes are hunted all together; leave it out"));
    }
    progress.say("hunting the bugs of recipes in a model of an ensemble");
    let worlds = args.seeds.unwrap_or(WORLDS);
    let found: Vec<Hunted> = hunt(worlds).collect();
    let accused: Vec<_> = (0..CLEAN.min(worlds))
        .flat_map(|seed| accused(seed).into_iter().map(move |one| (seed, one)))
        .collect();
    print(&table(&found, args.format))?;
    for (seed, (recipe, broken)) in &accused {
        progress
            .say(&format!("a sound {recipe} is accused in world {seed}: {}, {}", broken.rule, broken.seen));
    }
    let missed = found.iter().any(|hunted| hunted.found.is_none());
    Ok(if missed || !accused.is_empty() { Exit::Invalid } else { Exit::Done })
}

fn table(found: &[Hunted], format: TableFormat) -> String {
    if let TableFormat::Json = format {
        let rows = found.iter().map(|hunted| {
            json!({
                "recipe": hunted.recipe,
                "mutant": hunted.mutant.name,
                "does": hunted.mutant.does,
                "seed": hunted.found.as_ref().map(|(seed, _)| seed),
                "rule": hunted.found.as_ref().map(|(_, broken)| broken.rule),
            })
        });
        return format!("{:#}\n", json!(rows.collect::<Vec<_>>()));
    }
    let mut rows = vec![strings(["recipe", "mutant", "what it does", "seed", "rule"])];
    for hunted in found {
        let (seed, rule) = match &hunted.found {
            Some((seed, broken)) => (seed.to_string(), broken.rule),
            None => ("not found".to_owned(), ""),
        };
        rows.push(strings([hunted.recipe, hunted.mutant.name, hunted.mutant.does, &seed, rule]));
    }
    match format {
        TableFormat::Markdown => Grid(rows).markdown(),
        TableFormat::Human | TableFormat::Json => Grid(rows).human(),
    }
}
