//! Transactions over several keys, each key a list that only grows: which anomalies a history shows, and
//! whether some serial order explains it.
//!
//! A transaction is a row of micro-operations, appends and reads of whole lists. Every element is appended
//! once, so a read tells not only what was written but also in which order; from that follows which
//! transaction has to come before which, and a cycle of these is a violation. The idea is Elle's (Kingsbury
//! and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020); so are the
//! names.
//!
//! The steps: `load` keeps of each key the longest list and of each read its length. `local` finds what needs
//! no cycle. `graph` infers the edges, `scc` finds components with cycles in linear time, `cycle` looks for
//! small ones and names them, `explain` tells them and `recheck` judges the few transactions again by a plain
//! search. Without any finding, the edges are kept by some order of the transactions; `replay` goes through
//! it and compares every answer. Only then the verdict is valid.
//!
//! For the serializable conditions this decides: edges are certain, and they suffice (see `graph`). Under
//! snapshot isolation two appends to one list that nobody ever read must not overlap, either way round: which
//! way is searched for (`unread`), within the budget.
//!
//! What is deliberately absent: registers and predicates, so no G2 but G2-item; elements appended twice are
//! refused.

mod brute;
mod condition;
mod cycle;
mod explain;
mod graph;
mod hop;
mod intern;
mod load;
mod local;
mod recheck;
mod replay;
mod rule;
mod unread;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

use serde_json::json;

use crate::budget::{Budget, Exhausted, Meter};
use crate::history::{LoadError, Outcome, Record};
use crate::verdict::{CheckResult, Judged, PartOrder, Verdict};

pub use condition::{Anomaly, Condition, Order, Shape};

use graph::Graph;
use load::{History, What};
use local::{Findings, Why};
use replay::Moment;

/// The name of the algorithm in results.
pub const NAME: &str = "list-append";

/// Transactions in a cycle that a person still reads.
const READABLE: usize = 6;

/// Judges a history of transactions.
///
/// # Errors
/// [`LoadError`] names the line that is malformed or contradicts those before it.
pub fn check(
    records: impl IntoIterator<Item = Result<Record, LoadError>>,
    condition: Condition,
    budget: &Budget,
) -> Result<Judged, LoadError> {
    let history = load::load(records, &budget.interrupt)?;
    if history.txns.is_empty() {
        return Err(LoadError::Empty);
    }
    Ok(judge(&history, condition, budget))
}

fn judge(history: &History, condition: Condition, budget: &Budget) -> Judged {
    let unknown = |why: String, evidence| {
        let result = CheckResult::new(condition.as_str(), Verdict::Unknown, why).with_evidence(evidence);
        Judged { result, witness: Vec::new() }
    };
    let counts = counts(history);
    if let Some(why) = history.cut {
        return unknown(format!("{why} after {} transactions were read", history.txns.len()), counts);
    }
    let mut meter = Meter::new(budget);
    let analysis = match Analysis::of(history, &mut meter) {
        Ok(analysis) => analysis,
        Err(why) => return unknown(format!("{why} among {} transactions", history.txns.len()), counts),
    };
    let mut evidence = counts;
    analysis.tell(history, &mut evidence);
    if analysis.breaks(condition) {
        let result = analysis.violation(history, condition, budget).with_evidence(evidence);
        return Judged { result: result.with_decided_by(NAME), witness: Vec::new() };
    }
    let moments = match analysis.witness(history, condition, &mut meter) {
        Ok(Some(moments)) => moments,
        Ok(None) => return unordered(history, condition, evidence, &mut meter),
        Err(why) => return unknown(format!("{why} before an order was found"), evidence),
    };
    if let Err(why) = replay::replay(history, &moments, condition) {
        let why = format!("no anomaly was found, but neither an order that explains every answer: {why}");
        return unknown(why, evidence);
    }
    if counted(history, Outcome::Ok) == 0 || history.reads == 0 {
        return unknown(
            "nothing was committed or nothing was read, so nothing was tested".to_owned(),
            evidence,
        );
    }
    let others: Vec<String> = analysis.findings.0.keys().map(ToString::to_string).collect();
    let though = match others.is_empty() {
        true => String::new(),
        false => format!(" (which allows the {} that was found)", others.join(", ")),
    };
    let summary = format!(
        "an order of {} transactions over {} keys explains {} reads{though}",
        moments.iter().filter(|moment| moment.commits).count(),
        history.lists.len(),
        history.reads
    );
    let result = CheckResult::new(condition.as_str(), Verdict::Valid, summary);
    let serial = condition >= Condition::Serializable || analysis.findings.0.is_empty();
    let order = moments.iter().map(|moment| history.txns[moment.txn as usize].index);
    let witness = if serial { vec![PartOrder { part: None, order: order.collect() }] } else { Vec::new() };
    Judged { result: result.with_evidence(evidence).with_decided_by(NAME), witness }
}

