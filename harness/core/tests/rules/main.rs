//! The rules of the machines, one script each, in virtual time. `UPDATE_GOLDENFILES=1` writes what is told
//! now into the scripts.

mod load;
mod nemeses;
mod run;
mod seen;

use std::error::Error;
use std::path::Path;

use goldenscript::{Command, Runner};
use harness_core::fault::Nemesis;
use harness_core::fault::own::{Own, Whom};
use harness_core::schedule::PlannedFault;

/// A millisecond in nanoseconds.
const MS: u64 = 1_000_000;

/// Runs the scripts of a machine.
fn run_all<R: Runner + Default>(machine: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(machine);
    let mut scripts: Vec<_> =
        folder.read_dir().expect("the scripts").map(|entry| entry.expect("a script").path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        goldenscript::run(&mut R::default(), &script)
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    }
}

/// The moment that `at MS` names.
fn moment(command: &Command) -> Result<u64, Box<dyn Error>> {
    let at: u64 = command.consume_args().next_pos().ok_or("when?")?.parse()?;
    Ok(at * MS)
}

/// The nemesis of that name: of the catalogue, or one of the user's own that lasts (`own-leader`) or is done
/// with when it was done (`once-all`), by whom it is aimed at.
fn nemesis(name: &str) -> Option<Nemesis> {
    let own = |prefix: &str, lasts: bool| {
        let whom = Whom::named(name.strip_prefix(prefix)?)?;
        Some(Nemesis::from(Own::new(name, String::new(), whom, lasts)))
    };
    Nemesis::from_name(name).or_else(|| own("own-", true)).or_else(|| own("once-", false))
}

/// The fault that `fault KIND at=MS [hold=MS]` plans, behind so many others.
fn planned(command: &Command, others: usize) -> Result<PlannedFault, Box<dyn Error>> {
    let mut words = command.consume_args();
    let name = words.next_pos().ok_or("which fault?")?.to_owned();
    let kind = nemesis(&name).ok_or("no such fault")?;
    let start_ms = words.take_key("at").ok_or("when?")?.parse()?;
    let hold_ms = words.take_key("hold").unwrap_or("2000").parse()?;
    words.reject_next()?;
    Ok(PlannedFault { id: format!("F{}", others + 1), kind, start_ms, hold_ms, draw: 5, turn: 0 })
}

#[test]
fn the_rules_of_a_load_hold() {
    run_all::<load::Script>("load");
}

#[test]
fn the_rules_of_the_nemeses_hold() {
    run_all::<nemeses::Script>("nemeses");
}

#[test]
fn the_phases_of_a_run_hold() {
    run_all::<run::Script>("run");
}
