//! Clients' connections: where they connect, how frames travel, how sessions go on elsewhere.

use bytes::Bytes;
use node_core::io::{ClientId, Input};
use node_wire::client::{ConnectRequest, Request};
use node_wire::ids::Zxid;
use node_wire::jute::Reader;
use zookeeper_mapping::Answer;

use crate::client::{self, ClientConn, Flow, Session, Wake};
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::script::Transition;
use crate::world::clockwork::stage::Stage;
use crate::world::{Clockwork, Ensemble, Event, Oracle, Population};
use harness_world::dice::{Chance, HALF};
use harness_world::pipe::Pipe;

/// Between a lost connection and the next attempt, at most.
const RECONNECT_US: u64 = 40_000;

/// What a restless client asks for as its session's time-out at most.
const LONGEST_ASKED_MS: u64 = 30_000;

/// How often a restless client that loses its connection comes back late.
const LATE: Chance = Chance(2_500);

/// How often a watcher that loses its connection begins anew, where it is content to read.
const FORGETFUL: Chance = Chance(3_000);

impl Population {
    pub(super) fn connect_client(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
    ) {
        let host = self.clients[index].member;
        let patience_us = clock.drawn.op_timeout_us;
        self.set_timer(clock, index, patience_us, Wake::GiveUp);
        if ensemble.hosts[host].process.is_none() {
            self.on_lost(clock, ensemble, oracle, index, "refused");
            return;
        }
        clock.write_down(|| {
            let anew = self.clients[index].session.is_none();
            Transition::Connects { client: index, host, anew }
        });
        let conn = self.open_client_conn(ensemble, oracle, index, host);
        let timeout = i32::try_from(clock.drawn.session_timeout_ms).expect("a drawn time-out is small");
        let client = &mut self.clients[index];
        client.conn = Some(conn);
        client.ready = false;
        client.prober.moves();
        client.asked_at = clock.now;
        let asks = (clock.drawn.rare.restless && client.session.is_some() && client.dice.chance(HALF))
            .then(|| i32::try_from(client.dice.scale(100, LONGEST_ASKED_MS)).unwrap_or(timeout));
        let frame = client.connect(timeout, asks, clock.drawn.read_only && client.watcher.only);
        self.send_to_member(clock, conn, Flow::Frame(frame));
    }

    /// A connection of a client to a member, with both ends open and nothing said.
    pub(in crate::world) fn open_client_conn(
        &mut self,
        ensemble: &Ensemble,
        oracle: &Oracle,
        client: usize,
        host: usize,
    ) -> usize {
        // Clients from outside a world have places of their own, and no session here.
        if let Some(client) = self.clients.get_mut(client) {
            let session = client.session.as_ref();
            client.known = session.is_some_and(|session| oracle.invariants.session_began(session.id));
        }
        self.client_conns.push(ClientConn {
            client,
            host,
            life: ensemble.hosts[host].life,
            member_open: true,
            client_open: true,
            greeted: false,
            to_member: Pipe::default(),
            to_client: Pipe::default(),
        });
        self.client_conns.len() - 1
    }

    pub(in crate::world) fn send_to_member(&mut self, clock: &mut Clockwork, conn: usize, flow: Flow) {
        let at = clock.now + clock.client_delay();
        let at = self.client_conns[conn].to_member.send(at, flow);
        clock.queue.plan(at, Event::ToMember { conn });
    }

    fn send_to_client(&mut self, clock: &mut Clockwork, conn: usize, flow: Flow) {
        let at = clock.now + clock.client_delay();
        let at = self.client_conns[conn].to_client.send(at, flow);
        clock.queue.plan(at, Event::ToClient { conn });
    }

    /// Sends what an operation consists of, and waits for its answer so long and no longer.
    pub(super) fn ask(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        index: usize,
        frames: Vec<Bytes>,
    ) {
        let conn = self.clients[index].conn.expect("only a connected client asks");
        for frame in frames {
            self.send_to_member(clock, conn, Flow::Frame(frame));
        }
        oracle.prove_sent(clock, self, index);
        let patience_us = clock.drawn.op_timeout_us;
        self.set_timer(clock, index, patience_us, Wake::GiveUp);
    }

