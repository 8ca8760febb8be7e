//! Worlds from the command line: told in full, swept, and repeated by the command that is printed.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn harness(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.args(arguments).current_dir(folder).output().expect("the harness starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_seed_is_told_in_full_and_the_same_way_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let once = || harness(folder.path(), &["sim", "--seed", "3", "--trace"]);
    let output = once();
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert!(text.starts_with("seed 3: "), "what was drawn comes first: {text}");
    assert!(text.lines().count() > 500, "the trace is there");
    assert!(text.trim_end().ends_with("no promise was broken"), "{text}");
    assert_eq!(text, stdout(&once()));
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing is left behind");
}

#[test]
fn a_sweep_counts_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let sweep = |jobs| {
        let output = harness(folder.path(), &["sim", "--seeds", "0..40", "--jobs", jobs, "--format", "json"]);
        assert_eq!(output.status.code(), Some(0));
        serde_json::from_str::<Value>(&stdout(&output)).expect("JSON")
    };
    let (one, three) = (sweep("1"), sweep("3"));
    assert_eq!(one["worlds"], 40);
    for part in ["drawn", "counters", "in_worlds", "slowest_election", "trace_hash", "violations"] {
        assert_eq!(one[part], three[part], "{part}");
    }
    assert!(one["in_worlds"]["elections"].as_u64().expect("a count") > 30);
}

#[test]
fn a_planted_bug_ends_with_1_and_the_printed_command_repeats_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = harness(folder.path(), &["sim", "--seeds", "0..40", "--mutant", "ack-before-fsync"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let again = text.lines().find_map(|line| line.trim().strip_prefix("again: ")).expect("a command");
    // Tests are started by cargo, so the command is one that cargo's alias does.
    let again = again.strip_prefix("cargo ").unwrap_or(again).strip_prefix("harness ").expect("ours");
    let words: Vec<&str> = again.split_ascii_whitespace().collect();
    let output = harness(folder.path(), &words);
    assert_eq!(output.status.code(), Some(1), "{again}");
    assert!(stdout(&output).contains("✗ VIOLATION"));
}

#[test]
fn a_script_is_lived_through_with_the_members_that_it_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../node/lab/sim/tests/scripts/commit-alone.script");
    let as_it_says = harness(folder.path(), &["sim", "--script", script]);
    assert_eq!(as_it_says.status.code(), Some(1), "{}", stdout(&as_it_says));
    assert!(stdout(&as_it_says).starts_with("every member is the mutant commit-alone, as the script says"));
    for (members, first) in [
        ("none", "the members are sound; the script names the mutant commit-alone"),
        ("ack-before-fsync", "every member is the mutant ack-before-fsync; the script names commit-alone"),
    ] {
        let otherwise = harness(folder.path(), &["sim", "--script", script, "--mutant", members]);
        assert_eq!(otherwise.status.code(), Some(0), "{}", stdout(&otherwise));
        assert!(stdout(&otherwise).starts_with(first), "{}", stdout(&otherwise));
    }
}

#[test]
fn sessions_are_opened_left_and_judged_in_virtual_runs_as_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = "run --cluster sim --workload ephemeral --nodes 3 --nemesis kill-one,partition-one --seed 1 \
        --time-limit 12s";
    let words: Vec<&str> = run.split_ascii_whitespace().collect();
    let clean = harness(folder.path(), &words);
    assert_eq!(clean.status.code(), Some(0), "{}", stdout(&clean));
    let planted = harness(folder.path(), &[words.as_slice(), &["--mutant", "ephemeral-dies-early"]].concat());
    assert_eq!(planted.status.code(), Some(1), "{}", stdout(&planted));
    assert!(stdout(&planted).contains("a node died before its session"), "{}", stdout(&planted));
}

#[test]
fn a_mutant_that_was_there_and_was_not_found_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = "run --cluster sim --nodes 3 --nemesis kill-leader --seed 1 --time-limit 6s \
               --mutant watch-not-spent";
    let words: Vec<&str> = run.split_ascii_whitespace().collect();
    let valid = harness(folder.path(), &words);
    assert_eq!(valid.status.code(), Some(0), "{}", stdout(&valid));
    assert!(stdout(&valid).contains("watch-not-spent was there and was not found"), "{}", stdout(&valid));
}

