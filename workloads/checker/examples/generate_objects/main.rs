//! Writes a history of an object as lines of JSON:
//! `generate_objects MODEL OPERATIONS CLIENTS SEED FILE [falsified]`.
//!
//! `set-reads` is a set that is also read as a whole. For measuring, beside other checkers.

#![expect(clippy::print_stderr, reason = "a program that says what is wrong")]

mod objects;

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use checker::catalogue::ModelName;
use checker::history::EventKind;
use objects::Wanted;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match wanted(&arguments)
        .and_then(|(wanted, file)| write(wanted, file).map_err(|error| format!("{file}: {error}")))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("generate_objects: {why}");
            ExitCode::from(254)
        }
    }
}

fn wanted(arguments: &[String]) -> Result<(Wanted, &str), String> {
    let [model, operations, clients, seed, file, rest @ ..] = arguments else {
        return Err("MODEL OPERATIONS CLIENTS SEED FILE [falsified]".to_owned());
    };
    let number = |text: &String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let read_whole = model == "set-reads";
    let model = if read_whole { "set" } else { model };
    let model = ModelName::from_name(model).ok_or_else(|| format!("there is no model {model}"))?;
    let wanted = Wanted {
        model,
        read_whole,
        operations: number(operations)?,
        clients: number(clients)?.max(1),
        seed: number(seed)?,
        falsified: rest.first().is_some_and(|word| word == "falsified"),
    };
    Ok((wanted, file))
}

fn write(wanted: Wanted, file: &str) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    for record in objects::records(wanted) {
        let kind = if record.kind == EventKind::Invoke { "invoke" } else { "ok" };
        let line = serde_json::json!({
            "process": record.process, "type": kind, "f": &*record.f,
            "key": record.key, "value": record.value,
        });
        writeln!(out, "{line}")?;
    }
    out.flush()
}
