//! Test templates in containers, from the Compose file to the verdict: three members that know nothing of
//! each other, and a service beside them in which the commands lie.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::image::Image;
use super::{MACHINE, check, json, text};

const IMAGE: &str = "harness-test/templates:installed";
const COMPOSE: &str = r#"
services:
  r1: &member
    image: harness-test/templates:installed
    command: ["redis-server", "--port", "6379", "--save", "", "--bind", "0.0.0.0", "--protected-mode", "no"]
  r2: *member
  r3: *member
  client:
    image: harness-test/templates:installed
    command:
      - sh
      - -c
      - >-
        echo '{"antithesis_setup": {"status": "complete"}}' >$$ANTITHESIS_OUTPUT_DIR/sdk.jsonl;
        exec sleep 1000
    volumes: ["./v1:/opt/antithesis/test/v1:ro"]
    depends_on: { r1: { condition: service_started } }
x-harness:
  members: [r1, r2, r3]
  ports: { client: 6379 }
  ready: { send: "PING\r\n", expect: "+PONG" }
  interval: 2s
"#;

/// Tells by an SDK's means that something held, or did not.
const ASSERTS: &str = r#"tell() { echo "{\"antithesis_assert\":{\"id\":\"$1\",\"message\":\"$1\",\
\"assert_type\":\"$2\",\"must_hit\":true,\"hit\":true,\"condition\":$3,\
\"location\":{\"file\":\"add.sh\",\"begin_line\":3},\"details\":{\"n\":7}}}"; }
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("compose.yaml"), COMPOSE).expect("written");
        std::fs::create_dir_all(folder.path().join("v1/main")).expect("made");
        let folder = Self(folder);
        folder.command("first_make", "redis-cli -h r1 set made yes");
        let asserts = "tell added sometimes true >$ANTITHESIS_SDK_LOCAL_OUTPUT";
        folder.command("parallel_driver_add", &format!("{ASSERTS}{asserts}; sleep 0.2; echo added"));
        folder.command("serial_driver_look", "redis-cli -h r2 ping; exit 0");
        folder.command("anytime_ping", "redis-cli -h r3 ping; exit 0");
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, name: &str, script: &str) {
        let path = self.path().join("v1/main").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made executable");
    }

    fn wrap(&self, more: &[&str]) -> Output {
        let usual = "wrap --compose ./compose.yaml --lose-unsynced never --time-limit 8s";
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(usual.split(' ')).args(more).current_dir(self.path());
        command.output().expect("the harness starts")
    }

    fn executions(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path().join("runs/latest/tests.jsonl")).expect("executions");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

fn image() -> Option<Image> {
    let programs = ["redis-server", "redis-cli", "sh", "sleep"];
    let names = [["redis-server"], ["redis-cli"], ["sh"], ["sleep"]];
    let programs: Vec<(&str, &[&str])> =
        programs.into_iter().zip(&names).map(|(program, names)| (program, &names[..])).collect();
    Image::made(IMAGE, &programs)
}

#[test]
fn a_template_that_holds_under_proven_faults_is_valid_and_drivers_are_ended_for_the_last_command() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(_image) = image() else { return };
    let folder = Folder::new();
    folder.command("parallel_driver_stay", "echo stays; sleep 1000");
    folder.command("eventually_all", "for host in r1 r2 r3; do redis-cli -h $host ping || exit 1; done");
    let ended = folder.wrap(&["--template", "--nemesis", "kill-one", "--seed", "3"]);
    // A driver that never ends shows nothing by itself.
    assert_eq!(ended.status.code(), Some(2), "{}", text(&ended));
    folder.command("parallel_driver_stay", "echo stays; sleep 0.1; exit 0");
    let ended = folder.wrap(&["--template", "--nemesis", "kill-one", "--seed", "3"]);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
    let results = json(folder.path(), "results.json");
    for name in ["test-first", "test-parallel-driver", "test-eventually", "sometimes: added"] {
        assert_eq!(check(&results, name)["verdict"], "valid", "{name}");
    }
    let executions = folder.executions();
    let last = executions.last().expect("some");
    assert_eq!((&last["name"], &last["status"]), (&"eventually_all".into(), &0.into()), "{last}");
    assert_eq!(executions[0]["name"], "first_make");
    let log = std::fs::read_to_string(folder.path().join("runs/latest/tests.log")).expect("a log");
    assert!(log.contains("#1 OK") && log.contains(" added"), "{log}");
    let observed = json(folder.path(), "observed.json");
    assert_eq!(observed["template"]["template"], "main");
}

#[test]
fn a_command_that_fails_and_an_assertion_that_does_not_hold_are_violations() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(_image) = image() else { return };
    let folder = Folder::new();
    let lost = "tell 'nothing is lost' always false >>$ANTITHESIS_OUTPUT_DIR/sdk.jsonl; sleep 0.2";
    folder.command("parallel_driver_add", &format!("{ASSERTS}{lost}"));
    folder.command("finally_right", "echo wrong; exit 3");
    let ended = folder.wrap(&["--template"]);
    let told = text(&ended);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    let results = json(folder.path(), "results.json");
    let (command, assertion) = (check(&results, "test-finally"), check(&results, "always: nothing is lost"));
    let said = |found: &Value| found["summary"].as_str().unwrap_or_default().to_owned();
    assert!(said(command).contains("exit status 3") && said(command).contains("wrong"), "{command}");
    assert!(said(assertion).contains("add.sh:3") && said(assertion).contains("\"n\":7"), "{assertion}");
    // A template that is not there is refused when the containers are looked into.
    let ended = folder.wrap(&["--template", "other"]);
    assert_eq!(ended.status.code(), Some(254), "{}", text(&ended));
}
