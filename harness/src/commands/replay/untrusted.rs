//! What of a run folder is believed: nothing that names code or opens the network, and nothing that makes no
//! sense.
//!
//! Folders are made to be shared, with bug reports for example, so whoever replays one did not write it. A
//! system's file, a class path, an image or an address to publish on would let its author choose what runs
//! here, and for whom; they count only on the command line. [`crate::config::flags`] lists what does no harm,
//! and everything else is refused. What is believed is a number, a name of ours or a draw, and is held
//! against its bounds and against the flags of the run, so that a folder that was edited half-way is refused
//! and not half obeyed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runs::cluster_kind::ClusterKind;
use runs::results::RunInfo;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use crate::cli::{AgainArgs, Cli};
use crate::clock::whole_milliseconds;
use crate::config::RunOptions;
use crate::config::flags::{Believed, believed, must_be_typed};
use crate::exit::Failure;
use crate::nemesis::{Nemesis, Schedule};
use crate::run::describe::{AS_A_RUN, REPEATS};
use crate::text::typed;

/// No run is longer, so no fault begins later or is held for longer.
const LONGEST_MS: u64 = 24 * 3600 * 1000;
/// No schedule that this harness plans has more faults.
const MOST_FAULTS: usize = 10_000;
/// The longest name of a fault.
const LONGEST_ID: usize = 16;

/// Text from a folder as it may be shown on a terminal, and copied from there: nothing in it acts.
pub(super) fn shown(text: &str) -> String {
    if typed::is_plain(text) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "").escape_debug())
    }
}

/// The same within a sentence of ours.
pub(super) fn harmless(text: &str) -> String {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if acts(c) { '\u{fffd}' } else { c }).collect()
}

/// Refuses words that no run of ours has, before anything of theirs is shown or understood.
pub(super) fn is_plain(run: &RunInfo, folder: &Path) -> Result<(), Failure> {
    let command = run.settings.get(AS_A_RUN).unwrap_or(&run.repeat);
    let plain = |text: &String| text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    match [("command", command), ("name", &run.name)].iter().find(|(_, text)| !plain(text)) {
        None => Ok(()),
        Some((what, text)) => Err(Failure::usage(format!(
            "{}: the {what} in its run.json has characters that none of ours has: {}",
            folder.display(),
            shown(text)
        ))),
    }
}

/// Refuses to repeat a run whose system was set up otherwise. What is set is not taken from a folder: it may
/// name what is run.
pub(super) fn is_set_up_alike(run: &RunInfo, options: &RunOptions, folder: &Path) -> Result<(), Failure> {
    if run.variables == options.variables {
        return Ok(());
    }
    let told = |variables: &BTreeMap<String, String>| match typed::assignments(variables).trim_end() {
        "" => "none of its variables".to_owned(),
        set => set.to_owned(),
    };
    Err(Failure::usage(format!(
        "{}: the run had {}, and here it is {}: set them alike, then try again",
        folder.display(),
        harmless(&told(&run.variables)),
        told(&options.variables)
    )))
}

/// Refuses a folder whose command has flags that are not believed and were not typed here instead.
pub(super) fn asks_for_nothing_else(
    theirs: &ArgMatches,
    ours: &AgainArgs,
    folder: &Path,
) -> Result<(), Failure> {
    let cli = Cli::command();
    let run = cli.find_subcommand("run").map(clap::Command::get_arguments);
    let (mut lacking, mut edited) = (Vec::new(), Vec::new());
    for flag in run.into_iter().flatten() {
        let id = flag.get_id().as_str();
        if theirs.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let name = flag.get_long().unwrap_or(id);
        let values = theirs.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy());
        for value in values {
            let asked = || format!("--{name} {}", shown(&value));
            if believed(name) == Believed::Never {
                edited.push(asked());
            } else if must_be_typed(name, &value) && !is_typed(name, &value, ours) {
                lacking.push(asked());
            }
        }
    }
    if !edited.is_empty() {
        return Err(Failure::usage(format!(
            "{}: its command has {}, which no folder of ours has: it was edited, and nothing was started",
            folder.display(),
            edited.join(" ")
        )));
    }
    if !lacking.is_empty() {
        return Err(Failure::usage(format!(
            "{} asks for {}. What runs here, and who can reach it, is not taken from a folder, which may be \
             somebody else's: nothing was started. If you want that, add it to this command",
            folder.display(),
            lacking.join(" ")
        )));
    }
    Ok(())
}

/// Whether a flag was typed here.
fn is_typed(flag: &str, value: &str, ours: &AgainArgs) -> bool {
    let AgainArgs { system, set, brought } = ours;
    let name = |word: &str| word.split('=').next().map(str::to_owned);
    match flag {
        "system" => system.is_some(),
        "image" => brought.image.is_some(),
        "image-command" => !brought.image_command.is_empty(),
        "publish" => brought.publish.is_some(),
        "pull" => brought.pull.is_some(),
        "set" => set.iter().any(|word| name(word) == name(value)),
        _ => false,
    }
}

