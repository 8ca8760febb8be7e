//! Runs at the edges of what a page must bear, made from an invented one: nothing in them is random.

use checker::history::History;
use checker::verdict::{CheckResult, Verdict};
use runs::results::{
    Election, FaultCounts, FaultRecord, FaultState, MemberSpan, Outage, Reach, Results, Role, RunFile,
};

use crate::invented::{self, Ending, Invented};

const MS: u64 = 1_000_000;

/// Every page that is looked at, by its name.
pub(crate) fn all() -> Vec<(&'static str, Invented)> {
    vec![
        ("valid", invented::run(Ending::Valid, 400)),
        ("violation", invented::run(Ending::Violation, 400)),
        ("unknown", invented::run(Ending::Unknown, 400)),
        ("crowded", crowded(7, 60)),
        ("single", single()),
        ("calm", calm()),
        ("long", long_names()),
        ("interrupted", interrupted()),
        ("bare", bare()),
        ("hostile", hostile()),
        ("many-steps", many_operations(6)),
        ("many-operations", many_operations(12)),
    ]
}

/// Kinds that a page has or has not heard of, how each is told, and whom it cuts: (from, to, target) of `n`.
type Cut = fn(usize, usize, usize, usize) -> bool;
const KINDS: [(&str, &str, Option<Cut>); 8] = [
    ("partition-leader", "partition", Some(|i, j, at, _| i == at || j == at)),
    ("clock-bump", "bump the clock of", None),
    ("partition-oneway", "deafen", Some(|_, j, at, _| j == at)),
    ("partition-ring", "ring around", Some(|i, j, _, n| (i + 1) % n != j && (j + 1) % n != i)),
    ("partition-bridge", "bridge over", Some(|i, j, at, n| i != at && j != at && (i < n / 2) != (j < n / 2))),
    ("reject-leader", "reject", Some(|i, j, at, _| i == at || j == at)),
    ("kill-leader", "kill", Some(|i, j, at, _| i == at || j == at)),
    ("a-kind-of-tomorrow", "confuse", None),
];

/// Members, faults that overlap, and an election and an outage for each.
pub(crate) fn crowded(members: u64, number: u64) -> Invented {
    let mut invented = invented::run(Ending::Valid, 200);
    let step = 28_000 * MS / number.max(1);
    let n = usize::try_from(members).expect("few members");
    let (mut faults, mut elections, mut outages) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (kind, verb, cut)) in (0..number).zip(KINDS.into_iter().cycle()) {
        let asked = 1000 * MS + i * step;
        let target = 1 + i % members;
        let at = usize::try_from(target - 1).expect("few members");
        let matrix = cut.map(|cut| {
            let cell = |a: usize, b: usize| {
                if a != b && cut(a, b, at, n) { Reach::NotReached } else { Reach::Reached }
            };
            (0..n).map(|a| (0..n).map(|b| cell(a, b)).collect()).collect::<Vec<Vec<Reach>>>()
        });
        let healed = asked + step * 5 / 3;
        faults.push(FaultRecord {
            id: format!("F{}", i + 1),
            kind: kind.to_owned(),
            targets: vec![target],
            sentence: format!("{verb} n{target} (leader) from the others"),
            asked_ns: asked,
            injected_ns: Some(asked + 3 * MS),
            verified_ns: Some(asked + 40 * MS),
            heal_asked_ns: Some(healed),
            healed_ns: Some(healed + 2 * MS),
            verified_healed_ns: Some(healed + 60 * MS),
            state: FaultState::Verified,
            evidence: "what was looked for was seen, and a control beside it was not".to_owned(),
            healed_evidence: "42 of 42 probes arrived; all serve".to_owned(),
            healed_matrix: matrix.as_ref().map(|_| vec![vec![Reach::Reached; n]; n]),
            matrix,
            epoch_before: u32::try_from(i).ok(),
            epoch_after: u32::try_from(i + 1).ok(),
            quorum_remained: true,
            ..FaultRecord::default()
        });
        let total = 40.0 + 13.0 * f64::from(u32::try_from(i % 17).expect("small"));
        elections.push(Election {
            id: format!("E{}", i + 1),
            fault: Some(format!("F{}", i + 1)),
            healing: i % 7 == 6,
            fault_ns: asked + 3 * MS,
            from: Some(target),
            to: 1 + target % members,
            established_ns: None,
            epoch: u32::try_from(i + 2).expect("small"),
            detection_ms: Some(total * 0.6),
            election_ms: Some(total * 0.2),
            sync_ms: Some(total * 0.15),
            first_write_ms: Some(total * 0.05),
            total_ms: Some(total),
        });
        for part in 0..2 {
            let from_ns = asked + part * step / 3;
            let fault = (i % 5 > 0).then(|| format!("F{}", i + 1));
            outages.push(Outage { from_ns, to_ns: from_ns + (30 + i % 90) * MS, fault, open: false });
        }
    }
    invented.results.member_spans = turns(members, number, step);
    invented.results.faults = FaultCounts::of(&faults);
    invented.results.election_kinds = runs::election_kinds::by_kind(&elections, &faults);
    invented.results.elections = elections;
    invented.results.outages = outages;
    invented.run.nodes = u32::try_from(members).expect("few members");
    invented.faults = faults;
    invented
}

