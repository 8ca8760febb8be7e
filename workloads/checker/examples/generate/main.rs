//! Makes histories of registers, linearizable by construction, and copies of them that are not.
//!
//!     generate --ops 1000000 --conc 10 --write 0.3 --cas 0.2 --seed 7 --out ok.jsonl
//!     generate --ops 1000000 --conc 10 --seed 7 --out bad.jsonl --corrupt stale --at 0.5
//!
//! Options: --ops, --conc, --keys, --write, --cas, --info, --think, --lat (ns), --seed, --out, --corrupt
//! stale|inversion|phantom, --at. The same options give the same bytes.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]

mod simulation;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use checker::history::{Event, EventKind, Value};
use simulation::{Corruption, Options, Simulation};

fn main() -> ExitCode {
    match options(std::env::args().skip(1)).and_then(|(out, options)| write(&out, options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("generate: {why}");
            ExitCode::from(254)
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<(String, Options), String> {
    let mut options = Options::default();
    let (mut out, mut corruption, mut at) = (None, None, 0.5);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        let wrong = || format!("{name} can't be {value}");
        let whole = || value.parse::<u64>().map_err(|_| wrong());
        let part = || value.parse::<f64>().map_err(|_| wrong());
        match name.as_str() {
            "--ops" => options.ops = whole()?,
            "--conc" => options.conc = whole()?.max(1),
            "--keys" => options.keys = whole()?.max(1),
            "--seed" => options.seed = whole()?,
            "--write" => options.write = part()?,
            "--cas" => options.cas = part()?,
            "--info" => options.info = part()?,
            "--think" => options.think = part()?,
            "--lat" => options.latency_ns = part()?,
            "--at" => at = part()?,
            "--out" => out = Some(value),
            "--corrupt" => {
                corruption = Some(match value.as_str() {
                    "stale" => Corruption::Stale,
                    "inversion" => Corruption::Inversion,
                    "phantom" => Corruption::Phantom,
                    _ => return Err(wrong()),
                });
            }
            _ => return Err(format!("there is no option {name}")),
        }
    }
    options.corrupt = corruption.map(|corruption| (corruption, at));
    Ok((out.ok_or("--out FILE is needed")?, options))
}

fn write(name: &str, options: Options) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let falsify = options.corrupt.is_some();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(name).map_err(failed)?);
    let mut simulation = Simulation::new(options);
    let mut count = 0_u64;
    for event in simulation.by_ref() {
        line(&mut out, &event).map_err(failed)?;
        count += 1;
    }
    out.flush().map_err(failed)?;
    match simulation.corrupted() {
        None if falsify => Err("no place to falsify an answer".to_owned()),
        Some(index) => {
            println!("{name}: {count} lines, falsified in line {}", index + 1);
            Ok(())
        }
        None => {
            println!("{name}: {count} lines");
            Ok(())
        }
    }
}

/// The line that serde would write, several times faster.
fn line(out: &mut impl Write, event: &Event) -> std::io::Result<()> {
    let kind = match event.kind {
        EventKind::Invoke => "invoke",
        EventKind::Ok => "ok",
        EventKind::Fail => "fail",
        EventKind::Info => "info",
    };
    let Event { index, process, f, key, .. } = event;
    write!(out, r#"{{"index":{index},"process":{process},"type":"{kind}","f":"{f}","key":{key},"value":"#)?;
    match event.value {
        Value::One(value) => write!(out, "{value}")?,
        Value::Pair(Some(from), to) => write!(out, "[{from},{to}]")?,
        _ => write!(out, "null")?,
    }
    writeln!(out, r#","time":{}}}"#, event.time.unwrap_or(0))
}
