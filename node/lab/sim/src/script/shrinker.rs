//! The smallest script so far, and the question put to each smaller one: does it break the same promise?
//!
//! The passes choose what is tried. The shrinker carries it out, keeps it if the answer is yes, and counts
//! what that costs.

use lab_mutants::Mutant;

use super::lines::{Line, Transition};
use super::replay::{Run, run, together};
use super::{Head, Script};
use crate::outcome::{Rule, Violation};

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

/// Reduces a script.
pub(super) struct Shrinker {
    mutant: Option<Mutant>,
    rule: Rule,
    left: u32,
    used: u32,
    /// Whether the clean member has to keep its promises.
    acquits: bool,
    pub(super) best: Script,
}

impl Shrinker {
    pub(super) fn new(mutant: Option<Mutant>, rule: Rule, budget: u32) -> Self {
        let best = Script {
            title: Vec::new(),
            mutant,
            breaks: Some(rule),
            head: Head::usual(1),
            lines: Vec::new(),
            tail: Vec::new(),
        };
        Self { mutant, rule, left: budget.max(2), used: 0, acquits: mutant.is_some(), best }
    }

    /// Takes a script as it was written down. False when it does not break the rule.
    pub(super) fn begin(&mut self, script: Script) -> bool {
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

    fn run(&mut self, script: &Script, mutant: Option<Mutant>) -> Run {
        self.left = self.left.saturating_sub(1);
        self.used += 1;
        run(script, mutant, false)
    }

    fn is_innocent(&mut self, script: &Script) -> bool {
        self.run(script, None).violation.is_none()
    }

    /// Keeps a script that breaks the same rule, without the lines that were not possible in it.
    pub(super) fn tries(&mut self, mut script: Script) -> bool {
        if self.is_spent() {
            return false;
        }
        let run = self.run(&script, self.mutant);
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
    pub(super) fn finish(mut self, seed: u64, budget: u32) -> Option<Shrunk> {
        let told = run(&self.best, self.mutant, true);
        self.used += 1;
        let violation = told.violation?;
        for (line, done) in self.best.lines.iter_mut().zip(&told.lines) {
            let mut notes = together(&done.notes);
            // What goes on until a bound says the same over and over.
            if matches!(line.transition, Transition::Look(_)) && notes.len() > MAX_LOOK_NOTES {
                notes.truncate(MAX_LOOK_NOTES);
                notes.push("and so on".to_owned());
            }
            line.note = notes.join("; ");
            if let Transition::Packet { zxid, .. } = &mut line.transition {
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

fn title(script: &Script, violation: &Violation, seed: u64) -> Vec<String> {
    let mut title = Vec::new();
    if let Some(bug) = script.mutant {
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

/// A script with other lines, and nothing said about it yet.
pub(super) fn with_lines(script: &Script, lines: Vec<Line>) -> Script {
    Script {
        lines,
        head: script.head,
        mutant: script.mutant,
        breaks: script.breaks,
        title: Vec::new(),
        tail: Vec::new(),
    }
}
