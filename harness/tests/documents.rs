//! What the documents say of the code is what the code says: every number that it knows is compared, and
//! every name that it lists is there. ZOO.md is printed by a command; here its rows and its words are held
//! against the code, and the gate holds its seeds against the hunt.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab_sim::SwarmFault;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_path_buf()
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn harness(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    let output = command.args(arguments).current_dir(folder.path()).output().expect("the harness starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The numbers that stand before these words, wherever they stand. A line break is a space.
fn numbers_before(text: &str, words: &str) -> Vec<usize> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let before = text
        .match_indices(words)
        .filter(|(at, _)| !text[at + words.len()..].starts_with(char::is_alphanumeric));
    before
        .filter_map(|(at, _)| text[..at].trim_end().rsplit(' ').next().map(str::to_owned))
        .filter_map(|word| word.replace(',', "").parse().ok())
        .collect()
}

/// The first words of the lines that a list prints.
fn listed(what: &str) -> Vec<String> {
    let names = |line: &str| {
        let indented = line.starts_with(' ');
        line.split_whitespace().next().filter(|_| !indented).map(str::to_owned)
    };
    harness(&["list", what]).lines().filter_map(names).collect()
}

#[test]
fn the_documents_have_as_many_bugs_and_kinds_of_faults_as_the_code() {
    let readme = document("README.md");
    let simulate = document("harness/docs/simulate.md");
    let bugs = numbers_before(&readme, "bugs");
    assert!(!bugs.is_empty(), "the README says how many bugs there are, in digits");
    assert!(
        bugs.iter().all(|said| *said == lab_mutants::ALL.len()),
        "{bugs:?} bugs, but there are {}",
        lab_mutants::ALL.len()
    );
    let kinds = numbers_before(&simulate, "kinds of faults");
    assert_eq!(kinds, [SwarmFault::ALL.len()]);
    for word in ["Twenty-nine", "Thirty", "Forty"] {
        assert!(!readme.contains(&format!("{word} bugs")), "numbers that change stand in digits");
    }
}

#[test]
fn the_documents_name_every_nemesis_workload_model_and_condition() {
    let (run, check) = (document("harness/docs/run.md"), document("harness/docs/check.md"));
    for (what, told) in [("nemeses", &run), ("workloads", &run), ("models", &check), ("conditions", &check)] {
        let names = listed(what);
        assert!(names.len() >= 4, "harness list {what}: {names:?}");
        let unnamed: Vec<&String> =
            names.iter().filter(|name| *name != "none" && !told.contains(name.as_str())).collect();
        if what == "conditions" {
            // Those of transactions are told together: the strongest and the weakest by name.
            assert!(told.contains("five weaker ones down to read-uncommitted"));
            // Two of the five are named elsewhere: the last, and `serializable` in an example.
            assert_eq!(unnamed.len(), 5 - 2, "five weaker ones: {unnamed:?}");
        } else {
            assert!(unnamed.is_empty(), "no document names {unnamed:?} of `harness list {what}`");
        }
    }
}

#[test]
fn the_zoo_has_a_row_for_every_bug_in_its_order_and_its_last_words_are_true() {
    let zoo = document("node/lab/sim/ZOO.md");
    let rows: Vec<Vec<&str>> = zoo
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .skip(1)
        .map(|row| row.split(" | ").collect())
        .collect();
    let told: Vec<(&str, &str)> = rows.iter().map(|row| (row[0], row[1])).collect();
    let known: Vec<(&str, &str)> = lab_mutants::ALL.iter().map(|bug| (bug.name(), bug.origin())).collect();
    assert_eq!(told, known, "print it again: harness selftest --seeds 1000 --format markdown");
    let found = rows.iter().filter(|row| row[2] != "not found" || row[4] != "not found").count();
    let outside = rows.iter().filter(|row| row[4] != "not found").count();
    let summary = format!("{found} of {} bugs found, ", rows.len());
    assert!(
        zoo.contains(&summary) && zoo.contains(&format!(" {outside} without looking inside;")),
        "{summary}"
    );
}

#[test]
fn the_words_around_the_zoo_are_those_of_the_command() {
    let printed = harness(&["selftest", "--quick", "--only", "commit-alone", "--format", "markdown"]);
    let preface = |text: &str| text.split("| bug |").next().unwrap_or_default().to_owned();
    let zoo = document("node/lab/sim/ZOO.md");
    assert_eq!(
        preface(&zoo),
        preface(&printed),
        "print it again: harness selftest --seeds 1000 --format markdown"
    );
    assert_eq!(zoo.lines().last(), printed.lines().last());
}

/// The longest that the README may be: a newcomer reads it to its end.
const README_LINES: usize = 130;

#[test]
fn the_readme_is_short_and_what_it_leads_to_is_there() {
    let leading =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "node/README.md", "reports/runs/FOLDER.md"];
    let run = ["run", "simulate", "check", "wrap"].map(|name| format!("harness/docs/{name}.md"));
    assert!(document("README.md").lines().count() <= README_LINES);
    for name in leading.into_iter().chain(run.iter().map(String::as_str)) {
        let text = document(name);
        let folder = root().join(name).parent().expect("a folder").to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            let is_ours = !path.is_empty() && !path.contains("://");
            assert!(!is_ours || folder.join(path).exists(), "{name} leads to {path}, which is not there");
        }
    }
}

/// Every key of a JSON value, wherever it stands. What each check forms by itself, and what has a name of its
/// own as its key, is left out.
fn keys(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    const NAMED: [&str; 9] = [
        "evidence",
        "versions",
        "measured",
        "labels",
        "kinds",
        "drawn",
        "settings",
        "latency",
        "by_function",
    ];
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                found.insert(key.clone());
                match value {
                    serde_json::Value::Object(named) if NAMED.contains(&key.as_str()) => {
                        named.values().filter(|_| key != "evidence").for_each(|value| keys(value, found));
                    }
                    serde_json::Value::Array(_) if key == "evidence" => {}
                    value => keys(value, found),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_field_of_a_run_folder_is_described() {
    let document = document("reports/runs/FOLDER.md");
    let folder = tempfile::tempdir().expect("a folder");
    let run = "run --cluster sim --nemesis kill-leader,partition-oneway,clock-bump --overlap --time-limit \
               12s --observers 1 --seed 5 --name fields --store runs";
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    let words = run.split_ascii_whitespace();
    let output = command.args(words).current_dir(folder.path()).output().expect("the harness starts");
    assert!(output.status.success(), "{output:?}");
    let made = folder.path().join("runs/latest");
    for file in
        ["run.json", "schedule.json", "history.jsonl", "faults.jsonl", "observed.json", "results.json"]
    {
        let text = fs::read_to_string(made.join(file)).expect("a file of the run");
        let mut found = BTreeSet::new();
        if file.ends_with(".jsonl") {
            let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
            lines.for_each(|line| keys(&line, &mut found));
        } else {
            keys(&serde_json::from_str(&text).expect("JSON"), &mut found);
        }
        let section = document.split(&format!("\n## {file}\n")).nth(1).expect("a section of its own");
        let section = section.split("\n## ").next().unwrap_or_default();
        let told = |key: &&String| section.contains(&format!("`{key}`"));
        let untold: Vec<&String> = found.iter().filter(|key| !told(key)).collect();
        assert!(found.len() > 5 && untold.is_empty(), "FOLDER.md says nothing of {untold:?} in {file}");
    }
}
