//! Hunts the mutant that the environment selects: `hunt A..B` lives through these worlds until one convicts
//! it.
//!
//! `.ci/mutants` puts this into its copy of the tree as an example of the simulator: only there is anything
//! to hunt. Ends with status 1 and a line of seed, rule and sentence when a promise was broken, and with 0
//! when none was.

use std::process::ExitCode;

use lab_sim::{Options, simulate};

fn main() -> ExitCode {
    let Some(seeds) = std::env::args().nth(1).and_then(|words| range(&words)) else {
        eprintln!("usage: hunt A..B");
        return ExitCode::from(254);
    };
    // A member's panic is a finding and told as one.
    std::panic::set_hook(Box::new(|_| {}));
    for seed in seeds {
        if let Some(violation) = simulate(seed, Options::default()).violation {
            println!("{seed}\t{}\t{}", violation.rule.name(), violation.sentence.replace(['\t', '\n'], " "));
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}

fn range(words: &str) -> Option<std::ops::Range<u64>> {
    let (from, to) = words.split_once("..")?;
    Some(from.parse().ok()?..to.parse().ok()?)
}
