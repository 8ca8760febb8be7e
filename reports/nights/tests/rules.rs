//! The rules of a night, one script each. `UPDATE_GOLDENFILES=1` writes what is said now into the scripts.
//!
//! A script names the cases of the file, `case ID [repeat=N] [guess=TIME] [threshold="METRIC STATISTIC"]
//! [typed=FLAGS]`, and planted bugs, `bug NAME [tries=N]`. `past NIGHT CASE PILE [outage=MS] [build=NAME]` is
//! a night of the store before this one, `past-worlds FROM TO [broken=SEED]` worlds of it, and
//! `past-finding CASE CHECK` what it found. `was CASE REPEAT PILE [try=N]` and `was-bug NAME PILE` are what a
//! night had done that was killed and goes on.
//!
//! `begin [KEY=VALUE ...]` begins, with the settings of the file; `at TIME` says what of the budget is used.
//! `next` has everything done whose time has come, and says what the driver is to do. A run of the harness
//! ends with `ends NAME PILE [check=NAME] [outage=MS] [took=TIME] [words=...]`, where `refused` is one that
//! has no results, and with `interrupted` or `too-long` behind it; `lived NAME WORLDS [broken=SEED]` and
//! `smaller NAME folder=PATH` end the others. `build` and `no-build WHY` answer `find`; `folder PILE
//! [check=NAME] [outage=MS]`, or `folder gone`, answers `read`. `interrupt` interrupts; `fails WHY [of=NAME]`
//! says that something could not be done.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use checker::verdict::{CheckResult, Verdict};
use goldenscript::{ArgumentConsumer as Words, Context, Runner};
use jiff::Timestamp;
use nights::findings::{Found, Replays};
use nights::fingerprint::Shape;
use nights::index::{Attempt, Begun, Line, Purpose, Worlds};
use nights::machine::Machine;
use nights::measures::Sample;
use nights::outcome::{Ended, Record};
use nights::pile::Pile;
use nights::scheduler::{Bug, Command, Made, Moment, Order, Runs, Scheduler, Terms};
use nights::suite::{Case, Settings, Suite};
use nights::threshold::Threshold;
use runs::results::{Outage, Results, RunInfo};
use runs::span;

type Answer = Result<String, Box<dyn Error>>;

const NIGHT: &str = "n";
const STORE: &str = "/store";
const USUAL: Duration = Duration::from_secs(60);
const MS: f64 = 1e6;

#[test]
fn the_rules_of_a_night_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scheduler");
    let mut scripts: Vec<PathBuf> =
        folder.read_dir().expect("the scripts").map(|entry| entry.expect("a script").path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        goldenscript::run(&mut Script::default(), &script)
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    }
}

#[derive(Default)]
struct Script {
    cases: Vec<Case>,
    known: Cases,
    bugs: Vec<Bug>,
    lines: Vec<Line>,
    goes_on: bool,
    night: Option<Scheduler>,
    spent: Duration,
    /// What is under way, by name.
    under_way: BTreeMap<String, Order>,
}

/// What the cases are as runs.
#[derive(Clone, Default)]
struct Cases {
    ids: Vec<String>,
    guesses: Vec<Duration>,
    typed: Vec<Vec<String>>,
}

impl Runs for Cases {
    fn time_limit(&self, _: usize) -> Duration {
        USUAL
    }

    fn guess(&self, case: usize) -> Duration {
        self.guesses[case]
    }

    fn command(&self, case: usize, seed: u64) -> String {
        format!("harness run {} --seed {seed}", self.ids[case])
    }

    fn typed(&self, case: usize) -> Vec<String> {
        self.typed[case].clone()
    }

    fn quoted(&self, word: &str) -> String {
        word.to_owned()
    }
}

fn pile(word: &str) -> Result<Pile, Box<dyn Error>> {
    let named = Pile::ALL.into_iter().find(|pile| pile.name().replace(' ', "-") == word);
    named.ok_or_else(|| format!("there is no pile {word}").into())
}

