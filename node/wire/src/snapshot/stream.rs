//! The stream behind a SNAP packet.
//!
//! It is longer than any frame, so both sides work piece by piece: [`StreamEncoder`] fills a buffer as often
//! as its owner wants, [`StreamDecoder`] takes from one what is there whole. On the wire the stream ends with
//! a signature behind the tree; packets follow it at once, and the decoder leaves them alone.

use std::collections::HashSet;

use bytes::BytesMut;
use bytestring::ByteString;

use super::{Contents, Image, MAX_IMAGE_ITEMS, NodeRecord, NodeRef, StatPersisted};
use crate::client::{Acl, validate_path};
use crate::ids::{SessionId, Zxid};
use crate::jute::limits::{LARGEST_FRAME, MAX_BUFFER};
use crate::jute::{DecodeError, Jute, Reader, Scan, Writer, bounded_length};

/// What follows the tree on the wire.
const SIGNATURE: &str = "BenWasHere";
/// What ends the nodes.
const END_OF_NODES: &str = "/";
/// The root, as an image has it.
const ROOT: &str = "/";

/// The most entries of one list: no request could have set more.
const MAX_ACL_ENTRIES: usize = LARGEST_FRAME / Acl::MIN_LEN;

/// A session and a timeout.
const SESSION_LEN: usize = 8 + 4;
/// The number of a list and its Stat, behind a node's path and data.
const NODE_TAIL_LEN: usize = 8 + StatPersisted::MIN_LEN;

/// Appends the whole stream, signature included.
pub fn encode_stream<'a>(contents: impl Into<Contents<'a>>, buffer: &mut BytesMut) {
    StreamEncoder::new(contents).fill(buffer, usize::MAX);
}

/// Writes the stream piece by piece.
#[derive(Debug)]
pub struct StreamEncoder<'a> {
    contents: Contents<'a>,
    signed: bool,
    next: Piece,
}

/// What to write next.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Sessions,
    Acls,
    Nodes,
    Done,
}

