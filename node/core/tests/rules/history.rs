//! Histories that scripts begin with: each entry creates a znode of its own, named after its zxid.

use bytes::Bytes;
use bytestring::ByteString;
use node_core::tree::Tree;
use node_wire::client::Acl;
use node_wire::ids::{Epoch, SessionId, Zxid};
use node_wire::snapshot::Image;
use node_wire::txn::{Entry, Txn, TxnHeader};

/// The longest range that a script may name.
const MAX_RANGE: u32 = 10_000;

/// The entry of a zxid: it creates `/eE.C`.
pub(crate) fn entry(zxid: Zxid) -> Entry {
    let txn = Txn::Create {
        path: ByteString::from(format!("/e{}", dotted(zxid))),
        data: Some(Bytes::new()),
        acl: vec![Acl::world_anyone()],
        ephemeral: false,
        parent_cversion: -1,
    };
    let header = TxnHeader { session: SessionId(0xe), cxid: 0, zxid, time_ms: 0, kind: txn.kind() };
    Entry::new(header, txn, None)
}

/// The tree after these entries, as a snapshot.
pub(crate) fn image(entries: &[Zxid]) -> Image {
    let mut tree = Tree::default();
    for zxid in entries {
        tree.apply(&entry(*zxid));
    }
    tree.to_image()
}

pub(crate) fn dotted(zxid: Zxid) -> String {
    format!("{}.{}", zxid.epoch(), zxid.counter())
}

pub(crate) fn parse_zxid(text: &str) -> Result<Zxid, String> {
    let (epoch, counter) = text.split_once('.').ok_or_else(|| format!("{text} is no EPOCH.COUNTER"))?;
    let number = |text: &str| text.parse::<u32>().map_err(|error| format!("{text}: {error}"));
    Ok(Zxid::new(Epoch(number(epoch)?), number(counter)?))
}

/// `1.1 1.2` or `1.1-1.3`, or both.
pub(crate) fn parse_zxids(text: &str) -> Result<Vec<Zxid>, String> {
    let mut zxids = Vec::new();
    for part in text.split_whitespace() {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (parse_zxid(first)?, parse_zxid(last)?);
        if first.epoch() != last.epoch() || last.counter() - first.counter() > MAX_RANGE {
            return Err(format!("{part} is no range within an epoch"));
        }
        zxids.extend((first.counter()..=last.counter()).map(|counter| Zxid::new(first.epoch(), counter)));
    }
    Ok(zxids)
}
