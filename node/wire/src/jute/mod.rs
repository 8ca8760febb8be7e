//! Jute, the serialization under ZooKeeper's protocols.
//!
//! Integers are big-endian, a bool is one byte, strings and buffers are a 4-byte length and their bytes, a
//! vector is a 4-byte count and its elements, a record is its fields in order with nothing between them. The
//! length -1 is null. There are no tags: whoever reads must know what comes.
//!
//! [`Reader`] takes the bytes apart without copying them: strings and buffers are slices of what was received
//! and keep it alive. [`Writer`] appends to a buffer of the caller's, and [`encode`] makes a buffer for it.
//! [`Jute`] is what both know how to handle, and a `record!` inside this crate is a struct whose declaration
//! is its format.

mod reader;
mod record;
mod scan;
mod writer;

use thiserror::Error;

pub use reader::Reader;
pub use record::Jute;
pub(crate) use record::record;
pub(crate) use scan::{Scan, bounded_length};
pub use writer::{Writer, encode};

/// The bounds that decoding enforces.
pub mod limits {
    /// The largest frame on the client port, unless `jute.maxbuffer` says otherwise.
    pub const MAX_FRAME: usize = 0xf_ffff;
    /// The most that `jute.maxbuffer` may say.
    pub const LARGEST_FRAME: usize = 64 << 20;
    /// The longest string or buffer inside of anything that is there whole: twice a frame, because a
    /// transaction carries more than the request that led to it. Of the largest frame, so that a history can
    /// be read whatever the limit was when it was written. Nothing is waited for by it: see
    /// [`decode_packet_within`](crate::quorum::decode_packet_within).
    pub const MAX_BUFFER: usize = 2 * LARGEST_FRAME;
    /// The most elements of a vector. The bytes that are left bound it further.
    pub const MAX_VECTOR: usize = MAX_FRAME;
}

/// Why bytes were refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The input ends inside of a value.
    #[error("read {need} bytes where {have} are left")]
    Truncated {
        /// What the value needs at least.
        need: usize,
        /// What there is.
        have: usize,
    },
    /// A length below -1, or -1 where nothing can be null.
    #[error("accept the negative length {0}")]
    NegativeLength(i32),
    /// A length beyond the limit for its place.
    #[error("accept a length of {len} where {limit} is the limit")]
    TooLong {
        /// As the input says.
        len: usize,
        /// What is allowed.
        limit: usize,
    },
    /// A string that is not UTF-8.
    #[error("read a string that is not utf-8")]
    NotUtf8,
    /// A code that names nothing.
    #[error("recognize {what} {value}")]
    Unknown {
        /// What the code should have named.
        what: &'static str,
        /// The code.
        value: i64,
    },
    /// A number outside of what its place allows.
    #[error("accept {value} as {what}")]
    OutOfRange {
        /// What the number should have been.
        what: &'static str,
        /// The number.
        value: i64,
    },
    /// Right in form, wrong in meaning.
    #[error("accept {0}")]
    Invalid(&'static str),
}
