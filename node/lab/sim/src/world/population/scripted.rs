//! Clients that a script moves, and what is written down of clients.

use std::sync::Arc;

use checker::history::{EventKind, Function, Value};
use node_core::Role;
use node_core::io::{ClientId, Effect, Input};
use node_wire::quorum::PacketType;
use workloads::Op;
use workloads::op::Body;
use zookeeper_mapping::Answer;

use crate::client::{self, Flow, Job};
use crate::network::{EndId, HostIndex};
use crate::script::{ClientAction, Kind, Line, MAX_CLIENTS, Target, Transition};
use crate::world::clockwork::delays::ROUND_US;
use crate::world::clockwork::mover::Mover;
use crate::world::ensemble::membership::show_membership;
use crate::world::ensemble::statuses::roles;
use crate::world::scripted::describe::{self, zxid_of};
use crate::world::{Clockwork, Ensemble, Oracle, Population};

/// Elements that clients add meanwhile: none that a script names.
const LATE_ELEMENT: i64 = 1_000_000_000_000;

impl Population {
    /// An effect as a reader of the protocol wants to see it; nothing of what is said often and means little.
    pub(in crate::world) fn describe_effect(
        &self,
        ensemble: &Ensemble,
        host: HostIndex,
        effect: &Effect,
    ) -> String {
        let me = host + 1;
        let peer = |conn| {
            let end = EndId::of(conn).other();
            ensemble.conns[end.conn].ends[end.end].host + 1
        };
        match effect {
            Effect::Store { op, .. } => format!("s{me} {}", describe::store_op(op)),
            Effect::TakeSnapshot(snapshot) => format!("s{me} begins a snapshot at {}", snapshot.zxid()),
            Effect::Notify { .. } => String::new(),
            Effect::Dial { leader } => format!("s{me} dials s{}", leader.0),
            Effect::Send { packet, .. } if packet.kind == PacketType::Ping => String::new(),
            Effect::Send { conn, packet: sent } => {
                format!("s{me}>s{} {}", peer(*conn), describe::packet(sent))
            }
            Effect::SendImage { conn, snapshot } => {
                format!("s{me}>s{} IMAGE {}", peer(*conn), snapshot.zxid())
            }
            Effect::Close { conn } => format!("s{me} closes its connection to s{}", peer(*conn)),
            Effect::Reply { client, frame } => {
                let conn = usize::try_from(client.0).expect("connections are few");
                let client = self.client_conns[conn].client;
                let greeted = self.clients[client].conn == Some(conn) && self.clients[client].ready;
                describe::reply(client, frame.clone(), greeted)
            }
            Effect::CloseClient { client } => {
                let conn = usize::try_from(client.0).expect("connections are few");
                format!("s{me} closes c{}", self.client_conns[conn].client + 1)
            }
            Effect::Ensemble { active, .. } => {
                format!("s{me} knows the ensemble of {}", show_membership(active))
            }
            Effect::Event(event) => format!("s{me} {}", describe::event(event)),
            Effect::Halt { reason } => format!("s{me} stops: {reason}"),
        }
    }

    pub(in crate::world) fn missing(
        &self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        oracle: &Oracle,
        target: Target,
    ) -> Option<String> {
        let running = ensemble.running();
        if running.len() <= ensemble.hosts.len() / 2 || !oracle.promises_to(clock, &running) {
            return None;
        }
        match target {
            Target::Acknowledged => None,
            Target::Elected => {
                let leaders = running.iter().filter(|(_, status)| status.role == Role::Leading).count();
                let led = leaders == 1 && running.iter().all(|(_, status)| status.established);
                (!led).then(|| {
                    let roles = roles(running.iter().map(|(host, status)| (*host, status)));
                    format!(
                        "{} of {} members elected nobody in time: {roles}",
                        running.len(),
                        ensemble.hosts.len()
                    )
                })
            }
            Target::Serving => {
                let index = self.clients.iter().position(|client| client.served == 0 && !client.gone)?;
                Some(format!("client {index} was not served in time"))
            }
            Target::Converged => self.not_converged(clock, ensemble, oracle),
            Target::Closed => {
                let (host, status) =
                    running.iter().find(|(_, status)| status.sessions > 0 || status.ephemerals > 0)?;
                Some(format!(
                    "server {} still holds {} sessions and {} ephemerals of clients that are gone",
                    host + 1,
                    status.sessions,
                    status.ephemerals
                ))
            }
        }
    }

