//! What a mutant does in the place where it does it, one golden script each.
//!
//! The scripts are of the form that `node/core/tests/rules` has, with its commands; `kind=NAME` makes a
//! member a mutant. `UPDATE_GOLDENFILES=1 cargo test -p lab-mutants --test rules` writes the outputs
//! anew: read the difference.

#[path = "../../../../core/tests/rules/clients.rs"]
mod clients;
#[path = "../../../../core/tests/rules/disk.rs"]
mod disk;
#[path = "../../../../core/tests/rules/ensemble.rs"]
mod ensemble;
#[path = "../../../../core/tests/rules/history.rs"]
mod history;
mod kinds;
#[path = "../../../../core/tests/rules/requests.rs"]
mod requests;
#[path = "../../../../core/tests/rules/runner.rs"]
mod runner;
#[path = "../../../../core/tests/rules/show.rs"]
mod show;
#[path = "../../../../core/tests/rules/suite.rs"]
mod suite;
#[path = "../../../../core/tests/rules/wires.rs"]
mod wires;

use std::path::Path;

#[test]
fn mutants_do_what_they_are_said_to() {
    suite::run_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts"));
}