/// Whether what `run.json` says of the run is what its flags mean.
pub(super) fn agrees(run: &RunInfo, options: &RunOptions, folder: &Path) -> Result<(), Failure> {
    let nemeses = || {
        let named: BTreeSet<&str> = run.nemeses.iter().chain(&run.not_tried).map(String::as_str).collect();
        let meant: BTreeSet<&str> = options.nemeses.iter().map(|nemesis| nemesis.name()).collect();
        // What was carried out by a replay may have been planned by hand.
        run.settings.contains_key(REPEATS) || named.into_iter().eq(meant)
    };
    let op_timeout = whole_milliseconds(options.op_timeout);
    let agreements = [
        ("cluster", run.cluster != ClusterKind::Auto),
        ("rate", run.rate.total_cmp(&options.rate).is_eq()),
        ("min_rate", run.min_rate == options.min_rate),
        ("concurrency", run.concurrency == options.concurrency),
        ("keys", run.keys == options.keys),
        ("observers", run.observers == options.observers),
        ("workload", run.workload == options.workload.name()),
        ("nemeses", nemeses()),
        ("interval_ms", run.interval_ms == whole_milliseconds(options.interval)),
        ("time_limit_ms", run.time_limit_ms == whole_milliseconds(options.time_limit)),
        ("operation_timeout_ms", run.operation_timeout_ms.is_none_or(|ms| ms == op_timeout)),
        ("overlap", run.overlap == options.overlap),
        ("mutant", run.mutant.as_deref() == options.mutant.map(|bug| bug.name())),
    ];
    match agreements.iter().find(|(_, agrees)| !agrees) {
        None => Ok(()),
        Some((field, _)) => Err(Failure::usage(format!(
            "{}: its run.json contradicts itself, `{field}` is not what the command that it names means. It \
             was edited, or made by a build with other defaults: write the `harness run` that you mean \
             instead",
            folder.display()
        ))),
    }
}

/// Whether the faults of the user's own are what they were. Their commands are in the system's file and are
/// taken from there alone; the folder says what they were.
pub(super) fn same_faults(run: &RunInfo, schedule: &Schedule, folder: &Path) -> Result<(), Failure> {
    let is_own = |kind: &Nemesis| kind.is_own();
    let other = |kind: &Nemesis| run.kinds.get(kind.name()) != Some(&kind.described());
    match schedule.kinds().into_iter().find(|kind| is_own(kind) && other(kind)) {
        None => Ok(()),
        Some(kind) => Err(Failure::usage(format!(
            "{}: the system's file says of {} now that it {}, which is not what the run had. Write the \
             `harness run` that you mean instead",
            folder.display(),
            kind.name(),
            kind.about()
        ))),
    }
}

/// Whether the faults make sense on this run.
pub(super) fn fits(schedule: &Schedule, options: &RunOptions, folder: &Path) -> Result<(), Failure> {
    for kind in schedule.kinds() {
        let (fewest, why) = kind.fewest_nodes();
        if options.nodes < fewest {
            return Err(Failure::usage(format!(
                "{}: {} needs at least {fewest} nodes, not {}: {why}",
                folder.display(),
                kind.name(),
                options.nodes
            )));
        }
    }
    let sane_id = |id: &str| {
        (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let ids: BTreeSet<&str> = schedule.faults.iter().map(|fault| fault.id.as_str()).collect();
    let sane = schedule.faults.len() <= MOST_FAULTS
        && ids.len() == schedule.faults.len()
        && ids.iter().all(|id| sane_id(id))
        && schedule.faults.iter().all(|fault| fault.start_ms.max(fault.hold_ms) <= LONGEST_MS)
        && (1..=LONGEST_MS).contains(&schedule.interval_ms)
        && schedule.hold_ms <= LONGEST_MS;
    let in_order = schedule.faults.is_sorted_by_key(|fault| fault.start_ms);
    let stray =
        schedule.overlap && schedule.faults.iter().any(|fault| !schedule.nemeses.contains(&fault.kind));
    if !sane || !in_order || stray {
        return Err(Failure::usage(format!(
            "{}: its schedule.json makes no sense: at most {MOST_FAULTS} faults stand in the order of their \
             onsets, each with a short name of its own, the interval is not 0, no time is longer than a day, \
             and with overlap every fault's kind is one of the nemeses",
            folder.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_folder_is_shown_without_acting() {
        assert_eq!(shown("lib/a.jar:lib/b.jar"), "lib/a.jar:lib/b.jar");
        assert_eq!(shown("\u{1b}[2J"), "'\\u{1b}[2J'");
        assert_eq!(shown("a'; reboot; '"), "'a; reboot; '");
        assert_eq!(shown("\u{202e}x"), "'\\u{202e}x'");
        assert_eq!(shown(""), "''");
    }
}
