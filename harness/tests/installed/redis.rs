//! Redis with Sentinel, by the files that `harness init redis` writes: as local processes, and in containers
//! of an image that is made here of what is installed.

use std::path::Path;
use std::process::{Command, Output};

use super::image::{Image, which};
use super::{MACHINE, json, text};

/// A fault that is held for long enough to lose something, and time to come back from it.
const FAULT: [&str; 8] =
    ["--workload", "set", "--nemesis", "partition-leader", "--time-limit", "35s", "--rate", "300"];

/// An image with Redis and a shell.
pub(crate) fn image() -> Option<Image> {
    let programs = [
        ("redis-server", &["redis-server", "redis-sentinel"][..]),
        ("redis-cli", &["redis-cli"]),
        ("sh", &["sh"]),
        ("mkdir", &["mkdir"]),
    ];
    Image::made("harness-test/redis:installed", &programs)
}

pub(crate) fn harness(folder: &Path, image: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(arguments)
        .current_dir(folder)
        .env("REDIS_IMAGE", image)
        .output()
        .expect("the harness starts")
}

/// A folder with the files.
pub(crate) fn begun() -> tempfile::TempDir {
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
    let Some(image) = image() else { return };
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

/// Who leads is asked by a command in the container, and whether a member serves at the port of its Sentinel.
#[test]
fn members_in_containers_are_asked_by_a_command_and_at_another_port() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(image) = image() else { return };
    let folder = begun();
    let file = folder.path().join("compose.yaml");
    let text_of_file = std::fs::read_to_string(&file).expect("a file");
    let ready = r#"ready: { send: "PING\r\n", expect: "+PONG" }"#;
    let leader = r#"leader: { send: "ROLE\r\n", expect: "$6\r\nmaster" }"#;
    assert!(text_of_file.contains(ready) && text_of_file.contains(leader), "{text_of_file}");
    let asked =
        text_of_file.replace(ready, r#"ready: { send: "PING\r\n", expect: "+PONG", at: 26379 }"#).replace(
            leader,
            r#"leader: { exec: ["redis-cli", "-p", "{client.port}", "role"], expect: "master" }"#,
        );
    std::fs::write(&file, asked).expect("written");
    let faults = ["--workload", "set", "--nemesis", "pause-leader", "--time-limit", "35s"];
    let run = [&["run", "--system", "./compose.yaml"], &faults[..]].concat();
    let output = harness(folder.path(), image.0, &run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    assert_eq!(results["faults"]["verified"], 1, "{}", results["faults"]);
}

/// Services beside the members: a store that is healthy after a while, a job that needs it, which members
/// wait for, and something that needs a member.
const BESIDE: &str = r#"
services:
  app:
    image: ${REDIS_IMAGE}
    command: ["sh", "-c", "echo begun behind the members; exec redis-server --port 7001"]
    depends_on: { redis1: { condition: service_healthy } }
  schema:
    image: ${REDIS_IMAGE}
    command: ["sh", "-c", 'test -n "$$STORE" && echo made; exit $$STATUS']
    environment: { STORE: store, STATUS: 0 }
    depends_on: { store: { condition: service_healthy } }
  store:
    image: ${REDIS_IMAGE}
    command: ["sh", "-c", "echo there; : > /data/ready; exec redis-server --port 7000"]
    volumes: ["store:/data"]
    healthcheck: { test: ["CMD", "sh", "-c", "test -e /data/ready"], interval: 1s, retries: 30 }
"#;

#[test]
fn services_beside_the_members_start_in_their_order_and_go_with_the_run() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(image) = image() else { return };
    let folder = begun();
    let file = folder.path().join("compose.yaml");
    let written = std::fs::read_to_string(&file).expect("a file");
    let beside = written
        .replacen("\nservices:\n", BESIDE, 1)
        .replacen(
            "  redis1:\n",
            "  redis1:\n    depends_on: { schema: { condition: service_completed_successfully } }\n",
            1,
        )
        .replace("volumes: { redis1: {}", "volumes: { store: {}, redis1: {}");
    std::fs::write(&file, &beside).expect("written");
    let wrap = ["wrap", "--compose", "./compose.yaml", "--", "sh", "-c", "echo $HARNESS_MEMBERS"];
    let output = harness(folder.path(), image.0, &wrap);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let latest = folder.path().join("runs/latest");
    let log = |name: &str| {
        std::fs::read_to_string(latest.join("services").join(name))
            .expect(name)
            .lines()
            .next()
            .map(str::to_owned)
    };
    let said = [log("store.log"), log("schema.log"), log("app.log")];
    assert_eq!(said, ["there", "made", "begun behind the members"].map(|words| Some(words.to_owned())));
    let left = Command::new("docker").args(["ps", "-aq", "--filter", "label=harness.part=service"]).output();
    assert!(left.expect("docker").stdout.is_empty(), "services go with the run");
    // One that dies is a failure of the bench's: members would be accused of its death.
    let dies = beside.replace("exec redis-server --port 7001", "exit 5");
    std::fs::write(&file, dies).expect("written");
    let output =
        harness(folder.path(), image.0, &["wrap", "--compose", "./compose.yaml", "--", "sleep", "60"]);
    assert_eq!(output.status.code(), Some(255), "{}", text(&output));
    assert!(text(&output).contains("the service app ended (exit status 5)"), "{}", text(&output));
    // What members wait for and does not come is told with its last words, and nothing stays.
    std::fs::write(&file, beside.replace("STATUS: 0", "STATUS: 3")).expect("written");
    let output = harness(folder.path(), image.0, &wrap);
    assert_eq!(output.status.code(), Some(255), "{}", text(&output));
    let told = text(&output);
    assert!(told.contains("schema did not complete: exit status 3") && told.contains("made"), "{told}");
}
