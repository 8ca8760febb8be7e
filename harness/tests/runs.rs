//! Whole runs through the binary: small ones, which leave most of the machine to one another.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use harness::host::procfs;
use harness::store::lock::{TOKEN_VARIABLE, owner_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Shared by runs that mind no others. Where a harness is killed, or `clean` is asked what it finds, another
/// run would see what is left, or remove it.
static MACHINE: RwLock<()> = RwLock::new(());
/// How long the end of anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// A small ensemble under a light load.
const SMALL: [&str; 8] = ["--nodes", "3", "--rate", "300", "--concurrency", "12", "--keys", "2"];

fn machine() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

fn machine_alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = command(folder, &["run"]);
    // Whatever engine may answer here: these are about local processes.
    command.args(["--cluster", "process"]).args(SMALL).args(arguments);
    command
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

fn results(run: &Path) -> Value {
    let text = std::fs::read(run.join("results.json")).expect("results");
    serde_json::from_slice(&text).expect("JSON")
}

/// Starts a run and waits for a line of its progress.
fn start_until(folder: &Path, arguments: &[&str], words: &str) -> Child {
    let mut child = run_command(folder, arguments).spawn().expect("starts");
    let stderr = child.stderr.take().expect("piped");
    let mut lines = BufReader::new(stderr).lines();
    let seen = lines.by_ref().map_while(Result::ok).any(|line| line.contains(words));
    assert!(seen, "the run ended without saying `{words}`");
    // What it says later must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, signal).expect("signalled");
}

/// The processes of a harness, by the token in their environment.
fn processes_of(harness: u32) -> Vec<u32> {
    let is_ours = |pid: &u32| {
        procfs::environment(*pid, TOKEN_VARIABLE)
            .and_then(|token| owner_of(&token))
            .is_some_and(|owner| owner.pid == harness)
    };
    procfs::pids().into_iter().filter(is_ours).collect()
}

fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid} {:?} {}", procfs::stat(pid), String::from_utf8_lossy(&line).replace('\0', " "))
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn only_run(store: &Path) -> PathBuf {
    let mut names = std::fs::read_dir(store).expect("a store").flatten().map(|entry| entry.path());
    let name = names.find(|path| !path.is_symlink()).expect("a name");
    std::fs::read_dir(name).expect("runs").flatten().next().expect("a run").path()
}

#[test]
fn a_cut_off_leader_is_proven_and_replaced_and_the_run_is_valid() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let faults = ["--nemesis", "partition-leader,kill-leader", "--interval", "3s", "--time-limit", "8s"];
    let output = run_command(folder.path(), &faults).output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let run = folder.path().join("runs/latest");
    let results = results(&run);
    assert_eq!(results["verdict"], "valid");
    assert_eq!(results["faults"]["planned"], 2);
    assert_eq!(results["faults"]["verified"], 2);
    let elections = results["elections"].as_array().expect("elections");
    for fault in ["F1", "F2"] {
        assert!(elections.iter().any(|election| election["fault"] == fault), "{fault}: {elections:?}");
    }
    for file in ["run.json", "schedule.json", "history.jsonl", "faults.jsonl", "report.html", "junit.xml"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    assert!(run.join("nodes/1/log").is_file());
    assert!(!run.join("nodes/1/data").exists(), "a valid run keeps no data");
    assert!(!run.join("run.lock").exists());
    for again in [["check", "runs/latest"], ["report", "runs/latest"]] {
        let output = command(folder.path(), &again).output().expect("runs");
        assert_eq!(output.status.code(), Some(0), "{again:?}: {}", text(&output));
    }
}

/// The faults of a run by name: kind, sentence and evidence.
fn transitions(run: &Path, phase: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("faults.jsonl")).expect("faults");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line["phase"] == phase).collect()
}

