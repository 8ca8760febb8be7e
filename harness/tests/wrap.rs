//! A test of the user's own on members that are broken: `harness wrap`, from its flags to the verdict.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use harness::host::procfs;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Goes on until the first fault was seen to be gone, says something on both streams, and ends as it is told.
const SCRIPT: &str = "echo \"members $HARNESS_MEMBERS\"\necho 'to stderr' >&2\n\
    until grep -q verified-healed \"$HARNESS_FOLDER/faults.jsonl\"; do sleep 0.05; done\nexit $1\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("test.sh"), SCRIPT).expect("written");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn wrap(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command
            .args([
                "wrap",
                "--cluster",
                "process",
                "--nodes",
                "3",
                "--nemesis",
                "kill-leader",
                "--interval",
                "1s",
            ])
            .args(words)
            .current_dir(self.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn ends(&self, words: &[&str]) -> Output {
        self.wrap(words).output().expect("it starts")
    }

    /// The folder of the last run.
    fn latest(&self) -> PathBuf {
        self.path().join("runs/latest")
    }

    fn results(&self) -> Value {
        let text = fs::read(self.latest().join("results.json")).expect("results");
        serde_json::from_slice(&text).expect("JSON")
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_test_that_passes_under_a_verified_fault_is_valid_and_its_words_are_kept() {
    let folder = Folder::new();
    let ended = folder.ends(&["--", "sh", "test.sh", "0"]);
    let said = text(&ended);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains("the command succeeded") && said.contains("-- sh test.sh 0"), "{said}");
    // Standard output is the verdict's alone.
    assert!(String::from_utf8_lossy(&ended.stderr).contains("to stderr"), "{said}");
    let log = fs::read_to_string(folder.latest().join("command.log")).expect("a log");
    assert!(log.contains("members n1=127.0.0.1:") && log.contains("to stderr"), "{log}");
    let checks = folder.results()["checks"].clone();
    let names: Vec<&str> =
        checks.as_array().expect("checks").iter().filter_map(|c| c["name"].as_str()).collect();
    assert!(
        names.starts_with(&["command", "command-met-faults"]) && names.contains(&"recovery"),
        "{names:?}"
    );
    assert!(!names.contains(&"linearizable") && !names.contains(&"load"), "{names:?}");
    // Judged again from the folder alone it is the same.
    let again = Command::new(env!("CARGO_BIN_EXE_harness")).arg("check").arg(folder.latest()).output();
    assert_eq!(again.expect("it starts").status.code(), Some(0));
    // No command is taken from a folder.
    let replay = Command::new(env!("CARGO_BIN_EXE_harness")).arg("replay").arg(folder.latest()).output();
    let replay = replay.expect("it starts");
    assert_eq!(replay.status.code(), Some(254), "{}", text(&replay));
    assert!(text(&replay).contains("type the line yourself"), "{}", text(&replay));
}

#[test]
fn what_a_command_says_by_its_end_is_the_verdict() {
    let folder = Folder::new();
    for (words, status, reason) in [
        (&["sh", "test.sh", "3"][..], 1, "failed with exit status 3"),
        (&["true"], 2, "met no fault"),
        (&["sh", "-c", "sh test.sh 0; kill -9 $$"], 2, "signal 9 ended the command from outside"),
        (&["sh", "-c", "sh test.sh 0; no-such-program"], 2, "exit status 127"),
    ] {
        let ended = folder.ends(&[&["--"][..], words].concat());
        let said = text(&ended).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((ended.status.code(), said.contains(reason)), (Some(status), true), "{words:?}: {said}");
    }
}

#[test]
fn what_can_not_be_run_is_refused_before_any_member_starts() {
    let folder = Folder::new();
    fs::write(folder.path().join("no-program"), "text").expect("written");
    for (words, advice) in [
        (&["--", "no-such-program"][..], "there is no program no-such-program"),
        (&["--", "./no-program"], "name one that can be run"),
        (&["--cluster", "sim", "--", "true"], "no command reaches the members of a virtual world"),
        (&["--nemesis", "pause-holder", "--", "true"], "take a nemesis of members"),
        (&["--mutant", "cached-reads", "--", "true"], "take one of the members'"),
        (&[], "COMMAND"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        let ended = command.arg("wrap").args(words).current_dir(folder.path()).output().expect("it starts");
        assert_eq!(ended.status.code(), Some(254), "{words:?}: {}", text(&ended));
        assert!(text(&ended).contains(advice), "{words:?}: {}", text(&ended));
    }
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn who_interrupts_the_harness_interrupts_the_command_and_nothing_of_it_lives_on() {
    let folder = Folder::new();
    let script = "sleep 1000 & echo $! >child; trap 'echo good-bye; exit 0' TERM; touch started; \
                  while :; do sleep 0.05; done";
    let mut harness = folder.wrap(&["--", "sh", "-c", script]).spawn().expect("it starts");
    let id = harness.id();
    wait_until("the command runs", || folder.path().join("started").exists());
    kill_process(Pid::from_raw(i32::try_from(id).expect("an id")).expect("an id"), Signal::INT)
        .expect("sent");
    let status = harness.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    let log = fs::read_to_string(folder.latest().join("command.log")).expect("a log");
    assert!(log.contains("good-bye"), "{log}");
    let child = fs::read_to_string(folder.path().join("child")).expect("a child");
    let child: u32 = child.trim().parse().expect("an id");
    wait_until("its child is gone", || procfs::stat(child).is_none_or(procfs::Stat::is_dead));
}

/// Starts children in the command's group, in a session of their own, and in one without its environment;
/// says which, and goes on.
const RESTLESS: &str = "sleep 1000 & echo $! >>children; setsid sleep 1000 & echo $! >>children; \
    (env -i setsid sleep 1000 & echo $! >>children) ; echo $$ >>children; touch started; \
    while :; do sleep 0.05; done";

/// Who was started, once all are.
fn children_of_a_restless_command(folder: &Folder) -> Vec<u32> {
    wait_until("the command runs", || folder.path().join("started").exists());
    let children = fs::read_to_string(folder.path().join("children")).expect("children");
    children.lines().map(|id| id.parse().expect("an id")).collect()
}

fn lives(id: u32) -> bool {
    procfs::stat(id).is_some_and(|stat| !stat.is_dead())
}

fn kill(id: u32) {
    let id = Pid::from_raw(i32::try_from(id).expect("an id")).expect("an id");
    // It may have ended with another one.
    let _ = kill_process(id, Signal::KILL);
}

#[test]
fn nothing_that_a_command_started_outlives_a_harness_that_is_killed() {
    let folder = Folder::new();
    let mut harness = folder.wrap(&["--", "sh", "-c", RESTLESS]).spawn().expect("it starts");
    let children = children_of_a_restless_command(&folder);
    assert_eq!(children.len(), 4);
    kill(harness.id());
    harness.wait().expect("it ended");
    for child in children {
        wait_until("a child is gone", || !lives(child));
    }
}

#[test]
fn nothing_that_a_command_started_outlives_it_in_whatever_session() {
    let folder = Folder::new();
    let script = RESTLESS.replace("while :; do sleep 0.05; done", "sh test.sh 0");
    let ended = folder.ends(&["--", "sh", "-c", &script]);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
    assert!(children_of_a_restless_command(&folder).into_iter().all(|child| !lives(child)));
}

#[test]
fn what_a_command_left_is_swept_where_its_guardians_were_killed_too() {
    let folder = Folder::new();
    let script = RESTLESS.replace("env -i ", "");
    let mut harness = folder.wrap(&["--", "sh", "-c", &script]).spawn().expect("it starts");
    let children = children_of_a_restless_command(&folder);
    let guardians = procfs::children(harness.id()).into_iter().filter(|id| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("guard\0")
    });
    let guardians: Vec<u32> = guardians.collect();
    assert_eq!(guardians.len(), 2, "one of the command, and one of the harness");
    guardians.into_iter().for_each(kill);
    kill(harness.id());
    harness.wait().expect("it ended");
    let mut clean = Command::new(env!("CARGO_BIN_EXE_harness"));
    let clean = clean.args(["clean", "--store", "runs"]).current_dir(folder.path()).output();
    assert_eq!(clean.expect("it starts").status.code(), Some(0));
    for child in children {
        wait_until("a child is gone", || !lives(child));
    }
}
