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

/// Every document of the project, by its path below the root.
fn documents() -> Vec<String> {
    let mut folders = vec![PathBuf::new()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a readable folder") {
            let entry = entry.expect("a readable entry");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            let is_ours = !name.starts_with('.') && name != "target";
            // Runs are kept beside the sources; the crate of that name is further down.
            let is_store = name == "runs" && folder.as_os_str().is_empty();
            let path = folder.join(&name);
            if entry.file_type().expect("a kind of file").is_dir() {
                folders.extend(Some(path).filter(|_| is_ours && !is_store));
            } else if name.ends_with(".md") {
                found.push(path.to_str().expect("a path in UTF-8").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// What follows `#` in a link to this heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

/// Why this link of a document leads nowhere, if it does.
fn broken(document: &str, link: &str) -> Option<String> {
    if link.contains("://") {
        return None;
    }
    let (path, wanted) = link.split_once('#').unwrap_or((link, ""));
    let folder = root().join(document).parent().expect("a folder").to_owned();
    let target = if path.is_empty() { root().join(document) } else { folder.join(path) };
    if !target.exists() {
        return Some(format!("{document} leads to {path}, which is not there"));
    }
    if wanted.is_empty() {
        return None;
    }
    let text = fs::read_to_string(&target).expect("a link with an anchor leads to a text");
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let known = headings.map(|line| anchor(line.trim_start_matches('#'))).any(|known| known == wanted);
    (!known).then(|| format!("{document} leads to {link}, and there is no such heading"))
}

#[test]
fn the_readme_is_short_and_every_link_of_every_document_leads_somewhere() {
    assert!(document("README.md").lines().count() <= README_LINES);
    let documents = documents();
    assert!(documents.len() > 15, "the documents were found: {documents:?}");
    let mut found = Vec::new();
    for name in &documents {
        let text = document(name);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(links.filter_map(|link| broken(name, link)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// First cells of the rows of a document's tables.
fn first_cells(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
}

#[test]
fn exit_statuses_and_workloads_have_one_table_in_all_documents() {
    let workloads = listed("workloads");
    for name in documents() {
        let text = document(&name);
        let cells: Vec<&str> = first_cells(&text).collect();
        assert!(name == "README.md" || !cells.contains(&"exit"), "{name}: link to README.md instead");
        let rows = workloads.iter().filter(|workload| cells.contains(&format!("`{workload}`").as_str()));
        assert!(
            name == "harness/docs/run.md" || rows.count() * 2 < workloads.len(),
            "{name}: link to run.md instead"
        );
    }
}

/// What a harness says that is given such a file of a system.
fn refusal_of(name: &str, text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(name), text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    let output = command.args(["run", "--system", &format!("./{name}"), "--nodes", "3"]);
    let output = output.current_dir(folder.path()).output().expect("the harness starts");
    assert!(!output.status.success(), "{name} is refused");
    String::from_utf8(output.stderr).expect("text")
}

/// The keys that a refusal says it expected.
fn expected_keys(refusal: &str) -> Vec<String> {
    let list = refusal.split("expected one of").nth(1);
    let list = list.unwrap_or_else(|| panic!("it says which keys there are: {refusal}"));
    let list = list.lines().next().unwrap_or_default();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Files with an unknown key, one for each part of a file that has keys.
const WITH_UNKNOWN_KEYS: [(&str, &str); 7] = [
    ("top.toml", "[unheard_of]\na = 1\n"),
    ("member.toml", "[member]\nunheard_of = 1\n"),
    ("client.toml", "[client]\nunheard_of = 1\n"),
    ("probe.toml", "[member]\nready = { unheard_of = 1 }\n"),
    ("fault.toml", "[faults.a]\nunheard_of = 1\n"),
    ("harness.yaml", "services: {}\nx-harness: { unheard_of: 1 }\n"),
    ("process.yaml", "services: {}\nx-harness: { members: [], ports: { unheard_of: 1 } }\n"),
];

#[test]
fn every_key_of_a_systems_file_is_in_its_reference() {
    let document = document("harness/docs/system-file.md");
    for (name, text) in WITH_UNKNOWN_KEYS {
        let refusal = refusal_of(name, text);
        if name == "process.yaml" {
            assert!(refusal.contains("`client` or `peers`"), "{refusal}");
            continue;
        }
        let keys = expected_keys(&refusal);
        assert!(keys.len() >= 4, "{name}: {refusal}");
        let told = |key: &&String| {
            [format!("`{key}`"), format!(".{key}`"), format!("`{key}.")]
                .iter()
                .any(|form| document.contains(form))
        };
        let untold: Vec<&String> = keys.iter().filter(|key| !told(key)).collect();
        assert!(untold.is_empty(), "system-file.md says nothing of {untold:?} ({name})");
    }
}

/// Functions of workloads that only built-in systems do, so that no client by lines is asked for them.
const BUILT_IN: [&str; 7] = ["abandon", "close", "delete", "enter", "exists", "leave", "open"];

#[test]
fn every_function_of_a_client_is_in_its_reference() {
    let folder = tempfile::tempdir().expect("a folder");
    let hello = r#"echo '{"f":"hello","protocol":1,"functions":["unheard-of"]}'; cat >/dev/null"#;
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    let output = command.args(["client", "check", "--", "sh", "-c", hello]);
    let output = output.current_dir(folder.path()).output().expect("the harness starts");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).expect("text");
    let functions = said.split("those of workloads are ").nth(1);
    let functions = functions.unwrap_or_else(|| panic!("it says which functions there are: {said}"));
    let functions = functions.split(';').next().unwrap_or_default();
    let named = |name: &&str| !name.is_empty() && !BUILT_IN.contains(name);
    let functions: Vec<&str> = functions.split([',', ' ']).filter(named).collect();
    assert!(functions.len() > 10, "{functions:?}");
    let text = document("harness/docs/client-protocol.md");
    let rows: Vec<&str> = first_cells(&text).collect();
    let untold = functions.iter().filter(|name| !rows.contains(&format!("`{name}`").as_str()));
    let untold: Vec<&&str> = untold.collect();
    assert!(untold.is_empty(), "client-protocol.md has no row for {untold:?}");
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
