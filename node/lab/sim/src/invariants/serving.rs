//! Serving: a member answers only while its epoch stands, and from all that it was told to be committed.
//!
//! Between two epochs nobody knows how old its tree is (a read of it may be stale by any measure, and a sync
//! there is a lie). When it serves, what its leader said to be committed is in the tree: each COMMIT, the
//! ones that came before UPTODATE as well (ZOOKEEPER-4394, 3023).
//!
//! In some worlds a member without a leader serves reads to clients that are content with that. It answers
//! from a place of the committed sequence, as every other member has it there, and only until it has found a
//! leader.

use node_wire::ids::Zxid;

use super::{Finding, Invariants, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// The leader of a member says that everything up to here is committed.
    pub(crate) fn hears(&mut self, host: HostIndex, committed: Zxid) {
        let view = &mut self.views[host];
        view.told = view.told.max(committed);
    }

    /// A member writes to a client. `serves`: its epoch stood before the step in which it does so, or stands
    /// after it.
    pub(crate) fn answers(&self, host: HostIndex, serves: bool) -> Finding {
        if serves {
            return Ok(());
        }
        Err((
            Rule::Serving,
            format!("server {} answers a client though no epoch stands there", server(host).0),
        ))
    }

    /// A member without a leader writes to a client that is content with that: from a state that the ensemble
    /// was in. Nothing that is not known to be committed: what it applied as its role ended, before anybody
    /// looked, counts as that. And not when it has found a leader (`elected`), from where it would have to
    /// answer for what that one knows.
    pub(crate) fn answers_alone(
        &self,
        host: HostIndex,
        elected: bool,
        applied: Zxid,
        digest: i64,
    ) -> Finding {
        if elected {
            let id = server(host).0;
            let sentence = format!("server {id} reads without a leader, though it has found one");
            return Err((Rule::Serving, sentence));
        }
        let place = self.committed.binary_search_by_key(&applied, |committed| committed.mark.zxid);
        let known = place.ok().and_then(|place| self.committed[place].digest);
        let ever = place.is_ok() || applied == Zxid::ZERO || self.parting.contains(&applied);
        if ever && known.is_none_or(|known| known == digest) {
            return Ok(());
        }
        Err((
            Rule::Serving,
            format!("server {} reads from {applied}, as the ensemble never was", server(host).0),
        ))
    }

    /// A member that served left its role in the step in which it applied this.
    pub(crate) fn parts_with(&mut self, applied: Zxid) {
        if applied > self.last_committed() {
            self.parting.insert(applied);
        }
    }

    /// A member takes a client in that has seen so much.
    pub(crate) fn takes_in(&self, host: HostIndex, seen: Zxid, applied: Zxid) -> Finding {
        if seen <= applied {
            return Ok(());
        }
        let id = server(host).0;
        Err((
            Rule::Serving,
            format!("server {id} takes in a client that saw {seen}, and is at {applied} itself"),
        ))
    }

    /// After each step of a member.
    pub(super) fn check_told(&self, host: HostIndex, serves: bool, applied: Zxid) -> Finding {
        let told = self.views[host].told;
        if !serves || applied >= told {
            return Ok(());
        }
        Err((
            Rule::Serving,
            format!(
                "server {} serves from {applied}, though it was told that {told} is committed",
                server(host).0
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use node_wire::ids::Epoch;

    use super::*;

    #[test]
    fn who_serves_alone_serves_what_was_committed_and_until_there_is_a_leader() {
        let mut judge = Invariants::new(3);
        let at = |counter| Zxid::new(Epoch(1), counter);
        judge.answers_alone(0, false, Zxid::ZERO, 0).expect("the empty tree was there once");
        assert!(judge.answers_alone(0, true, Zxid::ZERO, 0).is_err(), "it has a leader");
        assert!(judge.answers_alone(0, false, at(1), 0).is_err(), "nobody knows of that");
        judge.parts_with(at(1));
        judge.answers_alone(0, false, at(1), 0).expect("committed in its last step");
        assert!(judge.answers_alone(0, false, at(2), 0).is_err(), "nobody knows of that");
    }

    #[test]
    fn nobody_goes_back_in_time_at_another_member() {
        let judge = Invariants::new(3);
        let at = |counter| Zxid::new(Epoch(1), counter);
        judge.takes_in(0, at(1), at(1)).expect("it has as much");
        assert_eq!(judge.takes_in(0, at(2), at(1)).unwrap_err().0, Rule::Serving);
    }
}
