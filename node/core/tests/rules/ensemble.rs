//! Members with their wires, disks and clients, and one clock that only a script moves.
//!
//! A member that is a *puppet* has no core: a script says its packets and votes, and sees what it is sent. So
//! a rule about what a member does with one packet needs no second member that can be brought to send it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use node_core::io::{ClientId, ConnId, Effect, Input, Now, Recovered};
use node_core::{ClientRules, Config, Machine, Reconfiguration, TICK};
use node_wire::election::Notification;
use node_wire::ids::ServerId;
use node_wire::quorum::{PacketType, QuorumPacket};

use crate::clients::{Client, ConnectOptions};
use crate::disk::{self, Disk};
use crate::history::dotted;
use crate::kinds;
use crate::show;
use crate::wires::{Channel, Item, Wires};

/// Deliveries of one `settle` before the ensemble counts as one that never gets quiet.
const MAX_DELIVERIES: usize = 10_000;

struct Host {
    core: Option<Box<dyn Machine>>,
    /// The kind of member, where a suite has several.
    kind: Option<String>,
    disk: Disk,
    puppet: bool,
    /// Gets no step: neither time nor messages nor its disk's word.
    asleep: bool,
}

impl Host {
    fn runs(&self) -> bool {
        self.core.is_some() || self.puppet
    }
}

/// What a script drives.
#[derive(Default)]
pub(crate) struct Ensemble {
    hosts: BTreeMap<u64, Host>,
    pub(crate) wires: Wires,
    pub(crate) clients: BTreeMap<String, Client>,
    mono: Duration,
    snap_count: Option<u64>,
    pub(crate) rules: ClientRules,
    voters: u64,
    /// Where the ensemble may change: those beyond this number are not in it at first.
    members_at_first: u64,
    pub(crate) show_pings: bool,
    next_client: u64,
    out: String,
}

