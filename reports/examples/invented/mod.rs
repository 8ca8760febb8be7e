//! An invented run, plausible enough to look at a page: thirty seconds of a register workload on five members
//! whose leader is partitioned, killed and paused in turn. Every number in it is made up by a small
//! generator.

use std::collections::BTreeMap;

use checker::history::{Datum, Event, EventKind, Function, History, Outcome, Value};
use checker::verdict::{CheckResult, Counterexample, OpView, Verdict};
use runs::cluster_kind::ClusterKind;
use runs::election_kinds::by_kind;
use runs::results::{
    Election, FaultCounts, FaultRecord, FaultState, Host, MemberSpan, Reach, Results, Role, RunFile, RunInfo,
    SystemInfo, Timings,
};
use runs::{latency, operations, outages};

const MS: u64 = 1_000_000;
/// Members of the invented ensemble.
const MEMBERS: u64 = 5;
/// Client processes.
const CLIENTS: usize = 20;
/// When the clients stop.
const END: u64 = 30_000 * MS;
/// Share of a thousand operations that are reads; as many again of the rest are writes.
const READS: u64 = 450;

/// What the invented run is to end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Valid,
    Violation,
    Unknown,
}

/// All that a report is drawn from.
pub(crate) struct Invented {
    pub(crate) run: RunInfo,
    pub(crate) results: Results,
    pub(crate) faults: Vec<FaultRecord>,
    pub(crate) history: History,
}

/// A multiplicative generator: the page needs scatter, not randomness.
struct Scatter(u64);

impl Scatter {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Latencies in ns around `typical_us`, with a tail.
    fn latency(&mut self, typical_us: u64) -> u64 {
        let usual = typical_us * (600 + self.below(900));
        if self.below(200) == 0 { usual * (2 + self.below(6)) } else { usual }
    }
}

/// Makes the run; `rate` operations a second.
pub(crate) fn run(ending: Ending, rate: u64) -> Invented {
    let mut scatter = Scatter(7_281_443);
    let (faults, elections, spans) = faults(ending);
    let history = history(&mut scatter, &elections, rate);
    let run = info(ending, rate);
    let mut invented = Invented { results: Results::new(Verdict::Valid, &run), run, faults, history };
    judge(&mut invented, ending, elections, spans);
    invented
}

fn info(ending: Ending, rate: u64) -> RunInfo {
    let mutant = (ending == Ending::Violation).then(|| "stale-leader-read".to_owned());
    let planted = mutant.as_ref().map(|bug| format!(" --mutant {bug}")).unwrap_or_default();
    let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    RunInfo {
        name: "nightly".to_owned(),
        started_utc: "2026-03-14T02:10:07Z".to_owned(),
        seed: 7_281_443,
        versions: text(&[("harness", "0.1.0"), ("rustc", "1.95.0, release"), ("history", "format 1")]),
        host: Host {
            cores: 2,
            memory_bytes: Some(8 << 30),
            kernel: "Linux 6.12.0, x86_64".to_owned(),
            measured: text(&[("fdatasync", "0.24 ms median")]),
        },
        cluster: ClusterKind::Process,
        cluster_reason: "auto: no Docker engine answers".to_owned(),
        system: SystemInfo {
            name: "bundled".to_owned(),
            before: "bundled".to_owned(),
            ..SystemInfo::default()
        },
        nodes: 5,
        workload: "register".to_owned(),
        nemeses: ["partition-leader", "kill-leader", "pause-leader"].map(str::to_owned).to_vec(),
        interval_ms: 4000,
        rate: f64::from(u32::try_from(rate).expect("a small rate")),
        min_rate: Some(100.0),
        concurrency: 20,
        keys: 5,
        time_limit_ms: 30_000,
        operation_timeout_ms: Some(1000),
        mutant,
        drawn: text(&[
            ("order of nemeses", "partition-leader, kill-leader, pause-leader, kill-leader"),
            ("values", "unique"),
        ]),
        settings: text(&[("tick", "2,000 ms"), ("peer timeout", "250 ms")]),
        repeat: format!(
            "harness run --nodes 5 --cluster process --workload register --nemesis \
             partition-leader,kill-leader,pause-leader --interval 4s --rate {rate} --concurrency 20 --keys 5 \
             --time-limit 30s{planted} --seed 7281443"
        ),
        ..RunInfo::default()
    }
}

/// Kind, verb, time until the silence is noticed in ms.
const PLAN: [(&str, &str, u64); 7] = [
    ("partition-leader", "partition", 262),
    ("kill-leader", "kill", 6),
    ("pause-leader", "pause", 271),
    ("kill-leader", "kill", 5),
    ("pause-leader", "pause", 255),
    ("partition-leader", "partition", 284),
    ("kill-leader", "kill", 7),
];

