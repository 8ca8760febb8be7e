//! Protocols by name, with their mutants and their scenarios: what a command line asks for.

use std::collections::BTreeMap;

use crate::explore::{Bounds, explore};
use crate::ladder;
use crate::protocol::{Broken, Protocol};
use crate::script::{Otherwise, Script, live};
use crate::shrink::shrink;
use crate::world::{Options, simulate};

/// A bug that can be planted.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// What it does wrong.
    pub about: &'static str,
}

/// A script with a name.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The script.
    pub script: &'static str,
}

/// A protocol, as a command line finds it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Makes it, with a bug or without; none where no bug has that name.
    pub make: fn(Option<&str>) -> Option<Box<dyn Playable>>,
    /// Its bugs.
    pub mutants: &'static [Mutant],
    /// Its scenarios.
    pub scenarios: &'static [Scenario],
}

/// What came of a world, in words.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its seed.
    pub seed: u64,
    /// What was drawn.
    pub drawn: String,
    /// What is broken.
    pub broken: Option<Broken>,
    /// How many steps there were.
    pub steps: u64,
    /// How long it lived, in virtual microseconds.
    pub lived_us: u64,
    /// Operations that clients had acknowledged.
    pub acknowledged: u64,
    /// Faults, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Equal for equal worlds.
    pub hash: u64,
    /// Lines, where they were asked for.
    pub lines: Vec<String>,
}

/// What came of a script.
#[derive(Clone, Debug)]
pub struct Played {
    /// What happened, line by line.
    pub lines: Vec<String>,
    /// What is broken.
    pub broken: Option<Broken>,
    /// Whether it came out as the script says.
    pub right: Result<(), Otherwise>,
    /// The picture.
    pub svg: String,
}

/// What an exploration found.
#[derive(Clone, Debug)]
pub struct Found {
    /// How many states there were.
    pub states: usize,
    /// Whether none was left to look at.
    pub whole: bool,
    /// What is broken, and a shortest script of it.
    pub broken: Option<(Broken, String)>,
}

/// A protocol of which nobody knows the types.
pub trait Playable: Send + Sync {
    /// Lives through the world of a seed.
    fn simulate(&self, seed: u64, options: Options) -> Summary;
    /// A small script of what a seed's world breaks, if it breaks something without clients' histories.
    fn script_of(&self, seed: u64, plant: Option<&str>) -> Option<String>;
    /// Lives through a script, and draws it.
    fn play(&self, title: &str, script: &Script) -> Played;
    /// Looks at every interleaving.
    fn explore(&self, members: u8, bounds: &Bounds, plant: Option<&str>) -> Found;
}

impl<P: Protocol> Playable for P {
    fn simulate(&self, seed: u64, options: Options) -> Summary {
        let report = simulate(self, seed, options);
        Summary {
            seed,
            drawn: report.drawn,
            broken: report.broken,
            steps: report.count,
            lived_us: report.lived_us,
            acknowledged: report.acknowledged,
            faults: report.faults,
            hash: report.hash,
            lines: report.lines,
        }
    }

    fn script_of(&self, seed: u64, plant: Option<&str>) -> Option<String> {
        let report = simulate(self, seed, Options { keep: true, ..Options::default() });
        let broken = report.broken?;
        let few = shrink(self, report.members, &report.steps, &broken.rule);
        let (_, broken) = crate::shrink::replay(self, report.members, &few, &broken.rule)?;
        Some(Script::of(self.name(), plant, report.members, (&few, true), Some(&broken)))
    }

    fn play(&self, title: &str, script: &Script) -> Played {
        let (lived, right) = live(self.clone(), script);
        let lines = lived.steps.iter().map(|(step, came, _)| {
            let mut line = step.to_string();
            for (from, to, message) in &came.sent {
                line.push_str(&format!("\n    {from} sends {to}: {message}"));
            }
            for (id, request, outcome) in &came.answers {
                line.push_str(&format!("\n    {id} answers {}: {}", request.0, outcome.value));
            }
            line
        });
        Played {
            lines: lines.collect(),
            svg: ladder::draw(title, script.members, &lived),
            broken: lived.broken,
            right,
        }
    }

    fn explore(&self, members: u8, bounds: &Bounds, plant: Option<&str>) -> Found {
        let explored = explore(self.clone(), members, bounds);
        let broken = explored.broken.map(|(broken, steps)| {
            let script = Script::of(self.name(), plant, members, (&steps, bounds.crashes > 0), Some(&broken));
            (broken, script)
        });
        Found { states: explored.states, whole: explored.whole, broken }
    }
}
