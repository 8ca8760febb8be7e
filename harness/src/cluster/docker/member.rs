//! One member as containers, one after the other: each start is a new one on the same volume and in the same
//! namespaces, so that its flags may differ and its address and its partitions stay.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use bollard::container::LogOutput;
use bollard::models::ContainerCreateBody;
use futures_util::StreamExt;
use runs::events::Event;
use tokio::sync::{oneshot, watch};

use super::container::{self, Attached, Exit, Lines};
use super::engine::{Engine, engine_is_gone};
use super::failure::FirstFailure;
use super::resources::Resources;
use crate::clock::RunNs;
use crate::cluster::voice::{Place, Voice};

/// How long the engine may take to tell how a process ended whose output has ended.
const EXIT_PATIENCE: Duration = Duration::from_secs(10);

/// A member's place: it outlives its containers.
pub(super) struct Member {
    pub(super) place: Place,
    /// Whether its output is events; otherwise it is words for its log.
    prints_events: bool,
    /// How its latest process ended, when it has ended.
    latest: Mutex<Option<watch::Receiver<Option<String>>>>,
    starts: AtomicU32,
}

impl Member {
    /// A member that was never started.
    pub(super) fn new(place: Place, prints_events: bool) -> Self {
        Self { place, prints_events, latest: Mutex::default(), starts: AtomicU32::new(0) }
    }

    /// Starts a container for it and gives the moment before its start, and the container. The one before
    /// must have ended.
    pub(super) async fn start(
        &self,
        resources: &Resources,
        failure: &FirstFailure,
        body: ContainerCreateBody,
    ) -> anyhow::Result<(RunNs, String)> {
        let engine = resources.engine();
        let start = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        let name = resources.name(&format!("n{}-{start}", self.place.id.0));
        let voice = if self.prints_events { Some(self.place.voice()?) } else { None };
        let log = self.place.log()?;
        let begun = Instant::now();
        let id = container::make(resources, &name, body).await?;
        let made = begun.elapsed();
        let attached = container::attach(engine, &id, false).await?;
        let attached_after = begun.elapsed();
        let (ender, ended) = watch::channel(None);
        let (started, exit) = oneshot::channel();
        let reader = Reader {
            place: self.place.clone(),
            voice,
            log,
            lines: Lines::default(),
            engine: engine.clone(),
            failure: failure.clone(),
        };
        engine.spawn(reader.run(attached, exit, ender.clone()));
        // Noted first: what the process says must not come before its start.
        let spawned = self.place.clock.now();
        self.place.note_at(spawned, Event::Spawned);
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        match container::start(resources, &id).await {
            Ok(exit) => {
                // A reader that has ended knows by itself that something is wrong.
                let _ = started.send(exit);
                let started = begun.elapsed();
                tracing::debug!(name, ?made, attached = ?attached_after, ?started, "started");
                Ok((spawned, id))
            }
            Err(error) => {
                let how = "was not started".to_owned();
                self.place.note(Event::Exited(how.clone()));
                ender.send_replace(Some(how));
                Err(error)
            }
        }
    }

    /// How its latest process ended; none while it runs.
    pub(super) fn how_it_ended(&self) -> Option<String> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match latest.as_ref() {
            None => Some("never started".to_owned()),
            Some(ended) => ended.borrow().clone(),
        }
    }

    /// Waits until its process has ended and the engine has told how.
    pub(super) async fn ended(&self, patience: Duration) -> anyhow::Result<()> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(mut ended) = latest else { return Ok(()) };
        match tokio::time::timeout(patience, ended.wait_for(Option::is_some)).await {
            Ok(_) => Ok(()),
            Err(_) => bail!("member {} does not end", self.place.id.0),
        }
    }
}

/// Reads a member's words until its process ends.
struct Reader {
    place: Place,
    voice: Option<Voice>,
    log: File,
    lines: Lines,
    engine: Engine,
    failure: FirstFailure,
}

impl Reader {
    async fn run(
        mut self,
        attached: Attached,
        exit: oneshot::Receiver<watch::Receiver<Option<Exit>>>,
        ender: watch::Sender<Option<String>>,
    ) {
        let Attached { mut output, input: _open } = attached;
        let seen = loop {
            match output.next().await {
                Some(Ok(piece)) => self.take(piece),
                Some(Err(error)) => break format!("its output: {error}"),
                None => break "its output ended".to_owned(),
            }
        };
        let at = self.place.clock.now();
        // Without an exit to wait for it was not started, and whoever failed to start it says so.
        let Ok(mut exit) = exit.await else { return };
        let told = tokio::time::timeout(EXIT_PATIENCE, exit.wait_for(Option::is_some)).await;
        match told.ok().and_then(Result::ok).and_then(|exit| exit.clone()) {
            Some(exit @ (Exit::Status(_) | Exit::OutOfMemory | Exit::Forgotten)) => {
                let how = exit.words();
                self.place.note_at(at, Event::Exited(how.clone()));
                ender.send_replace(Some(how));
            }
            untold @ (Some(Exit::Untold(_)) | None) => self.lost(&seen, untold).await,
        }
    }

    fn take(&mut self, piece: LogOutput) {
        match (piece, &mut self.voice) {
            (LogOutput::StdOut { message }, Some(voice)) => {
                self.lines.take(&message, |line| voice.take(line));
            }
            (piece, _) => {
                // What can't be written down is lost for the reader of the folder only.
                let _ = self.log.write_all(&piece.into_bytes());
            }
        }
    }

    /// Its words ended, and the engine does not say that its process did.
    async fn lost(&self, seen: &str, exit: Option<Exit>) {
        if let Err(error) = self.engine.ping().await {
            self.failure.report(engine_is_gone(&error.to_string()));
            return;
        }
        let exit = exit.map_or_else(|| "its process has not".to_owned(), |exit| exit.words());
        self.failure.report(format!("n{} can't be heard any more ({seen}); {exit}", self.place.id.0));
    }
}
