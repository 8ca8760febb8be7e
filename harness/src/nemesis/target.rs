//! From a planned fault to members: who is hit is decided at the moment of injection, and recorded.
//!
//! Pure: the same draw on the same scene gives the same targets. A scene is more than the members' roles when
//! faults overlap: a process that another fault holds dead or stopped is nobody's target, so that each fault stays
//! what it says and can be proven and healed by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use runs::member::MemberId;

use super::action::Action;
use super::in_force::InForce;
use super::{Nemesis, PlannedFault, topology};
use crate::clock::nanoseconds;
use crate::cluster::{Cut, Severing};
use crate::links::protocol::Pair;
use crate::targets::Server;

/// The shortest and the longest shift of a clock. Jepsen draws 2 to the power of 2 to 18 milliseconds; what is
/// below a tenth of a second is within what members forgive each other anyway.
const BUMP: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(262_144));

/// What a fault meets.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// Every member, ascending.
    pub members: &'a [MemberId],
    /// Who leads, if anybody does.
    pub leader: Option<MemberId>,
    /// What else is in force, or about to be.
    pub in_force: &'a InForce,
    /// What each member runs as, where kinds of servers replace each other.
    pub servers: &'a BTreeMap<MemberId, Server>,
    /// The members that were replaced since the last round of replacements ended.
    pub replaced: &'a BTreeSet<MemberId>,
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
    /// The members that can still be served, all that is in force taken together; empty when no quorum remains.
    pub majority_side: Vec<MemberId>,
    /// The groups that it divides the members into, each of which must have clients for the run to show anything.
    /// Empty when it divides none.
    pub sides: Vec<Vec<MemberId>>,
    /// Whether it takes the leader away from its quorum, by itself, so that a higher epoch must follow. Not the
    /// kind decides this: a partition of halves does it when the leader is in the minority.
    pub leader_fault: bool,
}

/// Decides whom `fault` hits. None when nobody fits: it needs a leader and there is none, or nobody is left.
pub fn resolve(fault: &PlannedFault, scene: &Scene<'_>) -> Option<Resolved> {
    let mut rng = ChaCha8Rng::seed_from_u64(fault.draw);
    let absent = scene.in_force.absent();
    let there: Vec<MemberId> =
        scene.members.iter().copied().filter(|member| !absent.contains(member)).collect();
    let any = there.choose(&mut rng).copied()?;
    let leader = scene.leader.filter(|leader| there.contains(leader));
    let resolved = match fault.kind {
        Nemesis::PartitionLeader => scene.cut_off(leader?, Severing::Silence),
        Nemesis::PartitionOne => scene.cut_off(any, Severing::Silence),
        Nemesis::RejectLeader => scene.cut_off(leader?, Severing::Reject),
        Nemesis::PartitionHalves => scene.halves(&mut rng),
        Nemesis::PartitionOneway => scene.one_way(leader?, fault.turn.is_multiple_of(2)),
        Nemesis::PartitionRing => scene.ring(&mut rng),
        Nemesis::PartitionBridge => scene.bridge(any, &mut rng),
        Nemesis::KillLeader => scene.kill(&[leader?]),
        Nemesis::KillOne => scene.kill(&[any]),
        Nemesis::KillAll => scene.kill(&there),
        Nemesis::PauseLeader => scene.pause(&[leader?]),
        Nemesis::ClockBump => {
            // The leader's clock is the one that stamps transactions; everybody's stamps its own sessions.
            let whose = if fault.turn.is_multiple_of(2) { leader.unwrap_or(any) } else { any };
            scene.bump(whose, draw_bump_ns(&mut rng))
        }
        Nemesis::ReplaceRolling => scene.replace_next(&there, &mut rng)?,
    };
    Some(resolved)
}

/// A shift of the clock: as likely between 0.1 and 0.2 s as between 100 and 200 s, and as likely back as forth.
fn draw_bump_ns(rng: &mut ChaCha8Rng) -> i64 {
    let (shortest, longest) = (BUMP.0.as_secs_f64(), BUMP.1.as_secs_f64());
    let seconds = shortest * (longest / shortest).powf(rng.random::<f64>());
    let offset = i64::try_from(nanoseconds(Duration::from_secs_f64(seconds))).unwrap_or(i64::MAX);
    if rng.random::<bool>() { offset } else { -offset }
}

