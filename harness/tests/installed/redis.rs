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
        ("redis-server", &["redis-server"][..]),
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
    if which("redis-server").is_none() {
        eprintln!("skipped: redis-server is not installed");
        return;
    }
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

/// A client that needs a shell and redis-cli alone.
const CLIENT: &str = r#"
echo '{"f":"hello","protocol":1,"functions":["add","read"]}'
echo "members: $HARNESS_MEMBERS" >&2
while read -r line; do
  rest=${line#*'"id":'}; id=${rest%%,*}
  rest=${line#*'"f":"'}; f=${rest%%'"'*}
  rest=${line#*'"key":'}; key=${rest%%,*}
  rest=${line#*'"value":'}; value=${rest%%,*}
  rest=${line#*'"member":"'}; member=${rest%%'"'*}
  ask="redis-cli -h ${member%:*} -p ${member##*:}"
  if [ "$f" = add ]; then said=$($ask sadd "$key" "$value" 2>&1); else said=$($ask smembers "$key" 2>&1); fi
  case $said in
    'Could not connect'*) answer='"type":"fail","error":"not-sent"' ;;
    READONLY*|MASTERDOWN*|LOADING*) answer='"type":"fail","error":"refused"' ;;
    *[!0-9[:space:]]*) answer='"type":"info"' ;;
    *)
      if [ "$f" = add ]; then answer='"type":"ok"'; else
        elements=; for one in $said; do elements=$elements${elements:+,}$one; done
        answer='"type":"ok","value":['$elements']'
      fi ;;
  esac
  echo "{\"id\":$id,$answer}"
done
"#;

/// The client is a service: its processes are commands in one container, and know members by their names.
#[test]
fn a_client_that_is_a_service_runs_in_its_container_and_goes_with_the_run() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(image) = image() else { return };
    let folder = begun();
    std::fs::write(folder.path().join("client.sh"), CLIENT).expect("written");
    let file = folder.path().join("compose.yaml");
    let written = std::fs::read_to_string(&file).expect("a file");
    let service = "\nservices:\n  app:\n    image: ${REDIS_IMAGE}\n    \
                   volumes: [\"./client.sh:/client.sh:ro\"]\n    depends_on: [redis1]\n";
    let here = r#"client: { command: ["python3", "redis_client.py"] }"#;
    let there = r#"client: { service: app, command: ["sh", "/client.sh"], functions: [add, read] }"#;
    let described = written.replacen("\nservices:\n", service, 1).replace(here, there);
    std::fs::write(&file, &described).expect("written");
    // What is silent at a member that is stopped is killed, and replaced.
    let faults = ["--nemesis", "partition-one,pause-one", "--interval", "8s", "--time-limit", "20s"];
    let load = ["--workload", "set", "--rate", "60", "--concurrency", "6", "--keys", "2"];
    let run = [&["run", "--system", "./compose.yaml"], &load[..], &faults].concat();
    let output = harness(folder.path(), image.0, &run);
    // A machine too busy to show anything is no violation.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    assert!(text(&output).contains("depends_on: of the client's service is left out"), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    assert_eq!(results["faults"]["verified"], 2, "{}", results["faults"]);
    let latest = folder.path().join("runs/latest");
    let log = std::fs::read_to_string(latest.join("clients/1.log")).expect("what it wrote to stderr");
    assert_eq!(log.trim(), "members: n1=redis1:6379,n2=redis2:6379,n3=redis3:6379");
    let history = std::fs::read_to_string(latest.join("history.jsonl")).expect("a history");
    assert!(history.matches(r#""type":"ok""#).count() > 100, "{}", text(&output));
    let of_it = format!("ancestor={}", image.0);
    let left = Command::new("docker").args(["ps", "-aq", "--filter", &of_it]).output();
    assert!(left.expect("docker").stdout.is_empty(), "the container goes with the run");
    for (changed, why) in [
        (described.replace("service: app", "service: redis1"), "redis1 is no service beside the members"),
        (described.replace(", functions: [add, read]", ""), "client.functions: write what its hello"),
        (described.replace("[add, read]", "[add, read, cas]"), "client.functions has cas"),
        (described.replace("\"/client.sh\"]", "\"/nowhere.sh\"]"), "nowhere.sh"),
    ] {
        std::fs::write(&file, changed).expect("written");
        let refused = harness(folder.path(), image.0, &run);
        assert!(matches!(refused.status.code(), Some(254 | 255)), "{why}: {}", text(&refused));
        assert!(text(&refused).contains(why), "{why}: {}", text(&refused));
    }
}

/// A fault of one's own: a file in the member's volume, which its commands bring, see and take away there.
const SLOW: &str = r#"
  faults:
    slow:
      exec: ["sh", "-c", 'echo "{fault} of n{id} at {client}" >/data/slow; echo brought for $$ID']
      heal: ["sh", "-c", ": >/data/slow"]
      seen: ["sh", "-c", "test -s /data/slow"]
"#;

#[test]
fn a_fault_of_ones_own_runs_in_the_members_container_and_is_seen_there() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(image) = image() else { return };
    let folder = begun();
    let file = folder.path().join("compose.yaml");
    let written = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, format!("{}{SLOW}", written.trim_end())).expect("written");
    let faults = ["--nemesis", "slow,kill-one", "--interval", "8s", "--time-limit", "20s"];
    let load = ["--workload", "set", "--rate", "150", "--seed", "3"];
    let run = [&["run", "--system", "./compose.yaml"], &load[..], &faults].concat();
    let output = harness(folder.path(), image.0, &run);
    // A machine too busy to show anything is no violation.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    assert_eq!(json(folder.path(), "results.json")["faults"]["verified"], 2, "{}", text(&output));
    let seen = std::fs::read_to_string(folder.path().join("runs/latest/faults.jsonl")).expect("faults");
    for words in ["before it n", "says yes; asked beside it, n", "says no"] {
        assert!(seen.contains(words), "{words}: {seen}");
    }
}