/// Appends that nobody read have no order in which no two transactions overlap that append to one list.
fn unordered(
    history: &History,
    condition: Condition,
    mut evidence: serde_json::Value,
    meter: &mut Meter,
) -> Judged {
    let all: Vec<u32> =
        (0..).zip(&history.happened).filter(|(_, there)| **there).map(|(txn, _)| txn).collect();
    let few = unread::fewest(all, |members| {
        let records = recheck::records(history, members, &[]);
        let Ok(part) = load::load(records.into_iter().map(Ok), &crate::budget::Interrupt::never()) else {
            return Ok(true);
        };
        let analysis = Analysis::of(&part, meter)?;
        Ok(!analysis.breaks(condition) && unread::order(&part, &analysis.graph, meter)?.is_some())
    });
    let records: Vec<u64> = few.iter().map(|txn| history.txns[*txn as usize].index).collect();
    evidence["may_hold"] = json!(condition.weaker().map(Condition::as_str));
    evidence["records"] = json!(records);
    let named = if records.len() <= READABLE {
        format!("those of records {}", records.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
    } else {
        format!("{} transactions", records.len())
    };
    let summary = format!(
        "two transactions that append to one list must not overlap, and whatever the order of what nobody \
         read, two of {named} do"
    );
    let result = CheckResult::new(condition.as_str(), Verdict::Invalid, summary);
    Judged { result: result.with_evidence(evidence).with_decided_by(NAME), witness: Vec::new() }
}

/// All that can be told from a history, whatever was promised.
struct Analysis {
    graph: Graph,
    findings: Findings,
    /// Conditions that a cycle breaks.
    cyclic: Vec<Condition>,
    /// How many transactions are in components with cycles.
    entangled: u32,
    /// Without any cycle: all nodes, each after those that it has to come before.
    reversed: Option<Vec<u32>>,
    /// Why examples of cycles are not complete.
    gave_up: Option<Exhausted>,
}

impl Analysis {
    fn of(history: &History, meter: &mut Meter) -> Result<Self, Exhausted> {
        let mut findings = local::find(history, meter)?;
        let graph = Graph::infer(history);
        let everything = cycle::level(&graph, Condition::StrictSerializable);
        let whole = crate::scc::components(&everything, meter)?;
        if whole.cyclic.is_empty() {
            let reversed = Some(whole.reversed);
            return Ok(Self { graph, findings, cyclic: Vec::new(), entangled: 0, reversed, gave_up: None });
        }
        drop(whole.reversed);
        let parts = cycle::parts_of(everything, whole.cyclic);
        let mut cyclic = Vec::new();
        let gave_up = cycle::find(&graph, &parts, &mut findings, &mut cyclic, meter).err();
        for &condition in &cyclic {
            let named =
                |anomaly: &Anomaly| matches!(anomaly, Anomaly::Cycle(..)) && anomaly.rules_out() <= condition;
            if !findings.0.keys().any(named) {
                findings.note(Anomaly::CycleExists(condition), || Why::Cycle(Vec::new()));
            }
        }
        let entangled = cycle::size(&graph, &parts);
        Ok(Self { graph, findings, cyclic, entangled, reversed: None, gave_up })
    }

    /// The weakest condition that is broken.
    fn weakest_broken(&self) -> Option<Condition> {
        let found = self.findings.0.keys().map(|anomaly| anomaly.rules_out());
        found.chain(self.cyclic.iter().copied()).min()
    }

    fn breaks(&self, condition: Condition) -> bool {
        self.weakest_broken().is_some_and(|broken| broken <= condition)
    }

    /// The worst finding that breaks a condition, with its example. A cycle that nobody would read to its end
    /// is shown only when there is nothing smaller, and of those that need the order of processes or of time
    /// the smallest is.
    fn worst(&self, condition: Condition) -> Option<(Anomaly, &Why)> {
        let broken = self.findings.0.iter().filter(|(anomaly, _)| anomaly.rules_out() <= condition);
        let size = |why: &Why| match why {
            Why::Cycle(hops) if hops.is_empty() => usize::MAX,
            Why::Cycle(hops) => hops.len(),
            _ => 0,
        };
        let level = |anomaly: &Anomaly| anomaly.rules_out().min(Condition::StrongSessionSerializable);
        let worst = broken.min_by_key(|(anomaly, (_, why))| {
            (size(why).saturating_sub(READABLE), level(anomaly), size(why))
        });
        worst.map(|(&anomaly, (_, why))| (anomaly, why))
    }

    fn violation(&self, history: &History, condition: Condition, budget: &Budget) -> CheckResult {
        let names: Vec<String> = self.findings.0.keys().map(ToString::to_string).collect();
        let holds = self.holds().map_or_else(|| "none".to_owned(), |holds| format!("at most {holds}"));
        let summary = format!("{} found: of the conditions {holds} still holds", names.join(", "));
        let result = CheckResult::new(condition.as_str(), Verdict::Invalid, summary);
        match self.worst(condition) {
            Some((_, Why::Cycle(hops))) if hops.is_empty() => {
                let why = self.gave_up.map(|why| format!(" ({why})")).unwrap_or_default();
                let summary = format!(
                    "{}; the cycle is somewhere among {} transactions{why}",
                    result.summary, self.entangled
                );
                CheckResult { summary, ..result }
            }
            Some((anomaly, why)) => {
                let shown = explain::counterexample(history, anomaly, why, condition, budget);
                result.with_counterexample(shown)
            }
            None => result,
        }
    }

    /// The strongest condition of which no violation was found.
    fn holds(&self) -> Option<Condition> {
        self.weakest_broken().map_or(Some(Condition::StrictSerializable), Condition::weaker)
    }

    fn tell(&self, history: &History, evidence: &mut serde_json::Value) {
        let found = self.findings.0.iter().map(|(anomaly, (count, _))| (anomaly.to_string(), json!(count)));
        evidence["anomalies"] = serde_json::Value::Object(found.collect());
        evidence["may_hold"] = json!(self.holds().map(Condition::as_str));
        evidence["edges"] = json!(self.graph.size());
        if self.entangled > 0 {
            evidence["in_cycles"] = json!(self.entangled);
        }
        if history.odd_dropped > 0 {
            evidence["contradicting_reads_not_kept"] = json!(history.odd_dropped);
        }
        if let Some(why) = self.gave_up {
            evidence["examples_incomplete"] = json!(why.to_string());
        }
    }

    /// An order that keeps all that the condition is about; none if there is none.
    fn witness(
        &self,
        history: &History,
        condition: Condition,
        meter: &mut Meter,
    ) -> Result<Option<Vec<Moment>>, Exhausted> {
        let graph = &self.graph;
        // A serial order explains the answers under any condition, so where there is one it is taken.
        let snapshots = condition == Condition::SnapshotIsolation;
        let serial = snapshots && !self.cyclic.contains(&Condition::Serializable);
        if snapshots && !serial {
            return unread::order(history, graph, meter);
        }
        let level = if serial { Condition::Serializable } else { condition };
        let view = cycle::level(graph, level);
        let found;
        let reversed = match &self.reversed {
            Some(reversed) => reversed,
            None => {
                found = crate::scc::components(&view, meter)?.reversed;
                &found
            }
        };
        let mut moments = Vec::with_capacity(graph.txns as usize);
        for &txn in reversed.iter().rev().filter(|txn| self.takes_part(**txn)) {
            if snapshots {
                moments.push(Moment { txn, commits: false });
            }
            moments.push(Moment { txn, commits: true });
        }
        Ok(Some(moments))
    }

    fn takes_part(&self, node: u32) -> bool {
        node < self.graph.txns && self.graph.happened[node as usize]
    }
}

fn counted(history: &History, outcome: Outcome) -> usize {
    history.txns.iter().filter(|txn| txn.outcome == outcome).count()
}

fn counts(history: &History) -> serde_json::Value {
    let appends = history.micros.iter().filter(|micro| matches!(micro.what, What::Append(_))).count();
    json!({
        "transactions": history.txns.len(),
        "ok": counted(history, Outcome::Ok),
        "fail": counted(history, Outcome::Fail),
        "info": counted(history, Outcome::Info),
        "keys": history.lists.len(),
        "appends": appends,
        "reads": history.reads,
        "longest": history.lists.iter().map(|list| list.order.len()).max().unwrap_or(0),
    })
}
