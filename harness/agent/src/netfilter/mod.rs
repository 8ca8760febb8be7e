//! The packet filter of a member's network namespace, written over netlink.
//!
//! ```text
//! table inet harness-<run>                        owned by the agent's socket: gone when the agent is
//!   counter refused-<peer>, passed-<peer>         named, so that healing a fault forgets nothing
//!   chain faults         hook input, priority -100: jump fault-<name>, for each fault
//!   chain fault-<name>   one for each fault
//!       the control port's datagrams: return  (and neighbour discovery; and resets, of a resetting fault)
//!       from a cut peer: counter refused-<peer>, then drop, or reject TCP with a reset
//!   chain passed         hook input, priority 100
//!       TCP to or from the members' ports: goto counted
//!   chain counted        from a peer: counter passed-<peer>
//! ```
//!
//! Why it is drawn like this:
//!
//! - **Input, not prerouting.** Every packet for the member passes the input hook, new connections,
//!   established ones and datagrams alike; fragments are whole there, so that ports can be read; and every
//!   kernel that can reject with a reset can do it there. What the member sends is never hit: a cut is one
//!   way.
//! - **A chain for each fault.** `return` ends only its own chain, a later one still sees the packet; `drop`
//!   ends all. So chains of faults are independent, a fault is put in force and taken away as one atomic
//!   batch, and what any of them refused never reaches the counting chain.
//! - **One base chain for all of them,** made once: when a base chain of a namespace goes, the kernel drops
//!   every packet that waits in a queue of that namespace, and one that is only held back would be lost.
//! - **Named counters.** They live in the table, not in the rules: nothing has to be read before a chain is
//!   deleted, and packets between the reading and the deletion are not lost.
//! - **A resetting fault lets resets in.** When two members refuse each other, the reset that one sends for a
//!   refused packet comes from a cut peer; were it refused, no connection would ever break. Resets carry no
//!   message and are counted as neither passed nor refused.
//! - **Neighbour discovery is let in** (IPv6): without it the controls, which no fault may hit, would stay
//!   away as soon as a neighbour's entry expired. IPv4's ARP is no business of this table.
//! - **The table belongs to the socket** (since Linux 5.12): when the agent dies in whatever way, the kernel
//!   takes the table away. Older kernels get a table without an owner; there the namespace's end does it.
//!
//! Only `nf_tables` itself is used: no `nft` executable, no C library. The numbers are the kernel's
//! `include/uapi/linux/netfilter/nf_tables.h`.

pub(crate) mod netlink;
pub(crate) mod rules;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::net::IpAddr;

use rustix::thread::{MembarrierCommand, membarrier};

use crate::protocol::{Peer, PeerCount, Refusal};
use netlink::Netlink;
pub use netlink::NetlinkError;
use rules::{Batch, counter_name};

/// Most peers that one filter knows; a batch and the errors about it must fit into a socket's buffers.
pub const MAX_PEERS: usize = 64;
/// Most ports that are counted.
pub const MAX_PORTS: usize = 64;
/// Most faults at the same time.
pub const MAX_FAULTS: usize = 64;
/// Longest table or chain name that every kernel takes (`NFT_TABLE_MAXNAMELEN` was 32, with the ending zero).
const MAX_NAME: usize = 31;

/// Why a filter could not be changed or read.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The kernel said no, or was not understood.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A fault names somebody who was not introduced.
    #[error("find peer {0}: hello did not name it")]
    UnknownPeer(Peer),
    /// More than the filter is made for.
    #[error("take {count} {what}: at most {most} are possible")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there were.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// Two peers could not be told apart.
    #[error("tell peers {0} and {1} apart: they have the same number or the same address")]
    Twins(Peer, Peer),
    /// Two faults would have the same chain.
    #[error("name a chain for fault {0:?}: another fault in force has the same one; use another name")]
    TakenName(String),
}

