//! Ensembles that change: what their members are started with, and who could decide by what is known.
//!
//! An operator changes the ensemble all the while. At every start a member has lost the files that keep
//! memberships: the log must be enough. What lives outside of the core is left out: addresses (every pair of
//! members can connect), ports, and dynamic files.

use bytestring::ByteString;
use node_core::{ClientRules, Reconfiguration};
use node_wire::ids::{ServerId, Zxid};
use node_wire::membership::{Membership, ServerLine, ServerRole};

use super::{Clockwork, Ensemble, Oracle, World};
use crate::network::HostIndex;
use crate::watcher::server_line;

/// Members as bits: ensembles are small.
pub(super) type Set = u32;

/// More than half of these voters.
pub(super) fn is_quorum(voters: Set, set: Set) -> bool {
    (voters & set).count_ones() > voters.count_ones() / 2
}

fn bit(host: HostIndex) -> Set {
    u32::try_from(host).ok().and_then(|host| 1_u32.checked_shl(host)).unwrap_or(0)
}

pub(super) fn set_of(hosts: impl IntoIterator<Item = HostIndex>) -> Set {
    hosts.into_iter().map(bit).fold(0, |set, bit| set | bit)
}

/// Its version and its members, in brackets those without a vote.
pub(super) fn show_membership(membership: &Membership) -> String {
    let Membership { servers, version } = membership;
    let server = |(id, line): (&ServerId, &ServerLine)| match line.role {
        ServerRole::Participant => format!("s{id}"),
        ServerRole::Observer => format!("(s{id})"),
    };
    format!("{version}: {}", servers.iter().map(server).collect::<Vec<_>>().join(" "))
}

impl Ensemble {
    /// What members are told of their clients and of their ensemble.
    pub(super) fn client_rules(&self, clock: &Clockwork) -> ClientRules {
        let rules = ClientRules {
            enforce_quota: true,
            local_sessions: clock.drawn.local,
            local_upgrading: true,
            read_only_mode: clock.drawn.read_only,
            ..ClientRules::default()
        };
        if !clock.drawn.changes {
            return rules;
        }
        ClientRules {
            membership: self.first_membership(clock),
            reconfig: Reconfiguration::On { standalone: !clock.drawn.alone },
            // Whoever asks for a change may have it.
            skip_acl: true,
            ..rules
        }
    }

    /// The membership that members are started with, every time: files that would know a later one are lost.
    fn first_membership(&self, clock: &Clockwork) -> ByteString {
        let mut text = String::new();
        for (host, machine) in self.hosts.iter().enumerate() {
            let role = match host < clock.drawn.members {
                true => ServerRole::Participant,
                false if clock.drawn.strangers => continue,
                false => ServerRole::Observer,
            };
            text += &format!("{}\n", server_line(machine.id.0, role));
        }
        text.push_str("version=0");
        text.into()
    }

    /// Members that may have a vote some time.
    pub(super) fn voters_at_most(&self, clock: &Clockwork) -> usize {
        if clock.drawn.changes { self.hosts.len() } else { clock.drawn.members }
    }
}

impl Oracle {
    /// True when these are a quorum whatever may rule, and one of them knows what does.
    pub(super) fn decides(&self, clock: &Clockwork, ensemble: &Ensemble, set: Set) -> bool {
        if !clock.drawn.changes {
            return self.is_quorum_of_all(clock, set);
        }
        let last = self.invariants.last_membership();
        let knows = |host: &HostIndex| {
            let process = ensemble.hosts[*host].process.as_ref();
            bit(*host) & set > 0
                && process.is_some_and(|process| process.member().membership().version >= last)
        };
        (last == Zxid::ZERO || (0..ensemble.hosts.len()).any(|host| knows(&host)))
            && self.is_quorum_of_all(clock, set)
    }

    /// True when these are a quorum whatever may rule.
    pub(super) fn is_quorum_of_all(&self, clock: &Clockwork, set: Set) -> bool {
        if !clock.drawn.changes {
            return is_quorum(set_of(0..clock.drawn.members), set);
        }
        let may_rule = self.invariants.may_rule();
        may_rule.into_iter().all(|voters| is_quorum(set_of(voters.iter().copied()), set))
    }

    /// At the end the last membership rules everywhere.
    pub(super) fn check_ruling(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        if !clock.drawn.changes {
            return;
        }
        for host in 0..ensemble.hosts.len() {
            if let Some(process) = &ensemble.hosts[host].process {
                let finding = self.invariants.check_ruling(host, process.member().membership());
                self.found(clock, finding);
            }
        }
    }
}

impl World {
    fn voters(&self, membership: &Membership) -> Set {
        set_of(membership.voters().into_iter().filter_map(|ServerId(id)| HostIndex::try_from(id - 1).ok()))
    }

    /// The voters of each membership by which a running member counts.
    pub(super) fn says(&self, host: HostIndex) -> Vec<Set> {
        if !self.clock.drawn.changes {
            return vec![set_of(0..self.clock.drawn.members)];
        }
        let Some(process) = &self.ensemble.hosts[host].process else { return Vec::new() };
        let active = process.member().membership();
        let mut says = vec![self.voters(active)];
        says.extend(
            self.oracle.invariants.pending(host, active.version).map(|voters| set_of(voters.iter().copied())),
        );
        says
    }
}