#[test]
fn one_way_cuts_bridges_and_resets_are_proven_and_survived() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let nemeses = "partition-oneway,partition-bridge,reject-leader";
    let arguments = ["--nemesis", nemeses, "--interval", "2500ms", "--time-limit", "14s", "--seed", "4"];
    let output = run_command(folder.path(), &arguments).output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let run = folder.path().join("runs/latest");
    let injected = transitions(&run, "injected");
    assert_eq!((injected.len(), transitions(&run, "verified-healed").len()), (5, 5));
    let sentences: Vec<&str> =
        injected.iter().map(|line| line["detail"]["sentence"].as_str().expect("words")).collect();
    for words in [" deaf: ", " mute: ", "bridge ", "reject "] {
        assert!(sentences.iter().any(|sentence| sentence.contains(words)), "{words}: {sentences:?}");
    }
    for line in transitions(&run, "healed").iter().filter(|line| line["kind"] == "reject-leader") {
        let words = line["detail"]["evidence"].as_str().expect("words");
        assert!(words.ends_with("were refused") && !words.contains(" 0 were refused"), "{words}");
    }
}

/// Whether clocks can be shifted where the tests run. Where they can't, a run is refused, which is tried
/// instead.
fn clocks_can_be_shifted() -> bool {
    harness_clock::available_with({
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.arg("clock-target");
        command
    })
    .is_ok()
}

#[test]
fn a_shifted_clock_survives_the_restart_of_its_member_and_the_gap_is_recorded() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    // Of the seed's faults the clock of the only other member is shifted first and restored last.
    let arguments =
        ["--nemesis", "clock-bump,kill-all", "--overlap", "--interval", "2s", "--time-limit", "8s"];
    let output = run_command(folder.path(), &[&arguments[..], &["--seed", "4"]].concat()).output();
    let output = output.expect("runs");
    if !clocks_can_be_shifted() {
        assert_eq!(output.status.code(), Some(254), "{}", text(&output));
        assert!(text(&output).contains("can't do clock-bump"), "{}", text(&output));
        assert_eq!(std::fs::read_dir(folder.path().join("runs")).expect("a store").count(), 0);
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let run = folder.path().join("runs/latest");
    assert_eq!(results(&run)["faults"]["verified"], results(&run)["faults"]["planned"]);
    let gaps: Vec<Value> = transitions(&run, "healed")
        .into_iter()
        .filter(|line| line["kind"] == "clock-bump" && line["detail"]["evidence"].is_string())
        .collect();
    assert!(!gaps.is_empty(), "no clock was shifted while its member was killed: {}", text(&output));
    for line in gaps {
        let words = line["detail"]["evidence"].as_str().expect("words");
        assert!(words.contains("started again while it was shifted"), "{words}");
    }
}

#[test]
fn an_interrupt_heals_writes_and_ends_with_130() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--nemesis", "partition-leader", "--interval", "2s", "--time-limit", "60s"];
    let child = start_until(folder.path(), &arguments, "F1 partition n");
    let harness = child.id();
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    let left: Vec<String> = processes_of(harness).into_iter().map(command_line).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    assert!(text(&output).contains("INTERRUPTED") && !text(&output).contains("VALID"), "{}", text(&output));
    let run = folder.path().join("runs/latest");
    assert_eq!(results(&run)["interrupted"], true);
    assert_eq!(results(&run)["verdict"], "unknown");
    let faults = std::fs::read_to_string(run.join("faults.jsonl")).expect("faults");
    assert!(faults.contains("verified-healed"), "{faults}");
}

#[test]
fn an_interrupt_while_the_run_is_judged_ends_with_130_as_well() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let run = ["run", "--cluster", "sim", "--name", "judged", "--seed", "1"];
    let long = ["--nemesis", "partition-leader", "--time-limit", "6m"];
    let mut child = command(folder.path(), &[&run[..], &long].concat()).spawn().expect("starts");
    let stderr = child.stderr.take().expect("piped");
    std::thread::spawn(move || BufReader::new(stderr).lines().for_each(drop));
    let observed = || {
        let runs = std::fs::read_dir(folder.path().join("runs/judged")).into_iter().flatten().flatten();
        runs.map(|run| run.path().join("observed.json")).any(|file| file.is_file())
    };
    wait_until("the run is over and is judged", observed);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(text(&output).contains("INTERRUPTED"), "{}", text(&output));
}

