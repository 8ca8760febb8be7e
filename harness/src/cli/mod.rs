//! The command line: flags as they are typed.
//!
//! What they mean is decided in [`options`], as a type of its own, and everything is decided before anything
//! starts. Typed flags are plain text where a message of ours says more than clap's would: an unknown nemesis
//! gets a suggestion, a duration without a unit gets one written for it.

pub mod checking;
pub mod client;
pub mod names;
pub mod night;
pub mod options;
pub mod seed;
pub mod simulator;
pub mod wrap;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::Pull;

pub use checking::{CheckArgs, ConfirmArgs};
pub use client::{ClientArgs, ClientCheckArgs, ClientCommand};
pub use night::{CompareArgs, InitArgs, MergeArgs, NightArgs, ShrinkArgs};
pub use simulator::{ReplayArgs, SelftestArgs, SimArgs};
pub use wrap::WrapArgs;

/// Breaks an ensemble on a schedule and tells whether it kept its promises.
///
/// Exit status: 0 valid; 1 a violation; 2 unknown; 3 a regression (nights); 130 interrupted, after healing;
/// 254 wrong usage or configuration; 255 the harness itself failed.
#[derive(Debug, Parser)]
#[command(name = "harness", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make one run: start an ensemble, load it, break it, judge it, write the page
    Run(Box<RunArgs>),
    /// Run a test of your own under faults, and say whether it passed and whether the faults bit
    Wrap(Box<WrapArgs>),
    /// Judge a run folder again, or a history from anywhere
    Check(Box<CheckArgs>),
    /// Confirm the order that `check --witness` wrote, by a short verifier that knows nothing of the search
    Confirm(ConfirmArgs),
    /// Draw a run's page again, or that of all nights
    Report(ReportArgs),
    /// Run the schedule of a run folder again, on any cluster
    Replay(Box<ReplayArgs>),
    /// Make a run that shows a violation smaller: fewer faults, fewer clients, less time
    Shrink(Box<ShrinkArgs>),
    /// Make the runs of a file within a budget, and say what changed since the nights before
    Night(Box<NightArgs>),
    /// Run two builds, images, systems or settings in turn, and tell which numbers differ
    Compare(Box<CompareArgs>),
    /// Put the nights of several machines into one store
    Merge(MergeArgs),
    /// Write files to begin from: of a night, of a system of one's own
    Init(InitArgs),
    /// Try a client of a system of one's own, without a cluster
    Client(ClientArgs),
    /// Live through worlds of the simulator: one seed each, and the seed decides everything
    Sim(Box<SimArgs>),
    /// Hunt every mutant and show that the bench finds it
    Selftest(Box<SelftestArgs>),
    /// List what can be named: nemeses, workloads, systems, models, conditions, faults, mutants
    List(ListArgs),
    /// Show the store in a browser: its runs, their pages and files; nothing can be changed there
    Serve(ServeArgs),
    /// Tell what works on this machine
    Doctor(DoctorArgs),
    /// Remove what a killed harness left
    Clean(StoreArgs),
    /// Print what a shell needs to complete this command: `source <(harness completions bash)`
    Completions(CompletionsArgs),
    /// Print the page of the manual, or write one for each command into a folder
    Man(ManArgs),
    /// A member of the process cluster
    #[command(hide = true)]
    Member(Box<MemberArgs>),
    /// Another program that dies with the harness
    #[command(hide = true)]
    Become(BecomeArgs),
    /// Ends what a harness that is gone left running
    #[command(hide = true)]
    Guard(GuardArgs),
    /// The network of the process cluster
    #[command(hide = true)]
    Links,
    /// A process that waits until its standard input is closed; shifting clocks is tried on it
    #[command(hide = true)]
    ClockTarget,
    /// An application that holds locks or leads
    #[command(hide = true)]
    App(Box<AppArgs>),
    /// What acts beside a member in a container
    #[cfg(feature = "docker")]
    #[command(hide = true)]
    Agent,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A screen for people.
    #[default]
    Human,
    /// `results.json`.
    Json,
}

