//! Carries out in virtual time what the nemeses decide ([`harness_core::nemeses`]).
//!
//! What a fault does is a few conditions of the world, each imposed when it is injected and lifted when it is
//! healed. No virtual time passes between being asked for and being in force, and a look takes none. What is
//! waited for is that a fault is seen to be gone: that is looked for again and again.

use std::collections::BTreeMap;

use harness_core::nemeses::{
    self, Answer, Command, Injection, LaneId, Look, RECOVERY_PATIENCE_NS, Sight, Undoing,
};
use harness_core::proof::Proof;
use harness_core::virtual_ensemble::VirtualEnsemble;
use runs::member::MemberId;

use super::proof::{self, Arrived};
use crate::events::EventLog;
use crate::exit::Failure;
use crate::nemesis::Schedule;
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
        world: &dyn VirtualEnsemble,
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
        world: &mut dyn VirtualEnsemble,
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
                self.inject(world, &order);
                Some((order.lane, Answer::Injected(now)))
            }
            Command::Prove(look) => {
                let proof = proof::bites(world, &look.action, &look.in_force, &self.members);
                Some((look.lane, Answer::Looked(look.version, proof)))
            }
            Command::Undo(order) => {
                self.journal.write(order.healing.clone().at(now))?;
                let seen = self.undo(world, &order);
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

    fn inject(&mut self, world: &mut dyn VirtualEnsemble, order: &Injection) {
        order.action.conditions().into_iter().for_each(|condition| world.impose(condition));
        self.before.insert(order.asked.fault.clone(), proof::arrived(world, &order.action));
    }

    fn undo(&mut self, world: &mut dyn VirtualEnsemble, order: &Undoing) -> Option<Proof> {
        let before = self.before.remove(&order.healing.fault).unwrap_or_default();
        let seen = proof::at_the_end(world, &order.action, &before);
        order.action.conditions().into_iter().for_each(|condition| world.lift(condition));
        seen
    }
}

/// A fault that the world can't do is refused before anything starts, never skipped.
pub(super) fn refuse_what_it_cannot(world: &dyn VirtualEnsemble, schedule: &Schedule) -> Result<(), Failure> {
    for nemesis in schedule.kinds() {
        let all = nemesis.needs().virtually.map_err(str::to_owned);
        all.and_then(|all| all.iter().try_for_each(|quality| world.can(*quality)))
            .map_err(|why| Failure::usage(format!("--cluster sim can't do {}: {why}", nemesis.name())))?;
    }
    Ok(())
}
