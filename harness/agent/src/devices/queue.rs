//! Holds packets of some peers back, by verdicts on a queue of the kernel's (`nfnetlink_queue`).
//!
//! A rule at the input hook marks a packet with its sender's place and hands it to the queue; a thread of
//! this device lets each one in when its time has come, in the order in which they came. What this is not
//! asked for never meets the queue: the rules name the peers, and none stands while nothing is slow. Probes
//! wait as members' packets do, and are marked as such: what is told is how long members' packets waited.
//!
//! - The table belongs to its socket and the rules let pass where nobody listens, so a network is as ever the
//!   moment the agent is gone.
//! - The base chain is made once and stays: with it every packet that waits would go. Only its rules come and
//!   go, and what waits when they go is let in at once.
//! - Whole super-packets are taken (`GSO`), without their content; what does not fit is let in at once.
//! - Rules follow the control port's, so that no control ever waits.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netlink::NETFILTER;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with, sockopt,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Around, Device};
use crate::netfilter::kernel_name;
use crate::netfilter::netlink::{Netlink, NetlinkError};
use crate::netfilter::rules::{Batch, Rule, Step, Verdict};
use crate::netfilter::wire::{Messages, Writer, flag, kind};
use crate::protocol::Peer;
use crate::threads::{STACK, Wake};
use crate::time::now_ns;

/// The number of the queue in its network namespace.
const NUMBER: u16 = 7;
/// Behind the chain of faults and the one that counts. What waits when a cut comes is on its way: it was
/// counted as passed when it came, and not when it is let in, which would be while the cut is in force.
const PRIORITY: i32 = 200;
const CHAIN: &str = "queued";
/// So many packets wait at most; the kernel lets in what is more.
const MOST_WAITING: u32 = 65_536;
/// So many delays of a peer are kept, the newest.
const MOST_DELAYS: usize = 256;
/// What the kernel keeps of the conversation.
const BUFFER_BYTES: usize = 8 << 20;

/// Messages of the queue's part of the kernel.
const PACKET: u16 = 3 << 8;
const VERDICT: u16 = 3 << 8 | 1;
const CONFIG: u16 = 3 << 8 | 2;

const QUEUEING_RULE: Step = Step { what: "a rule that queues packets", module: "nft_queue" };
const TARGET_RULE: Step = Step { what: "a rule that queues packets", module: "xt_NFQUEUE" };
const RULE: Step = Step { what: "a rule", module: "nf_tables" };

/// What the harness says.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    /// Packets of these peers take longer, in the name of a fault.
    Slow {
        fault: String,
        from: Vec<Peer>,
        latency_us: u64,
        #[serde(default)]
        jitter_us: u64,
    },
    /// What this fault did is over.
    Heal(String),
    /// Tell how long members' packets were held since the last question, and how long they are held now.
    Report,
}

/// By how much packets take longer.
#[derive(Clone, Copy, Debug, Default)]
struct Slower {
    latency_ns: u64,
    jitter_ns: u64,
}

/// The device.
#[derive(Default)]
pub(super) struct Queue {
    faults: Faults,
    open: Option<Open>,
}

impl Device for Queue {
    fn name(&self) -> &'static str {
        "queue"
    }

    /// Binds a queue and makes the rule, in a table that goes again.
    fn attempt(&mut self) -> Result<(), String> {
        let around = Around {
            run: "attempt".to_owned(),
            peers: vec![(1, [192, 0, 2, 1].into())],
            control_port: 9,
            probe_port: 7,
        };
        let mut open = Open::new(&around, NUMBER + 1)?;
        open.rules(&[(0, around.peers[0].1)])
    }

    fn order(&mut self, around: &Around, order: Value) -> Result<Value, String> {
        match serde_json::from_value(order).map_err(|error| error.to_string())? {
            Order::Slow { fault, from, latency_us, jitter_us } => {
                let by = Slower {
                    latency_ns: latency_us.saturating_mul(1_000),
                    jitter_ns: jitter_us.saturating_mul(1_000),
                };
                let mut faults = self.faults.clone();
                faults.insert(fault, from.into_iter().map(|peer| (peer, by)).collect());
                self.follow(around, faults)?;
                Ok(Value::Null)
            }
            Order::Heal(fault) => {
                let mut faults = self.faults.clone();
                if faults.remove(&fault).is_some() {
                    self.follow(around, faults)?;
                }
                Ok(Value::Null)
            }
            Order::Report => Ok(self.report(around)),
        }
    }

    fn heal(&mut self) -> Result<(), String> {
        self.faults.clear();
        match &mut self.open {
            Some(open) => open.set(&[], BTreeMap::new()),
            None => Ok(()),
        }
    }
}