/// The moments of one fault.
#[derive(Clone, Copy)]
struct Times {
    since: u64,
    injected: u64,
    noticed: u64,
    established: u64,
    heal: u64,
}

/// What a member is from the end of one fault to the end of the next, which hits the first of these leaders.
fn spans_of(node: u64, (leader, next): (u64, u64), verb: &str, epoch: u32, times: Times) -> Vec<MemberSpan> {
    let Times { since, injected, noticed, established, heal } = times;
    let was = if node == leader { Role::Leading } else { Role::Following };
    let mut spans = Vec::new();
    let mut span = |from_ns, to_ns, role, epoch| {
        spans.push(MemberSpan { node, from_ns, to_ns, role, epoch });
    };
    span(since, injected, was, Some(epoch));
    if node == leader {
        let role = match verb {
            "kill" => Role::Down,
            "pause" => Role::Paused,
            _ => Role::Looking,
        };
        span(injected, heal + 90 * MS, role, None);
        span(heal + 90 * MS, heal + 160 * MS, Role::Looking, None);
        span(heal + 160 * MS, heal + 400 * MS, Role::Following, Some(epoch + 1));
    } else {
        let role = if node == next { Role::Leading } else { Role::Following };
        span(injected, noticed, was, Some(epoch));
        span(noticed, established, Role::Looking, None);
        span(established, heal + 400 * MS, role, Some(epoch + 1));
    }
    spans
}

