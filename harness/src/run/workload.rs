//! The workload and the nemesis side by side, for as long as they are meant to run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::interrupt::Interrupt;
use super::{Prepared, Stop};
use crate::clock::{RunNs, nanoseconds};
use crate::exit::Failure;
use crate::judge::observed::Observed;
use crate::live::Live;
use crate::load::client::LoadClient;
use crate::load::pacer::Pacer;
use crate::load::{Queue, Shared};
use crate::nemesis::Schedule;
use crate::nemesis::journal::Journal;
use crate::nemesis::runner::Runner;
use crate::seed;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// How long clients may take to end beyond their operation's time-out.
const FAREWELL: Duration = Duration::from_secs(2);

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
    /// Runs until the time limit or an interrupt. Gives a process id that nobody used.
    pub(super) async fn run(self, interrupt: &Interrupt, observed: &mut Observed) -> Result<u64, Failure> {
        let options = &self.prepared.options;
        let stop: Stop = watch::Sender::new(false);
        let queue = Arc::new(Queue::new(options.op_timeout));
        let clients = self.clients(&queue, &stop);
        let start = self.shared.clock.now();
        let end = start + nanoseconds(options.time_limit);
        let begun = Instant::now();
        let rng = seed::stream(options.seed, "arrivals");
        let pacer = Pacer::start(Arc::clone(&queue), self.shared.clock, (start, end), options.rate, rng)?;
        let mut nemesis = self.nemesis(start, &stop);
        let mut early = None;
        tokio::select! {
            () = self.tell_until(start, end) => {}
            () = self.must_end(interrupt) => {}
            ended = &mut nemesis => early = Some(ended),
        }
        if let Some(ended) = early {
            outcome(ended)?;
            tokio::select! {
                () = self.tell_until(start, end) => {}
                () = self.must_end(interrupt) => {}
            }
            observed.lag = pacer.finish()?;
        } else {
            observed.lag = pacer.finish()?;
            stop_nemesis(&stop, nemesis).await?;
        }
        stop.send_replace(true);
        queue.close();
        let next_process = join(clients, options.op_timeout + FAREWELL).await?;
        self.prepared.progress.clear();
        observed.shed = queue.shed();
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

    fn clients(&self, queue: &Arc<Queue>, stop: &Stop) -> JoinSet<u64> {
        let mut clients = JoinSet::new();
        for slot in 0..self.shared.concurrency {
            let client = LoadClient::new(self.shared.clone(), slot);
            clients.spawn(client.run(Arc::clone(queue), stop.subscribe()));
        }
        clients
    }

    fn nemesis(&self, start: RunNs, stop: &Stop) -> JoinHandle<anyhow::Result<()>> {
        let runner = Runner {
            cluster: Arc::clone(&self.shared.cluster),
            journal: self.journal.clone(),
            clock: self.shared.clock,
            lose_unsynced: self.prepared.options.lose_unsynced,
            progress: self.prepared.progress.clone(),
        };
        let schedule = self.schedule.clone();
        let stop = stop.subscribe();
        tokio::spawn(async move { runner.run(&schedule, start, stop).await })
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
            let (ok, refused, fail, info) = (
                counts.ok.load(Ordering::Relaxed),
                counts.refused.load(Ordering::Relaxed),
                counts.fail.load(Ordering::Relaxed),
                counts.info.load(Ordering::Relaxed),
            );
            let leader = match self.shared.cluster.events().leader() {
                Some(leader) => format!("n{} leads epoch {}", leader.id.0, leader.epoch),
                None => "no leader".to_owned(),
            };
            let elapsed = Duration::from_nanos(self.shared.clock.now().saturating_sub(start));
            let live = self.live.map(|live| format!("; {}", live.words())).unwrap_or_default();
            let load = format!("{ok} ok, {refused} refused, {fail} failed, {info} unknown; {leader}{live}");
            self.prepared.progress.advance(elapsed, limit, &load);
        }
    }
}

/// Tells the nemesis to heal and end, and waits for it.
async fn stop_nemesis(stop: &Stop, nemesis: JoinHandle<anyhow::Result<()>>) -> Result<(), Failure> {
    stop.send_replace(true);
    outcome(nemesis.await)
}

fn outcome(ended: Result<anyhow::Result<()>, tokio::task::JoinError>) -> Result<(), Failure> {
    ended.context("the nemesis panicked")?.context("the nemesis failed")?;
    Ok(())
}

/// Waits for every client, and gives a process id above all that were used.
async fn join(mut clients: JoinSet<u64>, patience: Duration) -> Result<u64, Failure> {
    let mut highest = 0;
    let all = async {
        while let Some(ended) = clients.join_next().await {
            highest = highest.max(ended.context("a client panicked")?);
        }
        anyhow::Ok(highest + 1)
    };
    let ended = tokio::time::timeout(patience, all).await;
    Ok(ended.map_err(|_| anyhow!("clients do not end"))??)
}