fn time(words: &mut Words<'_>, key: &str) -> Result<Option<Duration>, Box<dyn Error>> {
    Ok(words.take_key(key).map(span::parse).transpose()?)
}

fn number(words: &mut Words<'_>, key: &str, usual: u32) -> Result<u32, Box<dyn Error>> {
    Ok(words.take_key(key).map_or(Ok(usual), str::parse)?)
}

fn word(words: &mut Words<'_>, what: &str) -> Result<String, Box<dyn Error>> {
    words.next_pos().map(str::to_owned).ok_or_else(|| format!("which {what}?").into())
}

fn begun(night: &str, at_s: i64, build: &str) -> Begun {
    Begun {
        night: night.to_owned(),
        started_utc: Timestamp::from_second(at_s).unwrap_or_default(),
        budget_s: 3600,
        seed: 1,
        build: build.to_owned(),
        machine: Machine::default(),
        profile: None,
        shard: None,
        cases: BTreeMap::new(),
    }
}

/// A folder of a run with this verdict, by this check, and with one outage where it had one.
fn record(pile: Pile, words: &mut Words<'_>) -> Result<Record, Box<dyn Error>> {
    let verdict = match pile {
        Pile::Valid => Verdict::Valid,
        Pile::Violation => Verdict::Invalid,
        _ => Verdict::Unknown,
    };
    let run = RunInfo::default();
    let mut results = Results::new(verdict, &run);
    let check = words.take_key("check").unwrap_or("linearizable");
    results.checks.push(CheckResult::new(check, verdict, "what was seen"));
    if let Some(ms) = words.take_key("outage") {
        let ms: f64 = ms.parse()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "scripts say small times"
        )]
        let to_ns = (ms * MS) as u64;
        results.outages.push(Outage { from_ns: 0, to_ns, ..Outage::default() });
    }
    Ok(Record { run, results, faults: Vec::new() })
}

impl Script {
    fn now(&self) -> Moment {
        let seconds = i64::try_from(self.spent.as_secs()).unwrap_or(i64::MAX);
        let utc = Timestamp::from_second(1_000_000 + seconds).unwrap_or_default();
        Moment { utc, spent: self.spent }
    }

    fn night(&mut self) -> Result<&mut Scheduler, Box<dyn Error>> {
        self.night.as_mut().ok_or_else(|| "no night has begun".into())
    }

    fn case(&mut self, words: &mut Words<'_>) -> Result<(), Box<dyn Error>> {
        let id = word(words, "case")?;
        let thresholds = match words.take_key("threshold").and_then(|text| text.split_once(' ')) {
            Some((metric, expression)) => vec![Threshold::parse(metric, expression)?],
            None => Vec::new(),
        };
        self.cases.push(Case {
            id: id.clone(),
            owner: None,
            flags: vec![("nodes".to_owned(), "3".to_owned())],
            repeat: number(words, "repeat", 1)?,
            weight: 1,
            thresholds,
        });
        self.known.ids.push(id);
        self.known.guesses.push(time(words, "guess")?.unwrap_or(USUAL));
        let typed = words.take_key("typed").unwrap_or_default();
        self.known.typed.push(typed.split_whitespace().map(str::to_owned).collect());
        Ok(())
    }

    fn attempt(&self, night: &str, case: &str, pile: Pile, words: &mut Words<'_>) -> Attempt {
        let outage = words.take_key("outage").and_then(|ms| ms.parse().ok());
        let series = outage.map(|value| ("outage max".to_owned(), Sample { value, n: 1 }));
        Attempt {
            night: night.to_owned(),
            purpose: Purpose::Case,
            case: case.to_owned(),
            repeat: 1,
            attempt: 1,
            started_utc: Timestamp::UNIX_EPOCH,
            took_ms: words.take_key("took-ms").and_then(|ms| ms.parse().ok()).unwrap_or(60_000.0),
            seed: 1,
            pile,
            status: Some(i32::from(pile.status())),
            why: String::new(),
            folder: Some(format!("{night}/runs/{case}-1/1")),
            repeat_command: String::new(),
            series: series.into_iter().collect(),
            findings: Vec::new(),
            operations: 1,
            elections: 0,
            faults: (0, 0),
            spent_ms: 1,
            machine: String::new(),
        }
    }

