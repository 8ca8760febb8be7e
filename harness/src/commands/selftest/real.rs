//! The hunt in real members: runs as anybody makes them, until one convicts.

use std::time::Instant;

use anyhow::Context;
use checker::verdict::Verdict;
use clap::Parser;
use lab_mutants::{Mutant, Recipe};
use tokio::runtime::Runtime;

use super::ends::{End, Row};
use super::table;
use crate::cli::{Cli, Command, SelftestArgs};
use crate::commands::run::{Order, make};
use crate::commands::screen::print;
use crate::config::RunOptions;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::run::interrupt::Interrupt;

/// Hunts with real runs.
pub(super) fn selftest(args: &SelftestArgs, bugs: &[Mutant], progress: &Progress) -> Result<Exit, Failure> {
    let (_runtime, interrupt) = notice_interrupts()?;
    let mut rows = Vec::new();
    for bug in bugs {
        let end = match bug.recipe() {
            Err(reason) => End::SimulatorOnly(reason),
            Ok(recipe) => hunt(args, *bug, recipe, progress, &|| interrupt.was_asked())?,
        };
        rows.push(Row { bug: *bug, end });
    }
    print(&table::of_runs(&rows, &args.cluster, args.format)?)?;
    let missed = rows.iter().any(|row| matches!(row.end, End::NotFound { .. } | End::CanNot(_)));
    Ok(if missed { Exit::Invalid } else { Exit::Done })
}

/// Signals are looked for from here on, also between two runs.
fn notice_interrupts() -> anyhow::Result<(Runtime, Interrupt)> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let inside = runtime.enter();
    let interrupt = Interrupt::notice()?;
    drop(inside);
    Ok((runtime, interrupt))
}

/// Runs the recipe that shows this bug, with another seed each time, until a run is judged a violation or the
/// recipe's tries are used up.
fn hunt(
    args: &SelftestArgs,
    bug: Mutant,
    recipe: Recipe,
    progress: &Progress,
    interrupted: &dyn Fn() -> bool,
) -> Result<End, Failure> {
    let begun = Instant::now();
    for run in 1..=recipe.tries {
        if interrupted() {
            return Err(Failure::Interrupted);
        }
        let options = match options(args, bug, recipe, run) {
            Ok(options) => options,
            Err(Failure::Usage(why)) => return Ok(End::CanNot(why)),
            Err(failure) => return Err(failure),
        };
        progress.say(&format!("{bug}: {}", options.repeat));
        let (folder, judged) = match make(Order::drawn(options), progress) {
            Ok(made) => made,
            // A planted bug may keep the ensemble from serving at all; that convicts nobody.
            Err(Failure::Harness(error)) => {
                progress.say(&format!("{bug}: the run came to nothing: {error:#}"));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        if judged.results.interrupted {
            return Err(Failure::Interrupted);
        }
        if judged.results.verdict == Verdict::Invalid {
            let broken = judged.results.checks.iter().filter(|check| check.verdict == Verdict::Invalid);
            let checks = broken.map(|check| check.name.clone()).collect();
            let page = folder.report().display().to_string();
            return Ok(End::Found { recipe, runs: run, took: begun.elapsed(), checks, page });
        }
    }
    Ok(End::NotFound { recipe, runs: recipe.tries, took: begun.elapsed() })
}

/// The options of one try: those of the `harness run` line that a user would type for it.
fn options(args: &SelftestArgs, bug: Mutant, recipe: Recipe, run: u32) -> Result<RunOptions, Failure> {
    let line = format!(
        "harness run --cluster {} --nemesis {} --workload {} --mutant {} --seed {run} --name selftest-{} {}",
        args.cluster,
        recipe.nemesis,
        recipe.workload,
        bug.name(),
        bug.name(),
        recipe.flags
    );
    match Cli::try_parse_from(line.split_ascii_whitespace()).map(|cli| cli.command) {
        Ok(Command::Run(mut flags)) => {
            flags.store.clone_from(&args.store);
            RunOptions::from_args(&flags)
        }
        Ok(_) | Err(_) => Err(Failure::usage(format!("`{line}` is no run of this build"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::catalogue;

    #[test]
    fn after_an_interrupt_no_other_run_is_begun() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("runs");
        let line = ["harness", "selftest", "--cluster", "process", "--store", store.to_str().expect("text")];
        let Ok(Command::Selftest(args)) = Cli::try_parse_from(line).map(|cli| cli.command) else {
            panic!("a selftest")
        };
        let bug = lab_mutants::ALL.iter().find(|bug| bug.recipe().is_ok()).expect("a bug with a recipe");
        let recipe = bug.recipe().expect("a recipe");
        let end = hunt(&args, *bug, recipe, &Progress::on_stderr(), &|| true);
        assert!(matches!(end, Err(Failure::Interrupted)));
        assert!(!store.exists(), "nothing was begun");
    }

    #[test]
    fn every_recipe_breaks_what_the_catalogue_can_break() {
        for recipe in lab_mutants::ALL.iter().filter_map(|mutant| mutant.recipe().ok()) {
            assert!(catalogue::parse_list(recipe.nemesis, &[]).is_ok(), "{recipe:?}");
        }
    }
}
