//! The engine: finding it, and asking it for things, never without a time-out.
//!
//! Everything that speaks with the engine runs on a thread of its own with a runtime of its own. So the load
//! delays neither what members say nor the renewal of the agents' leases, and what has to be cleaned up can
//! be cleaned up while the rest of the harness unwinds.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use harness_agent::protocol::END_MS;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::place::{self, Place};

/// How long an engine may take to be connected to.
const DIAL_PATIENCE: Duration = Duration::from_secs(1);
/// How long it may take to say which it is.
const HELLO_PATIENCE: Duration = Duration::from_secs(3);
/// How long it may take to answer a ping before it counts as gone.
const PING_PATIENCE: Duration = Duration::from_secs(2);
/// What the client library itself waits for the head of an answer, in seconds; each call has its own bound
/// below this, but for a pull, which goes on as long as the engine tells of it.
const LIBRARY_PATIENCE_S: u64 = 120;

/// Why there is no engine to work with, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoEngine {
    /// In words.
    pub reason: String,
    /// Nobody asked for an engine, and there is none that could be used, now or when a run was made.
    pub absent: bool,
}

impl fmt::Display for NoEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for NoEngine {}

/// What went wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No answer came in time.
    Silent(Duration),
    /// The engine could not be reached, or hung up.
    Gone(String),
    /// It refused: the status of HTTP, and its words.
    Refused(u16, String),
    /// It answered something else than was expected.
    Unfitting(String),
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError {
    /// What was asked for, to fit after "while".
    pub what: String,
    /// Why it failed.
    pub cause: Cause,
}

impl EngineError {
    /// Whether the engine does not know the thing (any more).
    pub fn is_unknown(&self) -> bool {
        matches!(self.cause, Cause::Refused(404, _))
    }

    /// Whether the engine itself failed, and not what it was asked for.
    pub fn is_gone(&self) -> bool {
        matches!(self.cause, Cause::Silent(_) | Cause::Gone(_))
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match &self.cause {
            Cause::Silent(patience) => {
                write!(f, "the engine gave no answer within {} s while {what}", patience.as_secs_f64())
            }
            Cause::Gone(error) => write!(f, "the engine can't be reached while {what}: {error}"),
            Cause::Refused(status, message) => {
                write!(f, "the engine refused ({status}) while {what}: {}", message.trim())
            }
            Cause::Unfitting(error) => write!(f, "the engine answered strangely while {what}: {error}"),
        }
    }
}

impl std::error::Error for EngineError {}

/// What the client library calls an error, sorted.
pub(super) fn sorted(error: Error) -> Cause {
    match error {
        Error::DockerResponseServerError { status_code, message } => Cause::Refused(status_code, message),
        Error::DockerStreamError { error } => Cause::Refused(500, error),
        Error::RequestTimeoutError => Cause::Silent(Duration::from_secs(LIBRARY_PATIENCE_S)),
        Error::JsonDataError { .. } | Error::JsonSerdeError { .. } | Error::StrParseError { .. } => {
            Cause::Unfitting(error.to_string())
        }
        other => Cause::Gone(with_sources(&other)),
    }
}

/// An error with all that led to it.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !words.contains(&more) {
            words.push_str(": ");
            words.push_str(&more);
        }
        source = inner.source();
    }
    words
}

/// A thread that lives as long as its handle.
struct Worker {
    handle: Handle,
    _alive: oneshot::Sender<()>,
}

impl Worker {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (alive, ended) = oneshot::channel();
        std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
            // The sender is never used, only dropped.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self { handle, _alive: alive })
    }
}

struct Inner {
    docker: Docker,
    place: Place,
    version: String,
    architecture: String,
    worker: Worker,
}

/// A Docker engine that answered. Clones are the same one.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

impl Engine {
    /// Looks for the engine that the environment names, and asks it who it is.
    pub async fn find() -> Result<Self, NoEngine> {
        let chosen = place::choose().map_err(|reason| NoEngine { reason, absent: false })?;
        Self::at(chosen.place, chosen.on_purpose).await
    }

