//! The `node` binary: one clean member, or a question to one.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use node::NodeConfig;
use node::environment::Environment;
use node::print::PrintArgs;
use node::probe::{Probe, ProbeArgs};
use node::programs::Program;
use node::programs::guardian::{self, GuardianArgs, WardArgs};
use node_core::Zab;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "node",
    version,
    about = "One member of a coordination ensemble that speaks ZooKeeper's protocols, or a question to one",
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    args: node::cli::Args,

    #[command(flatten)]
    probe: ProbeArgs,
}

/// What it does besides being a member.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List ZooKeeper's configuration keys: which are obeyed, which do nothing and why, which are refused
    Keys,
    /// Print a transaction log, Apache ZooKeeper's or ours
    Log(PrintArgs),
    /// Print a snapshot, Apache ZooKeeper's or ours
    Snapshot(PrintArgs),
    /// Print what a shell needs to complete this command: `source <(node completions bash)`
    Completions {
        /// Whose
        shell: clap_complete::Shell,
    },
    /// Print the page of the manual: `node man | man -l -`
    Man,
    #[command(flatten)]
    Program(Box<Program>),
    /// Ends a command in time; for the programs alone
    #[command(hide = true)]
    Guardian(GuardianArgs),
    /// Becomes a command that dies with its guardian; for the programs alone
    #[command(hide = true)]
    Ward(WardArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
    let wanted = std::env::var("RUST_LOG").ok().and_then(|wanted| wanted.parse::<Targets>().ok());
    tracing_subscriber::registry().with(lines).with(wanted.unwrap_or_else(usual_log)).init();
    match &cli.command {
        Some(Command::Program(program)) => return program.run(),
        Some(Command::Guardian(args)) => return guardian::run(args),
        Some(Command::Ward(args)) => return guardian::become_ward(args),
        _ => {}
    }
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("node: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What is logged where `RUST_LOG` does not say.
fn usual_log() -> Targets {
    Targets::new().with_default(tracing::Level::INFO)
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    match &cli.command {
        Some(Command::Keys) => {
            print!("{}", node::zoocfg::keys::describe());
            return Ok(());
        }
        Some(Command::Log(args)) => return node::print::log(args),
        Some(Command::Snapshot(args)) => return node::print::snapshot(args),
        Some(Command::Completions { shell }) => {
            // It would panic where nobody reads on.
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "node", &mut script);
            return std::io::stdout().write_all(&script).context("failed to print what a shell needs");
        }
        Some(Command::Man) => {
            return clap_mangen::Man::new(Cli::command())
                .render(&mut std::io::stdout())
                .context("failed to print the page");
        }
        Some(Command::Program(_) | Command::Guardian(_) | Command::Ward(_)) | None => {}
    }
    let environment = Environment::read(std::env::vars_os()).map_err(failed)?;
    if let Some(probe) = Probe::from_args(&cli.probe, &cli.args, &environment).map_err(failed)? {
        println!("{}", probe.ask().map_err(failed)?);
        return Ok(());
    }
    node::run(NodeConfig::from_args_in(&cli.args, environment).map_err(failed)?, &Zab)
}

/// Messages of the library are fragments.
fn failed(error: impl std::error::Error) -> anyhow::Error {
    anyhow::anyhow!("failed to {error}")
}