    pub(in crate::world) fn ping(&mut self, clock: &mut Clockwork, index: usize, conn: usize) {
        let client = &self.clients[index];
        let Some(session) = &client.session else { return };
        if client.conn != Some(conn) || !client.ready {
            return;
        }
        let every = u64::try_from(session.timeout_ms).unwrap_or(0) * 1000 / 3;
        clock.write_down(|| Transition::Pings { client: index });
        self.send_to_member(clock, conn, Flow::Frame(client::ping()));
        clock.plan(every.max(1000), Event::Client { client: index, plan: 0, wake: Wake::Ping { conn } });
    }

    /// What a client sent, as the member is told of it.
    pub(in crate::world) fn input_from_client(&mut self, conn: usize, flow: Flow) -> Input {
        let client = ClientId(u64::try_from(conn).expect("connections are few"));
        match flow {
            Flow::Fin => Input::ClientLost { client },
            Flow::Frame(frame) if !std::mem::replace(&mut self.client_conns[conn].greeted, true) => {
                Input::ClientConnect {
                    client,
                    request: ConnectRequest::decode(&mut Reader::new(client::unframed(frame)))
                        .expect("a client of ours asks well"),
                    who: Vec::new(),
                }
            }
            Flow::Frame(frame) => Input::ClientRequest {
                client,
                request: Request::decode(client::unframed(frame)).expect("a client of ours asks well"),
            },
        }
    }

    /// A member writes to a client.
    pub(in crate::world) fn reply(&mut self, clock: &mut Clockwork, client: ClientId, frame: Bytes) {
        let conn = usize::try_from(client.0).expect("connections are few");
        if self.client_conns[conn].member_open {
            self.send_to_client(clock, conn, Flow::Frame(frame));
        }
    }

    /// A member closes a client's connection.
    pub(in crate::world) fn close_client(&mut self, clock: &mut Clockwork, client: ClientId) {
        let conn = usize::try_from(client.0).expect("connections are few");
        if std::mem::replace(&mut self.client_conns[conn].member_open, false) {
            self.send_to_client(clock, conn, Flow::Fin);
        }
    }

    /// A client closes its connection.
    pub(super) fn hang_up(&mut self, clock: &mut Clockwork, index: usize) {
        let Some(conn) = self.clients[index].conn.take() else { return };
        self.clients[index].ready = false;
        self.close_conn(clock, conn);
    }

    /// A connection is closed by its client.
    pub(super) fn close_conn(&mut self, clock: &mut Clockwork, conn: usize) {
        self.client_conns[conn].client_open = false;
        self.client_conns[conn].to_client.lose();
        self.send_to_member(clock, conn, Flow::Fin);
    }

    /// A client's connection breaks under it.
    pub(in crate::world) fn cut_client(&mut self, clock: &mut Clockwork, index: usize) {
        if let Some(conn) = self.clients[index].conn {
            self.cut_conn(clock, conn);
        }
    }

    /// A connection breaks.
    pub(super) fn cut_conn(&mut self, clock: &mut Clockwork, conn: usize) {
        self.client_conns[conn].to_client.lose();
        self.client_conns[conn].to_member.lose();
        self.send_to_client(clock, conn, Flow::Fin);
        self.send_to_member(clock, conn, Flow::Fin);
    }

    /// A process is gone: its clients learn of it, unless its machine went with it; then they wait in vain.
    pub(in crate::world) fn cut_clients_of(&mut self, clock: &mut Clockwork, host: HostIndex, abrupt: bool) {
        for conn in 0..self.client_conns.len() {
            let this = &mut self.client_conns[conn];
            if this.host != host || !std::mem::replace(&mut this.member_open, false) {
                continue;
            }
            if abrupt {
                this.to_client.lose();
            } else {
                self.send_to_client(clock, conn, Flow::Fin);
            }
        }
    }

    /// A client takes what arrived.
    pub(in crate::world) fn client_receives(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        conn: usize,
        flow: Flow,
    ) {
        let client = self.client_conns[conn].client;
        match flow {
            Flow::Fin => {
                clock.write_down(|| Transition::Cut { client });
                self.client_conns[conn].client_open = false;
                self.clients[client].conn = None;
                self.clients[client].ready = false;
                self.on_lost(clock, ensemble, oracle, client, "connection lost");
            }
            Flow::Frame(frame) => {
                clock.write_down(|| Transition::Listens { client });
                if self.clients[client].ready {
                    self.on_reply(clock, ensemble, oracle, client, frame);
                } else {
                    self.on_connected(clock, ensemble, oracle, client, conn, frame);
                }
            }
        }
    }

