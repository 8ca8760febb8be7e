//! The `node` binary: one clean member.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use node::NodeConfig;
use node_core::Clean;
use tracing_subscriber::EnvFilter;

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "node", version)]
struct Cli {
    #[command(flatten)]
    args: node::cli::Args,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .init();
    let result = NodeConfig::from_args(&cli.args)
        .map_err(|error| anyhow::anyhow!("failed to {error}"))
        .and_then(node::run::<Clean>);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("node: {error:#}");
            ExitCode::FAILURE
        }
    }
}
