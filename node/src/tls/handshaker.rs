//! Handshakes, on a thread of their own.
//!
//! A handshake costs about a millisecond of arithmetic, which is a thousand times what a request costs. The
//! member's own thread, which must answer its peers within their patience, takes a connection over only when
//! it stands. A crowd of clients that come all at once then wait for each other and for nobody else.

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, Connection, ServerConfig};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::{TlsAcceptor, TlsConnector};

type Answer = io::Result<(std::net::TcpStream, Connection)>;

/// Which end of a connection this one is.
pub(crate) enum Side {
    /// The other end dialled.
    Accepts(Arc<ServerConfig>),
    /// This one did, and means somebody.
    Dials(Arc<ClientConfig>, ServerName<'static>),
}

/// A connection on which nothing was said.
struct Job {
    stream: std::net::TcpStream,
    side: Side,
    patience: Duration,
    answer: oneshot::Sender<Answer>,
}

/// The thread, from the first handshake on and as long as somebody has this.
#[derive(Debug, Default)]
pub(crate) struct Handshaker {
    jobs: OnceCell<mpsc::UnboundedSender<Job>>,
}

impl Handshaker {
    fn jobs(&self) -> io::Result<&mpsc::UnboundedSender<Job>> {
        if let Some(jobs) = self.jobs.get() {
            return Ok(jobs);
        }
        let (jobs, mut next) = mpsc::unbounded_channel::<Job>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("handshakes".to_owned()).spawn(move || {
            runtime.block_on(async {
                while let Some(job) = next.recv().await {
                    tokio::spawn(job.run());
                }
            });
        })?;
        Ok(self.jobs.get_or_init(|| jobs))
    }

    /// Shakes hands: the socket again, and the connection on it. Whoever calls bounds how many there are.
    pub(crate) async fn welcome(
        &self,
        stream: TcpStream,
        side: Side,
        patience: Duration,
    ) -> io::Result<(TcpStream, Connection)> {
        let (answer, done) = oneshot::channel();
        let gone = || io::Error::other("the thread for handshakes has ended");
        let job = Job { stream: stream.into_std()?, side, patience, answer };
        self.jobs()?.send(job).map_err(|_| gone())?;
        let (stream, connection) = done.await.map_err(|_| gone())??;
        Ok((TcpStream::from_std(stream)?, connection))
    }
}

impl Job {
    async fn run(self) {
        let Self { stream, side, patience, answer } = self;
        let done = tokio::time::timeout(patience, shake(stream, side)).await;
        // Whoever asked may be gone.
        let _ = answer.send(done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())));
    }
}

async fn shake(stream: std::net::TcpStream, side: Side) -> Answer {
    let stream = TcpStream::from_std(stream)?;
    let (stream, connection) = match side {
        Side::Accepts(config) => {
            let (stream, connection) = TlsAcceptor::from(config).accept(stream).await?.into_inner();
            (stream, Connection::Server(connection))
        }
        Side::Dials(config, name) => {
            let (stream, connection) = TlsConnector::from(config).connect(name, stream).await?.into_inner();
            (stream, Connection::Client(connection))
        }
    };
    Ok((stream.into_std()?, connection))
}