    /// A client is told that its session is over.
    fn is_expired(&mut self, clock: &mut Clockwork, ensemble: &Ensemble, oracle: &mut Oracle, index: usize) {
        let client = &self.clients[index];
        if client.session.is_some() {
            clock.counters.expired += 1;
            // A goodbye whose answer was lost may have ended it: that is no expiry before its time.
            let said_goodbye = self.record.closing;
            // One that lives on a member alone is over at any other, also when it becomes
            // the ensemble's behind the answer.
            let told = if said_goodbye || !client.known { Answer::Abandoned } else { Answer::Expired };
            self.note_leaving(clock, index, &told);
        } else {
            oracle.prove_nothing(index);
        }
        self.clients[index].session = None;
        self.clients[index].watcher.watching.forget();
        self.hang_up(clock, index);
        self.on_lost(clock, ensemble, oracle, index, "session expired");
    }

    fn on_connected(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        conn: usize,
        frame: Bytes,
    ) {
        let Some(response) = client::connect_response(frame) else {
            oracle.report(
                clock,
                Rule::Answer,
                format!("client {index} was answered before it was told of its session"),
            );
            return;
        };
        if self.forgery_is_answered(clock, ensemble, oracle, index, &response) {
            return;
        }
        if response.timeout_ms <= 0 {
            oracle.check_told_expired(clock, self, index);
            self.is_expired(clock, ensemble, oracle, index);
            return;
        }
        if self.clients[index].session.is_none() {
            oracle.prove_nothing(index);
        }
        let client = &mut self.clients[index];
        match &mut client.session {
            Some(session) if session.id != response.session => {
                let sentence = format!("session {} was resumed as {}", session.id, response.session);
                oracle.report(clock, Rule::Answer, sentence);
                return;
            }
            Some(session) => {
                session.timeout_ms = response.timeout_ms;
                clock.counters.resumed += 1;
            }
            None => {
                client.session = Some(Session {
                    id: response.session,
                    password: response.password,
                    timeout_ms: response.timeout_ms,
                    seen: client.remembered,
                });
                clock.counters.sessions += 1;
                self.note_opening(clock, index, response.timeout_ms);
            }
        }
        self.clients[index].ready = true;
        clock.plan(1000, Event::Client { client: index, plan: 0, wake: Wake::Ping { conn } });
        self.clients[index].watcher.watching.moves();
        if !self.resume_watches(clock, oracle, index) {
            self.think(clock, index);
        }
    }

    /// The connection is gone, or there was none: what was open is lost, and the next one is tried elsewhere.
    pub(super) fn on_lost(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        reason: &str,
    ) {
        self.clients[index].awaited.clear();
        self.clients[index].watcher.open.clear();
        self.give_up_probes(index);
        self.complete(clock, oracle, index, &Answer::Lost { reason: reason.to_owned() });
        let members = ensemble.hosts.len();
        let lets_go = clock.drawn.read_only && !clock.is_scripted();
        let client = &mut self.clients[index];
        if lets_go && client.watcher.only && client.dice.chance(FORGETFUL) {
            // Only one without a session is served by a member without a leader. It may remember what it saw.
            let seen = client.session.take().map_or(Zxid::ZERO, |session| session.seen);
            client.remembered =
                if client.dice.chance(HALF) { seen.max(client.remembered) } else { Zxid::ZERO };
            client.watcher.watching.forget();
        }
        client.member = client.dice.index(members);
        let delay = client.dice.between(1000, RECONNECT_US);
        let delay = self.comes_late(clock, index).unwrap_or(delay);
        self.set_timer(clock, index, delay, Wake::Connect);
    }

    /// When a client comes back that lets its session wait until it is nearly over; not after chaos.
    fn comes_late(&mut self, clock: &mut Clockwork, index: usize) -> Option<u64> {
        let client = &mut self.clients[index];
        let timeout_ms = client.session.as_ref().filter(|_| clock.drawn.rare.restless)?.timeout_ms;
        let timeout_us = u64::try_from(timeout_ms).ok()? * 1000;
        if clock.stage != Stage::Chaos || !client.dice.chance(LATE) {
            return None;
        }
        let delay = client.dice.between(timeout_us * 3 / 4, timeout_us);
        let healed_us = clock.drawn.warmup_us + clock.drawn.chaos_us;
        let in_time = clock.now.0 + delay < healed_us;
        clock.counters.latecomers += u64::from(in_time);
        in_time.then_some(delay)
    }
}
