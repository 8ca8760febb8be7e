//! Locks by lines: a client that is stopped while it holds, and one that says what is no answer.

use std::process::Output;

use super::{Folder, ended, text};

/// From onset to onset: a holder is stopped for longer than its lease.
const USUAL: [&str; 6] = ["--workload", "lock", "--keys", "2", "--interval", "12s"];
/// A holder that has nothing left to write when it is stopped shows nothing: it is one in four or five.
const ATTEMPTS: usize = 6;

/// One fault of this nemesis. Systems of other names share nothing.
fn run(folder: &Folder, (name, store): (&str, &str), nemesis: &str, promise: &str) -> (Output, String) {
    let system = folder.system("", name, "");
    let more = ["--promise", promise, "--nemesis", nemesis, "--time-limit", "16s", "--store", store];
    let output = folder.run(&system, &[&USUAL[..], &more].concat());
    let told = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    (output, told)
}

/// The first run that ends like this, or has this word in what it tells.
fn until(folder: &Folder, name: &str, promise: &str, shows: impl Fn(&Output, &str) -> bool) -> String {
    for attempt in 0..ATTEMPTS {
        let (output, told) = run(folder, (name, &format!("{name}{attempt}")), "pause-holder", promise);
        if shows(&output, &told) {
            return told;
        }
        ended(&output, 0);
    }
    panic!("no holder of {ATTEMPTS} that were stopped wrote afterwards");
}

#[test]
fn a_holder_that_is_stopped_goes_on_and_is_told_apart_from_one_that_is_gone() {
    let folder = Folder::new();
    // Side by side: they wait most of the time.
    std::thread::scope(|scope| {
        let accused = scope
            .spawn(|| until(&folder, "accused", "linearizable", |output, _| output.status.code() == Some(1)));
        let measured = scope.spawn(|| {
            let is_measured = |output: &Output, told: &str| {
                output.status.success() && told.contains("not promised, and not kept")
            };
            until(&folder, "measured", "nothing", is_measured)
        });
        // Whoever is dead acts no more: its lease ends, and another one holds.
        let (killed, told) = run(&folder, ("killed", "killed"), "kill-holder", "linearizable");
        ended(&killed, 0);
        assert!(told.contains("1 of 1 verified"), "{told}");
        let told = accused.join().expect("accused");
        assert!(told.contains("held lock") && told.contains("at once: one by token"), "{told}");
        assert!(told.contains("1 of 1 verified"), "{told}");
        // The store minds the token all the same, and so what it guards was never written by two.
        assert!(!told.contains("the store took a stale write"), "{told}");
        measured.join().expect("measured");
    });
}

#[test]
fn a_holder_that_gives_no_answer_is_a_failure_of_the_harness_with_the_line() {
    let folder = Folder::new();
    let outputs = std::thread::scope(|scope| {
        let runs = ["garbage", "twice"].map(|conduct| {
            let system = folder.system("", conduct, "");
            let folder = &folder;
            let more = ["--time-limit", "20s", "--store", conduct];
            scope.spawn(move || folder.run(&system, &[&USUAL[..], &more].concat()))
        });
        runs.map(|run| run.join().expect("it ran"))
    });
    for (output, word) in outputs.iter().zip(["Traceback (most", "it answers"]) {
        ended(output, 255);
        let said = text(&output.stderr);
        assert!(said.contains(word) && said.contains("it misbehaves now"), "{said}");
    }
}
