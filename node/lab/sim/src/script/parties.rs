//! Whom a transition is about: its members and its client.

use super::lines::Transition;
use crate::network::HostIndex;

/// The client that a transition is about.
pub(super) fn client_of(transition: &Transition) -> Option<usize> {
    client_mut(&mut transition.clone()).copied()
}

/// The client that a transition is about, to be given another number.
pub(super) fn client_mut(transition: &mut Transition) -> Option<&mut usize> {
    match transition {
        Transition::Connects { client, .. }
        | Transition::Asks { client, .. }
        | Transition::Pings { client }
        | Transition::HangsUp { client }
        | Transition::Hears { client, .. }
        | Transition::Drops { client, .. }
        | Transition::Listens { client }
        | Transition::Cut { client } => Some(client),
        _ => None,
    }
}

/// Members that a transition is about.
pub(super) fn hosts_of(transition: &Transition) -> [Option<HostIndex>; 2] {
    let mut hosts = [None; 2];
    let mut places = hosts.iter_mut();
    rename_hosts(&mut transition.clone(), |host| {
        if let Some(place) = places.next() {
            *place = Some(host);
        }
        host
    });
    hosts
}

/// Gives each member that a transition is about another name.
pub(super) fn rename_hosts(transition: &mut Transition, mut name: impl FnMut(HostIndex) -> HostIndex) {
    match transition {
        Transition::Start { host }
        | Transition::Crash { host, .. }
        | Transition::Tick { host, .. }
        | Transition::Stored { host, .. }
        | Transition::Wrote { host, .. }
        | Transition::Told { host }
        | Transition::Snapshot { host }
        | Transition::Clock { host, .. }
        | Transition::DiskFails { host, .. }
        | Transition::Disk { host, .. }
        | Transition::Rots { host, .. }
        | Transition::Connects { host, .. }
        | Transition::Hears { host, .. }
        | Transition::Drops { host, .. } => *host = name(*host),
        Transition::Meets { host, peer }
        | Transition::Misses { host, peer }
        | Transition::Dials { host, peer }
        | Transition::Accepts { host, peer }
        | Transition::Dialled { host, peer }
        | Transition::Refused { host, peer }
        | Transition::Loses { host, peer, .. }
        | Transition::Vote { from: host, to: peer }
        | Transition::Packet { from: host, to: peer, .. } => {
            *host = name(*host);
            *peer = name(*peer);
        }
        Transition::Asks { .. }
        | Transition::Pings { .. }
        | Transition::HangsUp { .. }
        | Transition::Listens { .. }
        | Transition::Cut { .. }
        | Transition::Look(_) => {}
    }
}
