//! Transaction log files, and the names of the files in a data directory.
//!
//! A log begins with a header (magic number, version, and a number nobody uses). Each record is the Adler-32
//! of an entry's bytes, their length, the bytes themselves, and the letter `B`. The first record's zxid is in
//! the file's name. ZooKeeper lengthens its logs in large steps before it writes, so that zeros behind the
//! last record are its end.
//!
//! A log that was being written when the machine stopped may end in the middle of a record. [`RecordReader`]
//! says where and why; whether that is a torn write or lost history only the owner of the log can know.

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use crate::ids::Zxid;
use crate::jute::limits::MAX_BUFFER;
use crate::jute::{DecodeError, Reader, Writer};
use crate::snapshot::file::Checksum;
use crate::txn::Entry;

/// `ZKLG`.
const MAGIC: i32 = i32::from_be_bytes(*b"ZKLG");
/// The only version there was.
const VERSION: i32 = 2;
/// What ZooKeeper writes as the number nobody uses.
const DATABASE: i64 = 0;
/// What ends a record.
const END_OF_RECORD: u8 = b'B';

/// The length of a log's header.
pub const HEADER_LEN: usize = 4 + 4 + 8;
/// What a record adds to its entry.
pub const RECORD_OVERHEAD: usize = 8 + 4 + 1;

/// Appends a log's header.
pub fn encode_header(buffer: &mut BytesMut) {
    let mut w = Writer::new(buffer);
    w.int(MAGIC);
    w.int(VERSION);
    w.long(DATABASE);
}

/// Appends a record.
pub fn encode_record(entry: &Entry, buffer: &mut BytesMut) {
    buffer.reserve(entry.bytes.len() + RECORD_OVERHEAD);
    let mut w = Writer::new(buffer);
    w.long(Checksum::of(&entry.bytes));
    w.buffer(&entry.bytes);
    w.byte(END_OF_RECORD);
}

/// The file does not begin as a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("recognize a log file of version 2")]
pub struct NotALog;

/// What is at a place in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A sound record.
    Entry(Entry),
    /// The end: of the file, or of what was written to it.
    End,
    /// Something that is neither.
    Torn {
        /// Where it begins. Everything before it is sound.
        offset: usize,
        /// What is wrong with it.
        reason: TornReason,
    },
}

/// Why bytes in a log are no record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TornReason {
    /// The file ends inside of it.
    #[error("the file ends inside of a record")]
    Truncated,
    /// Its length is negative or beyond what was ever written.
    #[error("a record says that it has {0} bytes")]
    Length(i32),
    /// Its bytes are not those that were written.
    #[error("a record does not match its checksum")]
    Checksum,
    /// It does not end where its length says.
    #[error("a record lacks its end mark")]
    NoEndMark,
    /// It is sound and no transaction.
    #[error("a record holds no transaction: failed to {0}")]
    Content(DecodeError),
    /// Zeros where a record should be, and something behind them.
    #[error("a gap of zeros has data behind it")]
    DataBehindZeros,
}

/// Reads a log from its beginning.
///
/// Entries are slices of the file's bytes and keep them all alive.
#[derive(Clone, Debug)]
pub struct RecordReader {
    file: Bytes,
    offset: usize,
}

impl RecordReader {
    /// Starts behind the header.
    ///
    /// # Errors
    /// When the file does not begin as a log.
    pub fn new(file: Bytes) -> Result<RecordReader, NotALog> {
        let mut r = Reader::new(file.clone());
        match (r.int(), r.int(), r.long()) {
            (Ok(MAGIC), Ok(VERSION), Ok(_)) => Ok(RecordReader { file, offset: HEADER_LEN }),
            _ => Err(NotALog),
        }
    }

