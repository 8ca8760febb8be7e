//! The hunt in the simulator: for each bug the first world that convicts, twice; then the same worlds without
//! a bug.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab_mutants::Mutant;
use lab_sim::{Options, Rule, simulate};

use crate::progress::Progress;
use crate::progress::line::Line;
use crate::worlds::tally::Tally;
use crate::worlds::{Sweep, scripts, side_by_side};

/// Worlds in which a bug is hunted, where nobody says how many.
pub(super) const WORLDS: u64 = 10_000;
/// Worlds of the clean build at least.
const CLEAN: u64 = 1_000;
/// The same when it must be quick.
const CLEAN_QUICKLY: u64 = 300;

/// Worlds within which every bug must be found when it must be quick: a bench that needs more has become
/// worse. The rarest, ignore-peer-epoch, shows in four of a thousand.
const QUICKLY: u64 = 2_000;

/// How far a hunt goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) seeds: u64,
    pub(super) quick: bool,
    pub(super) jobs: usize,
}

impl Bounds {
    /// The worlds in which a bug is hunted.
    fn worlds(self) -> u64 {
        if self.quick { self.seeds.min(QUICKLY) } else { self.seeds }
    }
}

/// The world that convicted.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) seed: u64,
    pub(super) rule: Rule,
    pub(super) sentence: String,
    pub(super) took: Duration,
}

/// One way of hunting one bug.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// Convicted.
    Found(Found),
    /// Not convicted in so many worlds.
    NotFound { worlds: u64 },
    /// Not hunted this way, or not to the end.
    NotHunted,
}

impl Outcome {
    fn found(&self) -> Option<&Found> {
        match self {
            Self::Found(found) => Some(found),
            Self::NotFound { .. } | Self::NotHunted => None,
        }
    }

    fn worlds(&self) -> u64 {
        match self {
            Self::Found(found) => found.seed + 1,
            Self::NotFound { worlds } => *worlds,
            Self::NotHunted => 0,
        }
    }
}

/// The size of a counterexample that was made small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) events: usize,
    pub(super) members: usize,
    pub(super) operations: usize,
}

/// What came of a bug.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) bug: Mutant,
    pub(super) inside: Outcome,
    pub(super) outside: Outcome,
    pub(super) size: Option<Size>,
}

impl Row {
    /// Whether either way convicted.
    pub(super) fn is_found(&self) -> bool {
        self.inside.found().or(self.outside.found()).is_some()
    }
}

/// What came of all of them.
#[derive(Debug, Default)]
pub(super) struct Hunted {
    pub(super) rows: Vec<Row>,
    /// The clean build in the same worlds.
    pub(super) clean: Tally,
    pub(super) took: Duration,
    pub(super) interrupted: bool,
}

impl Hunted {
    /// Every bug found, the clean build not accused.
    pub(super) fn is_as_it_should_be(&self) -> bool {
        self.rows.iter().all(Row::is_found) && self.clean.broken() == 0
    }
}

/// A bug, and whether the members are looked into.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bug: Mutant,
    look_inside: bool,
    worlds: u64,
}

impl Piece {
    fn options(self) -> Options {
        Options { mutant: Some(self.bug), look_inside: self.look_inside, ..Options::default() }
    }

    fn way(self) -> &'static str {
        if self.look_inside { "inside" } else { "outside" }
    }
}

/// Hunts all of them.
pub(super) fn hunt(
    bugs: &[Mutant],
    bounds: Bounds,
    stop: &dyn Fn() -> bool,
    progress: &Progress,
) -> anyhow::Result<Hunted> {
    let begun = Instant::now();
    // What is seen inside comes first, so that most rows are there early. The look inside does not keep the
    // clients' history from convicting, so when it must be quick it is enough.
    let looks_inside: &[bool] = if bounds.quick { &[true] } else { &[true, false] };
    let pieces: Vec<Piece> = looks_inside
        .iter()
        .flat_map(|look_inside| {
            bugs.iter().map(move |bug| Piece {
                bug: *bug,
                look_inside: *look_inside,
                worlds: bounds.worlds(),
            })
        })
        .collect();
    let outcomes = side_by_side(&pieces, bounds.jobs, stop, hunt_piece, |(piece, outcome)| {
        tell(progress, *piece, outcome)
    })?;
    let outcomes: Vec<(Piece, Outcome)> = outcomes
        .into_iter()
        .zip(&pieces)
        .map(|(outcome, piece)| outcome.unwrap_or((*piece, Outcome::NotHunted)))
        .collect();
    let sizes = if bounds.quick { Vec::new() } else { sizes(&outcomes, bounds.jobs, stop)? };
    let rows = bugs
        .iter()
        .map(|bug| {
            let of = |look_inside: bool| {
                outcomes
                    .iter()
                    .find(|(piece, _)| piece.bug == *bug && piece.look_inside == look_inside)
                    .map_or(Outcome::NotHunted, |(_, outcome)| outcome.clone())
            };
            let size = sizes.iter().find(|(sized, _)| sized == bug).and_then(|(_, size)| *size);
            Row { bug: *bug, inside: of(true), outside: of(false), size }
        })
        .collect();
    let mut result = Hunted { rows, ..Hunted::default() };
    if !stop() {
        clean(&outcomes, bounds, stop, progress, &mut result)?;
    }
    result.interrupted = stop();
    result.took = begun.elapsed();
    Ok(result)
}