    /// A line of a night before this one, or of this one before it was killed.
    fn line(&mut self, kind: &str, words: &mut Words<'_>) -> Result<(), Box<dyn Error>> {
        let before = i64::try_from(self.lines.len())?;
        match kind {
            "past" => {
                let (night, case) = (word(words, "night")?, word(words, "case")?);
                let pile = pile(&word(words, "pile")?)?;
                let build = words.take_key("build").unwrap_or("old").to_owned();
                let attempt = self.attempt(&night, &case, pile, words);
                self.lines.push(Line::Night(begun(&night, before, &build)));
                self.lines.push(Line::Attempt(attempt));
            }
            "past-worlds" => {
                let (first, end) = (word(words, "seed")?.parse()?, word(words, "seed")?.parse()?);
                let broken = words.take_key("broken").map(str::parse).transpose()?;
                self.lines.push(Line::Night(begun("worlds", before, "old")));
                self.lines.push(Line::Worlds(Worlds {
                    night: "worlds".to_owned(),
                    seeds: (first, end),
                    worlds: end - first,
                    broken: broken.into_iter().map(|seed| (seed, "one-leader".to_owned())).collect(),
                    took_ms: 1,
                    spent_ms: 1,
                    failed: None,
                }));
            }
            "past-finding" => {
                let (case, check) = (word(words, "case")?, word(words, "check")?);
                let shape = Shape { check, case, kinds: [].into(), operations: [].into() };
                self.lines.push(Line::Night(begun("found", before, "old")));
                self.lines.push(Line::Finding(Found {
                    night: "found".to_owned(),
                    fingerprint: shape.fingerprint(),
                    shape,
                    sentence: String::new(),
                    folder: "found/runs/x".to_owned(),
                    replays: Replays::default(),
                    shrunk: None,
                    command: String::new(),
                }));
            }
            _ => {
                let case = word(words, "case")?;
                let repeat = if kind == "was" { word(words, "run")?.parse()? } else { 1 };
                let pile = pile(&word(words, "pile")?)?;
                let attempt = number(words, "try", 1)?;
                let purpose = if kind == "was" { Purpose::Case } else { Purpose::Mutant };
                let run = self.attempt(NIGHT, &case, pile, words);
                if !self.goes_on {
                    self.lines.push(Line::Night(begun(NIGHT, 1_000_000, "tonights")));
                    self.goes_on = true;
                }
                self.lines.push(Line::Attempt(Attempt { purpose, repeat, attempt, ..run }));
            }
        }
        Ok(())
    }

    fn begin(&mut self, words: &mut Words<'_>) -> Result<(), Box<dyn Error>> {
        let hook = words.take_key("on-finding").map(str::to_owned);
        let settings = Settings {
            retries: number(words, "retries", 1)?,
            replays: number(words, "replays", 0)?,
            shrink: time(words, "shrink")?.unwrap_or_default(),
            mutants: number(words, "mutants", 0)?,
            worlds: words.take_key("worlds") == Some("yes"),
            jobs: number(words, "jobs", 1)?,
            pairs: number(words, "pairs", 0)?,
            on_finding: hook.into_iter().collect(),
            ..Settings::default()
        };
        let budget = time(words, "budget")?.unwrap_or(Duration::from_secs(3600));
        let begun = Begun {
            budget_s: budget.as_secs(),
            cases: self.cases.iter().map(|case| (case.id.clone(), None)).collect(),
            ..begun(NIGHT, 1_000_000, "tonights")
        };
        let terms = Terms {
            begun,
            goes_on: self.goes_on,
            build: "tonights".to_owned(),
            budget,
            suite: Suite { settings, cases: self.cases.clone(), known: Vec::new() },
            store: PathBuf::from(STORE),
            bugs: self.bugs.clone(),
        };
        let lines = std::mem::take(&mut self.lines);
        self.night = Some(Scheduler::new(terms, Box::new(self.known.clone()), lines, self.now()));
        Ok(())
    }

