//! Reads that do not say where they stand, or do not fit there: tried wherever real time allows.
//!
//! Of the updates in their order, some returned before the read was called and must precede it; some were
//! called after it returned and must follow. Between them it may stand anywhere. Among the places where its
//! answer fits, one is preferred that also agrees with the reads around it.

use std::collections::HashMap;

use super::{Contradiction, Finding, Kind, Promise, has_excuse};
use crate::history::{NEVER, Rank};
use crate::model::Call;
use crate::model::znode::{Misfit, Op, Tree};

/// States at which one read is tried.
const MOST_STATES: usize = 1 << 10;

/// States at which all of them are, beyond one for each operation.
const MOST_TRIES: usize = 1 << 22;

/// A read with the places that it may have: after so many steps.
struct Searching {
    at: usize,
    /// By the updates.
    first: usize,
    last: usize,
    /// By all operations that have a place.
    preferred: (usize, usize),
    found: Option<usize>,
    tried: usize,
    misfit: Misfit,
}

type Steps = Vec<(Option<u64>, usize)>;

/// Puts the reads `lost` among `steps`.
pub(super) fn place(
    tree: &Tree,
    calls: &[Call<Op>],
    mut steps: Steps,
    lost: &[usize],
    promise: Promise,
) -> Result<Steps, Finding> {
    // What is lost has no place yet.
    let is_lost: std::collections::HashSet<usize> = lost.iter().copied().collect();
    steps.retain(|(_, at)| !is_lost.contains(at));
    let mut searching = windows(calls, &steps, lost, promise);
    searching.sort_by_key(|read| (read.first, calls[read.at].call));
    try_all(tree, calls, &steps, &mut searching)?;
    let mut found: Vec<(usize, Rank, usize)> = Vec::with_capacity(searching.len());
    for read in searching {
        let call = &calls[read.at];
        let Some(after) = read.found else {
            let sentence = format!(
                "operation {} ({}) shows the tree as it never was while it could see it: {}",
                call.index, call.op, read.misfit
            );
            let exhausted = read.tried > read.last.saturating_sub(read.first);
            return Err(if exhausted && !has_excuse(calls, &steps, call.ret) {
                Finding::Contradicted(Contradiction {
                    kind: Kind::Answer(read.misfit),
                    calls: vec![read.at],
                    sentence,
                })
            } else {
                Finding::Useless(sentence)
            });
        };
        found.push((after, call.call, read.at));
    }
    found.sort_unstable();
    let mut placed = Vec::with_capacity(steps.len() + found.len());
    let mut reads = found.into_iter().peekable();
    for (position, step) in steps.into_iter().enumerate() {
        while let Some((_, _, at)) = reads.next_if(|(after, ..)| *after <= position) {
            placed.push((None, at));
        }
        placed.push(step);
    }
    placed.extend(reads.map(|(_, _, at)| (None, at)));
    Ok(placed)
}

/// Reads that stand where the updates, in real time, do not let them.
pub(super) fn strayed(calls: &[Call<Op>], steps: &[(Option<u64>, usize)], promise: Promise) -> Vec<usize> {
    let reads: Vec<(usize, usize)> = (steps.iter().enumerate())
        .filter(|(_, (_, at))| !calls[*at].op.ask.is_update())
        .map(|(position, (_, at))| (position, *at))
        .collect();
    let lost: Vec<usize> = reads.iter().map(|(_, at)| *at).collect();
    let windows = windows(calls, steps, &lost, promise);
    let with_windows = reads.into_iter().zip(windows);
    with_windows
        .filter(|((position, _), read)| *position < read.first || *position > read.last)
        .map(|((_, at), _)| at)
        .collect()
}

/// An operation and its position.
type Placed<'a> = (usize, &'a Call<Op>);

/// Bounds on the place of whatever was called and returned at given moments.
struct Bounds {
    /// By return: the position behind the last of all that returned until then.
    behind: Vec<(Rank, usize)>,
    /// By call, latest first: the position of the first of all that were called from then on.
    before: Vec<(Rank, usize)>,
}

