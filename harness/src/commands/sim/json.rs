//! What worlds tell a program.

use anyhow::Context;
use lab_mutants::Mutant;
use lab_sim::{Counters, Only, Outcome, Rule, Violation};
use serde_json::{Map, Value, json};

use super::{Manner, Members, Small};
use crate::worlds::Swept;
use crate::worlds::scripts::Replayed;
use crate::worlds::seeds::Seeds;

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(value).context("encoding the result")?))
}

fn counters(counters: &Counters) -> Value {
    counters
        .rows()
        .into_iter()
        .map(|(name, count)| (name.to_owned(), json!(count)))
        .collect::<Map<_, _>>()
        .into()
}

fn violation(violation: &Violation) -> Value {
    json!({"rule": violation.rule.name(), "at_us": violation.at_us, "sentence": violation.sentence})
}

fn small(Small { seed, shrunk, path }: &Small) -> Value {
    json!({
        "seed": seed,
        "script": path,
        "events": shrunk.events,
        "members": shrunk.members,
        "operations": shrunk.operations,
        "replays": shrunk.replays,
        "violation": violation(&shrunk.violation),
    })
}

/// One world.
pub(super) fn one(outcome: &Outcome, manner: &Manner, shrunk: Option<&Small>) -> anyhow::Result<String> {
    let seed = outcome.drawn.seed;
    let mut value = json!({
        "seed": seed,
        "drawn": outcome.drawn.to_string(),
        "counters": counters(&outcome.counters),
        "election_ms": outcome.election_ms,
        "undecided": outcome.undecided,
        "trace_hash": format!("{:016x}", outcome.trace_hash),
        "violation": outcome.violation.as_ref().map(violation),
        "shrunk": shrunk.map(small),
        "repeat": manner.again(seed),
    });
    if !outcome.trace.is_empty() {
        value["trace"] = json!(outcome.trace);
    }
    pretty(&value)
}

/// Many worlds.
pub(super) fn many(
    swept: &Swept,
    seeds: Seeds,
    jobs: usize,
    manner: &Manner,
    shrunk: &[Small],
) -> anyhow::Result<String> {
    let tally = &swept.tally;
    let drawn: Map<String, Value> = tally
        .drawn()
        .into_iter()
        .map(|(group, cells)| {
            let cells = cells.into_iter().map(|(word, count)| (word.to_owned(), json!(count)));
            (group.to_owned(), Value::Object(cells.collect()))
        })
        .collect();
    let violations: Vec<Value> = tally
        .violations
        .iter()
        .map(|(seed, broken)| {
            let mut value = violation(broken);
            value["seed"] = json!(seed);
            value["repeat"] = json!(manner.again(*seed));
            value
        })
        .collect();
    pretty(&json!({
        "seeds": seeds.to_string(),
        "only": manner.options.only.map(Only::name),
        "worlds": tally.seeds,
        "jobs": jobs,
        "interrupted": swept.interrupted,
        "elapsed_ms": u64::try_from(swept.elapsed.as_millis()).unwrap_or(u64::MAX),
        "drawn": drawn,
        "counters": counters(&tally.counters),
        "in_worlds": tally.worlds,
        "slowest_election": {"ms": tally.slowest_election_ms.0, "seed": tally.slowest_election_ms.1},
        "undecided": tally.undecided,
        "trace_hash": format!("{:016x}", tally.trace_hash),
        "broken": tally.broken(),
        "violations": violations,
        "shrunk": shrunk.iter().map(small).collect::<Vec<_>>(),
    }))
}

/// A script.
pub(super) fn replayed(replayed: &Replayed, members: Members) -> anyhow::Result<String> {
    pretty(&json!({
        "mutant": members.mutant.map(Mutant::name),
        "mutant_of_the_script": members.of_the_script.map(Mutant::name),
        "breaks": members.breaks.map(Rule::name),
        "violation": replayed.violation.as_ref().map(violation),
        "skipped": replayed.skipped,
        "trace": replayed.trace,
    }))
}
