//! `harness replay`: the schedule of a run folder again, as it was planned, on the same kind of cluster or another.
//!
//! What is taken from the folder is what decides a run: its flags with the seed, and its faults with their draws. The
//! faults are not drawn again, so a schedule that was written by hand, or by an older build that planned otherwise,
//! is carried out as it stands. What can't be repeated is what the machine adds, except in the simulator.

use clap::Parser;
use reports::results::RunInfo;

use super::run::{Order, make, told};
use crate::cli::options::RunOptions;
use crate::cli::{Cli, Command, ReplayArgs, RunArgs};
use crate::exit::{Exit, Failure};
use crate::nemesis::Schedule;
use crate::progress::Progress;
use crate::run::describe::{AS_A_RUN, HISTORY_FORMAT};
use crate::store::RunFolder;

/// Runs a schedule again.
pub fn replay(args: &ReplayArgs) -> Result<Exit, Failure> {
    let order = order(args)?;
    let progress = Progress::on_stderr();
    let (folder, judged) = make(order, &progress)?;
    told(&folder, &judged, args.format, &progress)
}

fn order(args: &ReplayArgs) -> Result<Order, Failure> {
    let folder = RunFolder::at(&args.path);
    let name = args.path.display();
    if !folder.run().is_file() {
        return Err(Failure::usage(format!(
            "{name} is no run folder: it has no run.json. Name a folder below runs/, or runs/latest"
        )));
    }
    if !folder.schedule().is_file() {
        return Err(Failure::usage(format!(
            "{name} has no schedule.json, so there is nothing to repeat: its harness ended before it had planned"
        )));
    }
    let unreadable = |error: anyhow::Error| {
        Failure::usage(format!(
            "{name} can't be read by this build ({}): {error:#}",
            env!("CARGO_PKG_VERSION")
        ))
    };
    let run: RunInfo = RunFolder::read_json(&folder.run()).map_err(unreadable)?;
    not_newer(&run, &args.path)?;
    let schedule: Schedule = RunFolder::read_json(&folder.schedule()).map_err(unreadable)?;
    let mut flags = flags_of(&run, &args.path)?;
    if let Some(cluster) = &args.cluster {
        flags.cluster.clone_from(cluster);
    } else {
        flags.cluster.clone_from(&run.cluster);
    }
    flags.store.clone_from(&args.store);
    flags.format = args.format;
    flags.name = Some(run.name.clone());
    let mut options = RunOptions::from_args(&flags)?;
    fits(&schedule, &options, &args.path)?;
    options.repeat = command(args);
    Ok(Order { options, schedule, repeats: Some(name.to_string()) })
}

/// The command that does this again.
fn command(args: &ReplayArgs) -> String {
    let cluster = args.cluster.as_ref().map(|cluster| format!(" --cluster {cluster}")).unwrap_or_default();
    format!("harness replay {}{cluster}", args.path.display())
}

/// A run of a newer build may have meant something that this one does not know.
fn not_newer(run: &RunInfo, path: &std::path::Path) -> Result<(), Failure> {
    let refuse = |what: &str, theirs: &str, ours: &str| {
        Err(Failure::usage(format!(
            "{} is of a newer harness ({what} {theirs}, this build has {ours}): take that one",
            path.display()
        )))
    };
    let history = run.versions.get("history format").map_or("1", String::as_str);
    if history.parse::<u32>().map_or(true, |version| version > HISTORY_FORMAT) {
        return refuse("history format", history, &HISTORY_FORMAT.to_string());
    }
    let ours = env!("CARGO_PKG_VERSION");
    let theirs = run.versions.get("harness").map_or(ours, String::as_str);
    if numbers(theirs) > numbers(ours) {
        return refuse("version", theirs, ours);
    }
    Ok(())
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|number| number.parse().ok()).collect()
}

/// The flags of the run, from the command that it names; a replay has them in a place of their own.
fn flags_of(run: &RunInfo, path: &std::path::Path) -> Result<RunArgs, Failure> {
    let command = run.settings.get(AS_A_RUN).unwrap_or(&run.repeat);
    let words = command.split_ascii_whitespace();
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Run(flags)) if flags.seed == Some(run.seed) && flags.nodes == run.nodes => Ok(*flags),
        Ok(_) => Err(Failure::usage(format!(
            "{}: its run.json contradicts itself, the seed or the nodes are not those of `{command}`",
            path.display()
        ))),
        Err(error) => Err(Failure::usage(format!(
            "{}: this build does not understand `{command}`: {}",
            path.display(),
            error.kind()
        ))),
    }
}

/// Whether the faults make sense on this run.
fn fits(schedule: &Schedule, options: &RunOptions, path: &std::path::Path) -> Result<(), Failure> {
    for kind in schedule.kinds() {
        let (fewest, why) = kind.fewest_nodes();
        if options.nodes < fewest {
            return Err(Failure::usage(format!(
                "{}: {} needs at least {fewest} nodes, not {}: {why}",
                path.display(),
                kind.name(),
                options.nodes
            )));
        }
    }
    let in_order = schedule.faults.is_sorted_by_key(|fault| fault.start_ms);
    let stray =
        schedule.overlap && schedule.faults.iter().any(|fault| !schedule.nemeses.contains(&fault.kind));
    if schedule.interval_ms == 0 || !in_order || stray {
        return Err(Failure::usage(format!(
            "{}: its schedule.json makes no sense: faults stand in the order of their onsets, the interval is not 0, \
             and with overlap every fault's kind is one of the nemeses",
            path.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(numbers("0.10.0") > numbers("0.9.3"));
        assert_eq!(numbers("1.2.0-rc1"), numbers("1.2.0"));
    }
}
