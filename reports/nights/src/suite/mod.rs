//! The file of a night: what is to be run, with what budget, and what its numbers must be.
//!
//! It is TOML and holds no program. A case is a set of flags of `harness run`; a matrix makes several of it.
//! Which flags there are is not known here, so whatever a key says becomes a flag, and the command line
//! refuses what does not exist before anything is started. Everything else is refused here, with the line.

mod file;
mod matrix;

use std::path::PathBuf;
use std::time::Duration;

use crate::threshold::Threshold;

pub use file::read;

/// What a night is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// How it is run.
    pub settings: Settings,
    /// Its cases in the order of the file, matrices expanded, each with an id of its own.
    pub cases: Vec<Case>,
    /// Findings that somebody has looked at.
    pub known: Vec<Known>,
}

/// How a night is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long the night may take; none leaves it to the command line.
    pub budget: Option<Duration>,
    /// Where nights are kept; none leaves it to the command line.
    pub store: Option<PathBuf>,
    /// How often an attempt that was unknown, or that the bench failed at, is made again: 0 or 1.
    pub retries: u32,
    /// How often a violation's schedule is run again.
    pub replays: u32,
    /// How long a violation may be made smaller; zero leaves it as it is.
    pub shrink: Duration,
    /// Planted bugs that the night must convict.
    pub mutants: u32,
    /// Whether idle budget goes into worlds of the simulator.
    pub worlds: bool,
    /// Runs at a time.
    pub jobs: u32,
    /// Pairs of runs that confirm an alarm; zero tells of no alarm.
    pub pairs: u32,
    /// A command and its arguments, started for each finding with the finding as JSON on its standard input.
    pub on_finding: Vec<String>,
    /// What is kept of old nights.
    pub retention: Retention,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            budget: None,
            store: None,
            retries: 1,
            replays: 3,
            shrink: Duration::from_secs(300),
            mutants: 1,
            worlds: true,
            jobs: 1,
            pairs: 8,
            on_finding: Vec::new(),
            retention: Retention::default(),
        }
    }
}

/// What is kept of old nights. Run folders with a finding are kept for ever, and so is the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Nights whose run folders stay.
    pub nights: u32,
    /// Bytes that the run folders of all nights may take together.
    pub bytes: u64,
    /// Whether histories are compressed while they are written.
    pub compress: bool,
}

impl Default for Retention {
    fn default() -> Self {
        Self { nights: 30, bytes: 20_000_000_000, compress: true }
    }
}

/// One configuration, run as often as `repeat` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name in every night: the file's name for it, and the values of its matrix.
    pub id: String,
    /// Who is told of it.
    pub owner: Option<String>,
    /// Flags of `harness run`, without the dashes, in a fixed order; an empty value is a flag alone.
    pub flags: Vec<(String, String)>,
    /// Runs a night.
    pub repeat: u32,
    /// How much sooner than others its turn comes again.
    pub weight: u32,
    /// What its numbers must be.
    pub thresholds: Vec<Threshold>,
}

impl Case {
    /// The value of a flag.
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.flags.iter().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str())
    }

    /// Its flags as they are typed.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (flag, value) in &self.flags {
            words.push(format!("--{flag}"));
            if !value.is_empty() {
                words.push(value.clone());
            }
        }
        words
    }
}

/// A finding that somebody has looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its fingerprint.
    pub finding: String,
    /// Where it is written about.
    pub link: String,
    /// The last night, as `2026-12-31`, in which it does not decide the night's exit status; none lets it
    /// decide always.
    pub until: Option<String>,
}
