//! Transitions carried out: inputs for members, and what becomes of their effects. The driver's duties of
//! [`node_core::io`], as plainly as they can be kept.

use node_core::io::{ClientId, ConnId, Effect, Input};
use node_core::{Machine, Maker, Role, TICK};
use node_wire::client::ConnectRequest;
use node_wire::election::{Notification, PeerState};
use node_wire::ids::{Epoch, Round, SessionId, Zxid};
use node_wire::quorum::{Dialect, PacketType};

use super::checks::Finding;
use super::place::{MAX_MEMBERS, Place, place_of, server};
use super::transition::Transition;
use super::world::{Cargo, Conn, End, Vote, World, content};
use crate::outcome::Rule;

/// Ticks within which a member's time runs out: more than any of its deadlines lies ahead.
const TICKS_TO_RUN_OUT: u32 = 200;

/// Ticks within which the wait for better votes ends. A vote is told again only after this.
const TICKS_TO_SETTLE: u32 = 5;

/// What a client asks for: more than any session may live, so that none expires before a connection does.
const SESSION_TIMEOUT_MS: i32 = 1_000_000;

/// Dials of one member that its connections are told apart by.
const MAX_DIALS: u64 = 1 << 32;

/// Whether a transition changed anything.
pub(super) type Changed = Result<bool, (Rule, String)>;

impl<F: Maker, const N: usize> World<F, N> {
    /// Carries a transition out. False when it turned out to be none.
    pub(super) fn apply(&mut self, transition: Transition) -> Changed {
        match transition {
            Transition::Vote { from, to } => self.vote(from, to)?,
            Transition::VoteLost { at, peer } => self.vote_lost(at, peer)?,
            Transition::Connect { one, other } => {
                self.linked[one][other] = true;
                self.connected(one, other)?;
                self.connected(other, one)?;
            }
            Transition::Dial { from, to } => self.dial(from, to)?,
            Transition::Cargo { conn, end } => self.cargo(conn, end)?,
            Transition::Broken { conn, end } => self.broken(conn, end)?,
            Transition::Stored { at } => self.stored(at)?,
            Transition::Start { at } => self.start(at)?,
            Transition::Clock { at } => {
                self.budget.timeouts -= 1;
                if !self.run_out(at)? {
                    return Ok(false);
                }
            }
            Transition::Crash { at, kept } => {
                self.budget.crashes -= 1;
                self.end_process(at);
                self.host(at).disk.crash(kept).map_err(|error| refused(at, &error))?;
                self.check_disks()?;
            }
            Transition::Lose { conn } => {
                self.budget.losses -= 1;
                self.conn(conn).sound = false;
            }
            Transition::LoseLink { one, other } => {
                self.budget.losses -= 1;
                self.linked[one][other] = false;
            }
            Transition::Elect { at, leader } => {
                self.budget.elections -= 1;
                self.elect(at, leader)?;
            }
            Transition::Client { at } => {
                self.budget.proposals -= 1;
                let request = ConnectRequest {
                    protocol_version: 0,
                    last_zxid_seen: Zxid::ZERO,
                    timeout_ms: SESSION_TIMEOUT_MS,
                    session: SessionId::NONE,
                    password: bytes::Bytes::new(),
                    read_only: None,
                };
                let client = ClientId(u64::from(self.budget.proposals));
                self.step(at, Input::ClientConnect { client, request, who: Vec::new() })?;
            }
        }
        self.settle();
        Ok(true)
    }

    /// Forgets connections that are over at both ends, and takes the digests of what changed.
    fn settle(&mut self) {
        self.conns.retain(|conn| conn.ends.iter().any(|end| end.open));
        for host in &mut self.hosts {
            // Whoever was changed is not shared.
            if let Some(host) = std::rc::Rc::get_mut(host) {
                host.settle();
            }
        }
    }

    fn conn(&mut self, number: u64) -> &mut Conn {
        let found = self.conns.iter_mut().find(|conn| conn.number == number);
        std::rc::Rc::make_mut(found.expect("transitions are asked for anew in every state"))
    }

    // Processes.

    /// A process begins.
    pub(super) fn start(&mut self, at: Place) -> Finding {
        let (maker, config) = (self.maker, self.config(at));
        let host = self.host(at);
        let recovered = host.disk.durable.recover();
        host.member = Some(maker.make(config, recovered, host.now()));
        // The first step begins the first lookup; this one does nothing else.
        self.step(at, Input::ClientLost { client: ClientId(u64::MAX) })
    }

