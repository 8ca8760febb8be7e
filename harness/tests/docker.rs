//! Whole runs on a Docker engine through the binary, one after the other. Without an engine they say so and
//! prove nothing.
#![cfg(feature = "docker")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::query_parameters::{
    KillContainerOptionsBuilder, ListContainersOptionsBuilder, ListImagesOptionsBuilder,
    ListNetworksOptionsBuilder, ListVolumesOptionsBuilder,
};
use harness::cluster::docker::Engine;
use harness::cluster::docker::place::{self, Place};
use harness::store::lock::owner_of;
use rustix::process::{Pid, Signal, kill_process};

/// One run at a time, except where a test is about two.
static MACHINE: Mutex<()> = Mutex::new(());
/// How long the end of anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// A small ensemble under a light load.
const SMALL: [&str; 10] =
    ["--cluster", "docker", "--nodes", "3", "--rate", "300", "--concurrency", "12", "--keys", "2"];

/// The machine, if it has an engine.
struct Machine {
    _alone: MutexGuard<'static, ()>,
    runtime: tokio::runtime::Runtime,
    docker: Docker,
}

impl Machine {
    fn with_an_engine() -> Option<Self> {
        let alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        match runtime.block_on(Engine::find()) {
            Ok(_) => {
                let docker = Docker::connect_with_defaults().expect("a client");
                Some(Self { _alone: alone, runtime, docker })
            }
            Err(none) => {
                let _ = writeln!(std::io::stderr(), "skipped, nothing is proven: {none}");
                None
            }
        }
    }

    /// Everything on the engine that belongs to this harness: `container x`, `network y`, ...
    fn left_by(&self, harness: u32) -> Vec<String> {
        let filters = HashMap::from([("label".to_owned(), vec!["harness.run".to_owned()])]);
        let ours = |labels: &HashMap<String, String>| {
            labels
                .get("harness.run")
                .and_then(|token| owner_of(token))
                .is_some_and(|owner| owner.pid == harness)
        };
        let mut left = Vec::new();
        self.runtime.block_on(async {
            let all = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
            for container in self.docker.list_containers(Some(all)).await.expect("containers") {
                if ours(&container.labels.unwrap_or_default()) {
                    left.push(format!("container {}", container.names.unwrap_or_default().join(" ")));
                }
            }
            let all = ListNetworksOptionsBuilder::new().filters(&filters).build();
            for network in self.docker.list_networks(Some(all)).await.expect("networks") {
                if ours(&network.labels.unwrap_or_default()) {
                    left.push(format!("network {}", network.name.unwrap_or_default()));
                }
            }
            let all = ListVolumesOptionsBuilder::new().filters(&filters).build();
            let volumes = self.docker.list_volumes(Some(all)).await.expect("volumes").volumes;
            for volume in volumes.unwrap_or_default() {
                if ours(&volume.labels) {
                    left.push(format!("volume {}", volume.name));
                }
            }
            let all = ListImagesOptionsBuilder::new().filters(&filters).build();
            for image in self.docker.list_images(Some(all)).await.expect("images") {
                if ours(&image.labels) {
                    left.push(format!("image {}", image.id));
                }
            }
        });
        left.sort();
        left
    }

    fn containers_of(&self, harness: u32) -> Vec<String> {
        let mut left = self.left_by(harness);
        left.retain(|thing| thing.starts_with("container"));
        left
    }

    fn kill(&self, container: &str) {
        let name = container.trim_start_matches("container /");
        let options = KillContainerOptionsBuilder::new().signal("KILL").build();
        self.runtime.block_on(self.docker.kill_container(name, Some(options))).expect("killed");
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = command(folder, &["run"]);
    command.args(SMALL).args(arguments);
    command
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

/// A run that was started, and what it says.
struct Running {
    child: Child,
    said: Arc<Mutex<String>>,
    reader: std::thread::JoinHandle<()>,
}

impl Running {
    /// Starts a run and waits for a line of its progress.
    fn until(mut command: Command, words: &str) -> Self {
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let hear = move |line: &str| heard.lock().expect("unbroken").push_str(&format!("{line}\n"));
        let seen =
            lines.by_ref().map_while(Result::ok).inspect(|line| hear(line)).any(|line| line.contains(words));
        assert!(seen, "the run ended without saying `{words}`: {}", said.lock().expect("unbroken"));
        let heard = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                heard.lock().expect("unbroken").push_str(&format!("{line}\n"));
            }
        });
        Self { child, said, reader }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, signal).expect("signalled");
    }

    /// Its exit status, and all that it said on stderr.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = Vec::new();
        let _ = self.child.stdout.take().expect("piped").read_to_end(&mut rest);
        let status = self.child.wait().expect("ends");
        self.reader.join().expect("read");
        let said = self.said.lock().expect("unbroken").clone();
        (status.code(), said)
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// Everything on the engine but its way, which can be cut.
struct Proxy {
    path: PathBuf,
    open: Arc<Mutex<Option<Vec<UnixStream>>>>,
}

