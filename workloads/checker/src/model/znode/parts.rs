//! Independent parts of a tree: when subtrees may be judged by themselves.
//!
//! Linearizability is local (Herlihy and Wing, 1990): a history of several objects is linearizable exactly if
//! the history of each object is. A tree is one object, because a create reads and changes its parent. But
//! let `base` be a znode that stands throughout, and call each child of it with everything below a subtree.
//! Every operation is about paths. If
//!
//! 1. no operation is about `base` or a znode above or beside it (so its Stat, its children and its data are
//!    never seen, and it is never deleted),
//! 2. no sequential znode is made directly in `base` (that would reveal its counter),
//! 3. no multi is about two subtrees, and
//! 4. no session that ends changed two subtrees (its end would remove from both in one step),
//!
//! then what an operation does and may be answered follows from its own subtree, and from the existence of
//! `base`, which is constant: the tree behaves as a product of objects, and each may be judged alone. What
//! `base` counts and stamps (`cversion`, `numChildren`, `pzxid`) is changed by all and observed by none.
//!
//! An operation of a session that never ends meets only its own subtree too, however many the session visits.
//! The end of a session that asked for no update is nobody's business and becomes a part of its own.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::op::{Ask, Op, Step};
use crate::model::Call;

/// Which part an operation belongs to.
#[derive(Debug)]
pub(super) struct Parts {
    /// Bytes of the base with the slash behind it.
    skipped: usize,
    /// The part of each session that ends.
    ends: HashMap<u64, u64>,
}

/// The part of ends that end nothing.
const NOWHERE: u64 = 0;

impl Parts {
    /// The parts of these operations below `base`; none when they can't be told apart.
    pub(super) fn of(base: &str, calls: &[Call<Op>]) -> Option<Self> {
        let mut ends: HashMap<u64, u64> = HashMap::new();
        for op in calls.iter().map(|call| &call.op).filter(|op| op.ask == Ask::End) {
            ends.insert(op.session?, NOWHERE);
        }
        let skipped = if base == "/" { 1 } else { base.len() + 1 };
        for op in calls.iter().map(|call| &call.op) {
            let mut own = None;
            for step in op.ask.steps() {
                let part = part_of(base, skipped, step)?;
                if *own.get_or_insert(part) != part {
                    return None;
                }
            }
            let session = op.session.filter(|_| op.ask.is_update());
            if let (Some(own), Some(end)) = (own, session.and_then(|session| ends.get_mut(&session))) {
                if *end != NOWHERE && *end != own {
                    return None;
                }
                *end = own;
            }
        }
        Some(Self { skipped, ends })
    }

    /// The part of an operation among those that the parts were made of.
    pub(super) fn part(&self, op: &Op) -> u64 {
        match op.ask.steps().first() {
            Some(step) => {
                named(first_name(&step.path().as_str()[self.skipped.min(step.path().as_str().len())..]))
            }
            None => op.session.and_then(|session| self.ends.get(&session)).copied().unwrap_or(NOWHERE),
        }
    }
}

/// The part of a step; none when it is not in one.
fn part_of(base: &str, skipped: usize, step: &Step) -> Option<u64> {
    let path = step.path().as_str();
    let below = path.strip_prefix(base)?;
    let inside = if base == "/" { below } else { below.strip_prefix('/')? };
    debug_assert_eq!(path.len() - inside.len(), skipped);
    let numbered = matches!(step, Step::Create { sequential: true, .. });
    if inside.is_empty() || (numbered && !inside.contains('/')) {
        return None;
    }
    Some(named(first_name(inside)))
}

fn first_name(inside: &str) -> &str {
    inside.split('/').next().unwrap_or_default()
}

/// Two names may meet in one number: then they are judged together, which is only slower.
fn named(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish().max(NOWHERE + 1)
}
