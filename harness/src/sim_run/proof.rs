//! Looks into a world whether a fault bites, and whether it is gone.
//!
//! There is nothing to be asked for and no doubt about the answer, so what is looked at is what decides:
//! whether a direction lets anything pass, how much has passed, whether a process is there, what a clock
//! shows. That it is as was asked for is still not taken for granted: the proof reads the world, and never
//! what was written down.

use std::collections::BTreeMap;

use harness_core::virtual_ensemble::{Process, VirtualEnsemble};
use runs::consequence::Consequences;
use runs::member::MemberId;
use runs::results::Reach;
use runs::views;

use crate::events::EventLog;
use crate::links::protocol::Pair;
use crate::mechanisms::proof::given::{self, Given};
use harness_core::condition::{Condition, Delay, Quality};
use harness_core::fault::in_force::{Expected, InForce};
use harness_core::mechanism::Action;
use harness_core::mechanism::clock::{offset_ns, show_offset};
use harness_core::nemeses::Look;
use harness_core::proof::Proof;

/// A clock is shifted in whole milliseconds.
const CLOCK_ERROR_NS: u64 = 1_000_000;

/// Messages that have arrived in each direction of a cut.
pub(super) type Arrived = BTreeMap<Pair, u64>;

/// The same of what lets nothing pass, at this moment.
pub(super) fn arrived(world: &dyn VirtualEnsemble, action: &Action) -> Arrived {
    let (pairs, _) = action.silences().unwrap_or_default();
    pairs.iter().map(|pair| (*pair, world.delivered(*pair))).collect()
}

/// Which of these a fault changes.
fn changes(action: &Action, quality: Quality) -> bool {
    action.mechanism().virtually.is_ok_and(|all| all.contains(&quality))
}

/// Whether an injected fault bites.
pub(super) fn bites(
    world: &dyn VirtualEnsemble,
    action: &Action,
    in_force: &InForce,
    members: &[MemberId],
) -> Proof {
    let mut proofs = Vec::new();
    if changes(action, Quality::Passage) {
        proofs.push(network(world, in_force, members));
        let refuses = action.silences().is_some_and(|(_, refuses)| refuses);
        proofs.extend(refuses.then(|| Proof::new(true, "connections are reset".to_owned())));
    }
    if changes(action, Quality::Delay) {
        proofs.push(delays(world, in_force, members));
    }
    if changes(action, Quality::Process) {
        let wanted = if action.consequences().ends() { Process::Gone } else { Process::Stopped };
        proofs.push(are(world, action.members(), wanted));
    }
    if changes(action, Quality::Clock) {
        proofs.push(clocks(world, action.members(), in_force, members));
    }
    let nothing = Proof::new(false, "it is of processes alone".to_owned());
    let mut seen = proofs.into_iter().reduce(Proof::and).unwrap_or(nothing);
    if seen.detail.matrix.is_none() {
        seen.detail.matrix = Some(in_force.matrix(members));
    }
    seen
}

/// Whether a healed fault is gone among those that are still in force. When none is, all must be well again.
pub(super) fn is_gone(
    world: &dyn VirtualEnsemble,
    events: &EventLog,
    look: &Look,
    members: &[MemberId],
) -> Proof {
    let Look { action, in_force: rest, .. } = look;
    let mut proofs = Vec::new();
    if rest.is_empty() {
        proofs.extend([network(world, rest, members), running(world, members)]);
        proofs.extend(world.can(Quality::Clock).is_ok().then(|| clocks(world, &[], rest, members)));
        if changes(action, Quality::Delay) {
            proofs.push(delays(world, rest, members));
            proofs.extend(are_quick(world, action, rest));
        }
        let views = events.views();
        let serve = views::all_serve(&views);
        let stand = match (serve, views::leader_of(&views)) {
            (true, Some(leader)) => format!("all serve in epoch {} under n{}", leader.epoch, leader.id.0),
            _ => views::laggards(&views),
        };
        proofs.push(Proof::new(serve, stand));
    } else {
        if changes(action, Quality::Passage) {
            proofs.push(network(world, rest, members));
        }
        if changes(action, Quality::Delay) {
            proofs.push(delays(world, rest, members));
            proofs.extend(are_quick(world, action, rest));
        }
        if changes(action, Quality::Process) {
            let absent = rest.absent();
            let whom = action.members().iter().copied();
            let there: Vec<MemberId> = whom.filter(|member| !absent.contains(member)).collect();
            proofs.push(running(world, &there));
        }
        if changes(action, Quality::Clock) {
            proofs.push(clocks(world, action.members(), rest, members));
        }
        proofs.push(Proof::new(true, format!("{} still in force", rest.names().join(" "))));
    }
    let nothing = Proof::new(false, "it is of processes alone".to_owned());
    let mut seen = proofs.into_iter().reduce(Proof::and).unwrap_or(nothing);
    seen.detail.epoch = views::highest_epoch(&events.views());
    seen
}

