//! Run folders whose verdict is known are judged as they were: a promise that a run once showed broken stays
//! broken, and who was sound is not accused.
//!
//! `kept/verdicts.tsv` names the folders. A folder holds what a run wrote before anybody judged it. To keep
//! another one, copy `run.json`, `schedule.json`, `faults.jsonl`, `observed.json` and the compressed history
//! of a small run (`--compress`) and add its line.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Copies the files of a folder, which has no other folders.
fn copied(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for file in fs::read_dir(from).expect("a kept folder") {
        let file = file.expect("an entry");
        fs::copy(file.path(), to.join(file.file_name())).expect("copied");
    }
}

/// The exit status of judging a folder, and the checks that accuse.
fn judged(folder: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_harness"))
        .arg("check")
        .arg(folder)
        .output()
        .expect("the harness starts");
    let results = fs::read_to_string(folder.join("results.json"));
    let results = results.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let checks = results["checks"].as_array().expect("checks").iter();
    let accusing: Vec<&str> = checks
        .filter(|check| check["verdict"] == "invalid")
        .map(|check| check["name"].as_str().expect("a name"))
        .collect();
    (output.status.code().expect("it ends by itself"), accusing.join(","))
}

#[test]
fn run_folders_are_judged_as_they_were() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept");
    let table = fs::read_to_string(kept.join("verdicts.tsv")).expect("the table");
    let scratch = tempfile::tempdir().expect("a folder");
    let mut named = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let [name, status, accusing] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three fields: {line}")
        };
        copied(&kept.join(name), &scratch.path().join(name));
        let expected = (status.parse().expect("a status"), accusing.to_owned());
        assert_eq!(judged(&scratch.path().join(name)), expected, "{name}");
        named.push(name.to_owned());
    }
    let folders = fs::read_dir(&kept).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut folders: Vec<String> = folders
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    assert_eq!(named, folders, "each kept folder has its line, in the order of the alphabet");
}