    /// The engine at a place.
    pub async fn at(place: Place, on_purpose: bool) -> Result<Self, NoEngine> {
        if let Err(error) = dial(&place).await {
            let unusable = matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::ConnectionRefused
            );
            let absent = !on_purpose && unusable;
            return Err(NoEngine { reason: advice(&place, &error), absent });
        }
        let failed = |reason: String| NoEngine { reason, absent: false };
        let version = bollard::API_DEFAULT_VERSION;
        let docker = match &place {
            Place::Unix(path) => {
                Docker::connect_with_unix(&path.display().to_string(), LIBRARY_PATIENCE_S, version)
            }
            Place::Tcp(host, port) => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                Docker::connect_with_http(&format!("tcp://{host}:{port}"), LIBRARY_PATIENCE_S, version)
            }
        };
        let docker = docker.map_err(|error| failed(format!("{place}: {error}")))?;
        let worker = Worker::start().map_err(|error| failed(format!("no thread for the engine: {error}")))?;
        let asking = async move {
            let docker = docker.negotiate_version().await?;
            let said = docker.version().await?;
            Ok::<_, Error>((docker, said))
        };
        let (docker, said) = match worker.handle.spawn(tokio::time::timeout(HELLO_PATIENCE, asking)).await {
            Ok(Ok(Ok(answer))) => answer,
            Ok(Ok(Err(error))) => {
                return Err(failed(format!("what listens at {place} is no Docker engine: {error}")));
            }
            Ok(Err(_)) => {
                let patience = HELLO_PATIENCE.as_secs();
                return Err(failed(format!("the engine at {place} gave no answer within {patience} s")));
            }
            Err(error) => return Err(failed(format!("asking the engine at {place}: {error}"))),
        };
        let system = said.os.unwrap_or_default();
        if system != "linux" {
            return Err(failed(format!(
                "the engine at {place} runs containers of {system}, and members are Linux programs: switch \
                 it to Linux containers, or name another in DOCKER_HOST"
            )));
        }
        let architecture = said.arch.unwrap_or_default();
        let version = said.version.unwrap_or_else(|| "of an unknown version".to_owned());
        Ok(Self { inner: Arc::new(Inner { docker, place, version, architecture, worker }) })
    }

    /// In words: `Docker 20.10.24 at unix:///var/run/docker.sock`.
    pub fn describe(&self) -> String {
        format!("Docker {} at {}", self.inner.version, self.inner.place)
    }

    /// Its processor, as Go names it.
    pub fn architecture(&self) -> &str {
        &self.inner.architecture
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.inner.place
    }

    /// The client, for what runs on the engine's thread.
    pub(super) fn docker(&self) -> Docker {
        self.inner.docker.clone()
    }

    /// Lets a task run on the engine's thread.
    pub(super) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.inner.worker.handle.spawn(task)
    }

    /// Asks for something, on the engine's thread. It goes on there until it is done or its patience is over,
    /// whatever becomes of whoever asked.
    pub(super) async fn call<T, F>(
        &self,
        what: &str,
        patience: Duration,
        request: impl FnOnce(Docker) -> F,
    ) -> Result<T, EngineError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let task = self.spawn(tokio::time::timeout(patience, request(self.docker())));
        let cause = match task.await {
            Ok(Ok(Ok(answer))) => return Ok(answer),
            Ok(Ok(Err(error))) => sorted(error),
            Ok(Err(_)) => Cause::Silent(patience),
            Err(error) => Cause::Gone(format!("its thread: {error}")),
        };
        Err(EngineError { what: what.to_owned(), cause })
    }

    /// Whether it still answers.
    pub async fn ping(&self) -> Result<(), EngineError> {
        self.call("asking whether it is there", PING_PATIENCE, |docker| async move { docker.ping().await })
            .await
            .map(|_| ())
    }
}

async fn dial(place: &Place) -> io::Result<()> {
    let dialling = async {
        match place {
            Place::Unix(path) => UnixStream::connect(path).await.map(drop),
            Place::Tcp(host, port) => TcpStream::connect((host.as_str(), *port)).await.map(drop),
        }
    };
    tokio::time::timeout(DIAL_PATIENCE, dialling).await.unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no connection within {} s", DIAL_PATIENCE.as_secs()),
        ))
    })
}

/// Why nobody answers there, and what to do.
fn advice(place: &Place, error: &io::Error) -> String {
    match (place, error.kind()) {
        (Place::Unix(path), io::ErrorKind::NotFound) => {
            format!("there is no engine at {}: install and start Docker, or set DOCKER_HOST", path.display())
        }
        (Place::Unix(path), io::ErrorKind::PermissionDenied) => format!(
            "you may not speak with the engine at {}: add yourself to its group (`sudo usermod -aG docker \
             $USER`, then log in again), run a rootless engine, or use sudo",
            path.display()
        ),
        (Place::Unix(path), io::ErrorKind::ConnectionRefused) => format!(
            "there is a socket at {}, and nobody behind it: start the engine (`sudo systemctl start docker`)",
            path.display()
        ),
        _ => format!("no engine answers at {place}: {error}"),
    }
}

/// The engine fell silent or hung up: what that means for what is left.
pub(super) fn engine_is_gone(error: &str) -> String {
    format!(
        "the engine is gone ({error}). Its containers of this run end by themselves within {} s if it still \
         runs, unless x-harness.process_1 names their members; they, its network, volumes and image stay: \
         `harness clean` removes them once the engine is back",
        END_MS / 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn none_at(path: &std::path::Path, on_purpose: bool) -> NoEngine {
        match Engine::at(Place::Unix(path.to_owned()), on_purpose).await {
            Ok(_) => panic!("an engine at {}", path.display()),
            Err(none) => none,
        }
    }

    #[tokio::test]
    async fn a_socket_that_is_not_there_is_absent_unless_somebody_named_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.sock");
        assert!(none_at(&path, false).await.absent);
        let none = none_at(&path, true).await;
        assert!(!none.absent && none.reason.contains("set DOCKER_HOST"), "{none}");
    }

    #[tokio::test]
    async fn a_socket_without_anybody_and_one_without_an_engine_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
        let none = none_at(&path, false).await;
        assert!(none.reason.contains("nobody behind it"), "{none}");
        std::fs::remove_file(&path).expect("removed");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        std::thread::spawn(move || listener.incoming().for_each(drop));
        let none = none_at(&path, false).await;
        assert!(none.reason.contains("is no Docker engine"), "{none}");
    }
}
