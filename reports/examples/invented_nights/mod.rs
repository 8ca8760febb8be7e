//! Invented nights, plausible enough to look at: cases of two targets that are mostly valid, a level that
//! changed with a build, findings in every state. Every number in them is made up by a small generator.

use std::collections::{BTreeMap, BTreeSet};

use nights::findings::{Finding, Found, Replays, Shrunk};
use nights::fingerprint::Shape;
use nights::fold::{self, Night};
use nights::index::{Alarm, Attempt, Begun, Comparison, Judged, LeftOut, Purpose, Worlds};
use nights::machine::Machine;
use nights::measures::Sample;
use nights::pile::Pile;
use nights::suite::Known;
use nights::threshold::{Judgement, Outcome};
use nights::trends::{self, Series};
use reports::nights::View;

/// How the last night is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Every case valid.
    Valid,
    /// Something in every pile.
    Failing,
    /// Failures, and no end on record.
    NotEnded,
    /// No case was run, though the line says that it was valid.
    Nothing,
}

/// What is drawn from.
pub(crate) struct Drawn {
    pub(crate) nights: Vec<Night>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) series: Vec<Series>,
}

impl Drawn {
    /// What follows from these nights.
    pub(crate) fn of(nights: Vec<Night>) -> Self {
        let known: Vec<Known> = nights.iter().flat_map(|night| &night.found).map(known).collect();
        let findings = fold::findings(&nights, &known);
        let series = trends::series(&nights);
        Self { nights, findings, series }
    }

    /// The same to be drawn.
    pub(crate) fn view(&self) -> View<'_> {
        View { nights: &self.nights, findings: &self.findings, series: &self.series }
    }
}

/// Only what was found in the register is known.
fn known(found: &Found) -> Known {
    let is_known = found.shape.case.starts_with("register");
    Known {
        finding: if is_known { found.fingerprint.clone() } else { String::new() },
        link: "https://example.org/issues/4712".to_owned(),
        until: None,
    }
}

/// A multiplicative generator: the page needs scatter, not randomness.
struct Scatter(u64);

impl Scatter {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A value within a tenth of a level.
    fn around(&mut self, level: f64) -> f64 {
        let step = u32::try_from(self.below(200)).unwrap_or(0);
        level * (0.9 + f64::from(step) / 1000.0)
    }
}

const WORDS: [&str; 4] = ["leader-loss", "register", "slow-links", "disk-full"];
const TARGETS: [&str; 2] = ["node", "zookeeper"];

/// A case's id.
pub(crate) fn case(at: usize) -> String {
    let word = WORDS[at % WORDS.len()];
    let target = TARGETS[at / WORDS.len() % TARGETS.len()];
    format!("{word}[nodes={},target={target}]", 3 + at / (WORDS.len() * TARGETS.len()) * 2)
}

/// So many nights of so many cases.
pub(crate) fn nights(number: usize, cases: usize, ending: Ending) -> Drawn {
    let mut scatter = Scatter(7);
    let nights = (0..number).map(|at| {
        night(&mut scatter, (at, number), cases, if at + 1 == number { ending } else { Ending::Valid })
    });
    Drawn::of(judged(nights.collect(), ending))
}

fn begun(at: usize, cases: usize) -> Begun {
    let started = jiff::Timestamp::from_second(1_764_036_000 + i64::try_from(at).unwrap_or(0) * 86_400);
    let started_utc = started.expect("a moment");
    let owner = |at: usize| at.is_multiple_of(3).then(|| "@coordination".to_owned());
    Begun {
        night: started_utc.strftime("%Y%m%dT%H%M%SZ").to_string(),
        started_utc,
        budget_s: 6 * 3600,
        seed: 4711,
        build: format!("0.9.{} 3f{:06x}", at / 5, at / 5 * 77_777),
        machine: Machine {
            cores: 8,
            kernel: "Linux 6.1.0 x86_64".to_owned(),
            fsync_ms: Some(1.4),
            load: Some(0.1),
            ..Machine::default()
        },
        profile: Some("nightly".to_owned()),
        shard: None,
        cases: (0..cases).map(|at| (case(at), owner(at))).collect(),
    }
}

