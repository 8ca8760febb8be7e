//! Flags of the commands that need no machine: worlds of the simulator, the zoo of bugs, a schedule run
//! again.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{AgainArgs, Format, names};
use crate::worlds::seeds::Seeds;

/// Flags of `replay`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A folder may be somebody else's. What code runs, and who can reach it, is never taken from \
                  it: a --system that is a file, --image, --image-command, --publish, --pull and a --set \
                  that names code stand on this command line or nowhere."
)]
pub struct ReplayArgs {
    /// A run folder with its schedule
    pub path: PathBuf,
    /// Where members run [default: as in the folder]
    #[arg(long, value_name = "WHERE", value_parser = names::a_cluster())]
    pub cluster: Option<String>,
    /// What is not taken from the folder.
    #[command(flatten)]
    pub again: AgainArgs,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub store: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Flags of `sim`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "By night: `harness sim --seeds 0.. --time-limit 8h` lives through worlds until the \
                  morning, about a million of them on a few cores, and tells what was drawn and what \
                  happened in how many. Tomorrow's night goes on where this one ended: `--seeds \
                  1000000..`.\n\nA failing seed is one command: the line behind `again:` repeats it to the \
                  byte. With --shrink it becomes a script of a few lines, saved below --store, which \
                  --script lives through again.")]
pub struct SimArgs {
    /// One world: what was drawn, with --trace what happened, and what came of it
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "script"])]
    pub seed: Option<u64>,
    /// Many worlds, on all cores: `0..10000`, or `0..` until --time-limit
    #[arg(long, value_name = "A..B", conflicts_with = "script")]
    pub seeds: Option<Seeds>,
    /// A saved script: what happens in it, line by line
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Worlds and scripts of a protocol (`harness list protocols`); of zab, the members' own, scripts and
    /// --explore: its worlds are those of --seeds without this
    #[arg(long, value_name = "NAME", conflicts_with_all = ["only", "outside"])]
    pub protocol: Option<String>,
    /// A script of its that is handed out (`harness list scenarios`)
    #[arg(long, value_name = "NAME", requires = "protocol", conflicts_with_all = ["seed", "seeds", "script"])]
    pub scenario: Option<String>,
    /// Every interleaving of so many members, of which two are asked once: the shortest way to what is broken
    #[arg(long, value_name = "MEMBERS", requires = "protocol",
          conflicts_with_all = ["seed", "seeds", "script", "scenario"])]
    pub explore: Option<u8>,
    /// Print every transition of one world
    #[arg(long)]
    pub trace: bool,
    /// Make the members a mutant (`harness list mutants`), or `none` [default: none; with --script, as the
    /// file says]
    #[arg(long, value_name = "BUG", value_parser = names::a_mutant(), hide_possible_values = true)]
    pub mutant: Option<String>,
    /// Worlds of one kind alone: membership (every ensemble changes while it serves), applications (some
    /// clients stand for election, or lock, over the recipes of the async client), long-steps (machines are
    /// slow and requests large, so that steps work for many peer time-outs)
    #[arg(long, value_name = "KIND", conflicts_with = "script")]
    pub only: Option<String>,
    /// Make the recipe of all applications a mutant, in worlds of --only applications
    #[arg(long, value_name = "BUG", conflicts_with = "script")]
    pub mutant_recipe: Option<String>,
    /// Do not look inside the members: only what clients saw can convict, as on a real cluster
    #[arg(long)]
    pub outside: bool,
    /// Make failing worlds small and save them as scripts
    #[arg(long, conflicts_with = "script")]
    pub shrink: bool,
    /// Worlds at a time [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Begin no world after this long
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<String>,
    /// Where scripts are saved, in its folder `sim`
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub store: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: SimFormat,
}

/// How worlds are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SimFormat {
    /// A screen for people.
    #[default]
    Human,
    /// For programs; of the members' own protocol.
    Json,
    /// A picture: what happens in a scenario, in a script, or in what --shrink and --explore find; of other
    /// protocols.
    Svg,
}

/// How the table of bugs is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// A screen for people.
    #[default]
    Human,
    /// For programs.
    Json,
    /// For documents.
    Markdown,
}

/// Flags of `selftest`.
#[derive(Clone, Debug, Args)]
pub struct SelftestArgs {
    /// Bugs of other protocols instead of the members' own, with commas between (`harness list protocols`)
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["quick", "cluster"])]
    pub protocol: Vec<String>,
    /// Where bugs are hunted: sim, or in real members with process or docker; those of recipes with model
    #[arg(long, value_name = "WHERE", default_value = "sim")]
    pub cluster: String,
    /// Only these bugs, by name, with commas between
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Worlds in which a bug is hunted at most [default: 10,000; with model as many as find them all]
    #[arg(long, value_name = "N")]
    pub seeds: Option<u64>,
    /// No more than a thousand worlds for a bug, looking inside only, nothing made small: what CI runs
    #[arg(long)]
    pub quick: bool,
    /// A document that this command printed: where it says another thing than this hunt, the status is 1
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Hunts at a time [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Where real runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub store: PathBuf,
    /// How the table is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: TableFormat,
}
