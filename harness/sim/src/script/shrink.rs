//! A failing seed made small: first in its drawn world, then as a script.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use node_core::{Bug, Clean, Plant, Planted};

use super::replay::{Run, run};
use super::{Head, Line, Reduction, Script, passes};
use crate::message_of;
use crate::outcome::{Options, Rule, Violation};
use crate::world::World;

/// Notes of a look at most.
const MAX_LOOK_NOTES: usize = 12;

/// A small counterexample.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The script that is left.
    pub script: Script,
    /// What it breaks.
    pub violation: Violation,
    /// Its transitions.
    pub events: usize,
    /// Its members.
    pub members: usize,
    /// Operations that its clients ask for.
    pub operations: usize,
    /// Worlds that were lived through to find it.
    pub replays: u32,
}

/// Makes a failing seed small, living through at most `budget` worlds. Nothing when the seed breaks no promise, or
/// when the script of its world does not break the same one.
pub fn shrink(seed: u64, options: Options, budget: u32) -> Option<Shrunk> {
    let whole = record(seed, options, &Reduction::default());
    let rule = whole.violation.as_ref()?.rule;
    let mut left = Worlds { seed, options, rule, left: budget / 4, reduction: Reduction::default() };
    left.reduce(&whole);
    let used = budget / 4 - left.left;
    let reduced = record(seed, options, &left.reduction);
    let mut shrinker = Shrinker::new(options.plant, rule, budget.saturating_sub(used + 2));
    let script = |recorded: Recorded| recorded.into_script(options.plant, rule);
    // What a script can't say of the smaller world it may be able to say of the whole one.
    if !shrinker.begin(script(reduced)) && !shrinker.begin(script(whole)) {
        return None;
    }
    passes::all(&mut shrinker);
    shrinker.finish(seed, budget)
}

/// The whole world of a failing seed as a script, and what it breaks. Nothing when the seed breaks no promise, or when
/// the script does not break the same one: not everything that a world does can be said.
pub fn write_down(seed: u64, options: Options) -> Option<(Script, Violation)> {
    let recorded = record(seed, options, &Reduction::default());
    let violation = recorded.violation.clone()?;
    let script = recorded.into_script(options.plant, violation.rule);
    let replayed = run(&script, options.plant, false).violation?;
    (replayed.rule == violation.rule).then_some((script, violation))
}

