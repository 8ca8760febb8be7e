//! Zxids and transactions, as scripts and pictures name them.

use node_wire::ids::Zxid;
use node_wire::txn::{Entry, Txn};

/// A zxid as epoch and counter: `2.1` is what ZooKeeper prints as `0x200000001`.
pub(crate) fn dotted(zxid: Zxid) -> String {
    if zxid == Zxid::ZERO { "0".to_owned() } else { format!("{}.{}", zxid.epoch(), zxid.counter()) }
}

/// The zxid of these words.
pub(crate) fn zxid(words: &str) -> Option<Zxid> {
    let (epoch, counter) = words.trim().split_once('.')?;
    Some(Zxid::new(node_wire::ids::Epoch(epoch.parse().ok()?), counter.parse().ok()?))
}

/// Zxids in ascending order, with a range where counters follow each other.
pub(crate) fn ranges(zxids: impl IntoIterator<Item = Zxid>) -> String {
    let mut runs: Vec<(Zxid, Zxid)> = Vec::new();
    for zxid in zxids {
        match runs.last_mut() {
            Some((_, last)) if last.next() == Some(zxid) => *last = zxid,
            _ => runs.push((zxid, zxid)),
        }
    }
    let shown = |(first, last): &(Zxid, Zxid)| match last.0 - first.0 {
        0 => dotted(*first),
        1 => format!("{} {}", dotted(*first), dotted(*last)),
        _ => format!("{} to {}", dotted(*first), dotted(*last)),
    };
    runs.iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// What a transaction does.
pub(crate) fn effect(entry: &Entry) -> String {
    match &entry.txn {
        Txn::SetData { path, data, .. } => written(path, data.as_deref()),
        Txn::Error { code } => format!("error {code}"),
        other => format!("transaction {}", other.kind()),
    }
}

/// A write, as the script asks for it.
pub(crate) fn written(path: &str, data: Option<&[u8]>) -> String {
    format!("write {} {}", path.trim_start_matches('/'), String::from_utf8_lossy(data.unwrap_or_default()))
}
