//! The `node` binary: one clean member, or a question to one.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use node::NodeConfig;
use node::environment::Environment;
use node::probe::{Probe, ProbeArgs};
use node_core::Clean;
use tracing_subscriber::EnvFilter;

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "node", version)]
struct Cli {
    #[command(flatten)]
    args: node::cli::Args,

    #[command(flatten)]
    probe: ProbeArgs,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .init();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("node: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let environment = Environment::read(std::env::vars_os()).map_err(failed)?;
    if let Some(probe) = Probe::from_args(&cli.probe, &cli.args, &environment).map_err(failed)? {
        println!("{}", probe.ask().map_err(failed)?);
        return Ok(());
    }
    node::run(NodeConfig::from_args_in(&cli.args, environment).map_err(failed)?, Clean)
}

/// Messages of the library are fragments.
fn failed(error: impl std::error::Error) -> anyhow::Error {
    anyhow::anyhow!("failed to {error}")
}
