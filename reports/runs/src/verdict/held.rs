//! Who held a value: which members showed it to clients, which showed their key without it, and what each
//! held at the end.
//!
//! Drawn from the answers of the history and the last reads, so it says what members *showed*, never what lay
//! on their disks. An answer shows the value when its version is not older than the value's own; without
//! versions, when it is the value itself. What lies between two answers is not known and is not filled in.

use checker::durability::FinalState;
use checker::history::{Datum, History, Op, OpKind, Outcome};
use checker::verdict::OpView;

use crate::broken::{value, written};

/// Stretches of one member at most: a member that answers now so and now so is told by the first of them.
const MOST_STRETCHES: usize = 12;

/// Answers of one member, one after the other, that all showed the value or all did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first of them.
    pub from_ns: u64,
    /// The last.
    pub to_ns: u64,
    /// Whether they showed it.
    pub with: bool,
    /// How many there were.
    pub answers: usize,
}

/// What one member showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The member.
    pub member: u64,
    /// By time.
    pub stretches: Vec<Stretch>,
    /// What it held at the end, and whether the value was in it.
    pub at_the_end: Option<(FinalState, Option<bool>)>,
}

/// What each of `members` showed of the value that `change` wrote, from the call of that change on. `bad` is
/// the answer that did not know of it.
pub fn by_member(
    history: &History,
    finals: &[FinalState],
    change: &OpView,
    bad: &OpView,
    members: impl Iterator<Item = u64>,
) -> Vec<Held> {
    let Datum::Int(key) = change.key else { return Vec::new() };
    let (Ok(key), Some(wanted)) = (u64::try_from(key), written(change)) else { return Vec::new() };
    let stale = value(bad);
    let shows = |version: Option<i64>, shown: Option<i64>| match (version, change.version) {
        (Some(version), Some(wanted)) => Some(version >= wanted),
        _ if shown == Some(wanted) => Some(true),
        _ if shown == stale => Some(false),
        _ => None,
    };
    let mut answers: Vec<(u64, u64, bool)> = history
        .ops()
        .iter()
        .filter(|op| op.key == key && op.outcome == Outcome::Ok && op.list().is_none())
        .filter_map(|op| {
            let at = op.complete_ns.filter(|at| *at >= change.invoke_ns)?;
            Some((op.node?, at, shows(op.version, shown(op))?))
        })
        .collect();
    answers.sort_unstable();
    members
        .map(|member| {
            let own = answers.iter().filter(|(node, _, _)| *node == member);
            let mut stretches: Vec<Stretch> = Vec::new();
            for &(_, at, with) in own {
                let full = stretches.len() == MOST_STRETCHES;
                match stretches.last_mut() {
                    Some(last) if last.with == with => {
                        last.to_ns = at;
                        last.answers += 1;
                    }
                    _ if full => break,
                    _ => stretches.push(Stretch { from_ns: at, to_ns: at, with, answers: 1 }),
                }
            }
            let state = finals.iter().find(|state| state.member == member && state.key == key);
            let at_the_end = state.map(|state| (state.clone(), shows(state.version, state.value)));
            Held { member, stretches, at_the_end }
        })
        .filter(|held| !held.stretches.is_empty() || held.at_the_end.is_some())
        .collect()
}

/// The value that an answer showed.
fn shown(op: &Op) -> Option<i64> {
    match op.kind() {
        OpKind::Read { value } => value,
        kind => kind.written(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::{Event, EventKind, Function, Value};

    /// One answer: function, value, from, to, member, version.
    fn answer(process: u64, f: Function, value: i64, to: u64, member: u64, version: i64) -> [Event; 2] {
        let asked = if f == Function::READ { Value::Null } else { Value::One(value) };
        let invoke = Event::new(process, EventKind::Invoke, f, 0, asked, to - 1);
        let mut ok = Event::new(process, EventKind::Ok, f, 0, Value::One(value), to);
        (ok.node, ok.version) = (Some(member), Some(version));
        [invoke, ok]
    }

    #[test]
    fn members_are_told_by_what_they_showed_and_held_at_the_end() {
        let answers = [
            answer(0, Function::WRITE, 41, 10, 1, 1),
            answer(1, Function::WRITE, 42, 20, 1, 2),
            answer(2, Function::READ, 42, 30, 2, 2),
            answer(3, Function::READ, 42, 40, 2, 2),
            answer(4, Function::READ, 41, 50, 2, 1),
        ];
        let history = History::from_events(answers.concat()).expect("a history");
        let ops = history.ops();
        let (change, bad) = (OpView::of(&ops[1], false), OpView::of(&ops[4], true));
        let state =
            FinalState { member: 3, key: 0, version: Some(1), value: Some(41), mzxid: None, list: None };
        let found = by_member(&history, &[state], &change, &bad, 1..=4);
        let members: Vec<u64> = found.iter().map(|held| held.member).collect();
        assert_eq!(members, [1, 2, 3], "of the fourth nothing is known");
        assert_eq!(
            found[1].stretches,
            [
                Stretch { from_ns: 30, to_ns: 40, with: true, answers: 2 },
                Stretch { from_ns: 50, to_ns: 50, with: false, answers: 1 },
            ]
        );
        assert_eq!(found[2].at_the_end.as_ref().map(|end| end.1), Some(Some(false)));
        assert_eq!(
            found[0].stretches.len(),
            1,
            "what came before the change was asked for says nothing of it"
        );
    }
}