    /// Where the next record begins; after the last one, where a writer goes on.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Reads what is next. At the end, and at a torn record, it stays.
    pub fn read_record(&mut self) -> Record {
        let rest = self.file.slice(self.offset..);
        // A record can't begin with these many zeros: an entry is never empty.
        let zeros = rest.iter().take(RECORD_OVERHEAD).all(|&byte| byte == 0);
        if zeros && rest.iter().all(|&byte| byte == 0) {
            return Record::End;
        }
        if zeros && rest.len() >= RECORD_OVERHEAD {
            return self.torn(TornReason::DataBehindZeros);
        }
        let mut r = Reader::new(rest);
        match decode_record(&mut r) {
            Ok(entry) => {
                self.offset = self.file.len() - r.remaining();
                Record::Entry(entry)
            }
            Err(reason) => self.torn(reason),
        }
    }

    fn torn(&self, reason: TornReason) -> Record {
        Record::Torn { offset: self.offset, reason }
    }
}

fn decode_record(r: &mut Reader) -> Result<Entry, TornReason> {
    let truncated = |_: DecodeError| TornReason::Truncated;
    let checksum = r.long().map_err(truncated)?;
    let wire = r.int().map_err(truncated)?;
    let len = match usize::try_from(wire) {
        Ok(len) if (1..=MAX_BUFFER).contains(&len) => len,
        _ => return Err(TornReason::Length(wire)),
    };
    let bytes = r.take(len).map_err(truncated)?;
    if Checksum::of(&bytes) != checksum {
        return Err(TornReason::Checksum);
    }
    match r.byte() {
        Ok(END_OF_RECORD) => Entry::decode(bytes).map_err(TornReason::Content),
        Ok(_) => Err(TornReason::NoEndMark),
        Err(_) => Err(TornReason::Truncated),
    }
}

/// A file of a data directory, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// A log, by the zxid of its first record.
    Log(Zxid),
    /// A snapshot, by the last zxid in it.
    Snapshot(Zxid),
    /// A snapshot that was compressed.
    Compressed(Zxid, Compression),
}

/// How a snapshot is compressed: the methods of ZooKeeper's `snapshot.compression.method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    /// RFC 1952.
    Gz,
    /// Snappy, in the stream form of its Java library.
    Snappy,
}

impl Compression {
    /// Both of them.
    pub const ALL: [Compression; 2] = [Compression::Gz, Compression::Snappy];

    /// Its name in the configuration, and behind the dot of a file's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Compression::Gz => "gz",
            Compression::Snappy => "snappy",
        }
    }

    /// By its name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Compression> {
        Compression::ALL.into_iter().find(|method| method.name() == name)
    }
}

const LOG_PREFIX: &str = "log";
const SNAPSHOT_PREFIX: &str = "snapshot";

impl FileName {
    /// What a name stands for. Names that we would not write ourselves stand for nothing.
    #[must_use]
    pub fn parse(name: &str) -> Option<FileName> {
        let (prefix, rest) = name.split_once('.')?;
        let (hex, method) = rest.split_once('.').map_or((rest, None), |(hex, method)| (hex, Some(method)));
        let zxid = Zxid(u64::from_str_radix(hex, 16).ok()?);
        let parsed = match prefix {
            LOG_PREFIX => FileName::Log(zxid),
            SNAPSHOT_PREFIX => match method {
                None => FileName::Snapshot(zxid),
                Some(method) => FileName::Compressed(zxid, Compression::from_name(method)?),
            },
            _ => return None,
        };
        (parsed.to_string() == name).then_some(parsed)
    }
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileName::Log(zxid) => write!(f, "{LOG_PREFIX}.{:x}", zxid.0),
            FileName::Snapshot(zxid) => write!(f, "{SNAPSHOT_PREFIX}.{:x}", zxid.0),
            FileName::Compressed(zxid, method) => {
                write!(f, "{SNAPSHOT_PREFIX}.{:x}.{}", zxid.0, method.name())
            }
        }
    }
}

/// The name of the log that begins with this zxid.
#[must_use]
pub fn log_name(first: Zxid) -> String {
    FileName::Log(first).to_string()
}

/// The name of the snapshot that ends with this zxid.
#[must_use]
pub fn snapshot_name(last: Zxid) -> String {
    FileName::Snapshot(last).to_string()
}
