//! The order that the system itself claims, by zxid: replayed, and never trusted alone.
//!
//! ZooKeeper gives every update one zxid, a refused one too, and says it in the header of the reply. So the
//! order of the updates is claimed outright, and a read claims where the server stood when it answered.
//! [`claimed`] puts all operations in that order and does them one after the other on the model's tree, which
//! judges every answer and, as it knows the zxid of each change, also the zxids that Stats show. What comes
//! through is handed to [`verify`], which knows nothing of zxids. Only then is it a witness.
//!
//! Three things have no zxid of their own. An **open** update is placed where a Stat shows a zxid that can
//! only be its own; or just before an answer that fits with it and does not without it; or nowhere. The
//! **end** of a session that somebody was told of is placed in the same way, and at the latest where that was
//! told. A **read** whose answer does not fit where its header puts it (a server that reads beside its writer
//! says a zxid that is one off) or that has no header is tried at every state between the updates that must
//! precede and those that must follow it.
//!
//! # What is certain, and what is not
//!
//! The promise is: every update has one zxid, in the order in which the updates take effect, and that order
//! agrees with real time. A [`Contradiction`] follows from it and from the history:
//!
//! - two updates that were done have one zxid;
//! - an update returned before another was called and has the greater zxid (of a refused update: the reply
//!   says a zxid at which it stands, its own or an earlier one, so equal is allowed);
//! - an update's answer is not what comes of the updates before it, and nothing open could have come between;
//! - a read's answer is that of no state that it may see, and nothing open could have made another.
//!
//! It says that the zxids are wrong or the answers are. It is *not* by itself a violation of linearizability:
//! another order than the claimed one may explain the answers, and only a search can tell. Everything else
//! makes the witness useless and nothing more ([`Finding::Useless`]): an update without zxid, a guess about
//! an open update that does not work out, a read that would have to be tried in too many places.

mod evidence;
mod replay;
mod verify;
mod windows;

use super::op::{Ask, Op};
use super::{Misfit, Tree};
use crate::history::Rank;
use crate::model::Call;

pub use verify::verify;

/// What the target promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// All operations are linearizable.
    Linearizable,
    /// Updates are linearizable; a read may see an older state, but none older than its session saw and none
    /// of the future.
    OrderedSequential,
}

/// What comes of the claimed order.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It explains every answer: positions among the calls, verified.
    Confirmed(Vec<usize>),
    /// The zxids contradict what they promise.
    Contradicted(Contradiction),
    /// It does not help, and why.
    Useless(String),
}

/// Two statements of the system that can't both be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Which rule it is about.
    pub kind: Kind,
    /// The operations, as positions among the calls.
    pub calls: Vec<usize>,
    /// It in words.
    pub sentence: String,
}

/// Rules that zxids keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each update has its own.
    SameZxid,
    /// They agree with real time.
    Backwards,
    /// Answers follow from what precedes.
    Answer(Misfit),
}

/// What an operation is to the claimed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// An update that was done, with its zxid.
    Done(u64),
    /// A refused update, or a read with a header: it sees the tree at that zxid.
    Stands(u64),
    /// A read that does not say where.
    Lost,
    /// What is placed when something shows it.
    Floats,
}

fn role(call: &Call<Op>) -> Option<Role> {
    let op = &call.op;
    Some(match (op.zxid, op.ask.is_update()) {
        _ if call.is_open() => Role::Floats,
        (Some(zxid), true) if !matches!(op.answer, Some(super::Answer::Refused { .. })) => Role::Done(zxid),
        (Some(zxid), _) => Role::Stands(zxid),
        (None, false) => Role::Lost,
        (None, true) if op.ask == Ask::End => Role::Floats,
        (None, true) => return None,
    })
}

