//! Ensembles that change: what their members are started with, and who could decide by what is known.
//!
//! An operator changes the ensemble all the while. At every start a member has lost the files that keep
//! memberships: the log must be enough. What lives outside of the core is left out: addresses (every pair of
//! members can connect), ports, and dynamic files.

use bytestring::ByteString;
use node_core::{ClientRules, Reconfiguration};
use node_wire::ids::ServerId;
use node_wire::membership::{Membership, ServerLine, ServerRole};

use crate::network::HostIndex;
use crate::watcher::server_line;
use crate::world::{Clockwork, Ensemble};

/// Members as bits: ensembles are small.
pub(in crate::world) type Set = u32;

/// More than half of these voters.
pub(in crate::world) fn is_quorum(voters: Set, set: Set) -> bool {
    (voters & set).count_ones() > voters.count_ones() / 2
}

pub(in crate::world) fn bit(host: HostIndex) -> Set {
    u32::try_from(host).ok().and_then(|host| 1_u32.checked_shl(host)).unwrap_or(0)
}

pub(in crate::world) fn set_of(hosts: impl IntoIterator<Item = HostIndex>) -> Set {
    hosts.into_iter().map(bit).fold(0, |set, bit| set | bit)
}

/// Its version and its members, in brackets those without a vote.
pub(in crate::world) fn show_membership(membership: &Membership) -> String {
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
    pub(in crate::world) fn voters_at_most(&self, clock: &Clockwork) -> usize {
        if clock.drawn.changes { self.hosts.len() } else { clock.drawn.members }
    }
}
