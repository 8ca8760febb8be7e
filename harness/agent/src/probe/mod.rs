//! Who reaches whom: datagrams between agents, under the same rules as the members' packets.
//!
//! Every agent sends two to each peer: a probe, which faults hit, and a control, which no fault hits. A probe
//! that did not arrive shows something only beside a control that did. Each is a claim about one direction,
//! so cuts of one way are seen as what they are.
//!
//! A thread of its own takes datagrams in and stamps them; the stamp is the monotonic clock's, as is the
//! sender's, and agents of a run share a kernel, so "took" is the difference. Datagrams of other runs, from
//! addresses that are not the sender's, or older than a minute are not looked at.

mod datagram;
mod rounds;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::protocol::Peer;
use crate::threads::{STACK, Wake};
use crate::time::{MS, now_ns};
use datagram::{Datagram, Kind, LENGTH};
use rounds::Rounds;
pub(crate) use rounds::{Answer, Question};

/// Age at which a datagram is not of this world any more.
const MAX_AGE_NS: u64 = 60_000 * MS;

/// Why probes can't be sent or received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("open UDP port {port} for {what}: {error}; choose a port that the member does not use")]
    Port { port: u16, what: &'static str, error: io::Error },
    #[error("start a thread for probes: {0}")]
    Thread(io::Error),
    #[error("send a {what} to peer {peer} at {to}: {error}")]
    Send { what: &'static str, peer: Peer, to: SocketAddr, error: io::Error },
}

/// Ports, and the thread that listens at them until this is dropped.
#[derive(Debug)]
pub(crate) struct Probes {
    shared: Arc<Shared>,
    own: Peer,
    stop: Wake,
    receiver: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    run: u64,
    peers: Vec<(Peer, IpAddr)>,
    probe: UdpSocket,
    control: UdpSocket,
    rounds: Mutex<Rounds>,
    /// Whether the main thread wants to hear of arrivals.
    awaited: AtomicBool,
}

impl Probes {
    /// Opens both ports at all addresses and listens from then on. `wake` is nudged when something arrives
    /// that was [awaited](Self::await_arrivals).
    pub(crate) fn open(
        run: &str,
        own: Peer,
        peers: &[(Peer, IpAddr)],
        (probe_port, control_port): (u16, u16),
        wake: Wake,
    ) -> Result<Self, ProbeError> {
        let peers: Vec<_> = peers.iter().map(|(peer, address)| (*peer, address.to_canonical())).collect();
        let socket = |port, what| {
            bind(port, &peers).map_err(|error: io::Error| ProbeError::Port { port, what, error })
        };
        let shared = Arc::new(Shared {
            run: crate::hash(run.as_bytes()),
            probe: socket(probe_port, "probes")?,
            control: socket(control_port, "controls")?,
            rounds: Mutex::new(Rounds::new(peers.iter().map(|(peer, _)| *peer).collect())),
            peers,
            awaited: AtomicBool::new(false),
        });
        let stop = Wake::new().map_err(ProbeError::Thread)?;
        let (receiving, stopped) = (Arc::clone(&shared), stop.clone());
        let receiver = thread::Builder::new()
            .name("probes".to_owned())
            .stack_size(STACK)
            .spawn(move || receive(&receiving, &stopped, &wake))
            .map_err(ProbeError::Thread)?;
        Ok(Self { shared, own, stop, receiver: Some(receiver) })
    }

    /// Sends one probe and one control to every peer. All are tried; the first failure is told.
    pub(crate) fn send(&self, round: u64) -> Result<(), ProbeError> {
        let mut failed = None;
        for (peer, address) in &self.shared.peers {
            for (kind, what, socket) in
                [(Kind::Probe, "probe", &self.shared.probe), (Kind::Control, "control", &self.shared.control)]
            {
                let sent = socket.local_addr().and_then(|local| {
                    let to = SocketAddr::new(reachable(*address, local), local.port());
                    let run = self.shared.run;
                    let datagram = Datagram { run, round, sender: self.own, sent_ns: now_ns(), kind };
                    socket.send_to(&datagram.encode(), to).map_err(|error| {
                        let to = SocketAddr::new(*address, to.port());
                        failed.get_or_insert(ProbeError::Send { what, peer: *peer, to, error });
                        io::ErrorKind::Other.into()
                    })
                });
                drop(sent);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// What to say to a question for a round's arrivals.
    pub(crate) fn answer(&self, question: Question) -> Answer {
        let rounds = self.shared.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.answer(question, now_ns())
    }

    /// Whether the main thread wants to hear of arrivals. To be said before [`Self::answer`] is asked, so
    /// that nothing that arrives in between is missed.
    pub(crate) fn await_arrivals(&self, awaited: bool) {
        self.shared.awaited.store(awaited, Ordering::SeqCst);
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.stop.nudge();
        if let Some(receiver) = self.receiver.take() {
            // It ends at the nudge; it has nothing to tell.
            let _ = receiver.join();
        }
    }
}

/// A socket at all addresses of the families that the peers have.
fn bind(port: u16, peers: &[(Peer, IpAddr)]) -> io::Result<UdpSocket> {
    let ipv6 = peers.iter().any(|(_, address)| address.is_ipv6());
    let (domain, any) = if ipv6 {
        (Domain::IPV6, IpAddr::V6(Ipv6Addr::UNSPECIFIED))
    } else {
        (Domain::IPV4, IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    };
    let socket = Socket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
    if ipv6 {
        socket.set_only_v6(false)?;
    }
    socket.bind(&SocketAddr::new(any, port).into())?;
    Ok(socket.into())
}

/// An address as a socket of this kind has to be given it.
fn reachable(address: IpAddr, local: SocketAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if local.is_ipv6() => address.to_ipv6_mapped().into(),
        address => address,
    }
}

fn receive(shared: &Shared, stop: &Wake, wake: &Wake) {
    loop {
        let mut wanted = [
            PollFd::new(&shared.probe, PollFlags::IN),
            PollFd::new(&shared.control, PollFlags::IN),
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
        ];
        if poll(&mut wanted, None).is_err_and(|error| error != rustix::io::Errno::INTR)
            || !wanted[2].revents().is_empty()
        {
            return;
        }
        let noted_probe = drain(shared, &shared.probe, Kind::Probe);
        let noted_control = drain(shared, &shared.control, Kind::Control);
        if (noted_probe || noted_control) && shared.awaited.load(Ordering::SeqCst) {
            wake.nudge();
        }
    }
}

/// Takes in what waits at a port; true when some of it was ours.
fn drain(shared: &Shared, socket: &UdpSocket, kind: Kind) -> bool {
    /// Then the other port has its turn.
    const MAX_AT_ONCE: usize = 256;
    let mut noted = false;
    let mut buffer = [0; LENGTH + 1];
    for _ in 0..MAX_AT_ONCE {
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let received_ns = now_ns();
        let Some(datagram) = buffer.get(..length).and_then(Datagram::decode) else { continue };
        let sender = (datagram.sender, from.ip().to_canonical());
        if datagram.kind != kind
            || datagram.run != shared.run
            || !shared.peers.contains(&sender)
            || received_ns.saturating_sub(datagram.sent_ns) > MAX_AGE_NS
        {
            continue;
        }
        let mut rounds = shared.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.note(datagram.round, datagram.sender, kind, datagram.sent_ns, received_ns);
        noted = true;
    }
    noted
}
