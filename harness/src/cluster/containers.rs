//! The containers of a run as whoever runs commands in them sees them: members, and services beside them.
//!
//! Each is called by the name of its service. A command runs as the container's own user and in its
//! environment. What programs write into the folder that their environment names ([`OUTPUT_VARIABLE`]) is
//! read from the volume that all containers share, so it outlives them.

use std::io;

use tokio::sync::mpsc;

use super::Async;

/// Names the folder into which programs in a container write what they assert.
pub const OUTPUT_VARIABLE: &str = "ANTITHESIS_OUTPUT_DIR";
/// Names the one file into which an SDK writes what a process asserts.
pub const LOCAL_OUTPUT_VARIABLE: &str = "ANTITHESIS_SDK_LOCAL_OUTPUT";

/// A file in a folder of test templates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The folder in that folder.
    pub template: String,
    /// Its name there.
    pub name: String,
    /// Whether it may be run. A link may.
    pub executable: bool,
}

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its number in the run.
    pub number: u64,
    /// Where.
    pub container: String,
    /// The executable.
    pub path: String,
}

/// A line that a job wrote.
#[derive(Debug)]
pub struct Said {
    /// The job.
    pub number: u64,
    /// The line, without its end.
    pub line: Vec<u8>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// With this exit status.
    Status(i64),
    /// Nobody knows: its container is gone, or did not run.
    Lost(String),
}

/// Reads a file of a container, by the names of both.
pub type EachFile = Box<dyn FnMut(&str, &str, &mut dyn io::Read) -> io::Result<()> + Send>;

/// What commands are run in.
pub trait Containers: Send + Sync {
    /// The containers that were started.
    fn names(&self) -> Vec<String>;

    /// The files one folder below this one; none where it is not there.
    fn files<'a>(&'a self, container: &'a str, folder: &'a str) -> Async<'a, Vec<Found>>;

    /// Runs a job to its end, however long it takes. Its lines go where they are heard.
    fn run(&self, job: Job, said: mpsc::Sender<Said>) -> Async<'static, Ran>;

    /// Kills what a job started. False where its container has no shell to do it with.
    fn end(&self, job: Job) -> Async<'static, bool>;

    /// Reads what programs wrote of what they assert, whole files one after the other.
    fn read(&self, each: EachFile) -> Async<'_, ()>;
}
