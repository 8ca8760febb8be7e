//! A script carried out.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lab_mutants::Mutant;
use node_wire::ids::Zxid;

use super::Script;
use crate::message_of;
use crate::outcome::Violation;
use crate::world::World;

/// What came of a script.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The first violation.
    pub violation: Option<Violation>,
    /// A line for each transition with what it did, and at the end how the members stand.
    pub trace: Vec<String>,
    /// Lines that were not possible.
    pub skipped: usize,
}

/// What came of a script, line by line.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) violation: Option<Violation>,
    /// What became of each line; those behind a violation are not reached.
    pub(super) lines: Vec<Done>,
    /// How the members stand at the end.
    pub(super) standings: Vec<String>,
}

/// What became of a line.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// False when it was not possible.
    pub(super) carried_out: bool,
    pub(super) at_us: u64,
    /// What it did, if that was asked for.
    pub(super) notes: Vec<String>,
    /// The zxid of the last packet that it delivered.
    pub(super) arrived: Option<Zxid>,
}

/// Carries out a script with members that have this bug, or none.
pub fn replay(script: &Script, mutant: Option<Mutant>) -> Replayed {
    let run = run(script, mutant, true);
    let texts: Vec<String> = script.lines.iter().map(|line| line.transition.to_string()).collect();
    let width = texts.iter().map(String::len).max().unwrap_or(0).min(40);
    let mut trace: Vec<String> = Vec::new();
    for (text, done) in texts.iter().zip(&run.lines) {
        let at = format!("{}.{:06}", done.at_us / 1_000_000, done.at_us % 1_000_000);
        let notes =
            if done.carried_out { together(&done.notes).join("; ") } else { "(not possible)".to_owned() };
        trace.push(format!("{at} {text:width$} {notes}").trim_end().to_owned());
    }
    trace.extend(run.standings);
    let skipped = run.lines.iter().filter(|done| !done.carried_out).count();
    Replayed { violation: run.violation, trace, skipped }
}

pub(super) fn run(script: &Script, mutant: Option<Mutant>, notes: bool) -> Run {
    let mut world = World::for_script(&script.head, mutant, notes);
    let mut run = Run::default();
    // As in a drawn world, a panic is the end and a finding.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        for line in &script.lines {
            if world.is_over() {
                break;
            }
            run.lines.push(Done { carried_out: true, at_us: world.now_us(), ..Done::default() });
            let carried_out = world.carry_out_line(line);
            let (notes, arrived) = world.take_notes();
            let at_us = world.now_us();
            if let Some(done) = run.lines.last_mut() {
                *done = Done { carried_out, at_us, notes, arrived };
            }
        }
        world.end();
    }));
    if notes {
        run.standings = world.standings();
    }
    run.violation = world.into_violation(ended.err().map(|payload| message_of(payload.as_ref())));
    run
}

/// Notes in which the same stands once, and what is sent to several members too: `s1>s2,s3 COMMIT
/// 0x100000001`.
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
