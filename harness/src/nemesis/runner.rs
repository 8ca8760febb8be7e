//! Carries out on real members what the nemeses decide ([`harness_core::nemeses`]).
//!
//! Each command that takes time has a task of its own, so lanes never wait for each other; the machine is asked in one
//! task, whenever somebody answered, members said something, or a moment has come. Stamps are taken in the tasks: `asked`
//! before the one call that has the cluster do it, `injected` behind it. Nothing else stands between the two.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use harness_core::fault::LoseUnsynced;
use harness_core::fault::action::Action;
use harness_core::nemeses::{Command, Injection, LaneId, Look, Nemeses, Sight, Terms, Undoing};
use harness_core::proof::Proof;
use runs::events::{Event, Stamped};
use runs::faults::FaultTransition;
use runs::member::MemberId;
use runs::views::{Leader, View};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::journal::Journal;
use super::{Schedule, proof};
use crate::clock::{RunClock, RunNs, milliseconds, nanoseconds};
use crate::cluster::{Cluster, Traffic};
use crate::progress::Progress;

/// How often the load is looked at while it is waited for.
const GLANCE: Duration = Duration::from_millis(5);

/// What the load shows while nothing is broken.
pub trait Calm: Send + Sync {
    /// A fault is gone: what was seen before counts no more.
    fn begins(&self);

    /// Whether enough has succeeded since to show what a fault did.
    fn is_enough(&self) -> bool;
}

/// What carries a schedule out.
#[derive(Clone)]
pub struct Runner {
    /// On which members.
    pub cluster: Arc<dyn Cluster>,
    /// Where steps are written down.
    pub journal: Journal,
    /// The run's clock.
    pub clock: RunClock,
    /// After which kills members lose what they had not synced.
    pub lose_unsynced: LoseUnsynced,
    /// What the load shows.
    pub calm: Arc<dyn Calm>,
    /// Where it is told.
    pub progress: Progress,
}

impl Sight for Runner {
    fn views(&self) -> BTreeMap<MemberId, View> {
        self.cluster.events().views()
    }

    fn leader(&self) -> Option<Leader> {
        self.cluster.events().leader()
    }

    fn load_has_shown(&self) -> bool {
        self.calm.is_enough()
    }
}

/// What came of a command.
enum Answer {
    Injected(RunNs),
    Stale,
    Looked(u64, Proof),
    Undone(RunNs, Option<Proof>),
}

/// The commands that are being carried out.
#[derive(Default)]
struct AtWork {
    tasks: JoinSet<anyhow::Result<Answer>>,
    lanes: HashMap<tokio::task::Id, LaneId>,
    watches: HashMap<LaneId, AbortHandle>,
}

impl AtWork {
    fn begin(
        &mut self,
        lane: LaneId,
        work: impl Future<Output = anyhow::Result<Answer>> + Send + 'static,
    ) -> AbortHandle {
        let task = self.tasks.spawn(work);
        self.lanes.insert(task.id(), lane);
        task
    }

    /// A watch takes the place of the one before it.
    fn watch(&mut self, lane: LaneId, work: impl Future<Output = anyhow::Result<Answer>> + Send + 'static) {
        let task = self.begin(lane, work);
        if let Some(before) = self.watches.insert(lane, task) {
            before.abort();
        }
    }

    /// The next answer, and whose it is; none of a watch that was given up. Never ends while nothing is at work.
    async fn next(&mut self) -> Option<(LaneId, anyhow::Result<Answer>)> {
        match self.tasks.join_next_with_id().await {
            None => std::future::pending().await,
            Some(Ok((id, answer))) => Some((self.lanes.remove(&id)?, answer)),
            Some(Err(error)) => {
                let lane = self.lanes.remove(&error.id())?;
                (!JoinError::is_cancelled(&error)).then(|| (lane, Err(error).context("a nemesis panicked")))
            }
        }
    }
}

