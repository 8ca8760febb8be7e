//! A snapshot, node by node.
//!
//! The parts of the format are the wire's; the order is told here once more, because the wire's own reader
//! keeps the whole tree, which a file that is only looked at need not have. Nodes are not checked to be a
//! tree. Of a file that is compressed places are those in what comes out.

use std::fs::File;
use std::io;

use node_log::decompressing;
use node_wire::client::Acl;
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{DecodeError, Reader};
use node_wire::snapshot::{MAX_IMAGE_ITEMS, NodeRecord, OPEN_ACL};
use serde_json::{Map, Value, json};

use super::source::Source;
use super::{Damage, Line, Sink, text};

/// `ZKSN`, and the only version there was.
const MAGIC: i32 = i32::from_be_bytes(*b"ZKSN");
const VERSION: i32 = 2;
/// The path that ends the nodes, and the string in a seal.
const END: &str = "/";

/// Reads a snapshot and gives a line for everything in it; the length of what is sound, or where it is not.
pub(super) fn read(file: File, as_json: bool, sink: &mut Sink<'_>) -> io::Result<Result<u64, Damage>> {
    let mut source = Source::new(decompressing(file)?);
    let mut walk = Walk { source: &mut source, as_json, sink };
    match walk.print_all() {
        Ok(()) => Ok(Ok(source.offset())),
        Err(End::Damaged(reason)) => Ok(Err(Damage { offset: source.offset(), reason })),
        Err(End::Io(error)) => Err(error),
    }
}

/// What ends a walk early.
enum End {
    Io(io::Error),
    Damaged(String),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

struct Walk<'a, 'b> {
    source: &'a mut Source,
    as_json: bool,
    sink: &'a mut Sink<'b>,
}

impl Walk<'_, '_> {
    /// Prints a line for each session, access control list and node, and checks the seal.
    fn print_all(&mut self) -> Result<(), End> {
        self.take("the header", |r| match (r.int()?, r.int()?, r.long()?) {
            (MAGIC, VERSION, _) => Ok(()),
            _ => Err(DecodeError::Invalid("a file that is no snapshot of version 2")),
        })?;
        for _ in 0..self.count("the number of sessions")? {
            let (session, timeout_ms) = self.take("a session", |r| Ok((r.read::<SessionId>()?, r.int()?)))?;
            self.say(
                || format!("session {session} timeout {timeout_ms} ms"),
                || json!({"session": session.to_string(), "timeout_ms": timeout_ms}),
            )?;
        }
        for _ in 0..self.count("the number of access control lists")? {
            let (number, acl) =
                self.take("an access control list", |r| Ok((r.long()?, r.read::<Vec<Acl>>()?)))?;
            let acl = text::acl(&acl);
            self.say(|| format!("acl {number} {acl}"), || json!({"acl": number, "entries": acl}))?;
        }
        while let Some(node) = self.take("a node", node)? {
            self.say(|| line(&node), || Value::Object(fields(&node)))?;
        }
        self.seal()?;
        self.digest()
    }

    fn take<T>(
        &mut self,
        what: &str,
        decode: impl Fn(&mut Reader) -> Result<T, DecodeError>,
    ) -> Result<T, End> {
        self.source.take(decode)?.map_err(|error| {
            End::Damaged(match error {
                DecodeError::Truncated { .. } => format!("the file ends inside of {what}"),
                error => format!("{what}: failed to {error}"),
            })
        })
    }

    fn count(&mut self, what: &str) -> Result<usize, End> {
        self.take(what, |r| match usize::try_from(r.clone().int()?) {
            Ok(count) if count <= MAX_IMAGE_ITEMS => r.int().map(|_| count),
            Ok(_) | Err(_) => Err(DecodeError::Invalid("a number that can't be")),
        })
    }

    fn say(&mut self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) -> Result<(), End> {
        let line = if self.as_json { Line::Json(json()) } else { Line::Text(text()) };
        Ok((self.sink)(line)?)
    }

    fn seal(&mut self) -> Result<(), End> {
        let expected = self.source.checksum();
        self.take("the checksum", move |r| {
            let mut ahead = r.clone();
            if ahead.long()? != expected {
                return Err(DecodeError::Invalid("a checksum of other bytes"));
            }
            if ahead.string()? != END {
                return Err(DecodeError::Invalid("a checksum without its mark"));
            }
            *r = ahead;
            Ok(())
        })
    }

    /// The tree's digest, which files since 3.6 have.
    fn digest(&mut self) -> Result<(), End> {
        if self.source.is_at_the_end()? {
            return Ok(());
        }
        let (zxid, version, digest) =
            self.take("the digest", |r| Ok((r.read::<Zxid>()?, r.int()?, r.long()?)))?;
        self.seal()?;
        self.say(
            || format!("digest {digest:#018x} version {version} at zxid {zxid}"),
            || json!({"digest": digest, "digest_version": version, "zxid": zxid.to_string()}),
        )
    }
}

/// A node, or none at their end.
fn node(r: &mut Reader) -> Result<Option<NodeRecord>, DecodeError> {
    let path = r.string()?;
    if path == END {
        return Ok(None);
    }
    let path = if path.is_empty() { END.into() } else { path };
    Ok(Some(NodeRecord { path, data: r.buffer()?, acl: r.long()?, stat: r.read()? }))
}

fn line(node: &NodeRecord) -> String {
    let stat = &node.stat;
    let owner = if stat.ephemeral_owner == SessionId::NONE {
        String::new()
    } else {
        format!(" owner {}", stat.ephemeral_owner)
    };
    let acl = if node.acl == OPEN_ACL { "open".to_owned() } else { node.acl.to_string() };
    format!(
        "{} {} acl {acl} czxid {} mzxid {} pzxid {} version {} cversion {} aversion {} created {} modified \
            {}{owner}",
        node.path,
        text::data(node.data.as_ref()),
        stat.czxid,
        stat.mzxid,
        stat.pzxid,
        stat.version,
        stat.cversion,
        stat.aversion,
        text::time(stat.ctime),
        text::time(stat.mtime),
    )
}

fn fields(node: &NodeRecord) -> Map<String, Value> {
    let stat = &node.stat;
    let pairs = [
        ("path", json!(&*node.path)),
        ("acl", json!(node.acl)),
        ("czxid", json!(stat.czxid.to_string())),
        ("mzxid", json!(stat.mzxid.to_string())),
        ("pzxid", json!(stat.pzxid.to_string())),
        ("ctime_ms", json!(stat.ctime)),
        ("mtime_ms", json!(stat.mtime)),
        ("version", json!(stat.version)),
        ("cversion", json!(stat.cversion)),
        ("aversion", json!(stat.aversion)),
        ("ephemeral_owner", json!(stat.ephemeral_owner.to_string())),
    ];
    let mut all: Map<String, Value> =
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    text::put_data(&mut all, node.data.as_ref());
    all
}