/// What was seen of a fault while it held: what passed while nothing was to, and how long what was to be slow
/// took.
pub(super) fn at_the_end(world: &dyn VirtualEnsemble, action: &Action, before: &Arrived) -> Option<Proof> {
    let slow = slow(action);
    if !slow.is_empty() {
        let shown = given::were_slow(&slow, &taken(world, &slow));
        let nothing = || Proof::new(false, "members said nothing in any of its directions".to_owned());
        return Some(shown.unwrap_or_else(nothing));
    }
    let (pairs, _) = action.silences()?;
    let now = arrived(world, action);
    let crossed: u64 = now.iter().map(|(pair, count)| count - before.get(pair).copied().unwrap_or(0)).sum();
    let waiting: u64 = pairs.iter().map(|pair| world.waiting(*pair)).sum();
    let words = format!("{crossed} messages crossed while it held; {waiting} wait");
    Some(Proof::new(crossed == 0, words))
}

/// The directions that a fault makes slow, and by how much.
fn slow(action: &Action) -> BTreeMap<Pair, Delay> {
    let slow = action.conditions().into_iter().filter_map(|condition| match condition {
        Condition::Link(pair, link) if !link.delay.is_none() => Some((pair, link.delay)),
        _ => None,
    });
    slow.collect()
}

/// How long what was sent in these directions took.
fn taken(world: &dyn VirtualEnsemble, pairs: &BTreeMap<Pair, Delay>) -> Given {
    pairs.keys().map(|pair| (*pair, world.delays(*pair))).collect()
}

/// What is sent in the directions of a healed fault must be quick again, where anything is, once no other
/// fault makes anything slow: until then what is kept is of both times.
fn are_quick(world: &dyn VirtualEnsemble, action: &Action, rest: &InForce) -> Option<Proof> {
    if rest.actions().any(|(_, action)| changes(action, Quality::Delay)) {
        return None;
    }
    let slow = slow(action);
    let than = slow.values().map(|delay| delay.latency).min()?;
    given::were_quick(&BTreeMap::new(), than, &taken(world, &slow))
}

/// Severed directions must let nothing pass, and all others everything.
fn network(world: &dyn VirtualEnsemble, in_force: &InForce, members: &[MemberId]) -> Proof {
    let (mut severed, mut crossed, mut open, mut passing) = (0, 0, 0, 0);
    let mut matrix = Vec::new();
    for from in members {
        let mut row = Vec::new();
        for to in members {
            let pair = Pair::new(*from, *to);
            let passes = from == to || world.passes(pair);
            row.push(if passes { Reach::Reached } else { Reach::NotReached });
            match in_force.expected(pair) {
                _ if from == to => {}
                Expected::Severed => (severed, crossed) = (severed + 1, crossed + u32::from(passes)),
                Expected::Arrives => (open, passing) = (open + 1, passing + u32::from(passes)),
                Expected::Either => {}
            }
        }
        matrix.push(row);
    }
    in_force.leave_out_absent(&mut matrix, members);
    let words = if severed == 0 {
        format!("{passing} of {open} directions pass")
    } else {
        format!("{crossed} of {severed} severed directions pass, {passing} of {open} others")
    };
    let mut seen = Proof::new(crossed == 0 && passing == open, words);
    seen.detail.matrix = Some(matrix);
    seen
}

/// Directions must be slower by what is in force, and by nothing else. What was really sent so is looked at
/// when something was: at the end, and after it.
fn delays(world: &dyn VirtualEnsemble, in_force: &InForce, members: &[MemberId]) -> Proof {
    let (mut slow, mut fitting, mut others) = (0, 0, 0);
    for from in members {
        for to in members.iter().filter(|to| *to != from) {
            let pair = Pair::new(*from, *to);
            let wanted = in_force.link(pair).delay;
            let fits = world.link(pair).delay == wanted;
            (slow, others) = (slow + u32::from(!wanted.is_none()), others + u32::from(wanted.is_none()));
            fitting += u32::from(fits);
        }
    }
    let words = match slow {
        0 => format!("{fitting} of {others} directions are as quick as ever"),
        _ => {
            format!("{fitting} of {} directions are slow as asked for, {slow} of them at all", slow + others)
        }
    };
    Proof::new(fitting == slow + others, words)
}

fn name(process: Process) -> &'static str {
    match process {
        Process::Running => "running",
        Process::Stopped => "standing still",
        Process::Gone => "gone",
    }
}

fn are(world: &dyn VirtualEnsemble, members: &[MemberId], wanted: Process) -> Proof {
    let states: Vec<(MemberId, Process)> =
        members.iter().map(|member| (*member, world.process(*member))).collect();
    let words: Vec<String> =
        states.iter().map(|(member, state)| format!("n{} is {}", member.0, name(*state))).collect();
    Proof::new(states.iter().all(|(_, state)| *state == wanted), words.join("; "))
}