/// The table of one run in this network namespace.
#[derive(Debug)]
pub struct Filter {
    netlink: Netlink,
    table: String,
    peers: Vec<(Peer, IpAddr)>,
    control_port: u16,
    /// The chains in force, by the fault's name.
    chains: BTreeMap<String, String>,
    /// A cut is so young that packets may be under way that never met it.
    unsettled: bool,
}

impl Filter {
    /// Makes the table with its counters and its counting chain; one of the same name is replaced.
    ///
    /// # Errors
    /// When the peers can't be told apart or are too many, or when the kernel refuses, with what it lacks.
    pub fn open(
        run: &str,
        peers: &[(Peer, IpAddr)],
        control_port: u16,
        peer_ports: &[u16],
    ) -> Result<Self, FilterError> {
        let limits = [("peers", peers.len(), MAX_PEERS), ("ports", peer_ports.len(), MAX_PORTS)];
        for (what, count, most) in limits {
            if count > most {
                return Err(FilterError::TooMany { what, count, most });
            }
        }
        // The kernel shows IPv4 packets as such, however an address was written.
        let peers: Vec<_> = peers.iter().map(|(peer, address)| (*peer, address.to_canonical())).collect();
        for (index, (peer, address)) in peers.iter().enumerate() {
            for (other, other_address) in peers.iter().take(index) {
                if peer == other || address == other_address {
                    return Err(FilterError::Twins(*other, *peer));
                }
            }
        }
        let mut netlink = Netlink::open()?;
        let table = kernel_name("harness-", run);
        let make = |owned| {
            let mut batch = Batch::new(&table);
            batch.replace_table(owned);
            batch.count(&peers, peer_ports);
            batch
        };
        match netlink.commit(make(true)) {
            // Kernels before 5.12 don't know owned tables.
            Err(error) if error.concerns_ownership() => netlink.commit(make(false))?,
            other => other?,
        }
        Ok(Self { netlink, table, peers, control_port, chains: BTreeMap::new(), unsettled: false })
    }

    /// Lets nothing in from these peers, from the moment that this returns. A fault of the same name is
    /// replaced in the same instant.
    ///
    /// # Errors
    /// When a peer is unknown or the kernel refuses; nothing is changed then.
    pub fn cut(&mut self, fault: &str, from: &[Peer], refusal: Refusal) -> Result<(), FilterError> {
        let mut cut = Vec::with_capacity(from.len());
        for peer in from {
            let found = self.peers.iter().find(|(known, _)| known == peer);
            let entry = *found.ok_or(FilterError::UnknownPeer(*peer))?;
            if !cut.contains(&entry) {
                cut.push(entry);
            }
        }
        let chain = kernel_name("fault-", fault);
        let replaced = self.chains.contains_key(fault);
        if !replaced && self.chains.values().any(|taken| *taken == chain) {
            return Err(FilterError::TakenName(fault.to_owned()));
        }
        if !replaced && self.chains.len() >= MAX_FAULTS {
            let count = self.chains.len() + 1;
            return Err(FilterError::TooMany { what: "faults", count, most: MAX_FAULTS });
        }
        let mut batch = Batch::new(&self.table);
        let others = self.chains.iter().filter(|(name, _)| *name != fault).map(|(_, chain)| chain.as_str());
        batch.leave_all();
        if replaced {
            batch.delete_chain(&chain);
        }
        batch.fault(&chain, self.control_port, &cut, refusal);
        batch.enter(others.chain([chain.as_str()]));
        self.netlink.commit(batch)?;
        self.chains.insert(fault.to_owned(), chain);
        self.unsettled = true;
        Ok(())
    }

    /// Waits until every packet that was in the middle of the filter when the last cut came has left it, so
    /// that counters read from then on show nothing that was let in before. Takes up to some ten milliseconds
    /// after a cut, and otherwise nothing.
    ///
    /// A global membarrier is a grace period of RCU, under which packets pass the filter. A kernel without it
    /// has nothing to wait with.
    pub fn settle(&mut self) {
        if std::mem::take(&mut self.unsettled) {
            let _ = membarrier(MembarrierCommand::Global);
        }
    }

