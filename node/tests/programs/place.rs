//! Programs at work beside an ensemble of one, and what their commands write.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use node_client::{Keeper, KeeperOptions};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::members::{Ensemble, PATIENCE};

/// The binary under test.
pub(crate) const NODE: &str = env!("CARGO_BIN_EXE_node");

/// Writes a line with its name and its token every few milliseconds, and does not end when it is asked to.
pub(crate) const STUBBORN: &str =
    r#"trap "" TERM; while :; do echo "$NAME $TOKEN $$ $(date +%s%N)" >> "$LINES"; sleep 0.02; done"#;

/// Waits until there is something.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it never comes to this: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("not zero"), signal).expect("it runs");
}

/// The same to one that may be gone by now, because another one that was signalled has ended it.
pub(crate) fn signal_unless_gone(pid: i32, signal: Signal) {
    let signalled = kill_process(Pid::from_raw(pid).expect("not zero"), signal);
    assert!(matches!(signalled, Ok(()) | Err(Errno::SRCH)), "{pid}: {signalled:?}");
}

/// True while a process runs, or is stopped.
pub(crate) fn runs(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}/exe")).exists()
}

/// The first child of a process, once it has one.
pub(crate) fn child_of(parent: i32) -> i32 {
    until("it has a child", || {
        let all = std::fs::read_dir("/proc").expect("readable").flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|pid: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let behind_name = stat.rsplit(") ").next().unwrap_or_default();
            behind_name.split(' ').nth(1) == Some(&parent.to_string())
        })
    })
}

/// A program at work. It is killed when the test ends.
pub(crate) struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a process id")
    }

    pub(crate) fn signal(&self, with: Signal) {
        signal(self.pid(), with);
    }

    /// Its guardians, the outer one and the inner one.
    pub(crate) fn guardians(&self) -> [i32; 2] {
        let outer = child_of(self.pid());
        [outer, child_of(outer)]
    }

    pub(crate) fn ends(&mut self) -> ExitStatus {
        until("it ends", || self.0.try_wait().expect("a child of ours"))
    }
}

/// An ensemble of one, and a file that commands write to.
pub(crate) struct Place {
    pub(crate) ensemble: Ensemble,
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { ensemble: Ensemble::start(1), folder: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn lines(&self) -> PathBuf {
        self.folder.path().join("lines")
    }

    pub(crate) fn run(&self, name: &str, program: &[&str], command: &[&str]) -> Program {
        let more = ["--session-timeout", "4s", "--grace", "500ms", "--"];
        self.start(name, &[program, &more, command].concat())
    }

    /// Starts a program with these arguments. What it says goes to a file by its name.
    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> Program {
        let [said, printed] = ["said", "printed"]
            .map(|what| File::create(self.folder.path().join(format!("{name}.{what}"))).expect("made"));
        let child = Command::new(NODE)
            .args(arguments)
            .env("ZOOKEEPER_SERVERS", self.server())
            .envs([("NAME", name), ("RUST_LOG", "off")])
            .env("LINES", self.lines())
            .stderr(said)
            .stdout(printed)
            .spawn();
        Program(child.expect("started"))
    }

    pub(crate) fn server(&self) -> String {
        self.ensemble.client_addr(1).to_string()
    }

    /// What somebody of that name said so far.
    pub(crate) fn said(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{name}.said"))).unwrap_or_default()
    }

    /// Waits until somebody of that name says this.
    pub(crate) fn says(&self, name: &str, what: &str) {
        until(&format!("{name} says {what:?}"), || self.said(name).contains(what).then_some(()));
    }

    /// Runs a program to its end, and gives its exit status, what it printed and what it said.
    pub(crate) fn asked(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let status = self.start("asked", arguments).ends().code();
        let printed = std::fs::read_to_string(self.folder.path().join("asked.printed")).expect("printed");
        (status, printed, self.said("asked"))
    }

    /// Does something over a session of its own.
    pub(crate) fn session<T>(&self, act: impl AsyncFnOnce(&Keeper) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let keeper = Keeper::connect(self.server(), KeeperOptions::default()).await.expect("served");
            act(&keeper).await
        })
    }

    /// Runs a program to its end.
    pub(crate) fn status(&self, program: &[&str], command: &[&str]) -> Option<i32> {
        self.run("it", program, command).ends().code()
    }
}

/// What commands wrote: name, token, process, and nanoseconds.
pub(crate) fn read(lines: &Path) -> Vec<(String, u64, i32, u128)> {
    let text = std::fs::read_to_string(lines).unwrap_or_default();
    let parse = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, token, process, at] = words[..] else { return None };
        Some((name.to_owned(), token.parse().ok()?, process.parse().ok()?, at.parse().ok()?))
    };
    text.lines().filter_map(parse).collect()
}

/// Waits until somebody of that name wrote, and gives the first line.
pub(crate) fn writes(lines: &Path, name: &str) -> (String, u64, i32, u128) {
    until(&format!("{name} writes"), || read(lines).into_iter().find(|line| line.0 == name))
}

/// Two candidates, of which the first leads when the second comes.
pub(crate) fn two(place: &Place) -> (Program, Program) {
    let elect = ["elect", "/e", "--create"];
    let first = place.run("first", &elect, &["sh", "-c", STUBBORN]);
    writes(&place.lines(), "first");
    (first, place.run("second", &elect, &["sh", "-c", STUBBORN]))
}

/// That the first wrote nothing behind the first line of the second, whose token is larger.
pub(crate) fn handed_over(place: &Place) {
    let second = writes(&place.lines(), "second");
    let lines = read(&place.lines());
    let last = lines.iter().rev().find(|line| line.0 == "first").expect("it wrote");
    assert!(last.3 < second.3, "the first wrote {} ns behind the second", last.3 - second.3);
    assert!(last.1 < second.1, "tokens grow: {} and then {}", last.1, second.1);
    assert!(!runs(last.2), "the command of the first is gone");
}