impl Queue {
    /// Rules and thread follow what all of these faults together are, and they are the faults from now on. An
    /// order that can't be carried out changes nothing.
    fn follow(&mut self, around: &Around, faults: Faults) -> Result<(), String> {
        let slower = together(around, &faults)?;
        let open = match &mut self.open {
            Some(open) => open,
            None => self.open.insert(Open::new(around, NUMBER)?),
        };
        let named: Vec<(usize, IpAddr)> =
            slower.keys().map(|place| (*place, around.peers[*place].1)).collect();
        open.set(&named, slower)?;
        self.faults = faults;
        Ok(())
    }

    /// By peer: how long its packets were held, and by how much they are held now.
    fn report(&self, around: &Around) -> Value {
        let (mut delays, slower) = self.open.as_ref().map(Open::take_delays).unwrap_or_default();
        let of_peer = |(place, (peer, _)): (usize, &(Peer, IpAddr))| {
            let Slower { latency_ns, jitter_ns } = slower.get(&place).copied().unwrap_or_default();
            let took_us = delays.remove(&place).unwrap_or_default();
            let [latency_us, jitter_us] = [latency_ns, jitter_ns].map(|ns| ns / 1_000);
            json!({"from": peer, "took_us": took_us, "latency_us": latency_us, "jitter_us": jitter_us})
        };
        around.peers.iter().enumerate().map(of_peer).collect()
    }
}

/// Faults by name: by how much they make packets of which peers slower.
type Faults = BTreeMap<String, BTreeMap<Peer, Slower>>;

/// By how much packets are slower under all of these, by their senders' places.
fn together(around: &Around, faults: &Faults) -> Result<BTreeMap<usize, Slower>, String> {
    let mut slower: BTreeMap<usize, Slower> = BTreeMap::new();
    for (peer, by) in faults.values().flatten() {
        let Some(place) = around.peers.iter().position(|(known, _)| known == peer) else {
            return Err(format!("hello did not name peer {peer}"));
        };
        let all = slower.entry(place).or_default();
        all.latency_ns = all.latency_ns.saturating_add(by.latency_ns);
        all.jitter_ns = all.jitter_ns.saturating_add(by.jitter_ns);
    }
    Ok(slower)
}

