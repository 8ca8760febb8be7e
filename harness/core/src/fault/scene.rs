//! From a planned fault to members: who is hit is decided at the moment of injection, and recorded.
//!
//! Pure: the same draw on the same scene gives the same targets. A scene is more than the members' roles when
//! faults overlap: a process that another fault holds dead or stopped is nobody's target, so that each fault
//! stays what it says and can be proven and healed by itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::mechanism::application::Harmed;
use crate::mechanism::kill::Kill;
use crate::mechanism::pause::Pause;
use crate::mechanism::{Action, Mechanism, Resource, Use};
use crate::parameter::Parameters;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use runs::consequence::Consequences;
use runs::member::MemberId;

use super::application::{Harm, Holder};
use super::in_force::InForce;
use super::server::Server;
use crate::cut::{Cut, Pair, Severing};

/// What a fault meets.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// Every member, ascending.
    pub members: &'a [MemberId],
    /// Those of them that vote; the others are observers, and counted for nothing.
    pub voters: &'a [MemberId],
    /// Who leads, if anybody does.
    pub leader: Option<MemberId>,
    /// What else is in force, or about to be.
    pub in_force: &'a InForce,
    /// What each member runs as, where kinds of servers replace each other.
    pub servers: &'a BTreeMap<MemberId, Server>,
    /// The members that were replaced since the last round of replacements ended.
    pub replaced: &'a BTreeSet<MemberId>,
    /// The application that holds something by the largest token, if there are applications.
    pub holder: Option<Holder>,
    /// Whether processes that are killed come back without what they had not synced.
    pub loses_unsynced: bool,
}

/// A fault with its targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The members that it is aimed at.
    pub targets: Vec<MemberId>,
    /// What to do to them.
    pub action: Action,
    /// The fault in a few words: `partition n4 (leader) from n1 n2 n3 n5`.
    pub sentence: String,
    /// The members that can still be served, all that is in force taken together; empty when no quorum
    /// remains.
    pub majority_side: Vec<MemberId>,
    /// The groups that it divides the members into, each of which must have clients for the run to show
    /// anything. Empty when it divides none.
    pub sides: Vec<Vec<MemberId>>,
    /// Whether it takes the leader away from its quorum, by itself, so that a higher epoch must follow. Not
    /// the kind decides this: a partition of halves does it when the leader is in the minority.
    pub leader_fault: bool,
}

/// What an aim is decided by.
#[derive(Debug)]
pub(super) struct Draw<'a> {
    /// What it meets.
    pub(super) scene: &'a Scene<'a>,
    /// Whom no other fault occupies in a way that leaves no room for this one.
    pub(super) there: Vec<MemberId>,
    /// One of those.
    pub(super) any: MemberId,
    /// The leader, if it is one of those.
    pub(super) leader: Option<MemberId>,
    /// The application that holds something by the largest token, if no other fault hits it.
    pub(super) holder: Option<Holder>,
    /// Counts the faults of this kind.
    pub(super) turn: u64,
    /// What was said of it.
    pub(super) parameters: Parameters,
    /// What is left to chance is drawn from this.
    pub(super) rng: ChaCha8Rng,
}

impl<'a> Draw<'a> {
    /// None when other faults leave room at nobody.
    pub(super) fn of(
        draw: u64,
        turn: u64,
        scene: &'a Scene<'a>,
        (mechanism, parameters): (&Mechanism, Parameters),
    ) -> Option<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(draw);
        let is_free = |member: &MemberId| scene.in_force.leaves_free(*member, mechanism);
        let there: Vec<MemberId> = scene.members.iter().copied().filter(is_free).collect();
        let any = there.choose(&mut rng).copied()?;
        let leader = scene.leader.filter(|leader| there.contains(leader));
        let is_free =
            |holder: &Holder| !scene.in_force.collides(Resource::Application(holder.application), Use::Alone);
        let holder = scene.holder.filter(is_free);
        Some(Self { scene, there, any, leader, holder, turn, parameters, rng })
    }
}

