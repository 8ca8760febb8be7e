//! `harness check`: judges a run folder, or a history file alone, again.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::Context;
use checker::Budget;
use checker::verdict::Verdict;
use workloads::judge::judge_history_alone;

use super::print;
use crate::cli::{CheckArgs, Format};
use crate::exit::{Exit, Failure};
use crate::judge::{self, Judged};
use crate::progress::colour_wanted;
use crate::store::RunFolder;

/// The width of a screen that does not say its own.
const USUAL_WIDTH: usize = 100;

/// Judges what is at the path.
pub fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    if args.path.is_dir() {
        let folder = RunFolder::at(&args.path);
        if !folder.run().is_file() {
            return Err(Failure::usage(format!(
                "{} is no run folder: it has no run.json. Name a folder below runs/, runs/latest, or a history file",
                args.path.display()
            )));
        }
        let mut judged = judge::judge(&folder)?;
        // What a run took and how it ended is not measured again.
        keep_measured(&folder, &mut judged);
        judge::write(&folder, &judged)?;
        show(&judged, &folder, args.format)?;
        return Ok(Exit::of(judged.results.verdict, judged.results.interrupted));
    }
    check_history(&args.path, args.format)
}

fn keep_measured(folder: &RunFolder, judged: &mut Judged) {
    let Ok(before) = RunFolder::read_json::<reports::results::Results>(&folder.results()) else { return };
    let check_ms = judged.results.timings.check_ms;
    judged.results.timings = before.timings;
    judged.results.timings.check_ms = check_ms;
}

/// A history without its run: only what it shows by itself can be judged.
fn check_history(path: &Path, format: Format) -> Result<Exit, Failure> {
    let loaded = judge::load_history(path)?;
    let checks = judge_history_alone(&loaded, Budget::default());
    let verdict = loaded.limit(Verdict::of(&checks));
    let text = match format {
        Format::Json => {
            let value = serde_json::json!({"verdict": verdict, "checks": checks});
            format!("{}\n", serde_json::to_string_pretty(&value).context("encoding the result")?)
        }
        Format::Human => {
            let mut text = format!("{verdict}: {} lines of {}\n", loaded.events, path.display());
            for check in &checks {
                text.push_str(&format!(
                    "  {:<13} {:<8} {}\n",
                    check.name,
                    check.verdict.as_str(),
                    check.summary
                ));
                if let Some(example) = &check.counterexample {
                    text.push_str(&format!("  {:<13} {:<8} {}\n", "", "", example.sentence));
                }
            }
            text
        }
    };
    print(&text)?;
    Ok(Exit::of(verdict, false))
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
            reports::terminal::render(&judged.run, &judged.results, &judged.faults, Some(&page), style)
        }
    };
    print(&text)
}

/// The width of the terminal, as far as it tells.
fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(USUAL_WIDTH, |size| match size.ws_col {
        0 => USUAL_WIDTH,
        columns => usize::from(columns),
    })
}
