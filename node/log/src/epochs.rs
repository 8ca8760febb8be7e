//! The files `acceptedEpoch` and `currentEpoch`: what this member promised, and whose history it holds.
//!
//! They hold a decimal number, as ZooKeeper's do. A new directory gets both, with 0, before anything else is
//! written: so a log without them is never the trace of a crash but of a lost file, and is refused. A member
//! that forgot its acceptedEpoch could accept a leader of an epoch that it gave to another one.
//!
//! A history of epoch 0 is older than any leader: Apache ZooKeeper writes one when it runs alone, and a first
//! snapshot before its epoch files. Nothing was promised yet where there was nobody to promise it to, so a
//! directory that holds no more is as good as new.
//!
//! What may stand on a disk after a crash follows from the order in which a member writes. It accepts epoch
//! N, stores the synchronized entries (all of epochs below N), then makes N the current epoch. So:
//!
//! | on disk | after a crash | at open |
//! |---|---|---|
//! | neither file, no history but of epoch 0 | new, or while being made | both become 0 |
//! | one file missing, no history but of epoch 0 | being made, or history was moved | current becomes 0 |
//! | a file missing beside a history of a later epoch | never | refused |
//! | current = accepted | settled | fine |
//! | current < accepted | while a leader was being found or followed | fine |
//! | current > accepted | never | refused |
//! | last zxid of an epoch above current, not above accepted | while synchronizing | fine |
//! | last zxid of an epoch above accepted | never | refused |
//!
//! A currentEpoch above 0 without an acceptedEpoch is refused, whatever the history.

use bytes::Bytes;
use node_wire::ids::{Epoch, Zxid};

use crate::durable;
use crate::error::LogError;
use crate::names::{ACCEPTED, CURRENT};
use crate::storage::Storage;

/// How much of a wrong file an error shows.
const SHOWN: usize = 40;

/// Both epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epochs {
    pub(crate) accepted: Epoch,
    pub(crate) current: Epoch,
}

impl Epochs {
    /// Reads both files, and makes what a new directory lacks. `last` is the end of the history beside them.
    pub(crate) fn open<S: Storage>(storage: &S, files: &[String], last: Zxid) -> Result<Self, LogError> {
        let read = |name| read(storage, files, name);
        let has_history = last.epoch() > Epoch::ZERO;
        let (accepted, current) = match (read(ACCEPTED)?, read(CURRENT)?) {
            (Some(accepted), Some(current)) => (accepted, current),
            (None, current) if has_history || current.is_some_and(|epoch| epoch > Epoch::ZERO) => {
                return Err(LogError::NoEpochFiles { missing: ACCEPTED });
            }
            (Some(_), None) if has_history => return Err(LogError::NoEpochFiles { missing: CURRENT }),
            (accepted, current) => {
                let (accepted, current) = (accepted.unwrap_or_default(), current.unwrap_or_default());
                write(storage, ACCEPTED, accepted)?;
                write(storage, CURRENT, current)?;
                (accepted, current)
            }
        };
        if current > accepted {
            return Err(LogError::EpochsDisagree { accepted, current });
        }
        Ok(Self { accepted, current })
    }

    /// Refuses a history from a future that was never accepted.
    pub(crate) fn check_history(self, last: Zxid) -> Result<(), LogError> {
        if last.epoch() > self.accepted {
            return Err(LogError::EpochBehindLog { last, accepted: self.accepted });
        }
        Ok(())
    }
}

/// Replaces an epoch file durably: a crash leaves the old number or the new one.
pub(crate) fn write<S: Storage>(storage: &S, name: &'static str, epoch: Epoch) -> Result<(), LogError> {
    durable::replace(storage, name, epoch.to_string().as_bytes())
}

fn read<S: Storage>(storage: &S, files: &[String], name: &'static str) -> Result<Option<Epoch>, LogError> {
    if !files.iter().any(|file| file == name) {
        return Ok(None);
    }
    let content = storage.read(name).map_err(LogError::io("read", name))?;
    match parse(&content) {
        Some(epoch) => Ok(Some(epoch)),
        None => Err(LogError::BadEpochFile { file: name, content: shown(&content) }),
    }
}

/// One decimal number; a line end behind it is accepted, because an editor leaves one.
fn parse(content: &Bytes) -> Option<Epoch> {
    let text = std::str::from_utf8(content).ok()?.trim_end();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().map(Epoch)
}

/// The beginning of a file, for an error message.
pub(crate) fn shown(content: &[u8]) -> String {
    String::from_utf8_lossy(&content[..content.len().min(SHOWN)]).into_owned()
}
