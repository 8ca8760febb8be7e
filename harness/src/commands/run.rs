//! `harness run`: one run, from the flags to the verdict.

use std::time::Instant;

use anyhow::Context;
use runs::cluster_kind::ClusterKind;
use runs::judge::{FINISHED, Judged};

use super::check::show;
use super::clean;
use crate::cli::{Format, RunArgs};
use crate::cluster::sweep;
use crate::config::RunOptions;
use crate::exit::{Exit, Failure};
use crate::host::descriptors;
use crate::judge::{self, Within};
use crate::nemesis::Schedule;
use crate::progress::Progress;
use crate::run::interrupt::Interrupt;
use crate::run::{self, Prepared};
use crate::sim_run;
use crate::store::RunFolder;
use crate::store::folder::Fresh;

/// Threads of the runtime: the harness must not take the members' processors.
const WORKERS: usize = 2;

/// Makes a run.
pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let order = Order::drawn(RunOptions::from_args(args)?);
    let (format, progress) = (args.format, Progress::on_stderr());
    let (folder, judged) = make(order, &progress)?;
    told(&folder, &judged, format, &progress)
}

/// A run that is to be made.
pub(crate) struct Order {
    /// What is meant.
    pub(crate) options: RunOptions,
    /// The faults.
    pub(crate) schedule: Schedule,
    /// The run folder that it repeats, if it does.
    pub(crate) repeats: Option<String>,
}

impl Order {
    /// A run whose faults are drawn from its seed.
    pub(crate) fn drawn(options: RunOptions) -> Self {
        let schedule = options.plan().faults(options.time_limit);
        Self { options, schedule, repeats: None }
    }
}

/// Makes a run and judges it. Its folder is complete afterwards.
pub(crate) fn make(order: Order, progress: &Progress) -> Result<(RunFolder, Judged), Failure> {
    let made = made(order, progress);
    progress.clear();
    made
}

/// The runtime, which hears signals until everything is judged and written. It ends without waiting, because
/// a task that hangs on a member must not keep the command. In a panic it waits: tasks may own what has to be
/// removed.
struct Listening(Option<tokio::runtime::Runtime>);

impl Listening {
    fn runtime(&self) -> &tokio::runtime::Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        match self.0.take() {
            Some(runtime) if std::thread::panicking() => drop(runtime),
            Some(runtime) => runtime.shutdown_background(),
            None => {}
        }
    }
}

fn made(order: Order, progress: &Progress) -> Result<(RunFolder, Judged), Failure> {
    let begun = Instant::now();
    let Order { mut options, schedule, repeats } = order;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let listening = Listening(Some(runtime));
    let runtime = listening.runtime();
    progress.step("looking where members can run, and what earlier runs left");
    // Everything that can be refused is refused before there is anything to clean up.
    if options.cluster.kind != ClusterKind::Sim {
        descriptors::enough_for(options.members(), options.concurrency)?;
    }
    let site = runtime.block_on(run::site::settle(&mut options))?;
    sweep_first(&options, progress);
    let interrupt = {
        let _inside = runtime.enter();
        let store = options.store.clone();
        Interrupt::listen(progress.clone(), move || clean::behind(&store))?
    };
    let start = jiff::Timestamp::now();
    let Fresh { folder, lock } = RunFolder::create(&options.store, &options.name, start)?;
    let (token, progress) = (lock.token().to_owned(), progress.clone());
    let installation = site.as_ref().and_then(run::site::Site::installation).cloned();
    let prepared = Prepared { options, schedule, repeats, folder, start, token, progress, installation };
    let outcome = run::announce(&prepared).and_then(|()| match site {
        Some(site) => runtime.block_on(run::execute(&prepared, site, &interrupt)),
        None => sim_run::execute(&prepared, &interrupt),
    });
    if let Err(failure) = outcome {
        // What still runs may write into the folder.
        drop(listening);
        drop(lock);
        match failure {
            // Nothing was started, or nothing was done before somebody interrupted: there is nothing to keep.
            Failure::Usage(_) | Failure::Interrupted => discard(&prepared),
            Failure::Harness(_) => {}
        }
        return Err(failure);
    }
    let mut judged = judge::judge(&prepared.folder, Within::usual()?, &|what| prepared.progress.step(what))?;
    // Whoever interrupts is told so, and so it does, in the last moment too.
    if interrupt.was_asked() {
        judge::interrupt(&prepared.folder, &mut judged)?;
    }
    judged.results.timings.total_ms = begun.elapsed().as_secs_f64() * 1e3;
    finish(&prepared, &judged)?;
    if interrupt.was_asked() && judge::interrupt(&prepared.folder, &mut judged)? {
        judge::write(&prepared.folder, &judged)?;
    }
    drop(lock);
    Ok((prepared.folder, judged))
}

/// Tells what came of a run.
pub(crate) fn told(
    folder: &RunFolder,
    judged: &Judged,
    format: Format,
    progress: &Progress,
) -> Result<Exit, Failure> {
    show(judged, folder, format)?;
    if format == Format::Json {
        progress.say(&format!("page: {}", folder.report().display()));
    }
    Ok(Exit::of(judged.results.verdict, judged.results.interrupted))
}

/// Removes what a killed harness left, and says so; that it can't is no reason not to run.
fn sweep_first(options: &RunOptions, progress: &Progress) {
    match sweep::sweep_everywhere(&options.store) {
        Ok(swept) => {
            if !swept.is_empty() {
                progress.say(&format!("left by a killed harness: {}", swept.sentence()));
            }
            if let Some(failure) = swept.failure {
                progress.say(&format!("the Docker engine was not swept: {failure}"));
            }
        }
        Err(error) => {
            progress.say(&format!("what a killed harness may have left could not be removed: {error}"))
        }
    }
}

/// Removes the folder of a run that came to nothing.
fn discard(prepared: &Prepared) {
    if let Err(error) = prepared.folder.discard() {
        tracing::warn!(%error, folder = %prepared.folder.path().display(), "the folder of a run that came \
            to nothing stays");
    }
}

fn finish(prepared: &Prepared, judged: &Judged) -> Result<(), Failure> {
    let Prepared { options, folder, .. } = prepared;
    let promises = judged.results.checks.iter().filter(|check| check.name != FINISHED);
    if checker::verdict::Verdict::of(promises) == checker::verdict::Verdict::Valid {
        prepared.progress.step("removing the members' data");
        folder.drop_data().context("removing the members' data")?;
    }
    prepared.progress.step("writing the page");
    judge::write(folder, judged)?;
    folder.point_latest(&options.store);
    Ok(())
}
