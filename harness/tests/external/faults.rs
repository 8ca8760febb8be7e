//! Faults of one's own: brought, seen and gone; and those that can't be believed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Folder, PATIENCE, ended, text};

/// One that lasts: a file beside the system's, for the member that it hits.
const SLOW: &str = "[faults.slow]\nexec = [\"touch\", \"{folder}/slow-{id}\"]\n\
    heal = [\"rm\", \"{folder}/slow-{id}\"]\nseen = [\"test\", \"-e\", \"{folder}/slow-{id}\"]\n";
/// One that is done with when it was done, at every member.
const MARK: &str = "[faults.mark]\nexec = \"echo {client.port} >{data}/{fault}\"\n\
    seen = \"grep -q {client.port} {data}/{fault}\"\naim = \"all\"\n";

const SHORT: [&str; 4] = ["--interval", "4s", "--time-limit", "9s"];

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file of the run")).expect("JSON")
}

/// What is left of `slow` beside the system's file.
fn left_of_slow(folder: &Path) -> bool {
    (1..=3).any(|member| folder.join(format!("slow-{member}")).exists())
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + 3 * PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_fault_of_ones_own_is_brought_seen_and_gone_and_repeated_by_the_folder() {
    let folder = Folder::new();
    let system = folder.system("", "sound", &format!("{SLOW}{MARK}"));
    let output = folder.run(&system, &[&["--nemesis", "slow,mark"][..], &SHORT].concat());
    ended(&output, 0);
    let told = text(&output.stdout);
    assert!(told.contains("2 of 2 verified") && told.contains("--nemesis slow,mark"), "{told}");
    assert!(!left_of_slow(folder.path()), "it was healed");
    let kinds = read(&folder.latest().join("run.json"))["kinds"].clone();
    assert_eq!(kinds["slow"]["mechanism"], "own");
    assert!(kinds["slow"]["about"].as_str().is_some_and(|about| about.contains("slow-{id}")), "{kinds}");
    let faults = fs::read_to_string(folder.latest().join("faults.jsonl")).expect("faults");
    for words in ["before it n", "says yes; asked beside it, n", "says no", "nothing to be undone"] {
        assert!(faults.contains(words), "{words}: {faults}");
    }
    let path = folder.latest().canonicalize().expect("a run").display().to_string();
    let again = folder.harness(&["replay", &path, "--system", &system]);
    ended(&again, 0);
    assert!(text(&again.stdout).contains("2 of 2 verified"), "{}", text(&again.stdout));
    // What is run is the file's word alone, and it must be what it was.
    let file = folder.path().join(&system);
    let written = fs::read_to_string(&file).expect("a file");
    for (changed, advice) in [
        (written.replace("touch", "rm"), "which is not what the run had"),
        (written.replace("faults.mark", "faults.other"), "there is no nemesis `mark`"),
    ] {
        fs::write(&file, changed).expect("written");
        let refused = folder.harness(&["replay", &path, "--system", &system]);
        ended(&refused, 254);
        assert!(text(&refused.stderr).contains(advice), "{}", text(&refused.stderr));
    }
}

/// A run for each of these files' words, at once: they wait most of the time.
fn side_by_side<const N: usize>(faults: [&str; N]) -> [(Folder, Output); N] {
    std::thread::scope(|scope| {
        let runs = faults.map(|faults| {
            scope.spawn(move || {
                let folder = Folder::new();
                let system = folder.system("", "sound", faults);
                let words = ["--nemesis", "slow", "--interval", "4s", "--time-limit", "5s"];
                let output = folder.run(&system, &words);
                (folder, output)
            })
        });
        runs.map(|run| run.join().expect("it ran"))
    })
}

#[test]
fn a_fault_that_is_not_seen_or_was_seen_before_or_everywhere_makes_a_run_unknown() {
    let seen = "seen = [\"test\", \"-e\", \"{folder}/slow-{id}\"]";
    let never = SLOW.replace(seen, "seen = [\"false\"]");
    let always = SLOW.replace(seen, "seen = [\"true\"]");
    let everywhere = SLOW.replace(seen, "seen = \"ls {folder}/slow-*\"");
    let unseen = SLOW.replace(seen, "seen = \"no-such-program\"");
    let runs = side_by_side([&*never, &*always, &*everywhere, &*unseen]);
    let words = ["says no; asked beside it", "before it n", "says yes; asked beside it", "can't be run"];
    for ((folder, output), words) in runs.into_iter().zip(words) {
        ended(&output, 2);
        let faults = fs::read_to_string(folder.latest().join("faults.jsonl")).expect("faults");
        assert!(faults.contains("unverified") && faults.contains(words), "{words}: {faults}");
        assert!(!left_of_slow(folder.path()), "it was healed all the same");
    }
}

#[test]
fn a_command_that_fails_breaks_the_run_off_with_its_words() {
    let (exec, heal) =
        ("exec = [\"touch\", \"{folder}/slow-{id}\"]", "heal = [\"rm\", \"{folder}/slow-{id}\"]");
    let exec = SLOW.replace(exec, "exec = \"touch {folder}/slow-{id}; echo no such disk >&2; exit 3\"");
    let heal = SLOW.replace(heal, "heal = \"echo it is locked; exit 4\"");
    let [(not_brought, by_exec), (_, by_heal)] = side_by_side([&*exec, &*heal]);
    for (output, words) in [
        (by_exec, "F1 slow: exec at n|it ended with exit status 3: no such disk"),
        (by_heal, "F1 slow: heal at n|it ended with exit status 4: it is locked"),
    ] {
        ended(&output, 255);
        let said = text(&output.stderr);
        assert!(words.split('|').all(|words| said.contains(words)), "{said}");
    }
    assert!(!left_of_slow(not_brought.path()), "what came half-way was healed");
}

#[test]
fn who_interrupts_a_run_has_a_fault_of_ones_own_healed() {
    let folder = Folder::new();
    let system = folder.system("", "sound", SLOW);
    let mut harness = Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(["run", "--system", &system, "--nodes", "3", "--nemesis", "slow"])
        .args(["--interval", "20s", "--time-limit", "30s"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the harness starts");
    let id = i32::try_from(harness.id()).ok().and_then(Pid::from_raw).expect("an id");
    wait_until("it is brought", || left_of_slow(folder.path()));
    kill_process(id, Signal::INT).expect("told");
    assert_eq!(harness.wait().expect("ended").code(), Some(130));
    assert!(!left_of_slow(folder.path()), "it was healed");
    let faults = fs::read_to_string(folder.latest().join("faults.jsonl")).expect("faults");
    assert!(faults.contains("verified-healed"), "{faults}");
}

#[test]
fn a_test_of_ones_own_runs_under_a_fault_of_ones_own() {
    let folder = Folder::new();
    let leader = "leader = { send = \"role\\n\", expect = \"leader\" }\n";
    let system = folder.system("", "sound", &format!("{leader}{SLOW}aim = \"leader\"\n"));
    let script = "until grep -q verified-healed $HARNESS_FOLDER/faults.jsonl; do sleep 0.05; done";
    let usual = ["wrap", "--system", &system, "--nodes", "3", "--nemesis", "slow", "--interval", "2s"];
    let output = folder.harness(&[&usual[..], &["--", "sh", "-c", script]].concat());
    ended(&output, 0);
    assert!(text(&output.stderr).contains("F1 slow n1 (leader)"), "{}", text(&output.stderr));
}

#[test]
fn what_is_wrong_with_a_fault_of_ones_own_is_said_before_any_member_starts() {
    let folder = Folder::new();
    for (faults, nemesis, advice) in [
        (SLOW.to_owned(), "slo", "did you mean `slow`?"),
        (SLOW.replace("faults.slow", "faults.kill-one"), "kill-one", "there is a nemesis of that name"),
        (SLOW.replace("seen", "see"), "slow", "unknown field `see`"),
        (SLOW.replace("seen =", "#"), "slow", "write seen"),
        (
            SLOW.replace("\"rm\"", "\"no-such-program\""),
            "slow",
            "faults.slow.heal: there is no no-such-program",
        ),
        (format!("{SLOW}aim = \"leader\"\n"), "slow", "nobody tells who that is"),
        (format!("{SLOW}aim = \"followers\"\n"), "slow", "nobody tells who that is"),
    ] {
        let system = folder.system("", "sound", &faults);
        let output = folder.run(&system, &["--nemesis", nemesis]);
        ended(&output, 254);
        assert!(text(&output.stderr).contains(advice), "{advice}: {}", text(&output.stderr));
    }
    assert!(!folder.path().join("runs").exists(), "nothing was begun");
}

/// A slip of one word, or a system that tells others where it listens: the links are cut, and the members
/// talk on. Where no member dials another one at all, nothing shows that the links join them.
#[test]
fn a_cut_of_links_that_members_go_round_or_do_not_use_is_not_verified() {
    for (dialled, words) in [
        ("{others:{listen.0}}", "are connected past the links"),
        ("$(true {others:{dial.0}})''", "nothing was said that way before it either"),
    ] {
        let folder = Folder::new();
        let system = folder.system("", "sound", "");
        let file = folder.path().join(&system);
        let written = std::fs::read_to_string(&file).expect("a file");
        assert!(written.contains("{others:{dial.0}}"), "{written}");
        std::fs::write(&file, written.replace("{others:{dial.0}}", dialled)).expect("written");
        let run =
            folder.run(&system, &["--nemesis", "partition-one", "--interval", "4s", "--time-limit", "6s"]);
        ended(&run, 2);
        let results = read(&folder.latest().join("results.json"));
        assert_eq!(results["faults"]["verified"], 0, "{results}");
        let faults = std::fs::read_to_string(folder.latest().join("faults.jsonl")).expect("a file");
        assert!(faults.contains(words), "{faults}");
    }
}