impl Ensemble {
    pub(crate) fn take_output(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    fn line(&mut self, line: impl std::fmt::Display) {
        writeln!(self.out, "{line}").expect("writing to a string");
    }

    fn now(&self) -> Now {
        let wall_ms = i64::try_from(self.mono.as_millis()).expect("scripts are short");
        Now { mono: self.mono, wall_ms }
    }

    /// Begins anew, with so many voters, and behind them so many observers.
    pub(crate) fn create(&mut self, voters: u64, observers: u64, snap_count: Option<u64>) {
        *self = Self { snap_count, voters, ..Self::default() };
        for id in 1..=voters + observers {
            let disk = Disk::new(Recovered::default());
            let host = Host { core: None, kind: None, disk, puppet: false, asleep: false };
            self.hosts.insert(id, host);
        }
    }

    /// Lets the ensemble change, with so many beside it who may join. They are started with what they know:
    /// those who are in, and themselves.
    pub(crate) fn may_change(&mut self, newcomers: u64) {
        self.rules.reconfig = Reconfiguration::On { standalone: false };
        self.members_at_first = u64::try_from(self.hosts.len()).expect("few");
        for id in self.members_at_first + 1..=self.members_at_first + newcomers {
            let disk = Disk::new(Recovered::default());
            self.hosts.insert(id, Host { core: None, kind: None, disk, puppet: false, asleep: false });
        }
    }

    /// The membership that a member is started with.
    fn membership(&self, id: u64) -> String {
        let line = |id: u64| {
            let role =
                if id > self.voters && id <= self.members_at_first { "observer" } else { "participant" };
            format!("server.{id}=host{id}:2888:3888:{role};2181\n")
        };
        let lines: String =
            self.hosts.keys().filter(|known| **known <= self.members_at_first).copied().map(line).collect();
        let own = if id > self.members_at_first { line(id) } else { String::new() };
        format!("{lines}{own}version=0")
    }

    fn host(&mut self, id: u64) -> Result<&mut Host, String> {
        self.hosts.get_mut(&id).ok_or_else(|| format!("no member {id} in the ensemble"))
    }

    pub(crate) fn prepare(&mut self, id: u64, found: Recovered, kind: Option<String>) -> Result<(), String> {
        let host = self.host(id)?;
        host.disk = Disk::new(found);
        host.kind = kind;
        Ok(())
    }

    pub(crate) fn manual_disk(&mut self, id: u64, manual: bool) -> Result<(), String> {
        self.host(id)?.disk.manual = manual;
        self.flush(id);
        Ok(())
    }

    pub(crate) fn members(&self) -> Vec<u64> {
        self.hosts.keys().copied().collect()
    }

    fn config(&self, id: u64) -> Config {
        Config {
            observers: self.hosts.keys().copied().filter(|id| *id > self.voters).map(ServerId).collect(),
            snap_count: self.snap_count.unwrap_or(100_000).into(),
            clients: match self.rules.reconfig {
                Reconfiguration::On { .. } => {
                    ClientRules { membership: self.membership(id).into(), ..self.rules.clone() }
                }
                Reconfiguration::Off | Reconfiguration::Alone => self.rules.clone(),
            },
            ..Config::usual(ServerId(id), (1..=self.voters).map(ServerId).collect())
        }
    }

    /// Starts members and connects their election ports with everybody who runs.
    pub(crate) fn start(&mut self, ids: &[u64], puppet: bool) -> Result<(), String> {
        for &id in ids {
            let (config, now) = (self.config(id), self.now());
            let host = self.host(id)?;
            if puppet {
                host.puppet = true;
                continue;
            }
            let found = host.disk.crash();
            host.core = Some(kinds::start(host.kind.as_deref(), config, found, now)?);
        }
        for &id in ids {
            let running: Vec<u64> =
                self.hosts.iter().filter(|(_, host)| host.runs()).map(|(id, _)| *id).collect();
            for other in running {
                // Of two that start together each pair is connected once.
                if other != id && !(ids.contains(&other) && other < id) && !self.wires.is_cut(id, other) {
                    self.connect_election(id, other);
                }
            }
            if self.hosts[&id].core.is_some() && ids.len() == 1 {
                self.step(id, Input::Tick);
            }
        }
        Ok(())
    }

    fn connect_election(&mut self, a: u64, b: u64) {
        for (at, peer) in [(a, b), (b, a)] {
            self.wires.keep_last_vote(at, peer);
            self.step(at, Input::ElectionConnected { peer: ServerId(peer) });
        }
    }

    /// The process is gone, and with it what its disk had only queued.
    pub(crate) fn crash(&mut self, id: u64) -> Result<(), String> {
        let host = self.host(id)?;
        host.core = None;
        host.puppet = false;
        host.asleep = false;
        host.disk.crash();
        for client in self.clients.values_mut().filter(|client| client.member == id) {
            client.open = false;
        }
        for other in self.members() {
            if other != id {
                self.break_wires(id, other);
            }
        }
        self.wires.forget_votes(id);
        Ok(())
    }

    /// Both ends are told that their connections are over; what was under way is lost.
    fn break_wires(&mut self, a: u64, b: u64) {
        for conn in self.wires.between(a, b) {
            let owner = self.wires.ends[&conn].owner;
            self.wires.forget(conn);
            self.step(owner, Input::PeerLost { conn });
        }
        for (at, peer) in [(a, b), (b, a)] {
            self.wires.keep_last_vote(at, peer);
            self.step(at, Input::ElectionLost { peer: ServerId(peer) });
        }
    }

    pub(crate) fn cut(&mut self, a: u64, b: u64) {
        if self.wires.set_cut(a, b) {
            self.break_wires(a, b);
        }
    }

    pub(crate) fn heal(&mut self) {
        for (a, b) in self.wires.heal() {
            if self.hosts[&a].runs() && self.hosts[&b].runs() {
                self.connect_election(a, b);
            }
        }
    }

    /// Breaks the quorum connections between two members; they can dial again at once.
    pub(crate) fn reset(&mut self, a: u64, b: u64) {
        for conn in self.wires.between(a, b) {
            let owner = self.wires.ends[&conn].owner;
            self.wires.forget(conn);
            self.step(owner, Input::PeerLost { conn });
        }
    }

    pub(crate) fn sleep(&mut self, id: u64, asleep: bool) -> Result<(), String> {
        self.host(id)?.asleep = asleep;
        if !asleep {
            self.step(id, Input::Tick);
        }
        Ok(())
    }

    /// Time passes for everybody who is awake. Nothing is delivered.
    pub(crate) fn tick(&mut self, ms: u64) {
        let end = self.mono + Duration::from_millis(ms);
        while self.mono < end {
            self.mono += TICK.min(end - self.mono);
            for id in self.members() {
                self.step(id, Input::Tick);
            }
        }
    }

    /// Time passes and everything is delivered.
    pub(crate) fn pass(&mut self, ms: u64) -> Result<(), String> {
        for _ in 0..ms.div_ceil(10) {
            self.tick(10);
            self.settle()?;
        }
        Ok(())
    }

    /// Delivers, one thing from each queue in turn, until nothing is under way.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        let mut delivered = 0;
        loop {
            let ready = self.awake(self.wires.deliverable());
            if ready.is_empty() {
                return Ok(());
            }
            for channel in ready {
                delivered += 1;
                self.deliver_one(channel);
            }
            if delivered > MAX_DELIVERIES {
                return Err("the ensemble does not get quiet".to_owned());
            }
        }
    }

