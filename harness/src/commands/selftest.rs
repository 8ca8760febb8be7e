//! `harness selftest`: every known bug is planted, and must be found; the clean build, under the same, must
//! not be accused.
//!
//! In the simulator each bug is hunted twice: with the look inside after every step, and by what clients saw
//! alone, as on a real cluster. Hunts go side by side, each on one thread from seed 0 on, so that the seed
//! that convicts is the same whatever machine it is. With `--cluster process` or `docker` real runs are made
//! instead, by the recipes of `lab_mutants`. With `--cluster model` it is bugs of the library's recipes
//! (elections, active/standby) that are hunted, in the model of `lab_apps`. With `--protocol` it is bugs of
//! other protocols.
//!
//! A bench that does not find a bug is at fault, so a bug that is not found ends the command with status 1.

mod ends;
mod hunt;
mod protocols;
mod real;
mod recipes;
mod table;

use harness_systems::bounded;
use lab_mutants::Mutant;

use super::screen::print;
use super::sim::{interruptible, jobs};
use crate::cli::SelftestArgs;
use crate::cli::options::bug;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;

/// Hunts the bugs.
pub fn selftest(args: &SelftestArgs) -> Result<Exit, Failure> {
    if args.seeds == Some(0) {
        return Err(Failure::usage("--seeds 0: write in how many worlds a bug is hunted at most"));
    }
    let progress = Progress::on_stderr();
    if !args.protocol.is_empty() {
        return protocols::selftest(args, document(args)?.as_deref(), &progress);
    }
    let bugs = bugs(&args.only)?;
    match args.cluster.as_str() {
        "sim" => in_worlds(args, &bugs, &progress),
        "model" => recipes::selftest(args, &progress),
        "process" | "docker" => real::selftest(args, &bugs, &progress),
        other => Err(Failure::usage(format!(
            "--cluster {other}: bugs are hunted in the simulator (sim), in local processes (process) or in \
             containers (docker), and those of recipes in a model of an ensemble (model)"
        ))),
    }
}

/// The bugs of these names; all when none is named.
fn bugs(names: &[String]) -> Result<Vec<Mutant>, Failure> {
    if names.is_empty() {
        return Ok(lab_mutants::ALL.to_vec());
    }
    let bugs = names.iter().map(|name| bug(Some(name.trim()))).collect::<Result<Vec<_>, _>>()?;
    Ok(bugs.into_iter().flatten().collect())
}

/// What an earlier hunt printed.
fn document(args: &SelftestArgs) -> Result<Option<String>, Failure> {
    let Some(path) = &args.against else { return Ok(None) };
    let text = bounded::text(path, bounded::WRITTEN).map_err(|error| {
        Failure::usage(format!(
            "--against {}: {error}; name a document that `harness selftest --format markdown` printed",
            path.display()
        ))
    })?;
    Ok(Some(text))
}

fn in_worlds(args: &SelftestArgs, bugs: &[Mutant], progress: &Progress) -> Result<Exit, Failure> {
    let document = document(args)?;
    let bounds =
        hunt::Bounds { seeds: args.seeds.unwrap_or(hunt::WORLDS), quick: args.quick, jobs: jobs(args.jobs)? };
    let found = interruptible(progress, |stop| hunt::hunt(bugs, bounds, stop, progress))?;
    progress.clear();
    print(&table::of_worlds(&found, args.format)?)?;
    let differences =
        document.map(|document| table::differences(&table::rows(&found), &document)).unwrap_or_default();
    for difference in &differences {
        progress.say(&format!("the document is no longer true: {difference}"));
    }
    if !differences.is_empty() && !found.interrupted {
        progress.say("print it again: harness selftest --seeds 1000 --format markdown");
        return Ok(Exit::Invalid);
    }
    Ok(match (found.is_as_it_should_be(), found.interrupted) {
        (_, true) => Exit::Interrupted,
        (false, false) => Exit::Invalid,
        (true, false) => Exit::Done,
    })
}