/// Each member leads in its turn, looks for a moment and follows; some are down or paused.
fn turns(members: u64, number: u64, step: u64) -> Vec<MemberSpan> {
    let mut spans = Vec::new();
    for node in 1..=members {
        for turn in 0..number {
            let from_ns = 1000 * MS + turn * step;
            let role = match (turn % members + 1 == node, (turn + node) % 9) {
                (true, _) => Role::Leading,
                (false, 3) => Role::Down,
                (false, 5) => Role::Paused,
                (false, _) => Role::Following,
            };
            let epoch = u32::try_from(turn + 1).ok();
            let mut span =
                |from_ns, to_ns, role| spans.push(MemberSpan { node, from_ns, to_ns, role, epoch });
            span(from_ns, from_ns + step / 9, Role::Looking);
            span(from_ns + step / 9, from_ns + step, role);
        }
    }
    spans
}

/// A violation whose counterexample has so many operations one after the other: two steps each. The last one
/// can't be.
pub(crate) fn many_operations(number: u64) -> Invented {
    let mut invented = invented::run(Ending::Violation, 400);
    for check in &mut invented.results.checks {
        let Some(found) = &mut check.counterexample else { continue };
        let sample = found.ops.first().expect("an operation").clone();
        let made = (0..number).map(|at| {
            let mut op = sample.clone();
            op.index += at;
            op.process = 3 + at;
            op.invoke_ns = (10_000 + 211 * at) * MS;
            op.complete_ns = Some(op.invoke_ns + 17 * MS);
            op.node = Some(1 + at % 5);
            let value = 4977 + at;
            let (f, call) = match at % 3 {
                0 => ("write", format!("write k3 = {value}")),
                1 => ("read", format!("read k3 → {value}")),
                _ => ("cas", format!("cas k3 {} → {value}", value - 1)),
            };
            (op.f, op.call, op.changes) = (f.to_owned(), call, f != "read");
            op.impossible = at + 1 == number;
            op
        });
        found.ops = made.collect();
    }
    invented
}

fn single() -> Invented {
    let mut invented = crowded(3, 1);
    invented.run.nemeses = vec!["partition-leader".to_owned()];
    invented
}

fn calm() -> Invented {
    let mut invented = invented::run(Ending::Valid, 200);
    invented.faults.clear();
    invented.run.nemeses.clear();
    let results = &mut invented.results;
    results.faults = FaultCounts::default();
    results.elections.clear();
    results.election_kinds.clear();
    results.outages.clear();
    results.member_spans.retain(|span| span.from_ns == 0);
    results.member_spans.iter_mut().for_each(|span| span.to_ns = 30_000 * MS);
    invented
}

/// Names without a place to break, and evidence of many words.
fn long_names() -> Invented {
    let mut invented = invented::run(Ending::Violation, 200);
    let long = "a-very-long-name-without-an-end-".repeat(8);
    invented.run.name.clone_from(&long);
    invented.run.nemeses = vec![long.clone(), long.clone()];
    invented.run.mutant = Some(long.clone());
    invented.run.drawn.insert(long.clone(), long.clone());
    invented.results.repeat = format!("harness run --name {long} --nemesis {long} --seed 1");
    invented.results.files.push(RunFile { name: format!("{long}.txt"), what: long.clone(), bytes: None });
    for fault in &mut invented.faults {
        fault.kind.clone_from(&long);
        fault.sentence = format!("{long} n1 n2 n3");
        fault.evidence = format!("{long} {}", "and one more word ".repeat(80));
    }
    for check in &mut invented.results.checks {
        check.summary = format!("{} {long}", "it was as it was ".repeat(30));
        check.decided_by = Some(long.clone());
        check.evidence = serde_json::json!({&long: &long, "rows": [{"a": &long, "b": 1.0 / 3.0}, {"a": 2}]});
    }
    invented
}