/// Lives through the worlds of a piece until one convicts the bug.
fn hunt_piece(piece: &Piece, halt: &AtomicBool) -> (Piece, Outcome) {
    let begun = Instant::now();
    for seed in 0..piece.worlds {
        if halt.load(Ordering::Relaxed) {
            return (*piece, Outcome::NotHunted);
        }
        if let Some(violation) = simulate(seed, piece.options()).violation {
            let (rule, sentence, took) = (violation.rule, violation.sentence, begun.elapsed());
            return (*piece, Outcome::Found(Found { seed, rule, sentence, took }));
        }
    }
    (*piece, Outcome::NotFound { worlds: piece.worlds })
}

fn tell(progress: &Progress, piece: Piece, outcome: &Outcome) {
    let (bug, way) = (piece.bug.name(), piece.way());
    match outcome {
        Outcome::Found(found) => progress.say(&format!(
            "{bug}, {way}: {} at seed {} after {:.1} s",
            found.rule.name(),
            found.seed,
            found.took.as_secs_f64()
        )),
        Outcome::NotFound { worlds } => progress.say(&format!("{bug}, {way}: not found in {worlds} worlds")),
        Outcome::NotHunted => {}
    }
}

/// The first counterexample of each bug, made small; the one seen inside where there is one.
fn sizes(
    outcomes: &[(Piece, Outcome)],
    jobs: usize,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Vec<(Mutant, Option<Size>)>> {
    let mut found: Vec<(Piece, u64)> = Vec::new();
    for (piece, outcome) in outcomes {
        if let Some(first) = outcome.found()
            && found.iter().all(|(other, _)| other.bug != piece.bug)
        {
            found.push((*piece, first.seed));
        }
    }
    let small = side_by_side(
        &found,
        jobs,
        stop,
        |(piece, seed), _| {
            let shrunk = scripts::shrink(*seed, piece.options()).ok().flatten();
            let size = shrunk.map(|shrunk| Size {
                events: shrunk.events,
                members: shrunk.members,
                operations: shrunk.operations,
            });
            (piece.bug, size)
        },
        |_| {},
    )?;
    Ok(small.into_iter().flatten().collect())
}

/// As many worlds of the clean build as the longest hunt took.
fn clean(
    outcomes: &[(Piece, Outcome)],
    bounds: Bounds,
    stop: &dyn Fn() -> bool,
    progress: &Progress,
    result: &mut Hunted,
) -> anyhow::Result<()> {
    let least = if bounds.quick { CLEAN_QUICKLY } else { CLEAN };
    let worlds = outcomes.iter().map(|(_, outcome)| outcome.worlds()).max().unwrap_or(0).max(least);
    progress.say(&format!("the clean build in {worlds} worlds"));
    let seeds = format!("0..{worlds}").parse().map_err(anyhow::Error::msg)?;
    let sweep = Sweep { seeds, options: Options::default(), jobs: bounds.jobs, limit: None };
    let swept = sweep.run(stop, |swept| {
        let line = Line::begin(format!("the clean build: {} of {worlds} worlds", swept.tally.seeds));
        progress.count(swept.tally.seeds, Some(worlds), swept.elapsed, &line);
    })?;
    result.clean = swept.tally;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_hunt_goes_less_far() {
        let bounds = Bounds { seeds: 10_000, quick: true, jobs: 1 };
        assert_eq!(bounds.worlds(), QUICKLY);
        assert_eq!(Bounds { quick: false, ..bounds }.worlds(), 10_000);
        assert_eq!(Bounds { seeds: 7, ..bounds }.worlds(), 7);
    }
}