/// Flags of `run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = names::of_a_run())]
pub struct RunArgs {
    /// Voting members [default: 5, or as many as the system's file names]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// What members are made of.
    #[command(flatten)]
    pub brought: BroughtArgs,
    /// Members without a vote, beside them; faults hit them too
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub observers: u32,
    /// Where members run; auto takes containers where a Docker engine answers
    #[arg(long, value_name = "WHERE", default_value = "auto", value_parser = names::a_cluster())]
    pub cluster: String,
    /// The system under test; `harness list systems` says what each is and promises
    #[arg(long, value_name = "NAME", default_value = "node", value_parser = names::a_system())]
    pub system: String,
    /// A setting that only this system has, as `tick=1s`; `harness list settings` tells them
    #[arg(long, value_name = "NAME=VALUE", value_parser = names::a_setting(), hide_possible_values = true)]
    pub set: Vec<String>,
    /// What clients do
    #[arg(long, value_name = "NAME", default_value = "register", value_parser = names::a_workload())]
    pub workload: String,
    /// What the system is held to: `linearizable`, `linearizable-updates` or `nothing`, which measures what
    /// is lost and accuses nobody; of registers also an order below as `sequential` or `session`; of the
    /// workloads `txn` and `bank` an isolation level as `serializable`; of `queue` also `at-least-once`, of
    /// `log` `exactly-once`, of `watch` `every-change` or `latest` [default: what the system says of itself]
    #[arg(long, value_name = "PROMISE", value_parser = names::a_promise())]
    #[arg(hide_possible_values = true)]
    pub promise: Option<String>,
    /// What is broken: `none`, or a list of nemeses that take turns; see below
    #[arg(long, value_name = "LIST", default_value = "none", value_parser = names::a_nemesis())]
    #[arg(hide_possible_values = true)]
    pub nemesis: String,
    /// From the onset of one fault to that of the next; each is held for half of it [default: the system's
    /// own, which `harness list systems` tells; 4s for the bundled node]
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// Operations per second over all clients, due at moments drawn from the seed
    #[arg(long, value_name = "N", default_value_t = 1000.0)]
    pub rate: f64,
    /// Client processes, spread over the members; each has one operation at a time
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub concurrency: u32,
    /// Keys that all clients share
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub keys: u32,
    /// How long clients run
    #[arg(long, value_name = "TIME", default_value = crate::config::USUAL_LIMIT)]
    pub time_limit: String,
    /// Everything random is drawn from this; a fresh one is drawn and printed when it is left out
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Definite operations per second below which the run counts as too weak [default: a tenth of --rate, at
    /// least 15]
    #[arg(long, value_name = "N")]
    pub min_rate: Option<f64>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub store: PathBuf,
    /// What the run is called in the store [default: workload and nemeses]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Make the members or the clients a mutant: does the run find it? See below
    #[arg(long, value_name = "BUG", value_parser = names::a_mutant(), hide_possible_values = true)]
    pub mutant: Option<String>,
    /// Let the nemeses act at once, each in its own rhythm, instead of taking turns
    #[arg(long)]
    pub overlap: bool,
    /// End the run as soon as the live check sees a violation: heal, judge, write the page
    #[arg(long)]
    pub fail_fast: bool,
    /// Compress the history with zstd while it is written: history.jsonl.zst, about a fifth of the size
    #[arg(long)]
    pub compress: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// First of the ports to use on 127.0.0.1 by local processes [default: a free block is found]
    #[arg(long, value_name = "PORT")]
    pub base_port: Option<u16>,
    /// How long a client waits for an answer
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub op_timeout: String,
    /// How long a session outlives its client's silence
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub session_timeout: String,
    /// Silence between members after which one gives up on another [default: the system's own; 250ms for the
    /// bundled node]
    #[arg(long, value_name = "TIME")]
    pub peer_timeout: Option<String>,
    /// When killed members lose what they had not synced: kill-all, always, never [default: kill-all; never
    /// where nobody knows what they have synced]
    #[arg(long, value_name = "WHEN")]
    pub lose_unsynced: Option<String>,
}

/// What is brought along to be members, and who reaches it. It decides what code runs and is never taken from
/// a run's folder.
#[derive(Clone, Debug, Default, Args)]
pub struct BroughtArgs {
    /// The members' image for --cluster docker, with its own command, instead of the bundled node
    #[arg(long, value_name = "NAME")]
    pub image: Option<String>,
    /// What the members' image runs instead of its own command; once for each word
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub image_command: Vec<String>,
    /// Publish the members' client ports on this address of the Docker engine's machine
    #[arg(long, value_name = "ADDRESS")]
    pub publish: Option<std::net::IpAddr>,
    /// Which images the Docker engine pulls [default: never]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub pull: Option<Pull>,
}

/// What who repeats a run types, because it is never taken from the run's folder.
#[derive(Clone, Debug, Default, Args)]
pub struct AgainArgs {
    /// The system under test, where it is a file of your own, or is to be another one [default: the built-in
    /// one that the folder names]
    #[arg(long, value_name = "NAME", value_parser = names::a_system())]
    pub system: Option<String>,
    /// A setting of it that decides what code runs, as `classpath=PATH`; others may be typed too, and count
    /// instead of the folder's
    #[arg(long, value_name = "NAME=VALUE", value_parser = names::a_setting(), hide_possible_values = true)]
    pub set: Vec<String>,
    /// What members are made of.
    #[command(flatten)]
    pub brought: BroughtArgs,
}

/// Flags of `completions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "For all shells to come, bash: `harness completions bash \
                  >~/.local/share/bash-completion/completions/harness`; zsh: `harness completions zsh \
                  >FOLDER/_harness` with a FOLDER of $fpath; fish: `harness completions fish \
                  >~/.config/fish/completions/harness.fish`.")]
pub struct CompletionsArgs {
    /// Whose
    pub shell: clap_complete::Shell,
}

/// Flags of `man`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "To read it: `harness man | man -l -`. To keep it: `harness man ~/.local/share/man/man1`."
)]
pub struct ManArgs {
    /// Where harness.1 and a page for each command are written; without it the first goes to standard output
    pub folder: Option<PathBuf>,
}

/// Flags of `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// A run folder, or a store of nights
    pub path: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Flags of `list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Which list; without it, which there are
    #[arg(value_parser = names::a_list())]
    pub what: Option<String>,
}

/// Flags of `doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Where runs would be kept; its disk is measured
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub store: PathBuf,
}

