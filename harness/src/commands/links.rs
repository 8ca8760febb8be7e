//! `harness links`, hidden: the network of the process cluster, on standard input and output.

use std::os::fd::AsFd;

use anyhow::Context;
use tokio::net::unix::pipe;

use crate::exit::{Exit, Failure};
use crate::host::descriptors;
use crate::links::server::{Ended, LEASE, serve};

/// Serves until told to stop, or until the harness is gone.
pub fn links() -> Result<Exit, Failure> {
    // Without it fewer connections can be held at once, which the links bound by themselves.
    descriptors::raise();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime of the links")?;
    let ended = runtime.block_on(async {
        let (input, output) = pipes()?;
        serve(input, output, LEASE).await.context("reading commands")
    })?;
    match ended {
        Ended::Stopped | Ended::InputClosed => {}
        Ended::LeaseExpired => tracing::warn!("the harness fell silent: everything is healed, the links end"),
    }
    Ok(Exit::Done)
}

/// Standard input and output. They are pipes, because a harness made them; nobody else starts this.
pub(super) fn pipes() -> anyhow::Result<(pipe::Receiver, pipe::Sender)> {
    let input = std::io::stdin().as_fd().try_clone_to_owned().context("taking standard input")?;
    let output = std::io::stdout().as_fd().try_clone_to_owned().context("taking standard output")?;
    let input = pipe::Receiver::from_owned_fd(input).context("standard input is no pipe")?;
    let output = pipe::Sender::from_owned_fd(output).context("standard output is no pipe")?;
    Ok((input, output))
}
