//! `harness report`: draws a run again from its folder, without judging it again; or the page of all nights.

use std::path::Path;

use nights::fold;
use runs::judge::{Judged, faults};
use runs::results::RunInfo;

use super::check::write_and_show;
use super::screen::{print, style};
use crate::cli::ReportArgs;
use crate::exit::{Exit, Failure};
use crate::judge;
use crate::judge::bounds::{Bounds, Watch};
use crate::night::files::Report;
use crate::night::store;
use crate::progress::Progress;
use crate::store::RunFolder;
use crate::store::journal;

/// Draws the page and shows the screen.
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    let folder = RunFolder::at(&args.path);
    if !args.path.exists() {
        return Err(Failure::usage(format!(
            "{} does not exist: name a folder below runs/, or runs/latest",
            args.path.display()
        )));
    }
    if store::index_of(&args.path).is_file() {
        return nights(&args.path);
    }
    if !folder.results().is_file() {
        return Err(Failure::usage(format!(
            "{} holds no results.json: name a folder below runs/ or runs/latest. A run that was never judged \
             is judged by `harness check`",
            args.path.display()
        )));
    }
    let watch = Watch::start(Bounds::usual(), |_| {})?;
    let run: RunInfo = RunFolder::read_named_json(&folder.run())?;
    let loaded = judge::load_history(&folder.history(), &run.vocabulary, &watch)?;
    let faults = faults(&run, &journal::read(&folder.faults())?, &loaded.history);
    let judged = Judged {
        run,
        results: RunFolder::read_named_json(&folder.results())?,
        faults,
        history: loaded.history,
    };
    write_and_show(&judged, &folder, args.format)?;
    Ok(Exit::Done)
}

/// The page of a store of nights, and the files beside it.
fn nights(path: &Path) -> Result<Exit, Failure> {
    let report = Report::of(path, fold::nights(&store::lines(path)?), &[]);
    if let Err(error) = report.write(path) {
        let progress = Progress::on_stderr();
        progress.say(&format!("the page was not drawn again: {error:#}"));
        progress.clear();
    }
    print(&report.screen(path, style()))?;
    Ok(Exit::Done)
}