fn faults(ending: Ending) -> (Vec<FaultRecord>, Vec<Election>, Vec<MemberSpan>) {
    let (mut faults, mut elections, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    let mut leader = 5;
    let mut since = 0;
    for ((number, epoch), (kind, verb, detection)) in (1_u64..).zip(1_u32..).zip(PLAN) {
        let asked = (2000 + (number - 1) * 4000) * MS + number * 317_000;
        let injected = asked + 2 * MS;
        let heal = asked + 2000 * MS;
        let next = if leader == 5 { 4 } else { 5 };
        let decided = injected + (detection + 14 + number) * MS;
        let established = decided + (11 + number) * MS;
        faults.push(fault(ending, number, kind, verb, leader, asked, epoch));
        elections.push(Election {
            id: format!("E{number}"),
            fault: Some(format!("F{number}")),
            healing: false,
            fault_ns: injected,
            from: Some(leader),
            to: next,
            epoch: epoch + 1,
            established_ns: None,
            detection_ms: Some(runs::numbers::lossy(detection)),
            election_ms: Some(runs::numbers::lossy(14 + number)),
            sync_ms: Some(runs::numbers::lossy(11 + number)),
            first_write_ms: Some(8.0),
            total_ms: Some(runs::numbers::lossy(detection + 14 + number + 11 + number + 8)),
        });
        let times = Times { since, injected, noticed: injected + detection * MS, established, heal };
        for node in 1..=MEMBERS {
            spans.extend(spans_of(node, (leader, next), verb, epoch, times));
        }
        leader = next;
        since = heal + 400 * MS;
    }
    for node in 1..=MEMBERS {
        let role = if node == leader { Role::Leading } else { Role::Following };
        spans.push(MemberSpan { node, from_ns: since, to_ns: END + 500 * MS, role, epoch: Some(8) });
    }
    spans.sort_by_key(|span| (span.node, span.from_ns));
    // Spans that say the same are one.
    spans.dedup_by(|later, earlier| {
        let same = (later.node, later.role, later.epoch) == (earlier.node, earlier.role, earlier.epoch);
        if same {
            earlier.to_ns = later.to_ns;
        }
        same
    });
    (faults, elections, spans)
}

fn fault(
    ending: Ending,
    number: u64,
    kind: &str,
    verb: &str,
    leader: u64,
    asked: u64,
    epoch: u32,
) -> FaultRecord {
    let unproven = ending == Ending::Unknown && number == 3;
    let matrix = |cut: bool| -> Vec<Vec<Reach>> {
        let cell = |a: u64, b: u64| match cut && a != b && (a == leader || b == leader) {
            true => Reach::NotReached,
            false => Reach::Reached,
        };
        (1..=MEMBERS).map(|a| (1..=MEMBERS).map(|b| cell(a, b)).collect()).collect()
    };
    let split = verb == "partition";
    FaultRecord {
        id: format!("F{number}"),
        kind: kind.to_owned(),
        targets: vec![leader],
        sentence: format!("{verb} n{leader}"),
        asked_ns: asked,
        injected_ns: Some(asked + 2 * MS),
        verified_ns: (!unproven).then_some(asked + if split { 61 * MS } else { 8 * MS }),
        heal_asked_ns: Some(asked + 2000 * MS),
        healed_ns: Some(asked + 2003 * MS),
        verified_healed_ns: Some(asked + 2174 * MS),
        state: if unproven { FaultState::Unverified } else { FaultState::Verified },
        evidence: match (unproven, verb) {
            (true, _) => "the process still answered a status request 40 ms later".to_owned(),
            (_, "kill") => format!("process {} is gone; its client port refuses", 4100 + number),
            (_, "pause") => "state T (stopped); no reply to a status request within 40 ms".to_owned(),
            (_, _) => "8 of 20 links cut, as asked; the other 12 carried a probe".to_owned(),
        },
        healed_evidence: format!("n{leader} follows in epoch {}", epoch + 1),
        matrix: split.then(|| matrix(true)),
        healed_matrix: split.then(|| matrix(false)),
        epoch_before: Some(epoch),
        epoch_after: Some(epoch + 1),
        quorum_remained: true,
        majority_side: (1..=MEMBERS).filter(|node| *node != leader).collect(),
        ..FaultRecord::default()
    }
}

fn history(scatter: &mut Scatter, elections: &[Election], rate: u64) -> History {
    let stalls: Vec<(u64, u64)> = elections
        .iter()
        .map(|election| {
            let total = election.total_ms.map_or(0, |total| Duration::from_ms(total).0);
            (election.fault_ns, election.fault_ns + total)
        })
        .collect();
    let mut events = Vec::new();
    let mut free_at = [0_u64; CLIENTS];
    let mut process: Vec<u64> = (0..20).collect();
    let step = 1_000_000_000 / rate;
    for number in 0..END / step {
        let due = number * step;
        let client = (0..CLIENTS).min_by_key(|&client| free_at[client]).expect("there are clients");
        let invoked = due.max(free_at[client]);
        let (f, typical) = match scatter.below(1000) {
            n if n < READS => (Function::READ, 700),
            n if n < 2 * READS => (Function::WRITE, 1700),
            _ => (Function::CAS, 1800),
        };
        let stall = stalls.iter().find(|(from, to)| invoked >= *from && invoked < *to);
        let mut kind = EventKind::Ok;
        let mut completed = invoked + scatter.latency(typical);
        if let Some((from, to)) = stall {
            completed = to + scatter.latency(typical);
            if invoked < from + 12 * MS && f != Function::READ {
                kind = EventKind::Info;
                completed = invoked + 30 * MS;
            } else if scatter.below(40) == 0 {
                kind = EventKind::Fail;
                completed = invoked + scatter.latency(900);
            }
        }
        let unique = i64::try_from(number).expect("few") + 1;
        let value = match f {
            Function::READ => Value::Null,
            Function::WRITE => Value::One(unique),
            Function::CAS => Value::Pair(Some(unique - 1), unique),
            other => unreachable!("the invented run is of registers, not of {other}"),
        };
        let key = number % 5;
        let node = Some(1 + number % MEMBERS);
        let mut invoke = Event::new(process[client], EventKind::Invoke, f, key, value.clone(), invoked);
        invoke.due = Some(due);
        invoke.node = node;
        let answer = if f == Function::READ && kind == EventKind::Ok { Value::One(unique) } else { value };
        let mut complete = Event::new(process[client], kind, f, key, answer, completed);
        complete.node = node;
        if kind == EventKind::Fail {
            complete.error = Some("connection-refused".into());
        }
        if kind == EventKind::Ok && f == Function::CAS && scatter.below(4) == 0 {
            complete.kind = EventKind::Fail;
            complete.error = Some("bad-version".into());
        }
        events.push(invoke);
        events.push(complete);
        free_at[client] = completed + 1;
        if kind == EventKind::Info {
            process[client] += 20;
        }
    }
    events.sort_by_key(|event| (event.time, event.kind == EventKind::Invoke));
    History::from_events(events).expect("the generator keeps the rules of a history")
}

/// Whole milliseconds of a small number.
struct Duration(u64);

impl Duration {
    fn from_ms(ms: f64) -> Self {
        let text = format!("{ms:.0}");
        Self(text.parse::<u64>().map_or(0, |ms| ms * MS))
    }
}

fn judge(invented: &mut Invented, ending: Ending, elections: Vec<Election>, spans: Vec<MemberSpan>) {
    let Invented { results, faults, history, .. } = invented;
    operations::count_around_faults(history, faults);
    results.operations = operations::counts(history);
    results.election_kinds = by_kind(&elections, faults);
    let context = outages::Context { faults, elections: &elections, load_end_ns: Some(END) };
    results.outages = outages::from_history(history, context, outages::MINIMUM_NS);
    results.latency = latency::summaries(history, faults, &[]);
    results.faults = FaultCounts::of(faults);
    results.elections = elections;
    results.member_spans = spans;
    results.checks = checks(ending, history);
    results.verdict = Verdict::of(&results.checks);
    results.exit_status = match results.verdict {
        Verdict::Valid => 0,
        Verdict::Invalid => 1,
        Verdict::Unknown => 2,
    };
    results.timings = Timings {
        start_ms: 412.0,
        workload_ms: 30_000.0,
        recovery_ms: 318.0,
        stop_ms: 800.0,
        check_ms: 184.0,
        total_ms: 30_960.0,
    };
    results.lag_ms = Some(3.8);
    results.files = [
        ("run.json", "configuration, seed, host", Some(2_900)),
        ("schedule.json", "faults as planned", Some(1_700)),
        ("history.jsonl", "every call and answer", Some(2_900_000)),
        ("faults.jsonl", "asked to seen gone", Some(6_100)),
        ("results.json", "verdict and evidence", Some(19_000)),
        ("nodes/", "logs and events of the members", None),
    ]
    .into_iter()
    .map(|(name, what, bytes)| RunFile { name: name.to_owned(), what: what.to_owned(), bytes })
    .collect();
}

fn checks(ending: Ending, history: &History) -> Vec<CheckResult> {
    let ops = history.ops().len();
    let mut linearizable = CheckResult::new(
        "linearizable",
        Verdict::Valid,
        "every key has an order of its operations that explains all answers",
    )
    .with_evidence(serde_json::json!({"operations": ops, "keys": 5, "versions": [1, 2, 3]}))
    .with_decided_by("zxid order as witness");
    if ending == Ending::Violation {
        linearizable = CheckResult::new(
            "linearizable",
            Verdict::Invalid,
            "a read of key 3 returned a value that had been overwritten",
        )
        .with_evidence(serde_json::json!({"key": 3, "operations": ops / 5}))
        .with_decided_by("near-linear test, values are unique")
        .with_counterexample(counterexample());
    }
    let proven = if ending == Ending::Unknown {
        CheckResult::new(
            "faults-verified",
            Verdict::Unknown,
            "F3 was never seen to bite, so nothing was tried against a paused leader there",
        )
        .with_evidence(serde_json::json!({"unverified": ["F3"]}))
    } else {
        CheckResult::new(
            "faults-verified",
            Verdict::Valid,
            "7 of 7 faults were seen to bite and seen to be gone",
        )
    };
    vec![
        linearizable,
        CheckResult::new("session-order", Verdict::Valid, "no session saw a zxid below one that it had seen")
            .with_decided_by("zxids by session"),
        CheckResult::new(
            "durability",
            Verdict::Valid,
            "every acknowledged write is in the final versions of all members",
        )
        .with_decided_by("final versions"),
        CheckResult::new("convergence", Verdict::Valid, "all members agree 318 ms after the last healing"),
        CheckResult::new(
            "load",
            Verdict::Valid,
            "the load was strong enough before, during and after each fault",
        )
        .with_evidence(serde_json::json!({"answered per second": 492, "harness late by, ms": 3.8})),
        proven,
    ]
}

fn counterexample() -> Counterexample {
    let op = |index, process, f, value, from: u64, to: Option<u64>, node, version, impossible| OpView {
        index,
        process,
        call: match f {
            Function::READ => format!("read k3 → {value}"),
            _ => format!("{f} k3 = {value}"),
        },
        f: f.as_str().to_owned(),
        key: Datum::Int(3),
        value: Datum::Int(value),
        changes: f != Function::READ,
        invoke_ns: from * MS / 1000,
        complete_ns: to.map(|to| to * MS / 1000),
        outcome: if to.is_some() { Outcome::Ok } else { Outcome::Info },
        node: Some(node),
        session: Some(format!("{:#x}", 0x0100_0000_0000_0000_u64 + index)),
        version: Some(version).filter(|_| to.is_some()),
        impossible,
    };
    Counterexample {
        sentence: "The write of 5102 to key 3 was acknowledged at 10.611 s, yet a read that began at 12.214 \
            s returned 4977, which it had overwritten"
            .to_owned(),
        ops: vec![
            op(19_904, 11, Function::WRITE, 4977, 9_951_204, Some(9_953_011), 2, 41, false),
            op(20_391, 4, Function::WRITE, 5101, 10_020_911, None, 5, 0, false),
            op(20_408, 7, Function::WRITE, 5102, 10_402_880, Some(10_611_417), 3, 42, false),
            op(24_422, 15, Function::READ, 4977, 12_214_006, Some(12_214_811), 5, 41, true),
        ],
        of_ops: 3001,
        rechecked: true,
    }
}
