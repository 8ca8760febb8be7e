//! PrefixConsistency (Zab.tla): of two members, what one has delivered is the beginning of what the other
//! has, or the other way round.
//!
//! So there is one sequence, and every member delivers a prefix of it. The sequence is known as far as
//! anybody has got; whoever gets further makes it longer, and the checks of a new place are made there.

use node_wire::ids::Zxid;

use super::{Finding, Invariants, Mark, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

/// A place in the one sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub(super) mark: Mark,
    /// The tree's digest there, once a member stopped at this place.
    pub(super) digest: Option<i64>,
}

impl Invariants {
    /// A member has applied everything up to here. Returns how many entries nobody had applied before.
    pub(super) fn check_deliveries(
        &mut self,
        host: HostIndex,
        applied: Zxid,
        digest: i64,
    ) -> Result<u64, (Rule, String)> {
        let view = &self.views[host];
        let before = view.applied;
        if applied < before {
            return Err((
                Rule::PrefixConsistency,
                format!("server {} went back from {before} to {applied}", server(host).0),
            ));
        }
        // A snapshot stands for everything before it: it must end at a place of the sequence.
        let from = before.max(view.logged.base());
        if from > before {
            self.check_agreement(host, from)?;
        }
        let marks = view.logged.range(from, applied).to_vec();
        if marks.last().map_or(from, |mark| mark.zxid) != applied {
            return Err((
                Rule::PrefixConsistency,
                format!("server {} applied {applied}, which it never logged", server(host).0),
            ));
        }
        let walked = self.walk(host, from, &marks);
        self.views[host].applied = applied;
        let new = walked?;
        self.check_same_tree(host, applied, digest)?;
        Ok(new)
    }

    /// Compares entries with the sequence from the place behind `from`, and extends it where it ends.
    fn walk(&mut self, host: HostIndex, from: Zxid, marks: &[Mark]) -> Result<u64, (Rule, String)> {
        let place = self.committed.partition_point(|committed| committed.mark.zxid <= from);
        let mut new = 0;
        let mut before = from;
        // Whatever is wrong with an entry, the sequence is followed: clients are judged by it too.
        let mut first = Ok(());
        for (index, mark) in (place..).zip(marks) {
            self.check_global_primary_order(host, before, mark.zxid)?;
            self.check_local_primary_order(host, before, mark.zxid)?;
            match self.committed.get(index) {
                Some(known) if known.mark == *mark => {}
                Some(known) => {
                    let known = known.mark.zxid;
                    self.check_total_order(host, *mark, known)?;
                    return Err((
                        Rule::PrefixConsistency,
                        format!(
                            "server {} applied {} where {known} was applied before",
                            server(host).0,
                            mark.zxid
                        ),
                    ));
                }
                None => {
                    first = first.and(self.check_quorum(*mark));
                    first = first.and(self.check_late_delivery(host, mark.zxid));
                    self.committed.push(Committed { mark: *mark, digest: None });
                    new += 1;
                    first = first.and(self.follow(*mark));
                }
            }
            before = mark.zxid;
        }
        first.map(|()| new)
    }

    /// What the next committed entry means to those who read the sequence for themselves.
    fn follow(&mut self, mark: Mark) -> Finding {
        self.memberships.commit(mark.zxid);
        let Some(entry) = self.entries.get(&mark.zxid) else { return Ok(()) };
        let seen = self.proposed.get(&mark.zxid).map(|proposed| proposed.seen);
        let of_sessions = self.sessions.commit(entry);
        let of_requests = self.requests.commit(entry);
        let of_watchers = self.reference.commit(entry);
        let of_quotas = self.quotas.commit(entry, seen);
        let lives = self.sessions.lives(entry.header.session);
        let of_probers = self.spec.commit(entry, lives, self.sessions.may_be_local());
        of_sessions.and(of_requests).and(of_watchers).and(of_quotas).and(of_probers)
    }
}