impl Proxy {
    fn before(engine: PathBuf, path: PathBuf) -> Self {
        let listener = UnixListener::bind(&path).expect("bound");
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let kept = Arc::clone(&open);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let mut kept = kept.lock().expect("unbroken");
                let Some(streams) = kept.as_mut() else { continue };
                let far = UnixStream::connect(&engine).expect("connected");
                forward(&near, &far);
                forward(&far, &near);
                streams.extend([near, far]);
            }
        });
        Self { path, open }
    }

    fn cut(&self) {
        std::fs::remove_file(&self.path).expect("removed");
        let streams = self.open.lock().expect("unbroken").take().unwrap_or_default();
        for stream in streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn forward(from: &UnixStream, to: &UnixStream) {
    let (mut from, mut to) = (from.try_clone().expect("cloned"), to.try_clone().expect("cloned"));
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

#[test]
fn faults_are_proven_in_containers_and_nothing_stays_behind() {
    let Some(machine) = Machine::with_an_engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let faults = ["--nemesis", "partition-leader,kill-leader", "--interval", "3s", "--time-limit", "8s"];
    let run = Running::until(run_command(folder.path(), &faults), "all members serve");
    let harness = run.id();
    assert_eq!(machine.containers_of(harness).len(), 6, "three members and their sandboxes");
    let (status, said) = run.end();
    assert_eq!(status, Some(0), "{said}");
    assert!(machine.left_by(harness).is_empty(), "{:?}", machine.left_by(harness));
    let run = folder.path().join("runs/latest");
    let results = std::fs::read_to_string(run.join("results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&results).expect("JSON");
    assert_eq!(results["faults"]["verified"], 2);
    assert!(run.join("nodes/1/log").is_file() && run.join("nodes/1/events.jsonl").is_file());
    assert!(!run.join("nodes/1/data").exists(), "a valid run keeps no data");
}

#[test]
fn what_a_killed_harness_leaves_ends_by_itself_or_goes_with_clean() {
    let Some(machine) = Machine::with_an_engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let run = Running::until(run_command(folder.path(), &["--time-limit", "60s"]), "all members serve");
    let harness = run.id();
    run.signal(Signal::KILL);
    run.end();
    wait_until("agents and members end with their harness", || machine.containers_of(harness).is_empty());
    assert!(!machine.left_by(harness).is_empty(), "networks, volumes and images do not end");
    let cleaned = command(folder.path(), &["clean"]).output().expect("cleans");
    assert!(text(&cleaned).contains("closed 1 unfinished run"), "{}", text(&cleaned));
    assert!(machine.left_by(harness).is_empty(), "{:?}", machine.left_by(harness));
}

#[test]
fn an_interrupt_ends_members_and_removes_what_was_made() {
    let Some(machine) = Machine::with_an_engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // Once while containers are being made, once while they serve.
    for words in ["folder", "all members serve"] {
        let run = Running::until(run_command(folder.path(), &["--time-limit", "60s"]), words);
        let harness = run.id();
        run.signal(Signal::INT);
        let (status, said) = run.end();
        assert_eq!(status, Some(130), "{words}: {said}");
        assert!(machine.left_by(harness).is_empty(), "{words}: {:?}", machine.left_by(harness));
    }
}

#[test]
fn a_sandbox_that_dies_is_a_failure_of_the_harness_and_never_a_fault() {
    let Some(machine) = Machine::with_an_engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let run = Running::until(run_command(folder.path(), &["--time-limit", "60s"]), "all members serve");
    let harness = run.id();
    let containers = machine.containers_of(harness);
    machine.kill(containers.iter().find(|name| name.ends_with("-n3-sandbox")).expect("a sandbox"));
    let (status, said) = run.end();
    assert_eq!(status, Some(255), "{said}");
    assert!(said.contains("the sandbox of n3 ended (killed by signal 9)"), "{said}");
    assert!(machine.left_by(harness).is_empty(), "{:?}", machine.left_by(harness));
}

#[test]
fn an_engine_that_is_cut_off_is_told_and_what_is_left_goes_with_clean() {
    let Some(machine) = Machine::with_an_engine() else { return };
    let Ok(Place::Unix(engine)) = place::choose().map(|chosen| chosen.place) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Proxy::before(engine, folder.path().join("engine.sock"));
    let mut command_behind = run_command(folder.path(), &["--time-limit", "60s"]);
    command_behind.env("DOCKER_HOST", format!("unix://{}", proxy.path.display()));
    let run = Running::until(command_behind, "all members serve");
    let harness = run.id();
    proxy.cut();
    let (status, said) = run.end();
    assert_eq!(status, Some(255), "{said}");
    assert!(said.contains("the engine is gone") && said.contains("harness clean"), "{said}");
    wait_until("agents and members end without a lease", || machine.containers_of(harness).is_empty());
    let cleaned = command(folder.path(), &["clean"]).output().expect("cleans");
    assert_eq!(cleaned.status.code(), Some(0), "{}", text(&cleaned));
    assert!(machine.left_by(harness).is_empty(), "{:?}", machine.left_by(harness));
}

#[test]
fn two_runs_on_one_engine_do_not_disturb_each_other() {
    let Some(machine) = Machine::with_an_engine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let start = || run_command(folder.path(), &["--time-limit", "2s"]).spawn().expect("starts");
    for child in [start(), start()] {
        let harness = child.id();
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(machine.left_by(harness).is_empty(), "{:?}", machine.left_by(harness));
    }
}
