//! The lines between the harness and an agent: one JSON object each way per line.
//!
//! Every request has a number and gets exactly one answer with the same number, not always in order. Any line
//! renews the lease; [`Command::Renew`] does only that and is not answered. Members are known here by a small
//! number that the harness gives them; an agent knows the addresses of its peers and nothing about ensembles.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A member as agents know it.
pub type Peer = u64;

/// How often a harness renews its lease at least, in milliseconds.
pub const RENEWAL_MS: u64 = 500;
/// Silence after which an agent heals everything by itself, in milliseconds.
pub const LEASE_MS: u64 = 3_000;
/// Silence after which an agent ends, and with it every process of its namespace, in milliseconds.
pub const END_MS: u64 = 8_000;

/// What happens to packets that a fault does not let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// They vanish.
    #[default]
    Silence,
    /// TCP is answered with a reset, everything else vanishes.
    Reset,
}

/// What the harness asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "kebab-case")]
pub enum Command {
    /// Who is who. Asked once, first: makes the table with its counting chain and opens the probes' ports.
    Hello {
        /// Names the run; the filter's table is named after it.
        run: String,
        /// This agent's member.
        own: Peer,
        /// Every other member's address.
        peers: Vec<(Peer, IpAddr)>,
        /// The UDP port at which probes arrive; rules hit it.
        probe_port: u16,
        /// The UDP port at which controls arrive; no rule hits it.
        control_port: u16,
        /// The members' TCP ports for each other; packets to or from them are counted.
        peer_ports: Vec<u16>,
    },
    /// Let nothing in from these peers: one chain, in force at once and as a whole.
    Cut {
        /// The fault's name; its chain is named after it.
        fault: String,
        /// From whom nothing comes in.
        from: Vec<Peer>,
        /// What happens to it instead.
        refusal: Refusal,
    },
    /// Take one fault's chain away; that there is none is no error.
    Heal {
        /// The fault's name.
        fault: String,
    },
    /// Tell the counters, once no packet is under way that came before the last cut.
    Counters,
    /// Send one probe and one control to every peer, now.
    SendProbes {
        /// The round, which the datagrams carry.
        round: u64,
    },
    /// Tell which probes and controls of a round arrived here. Answers as soon as every peer's control and
    /// every peer's probe arrived, and otherwise `patience_ms` after the last control, for which it waits a
    /// second at most.
    Arrivals {
        /// The round.
        round: u64,
        /// How long to wait for a probe once all controls have arrived.
        patience_ms: u64,
    },
    /// Send a signal to every process of the namespace but the agent.
    Signal {
        /// Which.
        signal: SignalName,
    },
    /// Tell about every process of the namespace but the agent.
    Processes,
    /// Shift the wall clock of every process but the agent's, those that start later not included. Zero
    /// restores it.
    ShiftClock {
        /// By how much, in nanoseconds; negative is into the past.
        offset_ns: i64,
    },
    /// Let the member's main process read its wall clock.
    ReadClock,
    /// Tell whether clocks can be shifted here: tried on a process that the agent starts for it.
    TryClock,
    /// Tell which devices there are, and try each of them.
    Devices,
    /// Have a device do something; hello must have been said.
    Device {
        /// Which.
        device: String,
        /// What, in its own words.
        order: Value,
    },
    /// Nothing but the renewal of the lease; not answered.
    Renew,
    /// Heal everything, end every process, go.
    Stop,
}

/// The signals that faults are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignalName {
    /// SIGKILL.
    Kill,
    /// SIGTERM.
    Term,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
}

/// A command with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number.
    pub id: u64,
    /// What is asked.
    #[serde(flatten)]
    pub command: Command,
}

/// Packets from one peer, since the table was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCount {
    /// Who sent them.
    pub from: Peer,
    /// Packets to or from the members' ports that were let in.
    pub passed_packets: u64,
    /// Their bytes.
    pub passed_bytes: u64,
    /// Packets that some fault did not let in, whatever they were; those of healed faults included.
    pub refused_packets: u64,
    /// Their bytes.
    pub refused_bytes: u64,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// Who sent it.
    pub from: Peer,
    /// How long the probe took, in microseconds; none when it did not arrive.
    pub probe_us: Option<u64>,
    /// How long the control took; none when it did not arrive.
    pub control_us: Option<u64>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLine {
    /// Its id in the namespace.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// `R`, `S`, `D`, `T`, `Z`, ... as the kernel tells it.
    pub state: char,
    /// The name of its executable, as the kernel keeps it.
    pub name: String,
}

/// What a clock shift did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shifted {
    /// The processes that were patched.
    pub processes: u32,
    /// How long the slowest of them was stopped for it, in microseconds.
    pub stopped_us: u64,
}

/// A target's clock, read by the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// How far it is off, against an unpatched reading of the same moment.
    pub offset_ns: i64,
    /// The width of that moment.
    pub error_ns: u64,
}

/// What a command led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Done. Of `Cut`, `Heal` and `Counters`: the counters of the moment after, one per peer.
    Done(Vec<PeerCount>),
    /// What arrived, one per peer.
    Arrived(Vec<Arrival>),
    /// The processes.
    Processes(Vec<ProcessLine>),
    /// The clock was shifted.
    Shifted(Shifted),
    /// The clock was read.
    Clock(ClockReading),
    /// The devices, and why those that do not work here do not.
    Devices(BTreeMap<String, Result<(), String>>),
    /// What a device says.
    Device(Value),
    /// Refused or failed, with the reason and what to do about it.
    Failed(String),
}

/// A line from the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// The answer to a request.
    Answer {
        /// The number of the request.
        id: u64,
        /// What it led to.
        outcome: Outcome,
    },
    /// Something that the harness should know, without being asked: the lease ran out, say.
    Notice {
        /// In words.
        notice: String,
    },
}