#[test]
fn whoever_interrupts_twice_ends_at_once_and_what_stays_is_removed_behind() {
    let _machine = machine_alone();
    let folder = tempfile::tempdir().expect("a folder");
    let child = start_until(folder.path(), &["--time-limit", "60s"], "all members serve");
    signal(&child, Signal::INT);
    signal(&child, Signal::TERM);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    let run = only_run(&folder.path().join("runs"));
    wait_until("the lock goes", || !run.join("run.lock").exists());
}

#[test]
fn an_interrupt_while_members_start_ends_them_again() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let child = start_until(folder.path(), &["--time-limit", "60s"], "seed");
    let harness = child.id();
    signal(&child, Signal::TERM);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    let left: Vec<String> = processes_of(harness).into_iter().map(command_line).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    let store = std::fs::read_dir(folder.path().join("runs")).expect("a store");
    assert_eq!(store.count(), 0, "a run that had not begun leaves no folder");
}

#[test]
fn a_killed_harness_leaves_nothing_that_clean_does_not_remove() {
    let _machine = machine_alone();
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = start_until(folder.path(), &["--time-limit", "60s"], "all members serve");
    // A run without a history has not begun, and its folder would go altogether.
    wait_until("the history begins", || {
        only_run(&folder.path().join("runs")).join("history.jsonl").is_file()
    });
    let harness = child.id();
    assert!(!processes_of(harness).is_empty());
    signal(&child, Signal::KILL);
    child.wait().expect("reaped");
    wait_until("the members die with their harness", || processes_of(harness).is_empty());
    let output = command(folder.path(), &["clean"]).output().expect("runs");
    assert!(text(&output).contains("closed 1 unfinished run"), "{}", text(&output));
    let run = only_run(&folder.path().join("runs"));
    assert!(!run.join("run.lock").exists());
    assert!(run.join("INTERRUPTED").is_file());
    assert!(!run.join("nodes/1/data").exists());
    let output = command(folder.path(), &["check", &run.display().to_string()]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "what was never finished is not valid: {}", text(&output));
}

/// Whether processes can be given a namespace of ids of their own here.
fn namespaces_can_be_made() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "true"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn a_run_in_another_namespace_of_process_ids_is_left_alone_by_clean_and_by_other_runs() {
    let _machine = machine_alone();
    if !namespaces_can_be_made() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut inside = Command::new("unshare");
    inside.args(["--pid", "--fork", "--mount-proc", env!("CARGO_BIN_EXE_harness"), "run"]);
    inside.args(["--cluster", "process", "--store", "inside", "--time-limit", "6s"]).args(SMALL);
    inside.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut inside = inside.spawn().expect("starts");
    let mut lines = BufReader::new(inside.stderr.take().expect("piped")).lines();
    let serves = lines.by_ref().map_while(Result::ok).any(|line| line.contains("all members serve"));
    assert!(serves, "the run in its namespace does not begin");
    std::thread::spawn(move || lines.for_each(drop));
    let clean = command(folder.path(), &["clean", "--store", "outside"]).output().expect("runs");
    assert!(!text(&clean).contains("ended"), "{}", text(&clean));
    // Of its own store a sweep from outside must not close the run either.
    let clean = command(folder.path(), &["clean", "--store", "inside"]).output().expect("runs");
    assert!(text(&clean).contains("1 living run left alone"), "{}", text(&clean));
    let beside = run_command(folder.path(), &["--time-limit", "1s"]).output().expect("runs");
    assert!(!text(&beside).contains("left by a killed harness"), "{}", text(&beside));
    let output = inside.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

/// The check of that name in a run's results.
fn check_named(run: &Path, name: &str) -> Value {
    let results = results(run);
    let checks = results["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}")).clone()
}