    fn awake(&self, channels: Vec<Channel>) -> Vec<Channel> {
        let awake = |channel: &Channel| !self.hosts[&self.wires.route(*channel).1].asleep;
        channels.into_iter().filter(awake).collect()
    }

    /// Delivers what is under way from one member to another now: all of it, or so many things.
    pub(crate) fn deliver(&mut self, from: u64, to: u64, count: Option<usize>) -> Result<(), String> {
        let mut left = count.unwrap_or(usize::MAX);
        let channels: BTreeSet<Channel> = self
            .awake(self.wires.deliverable())
            .into_iter()
            .filter(|channel| self.wires.route(*channel) == (from, to))
            .collect();
        if channels.is_empty() {
            return Err(format!("nothing is under way from {from} to {to}"));
        }
        // Only what is there now: what the delivery causes is for the next command.
        for channel in channels {
            let there = match channel {
                Channel::Votes { .. } => left,
                Channel::Conn(conn) => self.wires.ends[&conn].incoming.len().min(left),
            };
            for _ in 0..there {
                if !self.deliver_one(channel) {
                    break;
                }
                left -= 1;
            }
        }
        Ok(())
    }

    fn deliver_one(&mut self, channel: Channel) -> bool {
        match channel {
            Channel::Votes { from, to } => {
                let Some(notification) = self.wires.take_vote(from, to) else { return false };
                self.step(to, Input::Notification { from: ServerId(from), notification });
            }
            Channel::Conn(conn) => {
                let Some(end) = self.wires.ends.get_mut(&conn) else { return false };
                let owner = end.owner;
                let Some(item) = end.incoming.pop_front() else { return false };
                match item {
                    Item::Packet(packet) => self.step(owner, Input::Packet { conn, packet }),
                    Item::Image(image) => self.step(owner, Input::Image { conn, image }),
                    Item::End => {
                        self.wires.forget(conn);
                        self.step(owner, Input::PeerLost { conn });
                    }
                }
            }
        }
        true
    }

    /// Completes operations of a disk: all, or so many. The member is told once, of the last one.
    pub(crate) fn complete(&mut self, id: u64, count: Option<usize>) -> Result<(), String> {
        let mut last = None;
        for _ in 0..count.unwrap_or(usize::MAX) {
            let Some((ticket, line)) = self.host(id)?.disk.complete_one() else { break };
            self.line(format!("{id} disk has {line}"));
            last = Some(ticket);
        }
        let ticket = last.ok_or_else(|| format!("nothing is queued at the disk of {id}"))?;
        self.step(id, Input::Stored { ticket });
        Ok(())
    }

