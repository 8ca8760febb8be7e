//! What is wrong is refused with a message that says what to do, with the right status, and leaves nothing.

use std::path::Path;
use std::process::{Command, Output};

fn harness(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the harness starts")
}

fn refused(folder: &Path, arguments: &[&str], status: i32, advice: &str) {
    let output = harness(folder, arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {message}");
    assert!(message.contains(advice), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
}

#[test]
fn bad_input_is_refused_with_254_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let table: [(&[&str], &str); 33] = [
        (&["run", "--nemesis", "partition-leadr"], "did you mean `partition-leader`?"),
        (&["run", "--workload", "registre"], "did you mean `register`?"),
        (&["run", "--cluster", "dcoker"], "did you mean `docker`?"),
        (&["run", "--system", "zookeper"], "did you mean `zookeeper`?"),
        (&["run", "--mutant", "commit-alon"], "did you mean `commit-alone`?"),
        (&["completions", "tcsh"], "bash"),
        (&["run", "--nodes", "0"], "at least one member"),
        (&["run", "--nemesis", "partition-leader", "--nodes", "1"], "needs at least 2 nodes"),
        (&["run", "--cluster", "sim", "--base-port", "9000"], "Leave it out"),
        (&["run", "--time-limit", "30"], "write `30s`"),
        (&["run", "--nodes", "many"], "--nodes"),
        (&["run", "--no-such-flag"], "--no-such-flag"),
        (&["frobnicate"], "frobnicate"),
        (&[], "Usage"),
        (&["list", "nemises"], "did you mean `nemeses`?"),
        (&["check", "nowhere"], "nowhere can't be read"),
        (&["check", "."], "no run folder"),
        (&["run", "--fail-fast", "--workload", "set"], "the workload set is judged at its end only"),
        (&["list", "condition-s"], "did you mean `conditions`?"),
        (&["confirm", "nowhere", "nowhere"], "nowhere is no witness"),
        (&["report", "."], "no results.json"),
        (&["report", "nowhere"], "nowhere does not exist"),
        (&["replay", "."], "no run folder"),
        (&["sim"], "name what to live through"),
        (&["sim", "--seeds", "12"], "write `0..10000`"),
        (&["sim", "--seeds", "0.."], "--time-limit 8h"),
        (&["sim", "--seeds", "0..9", "--trace"], "name it with --seed N"),
        (&["sim", "--seed", "1", "--mutant", "commit-alon"], "did you mean `commit-alone`?"),
        (&["sim", "--seed", "1", "--jobs", "0"], "at a time"),
        (&["sim", "--script", "nowhere"], "nowhere can't be read"),
        (&["selftest", "--only", "commit-alon"], "did you mean `commit-alone`?"),
        (&["selftest", "--cluster", "moon"], "in the simulator (sim)"),
        (&["selftest", "--seeds", "0"], "at most"),
    ];
    for (arguments, advice) in table {
        refused(folder.path(), arguments, 254, advice);
    }
    let left = std::fs::read_dir(folder.path()).expect("readable").count();
    assert_eq!(left, 0, "something was left behind");
}

#[test]
fn damaged_files_of_a_run_folder_are_wrong_usage_and_no_failure_of_the_harness() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    std::fs::create_dir(&run).expect("a folder");
    for name in ["run.json", "results.json", "schedule.json"] {
        std::fs::write(run.join(name), b"{\"name\": \"half a fi").expect("a damaged file");
    }
    std::fs::write(run.join("history.jsonl"), b"").expect("a history");
    for command in ["check", "report", "replay"] {
        refused(folder.path(), &[command, "run"], 254, "run.json");
    }
}

#[test]
fn files_without_end_devices_and_pipes_are_refused_whatever_reads_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    std::fs::create_dir(&run).expect("a folder");
    let pipe = folder.path().join("pipe.toml");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .expect("a pipe");
    let sparse = |path: &Path| {
        std::fs::File::create(path).and_then(|file| file.set_len(3 << 30)).expect("a long file");
    };
    for name in ["long.toml", "long.yaml", "long.script", "nights.jsonl"] {
        sparse(&folder.path().join(name));
    }
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.yaml")).expect("a link");
    let what = "a pipe or a device";
    let long = "it has 3072 MiB, and at most";
    for (arguments, advice) in [
        (&["night", "/dev/zero"][..], what),
        (&["night", "pipe.toml"], what),
        (&["night", "long.toml"], long),
        (&["run", "--system", "./pipe.toml"], what),
        (&["run", "--system", "./zero.yaml"], what),
        (&["run", "--system", "./long.yaml"], long),
        (&["run", "--system", "./long.toml"], long),
        (&["sim", "--script", "long.script"], long),
        (&["sim", "--script", "/dev/zero"], what),
        (&["selftest", "--against", "/dev/zero", "--only", "commit-alone", "--seeds", "1"], what),
        (&["confirm", "/dev/zero", "/dev/zero"], what),
        (&["report", "."], long),
        (&["merge", "all", "."], long),
    ] {
        refused(folder.path(), arguments, 254, advice);
    }
    for name in ["run.json", "results.json", "schedule.json", "observed.json", "faults.jsonl"] {
        std::fs::write(run.join(name), "{}").expect("written");
    }
    std::fs::write(run.join("history.jsonl"), b"").expect("a history");
    for command in ["check", "report", "replay"] {
        sparse(&run.join("run.json"));
        refused(folder.path(), &[command, "run"], 254, long);
        std::fs::remove_file(run.join("run.json")).expect("removed");
        std::os::unix::fs::symlink("/dev/zero", run.join("run.json")).expect("a link");
        let advice = if command == "report" { what } else { "no run folder" };
        refused(folder.path(), &[command, "run"], 254, advice);
        std::fs::remove_file(run.join("run.json")).expect("removed");
    }
}

