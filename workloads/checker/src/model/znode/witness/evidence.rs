//! Open updates whose zxid a Stat gives away.
//!
//! A Stat shows the zxids of three changes. One that no update with an answer has belongs to an open update;
//! if only one of them can have made that change, its place is known. Where several could, nothing is said:
//! the replay may still find the place.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::history::{Datum, Rank};
use crate::model::Call;
use crate::model::znode::op::{Answer, Op, Shown, Step};

/// Open updates that are looked at for one zxid.
const MOST_CANDIDATES: usize = 64;

/// What a change did to the znode in whose Stat it shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trace {
    Created,
    Written,
    ChildrenChanged,
}

/// Puts those open updates that give themselves away among `standing`, and returns the others.
pub(super) fn pin(
    calls: &[Call<Op>],
    standing: &mut Vec<(u64, u8, Rank, usize)>,
    floating: Vec<usize>,
) -> Vec<usize> {
    if floating.iter().all(|&at| calls[at].op.ask.steps().is_empty()) {
        return floating;
    }
    let by_path = candidates(calls, &floating);
    let known: HashSet<u64> =
        standing.iter().filter(|(_, class, ..)| *class == 0).map(|(zxid, ..)| *zxid).collect();
    let claims = claims(owners(calls, &by_path, &known));
    let mut others = Vec::new();
    for at in floating {
        match claims.get(&at) {
            Some(&Some(zxid)) => standing.push((zxid, 0, calls[at].call, at)),
            _ => others.push(at),
        }
    }
    standing.sort_unstable();
    others
}

/// Open updates by the znodes that they change and by the parents of these, at most so many for each.
fn candidates<'a>(calls: &'a [Call<Op>], floating: &[usize]) -> HashMap<&'a str, Vec<usize>> {
    let mut by_path: HashMap<&str, Vec<usize>> = HashMap::new();
    for &at in floating {
        for step in calls[at].op.ask.steps().iter().filter(|step| step.changes()) {
            let path = step.path();
            // A sequential name is not known, but where it stands is.
            for key in [path.as_str(), path.parent()] {
                let found = by_path.entry(key).or_default();
                if found.len() < MOST_CANDIDATES && found.last() != Some(&at) {
                    found.push(at);
                }
            }
        }
    }
    by_path
}

/// For each zxid that nobody is known to own, who may: the intersection over all who show it.
fn owners(
    calls: &[Call<Op>],
    by_path: &HashMap<&str, Vec<usize>>,
    known: &HashSet<u64>,
) -> BTreeMap<u64, Vec<usize>> {
    let mut owners: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for call in calls {
        let Some(Answer::Done(shown)) = &call.op.answer else { continue };
        for (step, shown) in call.op.ask.steps().iter().zip(shown) {
            let Some(stat) = &shown.stat else { continue };
            let traces = [
                (stat.czxid, Trace::Created),
                (stat.mzxid, Trace::Written),
                (stat.pzxid, Trace::ChildrenChanged),
            ];
            for (zxid, trace) in traces {
                let Some(zxid) = zxid.filter(|zxid| !known.contains(zxid)) else { continue };
                let path = shown.path.as_deref().unwrap_or(step.path().as_str());
                let may = |&at: &usize| {
                    calls[at].call < call.ret
                        && calls[at].op.ask.steps().iter().any(|step| leaves(step, path, trace, shown))
                };
                match owners.get_mut(&zxid) {
                    Some(owners) => owners.retain(may),
                    None => {
                        let parent = path.rfind('/').map_or("", |slash| &path[..slash.max(1)]);
                        let near = [path, parent].into_iter().filter_map(|key| by_path.get(key)).flatten();
                        let mut found: Vec<usize> = near.copied().filter(may).collect();
                        found.sort_unstable();
                        found.dedup();
                        owners.insert(zxid, found);
                    }
                }
            }
        }
    }
    owners
}

/// The zxid of each update that alone may own one. One update has one zxid: with two claims on it, none is
/// believed.
fn claims(owners: BTreeMap<u64, Vec<usize>>) -> HashMap<usize, Option<u64>> {
    let mut claims: HashMap<usize, Option<u64>> = HashMap::new();
    for (zxid, owners) in owners {
        if let [only] = owners[..] {
            claims.entry(only).and_modify(|claim| *claim = None).or_insert(Some(zxid));
        }
    }
    claims
}

/// Whether a step, when done, leaves that trace on the znode at `path` as it was shown.
fn leaves(step: &Step, path: &str, trace: Trace, shown: &Shown) -> bool {
    let fits = |data: &Datum| shown.data.as_ref().is_none_or(|shown| shown == data);
    let of_child = || {
        let parent = step.path().parent();
        trace == Trace::ChildrenChanged && parent == path
    };
    match step {
        Step::Create { path: prefix, data, sequential, .. } => {
            let own = if *sequential {
                path.strip_prefix(prefix.as_str()).is_some_and(|number| {
                    number.len() >= 10 && number.bytes().all(|byte| byte.is_ascii_digit())
                })
            } else {
                path == prefix.as_str()
            };
            // A new znode has its create in all three places; data may have been replaced since, but not for
            // Written.
            (own && (trace != Trace::Written || fits(data))) || of_child()
        }
        Step::Set { path: own, data, .. } => trace == Trace::Written && own.as_str() == path && fits(data),
        Step::Delete { .. } => of_child(),
        Step::Check { .. } | Step::Get(_) | Step::Exists(_) | Step::Children(_) => false,
    }
}

/// Open updates by what they are about: a znode, its parent.
pub(super) struct Index {
    by_path: HashMap<Arc<str>, Vec<usize>>,
    ends: HashMap<u64, Vec<usize>>,
}

impl Index {
    pub(super) fn of(calls: &[Call<Op>], floating: &[usize]) -> Self {
        let mut index = Self { by_path: HashMap::new(), ends: HashMap::new() };
        for &at in floating {
            let op = &calls[at].op;
            for step in op.ask.steps().iter().filter(|step| step.changes()) {
                for key in [step.path().as_str(), step.path().parent()] {
                    let found = index.by_path.entry(key.into()).or_default();
                    if found.last() != Some(&at) {
                        found.push(at);
                    }
                }
            }
            if op.ask.steps().is_empty() {
                index.ends.entry(op.session.unwrap_or(0)).or_default().push(at);
            }
        }
        index
    }

    /// Those about one of these paths or one of these sessions that may have happened before a moment.
    pub(super) fn near<'a>(
        &'a self,
        calls: &'a [Call<Op>],
        op: &'a Op,
        owners: &'a [u64],
        before: Rank,
    ) -> impl Iterator<Item = usize> + 'a {
        let paths = op.ask.steps().iter().flat_map(|step| [step.path().as_str(), step.path().parent()]);
        let about = paths.filter_map(|path| self.by_path.get(path)).flatten();
        let ends = owners.iter().filter_map(|owner| self.ends.get(owner)).flatten();
        about.chain(ends).copied().filter(move |&at| calls[at].call < before)
    }

    /// Forgets one that was placed.
    pub(super) fn remove(&mut self, calls: &[Call<Op>], at: usize) {
        for step in calls[at].op.ask.steps() {
            for key in [step.path().as_str(), step.path().parent()] {
                if let Some(found) = self.by_path.get_mut(key) {
                    found.retain(|other| *other != at);
                }
            }
        }
        if let Some(found) = calls[at].op.session.and_then(|session| self.ends.get_mut(&session)) {
            found.retain(|other| *other != at);
        }
    }
}
