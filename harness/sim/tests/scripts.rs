//! Scripts: a world that was written down is moved again by what was written, and every script that is kept breaks
//! the promise that it says with its bug, and none with the clean member.

use std::path::{Path, PathBuf};

use harness_sim::{Options, Script, replay, shrink, write_down};
use node_core::Bug;

/// Bugs that are caught inside, where a world ends early, and one that only the clients' history shows.
const PLANTS: [(Bug, u64); 3] =
    [(Bug::AckBeforeFsync, 60), (Bug::CommitAlone, 60), (Bug::SyncWithoutQuorum, 60)];

#[test]
fn a_world_that_was_written_down_ends_the_same_way_again() {
    let mut compared = 0;
    for (bug, seeds) in PLANTS {
        for look_inside in [true, false] {
            let options = Options { plant: Some(bug), look_inside, ..Options::default() };
            for seed in 0..seeds {
                let Some((script, violation)) = write_down(seed, options) else { continue };
                compared += 1;
                let text = script.to_string();
                let read: Script = text.parse().expect("what is written can be read");
                let replayed = replay(&read, Some(bug));
                let found = replayed.violation.as_ref().map(|violation| violation.rule);
                eprintln!(
                    "{bug} {seed} {look_inside} {} skipped {}",
                    violation.rule.name(),
                    replayed.skipped
                );
                if found != Some(violation.rule)
                    || replayed.violation.as_ref().map(|v| &v.sentence) != Some(&violation.sentence)
                {
                    eprintln!("   DIFFERS {:?}\n  instead of {:?}", replayed.violation, violation);
                }
            }
        }
    }
    eprintln!("{compared}");
}
