//! Says in one sentence why there is no order of a register's operations.
//!
//! Drawing is shared by all (`Counterexample::drawn`). The sentence stays apart from that of any object
//! (`search/explain`): what contradicts itself on a register has a name, such as a value that nobody wrote or
//! that had been replaced. Of an object in general only the states are known that its operations do not fit.

use super::blocks::{Contradiction, Ends};
use super::problem::{Problem, Val};
use super::shrink::Shrunk;
use super::{Found, dead_ends};
use crate::history::{Op, OpKind, Outcome, called, describe, returned};
use crate::verdict::{Counterexample, OpView};

/// The counterexample of a violation among `ops`, the list that `problem` was made from.
#[must_use]
pub fn counterexample(problem: &Problem, ops: &[&Op], shrunk: &Shrunk) -> Counterexample {
    let op = |part: usize| ops[problem.entries[shrunk.from[part]].op];
    let (mut sentence, culprit) = match &shrunk.contradiction {
        Some(contradiction) => told(contradiction, &op),
        None => stuck(shrunk, &op),
    };
    if let Some(contradiction) = &shrunk.contradiction
        && counts(ops)
    {
        sentence.push_str(of_increments(contradiction, ops, &op));
    }
    let rechecked = matches!(shrunk.plain, Found::NoOrder { .. });
    let view = |part: usize, impossible: bool| OpView::of(op(part), impossible);
    Counterexample::drawn(sentence, shrunk.from.len(), culprit, view, ops.len(), rechecked)
}

/// Whether the register is used as a counter: all that changes it are compare-and-sets to a larger value, but
/// for those that create it.
fn counts(ops: &[&Op]) -> bool {
    let adds = |op: &&Op| matches!(op.kind(), OpKind::Cas { from: Some(from), to } if from < to);
    let creates = |op: &&Op| op.kind().written() == Some(0) && !matches!(op.kind(), OpKind::Cas { .. });
    ops.iter().any(adds) && ops.iter().all(|op| !op.is_change() || adds(op) || creates(op))
}

/// What a contradiction means for a counter, as the end of its sentence.
fn of_increments<'a>(
    contradiction: &Contradiction,
    ops: &[&Op],
    op: &impl Fn(usize) -> &'a Op,
) -> &'static str {
    const REFUSED: &str = ": an increment that was refused was made";
    const LOST: &str = ": what was added before that is lost";
    match contradiction {
        Contradiction::TakenTwice { .. } => ": one of these increments is lost",
        Contradiction::Gone { seen_by, replaced_by } if replaced_by.is_empty() => {
            let seen = match op(*seen_by).kind() {
                OpKind::Read { value } | OpKind::Cas { from: value, .. } => value,
                _ => None,
            };
            let refused = |op: &&Op| op.outcome == Outcome::Fail && op.kind().written() == seen;
            if ops.iter().any(refused) { REFUSED } else { ": an increment was doubled, or invented" }
        }
        Contradiction::Entangled { .. } => LOST,
        Contradiction::Inverted { earlier, .. } if matches!(op(*earlier).kind(), OpKind::Read { .. }) => LOST,
        Contradiction::Denied { .. } => REFUSED,
        _ => "",
    }
}

/// The sentence of a contradiction and the operation whose answer cannot be.
fn told<'a>(contradiction: &Contradiction, op: &impl Fn(usize) -> &'a Op) -> (String, Option<usize>) {
    let named = |at: usize| describe(op(at));
    match contradiction {
        Contradiction::Gone { seen_by, replaced_by } if replaced_by.is_empty() => {
            (format!("{}, a value that nobody ever wrote", named(*seen_by)), Some(*seen_by))
        }
        Contradiction::Gone { seen_by, replaced_by } => {
            let by: Vec<String> = replaced_by.iter().map(|&at| named(at)).collect();
            let text = format!("{}, a value that was replaced: {}", named(*seen_by), by.join(", "));
            (text, Some(*seen_by))
        }
        &Contradiction::Denied { change, seen_by } => {
            let text =
                format!("{}, but {} and was told that it did not happen", named(seen_by), named(change));
            (text, Some(seen_by))
        }
        &Contradiction::TakenTwice { first, second } => {
            let text = format!(
                "{} and {} both replaced the same value, which was written only once",
                named(first),
                named(second)
            );
            (text, Some(second))
        }
        Contradiction::Cycle { members } => {
            let all: Vec<String> = members.iter().map(|&member| named(member)).collect();
            let text =
                format!("{}: each needs a value that only comes from these themselves", all.join(", "));
            (text, members.last().copied())
        }
        &Contradiction::Inverted { earlier, later } => inverted(op(earlier), op(later), earlier, later),
        Contradiction::Entangled { one, other } => entangled(one, other, op),
        &Contradiction::Held { before, refused, after } => {
            let since = match before {
                Some(before) => format!("{} before that", named(before)),
                None => "nobody had written anything".to_owned(),
            };
            let text = format!(
                "{}, although the register held that value throughout: {since}, and {} after it",
                named(refused),
                named(after)
            );
            (text, Some(refused))
        }
    }
}