    pub(in crate::world) fn client_goes_on(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        target: Target,
    ) {
        let client = &self.clients[index];
        if client.gone {
            return;
        }
        let broken = client.conn.is_some_and(|conn| {
            let conn = &self.client_conns[conn];
            !conn.member_open || ensemble.hosts[conn.host].life != conn.life || !ensemble.runs(conn.host)
        });
        if broken {
            self.is_cut(clock, ensemble, oracle, index);
            return;
        }
        match target {
            Target::Closed => {
                let client = &self.clients[index];
                if client.ready && client.conn.is_some() && !client.is_busy() {
                    self.clients[index].gone = true;
                    self.say_goodbye(clock, oracle, index);
                } else {
                    self.hangs_up(clock, ensemble, oracle, index);
                    self.clients[index].gone = true;
                }
            }
            Target::Serving | Target::Elected
                if client.conn.is_none() && (target == Target::Serving || client.session.is_some()) =>
            {
                let running = ensemble.running();
                let chosen = usize::try_from(clock.now.0 / ROUND_US).unwrap_or(0) + index;
                if let Some((host, _)) = running.get(chosen % running.len().max(1)) {
                    self.connects(clock, ensemble, oracle, index, *host, false);
                }
            }
            Target::Serving if client.ready && !client.is_busy() && client.served == 0 => {
                if let Ok(look) = ClientAction::parse(&["look", "e0", "0"]) {
                    self.asks(clock, ensemble, oracle, index, &look);
                }
            }
            // While members join, others go on writing.
            Target::Elected if client.ready && !client.is_busy() => {
                let asked = clock.now.0 * MAX_CLIENTS + u64::try_from(index).unwrap_or(0);
                let element = LATE_ELEMENT + i64::try_from(asked).unwrap_or(0);
                if let Ok(add) = ClientAction::parse(&["add", "s0", &element.to_string()]) {
                    self.asks(clock, ensemble, oracle, index, &add);
                }
            }
            Target::Elected | Target::Serving | Target::Converged | Target::Acknowledged => {
                self.pings(clock, index);
            }
        }
    }

    /// An input reaches a member.
    pub(in crate::world) fn write_down_input(
        &self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        input: &Input,
    ) {
        if !matches!(clock.mover, Mover::Recording(_)) {
            return;
        }
        let transition = self.transition_of(clock, ensemble, host, input);
        let at_us = Some(clock.now.0);
        let end = match input {
            Input::Accepted { conn } | Input::Dialled { conn, .. } => Some(EndId::of(*conn)),
            _ => None,
        };
        let Mover::Recording(recording) = &mut clock.mover else { return };
        recording.known.extend(end.map(|end| (end.conn, end.end)));
        let place = match transition {
            Some(Transition::Told { host }) if recording.just_wrote(host) => {
                recording.hears_at_once();
                recording.lines.len() - 1
            }
            Some(transition) => {
                recording.lines.push(Line { at_us, transition, note: String::new() });
                recording.lines.len() - 1
            }
            None => recording.lines.len(),
        };
        recording.stepping = Some((host, place, 0));
    }

    fn transition_of(
        &self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        input: &Input,
    ) -> Option<Transition> {
        Some(match input {
            Input::Tick => Transition::Tick { host, times: 1 },
            Input::Stored { .. } => Transition::Told { host },
            Input::Notification { from, .. } => {
                Transition::Vote { from: ensemble.index_of(*from)?, to: host }
            }
            Input::ElectionConnected { peer } => Transition::Meets { host, peer: ensemble.index_of(*peer)? },
            Input::ElectionLost { peer } => Transition::Misses { host, peer: ensemble.index_of(*peer)? },
            Input::Dialled { leader, .. } => Transition::Dialled { host, peer: ensemble.index_of(*leader)? },
            Input::DialFailed { leader } => Transition::Refused { host, peer: ensemble.index_of(*leader)? },
            Input::Accepted { conn } => Transition::Accepts { host, peer: ensemble.peer_at(*conn) },
            Input::Packet { conn, packet } => Transition::Packet {
                from: ensemble.peer_at(*conn),
                to: host,
                kind: Kind::Packet(packet.kind),
                zxid: zxid_of(input),
                old: ensemble.older(clock, *conn),
            },
            Input::Image { conn, .. } => Transition::Packet {
                from: ensemble.peer_at(*conn),
                to: host,
                kind: Kind::Image,
                zxid: zxid_of(input),
                old: ensemble.older(clock, *conn),
            },
            // In a script nothing arrives by halves.
            Input::Alive { .. } => return None,
            Input::PeerLost { conn } => {
                // Its end is closed already; it was the newest of those that are left, or older.
                Transition::Loses { host, peer: ensemble.peer_at(*conn), old: ensemble.older(clock, *conn) }
            }
            Input::ClientConnect { client, .. }
            | Input::ClientRequest { client, .. }
            | Input::ClientProof { client, .. } => {
                let (client, old) = self.client_at(*client);
                Transition::Hears { host, client, old }
            }
            Input::ClientLost { client } => {
                let (client, old) = self.client_at(*client);
                Transition::Drops { host, client, old }
            }
        })
    }

    /// Whose connection it is, and how many newer ones to the same process there are.
    fn client_at(&self, client: ClientId) -> (usize, usize) {
        let index = usize::try_from(client.0).expect("connections are few");
        let this = &self.client_conns[index];
        let newer = self.client_conns[index + 1..].iter().filter(|conn| {
            (conn.client, conn.host, conn.life) == (this.client, this.host, this.life) && conn.member_open
        });
        (this.client, newer.count())
    }