/// Stopped in the middle: a fault that was never healed, one without a target, one that cannot be done here.
fn interrupted() -> Invented {
    let mut invented = invented::run(Ending::Unknown, 200);
    invented.results.interrupted = true;
    invented.results.notes.push("The run was stopped after 12 s.".to_owned());
    let last = invented.faults.len() - 1;
    for (at, fault) in invented.faults.iter_mut().enumerate() {
        if at == last {
            fault.state = FaultState::Leaked;
            (fault.healed_ns, fault.verified_healed_ns) = (None, None);
            fault.healed_evidence = "3 of 20 links are still cut".to_owned();
        }
        if at == 0 || at == 1 {
            fault.state = if at == 0 { FaultState::NoTarget } else { FaultState::Unsupported };
            (fault.injected_ns, fault.verified_ns) = (None, None);
            (fault.heal_asked_ns, fault.healed_ns, fault.verified_healed_ns) = (None, None, None);
            (fault.matrix, fault.healed_matrix) = (None, None);
        }
    }
    invented.results.faults = FaultCounts::of(&invented.faults);
    for election in &mut invented.results.elections {
        (election.first_write_ms, election.total_ms) = (None, None);
    }
    if let Some(outage) = invented.results.outages.last_mut() {
        outage.open = true;
    }
    invented
}

/// Without a history: nothing was written before the harness was gone.
fn bare() -> Invented {
    let mut invented = invented::run(Ending::Unknown, 200);
    invented.history = History::default();
    invented.faults.clear();
    let mut results = Results::new(Verdict::Unknown, &invented.run);
    results.exit_status = 2;
    results.checks =
        vec![CheckResult::new("history", Verdict::Unknown, "the history is empty, so nothing is shown")];
    invented.results = results;
    invented
}

/// What a member, a file or a person could put into a page to make it something else.
pub(crate) const HOSTILE: [&str; 7] = [
    "</script><script>window.stolen=1</script>",
    "\" onload=\"window.stolen=2\" x=\"",
    "'><img src=x onerror=window.stolen=3><svg onload=window.stolen=4>",
    "</style><style>*{display:none}</style><!--",
    "\u{202e}drawkcab\u{2066}\u{0}\u{1b}[2J\u{feff}",
    "javascript:window.stolen=5",
    "]]></testcase>&amp;&lt;%00{{7*7}}${7*7}",
];

fn hostile() -> Invented {
    let mut invented = invented::run(Ending::Violation, 100);
    let mut number = 0;
    let mut next = || {
        number += 1;
        HOSTILE[number % HOSTILE.len()].to_owned()
    };
    let endless = format!("{}{}", HOSTILE[0], "x".repeat(10_000));
    let run = &mut invented.run;
    (run.name, run.system.name, run.system.before) = (next(), next(), next());
    (run.cluster_reason, run.workload, run.started_utc) = (next(), next(), next());
    run.mutant = Some(next());
    run.host.kernel = next();
    run.nemeses = HOSTILE.map(str::to_owned).to_vec();
    for map in [&mut run.versions, &mut run.drawn, &mut run.settings, &mut run.host.measured] {
        map.insert(next(), next());
        map.insert(next(), endless.clone());
    }
    for fault in &mut invented.faults {
        let id = next();
        for election in &mut invented.results.elections {
            if election.fault.as_deref() == Some(&fault.id) {
                election.fault = Some(id.clone());
                election.id = next();
            }
        }
        fault.id = id;
        (fault.kind, fault.sentence, fault.evidence) = (next(), next(), endless.clone());
        fault.healed_evidence = next();
        fault.verified_healed_ns = Some(u64::MAX / 2_000_000_000);
    }
    let results = &mut invented.results;
    results.repeat = format!("{} {}", next(), endless);
    results.notes = HOSTILE.map(str::to_owned).to_vec();
    results.files = HOSTILE
        .iter()
        .map(|name| RunFile { name: (*name).to_owned(), what: next(), bytes: Some(u64::MAX) })
        .collect();
    for outage in &mut results.outages {
        outage.fault = Some(next());
    }
    for check in &mut results.checks {
        (check.name, check.summary) = (next(), endless.clone());
        check.decided_by = Some(next());
        check.evidence = serde_json::json!({next(): [next(), {next(): endless}], "rows": [{next(): next()}]});
        if let Some(found) = &mut check.counterexample {
            found.sentence = next();
            found.ops.iter_mut().for_each(|op| op.session = Some(next()));
        }
    }
    invented
}
