//! Locks by lines: a client that is stopped while it holds, and one that says what is no answer.

use super::{Folder, ended, text};

/// From onset to onset: a holder is stopped for longer than its lease.
const USUAL: [&str; 6] = ["--workload", "lock", "--keys", "2", "--interval", "12s"];

/// An acquire whose answer was lost holds for as long as its lease, and nobody sees it. Where a machine is so
/// busy that this happens often, nobody is known to hold when a fault comes, or the holder that was stopped
/// is alone in what is on record when it goes on.
const ATTEMPTS: usize = 5;

/// What the first run with one fault of this nemesis tells that ends with this status and has these words.
/// Systems of other names share nothing.
fn until(folder: &Folder, (name, nemesis): (&str, &str), promise: &str, status: i32, words: &str) -> String {
    let system = folder.system("", name, "");
    for attempt in 0..ATTEMPTS {
        let store = format!("{name}{attempt}");
        let more = ["--promise", promise, "--nemesis", nemesis, "--time-limit", "16s", "--store", &store];
        let output = folder.run(&system, &[&USUAL[..], &more].concat());
        let told = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        if output.status.code() == Some(status) && told.contains(words) {
            assert!(told.contains("1 of 1 verified"), "{told}");
            return told;
        }
        if output.status.code() != Some(2) {
            ended(&output, 0);
        }
    }
    panic!("no holder of {ATTEMPTS} that {nemesis} was to hit was seen to be hit, and beside another one");
}

#[test]
fn a_holder_that_is_hit_goes_on_and_is_told_apart_from_one_that_is_gone() {
    let folder = Folder::new();
    let accused = |nemesis: &str| {
        let told = until(&folder, (nemesis, nemesis), "linearizable", 1, "held lock");
        assert!(told.contains("at once: one by token"), "{told}");
        // The store minds the token all the same, and so what it guards was never written by two.
        assert!(!told.contains("the store took a stale write"), "{told}");
    };
    // Two side by side: they wait most of the time.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            accused("pause-holder");
            until(&folder, ("measured", "pause-holder"), "nothing", 0, "not promised, and not kept");
        });
        accused("cut-holder");
        // Whoever is dead acts no more: its lease ends, and another one holds.
        until(&folder, ("killed", "kill-holder"), "linearizable", 0, "1 of 1 verified");
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