/// A queue with its table and its thread.
struct Open {
    number: u16,
    netlink: Netlink,
    table: String,
    control_port: u16,
    probe_port: u16,
    /// Whether the kernel has an expression of its own for it.
    native: bool,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the device share.
struct Shared {
    state: Mutex<State>,
    wake: Wake,
}

#[derive(Default)]
struct State {
    slower: BTreeMap<usize, Slower>,
    delays: BTreeMap<usize, VecDeque<u64>>,
    /// All that waits is to be let in.
    release: bool,
    over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    /// The thread has the queue's socket: when it is gone, the number is free.
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.wake.nudge();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Open {
    /// First the queue, then a chain without rules, then who listens: rules come later, so nothing ever waits
    /// for nobody. What fails leaves neither a thread nor a queue.
    fn new(around: &Around, number: u16) -> Result<Self, String> {
        let said = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
        let socket = bind(number).map_err(|error| {
            format!("bind a queue of packets: {error}; load nfnetlink_queue on the engine's host")
        })?;
        let wake = Wake::new().map_err(|error| said("make an event", &error))?;
        let shared = Arc::new(Shared { state: Mutex::default(), wake });
        let mut netlink = Netlink::open().map_err(|error| error.to_string())?;
        let table = kernel_name("queue-", &around.run);
        let mut batch = Batch::new(&table);
        batch.replace_table(true);
        batch.chain(CHAIN, Some(PRIORITY));
        netlink.commit(batch).map_err(|error| error.to_string())?;
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("queue".to_owned())
            .stack_size(STACK * 4)
            .spawn(move || hold(&socket, number, &own))
            .map_err(|error| said("start a thread", &error))?;
        let Around { control_port, probe_port, .. } = *around;
        let thread = Some(thread);
        Ok(Self { number, netlink, table, control_port, probe_port, native: true, shared, thread })
    }

    /// Has the rules name these and the thread be as slow as that. When rules go, nothing is left waiting.
    fn set(&mut self, named: &[(usize, IpAddr)], slower: BTreeMap<usize, Slower>) -> Result<(), String> {
        let before = std::mem::replace(&mut self.shared.lock().slower, slower);
        if let Err(why) = self.rules(named) {
            self.shared.lock().slower = before;
            return Err(why);
        }
        self.shared.lock().release = named.is_empty();
        self.shared.wake.nudge();
        Ok(())
    }

    fn rules(&mut self, named: &[(usize, IpAddr)]) -> Result<(), String> {
        let (number, native) = (self.number, self.native);
        let mut batch = Batch::new(&self.table);
        batch.flush(CHAIN);
        batch.rule(RULE, CHAIN, |rule| {
            rule.datagrams_for(self.control_port);
            rule.verdict(Verdict::Accept);
        });
        let probe_port = self.probe_port;
        for (place, address) in named {
            for probes in [Some(probe_port), None] {
                batch.rule(if native { QUEUEING_RULE } else { TARGET_RULE }, CHAIN, |rule| {
                    rule.from(*address);
                    if let Some(port) = probes {
                        rule.datagrams_for(port);
                    }
                    mark(rule, marked(*place, probes.is_some()));
                    if native { queue(rule, number) } else { target(rule, number) }
                });
            }
        }
        match self.netlink.commit(batch) {
            // An older form of the same, which some kernels have alone.
            Err(NetlinkError::Lacks { .. }) if native => {
                self.native = false;
                self.rules(named)
            }
            other => other.map_err(|error| error.to_string()),
        }
    }

    /// How long packets were held since the last time, and by how much they are held now.
    fn take_delays(&self) -> (BTreeMap<usize, VecDeque<u64>>, BTreeMap<usize, Slower>) {
        let mut state = self.shared.lock();
        (std::mem::take(&mut state.delays), state.slower.clone())
    }
}

/// In the mark of probes alone.
const PROBE: u32 = 1 << 31;

/// The mark of a packet: its sender's place, counted from 1, and whether it is a probe.
fn marked(place: usize, is_probe: bool) -> u32 {
    let place = u32::try_from(place).unwrap_or(PROBE).saturating_add(1) & !PROBE;
    if is_probe { place | PROBE } else { place }
}

/// What a mark says.
fn unmarked(mark: u32) -> (usize, bool) {
    let place = usize::try_from(mark & !PROBE).unwrap_or(0).saturating_sub(1);
    (place, mark & PROBE != 0)
}

fn mark(rule: &mut Rule<'_>, mark: u32) {
    rule.expression("immediate", |data| {
        data.number(1, 1);
        data.nest(2, |value| value.value(1, &mark.to_ne_bytes()));
    });
    rule.expression("meta", |data| {
        data.number(2, 3);
        data.number(3, 1);
    });
}

/// `queue num N bypass`.
fn queue(rule: &mut Rule<'_>, number: u16) {
    rule.expression("queue", |data| {
        data.value(1, &number.to_be_bytes());
        data.value(2, &1_u16.to_be_bytes());
        data.value(3, &1_u16.to_be_bytes());
    });
}

/// The same by the target of iptables, revision 3.
fn target(rule: &mut Rule<'_>, number: u16) {
    rule.expression("target", |data| {
        data.text(1, "NFQUEUE");
        data.number(2, 3);
        let info = [number, 1, 1, 0].map(u16::to_ne_bytes).concat();
        data.value(3, &info);
    });
}

/// Binds the queue.
fn bind(number: u16) -> Result<OwnedFd, rustix::io::Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(NETFILTER))?;
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES);
    let mut writer = Writer::default();
    let ask = flag::REQUEST | flag::ACK;
    // The family is IPv4's; a queue takes packets of both.
    writer.message(CONFIG, ask, 1, (0, number), |body| body.value(1, &[1, 0, 0, 2]));
    writer.message(CONFIG, ask, 2, (0, number), |body| {
        let meta = [0_u32.to_be_bytes().as_slice(), &[1]].concat();
        body.value(2, &meta);
        body.number(3, MOST_WAITING);
        body.number(4, 5);
        body.number(5, 5);
    });
    send(&socket, writer.bytes(), SendFlags::empty())?;
    let mut answered = 0;
    let mut buffer = vec![0; 8192];
    while answered < 2 {
        let limit = Timespec { tv_sec: 2, tv_nsec: 0 };
        if poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&limit))? == 0 {
            return Err(rustix::io::Errno::TIMEDOUT);
        }
        let (_, length) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        for message in Messages(&buffer[..length]).flatten().filter(|message| message.kind == kind::ERROR) {
            answered += 1;
            if let Ok(Some(number)) = message.error() {
                return Err(rustix::io::Errno::from_raw_os_error(number));
            }
        }
    }
    Ok(socket)
}