fn running(world: &dyn VirtualEnsemble, members: &[MemberId]) -> Proof {
    let running = members.iter().filter(|member| world.process(**member) == Process::Running).count();
    Proof::new(running == members.len(), format!("{running} of {} processes run", members.len()))
}

/// Clocks must be off by what is in force and by nothing else. Whoever is gone or stands still is not asked.
fn clocks(
    world: &dyn VirtualEnsemble,
    whose: &[MemberId],
    in_force: &InForce,
    members: &[MemberId],
) -> Proof {
    let mut holds = true;
    let mut words = Vec::new();
    let mut others = 0;
    for member in members {
        let is_target = whose.contains(member);
        if world.process(*member) != Process::Running {
            words.extend(
                is_target.then(|| format!("n{} is down or stopped, its clock was not read", member.0)),
            );
            holds &= !is_target || offset_ns(in_force, *member) == 0;
            continue;
        }
        let wanted = offset_ns(in_force, *member);
        let read = world.clock_offset_ms(*member).saturating_mul(1_000_000);
        let fits = read.abs_diff(wanted) <= CLOCK_ERROR_NS;
        holds &= fits;
        if is_target || !fits || wanted != 0 {
            words.push(format!("n{} reads {}", member.0, show_offset(read)));
        } else {
            others += 1;
        }
    }
    if others > 0 {
        words.push(format!("{others} clocks are true"));
    }
    Proof::new(holds, words.join("; "))
}

#[cfg(test)]
mod tests {
    use harness_core::mechanism::latency::{LATENCY, Slow};
    use harness_core::parameter::Parameters;
    use harness_core::seed;
    use harness_core::virtual_ensemble::Setting;
    use harness_systems::catalogue::Meant;
    use workloads::{Kind, Params, Workload};

    use super::*;
    use crate::systems::CATALOGUE;

    const MEMBERS: [MemberId; 3] = [MemberId(1), MemberId(2), MemberId(3)];

    fn world() -> Box<dyn VirtualEnsemble> {
        let setting = Setting {
            seed: 7,
            members: MEMBERS.len(),
            observers: 0,
            peer_timeout_ms: 1_000,
            session_timeout_ms: 4_000,
            operation_timeout_us: 1_000_000,
            clients: 1,
            bug: None,
        };
        let workload = Workload::new(Kind::REGISTER, Params::of_keys(1), seed::stream(7, "operations"));
        let workload = workload.expect("a workload");
        let systems = CATALOGUE.systems().filter_map(|entry| CATALOGUE.choose(entry.example, Meant::of(3)));
        let begin = systems.flatten().find_map(|system| CATALOGUE.world(&*system)).expect("one has worlds");
        let mut world = begin(setting, workload);
        MEMBERS.into_iter().for_each(|member| world.start(member));
        live(&mut *world, 5_000_000);
        world
    }

    fn live(world: &mut dyn VirtualEnsemble, for_us: u64) {
        let until = world.now_us() + for_us;
        while world.advance(until) {}
    }

    fn slow() -> Action {
        let parameters = Parameters::read(LATENCY.parameters, "latency=50ms").expect("parameters");
        Slow::around(MEMBERS[0], &MEMBERS, &parameters).into()
    }

    #[test]
    fn what_is_slow_is_shown_at_its_end_by_what_members_said_and_by_nothing_else() {
        let (mut world, slow) = (world(), slow());
        let ends = |world: &dyn VirtualEnsemble| {
            at_the_end(world, &slow, &Arrived::new()).expect("there is something to be seen").holds
        };
        slow.conditions().into_iter().for_each(|condition| world.impose(condition));
        assert!(!ends(&*world), "nobody has said anything since");
        live(&mut *world, 2_000_000);
        assert!(ends(&*world));
        // What it was to be like is no evidence: here what was said is not slow by as much.
        let parameters = Parameters::read(LATENCY.parameters, "latency=90ms").expect("parameters");
        let slower = Action::from(Slow::around(MEMBERS[0], &MEMBERS, &parameters));
        let seen = at_the_end(&*world, &slower, &Arrived::new()).expect("there is something to be seen");
        assert!(!seen.holds);
    }

    #[test]
    fn what_is_slow_no_more_is_shown_by_what_members_say_since() {
        let (mut world, slow, rest) = (world(), slow(), InForce::default());
        slow.conditions().into_iter().for_each(|condition| world.impose(condition));
        live(&mut *world, 2_000_000);
        let seen = are_quick(&*world, &slow, &rest).expect("members said something");
        assert!(!seen.holds, "what is kept is of the time before");
        slow.conditions().into_iter().for_each(|condition| world.lift(condition));
        assert!(are_quick(&*world, &slow, &rest).is_none(), "nobody has said anything since");
        live(&mut *world, 2_000_000);
        assert!(are_quick(&*world, &slow, &rest).expect("members said something").holds);
        assert!(are_quick(&*world, &slow, &InForce::only("F2", &slow)).is_none(), "others are slow");
    }
}
