//! Hostile bytes for everything that a member decodes.
//!
//! A [`Target`] is a function that takes bytes from nobody and panics when a promise is broken. The promises
//! are those of `node-wire` and of the core: no panic, no hang, no memory beyond what the input justifies
//! ([`meter`] counts it, each target says its bound), and what was understood is written again as it was
//! read. Where a format has one form only, to the byte; where it has several (a null list is an empty one),
//! the second reading equals the first, and the second writing the first.
//!
//! | part of a member | targets |
//! |---|---|
//! | client port | `requests`, `replies`, `session` (a member that serves them), `digest` (credentials) |
//! | quorum port | `packets`, `stream` (behind SNAP), `peers` (a member among liars) |
//! | election port | `election` |
//! | disk | `transactions`, `log`, `snapshot`, `directory` (recovery from hostile files) |
//! | operator | `config`, `jaas`, `jks` (users and keys) |
//!
//! The same functions run in two ways. `node-fuzz TARGET` mutates the inputs of the corpus at random: it
//! needs a stable toolchain and nothing else, and is what CI has a minute for. The binary `libfuzzer` is for
//! long runs: it is led by coverage, needs a C++ compiler, and `.ci/fuzz` knows its flags. What either finds
//! becomes a file in `corpus/TARGET`, and a test runs every one of those for ever.
//!
//! Structure helps the mutation along: checksums are computed by the target where the format has one,
//! sequences are cut by [`split`], and the corpus is made from packets and files as members really write them
//! ([`seeds`]).

mod ensemble;
pub mod meter;
pub mod mutate;
pub mod seeds;
mod split;
mod targets;

pub use split::split;
pub use targets::{TARGETS, Target, target};

use std::path::PathBuf;

/// Where a target's inputs lie.
#[must_use]
pub fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// Inputs longer than this show nothing that shorter ones don't.
pub const MAX_INPUT: usize = 4096;
