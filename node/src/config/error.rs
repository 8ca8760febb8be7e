//! Why a configuration is refused. Every message says what to do next, because whoever reads it has a member
//! that does not start.

use std::io;
use std::path::PathBuf;

use node_wire::ids::ServerId;

use crate::address::AddressError;
use crate::sasl::SaslError;
use crate::tls::TlsError;

/// Why there is no configuration. Messages fit after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("read {path}: {source}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line of the file has an escape that is none.
    #[error(
        "read line {number}, `{line}`: four hexadecimal digits are wanted behind \\u, and a backslash is \
         written \\\\"
    )]
    Line {
        /// Counted from 1.
        number: usize,
        /// As it stands.
        line: String,
    },
    /// A place in an encoding that the file does not have: Java would look elsewhere.
    #[error("accept the value of {0}: it is {encoding}", encoding = crate::zoocfg::properties::ENCODING)]
    Encoding(String),
    /// A key that is not known and nearly names a place.
    #[error(
        "accept the key {key}: is {place} meant? Skipped, it would let an empty member start where its data \
         are not"
    )]
    NoPlace {
        /// As it was spelt.
        key: String,
        /// The key that it nearly is.
        place: &'static str,
    },
    /// A value is not of its key's kind.
    #[error("read {key}={value}: {want} is wanted")]
    Value {
        /// The key.
        key: String,
        /// What it was given.
        value: String,
        /// What it takes.
        want: &'static str,
    },
    /// A `server.` key without a number.
    #[error("read the key {0}: a number must follow the dot, 0 or more")]
    ServerKey(String),
    /// A value that should be addresses.
    #[error("read {key}: {source}")]
    Address {
        /// The key.
        key: String,
        /// What is wrong with it.
        source: AddressError,
    },
    /// A variable of the environment is not of its kind.
    #[error("read the variable {variable}: {reason}")]
    Variable {
        /// Its name.
        variable: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Two lines for one server.
    #[error("accept two lines for server {0}: remove one")]
    ServerTwice(ServerId),
    /// Something that must be given was not.
    #[error("find {0}")]
    Missing(&'static str),
    /// The myid file is not a number.
    #[error("read {path}: it must hold this member's number and nothing else", path = .0.display())]
    MyId(PathBuf),
    /// A number is out of its bounds.
    #[error("accept {what} of {value}: choose one from {min} to {max}")]
    OutOfBounds {
        /// Which setting.
        what: String,
        /// As given.
        value: String,
        /// The least that works.
        min: String,
        /// The most.
        max: String,
    },
    /// A key that asks for what is not there.
    #[error("accept {key}{shown}: {why}", shown = shown(.key, .value))]
    Unsupported {
        /// As it was spelt.
        key: String,
        /// What it was given.
        value: String,
        /// Why not, and what to do.
        why: String,
    },
    /// Keys and stores that make no TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Users that can't be read.
    #[error(transparent)]
    Sasl(#[from] SaslError),
    /// Settings that can't hold together.
    #[error("accept {0}")]
    Impossible(String),
}

/// The value behind its key, unless it is nobody's business.
fn shown(key: &str, value: &str) -> String {
    if is_secret(key) { String::new() } else { format!("={value}") }
}

/// True for keys whose values must not stand in a log or in an answer.
pub(crate) fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["password", "passwd", "secret", "superdigest"].iter().any(|word| key.contains(word))
}