impl Recorded {
    fn into_script(self, plant: Option<Bug>, rule: Rule) -> Script {
        let breaks = Some(rule);
        let Self { head, lines, .. } = self;
        Script { title: Vec::new(), plant, breaks, head, lines, tail: Vec::new() }
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
    fn live<P: Plant>(mut world: World<P>) -> Recorded {
        world.record();
        let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
        let (turns, clients, end_us) = (world.turns(), world.population(), world.now_us());
        let panic = ended.err().map(|payload| message_of(payload.as_ref()));
        let (head, lines, violation) = world.into_recording(panic);
        Recorded { head, lines, violation, turns, clients, end_us }
    }
    match options.plant {
        None => live(World::reduced(seed, options, Clean, reduction)),
        Some(bug) => live(World::reduced(seed, options, Planted(bug), reduction)),
    }
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

/// Reduces a script.
pub(super) struct Shrinker {
    plant: Option<Bug>,
    rule: Rule,
    left: u32,
    used: u32,
    /// Whether the clean member has to keep its promises.
    acquits: bool,
    pub(super) best: Script,
}

impl Shrinker {
    fn new(plant: Option<Bug>, rule: Rule, budget: u32) -> Self {
        let best = Script {
            title: Vec::new(),
            plant,
            breaks: Some(rule),
            head: Head::usual(1),
            lines: Vec::new(),
            tail: Vec::new(),
        };
        Self { plant, rule, left: budget.max(2), used: 0, acquits: plant.is_some(), best }
    }

    /// Takes a script as it was written down. False when it does not break the rule.
    fn begin(&mut self, script: Script) -> bool {
        let acquits = std::mem::replace(&mut self.acquits, false);
        let begins = self.tries(script);
        // A script that accuses the clean member from the start is not held to more than it can do.
        self.acquits = acquits && begins && self.is_innocent(&self.best.clone());
        begins
    }

    /// True when nothing may be tried any more.
    pub(super) fn is_spent(&self) -> bool {
        self.left == 0
    }

    fn run(&mut self, script: &Script, plant: Option<Bug>) -> Run {
        self.left = self.left.saturating_sub(1);
        self.used += 1;
        run(script, plant, false)
    }

    fn is_innocent(&mut self, script: &Script) -> bool {
        self.run(script, None).violation.is_none()
    }

    /// Keeps a script that breaks the same rule, without the lines that were not possible in it.
    pub(super) fn tries(&mut self, mut script: Script) -> bool {
        if self.is_spent() {
            return false;
        }
        let run = self.run(&script, self.plant);
        if run.violation.is_none_or(|violation| violation.rule != self.rule) {
            return false;
        }
        let mut done = run.lines.iter().map(|done| done.carried_out);
        script.lines.retain(|_| done.next().unwrap_or(false));
        if self.acquits && !self.is_innocent(&script) {
            return false;
        }
        self.best = script;
        true
    }

    /// The smallest script, with notes.
    fn finish(mut self, seed: u64, budget: u32) -> Option<Shrunk> {
        let told = run(&self.best, self.plant, true);
        self.used += 1;
        let violation = told.violation?;
        for (line, done) in self.best.lines.iter_mut().zip(&told.lines) {
            let mut notes = together(&done.notes);
            // What goes on until a bound says the same over and over.
            if matches!(line.transition, super::Transition::Look(_)) && notes.len() > MAX_LOOK_NOTES {
                notes.truncate(MAX_LOOK_NOTES);
                notes.push("and so on".to_owned());
            }
            line.note = notes.join("; ");
            if let super::Transition::Packet { zxid, .. } = &mut line.transition {
                *zxid = done.arrived;
            }
        }
        let mut script = self.best;
        script.title = title(&script, &violation, seed);
        script.tail = told.standings;
        Some(Shrunk {
            events: script.events(),
            members: script.members(),
            operations: script.operations(),
            replays: self.used.min(budget),
            script,
            violation,
        })
    }
}

/// Notes in which the same stands once, and what is sent to several members too: `s1>s2,s3 COMMIT 0x100000001`.
pub(super) fn together(notes: &[String]) -> Vec<String> {
    let parts = |note: &str| {
        let (link, what) = note.split_once(' ')?;
        let (from, to) = link.split_once('>')?;
        Some((from.to_owned(), to.to_owned(), what.to_owned()))
    };
    let mut told: Vec<String> = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for note in notes.iter().filter(|note| known.insert(note.as_str())) {
        let same = parts(note).and_then(|(from, to, what)| {
            let earlier = told.iter_mut().find(|earlier| {
                parts(earlier).is_some_and(|(sender, _, said)| sender == from && said == what)
            })?;
            Some((earlier, to))
        });
        match same {
            Some((earlier, to)) => *earlier = earlier.replacen(' ', &format!(",{to} "), 1),
            None => told.push(note.clone()),
        }
    }
    told
}

fn title(script: &Script, violation: &Violation, seed: u64) -> Vec<String> {
    let mut title = Vec::new();
    if let Some(bug) = script.plant {
        title.push(format!("{}: {} ({}).", bug.name(), bug.summary(), bug.origin()));
    }
    title.push(format!("{}: {}.", violation.rule.name(), violation.sentence));
    title.push(format!(
        "What is left of seed {seed}: {} transitions, {} members, {} operations.",
        script.events(),
        script.members(),
        script.operations()
    ));
    title.push(String::new());
    title
}
