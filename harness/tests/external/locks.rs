//! Locks by lines: a client that is stopped while it holds, and one that says what is no answer.

use std::fs;

use super::{Folder, ended, text};

/// From onset to onset: a holder is stopped for longer than its lease.
const USUAL: [&str; 6] = ["--workload", "lock", "--keys", "2", "--interval", "12s"];

/// Runs with these arguments, at once, each in a store of its own: they wait most of the time.
fn side_by_side<const N: usize>(folder: &Folder, runs: [(&str, &[&str]); N]) -> [std::process::Output; N] {
    std::thread::scope(|scope| {
        let runs = runs.map(|(conduct, more)| {
            let system = folder.system("", conduct, "");
            let store = format!("{conduct}{}", more.join(""));
            let arguments = [&USUAL[..], &["--store", &store], more].concat().join(" ");
            scope.spawn(move || folder.run(&system, &arguments.split(' ').collect::<Vec<_>>()))
        });
        runs.map(|run| run.join().expect("it ran"))
    })
}

#[test]
fn a_holder_that_is_stopped_goes_on_and_is_told_apart_from_one_that_is_gone() {
    let folder = Folder::new();
    let [accused, measured, killed] = side_by_side(
        &folder,
        [
            ("sound", &["--promise", "linearizable", "--nemesis", "pause-holder", "--time-limit", "16s"]),
            ("careless", &["--promise", "nothing", "--nemesis", "pause-holder", "--time-limit", "16s"]),
            ("killed", &["--promise", "linearizable", "--nemesis", "kill-holder", "--time-limit", "16s"]),
        ],
    );
    ended(&accused, 1);
    let told = text(&accused.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("held lock") && told.contains("at once: one by token"), "{told}");
    assert!(told.contains("1 of 1 verified"), "{told}");
    // The store minds the token all the same, and so what it guards was never written by two.
    assert!(!told.contains("the store took a stale write"), "{told}");
    ended(&measured, 0);
    let told = text(&measured.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("not promised, and not kept"), "{told}");
    // Whoever is dead acts no more: its lease ends, and another one holds.
    ended(&killed, 0);
    assert!(text(&killed.stdout).contains("1 of 1 verified"), "{}", text(&killed.stdout));
}

#[test]
fn a_holder_that_gives_no_answer_is_a_failure_of_the_harness_with_the_line() {
    let folder = Folder::new();
    let outputs =
        side_by_side(&folder, [("garbage", &["--time-limit", "20s"]), ("twice", &["--time-limit", "20s"])]);
    for (output, word) in outputs.iter().zip(["Traceback (most", "it answers"]) {
        ended(output, 255);
        let said = text(&output.stderr);
        assert!(said.contains(word) && said.contains("it misbehaves now"), "{said}");
    }
    assert!(fs::read_dir(folder.path()).expect("a folder").count() > 2, "the runs have folders");
}
