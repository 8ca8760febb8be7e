//! `harness report`: draws a run again from its folder, without judging it again.

use anyhow::Context;
use runs::judge::{Judged, faults};
use runs::results::RunInfo;

use super::check::show;
use crate::checking::bounds::{Bounds, Watch};
use crate::cli::ReportArgs;
use crate::exit::{Exit, Failure};
use crate::judge;
use crate::nemesis::journal;
use crate::store::RunFolder;

/// Draws the page and shows the screen.
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    let folder = RunFolder::at(&args.path);
    if !args.path.exists() {
        return Err(Failure::usage(format!(
            "{} does not exist: name a folder below runs/, or runs/latest",
            args.path.display()
        )));
    }
    if !folder.results().is_file() {
        return Err(Failure::usage(format!(
            "{} holds no results.json: name a folder below runs/ or runs/latest. A run that was never judged \
             is judged by `harness check`",
            args.path.display()
        )));
    }
    let watch = Watch::start(Bounds::usual(), |_| {})?;
    let loaded = judge::load_history(&folder.history(), &watch)?;
    let run: RunInfo = RunFolder::read_named_json(&folder.run())?;
    let faults = faults(&run, &journal::read(&folder.faults())?, &loaded.history);
    let judged = Judged {
        run,
        results: RunFolder::read_named_json(&folder.results())?,
        faults,
        history: loaded.history,
    };
    judge::write(&folder, &judged).context("drawing the page")?;
    show(&judged, &folder, args.format)?;
    Ok(Exit::Done)
}
