//! Carries out on real members what the nemeses decide ([`harness_core::nemeses`]).
//!
//! Each command that takes time has a task of its own, so lanes never wait for each other. Stamps are taken
//! in the tasks: `asked` before the one call that has the cluster do it, `injected` behind it. Nothing else
//! stands between the two.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use harness_core::fault::in_force::InForce;
use harness_core::mechanism::Action;
use harness_core::nemeses::{Answer, Command, Injection, LaneId, Look, Undoing};
use runs::faults::FaultTransition;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::applications::Applications;
use crate::clock::{RunClock, milliseconds};
use crate::cluster::Cluster;
use crate::load::Recorder;
use crate::mechanisms::{self, At, Driver, Kept};
use crate::progress::Progress;
use crate::store::journal::Journal;

/// What commands are carried out with.
#[derive(Clone)]
pub struct Tools {
    /// The members.
    pub cluster: Arc<dyn Cluster>,
    /// The applications, if there are any.
    pub applications: Option<Arc<Applications>>,
    /// Where steps are written down.
    pub journal: Journal,
    /// The run's clock.
    pub clock: RunClock,
    /// What knows what the load has shown.
    pub recorder: Recorder,
    /// Where it is told.
    pub progress: Progress,
}

impl Tools {
    fn write(&self, line: FaultTransition) -> anyhow::Result<()> {
        tracing::debug!(fault = line.fault, phase = ?line.phase, at_ms = milliseconds(line.time));
        self.journal.write(line)
    }
}

/// What carries commands out, and what is being carried out.
pub struct Runner {
    work: Work,
    tasks: JoinSet<anyhow::Result<Answer>>,
    lanes: HashMap<tokio::task::Id, LaneId>,
    watches: HashMap<LaneId, AbortHandle>,
}

impl Runner {
    /// Nothing is being carried out.
    pub fn new(tools: Tools) -> Self {
        let work = Work { tools, kept: Arc::default() };
        Self { work, tasks: JoinSet::new(), lanes: HashMap::new(), watches: HashMap::new() }
    }

    /// Does what is done at once, and begins what takes time.
    pub fn carry_out(&mut self, command: Command) -> anyhow::Result<()> {
        let work = self.work.clone();
        match command {
            Command::Write(line) => return work.tools.write(line),
            Command::Say(words) => work.tools.progress.say(&words),
            Command::CalmBegins => work.tools.recorder.calm_begins(),
            Command::Inject(order) => drop(self.begin(order.lane, work.inject(order))),
            Command::Prove(look) => drop(self.begin(look.lane, work.prove(look))),
            Command::Undo(order) => drop(self.begin(order.lane, work.undo(order))),
            Command::Watch(look) => {
                let lane = look.lane;
                let task = self.begin(lane, work.watch(look));
                if let Some(before) = self.watches.insert(lane, task) {
                    before.abort();
                }
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        lane: LaneId,
        work: impl Future<Output = anyhow::Result<Answer>> + Send + 'static,
    ) -> AbortHandle {
        let task = self.tasks.spawn(work);
        self.lanes.insert(task.id(), lane);
        task
    }

    /// The next answer, and whose it is; none of a watch that was given up. Never ends while nothing is being
    /// carried out.
    pub async fn next(&mut self) -> Option<Answered> {
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

/// What came of a command, and in which lane.
pub type Answered = (LaneId, anyhow::Result<Answer>);

/// One command's work. Clones share what they know.
#[derive(Clone)]
struct Work {
    tools: Tools,
    /// What is kept of faults until their end.
    kept: Arc<Kept>,
}

impl Work {
    /// What a fault is carried out with, and what does it.
    fn at<'a>(
        &'a self,
        fault: &'a str,
        action: &'a Action,
        in_force: &'a InForce,
    ) -> anyhow::Result<(At<'a>, &'static dyn Driver)> {
        let Tools { cluster, applications, .. } = &self.tools;
        let mechanism = action.mechanism();
        let driver = self.kept.driver(mechanism, &**cluster).map_err(|why| {
            anyhow!("{fault}: the {} cluster can't {}: {why}", cluster.name(), mechanism.name)
        })?;
        let applications = applications.as_deref();
        Ok((At { cluster, applications, fault, action, in_force, kept: &self.kept }, driver))
    }

    async fn inject(self, order: Injection) -> anyhow::Result<Answer> {
        let Injection { action, asked, aimed_by, .. } = order;
        let Tools { cluster, clock, .. } = &self.tools;
        if cluster.events().leader() != aimed_by {
            return Ok(Answer::Stale);
        }
        let (fault, nothing) = (asked.fault.clone(), InForce::default());
        let (at, driver) = self.at(&fault, &action, &nothing)?;
        if driver.look_before(&at).await? && cluster.events().leader() != aimed_by {
            return Ok(Answer::Stale);
        }
        let write = Box::new(|| self.tools.write(asked.at(clock.now())));
        let injected = mechanisms::inject(driver, &at, write, || clock.now()).await?;
        Ok(injected.map_or(Answer::Stale, Answer::Injected))
    }

    async fn prove(self, look: Look) -> anyhow::Result<Answer> {
        let (at, driver) = self.at(&look.fault, &look.action, &look.in_force)?;
        Ok(Answer::Looked(look.version, mechanisms::bites(driver, &at).await?))
    }

    async fn undo(self, order: Undoing) -> anyhow::Result<Answer> {
        let Undoing { action, injected, healing, .. } = order;
        let (fault, nothing) = (healing.fault.clone(), InForce::default());
        let clock = &self.tools.clock;
        // A disk that takes no further line is no reason to leave anything broken.
        let written = self.tools.write(healing.at(clock.now()));
        let (at, driver) = self.at(&fault, &action, &nothing)?;
        let seen = driver.undo(&at, injected).await?;
        let undone = clock.now();
        self.kept.forget(&fault);
        written.map(|()| Answer::Undone(undone, seen))
    }

    async fn watch(self, look: Look) -> anyhow::Result<Answer> {
        let (at, driver) = self.at(&look.fault, &look.action, &look.in_force)?;
        Ok(Answer::Looked(look.version, mechanisms::is_gone(driver, &at).await?))
    }
}
