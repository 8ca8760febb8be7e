//! Prefix consistency, total order and agreement: what members apply is a prefix of one sequence, and equal
//! places in it mean equal trees.

use node_wire::ids::Zxid;

use super::{Finding, Judge, Mark, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

/// A place in the one sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub(super) mark: Mark,
    /// The tree's digest there, once a member stopped at this place.
    digest: Option<i64>,
}

impl Judge {
    pub(super) fn check_prefix(
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
        if from > before && from <= self.last_committed() {
            self.place(host, from)?;
        }
        let marks = view.logged.range(from, applied).to_vec();
        if marks.last().map_or(from, |mark| mark.zxid) != applied {
            return Err((
                Rule::PrefixConsistency,
                format!("server {} applied {applied}, which it never logged", server(host).0),
            ));
        }
        let new = self.walk(host, from, &marks)?;
        self.views[host].applied = applied;
        self.check_digest(host, applied, digest)?;
        Ok(new)
    }

    /// Compares entries with the sequence from the place behind `from`, and extends it where it ends.
    fn walk(&mut self, host: HostIndex, from: Zxid, marks: &[Mark]) -> Result<u64, (Rule, String)> {
        let place = self.committed.partition_point(|committed| committed.mark.zxid <= from);
        let mut new = 0;
        for (index, mark) in (place..).zip(marks) {
            match self.committed.get(index) {
                Some(known) if known.mark == *mark => {}
                Some(known) => {
                    return Err((
                        Rule::PrefixConsistency,
                        format!(
                            "server {} applied {} where {} was applied before",
                            server(host).0,
                            mark.zxid,
                            known.mark.zxid
                        ),
                    ));
                }
                None => {
                    self.check_quorum(*mark)?;
                    self.committed.push(Committed { mark: *mark, digest: None });
                    new += 1;
                    if let Some(entry) = self.entries.get(&mark.zxid) {
                        self.sessions.commit(entry)?;
                        self.requests.commit(entry)?;
                    }
                }
            }
        }
        Ok(new)
    }

    fn place(&self, host: HostIndex, zxid: Zxid) -> Result<usize, (Rule, String)> {
        self.committed.binary_search_by_key(&zxid, |committed| committed.mark.zxid).map_err(|_| {
            (
                Rule::PrefixConsistency,
                format!("server {} holds a snapshot of {zxid}, which was never committed", server(host).0),
            )
        })
    }

    fn check_digest(&mut self, host: HostIndex, applied: Zxid, digest: i64) -> Finding {
        let Ok(place) = self.committed.binary_search_by_key(&applied, |committed| committed.mark.zxid) else {
            return Ok(());
        };
        let known = *self.committed[place].digest.get_or_insert(digest);
        if known == digest {
            return Ok(());
        }
        Err((
            Rule::Agreement,
            format!("server {}'s tree at {applied} differs from that of another member", server(host).0),
        ))
    }
}
