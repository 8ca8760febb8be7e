//! Does all operations in the claimed order, and lets what is open happen where an answer needs it.

use super::evidence::Index;
use super::{Contradiction, Finding, Kind, has_excuse};
use crate::history::Rank;
use crate::model::Call;
use crate::model::znode::{Misfit, Op, State, Tree};

/// Open updates that are tried for one answer, alone and in pairs.
const MOST_TRIED: usize = 12;

/// How many answers may be helped in that way beyond one for each open update: each costs a few hundred
/// tries.
const MOST_HELPED_IN_VAIN: usize = 1 << 12;

/// What came of it.
pub(super) struct Replayed {
    /// What was done, in order, with the zxids of changes where they are known.
    pub(super) steps: Vec<(Option<u64>, usize)>,
    /// Reads that do not fit where they stand.
    pub(super) misfits: Vec<usize>,
}

struct Replay<'a> {
    calls: &'a [Call<Op>],
    state: State,
    index: Index,
    /// Ends that somebody was told of, by when; the earliest last.
    due: Vec<(Rank, usize)>,
    placed: Vec<bool>,
    in_vain: usize,
    done: Replayed,
}

pub(super) fn replay(
    tree: &Tree,
    calls: &[Call<Op>],
    steps: &[(Option<u64>, usize)],
    floating: &[usize],
) -> Result<Replayed, Finding> {
    let mut due: Vec<(Rank, usize)> =
        floating.iter().filter(|&&at| !calls[at].is_open()).map(|&at| (calls[at].ret, at)).collect();
    due.sort_unstable_by(|one, other| other.cmp(one));
    let mut replay = Replay {
        calls,
        state: tree.initial.clone(),
        index: Index::of(calls, floating),
        due,
        placed: vec![false; if floating.is_empty() { 0 } else { calls.len() }],
        in_vain: 0,
        done: Replayed { steps: Vec::with_capacity(calls.len()), misfits: Vec::new() },
    };
    for &(zxid, at) in steps {
        replay.ends_before(calls[at].call);
        replay.step(zxid, at)?;
    }
    replay.ends_before(Rank::MAX);
    Ok(replay.done)
}

impl Replay<'_> {
    /// Lets those sessions end that somebody was told of before `call`.
    fn ends_before(&mut self, call: Rank) {
        while let Some((_, at)) = self.due.pop_if(|(by, _)| *by < call) {
            if !self.placed[at] {
                self.float(at);
            }
        }
    }

    /// Lets something without zxid happen here.
    fn float(&mut self, at: usize) {
        if self.state.perform(&self.calls[at].op, None).is_ok() {
            self.done.steps.push((None, at));
        }
        self.placed[at] = true;
        self.index.remove(self.calls, at);
    }

    fn step(&mut self, zxid: Option<u64>, at: usize) -> Result<(), Finding> {
        let call = &self.calls[at];
        match self.state.perform(&call.op, zxid) {
            Ok(()) => self.done.steps.push((zxid, at)),
            Err(_) if self.helped(zxid, at) => {}
            Err(_) if !call.op.ask.is_update() => self.done.misfits.push(at),
            Err(misfit) => return Err(self.refuted(at, misfit)),
        }
        Ok(())
    }

    /// Looks for one or two open updates with which the answer fits.
    fn helped(&mut self, zxid: Option<u64>, at: usize) -> bool {
        if self.placed.is_empty() || self.in_vain > MOST_HELPED_IN_VAIN {
            return false;
        }
        let call = &self.calls[at];
        let owners = self.state.owners_about(&call.op);
        let mut near: Vec<usize> =
            self.index.near(self.calls, &call.op, &owners, call.ret).take(MOST_TRIED).collect();
        near.sort_unstable();
        near.dedup();
        let fits = |first: usize, second: Option<usize>| {
            let mut state = self.state.clone();
            let floats = std::iter::once(first).chain(second);
            floats.into_iter().all(|float| state.perform(&self.calls[float].op, None).is_ok())
                && state.perform(&call.op, zxid).is_ok()
        };
        let found = near.iter().find(|&&one| fits(one, None)).map(|&one| (one, None)).or_else(|| {
            let pairs = near.iter().flat_map(|&one| near.iter().map(move |&other| (one, other)));
            pairs
                .into_iter()
                .find(|&(one, other)| one != other && fits(one, Some(other)))
                .map(|(one, other)| (one, Some(other)))
        });
        let Some((first, second)) = found else {
            self.in_vain += usize::from(!near.is_empty());
            return false;
        };
        self.float(first);
        if let Some(second) = second {
            self.float(second);
        }
        if self.state.perform(&call.op, zxid).is_ok() {
            self.done.steps.push((zxid, at));
        }
        true
    }

    fn refuted(&self, at: usize, misfit: Misfit) -> Finding {
        let call = &self.calls[at];
        let sentence =
            format!("operation {} ({}) can't have been answered so: {misfit}", call.index, call.op);
        if has_excuse(self.calls, &self.done.steps, call.ret) {
            return Finding::Useless(sentence);
        }
        Finding::Contradicted(Contradiction { kind: Kind::Answer(misfit), calls: vec![at], sentence })
    }
}
