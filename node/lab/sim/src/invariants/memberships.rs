//! Memberships: who decides may change, and at every moment it is settled who does.
//!
//! - A transaction that makes a membership is held by a quorum of the old one and by a quorum of the new one
//!   before anybody lets it rule; what stands behind it in the sequence needs a quorum of the new one, what
//!   stood before it one of the old. So whoever was removed counts for nothing from there on, and whoever
//!   joins for nothing before.
//! - An epoch stands with a quorum of the last membership that is committed, and with one of that which its
//!   history ends with.
//! - One version is one membership, wherever it rules; a member never goes back to an earlier one while it
//!   runs; and what ruled anywhere is in the committed sequence at the end, where the last of them rules
//!   everywhere.
//!
//! (Shraer, Reed, Malkhi, Junqueira: "Dynamic Reconfiguration of Primary/Backup Clusters", ATC 2012.)

use std::collections::{BTreeMap, BTreeSet};

use node_core::io::Event;
use node_wire::client::OpCode;
use node_wire::ids::{Epoch, ServerId, Zxid};
use node_wire::membership::Membership;
use node_wire::txn::{Entry, Txn};

use super::{Finding, Invariants, Mark, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

/// A membership that a transaction makes.
#[derive(Clone, Debug)]
struct Made {
    mark: Mark,
    membership: Membership,
    voters: Vec<HostIndex>,
}

/// All memberships that anybody heard of.
#[derive(Clone, Debug)]
pub(super) struct Memberships {
    /// Who votes in the membership that members are started with.
    first: Vec<HostIndex>,
    made: BTreeMap<Zxid, Made>,
    /// Those that are in the committed sequence.
    committed: Vec<Zxid>,
    /// Those, and what ruled anywhere: a leader that hands over is not seen to apply what made it do so.
    settled: BTreeSet<Zxid>,
    /// Those that ruled anywhere.
    ruled: BTreeMap<Zxid, Membership>,
    /// The version that rules at each member, in its present life.
    ruling: Vec<Zxid>,
    /// Who ever had an epoch's history and its currentEpoch on disk.
    vouchers: BTreeMap<Epoch, BTreeSet<HostIndex>>,
}

fn found(sentence: String) -> Finding {
    Err((Rule::Membership, sentence))
}

fn hosts(voters: &BTreeSet<ServerId>) -> Vec<HostIndex> {
    voters.iter().filter_map(|id| HostIndex::try_from(id.0).ok()?.checked_sub(1)).collect()
}

/// The membership that an entry makes, if it makes one.
fn made_by(entry: &Entry) -> Option<Membership> {
    match &entry.txn {
        Txn::SetData { data: Some(data), .. } if entry.header.kind == OpCode::Reconfig.code() => {
            Membership::from_bytes(data).ok()
        }
        _ => None,
    }
}

impl Memberships {
    pub(super) fn new(voters: usize, members: usize) -> Self {
        Self {
            first: (0..voters).collect(),
            made: BTreeMap::new(),
            committed: Vec::new(),
            settled: BTreeSet::new(),
            ruled: BTreeMap::new(),
            ruling: vec![Zxid::ZERO; members],
            vouchers: BTreeMap::new(),
        }
    }

    /// Somebody logged an entry for the first time.
    pub(super) fn logged(&mut self, entry: &Entry) {
        if let Some(membership) = made_by(entry) {
            let voters = hosts(&membership.voters());
            self.made.insert(entry.zxid(), Made { mark: Mark::of(entry), membership, voters });
        }
    }

    /// The next committed entry.
    pub(super) fn commit(&mut self, zxid: Zxid) {
        if self.made.contains_key(&zxid) {
            self.committed.push(zxid);
            self.settled.insert(zxid);
        }
    }

    /// A member has an epoch's history and its currentEpoch on disk.
    pub(super) fn vouches(&mut self, host: HostIndex, epoch: Epoch) {
        self.vouchers.entry(epoch).or_default().insert(host);
    }

    /// A member starts anew.
    pub(super) fn ended(&mut self, host: HostIndex) {
        self.ruling[host] = Zxid::ZERO;
    }

    /// The voters that a place in the sequence needs a quorum of: of what is settled before it.
    pub(super) fn voters_at(&self, zxid: Zxid) -> &[HostIndex] {
        let made = self.settled.range(..zxid).next_back().and_then(|last| self.made.get(last));
        made.map_or(&self.first, |made| &made.voters)
    }

    /// The voters of the membership that this transaction makes, if it makes one.
    pub(super) fn voters_of(&self, zxid: Zxid) -> Option<&[HostIndex]> {
        self.made.get(&zxid).map(|made| &*made.voters)
    }

    fn last_settled(&self) -> Option<Zxid> {
        self.settled.last().copied()
    }
}

/// More than half of the voters are among these.
fn is_quorum(voters: &[HostIndex], holds: impl Fn(HostIndex) -> bool) -> bool {
    voters.iter().filter(|voter| holds(**voter)).count() > voters.len() / 2
}

fn names(hosts: &[HostIndex]) -> String {
    hosts.iter().map(|host| format!("s{}", host + 1)).collect::<Vec<_>>().join(" ")
}

impl Invariants {
    /// A membership rules at a member from here on.
    pub(crate) fn rules(&mut self, host: HostIndex, membership: &Membership) -> Finding {
        let version = membership.version;
        let before = std::mem::replace(&mut self.memberships.ruling[host], version);
        if version < before {
            return found(format!(
                "server {} goes back from membership {before} to {version}",
                server(host).0
            ));
        }
        if version == Zxid::ZERO {
            return Ok(());
        }
        match self.memberships.ruled.get(&version) {
            Some(known) if known.servers == membership.servers => return Ok(()),
            Some(_) => {
                return found(format!(
                    "server {} has another membership {version} than others",
                    server(host).0
                ));
            }
            None => {}
        }
        self.memberships.ruled.insert(version, membership.clone());
        if version.counter() == 0 {
            // The first one, with the version that the leader of an epoch gave it.
            let first = &self.memberships.first;
            if hosts(&membership.voters()) == *first {
                return Ok(());
            }
            return found(format!(
                "membership {version} is not the first one, which {} vote in",
                names(first)
            ));
        }
        let Some(made) = self.memberships.made.get(&version) else {
            return found(format!(
                "membership {version} rules at server {} and nobody made it",
                server(host).0
            ));
        };
        if made.membership.servers != membership.servers {
            return found(format!("server {} reads membership {version} as another", server(host).0));
        }
        let mark = made.mark;
        self.check_both(mark)?;
        self.memberships.settled.insert(version);
        Ok(())
    }

    /// A quorum of the old membership and one of the new one hold what makes the new one.
    pub(super) fn check_both(&self, mark: Mark) -> Finding {
        let Some(new) = self.memberships.voters_of(mark.zxid) else { return Ok(()) };
        for (which, voters) in [("old", self.memberships.voters_at(mark.zxid)), ("new", new)] {
            if !is_quorum(voters, |host| self.holds(host, mark)) {
                return found(format!(
                    "membership {} rules, and no quorum of the {which} one ({}) holds it",
                    mark.zxid,
                    names(voters)
                ));
            }
        }
        Ok(())
    }

    /// True when a member's disk is known to hold an entry.
    pub(super) fn holds(&self, host: HostIndex, mark: Mark) -> bool {
        self.views.get(host).is_some_and(|view| view.durable.holds(mark))
    }

    /// A leader says that its epoch stands.
    pub(super) fn check_epoch_quorum(&self, host: HostIndex, event: &Event) -> Finding {
        let Event::Established { leader, epoch } = event else { return Ok(()) };
        let memberships = &self.memberships;
        if memberships.made.is_empty() || server(host) != *leader {
            return Ok(());
        }
        let logged = &self.views[host].logged;
        let before = Zxid::new(*epoch, 0);
        let committed = memberships.voters_at(before);
        let mut needed = vec![("that is committed", committed)];
        let last = memberships.made.range(..before).rev().find(|(_, made)| logged.shows(made.mark));
        needed.extend(last.map(|(_, made)| ("that its history ends with", made.voters.as_slice())));
        let nobody = BTreeSet::new();
        let vouchers = memberships.vouchers.get(epoch).unwrap_or(&nobody);
        for (which, voters) in needed {
            if !is_quorum(voters, |voter| vouchers.contains(&voter)) {
                let vouchers: Vec<HostIndex> = vouchers.iter().copied().collect();
                return found(format!(
                    "epoch {} of server {} stands with {}, no quorum of the membership {which} ({})",
                    epoch.0,
                    leader.0,
                    names(&vouchers),
                    names(voters)
                ));
            }
        }
        Ok(())
    }

    /// At the end: what ruled anywhere is in the committed sequence.
    pub(super) fn check_ruled(&self) -> Finding {
        let memberships = &self.memberships;
        let lost = |version: &&Zxid| version.counter() > 0 && !memberships.committed.contains(*version);
        match memberships.ruled.keys().find(lost) {
            None => Ok(()),
            Some(version) => {
                found(format!("membership {version} ruled and is not in the sequence at the end"))
            }
        }
    }

    /// At the end, when every member applied everything: the last membership rules here.
    pub(crate) fn check_ruling(&self, host: HostIndex, membership: &Membership) -> Finding {
        match self.memberships.last_settled() {
            Some(last) if membership.version != last => found(format!(
                "membership {} rules at server {} at the end, where {last} is the last one",
                membership.version,
                server(host).0
            )),
            _ => Ok(()),
        }
    }

    /// The voters of the last membership that a member has in its log, if that is later than this one: what
    /// may rule next.
    pub(crate) fn pending(&self, host: HostIndex, active: Zxid) -> Option<&[HostIndex]> {
        let logged = &self.views[host].logged;
        let later = self.memberships.made.iter().rev().take_while(|(zxid, _)| **zxid > active);
        later.map(|(_, made)| made).find(|made| logged.shows(made.mark)).map(|made| &*made.voters)
    }

    /// The version of the last membership that is known to be committed; zero for the first.
    pub(crate) fn last_membership(&self) -> Zxid {
        self.memberships.last_settled().unwrap_or(Zxid::ZERO)
    }

    /// The voters of the last membership that is committed, and of all that were made since.
    pub(crate) fn may_rule(&self) -> Vec<&[HostIndex]> {
        let memberships = &self.memberships;
        let last = self.last_membership();
        let committed = memberships.voters_of(last).unwrap_or(&memberships.first);
        let later = memberships.made.iter().filter(|(zxid, _)| **zxid > last);
        std::iter::once(committed).chain(later.map(|(_, made)| &*made.voters)).collect()
    }

    /// How many memberships were made, and how many ruled anywhere.
    pub(crate) fn known_memberships(&self) -> usize {
        self.memberships.made.len() + self.memberships.ruled.len()
    }

    /// How many memberships ruled that a client asked for.
    pub(crate) fn memberships(&self) -> u64 {
        u64::try_from(self.memberships.committed.len()).expect("memberships are few")
    }
}

#[cfg(test)]
mod tests {
    use node_core::io::StoreOp;
    use node_wire::ids::SessionId;
    use node_wire::membership::ServerRole;
    use node_wire::txn::TxnHeader;

    use super::*;
    use crate::watcher::server_line;

    const fn at(counter: u32) -> Zxid {
        Zxid(0x1_0000_0000 + counter as u64)
    }

    fn of(voters: &[u64], version: Zxid) -> Membership {
        let lines = voters.iter().map(|voter| server_line(*voter, ServerRole::Participant) + "\n");
        let text = format!("{}version={:x}", lines.collect::<String>(), version.0);
        text.parse().expect("a membership")
    }

    fn making(voters: &[u64], version: Zxid) -> Entry {
        let txn = Txn::SetData {
            path: "/zookeeper/config".into(),
            data: Some(of(voters, version).to_bytes()),
            version: -1,
        };
        let kind = OpCode::Reconfig.code();
        let header = TxnHeader { session: SessionId(1), cxid: 1, zxid: version, time_ms: 0, kind };
        Entry::new(header, txn, None)
    }

    /// Of four members the first three vote, and these have on disk that 1 and 4 shall.
    fn changing(holders: &[HostIndex]) -> Invariants {
        let mut judge = Invariants::of(3, 1);
        judge.stores(0, &StoreOp::CurrentEpoch(Epoch(1)), true).expect("an epoch to lead");
        let op = StoreOp::Append(making(&[1, 4], at(1)));
        for host in holders {
            judge.stores(*host, &op, *host == 0).expect("one sequence");
            judge.stored(*host, &op).expect("one sequence");
        }
        judge
    }

    #[test]
    fn a_membership_rules_when_a_quorum_of_both_holds_it() {
        let new = of(&[1, 4], at(1));
        assert!(changing(&[0, 1]).rules(0, &new).is_err(), "of the old alone");
        assert!(changing(&[0, 3]).rules(0, &new).is_err(), "of the new alone");
        changing(&[0, 1, 3]).rules(0, &new).expect("of both");
    }

    #[test]
    fn a_version_is_one_membership_and_a_member_does_not_go_back() {
        let mut judge = changing(&[0, 1, 3]);
        judge.rules(0, &of(&[1, 4], at(1))).expect("of both");
        assert!(judge.clone().rules(1, &of(&[1, 3], at(1))).is_err(), "another");
        assert!(judge.clone().rules(1, &of(&[1, 4], at(2))).is_err(), "nobody made it");
        assert!(judge.clone().rules(0, &of(&[1, 2, 3], at(0))).is_err(), "it goes back");
        assert!(judge.check_ruled().is_err(), "it is not in the sequence");
        judge.memberships.commit(at(1));
        judge.check_ruled().expect("it is");
        judge.check_ruling(2, &of(&[1, 4], at(1))).expect("the last one");
        assert!(judge.check_ruling(2, &of(&[1, 2, 3], at(0))).is_err(), "the first one");
    }

    #[test]
    fn an_epoch_stands_with_quorums_of_all_that_may_rule() {
        let epoch = Epoch(2);
        let stands = |vouchers: &[HostIndex], settled: bool| {
            let mut judge = changing(&[0, 1, 3]);
            if settled {
                judge.memberships.commit(at(1));
            }
            vouchers.iter().for_each(|host| judge.memberships.vouches(*host, epoch));
            judge.check_epoch_quorum(0, &Event::Established { leader: ServerId(1), epoch })
        };
        assert!(stands(&[0, 1], false).is_err(), "of the old alone");
        assert!(stands(&[0, 3], false).is_err(), "of the new alone");
        stands(&[0, 1, 3], false).expect("of both");
        stands(&[0, 3], true).expect("the old one is over");
        assert!(stands(&[0, 1, 2], true).is_err(), "of those that were removed");
    }
}
