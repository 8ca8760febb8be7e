//! Looks into a world whether a fault bites, and whether it is gone.
//!
//! There is nothing to be asked for and no doubt about the answer, so what is looked at is what decides:
//! whether a direction lets anything pass, how much has passed, whether a process is there, what a clock
//! shows. That it is as was asked for is still not taken for granted: the proof reads the world, and never
//! what was written down.

use std::collections::BTreeMap;

use lab_sim::planned::{Ensemble, Process};
use runs::member::MemberId;
use runs::results::Reach;
use runs::views;

use super::server;
use crate::cluster::{Cut, Severing};
use crate::events::EventLog;
use crate::links::protocol::Pair;
use harness_core::fault::action::Action;
use harness_core::fault::in_force::{Expected, InForce};
use harness_core::fault::scene::show_offset;
use harness_core::nemeses::Look;
use harness_core::proof::Proof;

/// A clock is shifted in whole milliseconds.
const CLOCK_ERROR_NS: u64 = 1_000_000;

/// Messages that have arrived in each direction of a cut.
pub(super) type Arrived = BTreeMap<Pair, u64>;

/// The same, at this moment.
pub(super) fn arrived(world: &dyn Ensemble, cut: &Cut) -> Arrived {
    cut.pairs.iter().map(|pair| (*pair, world.delivered(server(pair.from), server(pair.to)))).collect()
}

/// Whether an injected fault bites.
pub(super) fn bites(
    world: &dyn Ensemble,
    action: &Action,
    in_force: &InForce,
    members: &[MemberId],
) -> Proof {
    let mut seen = match action {
        Action::Cut(cut) => {
            let network = network(world, in_force, members);
            match cut.how {
                Severing::Silence => network,
                Severing::Reject => network.and(Proof::new(true, "connections are reset".to_owned())),
            }
        }
        Action::Kill { members } | Action::Replace { members, .. } => are(world, members, Process::Gone),
        Action::Pause { members } => are(world, members, Process::Paused),
        Action::Clock { members: whose, .. } => clocks(world, whose, in_force, members),
        Action::Application { .. } | Action::Own { .. } => {
            Proof::new(false, "it is of processes alone".to_owned())
        }
    };
    if seen.detail.matrix.is_none() {
        seen.detail.matrix = Some(in_force.matrix(members));
    }
    seen
}

/// Whether a healed fault is gone among those that are still in force. When none is, all must be well again.
pub(super) fn is_gone(world: &dyn Ensemble, events: &EventLog, look: &Look, members: &[MemberId]) -> Proof {
    let Look { action, in_force: rest, .. } = look;
    let mut seen = if rest.is_empty() {
        let well =
            network(world, rest, members).and(running(world, members)).and(clocks(world, &[], rest, members));
        let views = events.views();
        let serve = views::all_serve(&views);
        let stand = match (serve, views::leader_of(&views)) {
            (true, Some(leader)) => format!("all serve in epoch {} under n{}", leader.epoch, leader.id.0),
            _ => views::laggards(&views),
        };
        well.and(Proof::new(serve, stand))
    } else {
        let part = match action {
            Action::Cut(_) => network(world, rest, members),
            Action::Kill { members: whom }
            | Action::Replace { members: whom, .. }
            | Action::Pause { members: whom } => {
                let absent = rest.absent();
                let there: Vec<MemberId> =
                    whom.iter().copied().filter(|member| !absent.contains(member)).collect();
                running(world, &there)
            }
            Action::Clock { members: whose, .. } => clocks(world, whose, rest, members),
            Action::Application { .. } | Action::Own { .. } => {
                Proof::new(false, "it is of processes alone".to_owned())
            }
        };
        part.and(Proof::new(true, format!("{} still in force", rest.names().join(" "))))
    };
    seen.detail.epoch = views::highest_epoch(&events.views());
    seen
}

/// What passed a cut while it held, and what wanted to.
pub(super) fn at_the_end_of_a_cut(world: &dyn Ensemble, cut: &Cut, before: &Arrived) -> Proof {
    let now = arrived(world, cut);
    let crossed: u64 = now.iter().map(|(pair, count)| count - before.get(pair).copied().unwrap_or(0)).sum();
    let waiting: u64 = cut.pairs.iter().map(|pair| world.waiting(server(pair.from), server(pair.to))).sum();
    Proof::new(crossed == 0, format!("{crossed} messages crossed while it held; {waiting} wait"))
}

/// Severed directions must let nothing pass, and all others everything.
fn network(world: &dyn Ensemble, in_force: &InForce, members: &[MemberId]) -> Proof {
    let (mut severed, mut crossed, mut open, mut passing) = (0, 0, 0, 0);
    let mut matrix = Vec::new();
    for from in members {
        let mut row = Vec::new();
        for to in members {
            let pair = Pair::new(*from, *to);
            let passes = from == to || world.passes(server(*from), server(*to));
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

fn name(process: Process) -> &'static str {
    match process {
        Process::Running => "running",
        Process::Paused => "standing still",
        Process::Gone => "gone",
    }
}

fn are(world: &dyn Ensemble, members: &[MemberId], wanted: Process) -> Proof {
    let states: Vec<(MemberId, Process)> =
        members.iter().map(|member| (*member, world.process(server(*member)))).collect();
    let words: Vec<String> =
        states.iter().map(|(member, state)| format!("n{} is {}", member.0, name(*state))).collect();
    Proof::new(states.iter().all(|(_, state)| *state == wanted), words.join("; "))
}

fn running(world: &dyn Ensemble, members: &[MemberId]) -> Proof {
    let running = members.iter().filter(|member| world.process(server(**member)) == Process::Running).count();
    Proof::new(running == members.len(), format!("{running} of {} processes run", members.len()))
}

/// Clocks must be off by what is in force and by nothing else. Whoever is gone or stands still is not asked.
fn clocks(world: &dyn Ensemble, whose: &[MemberId], in_force: &InForce, members: &[MemberId]) -> Proof {
    let mut holds = true;
    let mut words = Vec::new();
    let mut others = 0;
    for member in members {
        let is_target = whose.contains(member);
        if world.process(server(*member)) != Process::Running {
            words.extend(
                is_target.then(|| format!("n{} is down or stopped, its clock was not read", member.0)),
            );
            holds &= !is_target || in_force.offset_ns(*member) == 0;
            continue;
        }
        let wanted = in_force.offset_ns(*member);
        let read = world.clock_offset_ms(server(*member)).saturating_mul(1_000_000);
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