    fn next(&mut self, most: usize) -> Answer {
        let (now, mut said) = (self.now(), String::new());
        for _ in 0..most {
            let Some(command) = self.night()?.next(now) else { break };
            if let Command::Start(order) = &command {
                self.under_way.insert(order.name.clone(), order.clone());
            }
            writeln!(said, "{}", shown(&command))?;
        }
        if let Some(finished) = self.night()?.finished() {
            let judged = finished.nights.last().and_then(|night| night.judged.as_ref());
            let (status, sentence) = judged.map_or((0, ""), |judged| (judged.status, &judged.sentence));
            writeln!(said, "over, {}, status {status}: {sentence}", finished.pile.name())?;
            let left = judged.map(|judged| judged.left_out.as_slice()).unwrap_or_default();
            for left in left {
                writeln!(said, "left out {}, {} runs: {}", left.case, left.runs, left.why)?;
            }
        }
        Ok(said)
    }

    /// A run of the harness has ended.
    fn ends(&mut self, words: &mut Words<'_>) -> Result<(), Box<dyn Error>> {
        let (name, how) = (word(words, "process")?, word(words, "pile")?);
        let order = self.under_way.remove(&name).ok_or("it is not under way")?;
        let marks: Vec<&str> = std::iter::from_fn(|| words.next_pos()).collect();
        let has = |mark: &str| marks.contains(&mark);
        let mut ended = Ended {
            took: time(words, "took")?.unwrap_or(Duration::from_secs(30)),
            interrupted: has("interrupted"),
            too_long: has("too-long"),
            last_words: words.take_key("words").unwrap_or_default().to_owned(),
            ..Ended::default()
        };
        let below = order.runs.as_ref().and_then(|runs| runs.strip_prefix(STORE).ok());
        let folder = below.map(|runs| format!("{}/1", runs.display()));
        let made = if how == "refused" {
            ended.status = Some(254);
            Made::default()
        } else {
            let pile = pile(&how)?;
            ended.status = Some(i32::from(pile.status()));
            Made { folder, record: Some(record(pile, words)?) }
        };
        let now = self.now();
        self.night()?.ended(order.id, now, &ended, made);
        Ok(())
    }

    /// A process has ended that says what it did.
    fn says(&mut self, name: &str, output: String) -> Result<(), Box<dyn Error>> {
        let order = self.under_way.remove(name).ok_or("it is not under way")?;
        let ended = Ended { status: Some(0), output, ..Ended::default() };
        let now = self.now();
        self.night()?.ended(order.id, now, &ended, Made::default());
        Ok(())
    }

    fn lived(&mut self, words: &mut Words<'_>) -> Result<(), Box<dyn Error>> {
        let name = word(words, "process")?;
        let worlds: u64 = word(words, "number of worlds")?.parse()?;
        let broken: Option<u64> = words.take_key("broken").map(str::parse).transpose()?;
        let violation =
            |seed: u64| serde_json::json!({"seed": seed, "rule": "one-leader", "sentence": "Two."});
        let violations: Vec<_> = broken.into_iter().map(violation).collect();
        let output = serde_json::json!({"worlds": worlds, "elapsed_ms": 5, "violations": violations});
        self.says(&name, output.to_string())
    }

    fn smaller(&mut self, words: &mut Words<'_>) -> Result<(), Box<dyn Error>> {
        let name = word(words, "process")?;
        let folder = words.take_key("folder").ok_or("which folder?")?;
        let output = serde_json::json!({
            "folder": folder, "faults": [4, 1], "clients": [8, 2], "workload_ms": [60, 6], "runs": 9,
        });
        self.says(&name, output.to_string())
    }

    fn folder(&mut self, words: &mut Words<'_>) -> Result<(), Box<dyn Error>> {
        let how = word(words, "pile")?;
        let record = if how == "gone" { None } else { Some(record(pile(&how)?, words)?) };
        let now = self.now();
        self.night()?.was_read(now, record);
        Ok(())
    }

