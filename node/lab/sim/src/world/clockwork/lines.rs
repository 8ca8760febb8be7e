//! Lines of the trace, and the counters beside them.

use node_core::io::{Input, StoreOp};
use node_core::{Phase, Role};
use node_wire::client::EventType;
use workloads::op::Object;

use crate::network::HostIndex;
use crate::world::Clockwork;

impl Clockwork {
    pub(in crate::world) fn trace_store(&mut self, host: HostIndex, op: &StoreOp, ticket: u64) {
        let (verb, figure) = match op {
            StoreOp::Append(entry) => ("append", entry.zxid().0),
            StoreOp::Truncate(zxid) => ("truncate", zxid.0),
            StoreOp::Install(image) => ("install", image.zxid.0),
            StoreOp::AcceptedEpoch(epoch) => ("accepted-epoch", u64::from(epoch.0)),
            StoreOp::CurrentEpoch(epoch) => ("current-epoch", u64::from(epoch.0)),
            StoreOp::Membership(membership) => ("membership", membership.version.0),
        };
        self.line(host, verb, [figure, ticket], || format!("{figure:#x} ticket {ticket}"));
    }

    pub(in crate::world) fn trace_input(&mut self, host: HostIndex, input: &Input) {
        let (verb, figures) = match input {
            Input::Tick => ("tick", [0, 0]),
            Input::Stored { ticket } => ("stored", [*ticket, 0]),
            Input::Notification { from, notification } => ("vote", [from.0, notification.zxid.0]),
            Input::ElectionConnected { peer } => ("election-connected", [peer.0, 0]),
            Input::ElectionLost { peer } => ("election-lost", [peer.0, 0]),
            Input::Dialled { leader, conn } => ("dialled", [leader.0, conn.0]),
            Input::DialFailed { leader } => ("dial-failed", [leader.0, 0]),
            Input::Accepted { conn } => ("accepted", [conn.0, 0]),
            Input::Packet { conn, packet } => ("packet", [conn.0, packet.zxid.cast_unsigned()]),
            Input::Image { conn, image } => ("image", [conn.0, image.zxid.0]),
            Input::Alive { conn } => ("alive", [conn.0, 0]),
            Input::PeerLost { conn } => ("peer-lost", [conn.0, 0]),
            Input::ClientConnect { client, .. } => ("client-connect", [client.0, 0]),
            Input::ClientRequest { client, request } => {
                ("client-request", [client.0, u64::from(request.xid.cast_unsigned())])
            }
            Input::ClientProof { client, xid, .. } => {
                ("client-proof", [client.0, u64::from(xid.cast_unsigned())])
            }
            Input::ClientLost { client } => ("client-lost", [client.0, 0]),
        };
        self.line(host, verb, figures, || describe(input));
    }

    /// A process starts with what its log recovered.
    pub(in crate::world) fn note_start(&mut self, host: HostIndex, first: bool, found: &node_log::Recovered) {
        let torn = found.repairs.torn_tail.is_some();
        self.counters.restarts += u64::from(!first);
        self.counters.torn_tails += u64::from(torn);
        let skipped = u64::try_from(found.repairs.damaged_snapshots.len()).unwrap_or(0);
        self.counters.skipped_snapshots += skipped;
        let base = found.image.zxid;
        let last = found.entries.last().map_or(base, node_wire::txn::Entry::zxid);
        let (accepted, current) = (found.accepted_epoch.0, found.current_epoch.0);
        self.line(host, "start", [base.0, last.0], || {
            let torn = if torn { ", torn tail cut" } else { "" };
            format!("snapshot {base}, log to {last}, epochs {accepted} {current}{torn}")
        });
        if !first {
            let torn = if torn { ", behind it a torn tail" } else { "" };
            let id = host + 1;
            self.remark(|| {
                format!(
                    "s{id} finds acceptedEpoch {accepted}, currentEpoch {current}, its log up to {last}{torn}"
                )
            });
        }
    }

    pub(in crate::world) fn count_crash(&mut self, phase: Phase, role: Role) {
        let counter = match phase {
            Phase::Election => &mut self.counters.crash_looking,
            Phase::Discovery => &mut self.counters.crash_discovery,
            Phase::Synchronization => &mut self.counters.crash_synchronization,
            Phase::Broadcast => &mut self.counters.crash_broadcast,
        };
        *counter += 1;
        self.counters.crash_leader += u64::from(role == Role::Leading);
    }

    pub(in crate::world) fn count(&mut self, object: Object) {
        match object {
            Object::REGISTER => {}
            Object::SET => self.counters.adds += 1,
            Object::LIST => self.counters.appends += 1,
            _ => self.counters.visits += 1,
        }
    }

    pub(in crate::world) fn line_of_event(&mut self, index: usize, kind: Option<EventType>, path: &str) {
        let client = u64::try_from(index).unwrap_or(u64::MAX);
        let code = kind.map_or(0, |kind| u64::from(kind.code().cast_unsigned()));
        self.world_line("event", [client, code], || format!("c{index} {kind:?} {path}"));
    }
}

/// An input in a few words; its verb stands before them.
pub(in crate::world) fn describe(input: &Input) -> String {
    match input {
        Input::Tick => String::new(),
        Input::Stored { ticket } => format!("up to {ticket}"),
        Input::Notification { from, notification } => format!(
            "from s{}: {:?} for s{} zxid {} round {} epoch {}",
            from.0,
            notification.state,
            notification.leader.0,
            notification.zxid,
            notification.round.0,
            notification.peer_epoch.0
        ),
        Input::ElectionConnected { peer } | Input::ElectionLost { peer } => format!("s{}", peer.0),
        Input::Dialled { leader, conn } => format!("s{} as {}", leader.0, conn.0),
        Input::DialFailed { leader } => format!("s{}", leader.0),
        Input::Accepted { conn } | Input::Alive { conn } | Input::PeerLost { conn } => conn.0.to_string(),
        Input::Packet { conn, packet } => format!(
            "on {}: {:?} {:#x} ({} bytes)",
            conn.0,
            packet.kind,
            packet.zxid,
            packet.data.as_ref().map_or(0, bytes::Bytes::len)
        ),
        Input::Image { conn, image } => format!("on {}: {}", conn.0, image.zxid),
        Input::ClientConnect { client, request, who: _ } => {
            format!("{}: session {} seen {}", client.0, request.session, request.last_zxid_seen)
        }
        Input::ClientRequest { client, request } => {
            format!("{}: xid {} op {}", client.0, request.xid, request.op)
        }
        Input::ClientProof { client, xid, .. } => format!("{}: xid {xid}", client.0),
        Input::ClientLost { client } => client.0.to_string(),
    }
}
