//! `node elect`, `node lock` and `node standby`, as somebody at a shell uses them.

#[path = "ensemble/members.rs"]
#[allow(dead_code, reason = "what other tests look at")]
mod members;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use members::{Ensemble, PATIENCE};
use rustix::process::{Pid, Signal, kill_process};

/// The binary under test.
const NODE: &str = env!("CARGO_BIN_EXE_node");

/// Writes a line with its name and its token every few milliseconds, and does not end when it is asked to.
const STUBBORN: &str =
    r#"trap "" TERM; while :; do echo "$NAME $TOKEN $$ $(date +%s%N)" >> "$LINES"; sleep 0.02; done"#;

/// A program at work. It is killed when the test ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).expect("a process id")).expect("not zero");
        kill_process(pid, signal).expect("it runs");
    }

    fn ends(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().expect("a child of ours") {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

/// An ensemble of one, and a file that commands write to.
struct Place {
    ensemble: Ensemble,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { ensemble: Ensemble::start(1), folder: tempfile::tempdir().expect("a directory") }
    }

    fn lines(&self) -> PathBuf {
        self.folder.path().join("lines")
    }

    fn run(&self, name: &str, program: &[&str], command: &[&str]) -> Program {
        let server = self.ensemble.client_addr(1).to_string();
        let child = Command::new(NODE)
            .args(program)
            .args(["--server", &server, "--session-timeout", "4s", "--grace", "500ms", "--"])
            .args(command)
            .envs([("NAME", name), ("RUST_LOG", "off")])
            .env("LINES", self.lines())
            .stderr(Stdio::null())
            .spawn();
        Program(child.expect("started"))
    }

    /// Runs a program to its end.
    fn status(&self, program: &[&str], command: &[&str]) -> Option<i32> {
        self.run("it", program, command).ends().code()
    }
}

/// What commands wrote: name, token, process, and nanoseconds.
fn read(lines: &Path) -> Vec<(String, u64, i32, u128)> {
    let text = std::fs::read_to_string(lines).unwrap_or_default();
    let parse = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, token, process, at] = words[..] else { return None };
        Some((name.to_owned(), token.parse().ok()?, process.parse().ok()?, at.parse().ok()?))
    };
    text.lines().filter_map(parse).collect()
}

/// Waits until somebody of that name wrote, and gives the first line.
fn writes(lines: &Path, name: &str) -> (String, u64, i32, u128) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(line) = read(lines).into_iter().find(|line| line.0 == name) {
            return line;
        }
        assert!(Instant::now() < deadline, "{name} never writes");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Two candidates, of which the first leads when the second comes.
fn two(place: &Place) -> (Program, Program) {
    let elect = ["elect", "/e", "--create"];
    let first = place.run("first", &elect, &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "first");
    (first, place.run("second", &elect, &["sh", "-c", STUBBORN]))
}

/// That the first wrote nothing behind the first line of the second, whose token is larger.
fn handed_over(place: &Place) {
    let second = writes(&place.lines(), "second");
    let lines = read(&place.lines());
    let last = lines.iter().rev().find(|line| line.0 == "first").expect("it wrote");
    assert!(last.3 < second.3, "the first wrote {} ns behind the second", last.3 - second.3);
    assert!(last.1 < second.1, "tokens grow: {} and then {}", last.1, second.1);
    assert!(!Path::new(&format!("/proc/{}/exe", last.2)).exists(), "the command of the first is gone");
}

#[test]
fn exit_statuses_are_those_of_the_command_and_five_more() {
    let place = Place::new();
    assert_eq!(place.status(&["elect", "/none"], &["true"]), Some(125), "no such resource");
    assert_eq!(place.status(&["elect", "/e", "--create"], &["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(place.status(&["lock", "/l"], &["sh", "-c", "kill -INT $$"]), Some(130));
    assert_eq!(place.status(&["lock", "/l"], &["/nonesuch"]), Some(127));
    assert_eq!(place.status(&["lock", "/l"], &["/"]), Some(126));
    let _held = place.run("held", &["lock", "/l"], &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "held");
    assert_eq!(place.status(&["lock", "/l", "--wait", "0s"], &["true"]), Some(124));
    assert_eq!(place.status(&["lock", "/free", "--wait", "0s"], &["true"]), Some(0));
}

#[test]
fn a_command_is_ended_before_another_leads_when_its_program_is_stopped() {
    let place = Place::new();
    let (first, _second) = two(&place);
    first.signal(Signal::STOP);
    handed_over(&place);
    first.signal(Signal::CONT);
}

#[test]
fn a_command_is_ended_at_once_when_its_program_is_killed() {
    let place = Place::new();
    let (mut first, _second) = two(&place);
    first.signal(Signal::KILL);
    first.ends();
    handed_over(&place);
}

#[test]
fn a_command_is_ended_and_its_place_given_up_when_its_program_is_told_to_end() {
    let place = Place::new();
    let (mut first, _second) = two(&place);
    let told = Instant::now();
    first.signal(Signal::TERM);
    assert_eq!(first.ends().code(), Some(143));
    handed_over(&place);
    assert!(told.elapsed() < Duration::from_secs(4), "nobody waits for a session's end");
}

#[test]
fn a_lost_ensemble_ends_the_command_of_a_lock_with_75() {
    let mut place = Place::new();
    let mut program = place.run("held", &["lock", "/l"], &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "held");
    place.ensemble.stop(1);
    let gone = |process| !Path::new(&format!("/proc/{process}/exe")).exists();
    let (_, _, process, _) = writes(&place.lines(), "held");
    let deadline = Instant::now() + PATIENCE;
    while !gone(process) {
        assert!(Instant::now() < deadline, "the command goes on without an ensemble");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    place.ensemble.start_again(1);
    assert_eq!(program.ends().code(), Some(75));
}

#[test]
fn a_standby_fences_the_one_that_was_active_and_did_not_say_good_bye() {
    let place = Place::new();
    let fenced = place.folder.path().join("fenced");
    let fence = format!("echo \"$FENCE_DATA\" >> {}", fenced.display());
    let standby = |name| {
        let program = ["standby", "/jobs", "--data", name, "--fence", &fence];
        place.run(name, &program, &["sh", "-c", STUBBORN])
    };
    let mut first = standby("first");
    writes(&place.lines(), "first");
    let mut second = standby("second");
    first.signal(Signal::KILL);
    first.ends();
    handed_over(&place);
    assert_eq!(std::fs::read_to_string(&fenced).expect("it was fenced"), "first\n");

    // One that ends well need not be fenced.
    second.signal(Signal::TERM);
    assert_eq!(second.ends().code(), Some(143));
    let _third = standby("third");
    writes(&place.lines(), "third");
    assert_eq!(std::fs::read_to_string(&fenced).expect("it was fenced"), "first\n");
}
