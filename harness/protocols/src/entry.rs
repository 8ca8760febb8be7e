//! Protocols by name, with their mutants and their scenarios: what a command line asks for.

use std::time::Duration;

use checker::history::Function;
use harness_core::virtual_ensemble::{Setting, VirtualEnsemble};
use workloads::Workload;

use crate::explore::{Bounds, explore};
use crate::ladder;
use crate::planned;
use crate::protocol::{Broken, Protocol};
use crate::report::{Report, Summary};
use crate::script::{Happened, Otherwise, Script, live};
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

/// What a run of the bench asks of a protocol whose members serve clients.
#[derive(Clone, Copy, Debug)]
pub struct Serves {
    /// What clients can ask for.
    pub functions: &'static [Function],
    /// After which silence members take each other for gone, when nobody says.
    pub peer_timeout: Duration,
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
    /// What its clients can ask for; none where it serves none.
    pub serves: Option<Serves>,
    /// Its bugs.
    pub mutants: &'static [Mutant],
    /// Its scenarios.
    pub scenarios: &'static [Scenario],
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
    /// A world that a run of the bench drives.
    fn begin(&self, setting: &Setting, workload: Workload) -> Box<dyn VirtualEnsemble>;
    /// Lives through the world of a seed.
    fn simulate(&self, seed: u64, options: Options) -> Summary;
    /// A small script of what a seed's world breaks; none where nothing is, or what is broken never happens.
    fn script_of(&self, seed: u64, plant: Option<&str>) -> Option<String>;
    /// Lives through a script, and draws it.
    fn play(&self, title: &str, script: &Script) -> Played;
    /// Looks at every interleaving.
    fn explore(&self, members: u8, bounds: &Bounds, plant: Option<&str>) -> Found;
}

impl<P: Protocol> Playable for P {
    fn begin(&self, setting: &Setting, workload: Workload) -> Box<dyn VirtualEnsemble> {
        planned::begin(self, setting, workload)
    }

    fn simulate(&self, seed: u64, options: Options) -> Summary {
        simulate(self, seed, options).summary
    }

    fn script_of(&self, seed: u64, plant: Option<&str>) -> Option<String> {
        let Report { summary, steps } = simulate(self, seed, Options { keep: true, ..Options::default() });
        let few = shrink(self, summary.members, &steps, &summary.broken?.rule)?;
        let (steps, broken) = (few.0.as_slice(), few.1);
        Some(Script::of(self.name(), plant, summary.members, (steps, true), Some(&broken)))
    }

    fn play(&self, title: &str, script: &Script) -> Played {
        let (lived, right) = live(self.clone(), script);
        let lines = lived.steps.iter().map(|Happened { step, came, .. }| {
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
