//! Images from a registry: pulled where that was asked for, and refused otherwise. The registry is Debian's,
//! on loopback.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use super::image::which;
use super::{MACHINE, redis, text};

/// How long the registry may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);

struct Registry {
    process: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Registry {
    fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let settings = format!(
            "version: 0.1\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: {address} }}\n",
            folder.path().display()
        );
        let file = folder.path().join("registry.yml");
        std::fs::write(&file, settings).expect("written");
        let mut command = Command::new(program);
        let quiet = command.arg("serve").arg(&file).stdout(std::process::Stdio::null());
        let process = quiet.stderr(std::process::Stdio::null()).spawn().expect("it starts");
        let begun = Instant::now();
        while TcpStream::connect(&address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the registry listens within {PATIENCE:?}");
            std::thread::yield_now();
        }
        Self { process, address, _folder: folder }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn docker(arguments: &[&str]) {
    let output = Command::new("docker").args(arguments).output().expect("docker");
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
}

#[test]
fn an_image_that_the_engine_does_not_have_is_pulled_when_that_was_asked_for() {
    let Some(program) = which("docker-registry") else {
        eprintln!("skipped: docker-registry is not installed");
        return;
    };
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(image) = redis::image() else { return };
    let registry = Registry::start(&program);
    let there = format!("{}/redis:test", registry.address);
    docker(&["tag", image.0, &there]);
    docker(&["push", &there]);
    docker(&["rmi", &there, image.0]);
    let folder = redis::begun();
    let run = |image: &str, more: &[&str]| -> Output {
        let usual = ["run", "--system", "./compose.yaml", "--workload", "set", "--nemesis", "none"];
        redis::harness(folder.path(), image, &[&usual[..], &["--time-limit", "4s"], more].concat())
    };
    let refused = run(&there, &[]);
    assert_eq!(refused.status.code(), Some(254), "{}", text(&refused));
    assert!(text(&refused).contains("add --pull missing"), "{}", text(&refused));
    let pulled = run(&there, &["--pull", "missing"]);
    // A machine too busy for a load of four seconds is no failure of this.
    assert!(matches!(pulled.status.code(), Some(0 | 2)), "{}", text(&pulled));
    let words = text(&pulled);
    assert!(words.contains("does not have it, and pulls it") && words.contains("pulled in"), "{words}");
    let again = run(&there, &["--pull", "missing"]);
    assert!(!text(&again).contains("pulls it"), "the engine has it: {}", text(&again));
    let unknown = run(&format!("{}/nothing:1", registry.address), &["--pull", "missing"]);
    assert_eq!(unknown.status.code(), Some(254), "{}", text(&unknown));
    assert!(text(&unknown).contains("can't be pulled"), "{}", text(&unknown));
    docker(&["rmi", "--force", &there]);
}