#[test]
fn a_run_that_lost_lines_of_its_faults_is_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = "run --cluster sim --nodes 3 --nemesis kill-leader --seed 1 --time-limit 12s --store runs";
    let words: Vec<&str> = run.split_ascii_whitespace().collect();
    let whole = harness(folder.path(), &words);
    assert_eq!(whole.status.code(), Some(0), "{}", stdout(&whole));
    let of_the_run = folder.path().join("runs/latest");
    let faults = of_the_run.join("faults.jsonl");
    let text = std::fs::read_to_string(&faults).expect("a record of faults");
    let first: String =
        text.lines().filter(|line| line.contains("\"F1\"")).map(|line| format!("{line}\n")).collect();
    assert!(first.len() < text.len(), "there is a second fault");
    let observed = of_the_run.join("observed.json");
    for left in [Some(first.as_str()), Some(""), None, None] {
        if !faults.exists() {
            // Without the number of its lines nobody knows how many there were.
            let text = std::fs::read_to_string(&observed).expect("what was observed");
            let mut told: Value = serde_json::from_str(&text).expect("JSON");
            told.as_object_mut().expect("an object").remove("fault_lines").expect("it was there");
            std::fs::write(&observed, told.to_string()).expect("written");
        }
        std::fs::remove_file(&faults).ok();
        if let Some(left) = left {
            std::fs::write(&faults, left).expect("written");
        }
        let judged = harness(folder.path(), &["check", "runs/latest"]);
        assert_eq!(judged.status.code(), Some(2), "{}", stdout(&judged));
        assert!(stdout(&judged).contains("the record of faults is not whole"), "{}", stdout(&judged));
    }
}

#[test]
fn a_virtual_run_ends_at_its_first_violation_where_that_was_asked_for_and_at_the_same_moment_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = "run --cluster sim --nodes 3 --nemesis kill-all --mutant ack-before-fsync --seed 1 \
        --time-limit 60s --fail-fast";
    let words: Vec<&str> = run.split_ascii_whitespace().collect();
    let once = |store: &str, more: &[&str]| {
        let output = harness(folder.path(), &[words.as_slice(), &["--store", store], more].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
        let run = folder.path().join(store).join("latest");
        let read = |file: &str| std::fs::read(run.join(file)).expect(file);
        let results: Value = serde_json::from_slice(&read("results.json")).expect("JSON");
        let violation = results["live"]["violation"].clone();
        assert_eq!(violation["ended_the_run"], true, "{violation}");
        let observed: Value = serde_json::from_slice(&read("observed.json")).expect("JSON");
        let end_ns = observed["workload_to_ns"].as_u64().expect("an end");
        assert!(end_ns < 55_000_000_000, "it was not ended early: {end_ns} ns");
        assert!(results["live"]["violation"]["sentence"].as_str().is_some_and(|told| told.len() > 40));
        lines_of(&run)
    };
    let one = once("one", &[]);
    assert!(one == once("two", &[]), "two histories of one seed");
    assert!(one == once("three", &["--compress"]), "the live check reads what is compressed as well");
}

/// What is in a run's history, compressed or not.
fn lines_of(run: &Path) -> String {
    let plain = run.join("history.jsonl");
    let path = if plain.exists() { plain } else { run.join("history.jsonl.zst") };
    let file = BufReader::new(File::open(path).expect("a history"));
    let mut lines = String::new();
    checker::history::content(file).and_then(|mut file| file.read_to_string(&mut lines)).expect("readable");
    lines
}

#[test]
fn a_compressed_history_is_small_and_judged_drawn_and_replayed_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = "run --cluster sim --nodes 3 --nemesis kill-leader --seed 4 --time-limit 20s";
    let words: Vec<&str> = run.split_ascii_whitespace().collect();
    let judged = |words: &[&str]| {
        let output = harness(folder.path(), words);
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    };
    judged(&[words.as_slice(), &["--store", "plain"]].concat());
    judged(&[words.as_slice(), &["--store", "small", "--compress"]].concat());
    let bytes = |path: &str| std::fs::metadata(folder.path().join(path)).expect("a history").len();
    let (plain, small) = (bytes("plain/latest/history.jsonl"), bytes("small/latest/history.jsonl.zst"));
    assert!(small * 4 < plain, "{small} of {plain} bytes");
    assert!(!folder.path().join("small/latest/history.jsonl").exists());
    assert!(lines_of(&folder.path().join("plain/latest")) == lines_of(&folder.path().join("small/latest")));
    judged(&["check", "small/latest"]);
    judged(&["check", "small/latest/history.jsonl.zst"]);
    judged(&["report", "small/latest"]);
    let page = std::fs::read_to_string(folder.path().join("small/latest/report.html")).expect("a page");
    assert!(page.contains("href=\"history.jsonl.zst\""), "the page leads to it");
    judged(&["replay", "small/latest"]);
}