impl<'a> StreamEncoder<'a> {
    /// The stream as it follows a SNAP packet.
    #[must_use]
    pub fn new(contents: impl Into<Contents<'a>>) -> StreamEncoder<'a> {
        StreamEncoder { contents: contents.into(), signed: true, next: Piece::Sessions }
    }

    /// The stream as it is in a file.
    pub(super) fn unsigned(contents: Contents<'a>) -> StreamEncoder<'a> {
        StreamEncoder { contents, signed: false, next: Piece::Sessions }
    }

    /// Appends pieces until `buffer` holds `target` bytes or more, or nothing is left. Returns whether there
    /// is more to come.
    pub fn fill(&mut self, buffer: &mut BytesMut, target: usize) -> bool {
        while buffer.len() < target {
            let mut w = Writer::new(buffer);
            self.next = match self.next {
                Piece::Sessions => {
                    self.write_sessions(&mut w);
                    Piece::Acls
                }
                Piece::Acls => {
                    self.write_acls(&mut w);
                    Piece::Nodes
                }
                Piece::Nodes => match self.contents.nodes.next() {
                    Some(node) => {
                        write_node(node, &mut w);
                        Piece::Nodes
                    }
                    None => {
                        w.string(END_OF_NODES);
                        if self.signed {
                            w.string(SIGNATURE);
                        }
                        Piece::Done
                    }
                },
                Piece::Done => return false,
            };
        }
        !matches!(self.next, Piece::Done)
    }

    fn write_sessions(&self, w: &mut Writer<'_>) {
        w.count(self.contents.sessions.len());
        for (session, timeout_ms) in &self.contents.sessions {
            w.write(session);
            w.int(*timeout_ms);
        }
    }

    fn write_acls(&self, w: &mut Writer<'_>) {
        w.count(self.contents.acls.len());
        for (number, acl) in &self.contents.acls {
            w.long(*number);
            w.write(acl);
        }
    }
}

fn write_node(node: NodeRef<'_>, w: &mut Writer<'_>) {
    w.string(if node.path == ROOT { "" } else { node.path });
    match node.data {
        Some(data) => w.buffer(data),
        None => w.null(),
    }
    w.long(node.acl);
    w.write(node.stat);
}

/// Reads the stream piece by piece.
#[derive(Debug)]
pub struct StreamDecoder {
    image: Image,
    tree: TreeCheck,
    expected: Expected,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Expected {
    SessionCount,
    Sessions(usize),
    AclCount,
    Acls(usize),
    Nodes,
    Signature,
}

impl StreamDecoder {
    /// Expects the stream behind a SNAP packet with this zxid.
    #[must_use]
    pub fn new(zxid: Zxid) -> StreamDecoder {
        StreamDecoder {
            image: Image { zxid, ..Image::default() },
            tree: TreeCheck::default(),
            expected: Expected::SessionCount,
        }
    }

    /// Takes from the front of `buffer` what is there whole, and returns the image when its end was among it.
    /// What follows the stream stays in the buffer. The decoder is of no further use after that, or after an
    /// error.
    ///
    /// Nodes keep slices of the buffers that are fed, and so keep these alive.
    ///
    /// # Errors
    /// When the bytes are not such a stream, or the nodes in it not a tree.
    pub fn feed(&mut self, buffer: &mut BytesMut) -> Result<Option<Image>, DecodeError> {
        while let Some(len) = self.scan(buffer)? {
            let mut r = Reader::new(buffer.split_to(len).freeze());
            if matches!(self.expected, Expected::Signature) {
                if r.string()? != SIGNATURE {
                    return Err(DecodeError::Invalid("a tree without its signature"));
                }
                return Ok(Some(std::mem::take(&mut self.image)));
            }
            self.read(&mut r)?;
        }
        Ok(None)
    }

    /// Reads the stream from a file, where nothing is missing and no signature follows.
    pub(super) fn read_unsigned(mut self, r: &mut Reader) -> Result<Image, DecodeError> {
        while !matches!(self.expected, Expected::Signature) {
            self.read(r)?;
        }
        Ok(self.image)
    }

    /// How long the next piece is, if it is there whole.
    fn scan(&self, bytes: &[u8]) -> Result<Option<usize>, DecodeError> {
        let mut scan = Scan::new(bytes);
        let whole = match self.expected {
            Expected::SessionCount | Expected::AclCount => scan.skip(4),
            Expected::Sessions(_) => scan.skip(SESSION_LEN),
            Expected::Acls(_) => scan_acl(&mut scan)?,
            Expected::Nodes => scan_node(&mut scan)?,
            Expected::Signature => scan.buffer(SIGNATURE.len())?,
        };
        Ok(whole.map(|()| scan.position()))
    }

    /// Reads the next piece.
    fn read(&mut self, r: &mut Reader) -> Result<(), DecodeError> {
        self.expected = match self.expected {
            Expected::SessionCount => after_sessions(bounded_length(r.int()?, MAX_IMAGE_ITEMS)?),
            Expected::Sessions(left) => {
                self.image.sessions.push((r.read::<SessionId>()?, r.int()?));
                after_sessions(left - 1)
            }
            Expected::AclCount => after_acls(bounded_length(r.int()?, MAX_IMAGE_ITEMS)?),
            Expected::Acls(left) => {
                self.image.acls.push((r.long()?, r.read::<Vec<Acl>>()?));
                after_acls(left - 1)
            }
            Expected::Nodes => {
                let path = r.string()?;
                if path == END_OF_NODES {
                    Expected::Signature
                } else {
                    let path = self.tree.enter(path)?;
                    let node = NodeRecord { path, data: r.buffer()?, acl: r.long()?, stat: r.read()? };
                    self.image.nodes.push(node);
                    Expected::Nodes
                }
            }
            Expected::Signature => unreachable!("a signature is read by whoever expects one"),
        };
        Ok(())
    }
}

fn after_sessions(left: usize) -> Expected {
    if left == 0 { Expected::AclCount } else { Expected::Sessions(left) }
}

fn after_acls(left: usize) -> Expected {
    if left == 0 { Expected::Nodes } else { Expected::Acls(left) }
}

fn scan_acl(scan: &mut Scan<'_>) -> Result<Option<()>, DecodeError> {
    if scan.long().is_none() {
        return Ok(None);
    }
    let Some(count) = scan.length(MAX_ACL_ENTRIES)? else { return Ok(None) };
    for _ in 0..count {
        if scan.int().is_none() || scan.buffer(MAX_BUFFER)?.is_none() || scan.buffer(MAX_BUFFER)?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

fn scan_node(scan: &mut Scan<'_>) -> Result<Option<()>, DecodeError> {
    let Some(len) = scan.length(MAX_BUFFER)? else { return Ok(None) };
    let start = scan.position();
    let Some(()) = scan.skip(len) else { return Ok(None) };
    if scan.is_at(start, END_OF_NODES) {
        return Ok(Some(()));
    }
    if scan.buffer(MAX_BUFFER)?.is_none() {
        return Ok(None);
    }
    Ok(scan.skip(NODE_TAIL_LEN))
}

/// Makes sure that nodes come as a tree: the root first, each behind its parent, none twice.
#[derive(Debug, Default)]
struct TreeCheck {
    seen: HashSet<ByteString>,
}

impl TreeCheck {
    /// Takes a path of the stream and returns it as an image has it.
    fn enter(&mut self, path: ByteString) -> Result<ByteString, DecodeError> {
        if self.seen.len() == MAX_IMAGE_ITEMS {
            return Err(DecodeError::TooLong { len: self.seen.len() + 1, limit: MAX_IMAGE_ITEMS });
        }
        let path = if path.is_empty() { ByteString::from_static(ROOT) } else { path };
        if path != ROOT {
            validate_path(&path).map_err(|_| DecodeError::Invalid("a node's path that is none"))?;
            let parent = match path.rsplit_once('/') {
                Some(("", _)) | None => ROOT,
                Some((parent, _)) => parent,
            };
            if !self.seen.contains(parent) {
                return Err(DecodeError::Invalid("a node before its parent"));
            }
        }
        if !self.seen.insert(path.clone()) {
            return Err(DecodeError::Invalid("a node for the second time"));
        }
        Ok(path)
    }
}
