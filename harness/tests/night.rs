//! Nights through the binary, in virtual time where nothing else is asked for: what is run, what it is taken
//! for, what is found, and what a night that was killed leaves.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::Digest as _;

/// How long the end of anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nothing but the cases.
const PLAIN: &str = "[night]\nbudget = \"10m\"\nstore = \"nights\"\nmutants = 0\nworlds = false\npairs = 0\n\
                     replays = 0\nshrink = \"0\"\n";
/// A small run in virtual time.
const SMALL: &str = "cluster = \"sim\"\nnodes = 3\nrate = 200\nconcurrency = 8\nkeys = 2\n\
                     time_limit = \"8s\"\nnemesis = \"kill-leader\"\n";

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.arg("night").args(arguments).current_dir(folder);
    command.env_remove("GITHUB_STEP_SUMMARY").env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

fn night(folder: &Path, suite: &str, arguments: &[&str]) -> Output {
    fs::write(folder.join("nightly.toml"), suite).expect("a file");
    command(folder, &[&["nightly.toml"], arguments].concat()).output().expect("starts")
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("nights/nights.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn of_kind(folder: &Path, kind: &str) -> Vec<Value> {
    lines(folder).into_iter().filter(|line| line["line"] == kind).collect()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come about");
        std::thread::yield_now();
    }
}

