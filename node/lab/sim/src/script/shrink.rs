//! A failing seed made small: first in its drawn world, then as a script.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lab_mutants::Mutant;

use super::replay::run;
use super::shrinker::{Shrinker, Shrunk};
use super::{Head, Line, Reduction, Script, passes};
use crate::message_of;
use crate::outcome::{Options, Rule, Violation};
use crate::world::World;

/// Makes a failing seed small, living through at most `budget` worlds. Nothing when the seed breaks no
/// promise, or when the script of its world does not break the same one.
pub fn shrink(seed: u64, options: Options, budget: u32) -> Option<Shrunk> {
    let whole = record(seed, options, &Reduction::default());
    let rule = whole.violation.as_ref()?.rule;
    let mut left = Worlds { seed, options, rule, left: budget / 4, reduction: Reduction::default() };
    left.reduce(&whole);
    let used = budget / 4 - left.left;
    let reduced = record(seed, options, &left.reduction);
    let mut shrinker = Shrinker::new(options.mutant, rule, budget.saturating_sub(used + 2));
    let script = |recorded: Recorded| recorded.into_script(options.mutant, rule);
    // What a script can't say of the smaller world it may be able to say of the whole one.
    if !shrinker.begin(script(reduced)) && !shrinker.begin(script(whole)) {
        return None;
    }
    passes::all(&mut shrinker);
    shrinker.finish(seed, budget)
}

/// The whole world of a failing seed as a script, and what it breaks. Nothing when the seed breaks no
/// promise, or when the script does not break the same one: not everything that a world does can be said.
pub fn write_down(seed: u64, options: Options) -> Option<(Script, Violation)> {
    let recorded = record(seed, options, &Reduction::default());
    let violation = recorded.violation.clone()?;
    let script = recorded.into_script(options.mutant, violation.rule);
    let replayed = run(&script, options.mutant, false).violation?;
    (replayed.rule == violation.rule).then_some((script, violation))
}

impl Recorded {
    fn into_script(self, mutant: Option<Mutant>, rule: Rule) -> Script {
        let breaks = Some(rule);
        let Self { head, lines, .. } = self;
        Script { title: Vec::new(), mutant, breaks, head, lines, tail: Vec::new() }
    }
}

/// A drawn world, written down.
struct Recorded {
    head: Head,
    lines: Vec<Line>,
    violation: Option<Violation>,
    turns: u64,
    clients: usize,
    end_us: u64,
}

/// Lives through a seed's world and writes it down.
fn record(seed: u64, options: Options, reduction: &Reduction) -> Recorded {
    let mut world = World::reduced(seed, options, reduction);
    world.record();
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    let (turns, clients, end_us) = (world.turns(), world.population(), world.now_us());
    let panic = ended.err().map(|payload| message_of(payload.as_ref()));
    let (head, lines, violation) = world.into_recording(panic);
    Recorded { head, lines, violation, turns, clients, end_us }
}

/// Reduces a drawn world.
struct Worlds {
    seed: u64,
    options: Options,
    rule: Rule,
    left: u32,
    reduction: Reduction,
}

impl Worlds {
    /// True, and kept, when the world without all this still breaks the rule.
    fn try_without(&mut self, reduction: Reduction) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let recorded = record(self.seed, self.options, &reduction);
        let same = recorded.violation.is_some_and(|violation| violation.rule == self.rule);
        if same {
            self.reduction = reduction;
        }
        same
    }

    fn reduce(&mut self, whole: &Recorded) {
        self.try_without(Reduction { calm: true, ..self.reduction.clone() });
        self.end_early(whole.end_us);
        self.without_clients(whole.clients);
        self.without_turns(whole.turns);
        self.without_clients(whole.clients);
        self.end_early(self.reduction.end_us.unwrap_or(whole.end_us));
    }

    /// Ends the world as early as the clients' history convicts.
    fn end_early(&mut self, end_us: u64) {
        let (mut fails, mut holds) = (0, end_us);
        while holds - fails > 10_000 && self.left > 0 {
            let middle = fails + (holds - fails) / 2;
            if self.try_without(Reduction { end_us: Some(middle), ..self.reduction.clone() }) {
                holds = middle;
            } else {
                fails = middle;
            }
        }
    }

    fn without_clients(&mut self, clients: usize) {
        // The first one prepares everything, and reads it last.
        for client in (1..clients).rev() {
            let mut reduction = self.reduction.clone();
            if reduction.clients.insert(client) {
                self.try_without(reduction);
            }
        }
    }

    fn without_turns(&mut self, turns: u64) {
        let mut chunk = turns.max(1);
        while chunk > 0 {
            let mut from = 0;
            while from < turns {
                let skipped: BTreeSet<u64> = (from..turns.min(from + chunk)).collect();
                if !skipped.is_subset(&self.reduction.turns) {
                    let turns = &self.reduction.turns | &skipped;
                    self.try_without(Reduction { turns, ..self.reduction.clone() });
                }
                from += chunk;
            }
            chunk /= 2;
        }
    }
}