#[test]
fn observers_are_broken_like_everybody_and_counted_for_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = "run --cluster sim --nodes 3 --observers 2 --nemesis partition-halves,kill-one --seed 3 \
        --time-limit 30s";
    let output = harness(folder.path(), &run.split_ascii_whitespace().collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains("Three bundled members and two observers"), "{}", stdout(&output));
    let lines = std::fs::read_to_string(folder.path().join("runs/latest/faults.jsonl")).expect("faults");
    let injected = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let injected: Vec<Value> = injected.filter(|line| line["phase"] == "injected").collect();
    assert!(injected.iter().any(|line| line.to_string().contains("(observer)")), "{lines}");
    // Of three voters two are a quorum, whatever observers are cut off or down.
    assert!(injected.iter().all(|line| line["detail"]["quorum_remained"] == true), "{lines}");
}

#[test]
fn a_sweep_without_end_ends_at_its_time_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = harness(folder.path(), &["sim", "--seeds", "5..", "--time-limit", "300ms", "--jobs", "1"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("worlds of seeds 5.. in"), "{}", stdout(&output));
}

#[test]
fn all_keys_are_made_and_read_at_the_end_however_many_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = ["run", "--cluster", "sim", "--nodes", "3", "--seed", "1", "--time-limit", "2s"];
    let many = ["--keys", "9000", "--nemesis", "none", "--format", "json"];
    let output = harness(folder.path(), &[&run[..], &many].concat());
    let results: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(results["operations"]["total"]["fail"], 0, "a key that was not made is missing");
    for check in results["checks"].as_array().expect("checks") {
        assert_eq!(check["verdict"], "valid", "{check}");
    }
}

#[test]
fn a_bug_of_a_recipe_is_hunted_in_worlds_of_applications_and_nowhere_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let hunt = ["sim", "--seeds", "0..10", "--only", "applications", "--mutant-recipe", "herd"];
    let output = harness(folder.path(), &hunt);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains("no herd"), "{text}");
    assert!(text.contains("--only applications --mutant-recipe herd --trace"), "{text}");
    for (words, reason) in [
        (&["--mutant-recipe", "herd"][..], "add --only applications"),
        (&["--only", "applications", "--mutant-recipe", "hurd"], "there are: herd"),
        (&["--only", "applications", "--shrink"], "a script says nothing of applications"),
    ] {
        let output = harness(folder.path(), &[&["sim", "--seed", "0"], words].concat());
        assert_eq!(output.status.code(), Some(254), "{words:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn another_protocol_is_played_drawn_swept_and_made_small() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &str| {
        let output = harness(folder.path(), &words.split_ascii_whitespace().collect::<Vec<_>>());
        (output.status.code(), stdout(&output))
    };
    let (status, text) = run("sim --protocol paxos --scenario chosen");
    assert!(status == Some(0) && text.ends_with("it came out as the script says\n"), "{text}");
    let (status, drawn) = run("sim --protocol paxos --scenario chosen --format svg");
    assert!(
        status == Some(0) && drawn.starts_with("<svg") && drawn.contains("promise 1.5 (1.1 1)"),
        "{drawn}"
    );
    let (status, text) = run("sim --protocol multi-paxos --seeds 0..5");
    assert!(status == Some(0) && text.ends_with("0 broken\n"), "{text}");
    // What is broken is made small, and the script that is printed breaks the same: inside, and for clients.
    for (bug, rule) in [
        ("--protocol paxos --mutant no-adoption", "agreement"),
        ("--protocol multi-paxos --mutant reads-locally", "linearizable"),
    ] {
        let (status, text) = run(&format!("sim {bug} --seed 0 --shrink"));
        let script = text.find("\nprotocol").map(|at| &text[at..]).expect("a script");
        assert!(status == Some(1) && script.contains(&format!("\nbreaks {rule} ")), "{text}");
        std::fs::write(folder.path().join("small.script"), script).expect("written");
        let (protocol, _) = bug.split_once(" --mutant").expect("a bug");
        let (status, text) = run(&format!("sim {protocol} --script small.script"));
        assert!(status == Some(0) && text.contains(&format!("broken: {rule}")), "{text}");
    }
    let (status, text) = run("sim --protocol paxos --mutant first-only --seed 10 --shrink");
    assert!(status == Some(1) && text.contains("what never happens is not made small"), "{text}");
}