fn night(scatter: &mut Scatter, (at, number): (usize, usize), cases: usize, ending: Ending) -> Night {
    let mut night = Night::new(begun(at, cases));
    if ending == Ending::Nothing {
        return night;
    }
    for which in 0..cases {
        // Now and then there was no time for one.
        if scatter.below(40) == 0 && at + 1 < number {
            continue;
        }
        let pile = match scatter.below(150) {
            0 if at + 1 < number => Pile::Unknown,
            1 if at + 1 < number => Pile::BenchFailure,
            _ => Pile::Valid,
        };
        for repeat in 1..=2 {
            let slower = which == 4 && at * 5 >= number * 4;
            night.attempts.push(attempt(scatter, &night.begun, which, repeat, pile, slower));
        }
    }
    let from_end = number - at;
    if cases > 2 && (2..6).contains(&from_end) {
        violate(&mut night, 1, "a read answered 4596 although 5281 had been written before it began");
    }
    if cases > 3 && (2..4).contains(&from_end) {
        violate(&mut night, 3, "an acknowledged write was lost");
    }
    night.worlds.push(Worlds {
        night: night.begun.night.clone(),
        seeds: (0, 812_000),
        worlds: 790_000 + scatter.below(40_000),
        broken: Vec::new(),
        took_ms: 3_600_000,
        spent_ms: 0,
        failed: None,
    });
    night.mutants.push(Attempt {
        purpose: Purpose::Mutant,
        case: "commit-alone".to_owned(),
        pile: Pile::Violation,
        took_ms: 4200.0,
        ..attempt(scatter, &night.begun, 0, 1, Pile::Violation, false)
    });
    if matches!(ending, Ending::Failing | Ending::NotEnded) {
        failures(&mut night, cases);
    }
    night
}

fn attempt(
    scatter: &mut Scatter,
    begun: &Begun,
    which: usize,
    repeat: u32,
    pile: Pile,
    slower: bool,
) -> Attempt {
    let factor = if slower { 1.45 } else { 1.0 };
    let mut series = BTreeMap::new();
    for (name, level, n) in [
        ("elections{kill-leader} p50", 84.0 * factor, 12),
        ("outage max", 410.0 * factor, 9),
        ("commit{calm} p99", 6.2, 40_000),
        ("operations", 950.0, 1),
    ] {
        series.insert(name.to_owned(), Sample { value: scatter.around(level), n });
    }
    Attempt {
        spent_ms: 0,
        machine: String::new(),
        night: begun.night.clone(),
        purpose: Purpose::Case,
        case: case(which),
        repeat,
        attempt: 1,
        started_utc: begun.started_utc,
        took_ms: scatter.around(62_000.0),
        seed: scatter.below(1 << 40),
        pile,
        status: Some(i32::from(pile.status())),
        why: match pile {
            Pile::Valid | Pile::Regression | Pile::Violation => String::new(),
            Pile::Unknown => "2 of 14 faults could not be proven".to_owned(),
            Pile::BenchFailure => "the container engine did not answer within 30 s".to_owned(),
        },
        folder: Some(format!("{}-{which}-{repeat}", begun.night)),
        repeat_command: format!("harness run --nemesis kill-leader --seed {}", 4711 + which),
        series: if pile == Pile::Valid { series } else { BTreeMap::new() },
        findings: Vec::new(),
        operations: 58_000 + scatter.below(4000),
        elections: 12,
        faults: (14, 14),
    }
}

/// Makes a run of a case a violation, looked at.
pub(crate) fn violate(night: &mut Night, which: usize, sentence: &str) {
    let Some(attempt) = night.attempts.iter_mut().find(|attempt| attempt.case == case(which)) else { return };
    let shape = Shape {
        check: "linearizable".to_owned(),
        case: case(which),
        kinds: ["partition-leader".to_owned()].into(),
        operations: sentence.split(' ').take(2).map(str::to_owned).collect::<BTreeSet<_>>(),
    };
    (attempt.pile, attempt.status) = (Pile::Violation, Some(1));
    attempt.why = format!("linearizable: {sentence}");
    attempt.findings = vec![shape.fingerprint()];
    attempt.series.clear();
    let folder = attempt.folder.clone().unwrap_or_default();
    night.found.push(Found {
        night: night.begun.night.clone(),
        fingerprint: shape.fingerprint(),
        shape,
        sentence: sentence.to_owned(),
        command: format!("harness replay runs/nightly/{folder} --faults F3,F4 --clients 2"),
        shrunk: Some(Shrunk {
            folder: format!("{folder}-shrunk"),
            faults: (14, 2),
            clients: (20, 2),
            workload_ms: (60_000, 4_000),
            in_the_simulator: Some(true),
            runs: 31,
            seen: true,
        }),
        folder,
        replays: Replays { shown: 2, of: 3 },
    });
}