impl Runner {
    /// Carries `schedule` out, its times counted from `start`. Ends early, and healed, when `stop` says so.
    pub async fn run(
        self,
        schedule: &Schedule,
        start: RunNs,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let terms = Terms {
            members: self.cluster.members().to_vec(),
            voters: self.cluster.voters().to_vec(),
            servers: self.cluster.servers(),
            lose_unsynced: self.lose_unsynced,
            glance_ns: nanoseconds(GLANCE),
        };
        let mut nemeses = Nemeses::new(schedule, &terms, start);
        let mut news = self.cluster.events().news();
        let hands = Hands { runner: self.clone(), before: Arc::default() };
        let mut at_work = AtWork::default();
        let mut halted = false;
        let mut outcome = Ok(());
        while !nemeses.is_over() {
            while let Some(command) = nemeses.next(self.clock.now(), &self) {
                if let Err(error) = hands.carry_out(command, &mut at_work) {
                    // What is in force is healed all the same.
                    nemeses.halt();
                    outcome = outcome.and(Err(error));
                }
            }
            let moment = nemeses.wake(self.clock.now()).map(|moment| self.clock.instant(moment).into());
            let its_moment = async {
                match moment {
                    Some(moment) => tokio::time::sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                answer = at_work.next() => match answer {
                    Some((lane, Ok(answer))) => self.note(&mut nemeses, lane, answer),
                    Some((lane, Err(error))) => {
                        // The others heal what is theirs and end.
                        nemeses.failed(lane);
                        nemeses.halt();
                        outcome = outcome.and(Err(error));
                    }
                    None => {}
                },
                () = its_moment => {}
                // The sender lives in the cluster, so it can't be gone.
                _ = news.changed() => {}
                _ = stop.wait_for(|stopped| *stopped), if !halted => {
                    halted = true;
                    nemeses.halt();
                }
            }
        }
        outcome
    }

    fn note(&self, nemeses: &mut Nemeses, lane: LaneId, answer: Answer) {
        match answer {
            Answer::Injected(at) => nemeses.injected(lane, at),
            Answer::Stale => nemeses.stale(lane, self.clock.now()),
            Answer::Looked(version, proof) => nemeses.looked(lane, version, self.clock.now(), proof),
            Answer::Undone(at, seen) => nemeses.undone(lane, at, seen),
        }
    }

    fn write(&self, line: FaultTransition) -> anyhow::Result<()> {
        tracing::debug!(fault = line.fault, phase = ?line.phase, at_ms = milliseconds(line.time));
        self.journal.write(line)
    }

    /// The starts of these members since `from` that came up with the true time first, in words.
    fn gaps(&self, members: &[MemberId], from: RunNs) -> Option<String> {
        let gap = |stamped: &Stamped| match stamped.event {
            Event::Clock { gap_ns: Some(gap_ns), .. } => Some(format!(
                "n{} was started again while it was shifted, and ran unshifted for {:.1} ms",
                stamped.node.0,
                milliseconds(gap_ns)
            )),
            _ => None,
        };
        let gaps: Vec<String> = self
            .cluster
            .events()
            .events()
            .iter()
            .filter(|stamped| stamped.time >= from && members.contains(&stamped.node))
            .filter_map(gap)
            .collect();
        (!gaps.is_empty()).then(|| gaps.join("; "))
    }
}

/// What carries commands out. Clones share what they know.
#[derive(Clone)]
struct Hands {
    runner: Runner,
    /// What had passed the cuts in force when they came.
    before: Arc<Mutex<BTreeMap<String, Traffic>>>,
}

impl Hands {
    fn before(&self) -> MutexGuard<'_, BTreeMap<String, Traffic>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what is done at once, and begins what takes time.
    fn carry_out(&self, command: Command, at_work: &mut AtWork) -> anyhow::Result<()> {
        let hands = self.clone();
        match command {
            Command::Write(line) => return self.runner.write(line),
            Command::Say(words) => self.runner.progress.say(&words),
            Command::CalmBegins => self.runner.calm.begins(),
            Command::Inject(order) => {
                at_work.begin(order.lane, hands.inject(order));
            }
            Command::Prove(look) => {
                at_work.begin(look.lane, hands.prove(look));
            }
            Command::Undo(order) => {
                at_work.begin(order.lane, hands.undo(order));
            }
            Command::Watch(look) => at_work.watch(look.lane, hands.watch(look)),
        }
        Ok(())
    }

    async fn inject(self, order: Injection) -> anyhow::Result<Answer> {
        let Injection { action, asked, aimed_by, .. } = order;
        let Runner { cluster, clock, .. } = &self.runner;
        if cluster.events().leader() != aimed_by {
            return Ok(Answer::Stale);
        }
        let fault = asked.fault.clone();
        self.runner.write(asked.at(clock.now()))?;
        let mut before = Traffic::default();
        match &action {
            Action::Cut(cut) => before = cluster.cut(&fault, cut).await?,
            Action::Kill { members } => cluster.kill(members).await?,
            Action::Replace { members, .. } => cluster.retire(members).await?,
            Action::Pause { members } => cluster.pause(members).await?,
            Action::Clock { members, offset_ns } => cluster.shift_clock(members, *offset_ns).await?,
        }
        let injected = clock.now();
        if let Action::Cut(_) = &action {
            before = before.settled_by(cluster.traffic().await?);
            self.before().insert(fault, before);
        }
        Ok(Answer::Injected(injected))
    }

    async fn prove(self, look: Look) -> anyhow::Result<Answer> {
        let before = self.before().get(&look.fault).cloned().unwrap_or_default();
        let proof = proof::bites(&*self.runner.cluster, &look.action, &before, &look.in_force).await?;
        Ok(Answer::Looked(look.version, proof))
    }

    async fn undo(self, order: Undoing) -> anyhow::Result<Answer> {
        let Undoing { action, injected, loses_unsynced, healing, .. } = order;
        let Runner { cluster, clock, .. } = &self.runner;
        let fault = healing.fault.clone();
        // A disk that takes no further line is no reason to leave anything broken.
        let written = self.runner.write(healing.at(clock.now()));
        let mut seen = None;
        match &action {
            Action::Cut(cut) => {
                let after = cluster.heal(&fault).await?;
                let before = self.before().remove(&fault).unwrap_or_default();
                seen = Some(proof::at_the_end_of_a_cut(cut, &before, &after));
            }
            Action::Kill { members } => cluster.restart(members, loses_unsynced).await?,
            Action::Replace { members, by } => cluster.restart_as(members, *by).await?,
            Action::Pause { members } => cluster.resume(members).await?,
            Action::Clock { members, .. } => {
                cluster.shift_clock(members, 0).await?;
                seen = self.runner.gaps(members, injected).map(|words| Proof::new(true, words));
            }
        }
        let at = clock.now();
        written.map(|()| Answer::Undone(at, seen))
    }

    async fn watch(self, look: Look) -> anyhow::Result<Answer> {
        let proof = proof::is_gone(&*self.runner.cluster, &look.action, &look.in_force).await?;
        Ok(Answer::Looked(look.version, proof))
    }
}
