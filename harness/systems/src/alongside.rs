//! Processes of a client in a container beside the members.

use std::fmt;
use std::fs::File;
use std::io;
use std::pin::Pin;

use checker::history::Function;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Async;

/// What a file says of a client in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InContainer {
    /// The service in whose container its processes run.
    pub service: String,
    /// Where members are found from there, in their order: `redis1:6379`.
    pub members: Vec<String>,
    /// What its hello will say that it can do: nothing of it runs before that must be known.
    pub functions: Vec<Function>,
}

/// Starts processes in the container of a client.
pub trait Alongside: fmt::Debug + Send + Sync {
    /// Starts a command with this in its environment; what it writes to its standard error goes to `log`.
    fn start(
        &self,
        words: Vec<String>,
        environment: Vec<String>,
        log: File,
    ) -> Async<'static, io::Result<Remote>>;
}

/// A process there.
pub struct Remote {
    /// Its standard input.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Its standard output.
    pub output: Pin<Box<dyn AsyncRead + Send>>,
    /// Ends it when it is dropped.
    pub hold: Box<dyn Hold>,
}

/// What ends a process when it is dropped.
pub trait Hold: Send {
    /// Whether it lives, as far as is known.
    fn lives(&self) -> bool;
}
