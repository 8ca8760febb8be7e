//! Carries out in virtual time what the nemeses decide ([`harness_core::nemeses`]).
//!
//! Between being asked for and being in force no virtual time passes, and a look takes none. What is waited
//! for is that a fault is seen to be gone: that is looked for again and again.

use std::collections::BTreeMap;

use harness_core::fault::action::Action;
use harness_core::nemeses::{
    self, Answer, Command, Injection, LaneId, Look, RECOVERY_PATIENCE_NS, Sight, Undoing,
};
use harness_core::proof::Proof;
use lab_sim::planned::{self, Ensemble};
use node_wire::ids::ServerId;
use runs::member::MemberId;

use super::proof::{self, Arrived};
use super::server;
use crate::cluster::{Cut, Severing};
use crate::events::EventLog;
use crate::store::journal::Journal;

/// What carries commands out, and what is being looked for.
pub(super) struct Runner {
    journal: Journal,
    members: Vec<MemberId>,
    /// What had arrived through the cuts in force when they came.
    before: BTreeMap<String, Arrived>,
    /// What is looked for again and again, and until when.
    watches: BTreeMap<LaneId, (Look, u64)>,
}

impl Runner {
    /// Nothing is broken yet.
    pub(super) fn new(journal: Journal, members: &[MemberId]) -> Self {
        Self { journal, members: members.to_vec(), before: BTreeMap::new(), watches: BTreeMap::new() }
    }

    /// Whether something is being looked for.
    pub(super) fn watches(&self) -> bool {
        !self.watches.is_empty()
    }

    /// What is seen by now of what is being looked for.
    pub(super) fn seen(
        &mut self,
        world: &dyn Ensemble,
        events: &EventLog,
        sight: &dyn Sight,
    ) -> Option<(LaneId, Answer)> {
        let (lane, version, proof) = self.watches.iter().find_map(|(lane, (look, until_us))| {
            let proof = proof::is_gone(world, events, look, &self.members);
            // A member that ended by itself is not waited for: nobody starts it again.
            let given_up = || {
                world.now_us() >= *until_us
                    || !nemeses::ended_by_themselves(sight, &look.in_force.killed()).is_empty()
            };
            (proof.holds || given_up()).then_some((*lane, look.version, proof))
        })?;
        self.watches.remove(&lane);
        Some((lane, Answer::Looked(version, proof)))
    }

    /// Does what a command says, and gives the answer that there is at once.
    pub(super) fn carry_out(
        &mut self,
        world: &mut dyn Ensemble,
        command: Command,
    ) -> anyhow::Result<Option<(LaneId, Answer)>> {
        let now = world.now_us() * 1000;
        Ok(match command {
            Command::Write(line) => {
                self.journal.write(line)?;
                None
            }
            Command::Inject(order) => {
                self.journal.write(order.asked.clone().at(now))?;
                self.inject(world, &order)?;
                Some((order.lane, Answer::Injected(now)))
            }
            Command::Prove(look) => {
                let proof = proof::bites(world, &look.action, &look.in_force, &self.members);
                Some((look.lane, Answer::Looked(look.version, proof)))
            }
            Command::Undo(order) => {
                self.journal.write(order.healing.clone().at(now))?;
                let seen = self.undo(world, &order)?;
                Some((order.lane, Answer::Undone(now, seen)))
            }
            Command::Watch(look) => {
                let until_us = (now + RECOVERY_PATIENCE_NS) / 1000;
                self.watches.insert(look.lane, (look, until_us));
                None
            }
            // What is told and what the load shows is its caller's.
            Command::Say(_) | Command::CalmBegins => None,
        })
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
            Action::Application { .. } => anyhow::bail!("applications are processes"),
            Action::Own { .. } => anyhow::bail!("commands find no member of a virtual world"),
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
            Action::Application { .. } => anyhow::bail!("applications are processes"),
            Action::Own { .. } => anyhow::bail!("commands find no member of a virtual world"),
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
