//! What the documents say of the code is what the code says: every number that it knows is compared, and every name that
//! it lists is there. ZOO.md is printed by a command; here its rows and its words are held against the code, and the gate
//! holds its seeds against the hunt.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness_sim::SwarmFault;

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
fn the_readme_has_as_many_bugs_and_kinds_of_faults_as_the_code() {
    let readme = document("README.md");
    let bugs = numbers_before(&readme, "bugs");
    assert!(!bugs.is_empty(), "the README says how many bugs there are, in digits");
    assert!(
        bugs.iter().all(|said| *said == harness_mutants::ALL.len()),
        "{bugs:?} bugs, but there are {}",
        harness_mutants::ALL.len()
    );
    let kinds = numbers_before(&readme, "kinds of faults");
    assert_eq!(kinds, [SwarmFault::ALL.len()]);
    for word in ["Twenty-nine", "Thirty", "Forty"] {
        assert!(!readme.contains(&format!("{word} bugs")), "numbers that change stand in digits");
    }
}

#[test]
fn the_readme_names_every_nemesis_workload_model_and_condition() {
    let readme = document("README.md");
    for what in ["nemeses", "workloads", "models", "conditions"] {
        let names = listed(what);
        assert!(names.len() >= 4, "harness list {what}: {names:?}");
        let unnamed: Vec<&String> =
            names.iter().filter(|name| *name != "none" && !readme.contains(name.as_str())).collect();
        if what == "conditions" {
            // Those of transactions are told together: the strongest and the weakest by name.
            assert!(readme.contains("five weaker ones down to read-uncommitted"));
            // Two of the five are named elsewhere: the last, and `serializable` in an example.
            assert_eq!(unnamed.len(), 5 - 2, "five weaker ones: {unnamed:?}");
        } else {
            assert!(unnamed.is_empty(), "the README does not name {unnamed:?} of `harness list {what}`");
        }
    }
}

#[test]
fn the_zoo_has_a_row_for_every_bug_in_its_order_and_its_last_words_are_true() {
    let zoo = document("harness/sim/ZOO.md");
    let rows: Vec<Vec<&str>> = zoo
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .skip(1)
        .map(|row| row.split(" | ").collect())
        .collect();
    let told: Vec<(&str, &str)> = rows.iter().map(|row| (row[0], row[1])).collect();
    let known: Vec<(&str, &str)> =
        harness_mutants::ALL.iter().map(|bug| (bug.name(), bug.origin())).collect();
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
    let zoo = document("harness/sim/ZOO.md");
    assert_eq!(
        preface(&zoo),
        preface(&printed),
        "print it again: harness selftest --seeds 1000 --format markdown"
    );
    assert_eq!(zoo.lines().last(), printed.lines().last());
}
