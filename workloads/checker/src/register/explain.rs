//! Says in one sentence why there is no order of a register's operations.
//!
//! What contradicts itself on a register has a name, such as a value that nobody wrote or that had been
//! replaced. Where nothing does, the sentence is that of any object (`search/explain`): which operation has
//! no place, and what the register could hold until it returned.

use super::blocks::{self, Contradiction, Ends, Tested};
use super::problem::{Entry, NIL, Problem, Val};
use crate::budget::Budget;
use crate::history::{Op, OpKind, Outcome, called, describe, returned};
use crate::model::register::{Action, Register};
use crate::search::Found;
use crate::search::explain::{MAX_STATES, until};
use crate::search::shrink::Shrunk;
use crate::verdict::{Counterexample, OpView};

/// A part of a register's history that has no order.
type Part = Shrunk<Action>;

/// The counterexample of a violation among `ops`, the list that `problem` was made from.
#[must_use]
pub fn counterexample(problem: &Problem, ops: &[&Op], shrunk: &Part) -> Counterexample {
    let op = |part: usize| ops[problem.entries[shrunk.from[part]].op];
    let contradiction = contradiction(problem, shrunk);
    let (mut sentence, culprit) = match &contradiction {
        Some(contradiction) => told(contradiction, &op),
        None => stuck(shrunk, &op),
    };
    if let Some(contradiction) = &contradiction
        && counts(ops)
    {
        sentence.push_str(of_increments(contradiction, ops, &op));
    }
    let rechecked = matches!(shrunk.plain, Found::NoOrder { .. });
    let view = |part: usize, impossible: bool| OpView::of(op(part), impossible);
    Counterexample::drawn(sentence, shrunk.from.len(), culprit, view, ops.len(), rechecked)
}

/// Why the part has no order, if the test by blocks sees it. What the part takes for open may have returned,
/// which makes a contradiction no less of one.
fn contradiction(problem: &Problem, shrunk: &Part) -> Option<Contradiction> {
    // Of what was before the part says nothing, so it can't say that nobody did something.
    if shrunk.past.is_some() {
        return None;
    }
    let entries = shrunk.part.iter().zip(&shrunk.from);
    let entries = entries.map(|(call, &from)| Entry { action: call.op, ..problem.entries[from] });
    match blocks::test(&Problem::new(entries.collect())) {
        Tested::Refuted(contradiction) => Some(contradiction),
        Tested::Order(_) | Tested::Ambiguous => None,
    }
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
fn stuck<'a>(shrunk: &Part, op: &impl Fn(usize) -> &'a Op) -> (String, Option<usize>) {
    let count = shrunk.from.len();
    let others = match count {
        2 => "the other operation".to_owned(),
        _ => format!("the {} other operations", count - 1),
    };
    let Found::NoOrder { stuck_at: at } = shrunk.plain else {
        return (format!("no order of {count} operations explains all their answers"), None);
    };
    let what = describe(op(at));
    if count == 1 {
        let why = match shrunk.part[at].op.required() {
            Some(_) => "although nobody had ever asked to write that when it returned",
            None => "although nobody had ever written anything",
        };
        return (format!("{what}, {why}"), Some(at));
    }
    let states = until(&Register::default(), &shrunk.calls(), at, &Budget::default()).unwrap_or_default();
    let text = if states.is_empty() || states.len() > MAX_STATES {
        format!("{what}; no order of these {count} operations explains all their answers")
    } else {
        let held: Vec<String> = states.into_iter().map(|holds| value_name(shrunk, holds, op)).collect();
        let held = any_of(&held);
        format!("{what}, but in every order that explains {others} the register holds {held} then")
    };
    (text, Some(at))
}

/// The values in one sentence: `1, 2 or 3`.
fn any_of(values: &[String]) -> String {
    match values {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// A value as the operations have it.
fn value_name<'a>(shrunk: &Part, value: Val, op: &impl Fn(usize) -> &'a Op) -> String {
    let shown = shrunk.part.iter().enumerate().filter_map(|(at, call)| match op(at).kind() {
        OpKind::Read { value: Some(read) } if call.op.required() == Some(value) => Some(read),
        kind if call.op.written() == Some(value) => kind.written(),
        _ => None,
    });
    let mut shown = shown.filter(|_| value != NIL);
    shown.next().map_or_else(|| "nothing".to_owned(), |value| value.to_string())
}
