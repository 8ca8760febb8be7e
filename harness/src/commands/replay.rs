//! `harness replay`: the schedule of a run folder again, as it was planned, on the same kind of cluster or
//! another.
//!
//! What is taken from the folder is what decides a run: its flags with the seed, and its faults with their
//! draws. The faults are not drawn again, so a schedule that was written by hand, or by an older build that
//! planned otherwise, is carried out as it stands. What can't be repeated is what the machine adds, except in
//! the simulator.
//!
//! A folder may come from anybody: the module `untrusted` says what of it is believed.

mod untrusted;

use std::path::Path;

use clap::{CommandFactory, FromArgMatches, ValueEnum};
use runs::results::RunInfo;

use super::run::{Order, make, told};
use crate::cli::{AgainArgs, BroughtArgs, Cli, ReplayArgs, RunArgs};
use crate::config::RunOptions;
use crate::config::flags::must_be_typed;
use crate::exit::{Exit, Failure};
use crate::nemesis::catalogue;
use crate::progress::Progress;
use crate::run::describe::{AS_A_RUN, HISTORY_FORMAT};
use crate::store::RunFolder;
use crate::text::typed;

/// Runs a schedule again.
pub fn replay(args: &ReplayArgs) -> Result<Exit, Failure> {
    let order = order(args)?;
    let progress = Progress::on_stderr();
    let (folder, judged) = make(order, &progress)?;
    told(&folder, &judged, args.format, &progress)
}

/// The run that a folder means, checked against what may be believed of it.
pub(super) fn order(args: &ReplayArgs) -> Result<Order, Failure> {
    let folder = RunFolder::at(&args.path);
    let name = args.path.display();
    if !folder.run().is_file() {
        return Err(Failure::usage(format!(
            "{name} is no run folder: it has no run.json. Name a folder below runs/, or runs/latest"
        )));
    }
    if !folder.schedule().is_file() {
        return Err(Failure::usage(format!(
            "{name} has no schedule.json, so there is nothing to repeat: its harness ended before it had \
                planned"
        )));
    }
    let unreadable = |error: anyhow::Error| {
        Failure::usage(format!(
            "{name} can't be read by this build ({}): {}",
            env!("CARGO_PKG_VERSION"),
            untrusted::harmless(&format!("{error:#}"))
        ))
    };
    let run: RunInfo = RunFolder::read_json(&folder.run()).map_err(unreadable)?;
    not_newer(&run, &args.path)?;
    if run.is_wrapped() {
        return Err(Failure::usage(format!(
            "{name}: a command of the user's own worked on the members, and none is taken from a folder: \
             type the line yourself that its page ends with (harness wrap ... -- COMMAND)"
        )));
    }
    untrusted::is_plain(&run, &args.path)?;
    let schedule: runs::schedule::Schedule = RunFolder::read_json(&folder.schedule()).map_err(unreadable)?;
    let mut flags = flags_of(&run, &args.again, &args.path)?;
    if let Some(cluster) = &args.cluster {
        flags.cluster.clone_from(cluster);
    } else {
        run.cluster.name().clone_into(&mut flags.cluster);
    }
    flags.store.clone_from(&args.store);
    flags.format = args.format;
    flags.name = Some(run.name.clone());
    let mut options = RunOptions::from_args(&flags)?;
    untrusted::agrees(&run, &options, &args.path)?;
    untrusted::is_set_up_alike(&run, &options, &args.path)?;
    let schedule = catalogue::known(schedule, &options.system.nemeses())
        .map_err(|why| Failure::usage(format!("{name}: {}", untrusted::harmless(&why))))?;
    untrusted::same_faults(&run, &schedule, &args.path)?;
    untrusted::fits(&schedule, &options, &args.path)?;
    options.repeat = command(args, &options);
    Ok(Order { options, schedule, repeats: Some(name.to_string()) })
}

/// The command that does this again.
fn command(args: &ReplayArgs, options: &RunOptions) -> String {
    let set = typed::assignments(&options.variables);
    let mut words = vec![format!("{set}harness replay {}", typed::word(&args.path.to_string_lossy()))];
    words.extend(args.cluster.iter().map(|cluster| format!("--cluster {}", typed::word(cluster))));
    words.extend(typed_here(&args.again));
    words.join(" ")
}

/// What is taken from the command line alone, as it is typed.
pub(super) fn typed_here(again: &AgainArgs) -> Vec<String> {
    let BroughtArgs { image, image_command, publish, pull } = &again.brought;
    let mut words = Vec::new();
    let mut flag = |name: &str, value: &str| words.extend([format!("--{name}"), typed::word(value)]);
    again.system.iter().for_each(|value| flag("system", value));
    again.set.iter().for_each(|value| flag("set", value));
    image.iter().for_each(|value| flag("image", value));
    image_command.iter().for_each(|value| flag("image-command", value));
    publish.iter().for_each(|value| flag("publish", &value.to_string()));
    let which = pull.and_then(|pull| Some(pull.to_possible_value()?.get_name().to_owned()));
    which.iter().for_each(|value| flag("pull", value));
    words
}

/// A run of a newer build may have meant something that this one does not know.
fn not_newer(run: &RunInfo, path: &Path) -> Result<(), Failure> {
    let refuse = |what: &str, theirs: &str, ours: &str| {
        Err(Failure::usage(format!(
            "{} is of a newer harness ({what} {}, this build has {ours}): take that one",
            path.display(),
            untrusted::shown(theirs)
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

/// The flags of the run, from the command that it names; a replay has them in a place of their own. What
/// names code, or opens the network, is what was typed here instead.
///
/// # Errors
/// A usage failure when the command asks for what is not taken from a folder, or contradicts the rest.
pub(super) fn flags_of(run: &RunInfo, again: &AgainArgs, path: &Path) -> Result<RunArgs, Failure> {
    let command = run.settings.get(AS_A_RUN).unwrap_or(&run.repeat);
    let set = typed::assignments(&run.variables);
    let words = typed::apart(command.strip_prefix(&set).unwrap_or(command));
    let contradicts = || {
        Failure::usage(format!(
            "{}: its run.json contradicts itself, the seed or the nodes are not those of {}",
            path.display(),
            untrusted::shown(command)
        ))
    };
    let not_understood = |error: clap::Error| {
        Failure::usage(format!(
            "{}: this build does not understand {}: {}",
            path.display(),
            untrusted::shown(command),
            error.kind()
        ))
    };
    let matches = Cli::command().try_get_matches_from(words).map_err(not_understood)?;
    let Some(("run", matches)) = matches.subcommand() else { return Err(contradicts()) };
    untrusted::asks_for_nothing_else(matches, again, path)?;
    let mut flags = RunArgs::from_arg_matches(matches).map_err(not_understood)?;
    if flags.seed != Some(run.seed) || flags.nodes.is_some_and(|nodes| nodes != run.nodes) {
        return Err(contradicts());
    }
    flags.brought.clone_from(&again.brought);
    flags.set.retain(|setting| !must_be_typed("set", setting));
    // The last one of a name counts.
    flags.set.extend(again.set.iter().cloned());
    if let Some(system) = &again.system {
        flags.system.clone_from(system);
    }
    Ok(flags)
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
