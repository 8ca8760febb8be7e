//! Protocols whose scripts `harness sim` lives through. A line for each; the first is the members' own.

use harness_protocols::entry::Entry;

/// All of them.
pub const PROTOCOLS: [Entry; 3] = [lab_zab::ZAB, harness_paxos::PAXOS, harness_paxos::MULTI_PAXOS];
