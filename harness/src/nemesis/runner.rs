//! Carries out on real members what the nemeses decide ([`harness_core::nemeses`]).
//!
//! Each command that takes time has a task of its own, so lanes never wait for each other. Stamps are taken
//! in the tasks: `asked` before the one call that has the cluster do it, `injected` behind it. Nothing else
//! stands between the two.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, anyhow};
use harness_core::fault::action::Action;
use harness_core::nemeses::{Answer, Command, Injection, LaneId, Look, Undoing};
use harness_core::proof::Proof;
use runs::events::{Event, Stamped};
use runs::faults::FaultTransition;
use runs::member::MemberId;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::own::Fault;
use super::proof;
use crate::applications::Applications;
use crate::clock::{RunClock, RunNs, milliseconds};
use crate::cluster::{Cluster, Traffic};
use crate::load::Recorder;
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

    fn applications(&self) -> anyhow::Result<&Applications> {
        self.applications.as_deref().ok_or_else(|| anyhow!("there are no applications"))
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
        let work = Work { tools, before: Arc::default(), not_there: Arc::default() };
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
    /// What had passed the cuts in force when they came.
    before: Arc<Mutex<BTreeMap<String, Traffic>>>,
    /// What was seen of the faults of the user's own before they came.
    not_there: Arc<Mutex<BTreeMap<String, Proof>>>,
}

impl Work {
    fn before(&self) -> MutexGuard<'_, BTreeMap<String, Traffic>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fault of the user's own, if the action is one.
    fn own<'a>(&'a self, action: &'a Action, id: &'a str) -> Option<Fault<'a>> {
        let Action::Own { own, members } = action else { return None };
        Some(Fault { cluster: &self.tools.cluster, own: *own, members, id })
    }

    fn not_there(&self) -> MutexGuard<'_, BTreeMap<String, Proof>> {
        self.not_there.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn inject(self, order: Injection) -> anyhow::Result<Answer> {
        let Injection { action, asked, aimed_by, .. } = order;
        let Tools { cluster, clock, .. } = &self.tools;
        if cluster.events().leader() != aimed_by {
            return Ok(Answer::Stale);
        }
        let fault = asked.fault.clone();
        if let Action::Application { holder, harm } = &action {
            let write = || self.tools.write(asked.at(clock.now()));
            let done = self.tools.applications()?.harm(holder, *harm, write).await?;
            return Ok(if done { Answer::Injected(clock.now()) } else { Answer::Stale });
        }
        if let Some(own) = self.own(&action, &fault) {
            let proof = own.is_not_there().await;
            self.not_there().insert(fault.clone(), proof);
            // That took a moment, in which somebody else may have begun to lead.
            if cluster.events().leader() != aimed_by {
                return Ok(Answer::Stale);
            }
        }
        self.tools.write(asked.at(clock.now()))?;
        let mut before = Traffic::default();
        match &action {
            Action::Cut(cut) => before = cluster.cut(&fault, cut).await?,
            Action::Kill { members } => cluster.kill(members).await?,
            Action::Replace { members, .. } => cluster.retire(members).await?,
            Action::Pause { members } => cluster.pause(members).await?,
            Action::Clock { members, offset_ns } => cluster.shift_clock(members, *offset_ns).await?,
            Action::Own { own, members } => {
                Fault { cluster, own: *own, members, id: &fault }.inflict().await?;
            }
            // Done before.
            Action::Application { .. } => {}
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
        if let Action::Application { holder, harm } = &look.action {
            let applications = self.tools.applications()?;
            let proof = proof::application_is_harmed(applications, holder, *harm).await;
            return Ok(Answer::Looked(look.version, proof));
        }
        if let Some(own) = self.own(&look.action, &look.fault) {
            let before = self.not_there().get(&look.fault).cloned();
            let bites = own.bites(&look.in_force).await;
            let proof = before.map_or(bites.clone(), |before| before.and(bites));
            return Ok(Answer::Looked(look.version, proof));
        }
        let proof = proof::bites(&*self.tools.cluster, &look.action, &before, &look.in_force).await?;
        Ok(Answer::Looked(look.version, proof))
    }

    async fn undo(self, order: Undoing) -> anyhow::Result<Answer> {
        let Undoing { action, injected, loses_unsynced, healing, .. } = order;
        let Tools { cluster, clock, .. } = &self.tools;
        let fault = healing.fault.clone();
        // A disk that takes no further line is no reason to leave anything broken.
        let written = self.tools.write(healing.at(clock.now()));
        let mut seen = None;
        match &action {
            Action::Cut(cut) => {
                let way = cluster.way_round(cut).await;
                let after = cluster.heal(&fault).await?;
                let before = self.before().remove(&fault).unwrap_or_default();
                seen = Some(proof::at_the_end_of_a_cut(cut, &before, &after, way?));
            }
            Action::Kill { members } => cluster.restart(members, loses_unsynced).await?,
            Action::Replace { members, by } => cluster.restart_as(members, *by).await?,
            Action::Pause { members } => cluster.resume(members).await?,
            Action::Application { holder, harm } => {
                let crossed = self.tools.applications()?.undo(holder, *harm).await?;
                seen = crossed.map(proof::at_the_end_of_a_cut_application);
            }
            Action::Own { own, members } => {
                self.not_there().remove(&fault);
                seen = Fault { cluster, own: *own, members, id: &fault }.undo().await?;
            }
            Action::Clock { members, .. } => {
                cluster.shift_clock(members, 0).await?;
                seen = self.tools.gaps(members, injected).map(|words| Proof::new(true, words));
            }
        }
        let at = clock.now();
        written.map(|()| Answer::Undone(at, seen))
    }

    async fn watch(self, look: Look) -> anyhow::Result<Answer> {
        let mut proof = proof::is_gone(&*self.tools.cluster, &look.action, &look.in_force).await?;
        if let Action::Application { holder, harm } = &look.action {
            proof = proof.and(proof::application_is_well(self.tools.applications()?, holder, *harm).await);
        }
        if let Some(own) = self.own(&look.action, &look.fault)
            && let Some(gone) = own.is_gone(&look.in_force).await
        {
            proof = proof.and(gone);
        }
        Ok(Answer::Looked(look.version, proof))
    }
}