#[test]
fn a_member_that_does_not_start_on_the_data_of_a_kill_is_a_violation_with_its_last_words() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let faults = ["--nemesis", "kill-one", "--mutant", "refuses-own-log", "--time-limit", "5s"];
    let output = run_command(folder.path(), &faults).output().expect("runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let check = check_named(&folder.path().join("runs/latest"), "recovery");
    assert_eq!(check["verdict"], "invalid");
    let summary = check["summary"].as_str().expect("words");
    assert!(summary.contains(" does not recover on its own data: killed by F1 (kill-one)"), "{summary}");
    assert!(summary.contains("the log reaches beyond its snapshot"), "{summary}");
}

#[test]
fn a_leader_that_leads_on_without_its_quorum_and_never_joins_the_next_is_a_violation() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let faults = ["--nemesis", "partition-oneway", "--mutant", "no-abdication", "--time-limit", "5s"];
    let output = run_command(folder.path(), &faults).output().expect("runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let check = check_named(&folder.path().join("runs/latest"), "recovery");
    let summary = check["summary"].as_str().expect("words");
    assert!(summary.contains(" does not come back: "), "{summary}");
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let start = || run_command(folder.path(), &["--time-limit", "2s"]).spawn().expect("starts");
    let both = [start(), start()];
    for child in both {
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
}

#[test]
fn a_load_that_could_find_nothing_is_unknown() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let weak = ["run", "--nodes", "3", "--rate", "1", "--time-limit", "2s"];
    let output = command(folder.path(), &weak).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("too weak"), "{}", text(&output));
}

#[test]
fn a_violation_is_seen_while_the_run_goes_on_and_ends_it_where_that_was_asked_for() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let begun = Instant::now();
    let faults = ["--nemesis", "kill-all", "--mutant", "ack-before-fsync", "--interval", "4s"];
    let arguments = [&faults[..], &["--time-limit", "60s", "--fail-fast"]].concat();
    let output = run_command(folder.path(), &arguments).output().expect("runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(begun.elapsed() < Duration::from_secs(50), "it was not ended early: {}", text(&output));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = stderr.lines().find(|line| line.starts_with("violation at "));
    assert!(line.is_some_and(|line| line.ends_with("; the run ends here (--fail-fast)")), "{stderr}");
    let run = folder.path().join("runs/latest");
    let live = &results(&run)["live"]["violation"];
    let late_ns = live["seen_ns"].as_u64().zip(live["happened_ns"].as_u64()).map(|(seen, at)| seen - at);
    assert!(late_ns.is_some_and(|late_ns| late_ns < 5_000_000_000), "{live}");
    assert_eq!(live["ended_the_run"], true);
    let faults = std::fs::read_to_string(run.join("faults.jsonl")).expect("faults");
    assert!(faults.contains("verified-healed"), "{faults}");
    assert!(run.join("report.html").is_file());
}

/// A run of applications under faults of holders: one in 15 s, two in 27 s.
fn of_holders(folder: &Path, arguments: &[&str]) -> Output {
    run_command(folder, &[&["--workload"], arguments].concat()).output().expect("runs")
}

/// What a check found, by its name.
fn verdict_of(run: &Path, check: &str) -> String {
    let results = results(run);
    let checks = results["checks"].as_array().expect("checks");
    let found = checks.iter().find(|found| found["name"] == check).unwrap_or(&Value::Null);
    found["verdict"].as_str().unwrap_or_default().to_owned()
}