#[test]
fn what_worlds_of_a_protocol_do_not_heed_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text| std::fs::write(folder.path().join(name), text).expect("written");
    write("odd.script", "protocol paxos\ns1 asked x: write 0 1\n");
    write("plain.script", "protocol paxos\n");
    for (flags, words) in [
        ("--protocol raft --seed 1", "there is no protocol `raft`"),
        ("--protocol paxos --seed 1 --mutant x", "there is no mutant `x`"),
        ("--protocol paxos --seed 1 --format json", "--format json"),
        ("--protocol paxos --seeds 0..9 --time-limit 9s", "--time-limit"),
        ("--protocol paxos --seeds 0..9 --trace", "--trace"),
        ("--protocol paxos --seeds 0..9 --shrink", "--shrink"),
        ("--protocol paxos --seed 1 --format svg", "--format svg"),
        ("--protocol paxos --explore 0", "1 to 7"),
        ("--protocol paxos --script odd.script", "line 2: x: a request is a number"),
        ("--protocol multi-paxos --script plain.script", "--protocol paxos"),
        ("--protocol zab --scenario chosen", "there is no scenario `chosen`"),
        ("--protocol zab --scenario late-starter --mutant half", "there is no mutant `half`"),
        ("--protocol zab --seed 1 --format svg", "--format svg"),
    ] {
        let arguments: Vec<&str> = ["sim"].into_iter().chain(flags.split_ascii_whitespace()).collect();
        let output = harness(folder.path(), &arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(254) && told.contains(words), "{flags}: {told}");
    }
}

#[test]
fn a_protocol_is_a_system_of_runs_with_elections_and_faults_that_are_proven() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, more: &[&str]| {
        let usual = "run --system multi-paxos --time-limit 16s --rate 200 --seed 3 --store . --name";
        let usual: Vec<&str> = usual.split(' ').collect();
        let words = [&usual[..], &[name], more].concat();
        let output = harness(folder.path(), &words);
        (output.status.code(), stdout(&output) + &String::from_utf8_lossy(&output.stderr))
    };
    let (code, text) =
        run("all", &["--cluster", "sim", "--nemesis", "partition-leader,kill-leader,slow-leader"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("changes of leader") && text.contains("multi-paxos members"), "{text}");
    let verified = text.lines().find(|line| line.starts_with("faults")).expect("faults are counted");
    assert!(verified.contains(" of ") && verified.ends_with("verified"), "{verified}");
    let counts: Vec<&str> = verified.split_whitespace().filter(|word| word.parse::<u32>().is_ok()).collect();
    assert_eq!(counts[0], counts[1], "{verified}");
    let (code, text) =
        run("bug", &["--cluster", "sim", "--nemesis", "pause-leader", "--mutant", "reads-locally"]);
    assert_eq!(code, Some(1), "whoever is asked answers by what it knows: {text}");
    for (words, why) in [
        (&["--nemesis", "clock-bump"][..], "no wall clock"),
        (&["--workload", "append"], "answer read, write, cas and nothing else"),
        (&["--mutant", "counts-twice"], "it is a bug of paxos"),
        (&["--mutant", "ack-before-fsync"], "it is a bug of the bundled node"),
        (&["--observers", "1"], "voting members only"),
        (&["--cluster", "process"], "write --cluster sim"),
    ] {
        let sim: &[&str] = if words.contains(&"--cluster") { &[] } else { &["--cluster", "sim"] };
        let (code, text) = run("refused", &[words, sim].concat());
        assert_eq!(code, Some(254), "{words:?}: {text}");
        assert!(text.contains(why), "{words:?}: {text}");
    }
}
