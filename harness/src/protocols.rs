//! Protocols that `harness sim` lives through, beside the members' own. A line for each.

use harness_protocols::entry::Entry;

/// All of them.
pub const PROTOCOLS: [Entry; 2] = [harness_paxos::PAXOS, harness_paxos::MULTI_PAXOS];
