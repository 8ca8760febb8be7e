//! Commands in members' containers, for systems whose members are asked by a command.
//!
//! The engine starts each, at the cost of a new process in the container's namespaces: some 70 ms of a
//! processor. It runs as the container's own user and in its environment, as a health check does.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use futures_util::StreamExt;
use harness_systems::{Async, Inside, Ran};
use runs::member::MemberId;

use super::engine::{Cause, Engine, EngineError};

/// No output that is of use is longer.
const MOST_BYTES: usize = 1 << 16;

/// Runs commands in members' containers.
pub(super) struct MemberExec {
    engine: Engine,
    containers: Mutex<BTreeMap<MemberId, String>>,
}

impl MemberExec {
    /// No container is known yet.
    pub(super) fn new(engine: Engine) -> Self {
        Self { engine, containers: Mutex::default() }
    }

    /// A member runs in this container from now.
    pub(super) fn runs(&self, member: MemberId, container: String) {
        self.containers.lock().unwrap_or_else(PoisonError::into_inner).insert(member, container);
    }

    /// The container in which a member runs, or ran last; none where it was never started.
    pub(super) fn container(&self, member: MemberId) -> Option<String> {
        self.containers.lock().unwrap_or_else(PoisonError::into_inner).get(&member).cloned()
    }
}

impl Inside for MemberExec {
    fn run(&self, member: MemberId, words: Vec<String>, within: Duration) -> Async<'static, io::Result<Ran>> {
        let container = self.container(member);
        let engine = self.engine.clone();
        Box::pin(async move {
            let container = container.ok_or_else(|| io::Error::other("it was never started"))?;
            let ran = run(&engine, container, words, within).await.map_err(|error| as_io(&error))?;
            ran.if_it_was_run()
        })
    }
}

async fn run(
    engine: &Engine,
    container: String,
    words: Vec<String>,
    within: Duration,
) -> Result<Ran, EngineError> {
    engine
        .call("running a command in a container", within, |docker| async move {
            let config = ExecConfig {
                attach_stdout: Some(true),
                attach_stderr: Some(true),
                cmd: Some(words),
                ..ExecConfig::default()
            };
            let id = docker.create_exec(&container, config).await?.id;
            let (mut output, mut errors) = (Vec::new(), Vec::new());
            if let StartExecResults::Attached { output: mut pieces, .. } =
                docker.start_exec(&id, None).await?
            {
                while let Some(piece) = pieces.next().await {
                    let (to, message) = match piece? {
                        LogOutput::StdOut { message } => (&mut output, message),
                        LogOutput::StdErr { message } => (&mut errors, message),
                        LogOutput::StdIn { .. } | LogOutput::Console { .. } => continue,
                    };
                    if to.len() < MOST_BYTES {
                        to.extend_from_slice(&message);
                    }
                }
            }
            Ok(Ran { status: docker.inspect_exec(&id).await?.exit_code, output, errors })
        })
        .await
}

/// A container that does not run refuses, as a port without a process does; one that is frozen is silent.
fn as_io(error: &EngineError) -> io::Error {
    let kind = match &error.cause {
        Cause::Refused(409, why) if why.contains("paused") => io::ErrorKind::TimedOut,
        Cause::Refused(409, _) => io::ErrorKind::ConnectionRefused,
        Cause::Silent(_) => io::ErrorKind::TimedOut,
        Cause::Refused(..) | Cause::Gone(_) | Cause::Unfitting(_) => io::ErrorKind::Other,
    };
    io::Error::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_container_is_silent_and_one_that_does_not_run_refuses() {
        let of = |why: &str| {
            let cause = Cause::Refused(409, why.to_owned());
            as_io(&EngineError { what: "running a command in a container".to_owned(), cause }).kind()
        };
        let paused = "Container 0badcafe is paused, unpause the container before exec";
        assert_eq!(of(paused), io::ErrorKind::TimedOut);
        assert_eq!(of("Container 0badcafe is not running"), io::ErrorKind::ConnectionRefused);
    }
}
