//! `harness run`: one run, from the flags to the verdict.

use std::time::Instant;

use anyhow::Context;

use super::check::show;
use crate::cli::options::RunOptions;
use crate::cli::{Format, RunArgs};
use crate::cluster::ports;
use crate::exit::{Exit, Failure};
use crate::judge::{self, Judged};
use crate::progress::Progress;
use crate::run::interrupt::Interrupt;
use crate::run::{self, Prepared};
use crate::store::folder::Fresh;
use crate::store::{RunFolder, sweep};

/// Threads of the runtime: the harness must not take the members' processors.
const WORKERS: usize = 2;

/// Makes a run.
pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let options = RunOptions::from_args(args)?;
    let progress = Progress::on_stderr();
    // Everything that can be refused is refused before there is anything to clean up.
    let ports = ports::take(options.nodes, options.base_port)?;
    sweep_first(&options, &progress);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let interrupt = {
        let _inside = runtime.enter();
        Interrupt::listen(progress.clone())?
    };
    let start = jiff::Timestamp::now();
    let Fresh { folder, lock } = RunFolder::create(&options.store, &options.name, start)?;
    let prepared = Prepared { options, folder, start, token: lock.token().to_owned(), progress };
    let outcome = runtime.block_on(run::execute(&prepared, ports, &interrupt));
    // Tasks that hang on a member must not keep the command.
    runtime.shutdown_background();
    outcome?;
    let mut judged = judge::judge(&prepared.folder)?;
    judged.results.timings.total_ms = begun.elapsed().as_secs_f64() * 1e3;
    finish(&prepared, &judged)?;
    drop(lock);
    Ok(Exit::of(judged.results.verdict, judged.results.interrupted))
}

/// Removes what a killed harness left, and says so; that it can't is no reason not to run.
fn sweep_first(options: &RunOptions, progress: &Progress) {
    match sweep::sweep_everywhere(&options.store) {
        Ok(swept) => {
            if !swept.is_empty() {
                progress.say(&format!("left by a killed harness: {}", swept.sentence()));
            }
            if let Some(trouble) = swept.trouble {
                progress.say(&format!("the Docker engine was not swept: {trouble}"));
            }
        }
        Err(error) => {
            progress.say(&format!("what a killed harness may have left could not be removed: {error}"))
        }
    }
}

fn finish(prepared: &Prepared, judged: &Judged) -> Result<(), Failure> {
    let Prepared { options, folder, .. } = prepared;
    if judged.results.verdict == checker::verdict::Verdict::Valid {
        folder.drop_data().context("removing the members' data")?;
    }
    judge::write(folder, judged)?;
    folder.point_latest(&options.store);
    show(judged, folder, options.format)?;
    if options.format == Format::Json {
        prepared.progress.say(&format!("page: {}", folder.report().display()));
    }
    Ok(())
}