    /// Takes a fault's chain away; that there is none is no error.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn heal(&mut self, fault: &str) -> Result<(), FilterError> {
        let Some(chain) = self.chains.get(fault) else { return Ok(()) };
        let others = self.chains.iter().filter(|(name, _)| *name != fault).map(|(_, chain)| chain.as_str());
        let mut batch = Batch::new(&self.table);
        batch.leave_all();
        batch.enter(others);
        batch.delete_chain(chain);
        self.netlink.commit(batch)?;
        self.chains.remove(fault);
        Ok(())
    }

    /// Takes the chains of all faults away, all at once, and one by one when that fails.
    ///
    /// # Errors
    /// The first refusal of the kernel, when a chain is still there; the others are gone.
    pub fn heal_all(&mut self) -> Result<(), FilterError> {
        if self.chains.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new(&self.table);
        batch.leave_all();
        self.chains.values().for_each(|chain| batch.delete_chain(chain));
        if self.netlink.commit(batch).is_ok() {
            self.chains.clear();
            return Ok(());
        }
        let faults: Vec<String> = self.chains.keys().cloned().collect();
        let mut first = Ok(());
        for fault in faults {
            let healed = self.heal(&fault);
            if first.is_ok() {
                first = healed;
            }
        }
        first
    }

    /// The counters of this moment, one entry per peer in the order of hello. Counters are read one after the
    /// other, not as one.
    ///
    /// # Errors
    /// When the kernel refuses or its answer is not understood.
    pub fn counters(&mut self) -> Result<Vec<PeerCount>, FilterError> {
        let found = self.netlink.counters(&self.table)?;
        let read = |verdict, peer| found.get(&counter_name(verdict, peer)).copied().unwrap_or_default();
        let counts = self.peers.iter().map(|(peer, _)| {
            let passed = read("passed", *peer);
            let refused = read("refused", *peer);
            PeerCount {
                from: *peer,
                passed_packets: passed.packets,
                passed_bytes: passed.bytes,
                refused_packets: refused.packets,
                refused_bytes: refused.bytes,
            }
        });
        Ok(counts.collect())
    }

    /// Takes the whole table away.
    ///
    /// # Errors
    /// When the kernel refuses; an owned table still goes with its socket.
    pub fn remove(mut self) -> Result<(), FilterError> {
        let mut batch = Batch::new(&self.table);
        batch.delete_table();
        Ok(self.netlink.commit(batch)?)
    }
}

/// A name that every kernel and `nft` take: letters, digits, `-`, `_` and `.`, at most 31 of them. One that
/// had to be changed or cut ends with a hash, so that two names stay two.
pub(crate) fn kernel_name(prefix: &str, wished: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let room = MAX_NAME.saturating_sub(prefix.len());
    if wished.len() <= room && wished.chars().all(plain) {
        return format!("{prefix}{wished}");
    }
    let hash = crate::hash(wished.as_bytes());
    let short: String = wished.chars().filter(|letter| plain(*letter)).take(room.saturating_sub(9)).collect();
    format!("{prefix}{short}-{:08x}", hash & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::kernel_name;

    #[test]
    fn a_plain_name_stays_as_it_is() {
        assert_eq!(kernel_name("fault-", "3.partition_leader"), "fault-3.partition_leader");
    }

    #[test]
    fn names_that_are_long_or_strange_stay_different_and_short() {
        let wished = [
            "the partition of the leader from all others, 1",
            "the partition of the leader from all others, 2",
            "über",
            "uber!",
            "\n",
            "a\0b",
        ];
        let names: std::collections::BTreeSet<_> =
            wished.iter().map(|name| kernel_name("fault-", name)).collect();
        assert_eq!(names.len(), wished.len());
        for name in names {
            assert!(name.len() <= 31, "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "{name}");
        }
    }
}