    fn end_process(&mut self, at: Place) {
        let host = self.host(at);
        host.member = None;
        host.mono = std::time::Duration::ZERO;
        host.dials = [0; MAX_MEMBERS];
        host.votes = [None; MAX_MEMBERS];
        host.round = Round(0);
        host.role = Role::Looking;
        host.established = false;
        host.applied = Zxid::ZERO;
        for peer in 0..N {
            self.linked[at.min(peer)][at.max(peer)] = false;
            self.told[at][peer] = false;
            self.votes[peer][at].clear();
        }
        for conn in &mut self.conns {
            if let Some(end) = conn.ends.iter().position(|end| end.place == at && end.open) {
                let conn = std::rc::Rc::make_mut(conn);
                conn.sound = false;
                conn.ends[end].open = false;
                conn.ends[end].incoming.clear();
            }
        }
    }

    /// Time passes at a member until something comes of it: for one that looks, until it has waited long
    /// enough for better votes; for others, until they give somebody up.
    fn run_out(&mut self, at: Place) -> Changed {
        let looking = self.hosts[at].role == Role::Looking;
        let ticks = if looking { TICKS_TO_SETTLE } else { TICKS_TO_RUN_OUT };
        for _ in 0..ticks {
            if self.tick(at)? > 0 {
                return Ok(!looking || self.hosts[at].role != Role::Looking);
            }
        }
        Ok(false)
    }

    /// One tick. Gives the number of effects.
    pub(super) fn tick(&mut self, at: Place) -> Result<usize, (Rule, String)> {
        self.host(at).mono += TICK;
        self.step_counted(at, Input::Tick)
    }

    fn stored(&mut self, at: Place) -> Finding {
        let Some(ticket) = self.hosts[at].member.as_ref().and_then(Machine::awaited_ticket) else {
            return Ok(());
        };
        self.host(at).disk.store_up_to(ticket).map_err(|error| refused(at, &error))?;
        self.check_disks()?;
        self.step(at, Input::Stored { ticket })
    }

    // Elections.

    fn vote(&mut self, from: Place, to: Place) -> Finding {
        let Some(vote) = self.votes[from][to].pop_front() else { return Ok(()) };
        self.step(to, Input::Notification { from: server(from), notification: vote.into() })
    }

    fn vote_lost(&mut self, at: Place, peer: Place) -> Finding {
        self.told[at][peer] = false;
        self.votes[peer][at].clear();
        self.step(at, Input::ElectionLost { peer: server(peer) })
    }

    fn connected(&mut self, at: Place, peer: Place) -> Finding {
        if self.told[at][peer] {
            // A new connection takes the place of one whose end was not noticed.
            self.vote_lost(at, peer)?;
        }
        self.votes[peer][at].clear();
        self.told[at][peer] = true;
        self.step(at, Input::ElectionConnected { peer: server(peer) })?;
        self.send_last_vote(at, peer);
        Ok(())
    }

    fn send_last_vote(&mut self, from: Place, to: Place) {
        if let Some(vote) = self.hosts[from].votes[to] {
            self.votes[from][to].push_back(vote);
        }
    }

    /// The oracle: the others vote for the same, whoever that is, so that the member believes that it is
    /// decided.
    fn elect(&mut self, at: Place, leader: Place) -> Finding {
        let Some(member) = &self.hosts[at].member else { return Ok(()) };
        let status = member.member().status();
        let round = self.hosts[at].round;
        let (zxid, peer_epoch) = if at == leader {
            (status.last_logged, status.current_epoch)
        } else {
            // Better than any vote of its own.
            (Zxid(u64::MAX), Epoch(u32::MAX))
        };
        for peer in (0..N).filter(|peer| *peer != at) {
            if self.hosts[at].role != Role::Looking {
                break;
            }
            let state = PeerState::Looking;
            let notification = Notification {
                state,
                leader: server(leader),
                zxid,
                round,
                peer_epoch,
                config: None,
                proposed: None,
                hears: None,
                dialect: Dialect::Own,
            };
            self.step(at, Input::Notification { from: server(peer), notification })?;
        }
        Ok(())
    }

    // Quorum connections.

    /// Both ends learn of a connection in one transition: the acceptor says nothing before the dialler has
    /// spoken.
    fn dial(&mut self, from: Place, to: Place) -> Finding {
        self.host(from).dials[to] -= 1;
        let leader = server(to);
        if self.hosts[to].member.is_none() {
            return self.step(from, Input::DialFailed { leader });
        }
        let host = self.host(from);
        host.dialled += 1;
        let number = u64::try_from(from).expect("members are few") * MAX_DIALS + host.dialled;
        let end = |place| End { place, open: true, incoming: Default::default() };
        let conn = Conn { number, ends: [end(from), end(to)], sound: true };
        let (dialler, acceptor) = (conn.id(0), conn.id(1));
        let place = self.conns.partition_point(|conn| conn.number < number);
        self.conns.insert(place, std::rc::Rc::new(conn));
        self.step(to, Input::Accepted { conn: acceptor })?;
        self.step(from, Input::Dialled { leader, conn: dialler })
    }

