//! Claims: who had which element, by which token, from when to when.
//!
//! The moments are on one clock with the stamps of the history, because whoever claims runs beside the bench.

use std::collections::BTreeMap;

use checker::history::{Op, OpKind, Outcome, describe};

use super::told::Finding;

/// One claim. Its moments are in ns.
#[derive(Clone, Copy)]
struct Claim<'a> {
    token: u64,
    since: u64,
    /// Until when its holder was certain, or asked for its end, or was known to be there: whoever is asked
    /// nothing more may give back what it has.
    end: u64,
    op: &'a Op,
}

/// The claims of a queue, by their elements.
pub(super) struct Claims<'a>(BTreeMap<i64, Vec<Claim<'a>>>);

impl<'a> Claims<'a> {
    /// What these operations tell. `known` says until when each process was known to be there.
    pub(super) fn of(ops: &[&'a Op], known: &BTreeMap<u64, u64>) -> Self {
        let mut claims: BTreeMap<i64, Vec<Claim<'a>>> = BTreeMap::new();
        for op in ops.iter().filter(|op| op.outcome == Outcome::Ok) {
            let OpKind::Dequeue { value: Some(value) } = op.kind() else { continue };
            let Some(&[_, token, since, until]) = op.list().map(|list| &list[..]) else { continue };
            let [token, since, until] = [token, since, until].map(i64::unsigned_abs);
            let end = known.get(&op.process).map_or(since, |known| until.min(*known));
            claims.entry(value).or_default().push(Claim { token, since, end, op });
        }
        for op in ops {
            let OpKind::Acknowledge { value } = op.kind() else { continue };
            let own = claims.get_mut(&value).into_iter().flatten();
            for claim in own.filter(|claim| claim.op.process == op.process && claim.op.ret < op.call) {
                claim.end = claim.end.min(op.invoke_ns);
            }
        }
        for claims in claims.values_mut() {
            claims.sort_by_key(|claim| claim.since);
        }
        Self(claims)
    }

    pub(super) fn number(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Two claims of an element that overlap, or whose tokens don't grow.
    pub(super) fn broken(&self) -> Option<Finding<'a>> {
        let mut pairs = self
            .0
            .iter()
            .flat_map(|(value, claims)| claims.windows(2).map(move |pair| (*value, pair[0], pair[1])));
        pairs.find_map(|(value, one, next)| {
            let sentence = if next.token <= one.token {
                format!("element {value} was claimed by token {} after token {}", next.token, one.token)
            } else if next.since < one.end {
                format!("two had element {value} at once, by tokens {} and {}", one.token, next.token)
            } else {
                return None;
            };
            let sentence = format!("{sentence}: {}, and {}", describe(one.op), describe(next.op));
            Some((sentence, vec![one.op, next.op]))
        })
    }
}