/// A packet that waits.
struct Waiting {
    id: u32,
    place: usize,
    is_probe: bool,
    came_ns: u64,
    due_ns: u64,
}

/// Lets each packet in when its time has come, until the device is gone.
fn hold(socket: &OwnedFd, number: u16, shared: &Shared) {
    let mut waiting: BTreeMap<usize, VecDeque<Waiting>> = BTreeMap::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut dice = now_ns() | 1;
    loop {
        let next = waiting.values().filter_map(VecDeque::front).map(|packet| packet.due_ns).min();
        let limit_ns = next.map_or(1_000_000_000, |due| due.saturating_sub(now_ns()).min(1_000_000_000));
        let limit = Timespec::try_from(Duration::from_nanos(limit_ns)).unwrap_or_default();
        let mut wanted = [PollFd::new(socket, PollFlags::IN), PollFd::new(&shared.wake, PollFlags::IN)];
        let _ = poll(&mut wanted, Some(&limit));
        shared.wake.clear();
        // One that is full was too busy for a while: what it lost was let in by the kernel.
        while let Ok((_, length)) = recv(socket, buffer.as_mut_slice(), RecvFlags::empty()) {
            let state = shared.lock();
            for (id, (place, is_probe)) in packets(&buffer[..length]) {
                let slower = state.slower.get(&place).copied().unwrap_or_default();
                let (came_ns, queue) = (now_ns(), waiting.entry(place).or_default());
                let more_ns = slower.latency_ns.saturating_add(below(&mut dice, slower.jitter_ns));
                let due = came_ns.saturating_add(more_ns);
                // What came first is let in first, as TCP wants it.
                let due_ns = queue.back().map_or(due, |last| last.due_ns.max(due));
                queue.push_back(Waiting { id, place, is_probe, came_ns, due_ns });
            }
        }
        let (release, over) = {
            let mut state = shared.lock();
            (std::mem::take(&mut state.release), state.over)
        };
        let due: Vec<Waiting> = waiting
            .values_mut()
            .flat_map(|queue| {
                let now = now_ns();
                let ripe = queue.partition_point(|packet| release || over || packet.due_ns <= now);
                queue.drain(..ripe).collect::<Vec<_>>()
            })
            .collect();
        let_in(socket, number, &due);
        let mut state = shared.lock();
        for packet in due.iter().filter(|packet| !release && !packet.is_probe) {
            let delays = state.delays.entry(packet.place).or_default();
            if delays.len() == MOST_DELAYS {
                delays.pop_front();
            }
            delays.push_back(now_ns().saturating_sub(packet.came_ns) / 1_000);
        }
        if over {
            return;
        }
    }
}

/// A number below another one, or 0.
fn below(dice: &mut u64, bound: u64) -> u64 {
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    dice.checked_rem(bound).unwrap_or(0)
}

/// The packets of a datagram: their numbers, the places of their senders, and whether they are probes.
fn packets(datagram: &[u8]) -> Vec<(u32, (usize, bool))> {
    let of = |bytes: &[u8]| bytes.first_chunk().map(|number| u32::from_be_bytes(*number));
    let mut found = Vec::new();
    for message in Messages(datagram).flatten().filter(|message| message.kind == PACKET) {
        let (mut id, mut mark) = (None, 0);
        for (kind, value) in message.attributes().into_iter().flatten().flatten() {
            match kind {
                1 => id = of(value),
                3 => mark = of(value).unwrap_or(0),
                _ => {}
            }
        }
        found.extend(id.map(|id| (id, unmarked(mark))));
    }
    found
}

