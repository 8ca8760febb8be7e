//! What can happen next.
//!
//! Deliveries, disks and restarts happen sooner or later; faults, elections by the oracle and clients happen
//! or not, as long as the budget lasts.

use std::fmt;

use node_core::{Machine, Maker, Role};

use super::disk::Kept;
use super::place::{Place, server};
use super::world::World;

/// A step from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// A vote arrives.
    Vote { from: Place, to: Place },
    /// A member learns that its election connection is gone; what was in flight is lost.
    VoteLost { at: Place, peer: Place },
    /// The election connection of a pair stands; each end sends its last vote.
    Connect { one: Place, other: Place },
    /// A dial arrives: a connection, or a refusal when nobody listens.
    Dial { from: Place, to: Place },
    /// The next cargo of a connection arrives.
    Cargo { conn: u64, end: usize },
    /// An end learns that its connection broke; what was in flight is lost.
    Broken { conn: u64, end: usize },
    /// Everything up to what the member waits for is durable.
    Stored { at: Place },
    /// A process begins.
    Start { at: Place },
    /// Time passes at a member until something comes of it.
    Clock { at: Place },
    /// A process ends, and with it all that is not on disk.
    Crash { at: Place, kept: Kept },
    /// A quorum connection breaks.
    Lose { conn: u64 },
    /// An election connection breaks.
    LoseLink { one: Place, other: Place },
    /// The oracle decides an election, for one member.
    Elect { at: Place, leader: Place },
    /// A client asks the leader for a session, which is a proposal.
    Client { at: Place },
}

impl Transition {
    /// True for what a quiet and healthy world does sooner or later.
    pub(super) fn is_bound_to_happen(self) -> bool {
        match self {
            Self::Vote { .. }
            | Self::VoteLost { .. }
            | Self::Connect { .. }
            | Self::Dial { .. }
            | Self::Cargo { .. }
            | Self::Broken { .. }
            | Self::Stored { .. }
            | Self::Start { .. } => true,
            Self::Clock { .. }
            | Self::Crash { .. }
            | Self::Lose { .. }
            | Self::LoseLink { .. }
            | Self::Elect { .. }
            | Self::Client { .. } => false,
        }
    }
}

impl<F: Maker, const N: usize> World<F, N> {
    /// Everything that can happen next. A [`Transition::Clock`] among it may turn out to change nothing.
    pub(super) fn enabled(&self) -> Vec<Transition> {
        let mut enabled = Vec::with_capacity(16);
        self.deliveries(&mut enabled);
        self.choices(&mut enabled);
        enabled
    }

    /// What is bound to happen.
    pub(super) fn deliveries(&self, enabled: &mut Vec<Transition>) {
        for (at, host) in self.hosts.iter().enumerate() {
            let Some(member) = &host.member else {
                enabled.push(Transition::Start { at });
                continue;
            };
            if member.awaited_ticket().is_some() {
                enabled.push(Transition::Stored { at });
            }
            for (to, dials) in host.dials.iter().enumerate() {
                if *dials > 0 {
                    enabled.push(Transition::Dial { from: at, to });
                }
            }
            for peer in (0..N).filter(|peer| *peer != at) {
                if !self.votes[peer][at].is_empty() {
                    enabled.push(Transition::Vote { from: peer, to: at });
                }
                let linked = self.linked[at.min(peer)][at.max(peer)];
                if self.told[at][peer] && !linked {
                    enabled.push(Transition::VoteLost { at, peer });
                }
                let both = self.model.has_votes() && at < peer && self.hosts[peer].member.is_some();
                if both && !linked {
                    enabled.push(Transition::Connect { one: at, other: peer });
                }
            }
        }
        for conn in &self.conns {
            for (end, this) in conn.ends.iter().enumerate().filter(|(_, end)| end.open) {
                if !this.incoming.is_empty() {
                    enabled.push(Transition::Cargo { conn: conn.number, end });
                }
                if !conn.sound {
                    enabled.push(Transition::Broken { conn: conn.number, end });
                }
            }
        }
    }

