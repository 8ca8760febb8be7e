//! `harness check`: judges a run folder, or a history file alone, again.
//!
//! - `history`: a history alone, from the flags to what is printed; `named`: models and conditions by name.
//! - `witness`: the order that proves a valid verdict, written; `harness confirm` reads it.

mod history;
mod named;
pub(super) mod witness;

use anyhow::Context;
use runs::judge::Judged;

use crate::cli::{CheckArgs, Format};
use crate::commands::screen;
use crate::exit::{Exit, Failure};
use crate::judge::bounds::{Bounds, threads};
use crate::judge::{self, Within};
use crate::progress::Progress;
use crate::store::RunFolder;

/// Judges what is at the path.
pub fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    if !args.path.is_dir() {
        return history::check(args);
    }
    let folder = RunFolder::at(&args.path);
    if !folder.run().is_file() {
        return Err(Failure::usage(format!(
            "{} is no run folder: it has no run.json. Name a folder below runs/, runs/latest, or a history \
                file",
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
        let judged = judge::judge(&folder, Within { bounds, threads: threads(args.threads)? }, &|what| {
            progress.step(what)
        });
        progress.clear();
        judged?
    };
    // What a run took and how it ended is not measured again.
    keep_measured(&folder, &mut judged);
    write_and_show(&judged, &folder, args.format)?;
    Ok(Exit::of(judged.results.verdict, judged.results.interrupted))
}

/// Writes a judged run into its folder, and prints it. A folder that can't be written, as one of somebody
/// else's, is judged as well, and what is wrong with it is said.
pub(crate) fn write_and_show(judged: &Judged, folder: &RunFolder, format: Format) -> Result<(), Failure> {
    match judge::write(folder, judged) {
        Ok(()) => show(judged, folder, format),
        Err(error) => {
            let progress = Progress::on_stderr();
            progress.say(&format!("not all of this was written into the folder: {error:#}"));
            progress.clear();
            print(judged, None, format)
        }
    }
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
    let Ok(before) = RunFolder::read_json::<runs::results::Results>(&folder.results()) else { return };
    let check_ms = judged.results.timings.check_ms;
    judged.results.timings = before.timings;
    judged.results.timings.check_ms = check_ms;
}

/// Prints a judged run.
pub(crate) fn show(judged: &Judged, folder: &RunFolder, format: Format) -> Result<(), Failure> {
    print(judged, Some(&folder.report().display().to_string()), format)
}

fn print(judged: &Judged, page: Option<&str>, format: Format) -> Result<(), Failure> {
    let text = match format {
        Format::Json => {
            let mut text = serde_json::to_string_pretty(&judged.results).context("encoding the results")?;
            text.push('\n');
            text
        }
        Format::Human => {
            let style = screen::style();
            let mut results = judged.results.clone();
            results.repeat = screen::as_typed(&results.repeat);
            reports::terminal::render(&judged.run, &results, &judged.faults, page, style)
        }
    };
    screen::print(&text)
}
