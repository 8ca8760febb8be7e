//! The rules of election, of ZAB and of the client port, one golden script each.
//!
//! A script in `tests/scripts` drives one to five members by hand and shows every effect they have. The
//! file's name is the rule as a claim; the comment at its top says why the rule is there and where it is
//! from. `UPDATE_GOLDENFILES=1 cargo test -p node-core --test rules` writes the outputs anew: read the
//! difference.
//!
//! [`runner`] and [`requests`] have the commands, [`ensemble`] the members with their wires, disks and
//! clients, [`show`] the lines. A zxid is written `EPOCH.COUNTER` on both sides: `2.1` is what ZooKeeper
//! prints as `0x200000001`.

mod clients;
mod disk;
mod ensemble;
mod history;
mod kinds;
mod requests;
mod runner;
mod show;
mod suite;
mod wires;

use std::path::Path;

fn run_all(area: &str) {
    suite::run_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(area));
}

#[test]
fn the_rules_of_election_hold() {
    run_all("election");
}

#[test]
fn the_rules_of_zab_hold() {
    run_all("zab");
}

#[test]
fn the_rules_of_the_client_port_hold() {
    run_all("clients");
}

#[test]
fn the_rules_of_reconfiguration_hold() {
    run_all("reconfig");
}