    fn flush(&mut self, id: u64) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let mut last = None;
        while !host.disk.manual
            && let Some((ticket, _)) = host.disk.complete_one()
        {
            last = Some(ticket);
        }
        if let Some(ticket) = last {
            self.step(id, Input::Stored { ticket });
        }
    }

    /// One step of a member, and everything that follows from it without a wire between.
    pub(crate) fn step(&mut self, id: u64, input: Input) {
        let mut inputs = VecDeque::from([(id, input)]);
        while let Some((id, input)) = inputs.pop_front() {
            let now = self.now();
            let Some(host) = self.hosts.get_mut(&id) else { continue };
            let Some(core) = host.core.as_mut().filter(|_| !host.asleep) else { continue };
            let mut effects = Vec::new();
            core.step(now, input, &mut effects);
            for effect in effects {
                if let Effect::Halt { reason } = effect {
                    self.line(format!("{id} halts: {reason}"));
                    let _ = self.crash(id);
                    break;
                }
                self.carry_out(id, effect, &mut inputs);
            }
            self.flush(id);
        }
    }

    fn carry_out(&mut self, id: u64, effect: Effect, inputs: &mut VecDeque<(u64, Input)>) {
        match effect {
            Effect::Store { ticket, op } => {
                let manual = self.hosts[&id].disk.manual;
                let word = if manual { "queue" } else { "disk" };
                self.line(format!("{id} {word} {}", disk::show(&op)));
                if let Some(host) = self.hosts.get_mut(&id) {
                    host.disk.push(ticket, op);
                }
            }
            Effect::TakeSnapshot(snapshot) => {
                self.line(format!("{id} snapshot at {}", dotted(snapshot.zxid())));
            }
            Effect::Notify { to, notification } => self.vote(id, to.0, notification),
            Effect::Dial { leader } => self.dial(id, leader.0, inputs),
            Effect::Send { conn, packet } => self.send(conn, packet),
            Effect::SendImage { conn, snapshot } => {
                let to = self.wires.ends[&conn].peer;
                self.line(format!("{id} -> {to} the tree at {}", dotted(snapshot.zxid())));
                self.wires.send(conn, Item::Image(snapshot.to_image()));
            }
            Effect::Close { conn } => {
                let to = self.wires.ends[&conn].peer;
                if !self.wires.ends[&conn].closed {
                    self.line(format!("{id} closes the connection to {to}"));
                }
                self.wires.close(conn);
            }
            Effect::Reply { client, frame } => {
                let (name, client) = self.client_of(client);
                let reply = client.reply(frame).unwrap_or_else(|error| format!("can't be read: {error}"));
                self.line(format!("{id} => {name} {reply}"));
            }
            Effect::CloseClient { client } => {
                let (name, client) = self.client_of(client);
                client.open = false;
                self.line(format!("{id} => {name} connection closed"));
            }
            Effect::Ensemble { active, joining } => {
                self.line(format!("{id} {}", show::ensemble(&active, &joining)))
            }
            Effect::Event(event) => self.line(format!("{id} {}", show::event(&event))),
            Effect::Halt { .. } => unreachable!("handled before"),
        }
    }

    fn client_of(&mut self, id: ClientId) -> (String, &mut Client) {
        let found = self.clients.iter_mut().find(|(_, client)| client.id == id);
        let (name, client) = found.expect("a member only speaks to clients it was given");
        (name.clone(), client)
    }

    fn dial(&mut self, id: u64, target: u64, inputs: &mut VecDeque<(u64, Input)>) {
        let leader = ServerId(target);
        if !self.hosts.get(&target).is_some_and(Host::runs) || self.wires.is_cut(id, target) {
            self.line(format!("{id} dials {target} in vain"));
            inputs.push_back((id, Input::DialFailed { leader }));
            return;
        }
        let (near, far) = self.wires.connect(id, target);
        self.line(format!("{id} dials {target}"));
        inputs.push_back((target, Input::Accepted { conn: far }));
        inputs.push_back((id, Input::Dialled { leader, conn: near }));
    }

    /// A puppet dials a member.
    pub(crate) fn puppet_dials(&mut self, puppet: u64, target: u64) {
        let (_, far) = self.wires.connect(puppet, target);
        self.step(target, Input::Accepted { conn: far });
    }

    pub(crate) fn vote(&mut self, from: u64, to: u64, notification: Notification) {
        let line = format!("{from} -> {to} {}", show::notification(&notification));
        self.line(line);
        if self.hosts.get(&to).is_some_and(|host| host.core.is_some()) {
            self.wires.vote(from, to, notification);
            if self.wires.is_cut(from, to) {
                self.wires.keep_last_vote(from, to);
            }
        }
    }

    pub(crate) fn send(&mut self, conn: ConnId, packet: QuorumPacket) {
        let (from, to) = (self.wires.ends[&conn].owner, self.wires.ends[&conn].peer);
        if packet.kind != PacketType::Ping || self.show_pings {
            let leading = self.hosts[&from].core.as_ref().map(|core| core.member().status().role);
            let from_leader = matches!(leading, Some(node_core::Role::Leading));
            self.line(format!("{from} -> {to} {}", show::packet(&packet, from_leader)));
        }
        self.wires.send(conn, Item::Packet(packet));
    }

    // Clients.

    /// A new connection of a client, with the session of `of` or a new one.
    pub(crate) fn connect(
        &mut self,
        name: &str,
        member: u64,
        of: Option<&str>,
        forged: bool,
        options: ConnectOptions,
    ) -> Result<(), String> {
        self.next_client += 1;
        let id = ClientId(self.next_client);
        let of = of.map(|of| self.clients.get(of).ok_or_else(|| format!("no client {of}"))).transpose()?;
        let mut client = Client::new(id, member, of);
        if forged {
            client.forge_password();
        }
        let request = client.connect_request(options);
        self.clients.insert(name.to_owned(), client);
        self.step(member, Input::ClientConnect { client: id, request, who: Vec::new() });
        Ok(())
    }

    pub(crate) fn client(&mut self, name: &str) -> Result<&mut Client, String> {
        self.clients.get_mut(name).ok_or_else(|| format!("no client {name}"))
    }

    // Looks.

    pub(crate) fn state(&mut self, id: u64) -> Result<(), String> {
        let host = self.host(id)?;
        let line = match &host.core {
            Some(core) => show::status(&core.member().status()),
            None if host.puppet => "a puppet".to_owned(),
            None => "down".to_owned(),
        };
        self.line(format!("{id} {line}"));
        Ok(())
    }

    pub(crate) fn durable(&mut self, id: u64) -> Result<(), String> {
        let line = self.host(id)?.disk.show();
        self.line(format!("{id} durable {line}"));
        Ok(())
    }

    /// The znodes that scripts made, and their data.
    pub(crate) fn tree(&mut self, id: u64) -> Result<(), String> {
        let core = self.host(id)?.core.as_ref().ok_or("it is down")?;
        let image = core.member().tree().to_image();
        let own = image.nodes.iter().filter(|node| node.path != "/" && !node.path.starts_with("/zookeeper"));
        let nodes: Vec<String> =
            own.map(|node| format!("{}={:?}", node.path, show::text(node.data.as_deref()))).collect();
        let sessions: Vec<String> = image.sessions.iter().map(|(session, _)| session.to_string()).collect();
        self.line(format!(
            "{id} tree at {} [{}] sessions [{}]",
            dotted(image.zxid),
            nodes.join(" "),
            sessions.join(" ")
        ));
        Ok(())
    }
}
