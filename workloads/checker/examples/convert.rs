//! Writes a history of any format as plain lines of JSON: `convert FILE > history.jsonl`.
//!
//! What it read, and how fast, goes to the standard error: it is also how the readers are measured.

#![expect(clippy::print_stderr, reason = "a program that prints")]

use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::time::Instant;

use checker::history::{Record, records};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("which file?")?;
    let file = File::open(&name)?;
    let bytes = file.metadata()?.len();
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let start = Instant::now();
    let mut records = records(BufReader::with_capacity(1 << 20, file))?;
    let silent = std::env::args().nth(2).is_some_and(|second| second == "--only-read");
    for record in records.by_ref() {
        let record = record?;
        if !silent {
            serde_json::to_writer(&mut out, &line(&record))?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    let took = start.elapsed();
    let known = records.completeness();
    eprintln!(
        "{name}: {}, {} records, {} lines skipped, {took:.3?}, {} MB/s",
        records.format().as_str(),
        known.events,
        known.skipped,
        u128::from(bytes) / took.as_micros().max(1),
    );
    if let Some(problem) = known.problem {
        eprintln!("{name}: {problem}");
    }
    Ok(())
}

/// The line of a record: what it has of the fields that every history has.
fn line(record: &Record) -> Value {
    let mut line =
        json!({"process": record.process, "type": record.kind, "f": &*record.f, "value": record.value});
    let optional = [
        ("key", (!record.key.is_nil()).then(|| json!(record.key))),
        ("time", record.time.map(|time| json!(time))),
        ("error", record.error.as_deref().map(|error| json!(error))),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            line[name] = value;
        }
    }
    line
}