    fn fails(&mut self, words: &mut Words<'_>) -> Result<(), Box<dyn Error>> {
        let (why, of) = (word(words, "failure")?, words.take_key("of"));
        let process = of.map(|name| self.under_way.remove(name).ok_or("it is not under way")).transpose()?;
        self.night()?.failed(process.map(|order| order.id), why);
        Ok(())
    }
}

fn shown(command: &Command) -> String {
    match command {
        Command::Start(order) => {
            let within = span::show(order.deadline);
            format!(
                "start {} by {} within {within}: {}",
                order.name,
                order.build.name(),
                order.arguments.join(" ")
            )
        }
        Command::Find(build) => format!("find {build}"),
        Command::Read(folder) => format!("read {folder}"),
        Command::Write(line) => format!("index: {}", written(line)),
        Command::Notify(finding) => format!("notify {}, {}", finding.fingerprint, finding.state.name()),
        Command::Step(words) => format!("-- {words}"),
        Command::Say(words) => format!("say {words}"),
    }
}

fn written(line: &Line) -> String {
    match line {
        Line::Night(begun) => format!("night {}", begun.night),
        Line::Attempt(run) => {
            let what = if run.purpose == Purpose::Mutant { "bug " } else { "" };
            format!("{what}{}-{} try {} {}", run.case, run.repeat, run.attempt, run.pile.name())
        }
        Line::Finding(found) => {
            let Replays { shown, of } = found.replays;
            let smaller = if found.shrunk.is_some() { ", smaller" } else { "" };
            format!("finding {} of {}, {shown} of {of} replays{smaller}", found.shape.check, found.shape.case)
        }
        Line::Worlds(worlds) => format!("worlds {}..{}", worlds.seeds.0, worlds.seeds.1),
        Line::Alarm(alarm) => {
            let confirmed = if alarm.is_confirmed() { "confirmed" } else { "not confirmed" };
            format!("alarm {} of {}, {confirmed}", alarm.series, alarm.case)
        }
        Line::Judged(judged) => {
            let thresholds = judged
                .thresholds
                .iter()
                .flat_map(|(case, all)| all.iter().map(move |one| format!("; {case}: {}", one.sentence)));
            format!("judged {}{}", judged.pile.name(), thresholds.collect::<String>())
        }
        Line::Merged(merged) => format!("merged {}", merged.night),
    }
}

impl Runner for Script {
    type Command = goldenscript::Command;

    fn run(&mut self, command: &goldenscript::Command, _: &Context) -> Answer {
        let mut words = command.consume_args();
        match command.name.as_str() {
            "case" => self.case(&mut words)?,
            "bug" => {
                let name = word(&mut words, "bug")?;
                let tries = number(&mut words, "tries", 1)?;
                let [nemesis, workload] = ["kill-leader", "registers"].map(str::to_owned);
                self.bugs.push(Bug { name, nemesis, workload, flags: "--nodes 3".to_owned(), tries });
            }
            kind @ ("past" | "past-worlds" | "past-finding" | "was" | "was-bug") => {
                self.line(kind, &mut words)?;
            }
            "begin" => self.begin(&mut words)?,
            "at" => self.spent = span::parse(&word(&mut words, "time")?)?,
            "next" => {
                let most = words.take_key("most").map_or(Ok(usize::MAX), str::parse)?;
                words.reject_next()?;
                return self.next(most);
            }
            "ends" => self.ends(&mut words)?,
            "lived" => self.lived(&mut words)?,
            "smaller" => self.smaller(&mut words)?,
            "build" => self.night()?.found(Ok(())),
            "no-build" => {
                let why = word(&mut words, "reason")?;
                self.night()?.found(Err(why));
            }
            "folder" => self.folder(&mut words)?,
            "interrupt" => self.night()?.interrupt(),
            "fails" => self.fails(&mut words)?,
            other => return Err(format!("there is no {other} in these scripts").into()),
        }
        words.reject_next()?;
        Ok(String::new())
    }
}
