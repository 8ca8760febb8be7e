//! The rules of the house that the compiler does not keep: which crate may use which, how long a file may be,
//! and what must not stand in it; which file of a crate may use which.

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Imports, Module};

/// Longest source file, in lines. One that wants to grow beyond has a second idea in it.
const MAX_LINES: usize = 800;

/// Which of our crates each crate may use, directly. An arrow permits what its target may use.
const ARROWS: [(&str, &[&str]); 27] = [
    ("node-wire", &[]),
    ("node-core", &["node-wire"]),
    ("node-log", &["node-wire"]),
    ("node-session", &["node-wire"]),
    ("node-recipes", &["node-session"]),
    ("node-client", &["node-session", "node-recipes"]),
    ("node", &["node-core", "node-log", "node-client"]),
    ("node-fuzz", &["node"]),
    ("checker", &[]),
    ("workloads", &["checker"]),
    ("zookeeper-mapping", &["workloads", "node-wire"]),
    (
        "lab-sim",
        &[
            "node-core",
            "node-log",
            "harness-core",
            "lab-mutants",
            "lab-apps",
            "harness-world",
            "workloads",
            "zookeeper-mapping",
        ],
    ),
    ("lab-apps", &["node-recipes", "harness-world"]),
    ("lab-mutants", &["node-core"]),
    ("lab-zab", &["lab-mutants", "harness-protocols"]),
    ("harness-world", &[]),
    ("harness-protocols", &["harness-world", "harness-core"]),
    ("harness-paxos", &["harness-protocols", "workloads"]),
    ("runs", &["checker", "workloads"]),
    ("nights", &["runs", "checker"]),
    ("reports", &["nights", "runs", "checker"]),
    ("harness-clock", &[]),
    ("harness-core", &["runs", "workloads"]),
    ("harness-systems", &["harness-core", "workloads"]),
    ("harness-zookeeper", &["harness-systems", "zookeeper-mapping", "node-client"]),
    ("harness-agent", &["harness-clock"]),
    (
        "harness",
        &[
            "node",
            "harness-agent",
            "lab-sim",
            "lab-zab",
            "harness-paxos",
            "harness-zookeeper",
            "workloads",
            "reports",
            "nights",
            "runs",
        ],
    ),
];

