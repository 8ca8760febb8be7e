//! Histories whose verdict is known, read in every format and judged by every member of the portfolio.
//!
//! Those in `tests/histories` are this project's own and always judged; their names begin with the verdict. Those of
//! Porcupine and Knossos are judged when they are there: in the folder that `CHECKER_HISTORIES` names, else in
//! `../shared/histories` beside the workspace, with a table `verdicts.tsv` of file, model and verdict.
//!
//! A member may give up, which is printed; a member that disagrees is wrong.

#![expect(clippy::print_stderr, reason = "says how many were judged")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use checker::budget::Meter;
use checker::history::{Loaded, load};
use checker::register::zones::{self, Zones};
use checker::register::{Found, Problem, dfs, frontier, order, witness};
use checker::verdict::Verdict;
use checker::{Budget, linearizable};

/// Steps that a member may take before it gives up. The plain search prunes nothing and is lost early.
const STEPS: u64 = 2_000_000;
const PLAIN_STEPS: u64 = 300_000;

fn read(path: &Path) -> Loaded {
    let loaded = File::open(path).map_err(Into::into).and_then(|file| load(BufReader::new(file)));
    let loaded = loaded.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(loaded.complete, "{}: {:?}", path.display(), loaded.problem);
    loaded
}

/// What each member says of one register: whether it is linearizable, or nothing. Those that do not claim it are
/// absent.
fn members(problem: &Problem) -> Vec<(&'static str, Option<bool>)> {
    let mut said = Vec::new();
    match zones::test(problem) {
        Zones::Refuted(_) => said.push(("zones", Some(false))),
        Zones::Order(order) if order::verify(problem, &order).is_ok() => said.push(("zones", Some(true))),
        Zones::Order(_) | Zones::Ambiguous => {}
    }
    if witness::by_version(problem).is_some_and(|order| order::verify(problem, &order).is_ok()) {
        said.push(("witness", Some(true)));
    }
    let search = |steps, run: fn(&Problem, &mut Meter) -> Found| match run(
        problem,
        &mut Meter::new(&Budget::new(steps, 256 << 20)),
    ) {
        Found::Order => Some(true),
        Found::NoOrder { .. } => Some(false),
        Found::GaveUp(_) => None,
    };
    said.push(("frontier", search(STEPS, frontier::search)));
    said.push(("depth first", search(STEPS, dfs::reduced)));
    said.push(("plain depth first", search(PLAIN_STEPS, dfs::plain)));
    said
}

#[derive(Default)]
struct Tally {
    files: usize,
    operations: usize,
    /// Of each member: verdicts given, files on which it gave up.
    members: BTreeMap<&'static str, (usize, Vec<String>)>,
    wrong: Vec<String>,
}

impl Tally {
    fn judge(&mut self, path: &Path, expected: bool) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let history = read(path).history;
        self.files += 1;
        self.operations += history.ops().len();
        for (key, ops) in history.by_key() {
            for (member, linearizable) in members(&Problem::of(&ops)) {
                let (given, gave_up) = self.members.entry(member).or_default();
                match linearizable {
                    Some(linearizable) => {
                        *given += 1;
                        if linearizable != expected {
                            self.wrong.push(format!("{name}, key {key}: {member} says {linearizable}"));
                        }
                    }
                    None => gave_up.push(name.clone()),
                }
            }
        }
        let verdict = linearizable::check(&history, &Budget::default()).verdict;
        let (given, _) = self.members.entry("portfolio").or_default();
        *given += 1;
        if verdict != if expected { Verdict::Valid } else { Verdict::Invalid } {
            self.wrong.push(format!("{name}: the portfolio says {verdict}"));
        }
    }

    fn conclude(&self, what: &str) {
        eprintln!("{what}: {} files, {} operations", self.files, self.operations);
        for (member, (given, gave_up)) in &self.members {
            let lost = if gave_up.is_empty() {
                String::new()
            } else {
                format!(", gave up on {}", gave_up.join(" "))
            };
            eprintln!("  {member}: {given} verdicts{lost}");
        }
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
    }
}

#[test]
fn our_own_histories_have_the_verdict_that_their_name_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut tally = Tally::default();
    for path in &paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let expected = name.starts_with("valid-");
        assert!(expected || name.starts_with("invalid-"), "{name}");
        tally.judge(path, expected);
    }
    assert!(tally.files >= 10);
    tally.conclude("our own");
}

#[test]
fn the_known_verdicts_on_registers_are_agreed_with() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/histories");
    let folder = std::env::var_os("CHECKER_HISTORIES").map_or(beside, PathBuf::from);
    let Ok(table) = fs::read_to_string(folder.join("verdicts.tsv")) else {
        eprintln!("no known verdicts at {}: none judged", folder.display());
        return;
    };
    let mut tally = Tally::default();
    for line in table.lines().skip(1) {
        let [file, model, verdict] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line} is no line of the table")
        };
        if model.contains("register") {
            tally.judge(&folder.join(file), verdict == "ok");
        }
    }
    assert!(tally.files > 0, "the table names no register");
    tally.conclude("known verdicts");
}
