//! The targets.

mod client;
#[cfg(feature = "config")]
mod config;
mod disk;
mod election;
mod member;
#[cfg(feature = "config")]
mod names;
mod quorum;

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use node_wire::jute::{DecodeError, Jute, Reader, Writer};

use crate::meter::{Bound, within};

/// Something that takes hostile bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and its folder in the corpus.
    pub name: &'static str,
    /// Panics when a promise is broken.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "requests", run: client::requests },
    Target { name: "replies", run: client::replies },
    Target { name: "session", run: member::session },
    Target { name: "packets", run: quorum::packets },
    Target { name: "stream", run: quorum::stream },
    Target { name: "peers", run: member::peers },
    Target { name: "election", run: election::election },
    Target { name: "transactions", run: disk::transactions },
    Target { name: "log", run: disk::log },
    Target { name: "snapshot", run: disk::snapshot },
    Target { name: "directory", run: disk::directory },
    #[cfg(feature = "config")]
    Target { name: "config", run: config::config },
    #[cfg(feature = "config")]
    Target { name: "digest", run: names::digest },
    #[cfg(feature = "config")]
    Target { name: "jaas", run: names::jaas },
    #[cfg(feature = "config")]
    Target { name: "jks", run: names::jks },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}

/// What decoding one value may hold. Values are slices of the input, so what is allocated are lists: the
/// least element of any is a string of 4 bytes, which takes 32 in memory, and a result of a multi with 9
/// bytes takes some hundred; a list that grows by doubling is there twice while it moves.
const RECORD: Bound = Bound { flat: 4096, per_byte: 64 };

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut buffer = BytesMut::new();
    write(&mut Writer::new(&mut buffer));
    buffer.freeze()
}

/// Reads a value, and what it was read from.
fn read<T>(
    bytes: &Bytes,
    decode: impl FnOnce(&mut Reader) -> Result<T, DecodeError>,
) -> Result<(T, Bytes), DecodeError> {
    let mut r = Reader::new(bytes.clone());
    let value = within(RECORD, bytes.len(), || decode(&mut r))?;
    Ok((value, bytes.slice(..bytes.len() - r.remaining())))
}

/// Reads a value whose format has several forms: written, it must be read as the same, and be written the
/// same.
fn returns<T: PartialEq + Debug>(
    bytes: &Bytes,
    decode: impl Fn(&mut Reader) -> Result<T, DecodeError>,
    encode: impl Fn(&T, &mut Writer<'_>),
) -> Option<T> {
    let (value, _) = read(bytes, &decode).ok()?;
    let once = written(|w| encode(&value, w));
    let (again, all) = read(&once, &decode).expect("what was written is read");
    assert_eq!(again, value, "what was written is read as it was");
    assert_eq!(all.len(), once.len(), "nothing is left over");
    assert_eq!(written(|w| encode(&again, w)), once, "and written as it was");
    Some(value)
}

/// As [`returns`], of a record.
fn record<T: Jute + PartialEq + Debug>(bytes: &Bytes) -> Option<T> {
    returns(bytes, T::decode, T::encode)
}

/// Reads a value whose format has one form: it is written as it was read.
fn returns_exactly<T: PartialEq + Debug>(
    bytes: &Bytes,
    decode: impl Fn(&mut Reader) -> Result<T, DecodeError>,
    encode: impl Fn(&T, &mut Writer<'_>),
) -> Option<T> {
    let (value, from) = read(bytes, &decode).ok()?;
    assert_eq!(written(|w| encode(&value, w)), from, "what was read is written as it was");
    Some(value)
}