impl Bounds {
    fn of<'a>(steps: impl Iterator<Item = Placed<'a>>) -> Self {
        let (mut behind, mut before) = (Vec::new(), Vec::new());
        for (position, call) in steps {
            before.push((call.call, position));
            if call.ret != NEVER {
                behind.push((call.ret, position + 1));
            }
        }
        behind.sort_unstable();
        let mut most = 0;
        for (_, position) in &mut behind {
            most = most.max(*position);
            *position = most;
        }
        before.sort_unstable_by(|one, other| other.cmp(one));
        let mut least = usize::MAX;
        for (_, position) in &mut before {
            least = least.min(*position);
            *position = least;
        }
        Self { behind, before }
    }

    fn window(&self, call: &Call<Op>, steps: usize) -> (usize, usize) {
        let returned = self.behind.partition_point(|(ret, _)| *ret < call.call);
        let called = self.before.partition_point(|(other, _)| *other > call.ret);
        let first = returned.checked_sub(1).map_or(0, |at| self.behind[at].1);
        let last = called.checked_sub(1).map_or(steps, |at| self.before[at].1);
        (first, last)
    }
}

fn windows(
    calls: &[Call<Op>],
    steps: &[(Option<u64>, usize)],
    lost: &[usize],
    promise: Promise,
) -> Vec<Searching> {
    let with_calls = || steps.iter().enumerate().map(|(position, &(_, at))| (position, &calls[at]));
    let of_session = |op: &Call<Op>| op.op.session.map_or((false, op.process), |session| (true, session));
    let updates = Bounds::of(with_calls().filter(|(_, call)| call.op.ask.is_update()));
    let all = Bounds::of(with_calls());
    let mut sessions: HashMap<(bool, u64), Vec<Placed<'_>>> = HashMap::new();
    if promise == Promise::OrderedSequential {
        for &at in lost {
            sessions.entry(of_session(&calls[at])).or_default();
        }
        for (position, call) in with_calls() {
            if let Some(own) = sessions.get_mut(&of_session(call)) {
                own.push((position, call));
            }
        }
    }
    let sessions: HashMap<(bool, u64), Bounds> =
        sessions.into_iter().map(|(session, own)| (session, Bounds::of(own.into_iter()))).collect();
    lost.iter()
        .map(|&at| {
            let call = &calls[at];
            let (mut first, last) = updates.window(call, steps.len());
            let mut preferred = all.window(call, steps.len());
            if let Some(own) = sessions.get(&of_session(call)) {
                // It may be older than what others were told, and is bound by its own session alone.
                let window = own.window(call, steps.len());
                first = window.0;
                preferred = (window.0, window.1.min(last));
            }
            let misfit = Misfit::Accepted;
            Searching { at, first, last, preferred, found: None, tried: 0, misfit }
        })
        .collect()
}

/// Replays, and tries each read in its window.
fn try_all(
    tree: &Tree,
    calls: &[Call<Op>],
    steps: &[(Option<u64>, usize)],
    searching: &mut [Searching],
) -> Result<(), Finding> {
    let mut state = tree.initial.clone();
    let mut active: Vec<usize> = Vec::new();
    let mut next = 0;
    let mut tries = 0usize;
    for position in 0..=steps.len() {
        while next < searching.len() && searching[next].first <= position {
            active.push(next);
            next += 1;
        }
        // Only an update makes another state.
        let changed = position == 0 || calls[steps[position - 1].1].op.ask.is_update();
        active.retain(|&which| {
            let read = &mut searching[which];
            if position > read.last || read.tried >= MOST_STATES {
                return false;
            }
            if !changed && read.found.is_none() && position != read.first {
                read.tried += 1;
                return true;
            }
            tries += 1;
            read.tried += 1;
            let wanted = position >= read.preferred.0 && position <= read.preferred.1;
            match state.perform(&calls[read.at].op, None) {
                Ok(()) if wanted => {
                    read.found = Some(position);
                    false
                }
                Ok(()) => {
                    read.found = read.found.or(Some(position));
                    true
                }
                Err(misfit) => {
                    read.misfit = misfit;
                    true
                }
            }
        });
        if tries > MOST_TRIES + steps.len() {
            return Err(Finding::Useless("too many reads do not fit where they stand".to_owned()));
        }
        let Some(&(zxid, at)) = steps.get(position) else { break };
        if state.perform(&calls[at].op, zxid).is_err() {
            return Err(Finding::Useless(format!("operation {} does not fit any more", calls[at].index)));
        }
    }
    Ok(())
}