/// Tries the order that the system claims.
#[must_use]
pub fn claimed(tree: &Tree, calls: &[Call<Op>], promise: Promise) -> Finding {
    let mut standing: Vec<(u64, u8, Rank, usize)> = Vec::with_capacity(calls.len());
    let mut floating = Vec::new();
    let mut lost = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        match role(call) {
            Some(Role::Done(zxid)) => standing.push((zxid, 0, call.call, at)),
            Some(Role::Stands(zxid)) => standing.push((zxid, 1, call.call, at)),
            Some(Role::Floats) => floating.push(at),
            Some(Role::Lost) => lost.push(at),
            None => return Finding::Useless(format!("operation {} is an update without zxid", call.index)),
        }
    }
    standing.sort_unstable();
    if let Some(contradiction) = contradiction_of_zxids(calls, &standing) {
        return Finding::Contradicted(contradiction);
    }
    let floating = evidence::pin(calls, &mut standing, floating);
    let steps: Vec<(Option<u64>, usize)> =
        standing.iter().map(|&(zxid, class, _, at)| ((class == 0).then_some(zxid), at)).collect();
    drop(standing);
    let replayed = match replay::replay(tree, calls, &steps, &floating) {
        Ok(replayed) => replayed,
        Err(finding) => return finding,
    };
    lost.extend(&replayed.misfits);
    let mut steps = replayed.steps;
    if !lost.is_empty() {
        steps = match windows::place(tree, calls, steps, &lost, promise) {
            Ok(steps) => steps,
            Err(finding) => return finding,
        };
    }
    let positions = |steps: &[(Option<u64>, usize)]| steps.iter().map(|(_, at)| *at).collect::<Vec<usize>>();
    let mut order = positions(&steps);
    let mut verdict = verify(tree, calls, &order, promise);
    if verdict.is_err() {
        // A stale read fits where it says to stand, but it has no business there.
        let strayed = windows::strayed(calls, &steps, promise);
        if !strayed.is_empty() {
            steps = match windows::place(tree, calls, steps, &strayed, promise) {
                Ok(steps) => steps,
                Err(finding) => return finding,
            };
            order = positions(&steps);
            verdict = verify(tree, calls, &order, promise);
        }
    }
    match verdict {
        Ok(()) => Finding::Confirmed(order),
        Err(why) => Finding::Useless(format!("the order by zxid is none: {why}")),
    }
}

/// Whether something may have come before this return that nobody knows the place of, or was put before it by
/// guess: then a misfit proves nothing.
fn has_excuse(calls: &[Call<Op>], steps: &[(Option<u64>, usize)], before: Rank) -> bool {
    let unplaced = |call: &Call<Op>| call.is_open() || (call.op.ask == Ask::End && call.op.zxid.is_none());
    calls.iter().any(|call| call.call < before && unplaced(call))
        || steps.iter().any(|&(_, at)| calls[at].is_open())
}

/// The contradictions that are seen without a replay.
fn contradiction_of_zxids(calls: &[Call<Op>], standing: &[(u64, u8, Rank, usize)]) -> Option<Contradiction> {
    let name = |at: usize| format!("operation {} ({})", calls[at].index, calls[at].op);
    for pair in standing.windows(2) {
        let [(one, 0, _, first), (other, 0, _, second)] = *pair else { continue };
        if one == other {
            let sentence = format!("{} and {} were both done as {one:#x}", name(first), name(second));
            return Some(Contradiction { kind: Kind::SameZxid, calls: vec![first, second], sentence });
        }
    }
    // Of the updates so far, the one that was called last.
    let mut latest: Option<(Rank, usize, u64)> = None;
    for &(zxid, _, call, at) in standing.iter().filter(|(.., at)| calls[*at].op.ask.is_update()) {
        if let Some((called, before, its)) = latest
            && calls[at].ret < called
            && its < zxid
        {
            let sentence = format!(
                "{} returned with zxid {zxid:#x} before {} was called, which has the earlier zxid {its:#x}",
                name(at),
                name(before)
            );
            return Some(Contradiction { kind: Kind::Backwards, calls: vec![at, before], sentence });
        }
        if latest.is_none_or(|(called, ..)| called < call) {
            latest = Some((call, at, zxid));
        }
    }
    None
}

#[cfg(test)]
mod tests;