/// Flags of `clean`.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    /// Wait until this process is gone
    #[arg(long, hide = true, value_name = "PID")]
    pub after: Option<u32>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub store: PathBuf,
}

/// Flags of `serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Where runs, or nights, are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub store: PathBuf,
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8180)]
    pub port: u16,
}

/// Flags of a member.
#[derive(Clone, Debug, Args)]
pub struct MemberArgs {
    /// The node's own.
    #[command(flatten)]
    pub node: node::cli::Args,
    /// The bug that is planted in it
    #[arg(long)]
    pub mutant: Option<String>,
    /// Note how far the log is synced
    #[arg(long)]
    pub note_synced: bool,
    /// Cut the log back to that note first
    #[arg(long)]
    pub cut_unsynced: bool,
    /// The process with which it dies
    #[arg(long)]
    pub parent: Option<u32>,
}

/// Flags of an application.
#[derive(Clone, Debug, Args)]
pub struct AppArgs {
    /// The process with which it dies
    #[arg(long)]
    pub parent: u32,
    /// What it does: lock, election, standby, queue, barrier
    #[arg(long)]
    pub holds: String,
    /// Where it finds a member; once for each
    #[arg(long)]
    pub member: Vec<std::net::SocketAddr>,
    /// Where it finds the store that its token guards
    #[arg(long)]
    pub store: std::net::SocketAddr,
    /// How long its session outlives its silence
    #[arg(long)]
    pub session_timeout_ms: u64,
    /// Its planted bug
    #[arg(long)]
    pub mutant: Option<String>,
}

/// Flags of a program that dies with the harness.
#[derive(Clone, Debug, Args)]
pub struct BecomeArgs {
    /// The process with which it dies
    #[arg(long)]
    pub parent: u32,
    /// Ask it to end instead of killing it: for a program that has something to clean up
    #[arg(long)]
    pub gently: bool,
    /// Lead a session of its own, so that it has no terminal to wait for
    #[arg(long)]
    pub session: bool,
    /// Run it as a child instead, in the environment of the run with this token, and end with it all that it
    /// started; standard input is a socket
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["gently", "session"])]
    pub guard: Option<String>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<std::ffi::OsString>,
}

/// Flags of a guard.
#[derive(Clone, Debug, Args)]
pub struct GuardArgs {
    /// The harness for whose end it waits
    #[arg(long)]
    pub parent: u32,
}