/// Something in every pile, as far as the cases reach.
fn failures(night: &mut Night, cases: usize) {
    violate(night, 1, "a read answered 4596 although 5281 had been written before it began");
    violate(night, 2, "process 12 read a value that nobody wrote");
    for (which, pile, why) in [
        (5, Pile::Unknown, "2 of 14 faults could not be proven"),
        (6, Pile::BenchFailure, "the container engine did not answer within 30 s"),
    ] {
        for attempt in night.attempts.iter_mut().filter(|attempt| attempt.case == case(which)) {
            (attempt.pile, attempt.status) = (pile, Some(i32::from(pile.status())));
            why.clone_into(&mut attempt.why);
            attempt.series.clear();
        }
    }
    if cases > 7 {
        night.attempts.retain(|attempt| attempt.case != case(7));
    }
    night.alarms.push(Alarm {
        night: night.begun.night.clone(),
        case: case(4),
        series: "elections{kill-leader} p50".to_owned(),
        value: 122.0,
        before: 84.0,
        fence: 96.0,
        comparison: Some(Comparison {
            against: "0.9.5 3f05ef4d".to_owned(),
            pairs: 8,
            ratio: (1.31, 1.44, 1.58),
            confirmed: true,
        }),
        sentence: "elections{kill-leader} p50 is 122 ms, and was 84 ms".to_owned(),
    });
}

/// Judges each night but one without an end.
fn judged(mut nights: Vec<Night>, ending: Ending) -> Vec<Night> {
    let last = nights.len().saturating_sub(1);
    for at in 0..nights.len() {
        if at == last && ending == Ending::NotEnded {
            continue;
        }
        let is_failing = at == last && ending == Ending::Failing;
        let left_out = if is_failing {
            let why = "no time was left within the budget of 6 h".to_owned();
            vec![LeftOut { case: case(7), runs: 2, why }]
        } else {
            Vec::new()
        };
        let night = &mut nights[at];
        night.judged = Some(Judged {
            night: night.begun.night.clone(),
            ended_utc: night.begun.started_utc + jiff::SignedDuration::from_hours(6),
            pile: Pile::Valid,
            status: 0,
            sentence: String::new(),
            shard: night.begun.shard,
            interrupted: false,
            left_out: left_out.clone(),
            thresholds: thresholds(night, is_failing),
        });
        // What was new is asked of the last one alone: of each it would take long.
        let from = if at == last { 0 } else { at };
        let conclusion = fold::conclude(&nights[from..=at], &[], &left_out);
        if let Some(judged) = &mut nights[at].judged {
            // Of a night in which nothing was run, a build that knew no better may have said so.
            let is_nothing = at == last && ending == Ending::Nothing;
            judged.pile = if is_nothing { Pile::Valid } else { conclusion.pile };
            judged.status = judged.pile.status();
            judged.sentence = if is_nothing { "0 cases valid.".to_owned() } else { conclusion.sentence };
        }
    }
    nights
}

fn thresholds(night: &Night, is_failing: bool) -> BTreeMap<String, Vec<Judgement>> {
    let judgement = |threshold: &str, outcome, value: Option<f64>, samples, rest: &str| Judgement {
        threshold: threshold.to_owned(),
        outcome,
        value,
        samples,
        sentence: format!("{threshold}: {rest}"),
    };
    let outage = judgement("outage max < 1s", Outcome::Met, Some(437.0), 18, "437 ms of 18");
    let mut all = BTreeMap::new();
    for which in (0..16).filter(|which| night.attempts.iter().any(|attempt| attempt.case == case(*which))) {
        all.insert(case(which), vec![outage.clone()]);
    }
    if is_failing {
        let crossed = "elections{kill-leader} p50 < 100ms";
        let few = "commit{faults} p99.9 < 50ms";
        for (which, more) in [
            (4, judgement(crossed, Outcome::Crossed, Some(121.8), 24, "it is 122 ms of 24")),
            (0, judgement(few, Outcome::TooFew, None, 412, "412 samples of the 1,000 that it needs")),
        ] {
            all.entry(case(which)).or_default().push(more);
        }
    }
    all
}
