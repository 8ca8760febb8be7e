//! Targets for the tests, and whether there can be any.
#![allow(dead_code, reason = "not every test uses everything")]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use harness_clock::{Reading, Shifter, available_with};

/// An hour.
pub(crate) const HOUR: i64 = 3_600_000_000_000;
/// How long anything is waited for.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The example that was built beside this test.
pub(crate) fn example() -> PathBuf {
    let own = std::env::current_exe().expect("this test is a file");
    let folder = own.parent().and_then(|deps| deps.parent()).expect("a target folder");
    let path = folder.join("examples/clock-target");
    assert!(path.exists(), "{} is missing: cargo test without --test builds it", path.display());
    path
}

/// False, with the reason printed, where clocks can't be shifted.
pub(crate) fn possible() -> bool {
    match available_with(Command::new(example())) {
        Ok(()) => true,
        Err(reason) => {
            println!("skipped: {reason}");
            false
        }
    }
}

/// A process to shift. It is killed when this is dropped.
pub(crate) struct Target {
    pub(crate) child: Child,
    out: BufReader<ChildStdout>,
}

impl Target {
    /// The example, once it is ready.
    pub(crate) fn example(arguments: &[&str]) -> Self {
        let mut command = Command::new(example());
        command.args(arguments);
        let mut target = Self::of(command);
        assert_eq!(target.line(), "ready");
        target
    }

    /// Any program.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the target starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, out }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its next line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a readable pipe");
        line.trim_end().to_owned()
    }

    /// Closes its input; what it says in the end.
    pub(crate) fn finish(mut self) -> String {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("a readable pipe");
        let status = self.child.wait().expect("the target ends");
        format!("{} {status}", rest.trim_end())
    }

    /// Says whether it goes on to the end without having seen anything wrong.
    pub(crate) fn finish_well(self) {
        let said = self.finish();
        assert!(said.starts_with("ok ") && said.ends_with(" exit status: 0"), "the target said: {said}");
        assert!(!said.starts_with("ok 0 "), "the target did look");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The state letter of a process's main thread.
pub(crate) fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).expect("a state")
}

/// Waits until something is true.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < DEADLINE, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// A reading agrees with an offset as well as its width lets it.
pub(crate) fn agrees(reading: Reading, offset_ns: i64) -> bool {
    // A millisecond for the host's own clock being slewed.
    reading.offset_ns.abs_diff(offset_ns) <= reading.error_ns + 1_000_000
}

/// What a target reads must be this.
pub(crate) fn assert_reads(shifter: &mut Shifter, pid: u32, offset_ns: i64) {
    let reading = shifter.read(pid).expect("a reading");
    assert!(agrees(reading, offset_ns), "{reading:?} instead of {offset_ns}");
}
