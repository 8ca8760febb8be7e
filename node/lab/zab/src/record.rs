//! A disk: the store operations that are durable, in order. What a member finds at its start is what they
//! come to.

use std::fmt;

use bytes::Bytes;
use node_core::io::{Recovered, StoreOp};
use node_core::tree::Tree;
use node_wire::ids::{Epoch, SessionId, Zxid};
use node_wire::snapshot::{Image, NodeRecord, OPEN_ACL, StatPersisted};
use node_wire::txn::{Entry, Txn, TxnHeader};

use crate::words::{dotted, effect, zxid};

/// A store operation, on disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// A transaction is appended to the log: its bytes.
    Append(Zxid, Bytes),
    /// All behind this zxid is dropped from the log.
    Truncate(Zxid),
    /// The member promised to follow no leader of an older epoch.
    AcceptedEpoch(Epoch),
    /// The member holds the history of this epoch's leader.
    CurrentEpoch(Epoch),
    /// What does not occur here: a tree that is taken over, or a membership that changes.
    Nothing,
}

impl From<StoreOp> for Record {
    fn from(op: StoreOp) -> Self {
        match op {
            StoreOp::Append(entry) => Self::Append(entry.zxid(), entry.bytes),
            StoreOp::Truncate(zxid) => Self::Truncate(zxid),
            StoreOp::AcceptedEpoch(epoch) => Self::AcceptedEpoch(epoch),
            StoreOp::CurrentEpoch(epoch) => Self::CurrentEpoch(epoch),
            StoreOp::Install(_) | StoreOp::Membership(_) => Self::Nothing,
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append(zxid, bytes) => match Entry::decode(bytes.clone()) {
                Ok(entry) => write!(f, "log {} {}", dotted(*zxid), effect(&entry)),
                Err(_) => write!(f, "log {}", dotted(*zxid)),
            },
            Self::Truncate(zxid) => write!(f, "cut the log to {}", dotted(*zxid)),
            Self::AcceptedEpoch(epoch) => write!(f, "acceptedEpoch {epoch}"),
            Self::CurrentEpoch(epoch) => write!(f, "currentEpoch {epoch}"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

/// Znodes that are there from the beginning.
const ZNODES: u64 = 10;

/// The tree before the first transaction.
fn genesis() -> Image {
    let mut image = Tree::default().snapshot().to_image();
    image.nodes.extend((0..ZNODES).map(|number| NodeRecord {
        path: format!("/{number}").into(),
        data: None,
        acl: OPEN_ACL,
        stat: StatPersisted::default(),
    }));
    image
}

/// What a member finds on this disk.
pub(crate) fn recover(disk: &[Record]) -> Recovered {
    let mut found = Recovered { image: genesis(), ..Recovered::default() };
    for record in disk {
        match record {
            Record::Append(_, bytes) => found.entries.extend(Entry::decode(bytes.clone())),
            Record::Truncate(zxid) => found.entries.retain(|entry| entry.zxid() <= *zxid),
            Record::AcceptedEpoch(epoch) => found.accepted_epoch = *epoch,
            Record::CurrentEpoch(epoch) => found.current_epoch = *epoch,
            Record::Nothing => {}
        }
    }
    found
}

/// A transaction of the past, which says where it stands.
fn past(zxid: Zxid) -> Record {
    let data = Bytes::from(zxid.to_wire().to_string());
    let txn = Txn::SetData { path: "/0".into(), data: Some(data), version: 1 };
    let header = TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
    Record::Append(zxid, Entry::new(header, txn, None).bytes)
}

/// Transactions of a script's disk, at most: more than anybody reads.
const MOST: u32 = 10_000;

/// A disk in words: `epoch 2, promised 3, log 1.1 to 1.9 2.1`. Whoever has promised nothing else has promised
/// its epoch.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn read(words: &str) -> Result<Vec<Record>, String> {
    let (mut current, mut accepted, mut log) = (0, 0, Vec::new());
    for part in words.split(',').map(str::trim) {
        let number = |text: &str| text.trim().parse().map_err(|_| format!("{part}: an epoch is a number"));
        match part.split_once(' ') {
            Some(("epoch", epoch)) => current = number(epoch)?,
            Some(("promised", epoch)) => accepted = number(epoch)?,
            Some(("log", zxids)) => log = logged(zxids)?,
            _ => {
                return Err(format!(
                    "{part}: a disk is `epoch 2, promised 3, log 1.1 to 1.9 2.1`, or some of these"
                ));
            }
        }
    }
    let newest = log.last().map_or(0, |last| last.epoch().0);
    if newest > current {
        return Err(format!("a log of epoch {newest} is held with `epoch {newest}` or a later one"));
    }
    let mut disk = vec![Record::AcceptedEpoch(Epoch(accepted.max(current)))];
    disk.extend(log.into_iter().map(past));
    disk.push(Record::CurrentEpoch(Epoch(current)));
    Ok(disk)
}

fn logged(words: &str) -> Result<Vec<Zxid>, String> {
    let mut log: Vec<Zxid> = Vec::new();
    let mut is_range = false;
    for word in words.split_whitespace() {
        if word == "to" {
            is_range = true;
            continue;
        }
        let to = zxid(word).ok_or_else(|| format!("{word}: a zxid is EPOCH.COUNTER, as 1.9"))?;
        let last = log.last().copied();
        if to.counter() == 0 || last.is_some_and(|last| to <= last) {
            return Err(format!("{word}: zxids count from 1 and ascend"));
        }
        if std::mem::take(&mut is_range) {
            let last = last.filter(|last| last.epoch() == to.epoch() && to.counter() < MOST);
            let last =
                last.ok_or_else(|| format!("to {word}: a range is of one epoch, and begins with a zxid"))?;
            log.extend((last.counter() + 1..to.counter()).map(|counter| Zxid::new(to.epoch(), counter)));
        }
        log.push(to);
    }
    if is_range || log.is_empty() {
        return Err(format!("log {words}: a log is `log 1.1 to 1.9 2.1`"));
    }
    Ok(log)
}
