//! Which ports a run uses: a block of its own, below the range from which the kernel takes ports for
//! outgoing connections.
//!
//! A port inside that range can be taken by any connection of anybody between the death of a member and its
//! next start. Blocks lie on a grid, and the first port of a block is kept bound for the whole run, so that
//! two runs never share one.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::anyhow;
use harness_systems::{Addresses, Dialling, Traits};
use rand::seq::SliceRandom;
use runs::member::MemberId;

use crate::exit::Failure;
use crate::links::protocol::Pair;

/// Blocks begin at multiples of this from [`LOWEST`].
const GRID: u16 = 256;
/// No block lies below this.
const LOWEST: u16 = 10_000;
/// Where outgoing ports begin when the kernel does not say.
const USUAL_EPHEMERAL_START: u16 = 32_768;
/// The largest ensemble whose ports fit into one block.
pub const MAX_MEMBERS: u32 = 9;

/// A port number of this machine.
fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Which ports an ensemble needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    members: u16,
    /// Ports on which each listens for others.
    peers: u16,
    /// Which of those is the clients' as well.
    clients_at: Option<u16>,
    dialling: Dialling,
}

impl Layout {
    /// So many members of such a system.
    pub fn of(members: u32, system: Traits) -> Result<Self, Failure> {
        if members > MAX_MEMBERS {
            return Err(Failure::usage(format!(
                "--nodes {members}: the process cluster has room for at most {MAX_MEMBERS} members"
            )));
        }
        let members = u16::try_from(members).map_err(|error| anyhow!(error))?;
        let Traits { peer_ports: peers, clients_at, dialling, .. } = system;
        Ok(Self { members, peers, clients_at, dialling })
    }

    /// How many ports each member listens on, clients' included.
    fn own(self) -> u16 {
        1 + self.peers
    }

    /// How many ports that takes.
    fn needed(self) -> u16 {
        let dialled = match self.dialling {
            Dialling::ByPair => self.members * self.members,
            Dialling::Together => self.members,
        };
        1 + self.own() * self.members + self.peers * dialled
    }
}

/// The ports of a run, its block held.
#[derive(Debug)]
pub struct PortPlan {
    base: u16,
    layout: Layout,
    /// Keeps the block ours.
    _held: TcpListener,
}

impl PortPlan {
    /// The first port.
    pub fn base(&self) -> u16 {
        self.base
    }

    fn at(&self, offset: u16) -> SocketAddr {
        loopback(self.base + offset)
    }

    fn place(member: MemberId) -> u16 {
        u16::try_from(member.0.saturating_sub(1)).unwrap_or(u16::MAX)
    }
}

impl Addresses for PortPlan {
    fn client(&self, member: MemberId) -> SocketAddr {
        match self.layout.clients_at {
            Some(port) => self.peer(member, port),
            None => self.at(1 + self.layout.own() * Self::place(member)),
        }
    }

    fn peer(&self, member: MemberId, port: u16) -> SocketAddr {
        self.at(2 + self.layout.own() * Self::place(member) + port)
    }

    fn dial(&self, pair: Pair, port: u16) -> SocketAddr {
        let Layout { members, peers, dialling, .. } = self.layout;
        let to = Self::place(pair.to);
        let index = match dialling {
            Dialling::ByPair => Self::place(pair.from) * members + to,
            Dialling::Together => to,
        };
        self.at(1 + self.layout.own() * members + peers * index + port)
    }
}

/// Takes a block: the one asked for, or any that is free.
pub fn take(layout: Layout, asked: Option<u16>) -> Result<PortPlan, Failure> {
    match asked {
        Some(base) => take_asked(layout, base),
        None => take_any(layout),
    }
}

fn take_asked(layout: Layout, base: u16) -> Result<PortPlan, Failure> {
    let last = base.checked_add(layout.needed() - 1).ok_or_else(|| {
        Failure::usage(format!(
            "--base-port {base}: {} ports from there do not fit below 65536; choose a lower one",
            layout.needed()
        ))
    })?;
    try_block(layout, base).map_err(|(port, error)| {
        Failure::usage(format!(
            "--base-port {base}: port {port} can't be used ({error}); the run needs the ports {base} to \
             {last} on 127.0.0.1. Choose another base, or leave the flag out to have a free block found"
        ))
    })
}