    /// What may happen or not.
    fn choices(&self, enabled: &mut Vec<Transition>) {
        let budget = self.budget;
        for (at, host) in self.hosts.iter().enumerate().filter(|(_, host)| host.member.is_some()) {
            if budget.elections > 0 && self.model.has_oracle() && host.role == Role::Looking {
                enabled.extend((0..N).map(|leader| Transition::Elect { at, leader }));
            }
            if budget.proposals > 0 && host.role == Role::Leading && host.established {
                enabled.push(Transition::Client { at });
            }
            if budget.timeouts > 0 {
                enabled.push(Transition::Clock { at });
            }
            if budget.crashes > 0 {
                enabled
                    .extend(host.disk.after_a_crash().into_iter().map(|kept| Transition::Crash { at, kept }));
            }
        }
        if budget.losses > 0 {
            for conn in self.conns.iter().filter(|conn| conn.sound) {
                enabled.push(Transition::Lose { conn: conn.number });
            }
            for one in 0..N {
                for other in (one + 1..N).filter(|other| self.linked[one][*other]) {
                    enabled.push(Transition::LoseLink { one, other });
                }
            }
        }
    }

    /// A transition in words: what it is, and what it carries.
    pub(super) fn describe(&self, transition: Transition) -> String {
        let who = |place| format!("s{}", server(place));
        match transition {
            Transition::Vote { from, to } => {
                let vote = self.votes[from][to].front();
                let what = vote.map_or_else(String::new, |vote| {
                    format!(
                        ": {:?} for s{} zxid {} round {} epoch {}",
                        vote.state, vote.leader, vote.zxid, vote.round, vote.epoch
                    )
                });
                format!("{} hears {}{what}", who(to), who(from))
            }
            Transition::VoteLost { at, peer } => {
                format!("{} learns that its election connection to {} is gone", who(at), who(peer))
            }
            Transition::Connect { one, other } => {
                format!("{} and {} have an election connection", who(one), who(other))
            }
            Transition::Dial { from, to } => format!("{} dials {}", who(from), who(to)),
            Transition::Cargo { conn, end } => {
                let Some(conn) = self.conns.iter().find(|known| known.number == conn) else {
                    return "nothing".to_owned();
                };
                let (from, to) = (who(conn.ends[1 - end].place), who(conn.ends[end].place));
                let what = conn.ends[end].incoming.front();
                format!("{to} gets from {from}: {}", what.map_or_else(String::new, ToString::to_string))
            }
            Transition::Broken { conn, end } => {
                let Some(conn) = self.conns.iter().find(|known| known.number == conn) else {
                    return "nothing".to_owned();
                };
                let (here, there) = (who(conn.ends[end].place), who(conn.ends[1 - end].place));
                format!("{here} learns that its connection with {there} broke")
            }
            Transition::Stored { at } => format!("{} has on disk what it waits for", who(at)),
            Transition::Start { at } => format!("{} starts", who(at)),
            Transition::Clock { at } => format!("{}'s time runs out", who(at)),
            Transition::Crash { at, kept: Kept { operations, cut } } => {
                let queued = self.hosts[at].disk.queue.len();
                let half = if cut > 0 { " and a part of the next" } else { "" };
                format!("{} crashes, {operations} of {queued} writes are on disk{half}", who(at))
            }
            Transition::Lose { conn } => {
                let Some(conn) = self.conns.iter().find(|known| known.number == conn) else {
                    return "nothing".to_owned();
                };
                let [one, other] = &conn.ends;
                format!("the connection of {} with {} breaks", who(one.place), who(other.place))
            }
            Transition::LoseLink { one, other } => {
                format!("the election connection of {} with {} breaks", who(one), who(other))
            }
            Transition::Elect { at, leader } => format!("{} is told that {} leads", who(at), who(leader)),
            Transition::Client { at } => format!("a client asks {} for a session", who(at)),
        }
    }
}

impl fmt::Display for super::world::Cargo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(packet) => write!(f, "{:?} {:#x}", packet.kind, packet.zxid),
            Self::Image(image) => write!(f, "the tree at {}", image.zxid()),
            Self::Fin => f.write_str("the end of the connection"),
        }
    }
}
