//! Locks by lines: a client that is stopped while it holds, and one that says what is no answer.

use std::process::Output;

use super::{Folder, ended, text};

/// From onset to onset: a holder is stopped for longer than its lease.
const USUAL: [&str; 6] = ["--workload", "lock", "--keys", "2", "--interval", "12s"];

/// An acquire whose answer was lost holds for as long as its lease, and nobody sees it: then the holder that
/// was stopped is alone in what is on record when it goes on. That takes a machine that is very busy.
const ATTEMPTS: usize = 4;

/// One fault of this nemesis. Systems of other names share nothing.
fn run(folder: &Folder, (name, store): (&str, &str), nemesis: &str, promise: &str) -> (Output, String) {
    let system = folder.system("", name, "");
    let more = ["--promise", promise, "--nemesis", nemesis, "--time-limit", "16s", "--store", store];
    let output = folder.run(&system, &[&USUAL[..], &more].concat());
    let told = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("1 of 1 verified"), "{told}");
    (output, told)
}

/// What the first run tells that ends with this status and has these words.
fn until(folder: &Folder, (name, nemesis): (&str, &str), promise: &str, status: i32, words: &str) -> String {
    for attempt in 0..ATTEMPTS {
        let (output, told) = run(folder, (name, &format!("{name}{attempt}")), nemesis, promise);
        if output.status.code() == Some(status) && told.contains(words) {
            return told;
        }
        ended(&output, 0);
    }
    panic!("no holder of {ATTEMPTS} that {nemesis} hit was seen beside another one");
}

#[test]
fn a_holder_that_is_hit_goes_on_and_is_told_apart_from_one_that_is_gone() {
    let folder = Folder::new();
    // Side by side: they wait most of the time.
    std::thread::scope(|scope| {
        let accused = ["pause-holder", "cut-holder"].map(|nemesis| {
            let folder = &folder;
            scope.spawn(move || until(folder, (nemesis, nemesis), "linearizable", 1, "held lock"))
        });
        let unkept = "not promised, and not kept";
        let measured = scope.spawn(|| until(&folder, ("measured", "pause-holder"), "nothing", 0, unkept));
        // Whoever is dead acts no more: its lease ends, and another one holds.
        let (killed, _) = run(&folder, ("killed", "killed"), "kill-holder", "linearizable");
        ended(&killed, 0);
        for accused in accused {
            let told = accused.join().expect("accused");
            assert!(told.contains("at once: one by token"), "{told}");
            // The store minds the token all the same, and so what it guards was never written by two.
            assert!(!told.contains("the store took a stale write"), "{told}");
        }
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
