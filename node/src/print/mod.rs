//! `node log FILE` and `node snapshot FILE`: what is in a data directory, for people and for scripts.
//!
//! Both read a file of any length piece by piece, Apache ZooKeeper's as well as ours, and need no member and
//! no lock. What is sound is printed; at the first thing that is not, they say at which byte and why, and end
//! with exit status 1. A log that ends in zeros, or in the middle of its last record, is what a crash leaves:
//! the first is sound, the second is told.

mod log;
mod snapshot;
mod source;
mod text;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

/// What is printed, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct PrintArgs {
    /// A file of a data directory
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// One JSON object a line, with all data
    #[arg(long)]
    pub json: bool,
}

/// Where a file stops to be sound, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Everything before this byte is sound.
    pub(crate) offset: u64,
    pub(crate) reason: String,
}

/// What is printed line by line.
pub(crate) enum Line {
    Text(String),
    Json(Value),
}

/// Takes lines to stdout, or to a test.
pub(crate) type Sink<'a> = dyn FnMut(Line) -> std::io::Result<()> + 'a;

/// Prints a transaction log.
///
/// # Errors
/// When the file can't be read or is damaged.
pub fn log(args: &PrintArgs) -> anyhow::Result<()> {
    print(args, |file, sink| log::read(file, args.json, sink))
}

/// Prints a snapshot.
///
/// # Errors
/// When the file can't be read or is damaged.
pub fn snapshot(args: &PrintArgs) -> anyhow::Result<()> {
    print(args, |file, sink| snapshot::read(file, args.json, sink))
}

fn print(
    args: &PrintArgs,
    read: impl FnOnce(File, &mut Sink<'_>) -> std::io::Result<Result<u64, Damage>>,
) -> anyhow::Result<()> {
    let path = &args.file;
    let file = File::open(path).with_context(|| format!("failed to read {}", path.display()))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let read = read(file, &mut |line| match line {
        Line::Text(text) => writeln!(out, "{text}"),
        Line::Json(value) => writeln!(out, "{value}"),
    });
    let ended = match read {
        Ok(ended) => ended,
        // Whoever reads us has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("failed to read {}", path.display())),
    };
    if args.json {
        writeln!(out, "{}", last_line(&ended))?;
    }
    out.flush()?;
    ended.map(|_| ()).map_err(|damage| told(path, &damage))
}

fn last_line(ended: &Result<u64, Damage>) -> Value {
    match ended {
        Ok(length) => json!({"end": "sound", "offset": length}),
        Err(damage) => json!({"end": "damaged", "offset": damage.offset, "reason": damage.reason}),
    }
}

fn told(path: &Path, damage: &Damage) -> anyhow::Error {
    anyhow::anyhow!("failed to read {} beyond byte {}: {}", path.display(), damage.offset, damage.reason)
}
