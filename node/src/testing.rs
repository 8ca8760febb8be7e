//! What the ports' tests share.

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use node_core::io::Input;
use node_wire::ids::ServerId;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::address::{HostPort, ServerLine, ServerRole};
use crate::cli::Args;
use crate::config::NodeConfig;
use crate::inbox::Inbox;

/// No test waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a test on one thread, as the node runs.
pub(crate) fn local<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let set = LocalSet::new();
    set.block_on(&runtime, async { tokio::time::timeout(PATIENCE, test).await.expect("in time") })
}

/// A listener, and where it listens.
pub(crate) async fn listener() -> (TcpListener, HostPort) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    (listener, HostPort::new("127.0.0.1", port))
}

/// A connection to such a listener.
pub(crate) async fn connect(target: &HostPort) -> TcpStream {
    TcpStream::connect((target.host.as_str(), target.port)).await.expect("connected")
}

/// A configuration for a member whose peers' election ports are these. Nothing listens on the other ports.
pub(crate) fn config(id: u64, elections: &[(u64, &HostPort)]) -> NodeConfig {
    let args = Args {
        id: Some(ServerId(id)),
        data_dir: Some("unused".into()),
        client_addr: Some(HostPort::new("127.0.0.1", 0)),
        ..Args::default()
    };
    let mut config = NodeConfig::from_args(&args).expect("possible");
    for (id, election) in elections {
        let line = ServerLine {
            quorum: HostPort::new("127.0.0.1", 1),
            election: (*election).clone(),
            role: ServerRole::Participant,
            client: None,
        };
        config.servers.insert(ServerId(*id), line);
    }
    config
}

/// The next input from a peer.
pub(crate) async fn from_peer(inbox: &Rc<Inbox>) -> Input {
    next(inbox, Inbox::next_from_peer).await
}

/// The next input from a client.
pub(crate) async fn from_client(inbox: &Rc<Inbox>) -> Input {
    next(inbox, Inbox::next_from_client).await
}

async fn next(inbox: &Rc<Inbox>, take: impl Fn(&Inbox) -> Option<Input>) -> Input {
    let wake = inbox.wake();
    loop {
        if let Some(input) = take(inbox) {
            return input;
        }
        wake.notified().await;
    }
}
