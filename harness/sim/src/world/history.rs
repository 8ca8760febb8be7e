//! What the clients saw, judged: the black box's verdict at the end of a world.
//!
//! The same checks as on real clusters, from the crate `checker`. Each world's history is small, so the budget
//! is small too; a register that exceeds it is counted as undecided and accuses nobody.

use checker::history::History;
use checker::verdict::CheckResult;
use checker::{Budget, linearizable, sessions, versions};
use node_core::Plant;

use super::World;
use crate::outcome::Rule;

/// What the search for an order may spend on one register of one world.
const BUDGET: Budget = Budget { steps: 5_000_000, memory_bytes: 64 << 20 };

impl<P: Plant> World<P> {
    /// Judges the history of the registers.
    pub(super) fn check_history(&mut self) {
        let lines = std::mem::take(&mut self.record.history);
        let history = match History::from_events(lines) {
            Ok(history) => history,
            Err(error) => panic!("the clients' history is not one: {error}"),
        };
        for (key, ops) in history.by_key() {
            let result = linearizable::check_key(key, &ops, BUDGET);
            self.record.undecided += u64::from(result.reason.is_some());
            if let Some(counterexample) = result.counterexample {
                self.convict(
                    Rule::Linearizability,
                    format!("register {key}, {} operations: {}", ops.len(), counterexample.sentence),
                );
            }
        }
        self.convict_by(Rule::SessionOrder, sessions::check(&history));
        self.convict_by(Rule::VersionOrder, versions::check(&history));
        self.cross_check(&history);
    }

    /// The look inside and the black box must agree on the registers.
    fn cross_check(&mut self, history: &History) {
        if !self.options.look_inside {
            return;
        }
        match (self.judge.explain(history), self.violation.take()) {
            (Ok(()), Some(violation)) => self.convict(
                Rule::AgreementOfChecks,
                format!("what was committed explains every answer, and yet: {violation}"),
            ),
            (Err(sentence), None) if self.record.undecided == 0 => self.convict(
                Rule::AgreementOfChecks,
                format!("the clients' history is sound, and yet what was committed does not explain it: {sentence}"),
            ),
            (_, violation) => self.violation = violation,
        }
    }

    fn convict_by(&mut self, rule: Rule, result: CheckResult) {
        if let Some(counterexample) = result.counterexample {
            self.convict(rule, format!("{}: {}", result.summary, counterexample.sentence));
        }
    }
}
