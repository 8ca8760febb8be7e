//! The order that the system claims: by version within a key, by zxid across keys.
//!
//! Every change of a ZooKeeper node gives it the next version and has a zxid of its own, and every reply
//! shows those of the state it speaks of. If the system is right, changes took effect in that order, and each
//! session's reads follow as early as their answers allow. The claims become edges for one attempt without
//! alternatives. If the system lies, the attempt fails or is not confirmed, and nothing is concluded from it.

use std::collections::BTreeMap;

use super::graph::{Graph, Why, number};
use super::registers::Registers;
use crate::register::problem::Action;

/// Adds the claims to a graph; none when there is nothing to add.
pub(super) fn add(graph: &mut Graph, registers: &Registers) -> Option<()> {
    // A change of unknown fate has the version and zxid of whoever saw its value.
    let mut versions: BTreeMap<u32, i64> = BTreeMap::new();
    let mut zxids: BTreeMap<u32, u64> = BTreeMap::new();
    for entry in &registers.entries {
        if let Action::Read(value) | Action::Write(value) | Action::Cas { to: value, .. } = entry.action {
            versions.extend(entry.version.map(|version| (value, version)));
            zxids.extend(entry.zxid.map(|zxid| (value, zxid)));
        }
    }
    let mut by_version: Vec<(u32, i64, u32)> = Vec::new();
    let mut by_zxid: Vec<(u64, u32)> = Vec::new();
    for (entry, of) in registers.entries.iter().enumerate() {
        let Some(written) = of.action.written().filter(|_| !registers.optional[entry]) else { continue };
        let seen = registers.is_single_source(written);
        let version = of.version.or_else(|| versions.get(&written).copied().filter(|_| seen));
        let zxid = of.zxid.or_else(|| zxids.get(&written).copied().filter(|_| seen));
        by_version.extend(version.map(|version| (of.key, version, number(entry))));
        by_zxid.extend(zxid.map(|zxid| (zxid, number(entry))));
    }
    if by_version.is_empty() && by_zxid.is_empty() {
        return None;
    }
    by_version.sort_unstable();
    by_zxid.sort_unstable();
    for pair in by_version.windows(2) {
        if pair[0].0 == pair[1].0 && pair[0].1 < pair[1].1 {
            graph.add(pair[0].2, pair[1].2, Why::Claim);
        }
    }
    for pair in by_zxid.windows(2) {
        if pair[0].0 < pair[1].0 {
            graph.add(pair[0].1, pair[1].1, Why::Claim);
        }
    }
    Some(())
}