    fn cargo(&mut self, number: u64, end: usize) -> Finding {
        let conn = self.conn(number);
        let id = conn.id(end);
        let place = conn.ends[end].place;
        let Some(cargo) = conn.ends[end].incoming.pop_front() else { return Ok(()) };
        match cargo {
            Cargo::Packet(packet) => self.step(place, Input::Packet { conn: id, packet }),
            Cargo::Image(snapshot) => self.step(place, Input::Image { conn: id, image: snapshot.to_image() }),
            Cargo::Fin => self.broken(number, end),
        }
    }

    fn broken(&mut self, number: u64, end: usize) -> Finding {
        let conn = self.conn(number);
        let id = conn.id(end);
        let this = &mut conn.ends[end];
        let place = this.place;
        this.open = false;
        this.incoming.clear();
        self.step(place, Input::PeerLost { conn: id })
    }

    fn send(&mut self, from: ConnId, cargo: Cargo) {
        let Some((index, end)) = self.conn_at(from) else { return };
        let conn = &self.conns[index];
        if conn.sound && conn.ends[end].open && conn.ends[1 - end].open {
            std::rc::Rc::make_mut(&mut self.conns[index]).ends[1 - end].incoming.push_back(cargo);
        }
    }

    fn close(&mut self, id: ConnId) {
        self.send(id, Cargo::Fin);
        let Some((index, end)) = self.conn_at(id) else { return };
        let this = &mut std::rc::Rc::make_mut(&mut self.conns[index]).ends[end];
        this.open = false;
        this.incoming.clear();
    }

    // Steps.

    fn step(&mut self, at: Place, input: Input) -> Finding {
        self.step_counted(at, input).map(drop)
    }

    /// One input, and its effects. Gives their number, PINGs not counted.
    fn step_counted(&mut self, at: Place, input: Input) -> Result<usize, (Rule, String)> {
        let host = self.host(at);
        let now = host.now();
        let led = host.role == Role::Leading;
        let Some(member) = host.member.as_mut() else { return Ok(0) };
        let mut effects = Vec::new();
        member.step(now, input, &mut effects);
        let status = member.member().status();
        host.role = status.role;
        host.established = status.established;
        let leads = led || status.role == Role::Leading;
        let mut count = 0;
        for effect in effects {
            let ping = matches!(&effect, Effect::Send { packet, .. } if packet.kind == PacketType::Ping);
            if !ping || self.pings {
                count += 1;
                self.carry_out(at, effect, leads)?;
            }
        }
        self.check_applied(at)?;
        Ok(count)
    }

    fn carry_out(&mut self, at: Place, effect: Effect, leads: bool) -> Finding {
        match effect {
            Effect::Store { ticket, op } => {
                self.check_store(at, &op, leads)?;
                self.host(at).disk.queue.push_back((ticket, op));
            }
            Effect::Notify { to, notification } => {
                let Some(to) = place_of(to).filter(|to| *to < N && self.model.has_votes()) else {
                    return Ok(());
                };
                let vote = Vote::from(&notification);
                self.remember_vote(at, vote);
                self.host(at).votes[to] = Some(vote);
                if self.told[at][to] && self.linked[at.min(to)][at.max(to)] {
                    self.send_last_vote(at, to);
                }
            }
            Effect::Dial { leader } => {
                if let Some(to) = place_of(leader).filter(|to| *to < N && self.model.has_quorum_port()) {
                    self.host(at).dials[to] += 1;
                }
            }
            Effect::Send { conn, packet } => {
                if let (PacketType::Proposal, Some(data)) = (packet.kind, &packet.data) {
                    let mark = (Zxid::from_wire(packet.zxid), content(data));
                    self.check_proposal(at, mark, leads)?;
                }
                self.send(conn, Cargo::Packet(packet));
            }
            Effect::SendImage { conn, snapshot } => self.send(conn, Cargo::Image(snapshot)),
            Effect::Close { conn } => self.close(conn),
            Effect::Ensemble { .. } => {}
            Effect::Event(event) => {
                if let node_core::io::Event::Looking { round, .. } = &event {
                    self.host(at).round = *round;
                }
                self.note(|| format!("s{} {event:?}", server(at)));
                self.check_event(at, &event)?;
            }
            Effect::Halt { reason } => {
                return Err((Rule::Halt, format!("server {} stopped: {reason}", server(at))));
            }
            Effect::TakeSnapshot(_) | Effect::Reply { .. } | Effect::CloseClient { .. } => {}
        }
        Ok(())
    }
}

fn refused(at: Place, error: &str) -> (Rule, String) {
    (Rule::Halt, format!("server {} failed to {error}", server(at)))
}
