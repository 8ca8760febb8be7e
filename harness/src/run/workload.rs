//! The workload and the nemesis side by side, for as long as they are meant to run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use checker::history::Function;
use runs::checks::promises::MINIMUM_EACH;
use runs::observed::Observed;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::interrupt::Interrupt;
use super::{Prepared, Stop};
use crate::clock::{RunNs, nanoseconds};
use crate::exit::Failure;
use crate::live::Live;
use crate::load::client::LoadClient;
use crate::load::pacer::Pacer;
use crate::load::{Recorder, Shared};
use crate::nemesis::Schedule;
use crate::nemesis::journal::Journal;
use crate::nemesis::runner::{Calm, Runner};
use crate::num::index;
use crate::progress::Load;
use crate::seed;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// How long clients may take to end beyond their operation's time-out.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long the load may go on beyond the time limit to show what became of the ensemble after its last fault.
const AFTERMATH: Duration = Duration::from_secs(5);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the load of a run shows while nothing is broken.
struct Shown {
    recorder: Recorder,
    functions: &'static [Function],
}

impl Calm for Shown {
    fn begins(&self) {
        self.recorder.calm_begins();
    }

    fn is_enough(&self) -> bool {
        self.recorder.succeeded_in_calm(self.functions, MINIMUM_EACH)
    }
}

/// What runs.
pub(super) struct Workload<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) schedule: &'a Schedule,
    pub(super) shared: &'a Shared,
    pub(super) journal: Journal,
    /// What judges meanwhile.
    pub(super) live: Option<&'a Live>,
}

impl Workload<'_> {
    /// Runs until the time limit, and then for as long as the last fault has to be shown to be over; or until an
    /// interrupt. Gives a process id that nobody used.
    pub(super) async fn run(self, interrupt: &Interrupt, observed: &mut Observed) -> Result<u64, Failure> {
        let options = &self.prepared.options;
        let stop: Stop = watch::Sender::new(false);
        let queue = &self.shared.load;
        queue.rules().open();
        let clients = self.clients(&stop);
        let start = self.shared.clock.now();
        let end = start + nanoseconds(options.time_limit);
        let begun = Instant::now();
        let rng = seed::stream(options.seed, "arrivals");
        let span = (start, end + nanoseconds(AFTERMATH));
        let pacer = Pacer::start(Arc::clone(queue), self.shared.clock, span, options.rate, rng)?;
        // A halt of its own: clients work on while the last fault is healed.
        let halt: Stop = watch::Sender::new(false);
        let faults = self.faults(start, &halt);
        let load = async {
            tokio::select! {
                () = self.tell_until(start, end) => true,
                () = self.must_end(interrupt) => false,
            }
        };
        tokio::pin!(faults, load);
        let (whole, gone) = tokio::select! {
            whole = &mut load => (whole, false),
            ended = &mut faults => {
                ended?;
                (load.await, true)
            }
        };
        if !whole {
            pacer.stop();
        }
        let progress = &self.prepared.progress;
        if !gone {
            progress.step("healing the last fault");
            halt.send_replace(true);
            faults.await?;
        }
        if whole && !self.schedule.faults.is_empty() {
            progress.step("showing that the ensemble serves again");
            tokio::select! {
                () = self.aftermath() => {}
                () = self.must_end(interrupt) => {}
            }
        }
        observed.lag = pacer.finish()?;
        progress.step("ending the clients");
        stop.send_replace(true);
        queue.close();
        join(clients, options.op_timeout + FAREWELL).await?;
        let next_process = queue.rules().next_process();
        observed.shed = queue.rules().shed();
        observed.workload_from_ns = start;
        observed.workload_to_ns = self.shared.clock.now();
        observed.timings.workload_ms = begun.elapsed().as_secs_f64() * 1e3;
        Ok(next_process)
    }

    /// Somebody asks for the end, or a violation was seen that ends the run.
    async fn must_end(&self, interrupt: &Interrupt) {
        let violation = async {
            match self.live {
                Some(live) => live.ends_the_run().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = interrupt.asked() => {}
            () = violation => {}
        }
    }

    fn clients(&self, stop: &Stop) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        for number in 0..index(u64::from(self.prepared.options.concurrency)) {
            let client = LoadClient::new(self.shared.clone(), number);
            clients.spawn(client.run(stop.subscribe()));
        }
        clients
    }

    /// The nemesis, until all its faults were healed: the last one when `halt` says so at the latest.
    async fn faults(&self, start: RunNs, halt: &Stop) -> Result<(), Failure> {
        let runner = Runner {
            cluster: Arc::clone(&self.shared.cluster),
            journal: self.journal.clone(),
            clock: self.shared.clock,
            lose_unsynced: self.prepared.options.lose_unsynced,
            calm: Arc::new(Shown {
                recorder: self.shared.recorder.clone(),
                functions: self.prepared.options.workload.functions(),
            }),
            progress: self.prepared.progress.clone(),
        };
        let (schedule, halted) = (self.schedule.clone(), halt.subscribe());
        let ended = tokio::spawn(async move { runner.run(&schedule, start, halted).await }).await;
        self.shared.recorder.calm_begins();
        ended.context("the nemesis panicked")?.context("the nemesis failed")?;
        Ok(())
    }

    /// Until enough has succeeded since the last fault to tell that the ensemble recovered from it. A fault that
    /// was slow to heal leaves little of the time limit, and a run that ends there has shown nothing.
    async fn aftermath(&self) {
        let functions = self.prepared.options.workload.functions();
        let shown = || self.shared.recorder.succeeded_in_calm(functions, MINIMUM_EACH);
        let deadline = Instant::now() + AFTERMATH;
        while !shown() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn tell_until(&self, start: RunNs, end: RunNs) {
        let limit = Duration::from_nanos(end - start);
        let deadline = self.shared.clock.instant(end).into();
        let mut tick = tokio::time::interval(TELL_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => return,
                _ = tick.tick() => {}
            }
            let counts = self.shared.recorder.counts();
            let leader = self.shared.cluster.events().leader();
            let load = Load {
                ok: counts.ok.load(Ordering::Relaxed),
                refused: counts.refused.load(Ordering::Relaxed),
                failed: counts.fail.load(Ordering::Relaxed),
                unknown: counts.info.load(Ordering::Relaxed),
                leader: leader.map(|leader| (leader.id.0, leader.epoch)),
                live: self.live.map(Live::words),
            };
            let elapsed = Duration::from_nanos(self.shared.clock.now().saturating_sub(start));
            self.prepared.progress.advance(elapsed, limit, &load);
        }
    }
}

/// Waits for every client.
async fn join(mut clients: JoinSet<()>, patience: Duration) -> Result<(), Failure> {
    let all = async {
        while let Some(ended) = clients.join_next().await {
            ended.context("a client panicked")?;
        }
        anyhow::Ok(())
    };
    let ended = tokio::time::timeout(patience, all).await;
    Ok(ended.map_err(|_| anyhow!("clients do not end"))??)
}
