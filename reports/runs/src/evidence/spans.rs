//! What each member was, and when: from its events to intervals, for the timeline.

use std::collections::BTreeMap;

use crate::clock::RunNs;
use crate::events::{Event, Said, Stamped};
use crate::member::MemberId;
use crate::results::{MemberSpan, Role};

/// A member's state between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    role: Role,
    epoch: Option<u32>,
}

const DOWN: State = State { role: Role::Down, epoch: None };
const LOOKING: State = State { role: Role::Looking, epoch: None };
const ANSWERING: State = State { role: Role::Answering, epoch: None };

struct Life {
    since: RunNs,
    state: State,
    /// What it is again when its process goes on.
    before_pause: Option<State>,
}

/// The intervals of every member, by member and time. `end` closes the last ones.
pub fn from_events(events: &[Stamped], members: &[MemberId], end: RunNs) -> Vec<MemberSpan> {
    let mut lives: BTreeMap<MemberId, Life> =
        members.iter().map(|id| (*id, Life { since: 0, state: DOWN, before_pause: None })).collect();
    let mut spans = Vec::new();
    for stamped in events {
        let Some(life) = lives.get_mut(&stamped.node) else { continue };
        let next = next_state(life, stamped);
        if next != life.state {
            spans.extend(close(stamped.node, life, stamped.time));
            life.state = next;
            life.since = stamped.time;
        }
    }
    for (id, life) in &lives {
        spans.extend(close(*id, life, end));
    }
    spans.sort_by_key(|span| (span.node, span.from_ns));
    spans
}

fn next_state(life: &mut Life, stamped: &Stamped) -> State {
    match &stamped.event {
        Event::Spawned => {
            life.before_pause = None;
            LOOKING
        }
        Event::Exited(_) => DOWN,
        Event::Paused => {
            life.before_pause = Some(life.state);
            State { role: Role::Paused, epoch: life.state.epoch }
        }
        Event::Resumed => life.before_pause.take().unwrap_or(life.state),
        Event::Said(Said::Looking { .. }) => LOOKING,
        Event::Said(Said::Established { leader, epoch }) => {
            let role = if *leader == stamped.node.0 { Role::Leading } else { Role::Following };
            State { role, epoch: Some(*epoch) }
        }
        // Of one that tells whom it follows this is known already.
        Event::Said(Said::Serving {}) if life.state == LOOKING => ANSWERING,
        Event::Said(_) | Event::Clock { .. } => life.state,
    }
}

fn close(node: MemberId, life: &Life, to: RunNs) -> Option<MemberSpan> {
    let State { role, epoch } = life.state;
    (to > life.since).then_some(MemberSpan { node: node.0, from_ns: life.since, to_ns: to, role, epoch })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: RunNs, event: Event) -> Stamped {
        Stamped { time, node: MemberId(1), event }
    }

    #[test]
    fn one_that_tells_no_leader_answers_or_does_not() {
        let events = [
            at(5, Event::Spawned),
            at(10, Event::Said(Said::Serving {})),
            at(20, Event::Said(Said::Looking { left: None })),
            at(30, Event::Said(Said::Serving {})),
        ];
        let roles: Vec<Role> =
            from_events(&events, &[MemberId(1)], 60).iter().map(|span| span.role).collect();
        assert_eq!(roles, [Role::Down, Role::Looking, Role::Answering, Role::Looking, Role::Answering]);
    }

    #[test]
    fn a_life_with_a_pause_and_a_death_has_no_gaps() {
        let events = [
            at(5, Event::Spawned),
            at(10, Event::Said(Said::Established { leader: 1, epoch: 3 })),
            at(20, Event::Paused),
            at(30, Event::Resumed),
            at(35, Event::Said(Said::Looking { left: Some(1) })),
            at(40, Event::Said(Said::Established { leader: 2, epoch: 4 })),
            at(50, Event::Exited("killed by signal 9".to_owned())),
        ];
        let spans = from_events(&events, &[MemberId(1)], 60);
        let roles: Vec<(Role, u64, Option<u32>)> =
            spans.iter().map(|span| (span.role, span.from_ns, span.epoch)).collect();
        assert_eq!(
            roles,
            [
                (Role::Down, 0, None),
                (Role::Looking, 5, None),
                (Role::Leading, 10, Some(3)),
                (Role::Paused, 20, Some(3)),
                (Role::Leading, 30, Some(3)),
                (Role::Looking, 35, None),
                (Role::Following, 40, Some(4)),
                (Role::Down, 50, None),
            ]
        );
        assert!(spans.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert_eq!(spans.last().map(|span| span.to_ns), Some(60));
    }
}