#[test]
fn a_night_runs_its_cases_and_writes_what_people_and_programs_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let thresholds = "[case.thresholds]\n\"faults.verified\" = \"== 100%\"\n\"outage\" = \"max < 1m\"\n";
    let suite = format!(
        "{PLAIN}[[case]]\nname = \"a\"\nowner = \"@us\"\nmatrix = {{ nodes = [3, 5] }}\n{}{thresholds}",
        SMALL.replace("nodes = 3\n", "")
    );
    let output = night(folder.path(), &suite, &["--seed", "7"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let attempts = of_kind(folder.path(), "attempt");
    let cases: Vec<&str> = attempts.iter().filter_map(|run| run["case"].as_str()).collect();
    assert_eq!(cases, ["a-3", "a-5"]);
    for run in &attempts {
        assert_eq!(run["pile"], "valid");
        let page = folder.path().join("nights").join(run["folder"].as_str().expect("a folder"));
        assert!(page.join("report.html").is_file(), "{}", page.display());
    }
    let judged = &of_kind(folder.path(), "judged")[0];
    assert_eq!(judged["thresholds"]["a-3"][0]["outcome"], "met");
    for (name, words) in [
        ("index.html", "a-3"),
        ("junit.xml", "a-3"),
        ("summary.md", "2 cases valid"),
        ("metrics.txt", "case=\"a-3\""),
    ] {
        let text = fs::read_to_string(folder.path().join("nights").join(name)).expect(name);
        assert!(text.contains(words), "{name}");
    }
    let again = night(folder.path(), &suite, &["--dry-run"]);
    assert!(told(&again).contains("valid within the last hour"), "{}", told(&again));
}

#[test]
fn a_planted_bug_is_a_new_finding_then_an_ongoing_one_and_gone_without_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let looked_at = PLAIN.replace("replays = 0", "replays = 2").replace("shrink = \"0\"", "shrink = \"30s\"");
    let hook = "on_finding = [\"/bin/sh\", \"-c\", \"cat >>findings\"]\n";
    let case = "[[case]]\nname = \"a\"\ncluster = \"sim\"\nnemesis = \"partition-leader\"\n\
                time_limit = \"20s\"\n";
    let broken = format!("{looked_at}{hook}{case}mutant = \"commit-alone\"\n");
    let output = night(folder.path(), &broken, &["--seed", "1", "--night", "one"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let found = of_kind(folder.path(), "finding");
    assert!(!found.is_empty());
    assert_eq!(found[0]["replays"]["shown"], found[0]["replays"]["of"], "virtual time repeats");
    assert_eq!(found[0]["replays"]["of"], 2);
    let shrunk = &found[0]["shrunk"];
    assert!(shrunk["faults"][1].as_u64() < shrunk["faults"][0].as_u64(), "{shrunk}");
    let told_of = fs::read_to_string(folder.path().join("findings")).expect("the hook was started");
    assert!(told_of.contains(found[0]["fingerprint"].as_str().expect("a fingerprint")));
    let state = |output: &Output, state: &str| assert!(told(output).contains(state), "{}", told(output));
    state(&output, "new");
    // The command that the finding names shows it again.
    let command = found[0]["command"].as_str().expect("a command");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let replayed = Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(words)
        .current_dir(folder.path())
        .output()
        .expect("starts");
    assert_eq!(replayed.status.code(), Some(1), "{}", told(&replayed));
    let quick = format!("{PLAIN}{case}mutant = \"commit-alone\"\n");
    state(&night(folder.path(), &quick, &["--seed", "1", "--night", "two"]), "ongoing");
    let healed = night(folder.path(), &format!("{PLAIN}{case}"), &["--seed", "1", "--night", "three"]);
    assert_eq!(healed.status.code(), Some(0), "{}", told(&healed));
    state(&healed, "gone");
}

#[test]
fn a_night_that_was_killed_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = format!("{PLAIN}[[case]]\nname = \"a\"\nrepeat = 4\n{SMALL}");
    fs::write(folder.path().join("nightly.toml"), &suite).expect("a file");
    let mut killed = command(folder.path(), &["nightly.toml", "--seed", "3"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    wait_until("the first run's end", || !of_kind(folder.path(), "attempt").is_empty());
    let pid = i32::try_from(killed.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::KILL).expect("killed");
    killed.wait().expect("gone");
    let before = of_kind(folder.path(), "attempt").len();
    assert!(before < 4, "it was killed in the middle");
    let output = night(folder.path(), &suite, &["--resume"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let mut runs: BTreeMap<u64, usize> = BTreeMap::new();
    for run in of_kind(folder.path(), "attempt") {
        *runs.entry(run["repeat"].as_u64().expect("a number")).or_default() += 1;
    }
    assert_eq!(runs, BTreeMap::from([(1, 1), (2, 1), (3, 1), (4, 1)]), "nothing twice, nothing lost");
    assert_eq!(of_kind(folder.path(), "night").len(), 1);
    let nothing = night(folder.path(), &suite, &["--resume"]);
    assert_eq!(nothing.status.code(), Some(254));
    assert!(told(&nothing).contains("nothing to go on with"), "{}", told(&nothing));
}

#[test]
fn a_missing_engine_is_the_benchs_failure_and_is_tried_once_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = format!("{PLAIN}[[case]]\nname = \"a\"\n{}", SMALL.replace("\"sim\"", "\"docker\""));
    fs::write(folder.path().join("nightly.toml"), &suite).expect("a file");
    let output = command(folder.path(), &["nightly.toml"])
        .env("DOCKER_HOST", "unix:///nowhere/docker.sock")
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(255), "{}", told(&output));
    let attempts = of_kind(folder.path(), "attempt");
    assert_eq!(attempts.len(), 2, "one more try");
    assert!(attempts.iter().all(|run| run["pile"] == "bench-failure"), "{attempts:?}");
    assert!(attempts[0]["why"].as_str().expect("a reason").contains("254"), "{}", attempts[0]["why"]);
}

#[test]
fn a_crossed_threshold_is_a_regression_and_a_percentile_of_too_few_is_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let case = format!("{PLAIN}[[case]]\nname = \"a\"\n{SMALL}[case.thresholds]\n");
    let crossed =
        night(folder.path(), &format!("{case}\"operations\" = \">= 100000/s\"\n"), &["--seed", "7"]);
    assert_eq!(crossed.status.code(), Some(3), "{}", told(&crossed));
    assert!(told(&crossed).contains("operations >= 100000/s: it is"), "{}", told(&crossed));
    let few = night(folder.path(), &format!("{case}\"outage\" = \"p99.9 < 1m\"\n"), &["--seed", "7"]);
    assert_eq!(few.status.code(), Some(2), "{}", told(&few));
    assert!(told(&few).contains("of the 1,000 that it needs"), "{}", told(&few));
}

#[test]
fn a_night_without_enough_load_is_unknown_and_never_green() {
    let folder = tempfile::tempdir().expect("a folder");
    let weak = SMALL.replace("rate = 200", "rate = 200\nmin_rate = 200");
    let output = night(folder.path(), &format!("{PLAIN}[[case]]\nname = \"a\"\n{weak}"), &[]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert_eq!(of_kind(folder.path(), "attempt").len(), 2, "one more try");
}

/// Fourteen nights before one that was run, on the same machine and with the same case, whatever its disk and
/// its other work were like.
fn with_a_past(folder: &Path, build: &str, numbers: &dyn Fn(usize) -> Value) {
    let (begun, run) = (&of_kind(folder, "night")[0], &of_kind(folder, "attempt")[0]);
    let mut index = String::new();
    let moods = [0.0, 1.0].into_iter().flat_map(|load| [0.1, 1.0, 10.0, 100.0].map(|sync| (load, sync)));
    let days = (1..=14).flat_map(|day| moods.clone().map(move |mood| (day, mood)));
    for (nth, (day, (load, sync))) in days.enumerate() {
        let name = format!("past-{nth:03}");
        let (mut begun, mut run) = (begun.clone(), run.clone());
        begun["machine"]["load"] = Value::from(load);
        begun["machine"]["fsync_ms"] = Value::from(sync);
        begun["night"] = Value::from(name.clone());
        begun["started_utc"] = Value::from(format!("2026-01-{day:02}T02:00:00Z"));
        begun["build"] = Value::from(build);
        run["night"] = Value::from(name);
        // As the night that it is of says.
        run["machine"] = Value::from("");
        run["series"] = numbers(day);
        index.push_str(&format!("{begun}\n{run}\n"));
    }
    fs::write(folder.join("nights/nights.jsonl"), index).expect("an index");
}

/// Who kept the build of then.
#[derive(Clone, Copy, PartialEq)]
enum Whose {
    Ours,
    AStrangers,
}

/// A night whose detection took half as long until the night before it, and the build of then.
fn night_with_an_alarm(earlier: &str, whose: Whose) -> (Output, Vec<Value>) {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = PLAIN.replace("pairs = 0", "pairs = 8");
    let case = "[[case]]\nname = \"a\"\ncluster = \"sim\"\nnodes = 3\nrate = 200\nkeys = 2\n\
                nemesis = \"partition-leader\"\ntime_limit = \"20s\"\ninterval = \"2s\"\n";
    let suite = format!("{plain}{case}");
    let first = night(folder.path(), &suite, &["--seed", "1"]);
    assert_eq!(first.status.code(), Some(0), "{}", told(&first));
    let usual = of_kind(folder.path(), "attempt")[0]["series"]["detection{partition-leader} p50"]["value"]
        .as_f64()
        .expect("a median of detections");
    let script = format!("#!/bin/sh\ntouch it-ran\nexec {} {earlier}\n", env!("CARGO_BIN_EXE_harness"));
    let sum: String = sha2::Sha256::digest(&script).iter().map(|byte| format!("{byte:02x}")).collect();
    let builds = folder.path().join("nights/builds").join(&sum[..12]);
    fs::create_dir_all(&builds).expect("a folder");
    fs::write(builds.join("harness"), script).expect("a build");
    fs::set_permissions(builds.join("harness"), fs::Permissions::from_mode(0o755)).expect("it can be run");
    if whose == Whose::Ours {
        fs::write(folder.path().join("cache/harness/builds").join(&sum), "").expect("noted");
    }
    with_a_past(folder.path(), &format!("0.1.0 {}", &sum[..12]), &|day| {
        let level = if day < 14 { usual * 0.5 } else { usual };
        let number =
            |value: f64| serde_json::json!({"value": value + f64::from(u32::from(day % 2 == 0)), "n": 9});
        serde_json::json!({
            "detection{partition-leader} p50": number(level),
            "elections{partition-leader} p50": number(level),
            "commit{calm} p50": number(1e6),
        })
    });
    let output = night(folder.path(), &suite, &["--seed", "2"]);
    let alarms = of_kind(folder.path(), "alarm");
    assert_eq!(folder.path().join("it-ran").exists(), whose == Whose::Ours, "{}", told(&output));
    (output, alarms)
}

#[test]
fn a_number_that_stands_out_is_a_regression_when_pairs_of_runs_confirm_it_and_only_its_phase_is_named() {
    // The build of then gave a member up in half the time.
    let (output, alarms) =
        night_with_an_alarm(r#""$@" $([ "$1" = run ] && echo --peer-timeout 125ms)"#, Whose::Ours);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    let confirmed: Vec<&str> = (alarms.iter())
        .filter(|alarm| alarm["comparison"]["confirmed"] == true)
        .filter_map(|alarm| alarm["series"].as_str())
        .collect();
    assert_eq!(confirmed, ["detection{partition-leader} p50"], "{alarms:?}");
}

#[test]
#[ignore = "long: .ci/nightly runs it, and the gate the comparison that confirms"]
fn a_number_that_stands_out_is_nothing_when_the_build_of_then_has_it_too() {
    let (output, alarms) = night_with_an_alarm(r#""$@""#, Whose::Ours);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(!alarms.is_empty(), "it was looked into");
    assert!(alarms.iter().all(|alarm| alarm["comparison"]["confirmed"] == false), "{alarms:?}");
}

#[test]
fn a_build_that_a_store_brings_along_is_not_run() {
    let (output, alarms) = night_with_an_alarm(r#""$@""#, Whose::AStrangers);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let sentences: Vec<&str> = alarms.iter().filter_map(|alarm| alarm["sentence"].as_str()).collect();
    let is_told = |sentence: &&str| sentence.contains("made no night of yours on this machine");
    assert!(!sentences.is_empty() && sentences.iter().all(is_told), "{sentences:?}");
}

#[test]
fn a_setting_that_slows_detection_is_told_by_pairs_and_no_setting_is_told_for_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let compare = |b: &str, store: &str| {
        let flags = "--cluster sim --nodes 3 --rate 200 --keys 2 --nemesis partition-leader --interval 2s \
                     --time-limit 20s";
        Command::new(env!("CARGO_BIN_EXE_harness"))
            .args(["compare", "", b, "--seed", "3", "--store", store, "--"])
            .args(flags.split_ascii_whitespace())
            .current_dir(folder.path())
            .output()
            .expect("starts")
    };
    let slower = compare("--peer-timeout 500ms", "slower");
    assert_eq!(slower.status.code(), Some(3), "{}", told(&slower));
    let text = told(&slower);
    let first = text.lines().find(|line| line.starts_with("b is worse in")).expect("the finding");
    assert!(first.contains("detection{partition-leader} p50"), "{first}");
    assert!(!first.contains("start") && !first.contains("synchronization"), "{first}");
    let same = compare("", "same");
    assert_eq!(same.status.code(), Some(0), "{}", told(&same));
    let nonsense = compare("--no-such-flag", "nonsense");
    assert_eq!(nonsense.status.code(), Some(254), "{}", told(&nonsense));
}

#[test]
fn shards_of_one_night_merge_into_one_and_merging_again_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = format!(
        "{PLAIN}[[case]]\nname = \"a\"\nmatrix = {{ keys = [1, 2, 3, 4] }}\n{}",
        SMALL.replace("keys = 2\n", "")
    );
    for shard in ["1/2", "2/2"] {
        let store = format!("shard-{}", &shard[..1]);
        let output = night(
            folder.path(),
            &suite,
            &["--shard", shard, "--night", "n", "--store", &store, "--seed", "5"],
        );
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    }
    let merge = || {
        Command::new(env!("CARGO_BIN_EXE_harness"))
            .args(["merge", "nights", "shard-1", "shard-2"])
            .current_dir(folder.path())
            .output()
            .expect("starts")
    };
    let merged = merge();
    assert_eq!(merged.status.code(), Some(0), "{}", told(&merged));
    let cases: Vec<Value> = of_kind(folder.path(), "attempt").iter().map(|run| run["case"].clone()).collect();
    assert_eq!(cases.len(), 4, "{cases:?}");
    let before = lines(folder.path()).len();
    assert!(told(&merge()).contains("0 lines"));
    assert_eq!(lines(folder.path()).len(), before);
}

#[test]
fn a_night_of_which_one_shard_arrived_is_unknown_and_says_which_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = format!("{PLAIN}[[case]]\nname = \"a\"\n{SMALL}");
    let shard = ["1/2", "2/2"].into_iter().find(|shard| {
        let made = night(folder.path(), &suite, &["--shard", shard, "--night", "n", "--store", shard]);
        assert_eq!(made.status.code(), Some(0), "{}", told(&made));
        let alone = format!("This is shard {} of 2 alone.", &shard[..1]);
        let page = fs::read_to_string(folder.path().join(shard).join("index.html")).expect("a page");
        assert!(told(&made).contains(&alone) && page.contains(&alone), "{}", told(&made));
        told(&made).contains("1 case valid")
    });
    let shard = shard.expect("one of them has the case");
    let harness = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(folder.path()).output().expect("starts")
    };
    for _ in 0..2 {
        let merged = harness(&["merge", "all", shard]);
        assert_eq!(merged.status.code(), Some(2), "{}", told(&merged));
    }
    let page = harness(&["report", "all"]);
    let (here, other) = (&shard[..1], if shard == "1/2" { 2 } else { 1 });
    let said = format!("Here is shard {here} of 2; of shard {other} no end is on record.");
    assert!(told(&page).contains(&said) && told(&page).contains("UNKNOWN"), "{}", told(&page));
}

#[test]
fn one_damaged_line_of_an_index_is_told_and_takes_no_night() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = format!("{PLAIN}[[case]]\nname = \"a\"\n{SMALL}");
    let first = night(folder.path(), &suite, &["--night", "one"]);
    assert_eq!(first.status.code(), Some(0), "{}", told(&first));
    let index = folder.path().join("nights/nights.jsonl");
    let whole = fs::read_to_string(&index).expect("an index");
    let damaged = whole.replacen('\n', "\n\u{0}half a li\n", 1);
    fs::write(&index, damaged).expect("written");
    let second = night(folder.path(), &suite, &["--night", "two"]);
    assert_eq!(second.status.code(), Some(0), "{}", told(&second));
    assert!(told(&second).contains("line 2 is none of an index"), "{}", told(&second));
    assert_eq!(of_kind(folder.path(), "judged").len(), 2);
}

#[test]
fn a_broken_world_is_lived_through_again_the_next_night_and_is_gone_when_it_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = PLAIN.replace("worlds = false", "worlds = true").replace("10m", "1s");
    let suite = format!("{plain}[[case]]\nname = \"a\"\n{SMALL}");
    let first = night(folder.path(), &suite, &["--night", "one"]);
    assert_eq!(first.status.code(), Some(0), "{}", told(&first));
    let found = serde_json::json!({
        "line": "finding", "night": "one", "fingerprint": "0123456789", "sentence": "Two led.",
        "shape": {"check": "one-leader", "case": "worlds", "kinds": [], "operations": []},
        "folder": "one/sim", "replays": {"shown": 0, "of": 0}, "command": "harness sim --seed 7",
    });
    let worlds = serde_json::json!({
        "line": "worlds", "night": "one", "seeds": [0, 20], "worlds": 20, "broken": [[7, "one-leader"]],
        "took_ms": 1, "spent_ms": 1,
    });
    let index = folder.path().join("nights/nights.jsonl");
    let before = fs::read_to_string(&index).expect("an index");
    fs::write(&index, format!("{before}{worlds}\n{found}\n")).expect("an index");
    let second = night(folder.path(), &suite, &["--night", "two"]);
    assert_eq!(second.status.code(), Some(0), "{}", told(&second));
    assert!(told(&second).contains("gone"), "{}", told(&second));
    let again: Vec<Value> =
        of_kind(folder.path(), "worlds").iter().map(|line| line["seeds"].clone()).collect();
    assert_eq!(again, [serde_json::json!([0, 20]), serde_json::json!([7, 8])]);
    night(folder.path(), &suite, &["--night", "three"]);
    assert_eq!(of_kind(folder.path(), "worlds").len(), 2, "it held, and is not lived through once more");
}

