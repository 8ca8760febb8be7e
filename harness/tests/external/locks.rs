//! Locks by lines: a client that is stopped while it holds, and one that says what is no answer.

use super::{Folder, ended, text};

/// From onset to onset: a holder is stopped for longer than its lease.
const USUAL: [&str; 6] = ["--workload", "lock", "--keys", "2", "--interval", "12s"];

/// One fault of this nemesis, and how the run must end. Systems of other names share nothing.
fn run(folder: &Folder, name: &str, nemesis: &str, promise: &str, status: i32) -> String {
    let system = folder.system("", name, "");
    let more = ["--promise", promise, "--nemesis", nemesis, "--time-limit", "16s", "--store", name];
    let output = folder.run(&system, &[&USUAL[..], &more].concat());
    ended(&output, status);
    let told = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("1 of 1 verified"), "{told}");
    told
}

#[test]
fn a_holder_that_is_hit_goes_on_and_is_told_apart_from_one_that_is_gone() {
    let folder = Folder::new();
    // Side by side: they wait most of the time.
    std::thread::scope(|scope| {
        let accused = scope.spawn(|| run(&folder, "accused", "pause-holder", "linearizable", 1));
        let cut = scope.spawn(|| run(&folder, "cut", "cut-holder", "linearizable", 1));
        let measured = scope.spawn(|| run(&folder, "measured", "pause-holder", "nothing", 0));
        // Whoever is dead acts no more: its lease ends, and another one holds.
        run(&folder, "killed", "kill-holder", "linearizable", 0);
        for accused in [accused, cut] {
            let told = accused.join().expect("accused");
            assert!(told.contains("held lock") && told.contains("at once: one by token"), "{told}");
            // The store minds the token all the same, and so what it guards was never written by two.
            assert!(!told.contains("the store took a stale write"), "{told}");
        }
        let told = measured.join().expect("measured");
        assert!(told.contains("not promised, and not kept"), "{told}");
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
