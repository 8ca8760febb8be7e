//! Handshakes, on a thread of their own.
//!
//! A handshake costs about a millisecond of arithmetic, which is a thousand times what a request costs. The
//! member's own thread, which must answer its peers within their patience, takes a connection over only when it
//! stands. A crowd of clients that come all at once then wait for each other and for nobody else.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::{Connection, ServerConfig};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;

type Answer = io::Result<(std::net::TcpStream, Connection)>;

/// A connection that came and was not looked at.
struct Job {
    stream: std::net::TcpStream,
    config: Arc<ServerConfig>,
    patience: Duration,
    answer: oneshot::Sender<Answer>,
}

/// The thread, as long as somebody has this.
#[derive(Debug)]
pub(crate) struct Doorman {
    jobs: mpsc::UnboundedSender<Job>,
}

impl Doorman {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, mut next) = mpsc::unbounded_channel::<Job>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("handshakes".to_owned()).spawn(move || {
            runtime.block_on(async {
                while let Some(job) = next.recv().await {
                    tokio::spawn(job.run());
                }
            });
        })?;
        Ok(Self { jobs })
    }

    /// Takes somebody in: the socket again, and the connection on it. Whoever calls bounds how many there are.
    pub(crate) async fn welcome(
        &self,
        stream: TcpStream,
        config: Arc<ServerConfig>,
        patience: Duration,
    ) -> io::Result<(TcpStream, Connection)> {
        let (answer, done) = oneshot::channel();
        let gone = || io::Error::other("the thread for handshakes has ended");
        let job = Job { stream: stream.into_std()?, config, patience, answer };
        self.jobs.send(job).map_err(|_| gone())?;
        let (stream, connection) = done.await.map_err(|_| gone())??;
        Ok((TcpStream::from_std(stream)?, connection))
    }
}

impl Job {
    async fn run(self) {
        let Self { stream, config, patience, answer } = self;
        let done = tokio::time::timeout(patience, shake(stream, config)).await;
        // Whoever asked may be gone.
        let _ = answer.send(done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())));
    }
}

async fn shake(stream: std::net::TcpStream, config: Arc<ServerConfig>) -> Answer {
    let stream = TcpStream::from_std(stream)?;
    let (stream, connection) = TlsAcceptor::from(config).accept(stream).await?.into_inner();
    Ok((stream.into_std()?, Connection::Server(connection)))
}
