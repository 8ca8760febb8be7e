//! The order that proves a valid verdict, as a file: a header that says of which history and which model,
//! then one JSON line for each part of the object.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use checker::Interrupt;
use checker::catalogue::{self, Condition, ModelName, Unconfirmed};
use checker::history::records;
use checker::verdict::{PartOrder, Verdict};
use harness_systems::bounded;
use reports::checked::Checked;
use reports::terminal::printable;
use runs::numbers::{len, plural};
use serde::{Deserialize, Serialize};

use super::named;
use crate::cli::{ConfirmArgs, Format};
use crate::commands::screen;
use crate::exit::{Exit, Failure};
use crate::judge::source::Source;
use crate::text::typed;

/// The form of the file.
const FORM: u32 = 1;
/// The longest line that is read: one order of some hundred million operations.
const MOST_LINE_BYTES: u64 = 2 << 30;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// The form of the file.
    witness: u32,
    model: String,
    condition: String,
    /// The history, as it was named.
    history: String,
    /// Its records.
    records: u64,
}

/// Writes the order of a valid verdict, or says why there is none to write.
pub(super) fn write(
    path: &Path,
    checked: &Checked,
    orders: &[PartOrder],
) -> Result<Result<(), String>, Failure> {
    let (Some(model), Some(condition)) = (&checked.model, &checked.condition) else {
        return Ok(Err("nothing was judged".to_owned()));
    };
    match checked.verdict {
        Verdict::Valid if !Condition::from_name(condition).is_some_and(Condition::has_witness) => {
            return Ok(Err(format!("an order proves nothing about {condition}")));
        }
        Verdict::Valid if orders.is_empty() && checked.read.operations > 0 => {
            let by =
                checked.checks.iter().find_map(|check| check.decided_by.as_deref()).unwrap_or("this check");
            return Ok(Err(format!("{by} found that an order exists and none to show")));
        }
        Verdict::Valid => {}
        Verdict::Invalid => return Ok(Err("a violation has no order".to_owned())),
        Verdict::Unknown => return Ok(Err("without a verdict there is nothing to prove".to_owned())),
    }
    let header = Header {
        witness: FORM,
        model: model.clone(),
        condition: condition.clone(),
        history: checked.history.clone(),
        records: checked.read.records,
    };
    let unwritable = |error: std::io::Error| {
        Failure::usage(format!("--witness {}: can't be written: {error}", path.display()))
    };
    let mut file = BufWriter::new(File::create(path).map_err(unwritable)?);
    let mut line = |text: String| writeln!(file, "{text}").map_err(unwritable);
    line(serde_json::to_string(&header).context("encoding the witness")?)?;
    for order in orders {
        line(serde_json::to_string(order).context("encoding the witness")?)?;
    }
    file.flush().map_err(unwritable)?;
    Ok(Ok(()))
}

/// `harness confirm`: reads a witness and its history, and holds the one against the other.
pub(crate) fn confirm(args: &ConfirmArgs) -> Result<Exit, Failure> {
    let (header, orders) = read(&args.witness)?;
    let source = Source::open(&args.path, &Interrupt::never())?;
    let name = source.name.clone();
    let model = named::model(&header.model)?;
    let condition = named::condition(&header.condition)?;
    let unreadable = |error: &dyn std::fmt::Display| Failure::usage(format!("{name}: {error}"));
    let mut records = records(source.into_reader()).map_err(|error| unreadable(&error))?;
    let confirmed = match catalogue::confirm(&mut records, model, condition, &orders) {
        Ok(operations) => Ok(operations),
        Err(error @ (Unconfirmed::History(_) | Unconfirmed::Condition)) => return Err(unreadable(&error)),
        Err(refuted) => Err(refuted.to_string()),
    };
    print(args, &name, (model, condition), &confirmed, orders.len())?;
    Ok(if confirmed.is_ok() { Exit::Done } else { Exit::Invalid })
}

fn print(
    args: &ConfirmArgs,
    name: &str,
    (model, condition): (ModelName, Condition),
    confirmed: &Result<usize, String>,
    orders: usize,
) -> Result<(), Failure> {
    let text = match (args.format, confirmed) {
        (Format::Json, _) => {
            let value = serde_json::json!({
                "confirmed": confirmed.is_ok(), "model": model.name(), "condition": condition.name(),
                "operations": confirmed.as_ref().ok(), "why": confirmed.as_ref().err(),
            });
            format!("{value:#}\n")
        }
        (Format::Human, Ok(operations)) => format!(
            "confirmed: {} as {model}: {condition}, by the order of {} operations in {}\n",
            printable(name),
            len(*operations),
            plural(crate::num::wide(orders), "part")
        ),
        (Format::Human, Err(why)) => {
            format!("{}\n", printable(&format!("not confirmed: {}: {why}", args.witness.display())))
        }
    };
    screen::print(&text)
}

fn read(path: &Path) -> Result<(Header, Vec<PartOrder>), Failure> {
    let unreadable = |what: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "{} is no witness: {what}. `harness check --witness {}` writes one",
            path.display(),
            typed::word(&path.to_string_lossy())
        ))
    };
    let file = bounded::open(path).map_err(|error| unreadable(&error))?;
    let mut lines = BufReader::new(std::io::Read::take(file, MOST_LINE_BYTES)).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new())).map_err(|error| unreadable(&error))?;
    let header: Header =
        serde_json::from_str(&first).map_err(|error| unreadable(&format!("line 1: {error}")))?;
    if header.witness != FORM {
        return Err(unreadable(&format!("its form is {}, known is {FORM}", header.witness)));
    }
    let mut orders = Vec::new();
    for (number, line) in (2_u64..).zip(lines) {
        let line = line.map_err(|error| unreadable(&format!("line {number}: {error}")))?;
        orders.push(
            serde_json::from_str(&line).map_err(|error| unreadable(&format!("line {number}: {error}")))?,
        );
    }
    Ok((header, orders))
}
