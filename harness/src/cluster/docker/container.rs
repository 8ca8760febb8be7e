//! One container: made, attached to before it starts so that no word is lost, started, waited for.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, EventsOptions,
};
use bytes::BytesMut;
use futures_util::{Stream, StreamExt};
use tokio::io::AsyncWrite;
use tokio::sync::watch;

use super::engine::Engine;
use super::limits::MEMORY_BYTES;
use super::resources::Resources;

/// How long making or attaching to a container may take.
const MAKE_PATIENCE: Duration = Duration::from_secs(20);
/// How long its start may take; on a busy machine several start at once.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long the engine may take to tell of an end that it has told of already.
const EVENTS_PATIENCE: Duration = Duration::from_secs(1);
/// An engine tells of a signal as a status this much above its number.
const SIGNALLED: i64 = 128;
/// The signal that the kernel sends for want of memory, and that kills are done with.
const KILL: i64 = 9;
/// A line longer than this is cut.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// What a container reads and says.
pub(super) struct Attached {
    /// Its standard input.
    pub(super) input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Its standard output and error.
    pub(super) output: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>,
}

/// How a container's first process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// With this status, as the engine tells it: 128 and a signal's number when a signal ended it.
    Status(i64),
    /// The kernel killed it, because its container had all the memory that it may have.
    OutOfMemory,
    /// The engine says that it is gone and no longer knows how.
    Forgotten,
    /// The engine did not answer the question.
    Untold(String),
}

impl Exit {
    /// In words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Status(status @ 129..=192) => format!("killed by signal {}", status - SIGNALLED),
            Self::Status(status) => format!("exit status {status}"),
            Self::OutOfMemory => {
                let limit = runs::numbers::memory(u64::try_from(MEMORY_BYTES).unwrap_or_default());
                format!("killed by signal {KILL}: its container reached its limit of {limit} of memory")
            }
            Self::Forgotten => "ended".to_owned(),
            Self::Untold(why) => format!("ended, and the engine does not tell how: {why}"),
        }
    }
}

/// Makes a container and gives its id.
pub(super) async fn make(
    resources: &Resources,
    name: &str,
    body: ContainerCreateBody,
) -> anyhow::Result<String> {
    let options = CreateContainerOptionsBuilder::new().name(name).build();
    let what = format!("making the container {name}");
    let made = resources
        .make(
            &what,
            MAKE_PATIENCE,
            |docker| async move { docker.create_container(Some(options), body).await },
        )
        .await?;
    Ok(made.id)
}

/// Attaches to its output, and to its input if it has one.
pub(super) async fn attach(engine: &Engine, id: &str, stdin: bool) -> anyhow::Result<Attached> {
    let options =
        AttachContainerOptionsBuilder::new().stream(true).stdin(stdin).stdout(true).stderr(true).build();
    let id = id.to_owned();
    let attached = engine
        .call("attaching to a container", MAKE_PATIENCE, |docker| async move {
            docker.attach_container(&id, Some(options)).await
        })
        .await?;
    Ok(Attached { input: attached.input, output: attached.output })
}

/// Starts it. What is given tells how it ends.
pub(super) async fn start(resources: &Resources, id: &str) -> anyhow::Result<watch::Receiver<Option<Exit>>> {
    let name = id.to_owned();
    resources
        .make("starting a container", START_PATIENCE, |docker| async move {
            docker.start_container(&name, None).await
        })
        .await?;
    let (ended, ending) = watch::channel(None);
    let (docker, id) = (resources.engine().docker(), id.to_owned());
    resources.engine().spawn(async move {
        let killed = |exit: &Exit| *exit == Exit::Status(SIGNALLED + KILL);
        let exit = match docker.wait_container(&id, None).next().await {
            Some(Ok(answer)) => Exit::Status(answer.status_code),
            Some(Err(Error::DockerContainerWaitError { code, .. })) => Exit::Status(code),
            Some(Err(Error::DockerResponseServerError { status_code: 404, .. })) => Exit::Forgotten,
            Some(Err(error)) => Exit::Untold(error.to_string()),
            None => Exit::Untold("it hung up".to_owned()),
        };
        let exit =
            if killed(&exit) && ran_out_of_memory(&docker, &id).await { Exit::OutOfMemory } else { exit };
        ended.send_replace(Some(exit));
    });
    Ok(ending)
}

/// Whether the engine noted, before the container's end, that the kernel killed for want of memory in it. An
/// engine remembers its last events and tells them again.
async fn ran_out_of_memory(docker: &Docker, id: &str) -> bool {
    let filters = HashMap::from([
        ("container".to_owned(), vec![id.to_owned()]),
        ("event".to_owned(), ["oom", "die"].map(str::to_owned).to_vec()),
    ]);
    let options = EventsOptions { since: Some("1".to_owned()), until: None, filters: Some(filters) };
    let mut events = Box::pin(docker.events(Some(options)));
    let told = async {
        while let Some(Ok(event)) = events.next().await {
            match event.action.as_deref() {
                Some("oom") => return true,
                Some("die") => return false,
                _ => {}
            }
        }
        false
    };
    tokio::time::timeout(EVENTS_PATIENCE, told).await.unwrap_or(false)
}

/// Pieces of text as they come, put together to lines.
#[derive(Default)]
pub(super) struct Lines {
    begun: BytesMut,
}

impl Lines {
    /// Takes a piece and hands over every line that it completes, without its end.
    pub(super) fn take(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..end]);
            each(&self.begun);
            self.begun.clear();
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    fn extend(&mut self, piece: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&piece[..piece.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_from_pieces_however_they_come() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for piece in ["a", "b\nc", "\n\nd"] {
            lines.take(piece.as_bytes(), |line| seen.push(String::from_utf8_lossy(line).into_owned()));
        }
        assert_eq!(seen, ["ab", "c", ""]);
    }

    #[test]
    fn a_line_without_an_end_does_not_grow_without_end() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; MAX_LINE_BYTES];
        for _ in 0..3 {
            lines.take(&piece, |_| panic!("no end was there"));
        }
        let mut length = 0;
        lines.take(b"\n", |line| length = line.len());
        assert_eq!(length, MAX_LINE_BYTES);
    }

    #[test]
    fn a_signal_is_told_as_in_the_process_cluster() {
        assert_eq!(Exit::Status(137).words(), "killed by signal 9");
        assert_eq!(Exit::Status(2).words(), "exit status 2");
    }

    #[test]
    fn an_end_for_want_of_memory_is_told_as_one_by_the_containers_limit() {
        let how = Exit::OutOfMemory.words();
        assert_eq!(how, "killed by signal 9: its container reached its limit of 2.0 GiB of memory");
    }
}