fn inverted(earlier_op: &Op, later_op: &Op, earlier: usize, later: usize) -> (String, Option<usize>) {
    if let Some(written) = earlier_op.kind().written()
        && later_op.kind() == (OpKind::Read { value: Some(written) })
    {
        let text = format!(
            "{} before it was written: process {} invoked the only write of {written} at {}",
            describe(later_op),
            earlier_op.process,
            called(earlier_op),
        );
        return (text, Some(later));
    }
    let text = format!(
        "{} must have come before {} in the order of values, but was invoked at {}, after that one had \
            returned at {}",
        describe(earlier_op),
        describe(later_op),
        called(earlier_op),
        returned(later_op),
    );
    (text, Some(earlier))
}

/// Both blocks are in the same position. The beginning comes first; else the value that is shown last is the
/// one to wonder about.
fn entangled<'a>(
    one: &Ends<usize>,
    other: &Ends<usize>,
    op: &impl Fn(usize) -> &'a Op,
) -> (String, Option<usize>) {
    let one_is_shown_last = op(one.last).call >= op(other.last).call;
    let (older, newer) = match (one.first, other.first) {
        (None, _) => (one, other),
        (_, None) => (other, one),
        _ if one_is_shown_last => (one, other),
        _ => (other, one),
    };
    // Of two blocks one at most is the beginning.
    let newer_first = newer.first.unwrap_or(newer.last);
    let (impossible, since) = (describe(op(older.last)), describe(op(newer_first)));
    let text = match older.first {
        None => format!("{impossible}, as if nothing had been written, but before that {since}"),
        Some(older_first) => {
            let after = describe(op(older_first));
            let later = if newer_first == newer.last {
                "which was invoked only".to_owned()
            } else {
                format!("and {} was invoked", describe(op(newer.last)))
            };
            format!(
                "{impossible}, but that value had been replaced: before that {since}, {later} after {after} \
                 had returned; no value was written twice"
            )
        }
    };
    (text, Some(older.last))
}

/// When no two operations contradict each other outright: what the register may hold at the moment, and why
/// that does not do.
fn stuck<'a>(shrunk: &Shrunk, op: &impl Fn(usize) -> &'a Op) -> (String, Option<usize>) {
    let count = shrunk.from.len();
    let others = match count {
        2 => "the other operation".to_owned(),
        _ => format!("the {} other operations", count - 1),
    };
    let dead_ends = dead_ends::of(&shrunk.part).unwrap_or_default();
    let value = |holds: Val| value_name(shrunk, holds, op);
    match (dead_ends.first(), shrunk.stuck_at) {
        (_, Some(at)) if count == 1 => {
            let why = match shrunk.part.entries[at].action.required() {
                Some(_) => "although nobody had ever asked to write that when it returned",
                None => "although nobody had ever written anything",
            };
            (format!("{}, {why}", describe(op(at))), Some(at))
        }
        (Some(first), _) if dead_ends.iter().all(|end| end.blocked == first.blocked) => {
            let held: Vec<String> = dead_ends.iter().map(|end| value(end.holds)).collect();
            let text = format!(
                "{}, but in every order that explains {others} the register holds {} then",
                describe(op(first.blocked)),
                listed_values(&held)
            );
            (text, Some(first.blocked))
        }
        (Some(first), _) => {
            let ends = dead_ends.iter().map(|end| {
                format!("the register holds {} when {}", value(end.holds), describe(op(end.blocked)))
            });
            let text = format!(
                "no order explains the answers of these {count} operations: {}",
                ends.collect::<Vec<_>>().join("; or ")
            );
            let culprit = shrunk.stuck_at.filter(|at| dead_ends.iter().any(|end| end.blocked == *at));
            (text, culprit.or(Some(first.blocked)))
        }
        (None, Some(at)) if at < count => {
            let text = format!(
                "{}; no order of these {count} operations explains all their answers",
                describe(op(at))
            );
            (text, Some(at))
        }
        _ => (format!("no order of {count} operations explains all their answers"), None),
    }
}

fn listed_values(values: &[String]) -> String {
    match values {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// A value as the operations have it.
fn value_name<'a>(shrunk: &Shrunk, value: Val, op: &impl Fn(usize) -> &'a Op) -> String {
    let entries = shrunk.part.entries.iter().enumerate();
    let shown = entries.filter_map(|(at, entry)| match (entry.action.written(), op(at).kind()) {
        (Some(to), OpKind::Read { value: Some(read) }) if to == value => Some(read),
        (Some(to), kind) if to == value => kind.written(),
        _ => None,
    });
    shown.map(|value| value.to_string()).next().unwrap_or_else(|| "nothing".to_owned())
}
