//! Carries out in virtual time what the nemeses decide ([`harness_core::nemeses`]).
//!
//! Between being asked for and being in force no virtual time passes, and a look takes none. What is waited for is that a
//! fault is seen to be gone: it is looked for again whenever members have said something, and every millisecond.

use std::collections::BTreeMap;

use harness_core::fault::action::Action;
use harness_core::nemeses::{
    self, Command, Injection, LaneId, Look, RECOVERY_PATIENCE_NS, Sight, Terms, Undoing,
};
use harness_core::proof::Proof;
use harness_sim::planned::{self, Ensemble};
use node_wire::ids::ServerId;
use runs::checks::promises::MINIMUM_EACH;
use runs::clock::RunNs;
use runs::faults::FaultTransition;
use runs::member::MemberId;
use runs::views::{Leader, View};

use super::proof::{self, Arrived};
use super::server;
use crate::cluster::{Cut, Severing};
use crate::events::EventLog;
use crate::load::recorder::Calm;
use crate::nemesis::Schedule;
use crate::nemesis::journal::Journal;
use crate::num::index;
use crate::run::Prepared;

/// How often members are looked at that are waited for, at the least, and how often the load is.
const GLANCE_US: u64 = 1_000;

/// The nemeses of a run, and what carries them out.
pub(super) struct Nemeses<'a> {
    machine: nemeses::Nemeses,
    prepared: &'a Prepared,
    journal: Journal,
    members: Vec<MemberId>,
    /// What had arrived through the cuts in force when they came.
    before: BTreeMap<String, Arrived>,
    /// What is looked for again and again, and until when.
    watches: BTreeMap<LaneId, (Look, u64)>,
}

/// What nemeses act on.
pub(super) struct Scene<'a> {
    pub(super) world: &'a mut dyn Ensemble,
    pub(super) events: &'a EventLog,
    pub(super) calm: &'a mut Calm,
    pub(super) prepared: &'a Prepared,
}

impl Sight for Scene<'_> {
    fn views(&self) -> BTreeMap<MemberId, View> {
        self.events.views()
    }

    fn leader(&self) -> Option<Leader> {
        self.events.leader()
    }

    fn load_has_shown(&self) -> bool {
        self.calm.shows(self.prepared.options.workload.functions(), MINIMUM_EACH)
    }
}

impl Scene<'_> {
    fn now_ns(&self) -> RunNs {
        self.world.now_us() * 1000
    }
}

impl<'a> Nemeses<'a> {
    /// Nothing injected yet.
    pub(super) fn new(
        prepared: &'a Prepared,
        schedule: &Schedule,
        journal: Journal,
        start_us: u64,
        members: &[MemberId],
    ) -> Self {
        let voters = index(u64::from(prepared.options.nodes)).min(members.len());
        let terms = Terms {
            members: members.to_vec(),
            voters: members[..voters].to_vec(),
            servers: BTreeMap::new(),
            lose_unsynced: prepared.options.lose_unsynced,
            glance_ns: GLANCE_US * 1000,
        };
        Self {
            machine: nemeses::Nemeses::new(schedule, &terms, start_us * 1000),
            prepared,
            journal,
            members: members.to_vec(),
            before: BTreeMap::new(),
            watches: BTreeMap::new(),
        }
    }

    /// Does something whose time has come. True when it did: what members said of it is to be heard before the next.
    pub(super) fn turn(&mut self, scene: &mut Scene<'_>) -> anyhow::Result<bool> {
        if let Some(command) = self.machine.next(scene.now_ns(), scene) {
            self.carry_out(scene, command)?;
            return Ok(true);
        }
        let seen = self.watches.iter().find_map(|(lane, (look, until_us))| {
            let proof = proof::is_gone(scene.world, scene.events, look, &self.members);
            // A member that ended by itself is not waited for: nobody starts it again.
            let given_up = || {
                scene.world.now_us() >= *until_us
                    || !nemeses::ended_by_themselves(scene, &look.in_force.killed()).is_empty()
            };
            (proof.holds || given_up()).then_some((*lane, look.version, proof))
        });
        let Some((lane, version, proof)) = seen else { return Ok(false) };
        self.watches.remove(&lane);
        self.machine.looked(lane, version, scene.now_ns(), proof);
        Ok(true)
    }