/// Accepts packets, many in one message.
fn let_in(socket: &OwnedFd, number: u16, packets: &[Waiting]) {
    const ACCEPT: u32 = 1;
    for some in packets.chunks(512) {
        let mut writer = Writer::default();
        for packet in some {
            writer.message(VERDICT, flag::REQUEST, 0, (0, number), |body| {
                body.value(2, &[ACCEPT.to_be_bytes(), packet.id.to_be_bytes()].concat());
            });
        }
        let _ = send(socket, writer.bytes(), SendFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_the_harness_writes_it() {
        let slow = json!({"slow": {"fault": "F1", "from": [2, 3], "latency_us": 7, "jitter_us": 1}});
        let read = serde_json::from_value(slow);
        assert!(matches!(read, Ok(Order::Slow { from, latency_us: 7, .. }) if from == [2, 3]));
        assert!(matches!(serde_json::from_value(json!("report")), Ok(Order::Report)));
        assert!(matches!(serde_json::from_value(json!({"heal": "F1"})), Ok(Order::Heal(_))));
    }

    #[test]
    fn packets_are_found_with_their_senders_places_and_anything_else_is_none() {
        let mut writer = Writer::default();
        writer.message(PACKET, 0, 0, (2, NUMBER), |body| {
            body.value(1, &[0, 0, 0, 9, 8, 0, 1, 0]);
            body.number(3, 2);
        });
        assert_eq!(packets(writer.bytes()), [(9, (1, false))]);
        for length in 0..writer.bytes().len() {
            assert!(packets(&writer.bytes()[..length]).is_empty());
        }
    }

    #[test]
    fn a_probe_is_marked_as_one_beside_its_senders_place() {
        for (place, is_probe) in [(0, false), (0, true), (30, false), (30, true)] {
            assert_eq!(unmarked(marked(place, is_probe)), (place, is_probe));
        }
        assert_eq!(unmarked(0), (0, false), "nothing marked it");
    }

    fn around() -> Around {
        let peers = vec![(2, [192, 0, 2, 2].into()), (3, [192, 0, 2, 3].into())];
        Around { run: "a run".to_owned(), peers, control_port: 9, probe_port: 7 }
    }

    #[test]
    fn what_is_healed_where_nothing_is_slow_opens_nothing() {
        let mut queue = Queue::default();
        assert_eq!(queue.order(&around(), json!({"heal": "F1"})), Ok(Value::Null));
        assert!(queue.open.is_none());
    }

    #[test]
    fn an_order_that_is_refused_changes_nothing_for_those_that_follow() {
        let mut queue = Queue::default();
        let slow = json!({"slow": {"fault": "F1", "from": [2, 9], "latency_us": 7}});
        let why = queue.order(&around(), slow).expect_err("there is no 9");
        assert!(why.contains("peer 9"), "{why}");
        assert_eq!(queue.order(&around(), json!({"heal": "F1"})), Ok(Value::Null));
        assert!(queue.faults.is_empty() && queue.open.is_none());
    }

    #[test]
    fn delays_of_faults_add_up_and_never_beyond_what_a_number_holds() {
        let most = Slower { latency_ns: u64::MAX, jitter_ns: u64::MAX };
        let by = |peer, by| BTreeMap::from([(peer, by)]);
        let faults = [("F1".to_owned(), by(2, most)), ("F2".to_owned(), by(2, most))].into();
        let all = together(&around(), &faults).expect("all are known");
        assert_eq!(all.keys().collect::<Vec<_>>(), [&0]);
        assert_eq!((all[&0].latency_ns, all[&0].jitter_ns), (u64::MAX, u64::MAX));
    }

    #[test]
    fn jitter_is_below_its_bound_and_differs() {
        let mut dice = 88_172_645_463_325_252;
        let drawn: Vec<u64> = (0..100).map(|_| below(&mut dice, 1_000)).collect();
        assert!(drawn.iter().all(|one| *one < 1_000) && drawn.windows(2).any(|two| two[0] != two[1]));
        assert_eq!(below(&mut dice, 0), 0);
    }
}