fn take_any(layout: Layout) -> Result<PortPlan, Failure> {
    let end = ephemeral_start().filter(|start| *start >= LOWEST + GRID).unwrap_or(USUAL_EPHEMERAL_START);
    let mut bases: Vec<u16> = (0..(end - LOWEST) / GRID).map(|index| LOWEST + index * GRID).collect();
    // Not from the seed: where a run finds room is no part of what is to be repeated.
    bases.shuffle(&mut rand::rng());
    let tried = bases.len();
    bases.into_iter().find_map(|base| try_block(layout, base).ok()).ok_or_else(|| {
        Failure::Harness(anyhow!(
            "no free block of {} ports between {LOWEST} and {end} on 127.0.0.1 ({tried} tried)",
            layout.needed()
        ))
    })
}

/// Tries every port of a block; the error names the first that can't be had.
fn try_block(layout: Layout, base: u16) -> Result<PortPlan, (u16, io::Error)> {
    let bind = |port: u16| TcpListener::bind(loopback(port)).map_err(|error| (port, error));
    let held = bind(base)?;
    for port in base + 1..base + layout.needed() {
        drop(bind(port)?);
    }
    Ok(PortPlan { base, layout, _held: held })
}

/// Where the kernel's range for outgoing connections begins.
pub fn ephemeral_start() -> Option<u16> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const BY_PAIR: Layout = Layout { members: 3, peers: 2, clients_at: None, dialling: Dialling::ByPair };

    #[test]
    fn no_two_uses_share_a_port_and_all_fit_the_block() {
        for members in 1..=9 {
            for dialling in [Dialling::ByPair, Dialling::Together] {
                check(Layout { members, peers: 2, clients_at: None, dialling });
            }
        }
    }

    fn check(layout: Layout) {
        let members = layout.members;
        let plan = take(layout, None).expect("a block");
        let mut seen = BTreeSet::from([plan.base()]);
        let ids: Vec<MemberId> = (1..=u64::from(members)).map(MemberId).collect();
        for id in &ids {
            for address in [plan.client(*id), plan.peer(*id, 0), plan.peer(*id, 1)] {
                assert!(seen.insert(address.port()));
            }
        }
        let pairs = || ids.iter().flat_map(|one| ids.iter().map(|other| Pair::new(*one, *other)));
        let dialled: BTreeSet<u16> = pairs()
            .filter(|pair| pair.from != pair.to)
            .flat_map(|pair| [plan.dial(pair, 0).port(), plan.dial(pair, 1).port()])
            .collect();
        // Two for each ordered pair, or for each member that anybody dials.
        let expected = match layout.dialling {
            Dialling::ByPair => ids.len() * (ids.len() - 1),
            Dialling::Together if ids.len() == 1 => 0,
            Dialling::Together => ids.len(),
        };
        assert_eq!(dialled.len(), 2 * expected);
        assert!(dialled.into_iter().all(|port| seen.insert(port)));
        let past = plan.base() + GRID;
        assert!(seen.iter().all(|port| (plan.base()..past).contains(port)));
    }

    #[test]
    fn two_runs_at_once_get_different_blocks() {
        let first = take(Layout { members: 5, ..BY_PAIR }, None).expect("a block");
        let second = take(Layout { members: 5, ..BY_PAIR }, None).expect("another");
        assert_ne!(first.base(), second.base());
    }

    #[test]
    fn a_busy_port_in_the_block_asked_for_is_named() {
        let plan = take(BY_PAIR, None).expect("a block");
        let base = plan.base();
        drop(plan);
        let squatter = TcpListener::bind(loopback(base + 4)).expect("free a moment ago");
        let error = take(BY_PAIR, Some(base)).expect_err("busy").to_string();
        assert!(error.contains(&format!("port {} can't be used", base + 4)), "{error}");
        drop(squatter);
        assert_eq!(take(BY_PAIR, Some(base)).expect("free again").base(), base);
    }

    #[test]
    fn a_block_past_the_last_port_is_refused() {
        assert!(matches!(take(BY_PAIR, Some(65_530)), Err(Failure::Usage(_))));
    }
}