    /// When there is something to do or to look at again.
    pub(super) fn next_us(&self, now_us: u64) -> Option<u64> {
        let machine = self.machine.wake(now_us * 1000).map(|at| at.div_ceil(1000));
        let watching = (!self.watches.is_empty()).then_some(now_us + GLANCE_US);
        machine.into_iter().chain(watching).min()
    }

    /// What is in force is to be healed, and nothing more injected.
    pub(super) fn halt(&mut self) {
        self.machine.halt();
    }

    /// Whether nothing is left to be done or to be seen.
    pub(super) fn is_over(&self) -> bool {
        self.machine.is_over()
    }

    fn write(&self, line: FaultTransition) -> anyhow::Result<()> {
        self.journal.write(line)
    }

    fn carry_out(&mut self, scene: &mut Scene<'_>, command: Command) -> anyhow::Result<()> {
        let now = scene.now_ns();
        match command {
            Command::Write(line) => self.write(line)?,
            Command::Say(words) => self.prepared.progress.say(&words),
            Command::CalmBegins => *scene.calm = Calm::default(),
            Command::Inject(order) => {
                self.write(order.asked.clone().at(now))?;
                self.inject(scene.world, &order)?;
                self.machine.injected(order.lane, now);
            }
            Command::Prove(look) => {
                let proof = proof::bites(scene.world, &look.action, &look.in_force, &self.members);
                self.machine.looked(look.lane, look.version, now, proof);
            }
            Command::Undo(order) => {
                self.write(order.healing.clone().at(now))?;
                let seen = self.undo(scene.world, &order)?;
                self.machine.undone(order.lane, now, seen);
            }
            Command::Watch(look) => {
                let until_us = (now + RECOVERY_PATIENCE_NS) / 1000;
                self.watches.insert(look.lane, (look, until_us));
            }
        }
        Ok(())
    }

    fn inject(&mut self, world: &mut dyn Ensemble, order: &Injection) -> anyhow::Result<()> {
        match &order.action {
            Action::Cut(cut) => {
                world.cut(&directions(cut), severing(cut));
                self.before.insert(order.asked.fault.clone(), proof::arrived(world, cut));
            }
            Action::Kill { members } => {
                members.iter().for_each(|member| world.kill(server(*member), order.loses_unsynced));
            }
            Action::Replace { .. } => anyhow::bail!("the simulator has one kind of server"),
            Action::Pause { members } => members.iter().for_each(|member| world.pause(server(*member))),
            Action::Clock { members, offset_ns } => {
                members.iter().for_each(|member| world.shift_clock(server(*member), offset_ns / 1_000_000));
            }
        }
        Ok(())
    }

    fn undo(&mut self, world: &mut dyn Ensemble, order: &Undoing) -> anyhow::Result<Option<Proof>> {
        match &order.action {
            Action::Cut(cut) => {
                let before = self.before.remove(&order.healing.fault).unwrap_or_default();
                let seen = proof::at_the_end_of_a_cut(world, cut, &before);
                world.mend(&directions(cut), severing(cut));
                return Ok(Some(seen));
            }
            Action::Kill { members } => members.iter().for_each(|member| world.start(server(*member))),
            Action::Replace { .. } => anyhow::bail!("the simulator has one kind of server"),
            Action::Pause { members } => members.iter().for_each(|member| world.resume(server(*member))),
            Action::Clock { members, .. } => {
                members.iter().for_each(|member| world.shift_clock(server(*member), 0));
            }
        }
        Ok(None)
    }
}

fn directions(cut: &Cut) -> Vec<(ServerId, ServerId)> {
    cut.pairs.iter().map(|pair| (server(pair.from), server(pair.to))).collect()
}

fn severing(cut: &Cut) -> planned::Severing {
    match cut.how {
        Severing::Silence => planned::Severing::Silence,
        Severing::Reject => planned::Severing::Reject,
    }
}