/// A run of a workload of applications under one fault, in which these checks find nothing. Gives the folder,
/// and what was said of the fault.
fn sound_with_holders(folder: &Path, workload: &str, nemesis: &str, checks: &[&str]) -> (PathBuf, String) {
    let output = of_holders(folder, &[workload, "--nemesis", nemesis, "--time-limit", "20s"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let run = folder.join("runs/latest");
    for check in checks {
        assert_eq!(verdict_of(&run, check), "valid", "{check}: {}", text(&output));
    }
    let injected = transitions(&run, "injected");
    let sentence = injected[0]["detail"]["sentence"].as_str().expect("words").to_owned();
    (run, sentence)
}

#[test]
fn a_holder_that_is_stopped_beyond_its_session_is_followed_by_another_and_nothing_stale_is_taken() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let checks = ["tokens", "exclusion", "guarded-store", "left-behind", "notifications", "faults"];
    let (run, sentence) = sound_with_holders(folder.path(), "lock", "pause-holder", &checks);
    // Everybody said when: the leader, the next one in the line, and the store.
    let change = &results(&run)["holder_changes"][0];
    let parts = ["injected_ns", "expired_ns", "told_ns", "held_ns", "written_ns"];
    let parts: Vec<Option<u64>> = parts.iter().map(|name| change[name].as_u64()).collect();
    // A leader's line may arrive later than what came of it.
    assert!(parts.iter().all(|part| part.is_some() && *part >= parts[0]), "{change}");
    let page = std::fs::read_to_string(run.join("report.html")).expect("a page");
    assert!(page.contains("session ended after"), "the page takes the change apart");
    assert!(sentence.starts_with("pause application") && sentence.contains("by token"), "{sentence}");
    let evidence = transitions(&run, "verified");
    let words = evidence[0]["detail"]["evidence"].as_str().expect("words");
    assert!(words.contains("stopped (state T)") && words.contains("beside it is running"), "{words}");
}

#[test]
#[ignore = "long: .ci/nightly runs it, and the gate the same of locks"]
fn what_a_stopped_consumer_has_claimed_is_handed_to_another_and_done_once() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let checks = ["queue", "exclusion", "durability", "convergence", "faults"];
    let (_, sentence) = sound_with_holders(folder.path(), "queue", "pause-holder", &checks);
    assert!(sentence.contains("which holds an element of queue"), "{sentence}");
}

#[test]
#[ignore = "long: .ci/nightly runs it, and the gate the same of locks"]
fn nobody_waits_at_a_barrier_for_one_whose_session_is_over_and_nobody_goes_on_alone() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    let checks = ["barrier", "convergence", "faults"];
    let (_, sentence) = sound_with_holders(folder.path(), "barrier", "kill-holder", &checks);
    assert!(sentence.contains("which is in round"), "{sentence}");
}

#[test]
fn a_careless_holder_beside_a_careless_store_is_convicted() {
    let _machine = machine();
    let folder = tempfile::tempdir().expect("a folder");
    // Whoever has only to release when it is stopped writes nothing stale: of terms with many writes few do.
    let bug = ["election", "--nemesis", "pause-holder", "--mutant", "careless-holder"];
    let output = of_holders(folder.path(), &[&bug[..], &["--time-limit", "27s"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let run = folder.path().join("runs/latest");
    assert_eq!(verdict_of(&run, "exclusion"), "invalid");
    assert_eq!(verdict_of(&run, "guarded-store"), "invalid");
}

#[test]
fn each_planted_bug_of_applications_is_convicted_by_the_check_that_it_is_for() {
    let _machine = machine();
    for (workload, bug, check) in [
        ("lock", "herd", "notifications"),
        ("queue", "unclaimed-elements", "exclusion"),
        ("barrier", "early-entry", "barrier"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        // Slow enough that those who enter a barrier come one after the other, whatever runs beside this.
        let slow = ["run", "--cluster", "process", "--nodes", "3", "--rate", "100", "--concurrency", "12"];
        let planted = ["--keys", "2", "--workload", workload, "--mutant", bug, "--time-limit", "4s"];
        let output = command(folder.path(), &[&slow[..], &planted].concat()).output().expect("runs");
        assert_eq!(output.status.code(), Some(1), "{bug}: {}", text(&output));
        let run = folder.path().join("runs/latest");
        assert_eq!(verdict_of(&run, check), "invalid", "{bug}: {}", text(&output));
    }
}
