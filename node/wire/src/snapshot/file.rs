//! Snapshot files.
//!
//! A header (magic number, version, and a number nobody uses), the stream without its signature, and a seal:
//! the Adler-32 of everything before it, and the string `/`, by which ZooKeeper recognizes a file that was
//! written to its end without reading it all. Since version 3.6 the tree's digest follows, with a seal of its
//! own over everything, first seal included; older files end before it, and files of version 3.9 go on behind
//! it with what the file's name says already.
//!
//! The digest is of a zxid at the end of the fuzzy range, so it can be checked only once the log was replayed
//! that far.

use bytes::{Bytes, BytesMut};
use simd_adler32::Adler32;
use thiserror::Error;

use super::stream::{StreamDecoder, StreamEncoder};
use super::{Contents, Image};
use crate::digest::DIGEST_VERSION;
use crate::ids::Zxid;
use crate::jute::{DecodeError, Jute, Reader, Writer, record};

/// `ZKSN`.
const MAGIC: i32 = i32::from_be_bytes(*b"ZKSN");
/// The only version there was.
const VERSION: i32 = 2;
/// What ZooKeeper writes as the number nobody uses.
const DATABASE: i64 = -1;

/// The string in a seal.
const SEAL: &str = "/";
/// A checksum and that string.
const SEAL_LEN: usize = 8 + 4 + SEAL.len();

record! {
    /// The digest of the tree after a transaction.
    #[derive(Copy)]
    pub struct ZxidDigest {
        /// The transaction.
        pub zxid: Zxid,
        /// Of the calculation: [`DIGEST_VERSION`].
        pub version: i32,
        /// The sum over all nodes.
        pub digest: i64,
    }
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// The tree.
    pub image: Image,
    /// The digest, where there is one that we can compute too.
    pub digest: Option<ZxidDigest>,
}

/// Why a file was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// It does not begin as one.
    #[error("recognize a snapshot file of version 2")]
    NotASnapshot,
    /// It has changed since it was written, or was never written to its end.
    #[error("match the checksum at byte {offset}")]
    Checksum {
        /// Where the seal begins.
        offset: usize,
    },
    /// Its content is none.
    #[error(transparent)]
    Content(#[from] DecodeError),
}

/// Appends the whole file.
pub fn encode_file<'a>(contents: impl Into<Contents<'a>>, digest: Option<ZxidDigest>, buffer: &mut BytesMut) {
    FileEncoder::new(contents, digest).fill(buffer, usize::MAX);
}

/// Writes a file piece by piece.
#[derive(Debug)]
pub struct FileEncoder<'a> {
    stream: StreamEncoder<'a>,
    digest: Option<ZxidDigest>,
    checksum: Checksum,
    next: Piece,
}

/// What to write next.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Header,
    Stream,
    Done,
}

impl<'a> FileEncoder<'a> {
    /// A file with this tree and, when the tree is not fuzzy, its digest.
    #[must_use]
    pub fn new(contents: impl Into<Contents<'a>>, digest: Option<ZxidDigest>) -> FileEncoder<'a> {
        let stream = StreamEncoder::unsigned(contents.into());
        FileEncoder { stream, digest, checksum: Checksum::default(), next: Piece::Header }
    }

    /// Appends pieces until `buffer` holds `target` bytes or more, or nothing is left. Returns whether there
    /// is more to come. The caller may empty the buffer between calls.
    pub fn fill(&mut self, buffer: &mut BytesMut, target: usize) -> bool {
        while buffer.len() < target {
            let start = buffer.len();
            match self.next {
                Piece::Header => {
                    let mut w = Writer::new(buffer);
                    w.int(MAGIC);
                    w.int(VERSION);
                    w.long(DATABASE);
                    self.next = Piece::Stream;
                    self.checksum.update(&buffer[start..]);
                }
                Piece::Stream => {
                    let more = self.stream.fill(buffer, target);
                    self.checksum.update(&buffer[start..]);
                    if !more {
                        self.finish(buffer);
                        self.next = Piece::Done;
                    }
                }
                Piece::Done => return false,
            }
        }
        !matches!(self.next, Piece::Done)
    }

    fn finish(&mut self, buffer: &mut BytesMut) {
        self.seal(buffer);
        if let Some(digest) = self.digest {
            let start = buffer.len();
            digest.encode(&mut Writer::new(buffer));
            self.checksum.update(&buffer[start..]);
            self.seal(buffer);
        }
    }

    fn seal(&mut self, buffer: &mut BytesMut) {
        let start = buffer.len();
        let mut w = Writer::new(buffer);
        w.long(self.checksum.value());
        w.string(SEAL);
        self.checksum.update(&buffer[start..]);
    }
}

/// Takes a file apart. The image keeps slices of it, and so keeps it alive.
///
/// # Errors
/// When it is not a snapshot, or not sound to its end.
pub fn decode_file(bytes: Bytes, zxid: Zxid) -> Result<SnapshotFile, SnapshotError> {
    let mut r = Reader::new(bytes.clone());
    let header = (r.int(), r.int(), r.long());
    if !matches!(header, (Ok(MAGIC), Ok(VERSION), Ok(_))) {
        return Err(SnapshotError::NotASnapshot);
    }
    let image = StreamDecoder::new(zxid).read_unsigned(&mut r)?;
    check_seal(&bytes, &mut r)?;
    let digest =
        if r.remaining() < ZxidDigest::MIN_LEN + SEAL_LEN { None } else { decode_digest(&bytes, &mut r)? };
    Ok(SnapshotFile { image, digest })
}

fn decode_digest(bytes: &Bytes, r: &mut Reader) -> Result<Option<ZxidDigest>, SnapshotError> {
    let zxid = r.read()?;
    let version = r.int()?;
    if version != DIGEST_VERSION {
        // Its form is not known. The tree is sound without it.
        return Ok(None);
    }
    let digest = ZxidDigest { zxid, version, digest: r.long()? };
    check_seal(bytes, r)?;
    // ZooKeeper writes zeros when it has no digest yet.
    Ok((digest.zxid != Zxid::ZERO).then_some(digest))
}

fn check_seal(bytes: &Bytes, r: &mut Reader) -> Result<(), SnapshotError> {
    let offset = bytes.len() - r.remaining();
    let mut checksum = Checksum::default();
    checksum.update(&bytes[..offset]);
    if r.long()? != checksum.value() {
        return Err(SnapshotError::Checksum { offset });
    }
    if r.string()? != SEAL {
        return Err(DecodeError::Invalid("a seal without its mark").into());
    }
    Ok(())
}

/// Adler-32, as long as ZooKeeper writes it.
#[derive(Default)]
pub(crate) struct Checksum(Adler32);

impl Checksum {
    pub(crate) fn of(bytes: &[u8]) -> i64 {
        let mut checksum = Checksum::default();
        checksum.update(bytes);
        checksum.value()
    }

    fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn value(&self) -> i64 {
        i64::from(self.0.finish())
    }
}

impl std::fmt::Debug for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checksum({:#x})", self.value())
    }
}