/// Packages that only some crates may use.
const CONFINED: [(&str, &[&str]); 3] = [
    ("tokio", &["node", "node-client", "harness-systems", "harness-zookeeper", "harness"]),
    ("bollard", &["harness"]),
    ("clap", &["node", "harness"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_path_buf()
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            // Runs are kept beside the sources; the crate of that name is further down.
            let is_store = name == "runs" && folder == root();
            if !name.starts_with('.') && name != "target" && !is_store {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// Package name, and its dependencies without those for tests alone.
fn manifest(path: &Path) -> Option<(String, Vec<String>)> {
    let text = fs::read_to_string(path).expect("a readable manifest");
    let mut section = "";
    let mut name = None;
    let mut dependencies = Vec::new();
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
        } else if section == "package" && line.starts_with("name") {
            name = line.split('"').nth(1).map(str::to_owned);
        } else if section == "dependencies" || section == "build-dependencies" {
            let dependency = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if !dependency.is_empty() && !dependency.starts_with('#') {
                dependencies.push(dependency.to_owned());
            }
        }
    }
    name.map(|name| (name, dependencies))
}

fn manifests() -> BTreeMap<String, Vec<String>> {
    let mut found = Vec::new();
    files(&root(), "toml", &mut found);
    found.iter().filter(|path| path.ends_with("Cargo.toml")).filter_map(|path| manifest(path)).collect()
}

fn permitted(name: &str, arrows: &BTreeMap<&str, &[&str]>, seen: &mut BTreeSet<String>) {
    for target in arrows.get(name).copied().unwrap_or_default() {
        if seen.insert((*target).to_owned()) {
            permitted(target, arrows, seen);
        }
    }
}

#[test]
fn crates_use_only_what_the_design_lets_them_use() {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let manifests = manifests();
    assert_eq!(
        manifests.len(),
        arrows.len(),
        "a crate was added or removed: say so in ARROWS and ARCHITECTURE.md"
    );
    for (name, dependencies) in &manifests {
        let mut allowed = BTreeSet::new();
        permitted(name, &arrows, &mut allowed);
        for dependency in dependencies.iter().filter(|dependency| arrows.contains_key(dependency.as_str())) {
            assert!(allowed.contains(dependency), "{name} must not use {dependency}");
        }
        for (package, users) in CONFINED {
            let uses = dependencies.iter().any(|dependency| dependency == package);
            assert!(!uses || users.contains(&name.as_str()), "{name} must not use {package}");
        }
    }
}

/// Crates that a system of anybody's is tested with. The bundled member, and what is only about it, is none
/// of their business.
const OF_ANY_SYSTEM: [&str; 10] = [
    "harness-core",
    "harness-world",
    "harness-protocols",
    "harness-paxos",
    "harness-systems",
    "workloads",
    "checker",
    "reports",
    "runs",
    "nights",
];

#[test]
fn the_bench_stands_without_the_member_and_its_laboratory() {
    let manifests = manifests();
    for name in OF_ANY_SYSTEM {
        let (mut reached, mut waiting) = (BTreeSet::new(), vec![name.to_owned()]);
        while let Some(next) = waiting.pop() {
            let ours = manifests.get(&next).into_iter().flatten();
            waiting.extend(ours.filter(|dependency| reached.insert((*dependency).clone())).cloned());
        }
        assert!(manifests.contains_key(name), "{name} is where it was");
        for other in &reached {
            let is_of_the_member = other == "node"
                || other == "zookeeper-mapping"
                || ["node-", "lab-"].iter().any(|prefix| other.starts_with(prefix));
            assert!(!is_of_the_member, "{name} reaches {other}: the binary registers what is the member's");
        }
    }
}

/// Rooms of the binary that drive whatever system they are given.
const DRIVERS: [&str; 8] =
    ["applications", "judge", "links", "load", "mechanisms", "nemesis", "run", "sim_run"];

#[test]
fn drivers_know_no_member_and_no_world() {
    for room in DRIVERS {
        let mut sources = Vec::new();
        files(&root().join("harness/src").join(room), "rs", &mut sources);
        assert!(!sources.is_empty(), "{room} is where it was");
        for path in sources {
            let text = fs::read_to_string(&path).expect("a readable file");
            for named in ["node_", "node::", "lab_", "harness_zookeeper", "zookeeper_mapping"] {
                let names = |line: &str| !line.trim_start().starts_with("//") && line.contains(named);
                assert!(!text.lines().any(names), "{} names {named}", path.display());
            }
        }
    }
}

#[test]
fn no_source_file_holds_a_second_idea() {
    let mut sources = Vec::new();
    files(&root(), "rs", &mut sources);
    assert!(sources.len() > 50, "the sources were found");
    for path in sources {
        let text = fs::read_to_string(&path).expect("a readable file");
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines", path.display());
        assert!(text.starts_with("//!"), "{} does not begin with what it is", path.display());
    }
}

/// Columns of a line of code at most.
const MAX_COLUMNS: usize = 110;

/// Lines of a function at most. A longer one has parts that want a name.
const MAX_FUNCTION: usize = 70;

#[test]
fn lines_fit_on_a_screen_and_functions_too() {
    let mut sources = Vec::new();
    files(&root(), "rs", &mut sources);
    let mut found = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).expect("a readable file");
        let mut begun: Option<(usize, &str)> = None;
        for (number, line) in (1..).zip(text.lines()) {
            if line.chars().count() > MAX_COLUMNS {
                found.push(format!("{}:{number} has more than {MAX_COLUMNS} columns", path.display()));
            }
            let indent = &line[..line.len() - line.trim_start().len()];
            if begun.is_none() && opens_function(line.trim_start()) && !line.ends_with([';', '}']) {
                begun = Some((number, indent));
            }
            let ends = |(_, of): &(usize, &str)| *of == indent && line.trim_start().starts_with('}');
            if let Some((from, _)) = begun.take_if(|begun| ends(begun))
                && number - from + 1 > MAX_FUNCTION
            {
                let lines = number - from + 1;
                found.push(format!("{}:{from}: a function of {lines} lines", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// True of the first line of a function.
fn opens_function(line: &str) -> bool {
    let mut rest = line;
    if let Some(after) = rest.strip_prefix("pub") {
        let within = after.strip_prefix('(').and_then(|inside| inside.split_once(')'));
        rest = within.map_or(after, |(_, after)| after).trim_start();
    }
    for modifier in ["const ", "async ", "unsafe ", "extern \"C\" "] {
        rest = rest.strip_prefix(modifier).unwrap_or(rest);
    }
    rest.starts_with("fn ")
}

#[test]
fn tests_wait_for_conditions_and_never_sleep() {
    let mut sources = Vec::new();
    files(&root(), "rs", &mut sources);
    let pattern = concat!("thread::", "sleep");
    for path in sources.iter().filter(|path| path.components().any(|part| part.as_os_str() == "tests")) {
        let text = fs::read_to_string(path).expect("a readable file");
        assert!(!text.contains(pattern), "{} sleeps", path.display());
    }
}

/// The folders of our crates.
fn crates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), "toml", &mut found);
    let manifests = found.iter().filter(|path| path.ends_with("Cargo.toml"));
    manifests
        .filter_map(|path| Some(path.parent()?.to_owned()))
        .filter(|folder| folder.join("src").is_dir())
        .collect()
}

fn shown(module: &Module) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("/") }
}

#[test]
fn no_files_of_a_crate_use_each_other() {
    let mut cycles = Vec::new();
    for folder in crates() {
        for cycle in Imports::of_crate(&folder.join("src")).cycles() {
            let files: Vec<String> = cycle.iter().map(shown).collect();
            cycles.push(format!("{}: {}", folder.display(), files.join(", ")));
        }
    }
    assert!(cycles.is_empty(), "move what they share to a file below them:\n{}", cycles.join("\n"));
}

#[test]
fn no_rooms_of_the_bench_use_each_other() {
    let rooms = Imports::of_crate(&root().join("harness/src")).rooms();
    let cycles: Vec<String> =
        rooms.cycles().iter().map(|cycle| cycle.iter().map(shown).collect::<Vec<_>>().join(", ")).collect();
    assert!(rooms.arrows().any(|(from, _)| shown(from) == "commands"), "the rooms were found");
    assert!(cycles.is_empty(), "move what they share to a room below them:\n{}", cycles.join("\n"));
}

/// Modules of the harness that know its command line.
const COMMAND_LINE: [&str; 2] = ["cli", "commands"];

#[test]
fn nothing_but_the_commands_knows_the_command_line() {
    let imports = Imports::of_crate(&root().join("harness/src"));
    let room = |module: &Module| module.first().cloned().unwrap_or_default();
    let knows = |room: &str| COMMAND_LINE.contains(&room);
    let arrows: Vec<String> = imports
        .arrows()
        .filter(|(from, to)| knows(&room(to)) && !knows(&room(from)))
        .map(|(from, to)| format!("{} uses {}", shown(from), shown(to)))
        .collect();
    assert!(imports.arrows().any(|(_, to)| knows(&room(to))), "the command line is where it was");
    assert!(arrows.is_empty(), "flags become a `RunOptions` first:\n{}", arrows.join("\n"));
}

/// Words of one system, which no room knows but that system's own.
const WORDS: [&str; 9] =
    ["zxid", "zxids", "znode", "znodes", "ruok", "srvr", "mntr", "four_letter_word", "cversion"];

/// Rooms that know no system. A field of the history may be named by its place there (`op.zxid`): files say
/// it so.
const PLAIN_ROOMS: [&str; 6] = [
    "harness/src",
    "harness/core/src",
    "harness/systems/src",
    "workloads/src",
    "reports/src",
    "reports/runs/src",
];

#[test]
fn no_room_but_a_systems_own_knows_its_words() {
    let mut knowing = Vec::new();
    for room in PLAIN_ROOMS {
        let mut sources = Vec::new();
        files(&root().join(room), "rs", &mut sources);
        assert!(!sources.is_empty(), "{room} is where it was");
        for path in sources {
            if path.file_name().is_some_and(|name| name == "tests.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("a readable file");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in (1..).zip(code.lines()) {
                let line = line.split("//").next().unwrap_or_default();
                if let Some(word) = says(line) {
                    knowing.push(format!("{}:{number} says {word}", path.display()));
                }
            }
        }
    }
    assert!(knowing.is_empty(), "what only one system has belongs into its folder:\n{}", knowing.join("\n"));
}

/// Words that were given up for the field's own: operator queries, handshake thread, client slot, one-off
/// client, traffic mix, swarm options, watcher and what it asks, reference model; owned resources, commands
/// in members' containers, placement.
const GIVEN_UP: [&str; 12] = [
    "desk",
    "doorman",
    "seat",
    "errand",
    "chores",
    "climate",
    "scout",
    "quest",
    "chronicle",
    "belongings",
    "insider",
    "berth",
];

/// Words that were given up in some rooms, and still stand in others: the first failure; action, log reader,
/// container specs, whoever is not trusted, request, notice, hypothetical crash.
const GIVEN_UP_IN: [(&[&str], &[&str]); 4] = [
    (&["harness/src", "reports"], &["trouble"]),
    (&["harness", "reports", "workloads"], &["deed"]),
    (&["node/src"], &["stranger"]),
    (&PLAINLY_SPOKEN, &["voice", "bodies", "stranger", "wish", "tiding", "rehearsal", "quarry"]),
];

/// Rooms that say most things in the field's words.
const PLAINLY_SPOKEN: [&str; 11] = [
    "reports",
    "harness/src/commands",
    "harness/src/host",
    "harness/src/judge",
    "harness/src/load",
    "harness/src/night",
    "harness/src/run",
    "harness/src/serve",
    "harness/src/store",
    "harness/src/worlds",
    "harness/src/wrap",
];

#[test]
fn words_that_were_given_up_do_not_come_back() {
    let mut texts = Vec::new();
    for extension in ["rs", "md"] {
        files(&root(), extension, &mut texts);
    }
    let mut found = Vec::new();
    for path in texts.iter().filter(|path| !path.ends_with("tests/tidy/main.rs")) {
        let text = fs::read_to_string(path).expect("a readable file").to_lowercase();
        let is_here = |rooms: &[&str]| rooms.iter().any(|room| path.starts_with(root().join(room)));
        let here = GIVEN_UP_IN.iter().filter(|(rooms, _)| is_here(rooms));
        let here: Vec<&str> = here.flat_map(|(_, words)| *words).copied().chain(GIVEN_UP).collect();
        for (number, line) in (1..).zip(text.lines()) {
            let words = line.split(|letter: char| !letter.is_alphanumeric());
            let given_up = |word: &&str| here.contains(&word.trim_end_matches('s')) || here.contains(word);
            found.extend(
                words.filter(given_up).map(|word| format!("{}:{number} says {word}", path.display())),
            );
        }
    }
    assert!(found.is_empty(), "CONTRIBUTING.md has the words of today:\n{}", found.join("\n"));
}

#[test]
fn no_type_of_these_rooms_is_called_told() {
    for room in PLAINLY_SPOKEN {
        let mut sources = Vec::new();
        files(&root().join(room), "rs", &mut sources);
        assert!(!sources.is_empty(), "{room} is where it was");
        for path in sources {
            let text = fs::read_to_string(&path).expect("a readable file");
            let names = ["struct", "enum", "type"].map(|kind| format!("{kind} Told"));
            assert!(!names.iter().any(|name| text.contains(name.as_str())), "{}", path.display());
        }
    }
}

/// Rooms that are one member, and nothing else.
const ROOMS_OF_THE_MEMBER: [&str; 4] = ["node/wire/src", "node/core/src", "node/log/src", "node/src"];

#[test]
fn the_member_knows_nothing_of_mutants() {
    for room in ROOMS_OF_THE_MEMBER {
        let mut sources = Vec::new();
        files(&root().join(room), "rs", &mut sources);
        assert!(!sources.is_empty(), "{room} is where it was");
        for path in sources {
            let text = fs::read_to_string(&path).expect("a readable file").to_lowercase();
            for word in ["mutant", "planted", "failpoint"] {
                assert!(!text.contains(word), "{} says {word}", path.display());
            }
        }
    }
}

/// The first word of [`WORDS`] in a line of code, fields of other values aside.
fn says(line: &str) -> Option<&'static str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    WORDS.into_iter().find(|word| {
        line.match_indices(word).any(|(at, found)| {
            let before = line[..at].chars().next_back();
            let after = line[at + found.len()..].chars().next();
            !before.is_some_and(|letter| is_part(letter) || letter == '.') && !after.is_some_and(is_part)
        })
    })
}

#[test]
fn a_word_is_found_where_it_stands_alone() {
    assert_eq!(says("let zxid = 3;"), Some("zxid"));
    assert_eq!(says("ask(address, \"ruok\")"), Some("ruok"));
    for line in ["op.zxid.is_some()", "let mzxid = 3;", "Rule::ZxidReuse", ""] {
        assert_eq!(says(line), None, "{line}");
    }
}
