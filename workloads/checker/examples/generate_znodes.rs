//! Makes a history of znodes of any size: `generate_znodes OPS [SEED]` writes its lines,
//! `generate_znodes OPS SEED judge` judges it at once by the order that its zxids claim and says how long
//! that took. With `sessions` behind it sessions end too; finding their znodes makes a large history slow to
//! simulate.
//!
//! For measuring; the ensemble is simulated, and right.

#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use checker::model::pair;
use checker::model::znode::Tree;
use checker::model::znode::simulate::{Plan, line, simulate};
use checker::model::znode::witness::{Finding, Promise, claimed};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().and_then(|argument| argument.parse().ok());
    let Some(ops) = number() else {
        println!("usage: generate_znodes OPS [SEED [judge] [sessions]]");
        return ExitCode::from(254);
    };
    let seed = number().unwrap_or(0);
    let words: Vec<String> = arguments.collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let plan = Plan { sessions: has("sessions"), ..Plan::large(ops, seed) };
    let start = Instant::now();
    let records = simulate(&plan);
    if !has("judge") {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        return match records
            .iter()
            .try_for_each(|record| writeln!(out, "{}", line(record)))
            .and_then(|()| out.flush())
        {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(254),
        };
    }
    println!("{} records made in {:.3?}", records.len(), start.elapsed());
    let start = Instant::now();
    let tree = Tree::default();
    let calls = match pair(&tree, records.into_iter().map(Ok)) {
        Ok(calls) => calls,
        Err(error) => {
            println!("{error}");
            return ExitCode::from(254);
        }
    };
    println!("{} operations paired in {:.3?}", calls.len(), start.elapsed());
    let start = Instant::now();
    let finding = claimed(&tree, &calls, Promise::Linearizable);
    println!("judged in {:.3?}", start.elapsed());
    match finding {
        Finding::Confirmed(order) => {
            println!("valid: {} operations in the order of their zxids", order.len());
            ExitCode::SUCCESS
        }
        Finding::Contradicted(contradiction) => {
            println!("contradicted: {}", contradiction.sentence);
            ExitCode::from(1)
        }
        Finding::Useless(why) => {
            println!("unknown: {why}");
            ExitCode::from(2)
        }
    }
}