#[test]
fn list_without_a_word_lists_what_can_be_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = harness(folder.path(), &["list"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("harness list nemeses") && text.contains("harness list workloads"), "{text}");
}

#[test]
fn the_first_build_is_not_silent() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cargo/config.toml");
    let config = std::fs::read_to_string(config).expect("cargo's configuration");
    let alias = config.lines().find(|line| line.starts_with("harness =")).expect("the alias");
    assert!(
        !alias.contains("--quiet") && !alias.contains(" -q"),
        "cargo's progress is all that is seen: {alias}"
    );
}

#[test]
fn a_store_beneath_a_regular_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), b"x").expect("a file");
    refused(folder.path(), &["run", "--store", "file/runs"], 254, "is a regular file");
    assert_eq!(std::fs::read(folder.path().join("file")).expect("still there"), b"x");
}

#[test]
fn a_busy_port_is_refused_by_name_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let squatter = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = squatter.local_addr().expect("bound").port();
    let base = port.to_string();
    refused(folder.path(), &["run", "--base-port", &base], 254, &format!("port {port} can't be used"));
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn help_and_version_are_answers_and_not_failures() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"]] {
        let output = harness(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty());
    }
    let help = harness(folder.path(), &["--help"]).stdout;
    let help = String::from_utf8_lossy(&help).into_owned();
    assert!(
        ["member", "links", "clock-target"].iter().all(|hidden| !help.contains(hidden)),
        "hidden commands are shown: {help}"
    );
}

#[test]
fn too_few_open_files_are_named_before_anything_is_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let limited = |arguments: &str| {
        Command::new("sh")
            .args(["-c", &format!("ulimit -n 64 && exec \"$0\" {arguments}"), env!("CARGO_BIN_EXE_harness")])
            .current_dir(folder.path())
            .output()
            .expect("a shell starts")
    };
    let output = limited("run --cluster process");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(254), "{message}");
    assert!(message.contains("64 files open") && message.contains("ulimit -Hn 214"), "{message}");
    let found = String::from_utf8_lossy(&limited("doctor").stdout).into_owned();
    assert!(found.contains("BAD  open files"), "{found}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0, "something was left behind");
}

#[test]
fn help_names_what_flags_take_and_no_line_of_it_is_wider_than_a_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = harness(folder.path(), &["run", "--help"]).stdout;
    let help = String::from_utf8_lossy(&help).into_owned();
    for name in [
        "ephemeral",
        "docker",
        "partition-ring",
        "ack-before-fsync",
        "etcd",
        "mixed:N",
        "--observers",
        "cached-reads",
        "--publish",
    ] {
        assert!(help.contains(name), "{name}: {help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}

#[test]
fn shells_and_man_are_told_of_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = harness(folder.path(), &["completions", "bash"]).stdout;
    assert!(String::from_utf8_lossy(&script).contains("selftest"));
    let page = harness(folder.path(), &["man"]).stdout;
    assert!(String::from_utf8_lossy(&page).contains(".TH harness"));
    assert_eq!(harness(folder.path(), &["man", "pages"]).status.code(), Some(0));
    assert!(folder.path().join("pages/harness-replay.1").is_file());
}

#[test]
fn lists_name_what_can_be_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (what, name) in [
        ("nemeses", "pause-leader"),
        ("nemeses", "partition-ring"),
        ("faults", "clock"),
        ("workloads", "register"),
        ("models", "cas-register"),
        ("faults", "partition"),
        ("mutants", "ack-before-fsync"),
    ] {
        let output = harness(folder.path(), &["list", what]);
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&output.stdout).contains(name), "{what}");
    }
}

/// A true history of one write and one read, as the harness records it but for its trailer.
const CUT_SHORT: &str = r#"{"index":0,"process":0,"type":"invoke","f":"write","key":0,"value":1,"time":1}
{"index":1,"process":0,"type":"ok","f":"write","key":0,"value":1,"time":2,"node":1,"version":1}
{"index":2,"process":1,"type":"invoke","f":"read","key":0,"value":null,"time":3,"due":3,"node":1}
{"index":3,"process":1,"type":"ok","f":"read","key":0,"value":1,"time":4,"node":1,"version":1}
"#;

#[test]
fn a_history_without_its_trailer_is_unknown_and_a_violation_in_it_still_convicts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.jsonl");
    std::fs::write(&path, CUT_SHORT).expect("written");
    let output = harness(folder.path(), &["check", "history.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("trailer is missing"));
    std::fs::write(
        &path,
        CUT_SHORT.replace("\"f\":\"read\",\"key\":0,\"value\":1,", "\"f\":\"read\",\"key\":0,\"value\":7,"),
    )
    .expect("written");
    let output = harness(folder.path(), &["check", "history.jsonl"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_history_from_elsewhere_needs_no_trailer() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = r#"{"process":0,"type":"invoke","f":"write","value":1}
{"process":0,"type":"ok","f":"write","value":1}
{"process":0,"type":"invoke","f":"read","value":null}
{"process":0,"type":"ok","f":"read","value":1}
"#;
    std::fs::write(folder.path().join("plain.jsonl"), lines).expect("written");
    let output = harness(folder.path(), &["check", "plain.jsonl", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["verdict"], "valid");
}

#[test]
fn a_file_that_is_no_history_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("notes.txt"), "dear diary\n").expect("written");
    refused(folder.path(), &["check", "notes.txt"], 254, "line 1");
}

#[test]
fn clean_finds_nothing_where_there_is_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = harness(folder.path(), &["clean"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "nothing was left behind\n");
}
