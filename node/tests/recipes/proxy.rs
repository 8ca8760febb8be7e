//! What a client connects through: it can refuse, and it can hold what passes without closing anything.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What becomes of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Passes,
    Holds,
    Refuses,
}

/// A way to one member.
pub(crate) struct Proxy {
    addr: SocketAddr,
    mode: Arc<watch::Sender<Mode>>,
}

impl Proxy {
    /// To a member.
    pub(crate) async fn to(member: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("bound");
        let mode = Arc::new(watch::Sender::new(Mode::Passes));
        let modes = Arc::clone(&mode);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *modes.borrow() != Mode::Refuses {
                    tokio::spawn(carry(client, member, modes.subscribe()));
                }
            }
        });
        Self { addr, mode }
    }

    /// Where clients connect.
    pub(crate) fn addr(&self) -> String {
        self.addr.to_string()
    }

    /// Closes every connection at once, until told otherwise.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.mode.send_replace(if refuses { Mode::Refuses } else { Mode::Passes });
    }

    /// Lets nothing pass, and closes nothing.
    pub(crate) fn hold(&self) {
        self.mode.send_replace(Mode::Holds);
    }

    /// Lets pass what was held.
    pub(crate) fn release(&self) {
        self.mode.send_replace(Mode::Passes);
    }
}

async fn carry(client: TcpStream, member: SocketAddr, mut modes: watch::Receiver<Mode>) {
    let Ok(server) = TcpStream::connect(member).await else { return };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let mut refused = modes.clone();
    tokio::select! {
        () = pass(from_client, to_server, modes.clone()) => {}
        () = pass(from_server, to_client, modes.clone()) => {}
        _ = refused.wait_for(|mode| *mode == Mode::Refuses) => {}
    }
    let _ = modes.wait_for(|mode| *mode != Mode::Holds).await;
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut modes: watch::Receiver<Mode>,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        if modes.wait_for(|mode| *mode == Mode::Passes).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