#[test]
fn what_can_not_be_run_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    for (suite, arguments, advice) in [
        ("[[case]]\nname = \"a\"\n", &[][..], "there is no budget"),
        ("[[case]]\nname = \"a\"\nnemesis = \"kill-leadre\"\n", &[], "did you mean `kill-leader`"),
        ("[[case]]\nname = \"a\"\nnodse = 3\n", &[], "--nodes"),
        (
            "[[case]]\nname = \"a\"\nnemesis = \"kill-leader\"\n\
             thresholds = { \"elections{kill-leader}\" = \"p99 < 1s\" }\n",
            &["--budget", "1m"],
            "it needs 100 elections",
        ),
        (
            "[[case]]\nname = \"a\"\nthresholds = { \"elections{kill-one}\" = \"max < 1s\" }\n",
            &["--budget", "1m"],
            "have no kill-one",
        ),
        ("[[case]]\nname = \"a\"\n", &["--budget", "1m", "--shard", "3/2"], "write which of how many"),
        ("[[case]]\nname = \"a\"\n", &["--budget", "1m", "--night", "../x"], "it becomes a folder"),
    ] {
        let output = night(folder.path(), suite, arguments);
        assert_eq!(output.status.code(), Some(254), "{suite}: {}", told(&output));
        assert!(told(&output).contains(advice), "{suite}: {}", told(&output));
        assert!(!folder.path().join("runs").exists() && !folder.path().join("nights").exists());
    }
}

#[test]
fn the_file_to_begin_from_is_one_that_is_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let init = || {
        Command::new(env!("CARGO_BIN_EXE_harness"))
            .args(["init", "night"])
            .current_dir(folder.path())
            .output()
            .expect("starts")
    };
    assert_eq!(init().status.code(), Some(0));
    let twice = init();
    assert_eq!(twice.status.code(), Some(254));
    assert!(told(&twice).contains("stays as it is"), "{}", told(&twice));
    for profile in [&[][..], &["--profile", "pull-request"]] {
        let arguments = [&["nightly.toml", "--dry-run"], profile].concat();
        let plan = command(folder.path(), &arguments).output().expect("starts");
        assert_eq!(plan.status.code(), Some(0), "{}", told(&plan));
        assert!(told(&plan).contains("leader-3-1 (never run"), "{}", told(&plan));
    }
}