    pub(in crate::world) fn connects(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        client: usize,
        host: HostIndex,
        anew: bool,
    ) -> bool {
        if client >= self.clients.len() || !ensemble.runs(host) || self.clients[client].conn.is_some() {
            return false;
        }
        if anew {
            if self.clients[client].session.is_some() {
                self.note_leaving(clock, client, &Answer::Abandoned);
            }
            self.clients[client].session = None;
            self.clients[client].watcher.watching.forget();
        }
        self.clients[client].member = host;
        self.connect_client(clock, ensemble, oracle, client);
        true
    }

    pub(in crate::world) fn asks(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        action: &ClientAction,
    ) -> bool {
        let Some(client) = self.clients.get(index) else { return false };
        // A prober does not wait for answers.
        let waits = client.is_busy() && !matches!(action, ClientAction::Probe(_));
        if !client.ready || client.conn.is_none() || waits {
            return false;
        }
        match action {
            ClientAction::Operation(kind, op) => {
                let loads = &self.record.loads;
                let of_kind = |job: &Job| loads[job.load].workload.kind() == *kind;
                let Some(job) = client.jobs.iter().position(of_kind) else { return false };
                let load = client.jobs[job].load;
                let Some(op) = self.as_shown(clock, load, op) else { return false };
                self.invoke(clock, ensemble, oracle, index, job, op);
            }
            ClientAction::Goodbye => self.say_goodbye(clock, oracle, index),
            ClientAction::Ask(ask) => self.seek(clock, oracle, index, ask.clone()),
            ClientAction::Probe(batch) => self.probe(clock, ensemble, oracle, index, batch.clone()),
        }
        true
    }

    /// The operation as a client can ask for it: what it replaces or deletes must have been shown by some
    /// reply.
    fn as_shown(&self, clock: &mut Clockwork, load: usize, op: &Op) -> Option<Op> {
        let mut asked = op.clone();
        let key = op.key;
        match &mut asked.body {
            Body::Cas { from, basis, .. } => *basis = Some(self.shown(load, key, *from)?),
            Body::Append { onto, basis, .. } => {
                let last = onto.last().copied();
                let lists = clock.scripted().lists.iter().rev();
                let (_, list, version) =
                    lists.into_iter().find(|(of, list, _)| *of == key && list.last().copied() == last)?;
                (*onto, *basis) = (Arc::clone(list), Some(*version));
            }
            Body::Delete { name, number } => {
                *number = self.record.loads[load].history.iter().rev().find_map(|line| match line.value {
                    Value::Pair(Some(made), number)
                        if line.kind == EventKind::Ok
                            && (line.f, line.key, made) == (Function::CREATE, key, *name) =>
                    {
                        Some(number)
                    }
                    _ => None,
                })?;
            }
            _ => {}
        }
        Some(asked)
    }

    /// The version that some reply showed together with a value.
    pub(in crate::world) fn shown(&self, load: usize, key: u64, value: i64) -> Option<i64> {
        let line = self.record.loads[load].history.iter().rev().find(|line| {
            let shown = match line.value {
                Value::One(shown) | Value::Pair(_, shown) => Some(shown),
                Value::Null | Value::List(_) | Value::Txn(_) => None,
            };
            line.kind == EventKind::Ok && line.key == key && shown == Some(value)
        });
        line.and_then(|line| line.version)
    }

    pub(in crate::world) fn pings(&mut self, clock: &mut Clockwork, index: usize) -> bool {
        let Some(client) = self.clients.get(index).filter(|client| client.ready) else { return false };
        let Some(conn) = client.conn else { return false };
        self.send_to_member(clock, conn, Flow::Frame(client::ping()));
        true
    }

    pub(in crate::world) fn hangs_up(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
    ) -> bool {
        if self.clients.get(index).is_none_or(|client| client.conn.is_none()) {
            return false;
        }
        self.hang_up(clock, index);
        self.on_lost(clock, ensemble, oracle, index, "time-out");
        true
    }

    pub(in crate::world) fn client_conn(
        &self,
        ensemble: &Ensemble,
        host: HostIndex,
        client: usize,
        old: usize,
    ) -> Option<usize> {
        let life = ensemble.hosts.get(host).filter(|host| host.process.is_some())?.life;
        let conns = self.client_conns.iter().enumerate().rev();
        let mut open = conns.filter(|(_, conn)| {
            (conn.client, conn.host, conn.life) == (client, host, life) && conn.member_open
        });
        open.nth(old).map(|(index, _)| index)
    }

    pub(in crate::world) fn listens(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        client: usize,
    ) -> bool {
        let Some(conn) = self.clients.get(client).and_then(|client| client.conn) else { return false };
        let pipe = &mut self.client_conns[conn].to_client;
        if !pipe.items().next().is_some_and(|flow| matches!(flow, Flow::Frame(_))) {
            return false;
        }
        let Some(flow) = pipe.take_next() else { return false };
        self.client_receives(clock, ensemble, oracle, conn, flow);
        true
    }

    pub(in crate::world) fn is_cut(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        client: usize,
    ) -> bool {
        let Some(conn) = self.clients.get(client).and_then(|client| client.conn) else { return false };
        self.client_receives(clock, ensemble, oracle, conn, Flow::Fin);
        true
    }
}
