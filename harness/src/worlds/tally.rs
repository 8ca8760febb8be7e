//! What came of many worlds, counted: what was drawn in how many of them, what happened in how many and how
//! often, and what was broken. Too little of anything is no evidence, so all of it is told.

use std::collections::BTreeMap;

use lab_sim::{Counters, Outcome, Rule, Violation};

/// Violations that are kept with their sentences; beyond them they are only counted.
const MAX_KEPT: usize = 1_000;

/// What came of many worlds. The order in which worlds are added changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Worlds.
    pub seeds: u64,
    /// Everything that happened in them.
    pub counters: Counters,
    /// In how many worlds each of it happened at all.
    pub worlds: BTreeMap<&'static str, u64>,
    /// What was drawn, how it fell, and in how many worlds.
    pub drawn: BTreeMap<(&'static str, String), u64>,
    /// Worlds in which a promise was broken, by the promise.
    pub broken: BTreeMap<Rule, u64>,
    /// The first of these, by seed.
    pub violations: BTreeMap<u64, Violation>,
    /// Histories that were too much for the checker's budget.
    pub undecided: u64,
    /// The longest election after healing, in virtual milliseconds, and its seed.
    pub slowest_election_ms: (u64, u64),
    /// The sum of all traces' hashes: equal for equal sweeps, whoever lived through which world.
    pub trace_hash: u64,
}

impl Tally {
    /// Adds a world.
    pub fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        for (name, count) in outcome.counters.rows() {
            *self.worlds.entry(name).or_default() += u64::from(count > 0);
        }
        for word in outcome.drawn.words() {
            *self.drawn.entry(word).or_default() += 1;
        }
        self.counters += outcome.counters;
        self.undecided += outcome.undecided;
        self.trace_hash = self.trace_hash.wrapping_add(outcome.trace_hash);
        let election = (outcome.election_ms.unwrap_or(0), outcome.drawn.seed);
        self.slowest_election_ms = self.slowest_election_ms.max(election);
        if let Some(violation) = outcome.violation {
            *self.broken.entry(violation.rule).or_default() += 1;
            self.violations.insert(outcome.drawn.seed, violation);
            if self.violations.len() > MAX_KEPT {
                self.violations.pop_last();
            }
        }
    }

    /// Worlds in which a promise was broken.
    pub fn broken(&self) -> u64 {
        self.broken.values().sum()
    }

    /// What was drawn, by what it is: how it fell, and in how many worlds.
    pub fn drawn(&self) -> BTreeMap<&'static str, Vec<(&str, u64)>> {
        let mut groups: BTreeMap<&'static str, Vec<(&str, u64)>> = BTreeMap::new();
        for ((group, word), count) in &self.drawn {
            groups.entry(group).or_default().push((word, *count));
        }
        // Figures by their size, words by their letters.
        for cells in groups.values_mut() {
            cells.sort_by_key(|(word, _)| (leading_number(word), *word));
        }
        groups
    }
}

fn leading_number(word: &str) -> Option<u64> {
    word.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
