//! Flags of the commands about nights.

use std::path::PathBuf;

use clap::Args;

/// Flags of `night`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "What is in FILE: harness/docs/night.md, or `harness init night`, which writes one to \
                  begin from.\n\nExit status: of all that was run the worst, by the order 1 a violation, 255 \
                  the bench failed, 2 unknown, 3 a regression, 0 valid; 130 interrupted; 254 wrong usage, \
                  before anything is started."
)]
pub struct NightArgs {
    /// What is to be run: cases, budget, thresholds
    pub file: PathBuf,
    /// How long the night may take [default: as FILE says]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Where nights are kept [default: as FILE says, or runs/nights]
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// A profile of FILE, which changes some of it
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// One of several machines that share the cases without talking: `2/4`, or `1+1/4` where an engine counts
    /// from 0
    #[arg(long, value_name = "K/N")]
    pub shard: Option<String>,
    /// What the night is called; the same for all shards of a night [default: its start in UTC]
    #[arg(long, value_name = "NAME")]
    pub night: Option<String>,
    /// From which the seeds of all runs are made [default: drawn, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print what would be run, in which order, and what would be left out; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on with the last night of the store, which did not live to its end
    #[arg(long)]
    pub resume: bool,
    /// Begin a night where there is none to go on with, or where it began too long ago
    #[arg(long, requires = "resume")]
    pub or_begin: bool,
}

/// Flags of `shrink`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Each smaller run is made as `harness replay` makes it, so a real ensemble has several \
                  tries. The folder may be somebody else's: what code runs, as a --system that is a file, is \
                  taken from this command line alone."
)]
pub struct ShrinkArgs {
    /// The folder of a run that shows a violation
    pub path: PathBuf,
    /// Begin no run after this long
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub budget: String,
    /// Runs that a smaller one gets to show it
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub tries: u32,
    /// What is not taken from the folder.
    #[command(flatten)]
    pub again: super::AgainArgs,
    /// Where the smaller runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub store: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: super::Format,
}

/// Flags of `compare`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A side is an executable of the harness, an image of the members, a system (`harness list \
                  systems`), or flags of `harness run` in quotes; \"\" changes nothing.\n\n  harness compare \
                  builds/old/harness target/release/harness -- --nemesis kill-leader\n  harness compare \"\" \
                  \"--peer-timeout 500ms\" -- --nemesis pause-leader\n\nExit status: 3 when the second side \
                  is worse in something (equal sides are told apart in one of twenty comparisons at most); 1 \
                  when it broke a promise; 2 when too few pairs were valid; 0 otherwise."
)]
pub struct CompareArgs {
    /// What it is compared with
    #[arg(allow_hyphen_values = true)]
    pub a: String,
    /// What is compared
    #[arg(allow_hyphen_values = true)]
    pub b: String,
    /// Pairs of runs; both of a pair have the same seed
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(8..=200))]
    pub pairs: u32,
    /// Seeds follow from this [default: drawn, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs/compare")]
    pub store: PathBuf,
    /// Flags of `harness run` for both sides
    #[arg(last = true, value_name = "RUN FLAGS", allow_hyphen_values = true)]
    pub flags: Vec<String>,
}

/// Flags of `merge`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Shards of one night have one name (`harness night --shard 1/3 --night NAME`), and become \
                  one night. Merging twice changes nothing."
)]
pub struct MergeArgs {
    /// Where all nights are to be; made where there is nothing
    pub into: PathBuf,
    /// Stores of other machines
    #[arg(required = true)]
    pub from: Vec<PathBuf>,
}

/// Flags of `init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// What for: night, system, etcd, nats, postgres, redis, zookeeper
    pub what: String,
    /// Where the first of its files is written; the others come beside it [default: its usual name]
    pub file: Option<PathBuf>,
}
