//! What the clients saw, judged: the black box's verdict at the end of a world.
//!
//! The same checks as on real clusters, from the crate `checker`, for each workload of the world. Each
//! history is small, so the budget is small too; a register that exceeds it is counted as undecided and
//! accuses nobody.

use checker::history::{Extent, History};
use checker::verdict::CheckResult;
use checker::{Budget, append, ephemeral, linearizable, sequential, sessions, set, versions};
use workloads::Kind;
use workloads::judge::{Beside, Case, Effort};
use workloads::op::Object;

use crate::outcome::Rule;
use crate::world::{Clockwork, Oracle, Population};

/// What the search for an order may spend on one register of one world.
const BUDGET: Budget = Budget::new(5_000_000, 64 << 20);

impl Population {
    /// Judges what the clients saw.
    pub(in crate::world) fn check_history(&mut self, clock: &mut Clockwork, oracle: &mut Oracle) {
        for load in 0..self.record.loads.len() {
            if oracle.violation.is_some() {
                return;
            }
            let kind = self.record.loads[load].workload.kind();
            let lines = std::mem::take(&mut self.record.loads[load].history);
            let history = match History::from_events(lines) {
                Ok(history) => history,
                Err(error) => panic!("the clients' history of {} is not one: {error}", kind.name()),
            };
            self.check_load(clock, oracle, kind, &history);
        }
    }

    fn check_load(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, kind: Kind, history: &History) {
        // Nothing stands beside it: that silent sessions expire is demanded at the end, when all of them are
        // silent.
        let (beside, effort) = (Beside::default(), Effort::of(&BUDGET));
        let case = Case::new(history, Extent::Whole, &beside, &effort);
        let Some((own, others)) = kind.promises().split_first() else { return };
        let registers = kind.object() == Object::REGISTER;
        if registers {
            self.check_registers(clock, oracle, history);
        } else {
            oracle.report_of(clock, own(&case));
        }
        oracle.report_of(clock, sessions::check(history));
        for check in others {
            oracle.report_of(clock, check(&case));
        }
        if registers {
            oracle.cross_check(clock, self, history);
        }
    }

    fn check_registers(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, history: &History) {
        for (key, ops) in history.by_key() {
            let result = linearizable::check_key(key, &ops, &BUDGET);
            self.record.undecided += u64::from(result.reason.is_some());
            if let Some(counterexample) = result.counterexample {
                oracle.report(
                    clock,
                    Rule::Linearizability,
                    format!("register {key}, {} operations: {}", ops.len(), counterexample.sentence),
                );
            }
        }
    }
}

impl Oracle {
    /// The look inside and the black box must agree on the registers.
    fn cross_check(&mut self, clock: &mut Clockwork, population: &Population, history: &History) {
        if !clock.options.look_inside {
            return;
        }
        match (self.invariants.explain(history), self.violation.take()) {
            (Ok(()), Some(violation)) => self.report(
                clock,
                Rule::AgreementOfChecks,
                format!("what was committed explains every answer, and yet: {violation}"),
            ),
            (Err(sentence), None) if population.record.undecided == 0 => self.report(
                clock,
                Rule::AgreementOfChecks,
                format!(
                    "the clients' history is sound, and yet what was committed does not explain it: \
                    {sentence}"
                ),
            ),
            (_, violation) => self.violation = violation,
        }
    }

    fn report_of(&mut self, clock: &mut Clockwork, result: CheckResult) {
        if let Some(counterexample) = result.counterexample {
            self.report(
                clock,
                rule_of(&result.name),
                format!("{}: {}", result.summary, counterexample.sentence),
            );
        }
    }
}

/// The promise that a check is about.
fn rule_of(check: &str) -> Rule {
    match check {
        set::NAME => Rule::Set,
        append::NAME => Rule::Append,
        sequential::NAME => Rule::UniqueNames,
        ephemeral::NAME => Rule::Sessions,
        sessions::NAME => Rule::SessionOrder,
        versions::NAME => Rule::VersionOrder,
        _ => panic!("no world does a workload with the check {check}"),
    }
}
