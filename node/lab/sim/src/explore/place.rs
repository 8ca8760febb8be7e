//! The places of the members of an exploration, counted from zero, and the server ids that go with them.

use node_wire::ids::ServerId;

/// The most members of an exploration.
pub(super) const MAX_MEMBERS: usize = 4;

/// A member's place: its server id less one.
pub(super) type Place = usize;

/// The server at a place.
pub(super) fn server(place: Place) -> ServerId {
    ServerId(u64::try_from(place).expect("members are few") + 1)
}

/// The place of a server.
pub(super) fn place_of(server: ServerId) -> Option<Place> {
    (0..MAX_MEMBERS).find(|place| self::server(*place) == server)
}
