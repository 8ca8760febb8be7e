//! Redis with Sentinel, by the files that `harness init redis` writes: as local processes, and in containers
//! of an image that is made here of what is installed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{MACHINE, json, text};

/// A fault that is held for long enough to lose something, and time to come back from it.
const FAULT: [&str; 8] =
    ["--workload", "set", "--nemesis", "partition-leader", "--time-limit", "35s", "--rate", "300"];

fn which(program: &str) -> Option<PathBuf> {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().ok()?;
    let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    std::fs::canonicalize(path).ok()
}

fn harness(folder: &Path, image: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(arguments)
        .current_dir(folder)
        .env("REDIS_IMAGE", image)
        .output()
        .expect("the harness starts")
}

/// A folder with the files.
fn begun() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let written = harness(folder.path(), "", &["init", "redis"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written));
    folder
}

#[test]
fn redis_as_processes_loses_acknowledged_writes_and_is_told_so_or_accused() {
    let (Some(_), Some(_)) = (which("redis-server"), which("redis-sentinel")) else {
        eprintln!("skipped: redis-server and redis-sentinel are not installed");
        return;
    };
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = begun();
    let run = [&["run", "--system", "./redis.toml", "--nodes", "3"], &FAULT[..]].concat();
    let held = harness(folder.path(), "", &[&run[..], &["--promise", "linearizable"]].concat());
    assert_eq!(held.status.code(), Some(1), "{}", text(&held));
    let results = json(folder.path(), "results.json");
    assert_eq!(results["faults"]["verified"], 1, "{}", results["faults"]);
    let durability = super::check(&results, "durability");
    assert!(durability["evidence"]["on_every_member"].as_u64() > Some(0), "{durability}");
}

#[test]
fn redis_in_containers_is_measured_by_its_own_promise() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(image) = Image::made() else { return };
    let folder = begun();
    let run = [&["run", "--system", "./compose.yaml"], &FAULT[..]].concat();
    let output = harness(folder.path(), image.0, &run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    assert_eq!(results["faults"]["verified"], 1, "{}", results["faults"]);
    assert_eq!(super::check(&results, "durability")["evidence"]["kept"], false, "{}", results["checks"]);
    let run = json(folder.path(), "run.json");
    assert_eq!((run["nodes"].as_u64(), &run["cluster"]), (Some(3), &"docker".into()), "{run}");
}

/// An image with Redis and a shell, for as long as this lives.
struct Image(&'static str);

impl Image {
    const NAME: &'static str = "harness-test/redis:installed";

    fn made() -> Option<Self> {
        let programs = [which("redis-server"), which("sh"), which("mkdir")];
        let Some(programs) = programs.into_iter().collect::<Option<Vec<PathBuf>>>() else {
            eprintln!("skipped: redis-server is not installed");
            return None;
        };
        let engine = Command::new("docker").args(["version", "--format", "x"]).output();
        if !engine.is_ok_and(|engine| engine.status.success()) {
            eprintln!("skipped: no Docker engine answers, or there is no docker to ask it");
            return None;
        }
        let root = tempfile::tempdir().expect("a folder");
        let mut files: BTreeSet<PathBuf> = BTreeSet::new();
        for program in &programs {
            let needed = Command::new("ldd").arg(program).output().expect("ldd");
            let needed = String::from_utf8_lossy(&needed.stdout).into_owned();
            files.extend(needed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from));
        }
        for file in &files {
            copy(file, &root.path().join(file.strip_prefix("/").expect("absolute")));
        }
        for (program, names) in
            programs.iter().zip([&["redis-server", "redis-sentinel"][..], &["sh"], &["mkdir"]])
        {
            names.iter().for_each(|name| copy(program, &root.path().join("bin").join(name)));
        }
        std::fs::create_dir(root.path().join("data")).expect("made");
        let mut tar = Command::new("tar")
            .arg("-C")
            .arg(root.path())
            .args(["-c", "."])
            .stdout(Stdio::piped())
            .spawn()
            .expect("tar");
        let import = ["import", "--change", "ENV PATH=/bin", "-", Self::NAME];
        let imported = Command::new("docker").args(import).stdin(tar.stdout.take().expect("a pipe")).output();
        assert!(imported.expect("docker").status.success() && tar.wait().expect("it ends").success());
        Some(Self(Self::NAME))
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
    std::fs::copy(from, to).expect("copied");
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", "--force", self.0]).output();
    }
}
