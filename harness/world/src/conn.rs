//! A connection between two processes.

use crate::links::HostIndex;
use crate::pipe::Pipe;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct ConnEnd<T> {
    /// The machine that it is on.
    pub host: HostIndex,
    /// The process that holds it; a later life of the same member knows nothing of it.
    pub life: u64,
    /// True until its process closed it or was told of its loss.
    pub open: bool,
    /// False while a dialler has not heard that its dial succeeded.
    pub announced: bool,
    /// What is on its way to this end.
    pub incoming: Pipe<T>,
}

/// A connection on which such things travel: the end that dialled is end 0.
#[derive(Clone, Debug)]
pub struct Conn<T> {
    /// Who dialled, and who accepted.
    pub ends: [ConnEnd<T>; 2],
    /// False once it was reset: what is sent on it vanishes, whether or not the ends know.
    pub alive: bool,
}

impl<T> Conn<T> {
    /// A connection between two processes.
    pub fn new(dialler: (HostIndex, u64), acceptor: (HostIndex, u64)) -> Self {
        let end = |(host, life), announced| ConnEnd {
            host,
            life,
            open: true,
            announced,
            incoming: Pipe::default(),
        };
        Self { ends: [end(dialler, false), end(acceptor, true)], alive: true }
    }
}
