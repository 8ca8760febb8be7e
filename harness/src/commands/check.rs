//! `harness check`: judges a run folder, or a history file alone, again.

use std::io::IsTerminal;

use anyhow::Context;

use super::print;
use crate::checking::bounds::Bounds;
use crate::checking::judging;
use crate::cli::{CheckArgs, Format};
use crate::exit::{Exit, Failure};
use crate::judge::{self, Judged, Within};
use crate::progress::{Progress, colour_wanted};
use crate::store::RunFolder;

/// The width of a screen that does not say its own.
const USUAL_WIDTH: usize = 100;

/// Judges what is at the path.
pub fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    if !args.path.is_dir() {
        return judging::check(args);
    }
    let folder = RunFolder::at(&args.path);
    if !folder.run().is_file() {
        return Err(Failure::usage(format!(
            "{} is no run folder: it has no run.json. Name a folder below runs/, runs/latest, or a history file",
            args.path.display()
        )));
    }
    if let Some(flag) = for_histories(args) {
        return Err(Failure::usage(format!(
            "{flag}: a run folder says itself what it is of; name its history for that: {}",
            folder.history().display()
        )));
    }
    let bounds = Bounds::parse(args.timeout.as_deref(), args.memory.as_deref())?;
    let mut judged = {
        let progress = Progress::on_stderr();
        let judged =
            judge::judge(&folder, Within { bounds, threads: judging::threads(args.threads)? }, &|what| {
                progress.step(what)
            });
        progress.clear();
        judged?
    };
    // What a run took and how it ended is not measured again.
    keep_measured(&folder, &mut judged);
    judge::write(&folder, &judged)?;
    show(&judged, &folder, args.format)?;
    Ok(Exit::of(judged.results.verdict, judged.results.interrupted))
}

/// A flag that says something only about a history.
fn for_histories(args: &CheckArgs) -> Option<&'static str> {
    args.model
        .as_ref()
        .map(|_| "--model")
        .or(args.condition.as_ref().map(|_| "--condition"))
        .or(args.witness.as_ref().map(|_| "--witness"))
}

fn keep_measured(folder: &RunFolder, judged: &mut Judged) {
    let Ok(before) = RunFolder::read_json::<reports::results::Results>(&folder.results()) else { return };
    let check_ms = judged.results.timings.check_ms;
    judged.results.timings = before.timings;
    judged.results.timings.check_ms = check_ms;
}

/// Prints a judged run.
pub(crate) fn show(judged: &Judged, folder: &RunFolder, format: Format) -> Result<(), Failure> {
    let text = match format {
        Format::Json => {
            let mut text = serde_json::to_string_pretty(&judged.results).context("encoding the results")?;
            text.push('\n');
            text
        }
        Format::Human => {
            let page = folder.report().display().to_string();
            let style = reports::terminal::Style {
                colour: colour_wanted(std::io::stdout().is_terminal()),
                width: width(),
            };
            let mut results = judged.results.clone();
            results.repeat = as_typed_here(&results.repeat, std::env::var_os("CARGO").is_some());
            reports::terminal::render(&judged.run, &results, &judged.faults, Some(&page), style)
        }
    };
    print(&text)
}

/// A command as whoever started this one can type it: `cargo harness`, an alias, tells the harness where cargo is.
pub(crate) fn as_typed_here(command: &str, by_cargo: bool) -> String {
    if by_cargo && command.starts_with("harness ") { format!("cargo {command}") } else { command.to_owned() }
}

/// The width of the terminal, as far as it tells.
pub(crate) fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(USUAL_WIDTH, |size| match size.ws_col {
        0 => USUAL_WIDTH,
        columns => usize::from(columns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_repeats_a_run_is_one_that_can_be_typed() {
        assert_eq!(as_typed_here("harness run --seed 7", true), "cargo harness run --seed 7");
        assert_eq!(as_typed_here("harness run --seed 7", false), "harness run --seed 7");
        assert_eq!(as_typed_here("", true), "");
    }
}
