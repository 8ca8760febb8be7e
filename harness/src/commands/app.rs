//! `harness app`, hidden: an application that holds locks or leads, on standard input and output.

use anyhow::{Context, anyhow};
use harness_systems::application::Program;
use harness_systems::mutant::ClientMutant;
use harness_zookeeper::application;
use std::time::Duration;
use workloads::Kind;

use super::links::pipes;
use super::stand_in::die_with;
use crate::cli::AppArgs;
use crate::exit::{Exit, Failure};

/// Serves until its input ends, or the harness is gone.
pub fn app(args: &AppArgs) -> Result<Exit, Failure> {
    die_with(args.parent)?;
    let holds = Kind::from_name(&args.holds).and_then(Kind::applications);
    let holds = holds.ok_or_else(|| anyhow!("nothing is held as {}", args.holds))?;
    let bug_of = |name: &String| ClientMutant::named(name).ok_or_else(|| anyhow!("there is no bug {name}"));
    let mutant = args.mutant.as_ref().map(bug_of).transpose()?;
    let program = Program {
        holds,
        members: args.member.clone(),
        store: args.store,
        session_timeout: Duration::from_millis(args.session_timeout_ms),
        mutant,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime of an application")?;
    runtime.block_on(async {
        let (input, output) = pipes()?;
        application::run(program, input, output).await
    })?;
    Ok(Exit::Done)
}
