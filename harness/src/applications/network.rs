//! What applications speak with: a link for each of them to every member, and the store.
//!
//! The links carry connections as those between members do ([`crate::links::forward`]), on one thread: once a
//! rule is in force there, not a byte passes against it. All connections of one application share two lanes,
//! so that one rule holds all that it says and all that it is told.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::store::Store;
use crate::clock::RunClock;
use crate::links::forward::{Far, carry};
use crate::links::lanes::Lane;
use crate::links::rules::Rule;

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// The thread on which all of it lives. It ends when this is dropped.
pub struct Network {
    handle: Handle,
    _stop: oneshot::Sender<()>,
}

/// The links of one application.
pub struct Link {
    out: Arc<Lane>,
    back: Arc<Lane>,
    entrances: Vec<SocketAddr>,
    /// What had passed when it was cut off.
    noted: AtomicU64,
    /// Ends the listeners when it is dropped.
    _carrying: tokio::task::AbortHandle,
}

impl Network {
    /// Starts the thread.
    pub fn start() -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().context("starting a runtime")?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        std::thread::Builder::new()
            .name("applications".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(stopped);
            })
            .context("starting a thread")?;
        Ok(Self { handle, _stop: stop })
    }

    /// A listener of that thread on a port that was free.
    fn listen(&self) -> anyhow::Result<(TcpListener, SocketAddr)> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("taking a port")?;
        listener.set_nonblocking(true).context("taking a port")?;
        let address = listener.local_addr().context("taking a port")?;
        let _within = self.handle.enter();
        Ok((TcpListener::from_std(listener).context("taking a port")?, address))
    }

    /// Links to these, in their order.
    pub fn open(&self, targets: &[SocketAddr]) -> anyhow::Result<Link> {
        let (out, back): (Arc<Lane>, Arc<Lane>) = Default::default();
        let mut entrances = Vec::new();
        let mut listeners = Vec::new();
        for target in targets {
            let (listener, address) = self.listen()?;
            entrances.push(address);
            listeners.push((listener, *target));
        }
        let lanes = (Arc::clone(&out), Arc::clone(&back));
        let carrying = self.handle.spawn(carry_all(listeners, lanes)).abort_handle();
        Ok(Link { out, back, entrances, noted: AtomicU64::new(0), _carrying: carrying })
    }

    /// A store that takes writes. Gives where.
    pub fn serve_store(&self, clock: RunClock, minds_tokens: bool) -> anyhow::Result<SocketAddr> {
        let (listener, address) = self.listen()?;
        self.handle.spawn(Store::new(clock, minds_tokens).serve(listener));
        Ok(address)
    }

    /// Done when everything that the thread had begun before has been done.
    pub async fn settle(&self) {
        let _ = self.handle.spawn(std::future::ready(())).await;
    }
}

async fn carry_all(listeners: Vec<(TcpListener, SocketAddr)>, lanes: (Arc<Lane>, Arc<Lane>)) {
    let mut accepting = JoinSet::new();
    for (listener, target) in listeners {
        let lanes = lanes.clone();
        accepting.spawn(async move {
            let mut carried = JoinSet::new();
            loop {
                let far = Far { target, introduces: None };
                match listener.accept().await {
                    Ok((near, _)) => {
                        carried.spawn(carry(near, far, Arc::clone(&lanes.0), Arc::clone(&lanes.1)));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
                while carried.try_join_next().is_some() {}
            }
        });
    }
    while accepting.join_next().await.is_some() {}
}

impl Link {
    /// Where the application finds each member.
    pub fn entrances(&self) -> &[SocketAddr] {
        &self.entrances
    }

    fn set(&self, rule: Rule) {
        self.out.rule.send_replace(rule);
        self.back.rule.send_replace(rule);
    }

    /// Nothing passes any more, in either direction.
    pub fn hold(&self) {
        self.set(Rule::HOLD);
    }

    /// Everything passes again.
    pub fn pass(&self) {
        self.set(Rule::default());
    }

    /// Bytes that passed since the start, and bytes and connections that wait.
    pub fn traffic(&self) -> (u64, u64) {
        let sum = |of: fn(&Lane) -> u64| of(&self.out) + of(&self.back);
        let passed = sum(|lane| lane.forwarded.load(Ordering::Relaxed));
        let waiting =
            sum(|lane| lane.waiting.load(Ordering::Relaxed) + lane.dials_waiting.load(Ordering::Relaxed));
        (passed, waiting)
    }

    /// From now on what passes counts anew.
    pub fn note(&self) {
        self.noted.store(self.traffic().0, Ordering::Relaxed);
    }

    /// What passed since then.
    pub fn passed_since(&self) -> u64 {
        self.traffic().0.saturating_sub(self.noted.load(Ordering::Relaxed))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self._carrying.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn what_is_held_waits_and_passes_later() {
        let target = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let network = Network::start().expect("a thread");
        let link = network.open(&[target.local_addr().expect("bound")]).expect("a link");
        let mut near = TcpStream::connect(link.entrances()[0]).expect("connected");
        let (mut far, _) = target.accept().expect("carried");
        near.write_all(b"one").expect("written");
        let mut read = [0; 3];
        far.read_exact(&mut read).expect("carried");
        link.hold();
        network.settle().await;
        link.note();
        near.write_all(b"two").expect("written");
        while link.traffic().1 < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(link.passed_since(), 0);
        link.pass();
        far.read_exact(&mut read).expect("carried");
        // What is written is counted behind it, in one step of that thread.
        network.settle().await;
        assert_eq!((&read, link.traffic()), (b"two", (6, 0)));
    }
}
