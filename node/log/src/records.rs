//! One log file, read from its beginning to where it stops making sense.

use bytes::{Bytes, BytesMut};
use node_wire::ids::Zxid;
use node_wire::jute::limits::MAX_BUFFER;
use node_wire::logfile::{self, HEADER_LEN, RECORD_OVERHEAD, Record as Read, RecordReader, TornReason};
use node_wire::txn::Entry;

use crate::error::{Evidence, LogError};
use crate::storage::Storage;

pub(crate) use node_wire::logfile::{encode_header, encode_record};

/// The largest entry that can be read back.
pub(crate) const MAX_RECORD_BYTES: usize = MAX_BUFFER;

/// Where the length stands in a record: behind the checksum.
const LENGTH_AT: usize = 8;
/// Where the entry begins.
const ENTRY_AT: usize = LENGTH_AT + 4;

/// A sound record.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) entry: Entry,
    /// The offset behind it.
    pub(crate) end: u64,
}

/// What is behind the last sound record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The end of the file, or zeros up to there.
    Clean,
    /// Something unsound, and nothing sound behind it: perhaps an interrupted write.
    Torn { reason: String },
    /// Something unsound that was once more than that.
    Damaged { reason: String, evidence: Evidence },
}

/// A log file.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) name: String,
    /// The first entry, as the name says.
    pub(crate) first: Zxid,
    pub(crate) records: Vec<Record>,
    pub(crate) content: Bytes,
    /// The offset behind the last sound record; 0 without a sound header.
    pub(crate) end: u64,
    /// The length of the file.
    pub(crate) len: u64,
    pub(crate) tail: Tail,
}

impl LogFile {
    /// Reads a file. That its tail is unsound is no error here.
    pub(crate) fn read<S: Storage>(storage: &S, first: Zxid, name: String) -> Result<Self, LogError> {
        let content = storage.read(&name).map_err(LogError::io("read", &name))?;
        Ok(Self::parse(first, name, &content))
    }

    fn parse(first: Zxid, name: String, content: &Bytes) -> Self {
        let mut file = Self {
            name,
            first,
            records: Vec::new(),
            content: content.clone(),
            end: 0,
            len: offset(content.len()),
            tail: Tail::Clean,
        };
        let mut reader = match RecordReader::new(content.clone()) {
            Ok(reader) => reader,
            Err(error) => {
                file.tail = tail(content, 0, Zxid::ZERO, format!("failed to {error}"));
                return file;
            }
        };
        file.end = offset(HEADER_LEN);
        file.tail = loop {
            let at = reader.offset();
            let entry = match reader.read_record() {
                Read::Entry(entry) => entry,
                Read::End => break Tail::Clean,
                Read::Torn { reason: reason @ TornReason::Content(_), .. } => {
                    break Tail::Damaged { reason: reason.to_string(), evidence: Evidence::AsWritten };
                }
                Read::Torn { reason, .. } => {
                    break tail(content, at, file.last().unwrap_or_default(), reason.to_string());
                }
            };
            if let Some(reason) = file.misplaced(entry.zxid()) {
                break Tail::Damaged { reason, evidence: Evidence::AsWritten };
            }
            file.end = offset(reader.offset());
            file.records.push(Record { entry, end: file.end });
        };
        file
    }

    /// The last sound entry's zxid.
    pub(crate) fn last(&self) -> Option<Zxid> {
        self.records.last().map(|record| record.entry.zxid())
    }

    /// The offset behind the last entry at or before a zxid; none when there is no such entry.
    pub(crate) fn end_at(&self, zxid: Zxid) -> Option<u64> {
        self.records.iter().rev().find(|record| record.entry.zxid() <= zxid).map(|record| record.end)
    }

    /// Why an entry can't be the next one.
    fn misplaced(&self, zxid: Zxid) -> Option<String> {
        match self.last() {
            None if zxid != self.first => {
                Some(format!("it begins with {zxid}, which is not what its name says"))
            }
            Some(last) if zxid <= last => Some(format!("{zxid} follows {last}")),
            _ => None,
        }
    }
}

/// Judges an unsound tail by what comes after it.
fn tail(content: &Bytes, at: usize, last: Zxid, reason: String) -> Tail {
    match (at + 1..content.len()).find(|offset| is_record(content, *offset, last)) {
        Some(found) => Tail::Damaged { reason, evidence: Evidence::RecordBehind(offset(found)) },
        None => Tail::Torn { reason },
    }
}

/// Whether a sound record of a later entry begins at an offset. Nearly every offset fails at the length or at
/// the end mark, so that looking at all of them costs little.
fn is_record(content: &Bytes, at: usize, last: Zxid) -> bool {
    let rest = &content[at..];
    let Some(length) = rest.get(LENGTH_AT..ENTRY_AT).and_then(|bytes| bytes.try_into().ok()) else {
        return false;
    };
    let len = match usize::try_from(i32::from_be_bytes(length)) {
        Ok(len) if (1..=MAX_RECORD_BYTES).contains(&len) => len,
        _ => return false,
    };
    let Some(record) = rest.get(..len + RECORD_OVERHEAD).filter(|record| record.ends_with(b"B")) else {
        return false;
    };
    // The reader starts at the beginning of a file only: give it a file of this one record.
    let mut file = BytesMut::with_capacity(HEADER_LEN + record.len());
    logfile::encode_header(&mut file);
    file.extend_from_slice(record);
    let first = RecordReader::new(file.freeze()).map(|mut reader| reader.read_record());
    matches!(first, Ok(Read::Entry(entry)) if entry.zxid() > last)
}

fn offset(value: usize) -> u64 {
    // No platform has a usize beyond 64 bits.
    u64::try_from(value).unwrap_or(u64::MAX)
}