impl Scene<'_> {
    pub(super) fn cut_off(&self, target: MemberId, how: Severing) -> Resolved {
        let rest = without(self.members, &[target]);
        let (one, others) = (self.names(&[target]), self.names(&rest));
        let sentence = match how {
            Severing::Silence => format!("partition {one} from {others}"),
            Severing::Reject => format!("reject {one} from {others}: connections are reset"),
        };
        self.cut(Cut::between(&[vec![target], rest.clone()], how), vec![vec![target], rest], sentence)
    }

    pub(super) fn cut(&self, cut: Cut, sides: Vec<Vec<MemberId>>, sentence: String) -> Resolved {
        let targets = sides.first().cloned().unwrap_or_default();
        self.resolved(targets, cut, sides, sentence)
    }

    pub(super) fn kill(&self, targets: &[MemberId]) -> Resolved {
        let kill = Kill { members: targets.to_vec(), loses_unsynced: self.loses_unsynced };
        // The dead have no clients, so nobody is divided from anybody.
        self.resolved(targets.to_vec(), kill, Vec::new(), format!("kill {}", self.names(targets)))
    }

    pub(super) fn pause(&self, target: MemberId) -> Resolved {
        let sides = vec![vec![target], without(self.members, &[target])];
        let pause = Pause { members: vec![target] };
        self.resolved(vec![target], pause, sides, format!("pause {}", self.names(&[target])))
    }

    /// Harm to an application. No member is a target.
    pub(super) fn harm(&self, holder: Holder, harm: Harm, sentence: String) -> Resolved {
        self.resolved(Vec::new(), Harmed { holder, harm }, Vec::new(), sentence)
    }

    pub(super) fn resolved(
        &self,
        targets: Vec<MemberId>,
        act: impl Into<Action>,
        sides: Vec<Vec<MemberId>>,
        sentence: String,
    ) -> Resolved {
        let action = act.into();
        let alone = InForce::only("", &action);
        let hits = |members: &[MemberId]| self.voters.iter().all(|voter| members.contains(voter));
        let everybody = action.consequences().ends_only() && hits(action.members());
        // From who votes alone nobody takes over: that one leads on afterwards, unless it was killed.
        let can_be_followed = self.voters.len() > 1;
        let deposes = |leader| can_be_followed && alone.deposes(leader, self.voters);
        let leader_fault = everybody || self.leader.is_some_and(deposes);
        let mut together = self.in_force.clone();
        together.insert("", action.clone());
        let majority_side = together.majority_side(self.members, self.voters, self.leader);
        let dead = self.in_force.killed();
        Resolved { targets, action, sentence, majority_side, sides: inhabited(sides, &dead), leader_fault }
    }

    /// The voters in any order.
    pub(super) fn shuffled(&self, rng: &mut ChaCha8Rng) -> Vec<MemberId> {
        let mut shuffled = self.voters.to_vec();
        shuffled.shuffle(rng);
        shuffled
    }

    /// Two groups of voters, each with the observers that fall to it.
    pub(super) fn with_observers(
        &self,
        mut one: Vec<MemberId>,
        mut other: Vec<MemberId>,
        rng: &mut ChaCha8Rng,
    ) -> Vec<Vec<MemberId>> {
        for observer in without(self.members, self.voters) {
            if rng.random() { one.push(observer) } else { other.push(observer) }
        }
        one.sort_unstable();
        other.sort_unstable();
        vec![one, other]
    }

    pub(super) fn names(&self, members: &[MemberId]) -> String {
        let name = |member: &MemberId| {
            let role = match member {
                _ if Some(*member) == self.leader => " (leader)",
                _ if !self.voters.contains(member) => " (observer)",
                _ => "",
            };
            format!("n{}{role}", member.0)
        };
        members.iter().map(name).collect::<Vec<_>>().join(" ")
    }
}

/// The sides without the members that another fault holds dead; none when not two are left.
fn inhabited(sides: Vec<Vec<MemberId>>, dead: &[MemberId]) -> Vec<Vec<MemberId>> {
    let sides: Vec<Vec<MemberId>> =
        sides.iter().map(|side| without(side, dead)).filter(|side| !side.is_empty()).collect();
    if sides.len() > 1 { sides } else { Vec::new() }
}

/// Directions in which what is sent is never heard of.
pub(super) fn silence(mut pairs: Vec<Pair>) -> Cut {
    pairs.sort_unstable();
    Cut { pairs, how: Severing::Silence }
}

/// The others.
pub(super) fn without(members: &[MemberId], targets: &[MemberId]) -> Vec<MemberId> {
    members.iter().copied().filter(|member| !targets.contains(member)).collect()
}

#[cfg(test)]
mod tests;