impl Scene<'_> {
    fn cut_off(&self, target: MemberId, how: Severing) -> Resolved {
        let rest = without(self.members, &[target]);
        let (one, others) = (self.names(&[target]), self.names(&rest));
        let sentence = match how {
            Severing::Silence => format!("partition {one} from {others}"),
            Severing::Reject => format!("reject {one} from {others}: connections are reset"),
        };
        self.cut(Cut::between(&[vec![target], rest.clone()], how), vec![vec![target], rest], sentence)
    }

    fn halves(&self, rng: &mut ChaCha8Rng) -> Resolved {
        let mut majority = self.shuffled(rng);
        let mut minority = majority.split_off(topology::quorum(self.members.len()));
        minority.sort_unstable();
        majority.sort_unstable();
        let sentence = format!("partition {} from {}", self.names(&minority), self.names(&majority));
        let groups = vec![minority, majority];
        self.cut(Cut::between(&groups, Severing::Silence), groups, sentence)
    }

    fn one_way(&self, target: MemberId, is_deaf: bool) -> Resolved {
        let rest = without(self.members, &[target]);
        let (one, others) = (self.names(&[target]), self.names(&rest));
        let (pairs, sentence) = if is_deaf {
            (topology::deaf(target, self.members), format!("{one} deaf: hears none of {others}"))
        } else {
            (topology::mute(target, self.members), format!("{one} mute: none of {others} hears it"))
        };
        self.cut(silence(pairs), vec![vec![target], rest], sentence)
    }

    fn ring(&self, rng: &mut ChaCha8Rng) -> Resolved {
        let order = self.shuffled(rng);
        let cut = silence(topology::ring(&order));
        let reaches = topology::quorum(order.len()) - 1;
        let sentence = format!("ring {}: each reaches {reaches} others, no two the same", self.names(&order));
        // No two members see the same, so each is a side of its own.
        let sides = self.members.iter().map(|member| vec![*member]).collect();
        Resolved { targets: order, ..self.cut(cut, sides, sentence) }
    }

    fn bridge(&self, bridge: MemberId, rng: &mut ChaCha8Rng) -> Resolved {
        let mut larger = self.shuffled(rng);
        larger.retain(|member| *member != bridge);
        let mut smaller = larger.split_off(larger.len().div_ceil(2));
        smaller.sort_unstable();
        larger.sort_unstable();
        let sentence = format!(
            "bridge {} between {} and {}",
            self.names(&[bridge]),
            self.names(&smaller),
            self.names(&larger)
        );
        // The bridge is on both sides.
        let groups = vec![smaller, larger];
        let resolved = self.cut(Cut::between(&groups, Severing::Silence), groups, sentence);
        Resolved { targets: vec![bridge], ..resolved }
    }

    fn cut(&self, cut: Cut, sides: Vec<Vec<MemberId>>, sentence: String) -> Resolved {
        let targets = sides.first().cloned().unwrap_or_default();
        self.resolved(targets, Action::Cut(cut), sides, sentence)
    }

    fn kill(&self, targets: &[MemberId]) -> Resolved {
        let action = Action::Kill { members: targets.to_vec() };
        // The dead have no clients, so nobody is divided from anybody.
        self.resolved(targets.to_vec(), action, Vec::new(), format!("kill {}", self.names(targets)))
    }

    /// The next member of a round: any follower that is still to come, and the leader when nobody else is, as
    /// operators do.
    fn replace_next(&self, there: &[MemberId], rng: &mut ChaCha8Rng) -> Option<Resolved> {
        let to_come: Vec<MemberId> =
            there.iter().copied().filter(|member| !self.replaced.contains(member)).collect();
        let followers: Vec<MemberId> =
            to_come.iter().copied().filter(|member| Some(*member) != self.leader).collect();
        let target = followers.choose(rng).or(to_come.first()).copied()?;
        let server = *self.servers.get(&target)?;
        let by = server.other();
        let action = Action::Replace { members: vec![target], by };
        let sentence = format!("replace {}, {server}, by {by}", self.names(&[target]));
        Some(self.resolved(vec![target], action, Vec::new(), sentence))
    }

    fn pause(&self, targets: &[MemberId]) -> Resolved {
        let action = Action::Pause { members: targets.to_vec() };
        let sides = vec![targets.to_vec(), without(self.members, targets)];
        self.resolved(targets.to_vec(), action, sides, format!("pause {}", self.names(targets)))
    }

    fn bump(&self, target: MemberId, offset_ns: i64) -> Resolved {
        let action = Action::Clock { members: vec![target], offset_ns };
        let sentence = format!("bump the clock of {} by {}", self.names(&[target]), show_offset(offset_ns));
        self.resolved(vec![target], action, Vec::new(), sentence)
    }

    fn resolved(
        &self,
        targets: Vec<MemberId>,
        action: Action,
        sides: Vec<Vec<MemberId>>,
        sentence: String,
    ) -> Resolved {
        let alone = InForce::only("", &action);
        let everybody = matches!(&action, Action::Kill { members } if members.len() == self.members.len());
        let leader_fault = everybody || self.leader.is_some_and(|leader| alone.deposes(leader, self.members));
        let mut together = self.in_force.clone();
        together.insert("", action.clone());
        let majority_side = together.majority_side(self.members, self.leader);
        let dead = self.in_force.killed();
        Resolved { targets, action, sentence, majority_side, sides: inhabited(sides, &dead), leader_fault }
    }

    fn shuffled(&self, rng: &mut ChaCha8Rng) -> Vec<MemberId> {
        let mut shuffled = self.members.to_vec();
        shuffled.shuffle(rng);
        shuffled
    }

    fn names(&self, members: &[MemberId]) -> String {
        let name = |member: &MemberId| {
            let role = if Some(*member) == self.leader { " (leader)" } else { "" };
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

fn silence(mut pairs: Vec<Pair>) -> Cut {
    pairs.sort_unstable();
    Cut { pairs, how: Severing::Silence }
}

fn without(members: &[MemberId], targets: &[MemberId]) -> Vec<MemberId> {
    members.iter().copied().filter(|member| !targets.contains(member)).collect()
}

/// A shift for people, with its sign: `+1.250 s`.
pub fn show_offset(offset_ns: i64) -> String {
    let sign = if offset_ns < 0 { '-' } else { '+' };
    format!("{sign}{:.3} s", Duration::from_nanos(offset_ns.unsigned_abs()).as_secs_f64())
}

#[cfg(test)]
mod tests;
