//! Histories whose verdict is known, read in every format and judged by every member of the portfolios.
//!
//! Those in `tests/histories` are this project's own and always judged; their names begin with the verdict.
//! Those of Porcupine and Knossos are judged when they are there: in the folder that `CHECKER_HISTORIES`
//! names, else in `../shared/histories` beside the workspace, with a table `verdicts.tsv` of file, model and
//! verdict. Registers are judged twice: by what they know of their own, and as any other object by the
//! searches that take every model.
//!
//! A member may give up, which is printed; a member that disagrees is wrong. With `CHECKER_TABLE` set, each
//! file's line is printed.

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use checker::budget::Meter;
use checker::history::{Loaded, load, records};
use checker::model::keyed::Keyed;
use checker::model::kv::Kv;
use checker::model::mutex::Mutex;
use checker::model::register::Register;
use checker::model::{Call, Model, pair};
use checker::register::blocks::{self, Tested};
use checker::register::{Problem, order, witness};
use checker::verdict::Verdict;
use checker::{Budget, linearizable, search};

/// Steps that a search may take before it gives up.
const STEPS: u64 = 20_000_000;
const MEMORY_BYTES: usize = 256 << 20;

/// Who judged, and what it said: whether the history is linearizable, or nothing. Members that do not claim a
/// history are absent.
type Said = Vec<(&'static str, Option<bool>)>;

/// Says it past the test's captured output: how many histories were judged is worth knowing of a green run
/// too.
fn say(what: Arguments<'_>) {
    // Nobody is there to hear that nobody listens.
    let _ = writeln!(std::io::stderr(), "{what}");
}

fn decided(verdict: Verdict) -> Option<bool> {
    match verdict {
        Verdict::Valid => Some(true),
        Verdict::Invalid => Some(false),
        Verdict::Unknown => None,
    }
}

fn open(path: &Path) -> BufReader<File> {
    BufReader::new(File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn read(path: &Path) -> Loaded {
    let loaded = load(open(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(loaded.extent.is_whole(), "{}: {:?}", path.display(), loaded.problem);
    loaded
}

/// The members that know registers, on one of them.
fn of_register(problem: &Problem) -> Said {
    let mut said = Vec::new();
    match blocks::test(problem) {
        Tested::Refuted(_) => said.push(("blocks", Some(false))),
        Tested::Order(order) if order::verify(problem, &order).is_ok() => said.push(("blocks", Some(true))),
        Tested::Order(_) | Tested::Ambiguous => {}
    }
    if witness::by_version(problem).is_some_and(|order| order::verify(problem, &order).is_ok()) {
        said.push(("witness", Some(true)));
    }
    said
}

/// All that know registers, on a history of several: a history has an order when each register has.
fn of_registers(path: &Path) -> Said {
    let history = read(path).history;
    let mut said: BTreeMap<&'static str, Option<bool>> = BTreeMap::new();
    for (_, ops) in history.by_key() {
        for (member, linearizable) in of_register(&Problem::of(&ops)) {
            let all = said.entry(member).or_insert(Some(true));
            *all = match (*all, linearizable) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (None, _) | (_, None) => None,
                _ => Some(true),
            };
        }
    }
    let judged = linearizable::check(&history, &Budget::default());
    let mut said: Said = said.into_iter().collect();
    said.push(("portfolio", decided(judged.verdict)));
    said
}

type Member<M> = fn(&M, &[&Call<<M as Model>::Op>], &mut Meter) -> search::Found;

/// The searches that take every model, and their portfolio, once with the order that proves its verdict.
fn of_any<M: Model + Sync>(model: &M, path: &Path) -> Said
where
    M::Op: Send + Sync,
{
    let calls =
        pair(model, records(open(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    let calls = calls.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut parts: BTreeMap<Option<u64>, Vec<&Call<M::Op>>> = BTreeMap::new();
    calls.iter().for_each(|call| parts.entry(model.part(&call.op)).or_default().push(call));
    let all = |member: Member<M>| {
        let verdicts = parts.values().map(|calls| {
            match member(model, calls, &mut Meter::new(&Budget::new(STEPS, MEMORY_BYTES))) {
                search::Found::Order(_) => Verdict::Valid,
                search::Found::NoOrder { .. } => Verdict::Invalid,
                search::Found::GaveUp { .. } => Verdict::Unknown,
            }
        });
        decided(verdicts.fold(Verdict::Valid, Verdict::merge))
    };
    let portfolio = |threads, witness| {
        let judged = search::judge(model, &calls, &Budget::default(), threads, witness);
        assert!(judged.result.counterexample.is_none_or(|shown| shown.rechecked), "{}", path.display());
        decided(judged.result.verdict)
    };
    vec![
        (
            "any model: frontier",
            all(|model, calls, meter| search::frontier::search(model, calls, false, meter)),
        ),
        ("any model: depth first", all(search::depth_first::search)),
        ("any model: portfolio", portfolio(1, false)),
        ("any model: portfolio, with proof", portfolio(2, true)),
    ]
}

#[derive(Default)]
struct Tally {
    files: usize,
    /// Of each member: verdicts given, files on which it gave up.
    members: BTreeMap<&'static str, (usize, Vec<String>)>,
    wrong: Vec<String>,
}

impl Tally {
    fn judge(&mut self, path: &Path, model: &str, expected: bool) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let said = match model.split('(').next().unwrap_or_default() {
            "cas-register" | "etcd-register" => {
                let register = Register::default().with_refusals().with_reads_of_nothing();
                [of_registers(path), of_any(&register, path)].concat()
            }
            "kv" if model.contains("whole") => of_any(&Keyed::whole(Kv::default()), path),
            "kv" => of_any(&Keyed::new(Kv::default()), path),
            "mutex" => of_any(&Mutex, path),
            other => panic!("{name}: no model {other}"),
        };
        self.files += 1;
        if std::env::var_os("CHECKER_TABLE").is_some() {
            let told = |said: Option<bool>| said.map_or("gave up", |is| if is { "ok" } else { "illegal" });
            let row: Vec<String> = said.iter().map(|&(who, said)| format!("{who}: {}", told(said))).collect();
            say(format_args!("{name} ({}): {}", told(Some(expected)), row.join(", ")));
        }
        for (member, linearizable) in said {
            let (given, gave_up) = self.members.entry(member).or_default();
            match linearizable {
                Some(linearizable) if linearizable == expected => *given += 1,
                None if !member.contains("portfolio") => gave_up.push(name.clone()),
                _ => self.wrong.push(format!("{name}: {member} says {linearizable:?}")),
            }
        }
    }

    fn conclude(&self, what: &str) {
        say(format_args!("{what}: {} files", self.files));
        for (member, (given, gave_up)) in &self.members {
            let lost = if gave_up.is_empty() {
                String::new()
            } else {
                format!(", gave up on {}", gave_up.join(" "))
            };
            say(format_args!("  {member}: {given} verdicts{lost}"));
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
        tally.judge(path, "cas-register", expected);
    }
    assert!(tally.files >= 10);
    tally.conclude("our own");
}

#[test]
fn all_known_verdicts_are_agreed_with() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/histories");
    let folder = std::env::var_os("CHECKER_HISTORIES").map_or(beside, PathBuf::from);
    let Ok(table) = fs::read_to_string(folder.join("verdicts.tsv")) else {
        say(format_args!("no known verdicts at {}: none judged", folder.display()));
        return;
    };
    let mut tally = Tally::default();
    for line in table.lines().skip(1) {
        let [file, model, verdict] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line} is no line of the table")
        };
        tally.judge(&folder.join(file), model, verdict == "ok");
    }
    assert!(tally.files > 0, "the table names no file");
    tally.conclude("known verdicts");
}
