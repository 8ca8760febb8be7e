//! Members whose image insists on being process 1: `node` behind an init that refuses to be anything else.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::image::Image;
use super::{MACHINE, json, text};

const COMPOSE: &str = r#"
x-member: &member
  image: harness-test/process-1:installed
  command:
    - sh
    - -c
    - >-
      test $$$$ = 1 || { echo "init: fatal: can only run as pid 1" >&2; exit 100; };
      node --data-dir /data & wait
x-ensemble: &ensemble
  ZOO_SERVERS: server.1=m1:2888:3888;2181 server.2=m2:2888:3888;2181 server.3=m3:2888:3888;2181
services:
  m1: { <<: *member, environment: { <<: *ensemble, ZOO_MY_ID: 1 }, volumes: ["m1:/data"] }
  m2: { <<: *member, environment: { <<: *ensemble, ZOO_MY_ID: 2 }, volumes: ["m2:/data"] }
  m3: { <<: *member, environment: { <<: *ensemble, ZOO_MY_ID: 3 }, volumes: ["m3:/data"] }
volumes: { m1: , m2: , m3: }
x-harness:
  members: [m1, m2, m3]
  process_1: true
  ports: { client: 2181, peers: [2888, 3888] }
  ready: { send: "ruok", expect: "imok" }
  leader: { send: "srvr", expect: "Mode: leader" }
  gives_up_after: 1s
  interval: 6s
  client: { command: ["python3", "zookeeper_client.py"] }
  promises: { register: linearizable-updates }
  faults:
    slow:
      exec: ["sh", "-c", "echo {fault} >/data/slow"]
      heal: ["sh", "-c", ": >/data/slow"]
      seen: ["sh", "-c", "test -s /data/slow"]
"#;
/// How long anything may take to come to be.
const PATIENCE: Duration = Duration::from_secs(60);

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        let written = folder.harness(&["init", "zookeeper"]);
        assert_eq!(written.status.code(), Some(0), "{}", text(&written));
        folder.describe(COMPOSE);
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn describe(&self, compose: &str) {
        std::fs::write(self.path().join("compose.yaml"), compose).expect("written");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(self.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn harness(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the harness starts")
    }

    fn run(&self, more: &[&str]) -> Command {
        let usual = ["run", "--system", "./compose.yaml", "--rate", "150", "--concurrency", "6"];
        self.command(&[&usual[..], more].concat())
    }

    /// What is known of the faults of the run that goes on.
    fn faults(&self) -> String {
        std::fs::read_to_string(self.path().join("runs/latest/faults.jsonl")).unwrap_or_default()
    }
}

fn image() -> Option<Image> {
    let node = Path::new(env!("CARGO_BIN_EXE_harness")).with_file_name("node");
    if !node.exists() {
        eprintln!("skipped: {} is not built", node.display());
        return None;
    }
    let node = node.display().to_string();
    Image::made("harness-test/process-1:installed", &[(&node, &["node"]), ("sh", &["sh"])])
}

/// Containers of members that this harness made, as the engine lists them: in this state, or in any.
fn members_of(harness: u32, state: Option<&str>) -> usize {
    let mut command = Command::new("docker");
    command.args(["ps", "--all", "--filter", "label=harness.part=member"]);
    command.args(state.map(|state| format!("--filter=status={state}")));
    let listed = command.args(["--format", r#"{{.Label "harness.run"}}"#]).output().expect("docker");
    let ours = format!("{harness}.");
    String::from_utf8_lossy(&listed.stdout).lines().filter(|token| token.starts_with(&ours)).count()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

#[test]
fn members_that_are_process_1_are_killed_frozen_and_cut_off_and_take_faults_of_ones_own() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(_image) = image() else { return };
    let folder = Folder::new();
    let faults = ["--nemesis", "kill-one,pause-one,partition-one,slow", "--time-limit", "26s"];
    let run = folder.run(&faults).spawn().expect("the harness starts");
    let harness = run.id();
    let output = run.wait_with_output().expect("it ends");
    // A machine too busy to show anything is no violation; what was shown must hold.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    assert_eq!(json(folder.path(), "results.json")["faults"]["verified"], 4, "{}", text(&output));
    let seen = folder.faults();
    for words in ["is gone (killed by signal 9), its port refuses", "is frozen (", "3 of 3 processes run"] {
        assert!(seen.contains(words), "{words}: {seen}");
    }
    assert_eq!(members_of(harness, None), 0, "nothing is left");
}

#[test]
fn what_such_members_can_not_do_is_refused_and_a_missing_key_is_named() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(_image) = image() else { return };
    let folder = Folder::new();
    let clocks = folder.run(&["--nemesis", "clock-bump", "--time-limit", "9s"]).output().expect("it ends");
    assert_eq!(clocks.status.code(), Some(254), "{}", text(&clocks));
    let told = text(&clocks);
    assert!(told.contains("can't do clock-bump") && told.contains("x-harness.process_1"), "{told}");
    folder.describe(&COMPOSE.replace("process_1: true", "process_1: [m1, m3]"));
    let unnamed = folder.run(&["--time-limit", "5s"]).output().expect("it ends");
    assert_eq!(unnamed.status.code(), Some(255), "{}", text(&unnamed));
    let told = text(&unnamed);
    assert!(told.contains("can only run as pid 1") && told.contains("process_1: [m2]"), "{told}");
}

/// Once by Ctrl-C, which removes everything, and once by a kill, behind which `harness clean` does.
#[test]
fn a_member_that_is_frozen_when_the_harness_ends_does_not_stay() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(_image) = image() else { return };
    for signal in [Signal::INT, Signal::KILL] {
        let folder = Folder::new();
        let faults = ["--nemesis", "pause-one", "--interval", "20s", "--time-limit", "30s"];
        let run = folder.run(&faults).spawn().expect("the harness starts");
        let harness = run.id();
        wait_until("a member is frozen", || members_of(harness, Some("paused")) == 1);
        let pid = i32::try_from(harness).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("signalled");
        let output = run.wait_with_output().expect("it ends");
        if signal == Signal::INT {
            assert_eq!(output.status.code(), Some(130), "{}", text(&output));
        } else {
            assert_eq!(members_of(harness, Some("paused")), 1, "nobody was there to thaw it");
            let cleaned = folder.harness(&["clean"]);
            assert_eq!(cleaned.status.code(), Some(0), "{}", text(&cleaned));
        }
        assert_eq!(members_of(harness, None), 0, "nothing is left");
    }
}
