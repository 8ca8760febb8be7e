//! The loop that owns the member: facts in, effects out, one write for each batch.
//!
//! One thread runs this loop and every socket. The member needs a few microseconds for a step, so handing
//! inputs to another thread would cost more than the work, in latency above all; and on a machine whose cores
//! are shared by several members a thread more is a context switch more. What can block has threads of its
//! own: the log's writer, snapshots, the line on stdout. So nothing that the disk does delays a heartbeat.
//!
//! A turn takes what is there, peers and disk before clients, in portions bounded by number and by time; then
//! the operations for the disk leave first, because the fsync is what everybody waits for, and then the
//! sockets are written. A step that is as long as its data makes a turn as long: another thread gives signs
//! of life meanwhile ([`Pulse`]).

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use node_core::io::{Effect, Event, Input, StoreOp};
use node_core::{Machine, MemberView, TICK};
use node_wire::membership::Membership;

use crate::address::HostPort;
use crate::book::Book;
use crate::client_port::{ClientPort, DRAIN};
use crate::clock::Clock;
use crate::election_port::ElectionPort;
use crate::events::Events;
use crate::inbox::Inbox;
use crate::metrics::Metrics;
use crate::pulse::Pulse;
use crate::quorum_port::QuorumPort;
use crate::snapshots::Snapshots;
use crate::store::{Store, Ticketed};
use crate::timeline::{Timeline, ends_a_silent_session};
use crate::view::{View, Want};

/// Inputs of peers in one turn. A follower's acknowledgements come in floods.
const PEER_PORTION: usize = 1024;

/// Inputs of clients in one turn. With a few microseconds for each, peers wait no longer than a millisecond.
const CLIENT_PORTION: usize = 128;

/// Bytes of answers in one turn. Answers are as long as nodes are: a client that asks for much at once must
/// not make peers wait for their heartbeats.
const ANSWER_PORTION: usize = 4 << 20;

/// A tick that is later than that was not on time: sockets may hold what nobody read meanwhile.
const LATE: Duration = TICK.saturating_mul(3);

/// Time for clients in one turn. A request may be short and long to answer, as one for the number of all
/// znodes is, and a client may send a hundred of them.
const CLIENT_TIME: Duration = Duration::from_millis(10);

/// How long a stopping member waits for clients to hang up, once they were told to.
const HANG_UP_PATIENCE: Duration = Duration::from_secs(1);

/// The member can't go on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Halted(pub(crate) String);

/// The member and everything that its effects reach.
pub(crate) struct Engine {
    pub(crate) machine: Box<dyn Machine>,
    pub(crate) clock: Clock,
    pub(crate) inbox: Rc<Inbox>,
    pub(crate) store: Store,
    pub(crate) snapshots: Snapshots,
    pub(crate) quorum: Rc<QuorumPort>,
    pub(crate) election: Rc<ElectionPort>,
    pub(crate) clients: Rc<ClientPort>,
    pub(crate) events: Events,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) timeline: Timeline,
    pub(crate) book: Rc<Book>,
    /// Where clients connect by our server line, if it says so.
    pub(crate) own_client: Option<HostPort>,
    /// Where clients connect, as it is told.
    pub(crate) client_addr: String,
    /// See [`crate::Manner`].
    pub(crate) clients_first: bool,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) batch: Batch,
}

/// What a turn gathers, and what the last one left.
#[derive(Default)]
pub(crate) struct Batch {
    effects: Vec<Effect>,
    ops: Vec<Ticketed>,
    /// The ticket that the member was told last.
    told: u64,
    next_tick: Duration,
    /// When the turn began, and its last step.
    began: Duration,
    stepped: Duration,
    disk_was_high: bool,
    /// Bytes of answers so far.
    answered: usize,
}

impl Engine {
    fn member(&self) -> &dyn MemberView {
        self.machine.member()
    }

    /// Runs until `stop`, and then until the clients have their answers.
    pub(crate) async fn run(&mut self, stop: impl Future<Output = ()>) -> Result<(), Halted> {
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return self.drain().await,
                () = self.pause() => {}
            }
            self.turn()?;
        }
    }

    /// Waits for something to do.
    async fn pause(&self) {
        if self.inbox.is_empty() {
            let until_tick = self.batch.next_tick.saturating_sub(self.clock.now().mono);
            let wake = self.inbox.wake();
            tokio::select! {
                biased;
                () = wake.notified() => {}
                () = tokio::time::sleep(until_tick) => {}
            }
        } else {
            // Sockets get their turn between ours.
            tokio::task::yield_now().await;
        }
    }

    /// Takes nobody in any more, answers what was asked, then lets the clients go: their sessions live on,
    /// and they look for another member before this one is missed. Peers and disk are served meanwhile.
    async fn drain(&mut self) -> Result<(), Halted> {
        self.clients.drain();
        let deadline = Instant::now() + DRAIN;
        self.turn()?;
        while !self.clients.is_drained() && Instant::now() < deadline {
            self.pause().await;
            self.turn()?;
        }
        if !self.clients.is_drained() {
            tracing::warn!(
                "stopping although not every request is answered: waited for {} s",
                DRAIN.as_secs()
            );
        }
        self.clients.close_all();
        let deadline = Instant::now() + HANG_UP_PATIENCE;
        while !self.clients.is_deserted() && Instant::now() < deadline {
            self.pause().await;
            self.turn()?;
        }
        Ok(())
    }

    /// Tells what the operator should hear last.
    pub(crate) fn halt(&self, halted: &Halted) {
        self.events.halt(halted.0.clone(), self.member().status().last_logged);
    }

    fn turn(&mut self) -> Result<(), Halted> {
        if let Some(reason) = self.store.failure() {
            return Err(Halted(reason));
        }
        self.batch.began = self.clock.now().mono;
        let durable = self.store.durable();
        if durable > self.batch.told {
            self.batch.told = durable;
            self.step(Input::Stored { ticket: durable })?;
        }
        if self.clients_first {
            self.take_from_clients()?;
        }
        for _ in 0..PEER_PORTION {
            if self.is_long() {
                break;
            }
            let Some(input) = self.inbox.next_from_peer() else { break };
            self.step(input)?;
        }
        self.tick()?;
        self.take_from_clients()?;
        self.events.committed(self.member().last_applied(), &self.clock);
        self.flush()
    }

    /// Behind what peers said: a process that was stopped must hear them before it judges their silence. What
    /// came and could not be heard yet counts as a sign of life.
    fn tick(&mut self) -> Result<(), Halted> {
        let now = self.clock.now().mono;
        if now < self.batch.next_tick {
            return Ok(());
        }
        let away = now >= self.batch.next_tick + LATE;
        self.batch.next_tick = now + TICK;
        for conn in self.quorum.signs_of_life(away) {
            self.step(Input::Alive { conn })?;
        }
        self.step(Input::Tick)
    }

    /// The turn has taken so long that peers should hear of us before it goes on.
    fn is_long(&self) -> bool {
        self.batch.stepped >= self.batch.began + self.pulse.every()
    }

    fn take_from_clients(&mut self) -> Result<(), Halted> {
        self.batch.answered = 0;
        let until = self.clock.now().mono + CLIENT_TIME;
        for _ in 0..CLIENT_PORTION {
            if self.batch.answered >= ANSWER_PORTION || self.batch.stepped >= until || self.is_long() {
                break;
            }
            let Some(input) = self.inbox.next_from_client() else { break };
            self.step(input)?;
        }
        Ok(())
    }

    fn step(&mut self, input: Input) -> Result<(), Halted> {
        let mut effects = std::mem::take(&mut self.batch.effects);
        if !matches!(input, Input::Tick) {
            tracing::trace!(?input);
        }
        self.timeline.heard(&input, &self.metrics);
        let now = self.clock.now();
        self.batch.stepped = now.mono;
        self.pulse.begins(now.mono);
        self.machine.step(now, input, &mut effects);
        for effect in effects.drain(..) {
            self.carry_out(effect)?;
        }
        self.batch.effects = effects;
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect) -> Result<(), Halted> {
        tracing::trace!(?effect);
        match effect {
            Effect::Store { ticket, op } => {
                if let StoreOp::Append(entry) = &op {
                    self.timeline.appended(ticket, entry, &self.metrics);
                    if self.timeline.leads() {
                        self.events.proposed(entry.zxid(), &self.clock);
                        if ends_a_silent_session(entry) {
                            self.events.expired(entry.header.session, entry.zxid());
                        }
                    }
                }
                self.batch.ops.push((ticket, op));
            }
            Effect::TakeSnapshot(snapshot) => self.snapshots.take(snapshot),
            Effect::Notify { to, notification } => self.election.notify(to, &notification),
            Effect::Dial { leader } => self.quorum.dial(leader),
            Effect::Send { conn, packet } => {
                self.timeline.said(&packet, &self.metrics);
                self.quorum.send(conn, &packet);
            }
            Effect::SendImage { conn, snapshot } => self.quorum.send_image(conn, snapshot),
            Effect::Close { conn } => self.quorum.close(conn),
            Effect::Reply { client, frame } => {
                self.batch.answered += frame.len();
                self.clients.reply(client, &frame);
            }
            Effect::CloseClient { client } => self.clients.close(client),
            Effect::Ensemble { active, joining } => {
                self.book.update(&active, joining);
                self.election.adapt();
                self.move_clients(&active);
            }
            Effect::Event(event) => self.tell(&event),
            Effect::Halt { reason } => return Err(Halted(reason)),
        }
        Ok(())
    }

    /// Clients may be told to connect elsewhere. Those that are connected stay.
    fn move_clients(&mut self, active: &Membership) {
        let said = active.servers.get(&self.member().id()).and_then(|line| line.client.clone());
        if said.is_none() || said == self.own_client {
            return;
        }
        self.own_client.clone_from(&said);
        let Some(target) = said else { return };
        match self.clients.listen_elsewhere(&target) {
            Ok(Some(listening)) => {
                tracing::info!(address = listening, "clients connect elsewhere now");
                self.client_addr = listening;
            }
            Ok(None) => {}
            Err(error) => tracing::error!("clients still connect at {}: {error:#}", self.client_addr),
        }
    }

    fn tell(&mut self, event: &Event) {
        let status = self.member().status();
        let zxid = status.last_logged;
        match event {
            Event::Diverged { zxid, told, computed } => tracing::error!(
                "the tree is not what the leader, or the snapshot that was read, says it is: its digest \
                 after {zxid} is {computed:x} instead of {told:x}; let this member copy the history of the \
                 others"
            ),
            _ => tracing::info!(%zxid, ?event),
        }
        self.timeline.told(event, status.observes, status.last_applied, &self.metrics);
        self.events.transition(event, zxid, self.clock.now().mono);
        if let Event::Established { .. } = event {
            self.events.serving(self.client_addr.clone(), zxid);
        }
    }

    fn flush(&mut self) -> Result<(), Halted> {
        if !self.batch.ops.is_empty() {
            self.store.submit(std::mem::take(&mut self.batch.ops)).map_err(Halted)?;
        }
        self.quorum.flush();
        self.pulse.spoke();
        self.clients.flush(Instant::now());
        self.timeline.applied(self.member().applied(), &self.metrics);
        let high = self.store.is_behind();
        if std::mem::replace(&mut self.batch.disk_was_high, high) && !high {
            self.clients.resume();
        }
        for question in self.inbox.questions() {
            // Whoever asked may have hung up.
            let _ = question.answer.send(self.look(question.want));
        }
        Ok(())
    }

    fn look(&mut self, want: Want) -> View {
        let status = self.member().status();
        self.timeline.applied(status.last_applied, &self.metrics);
        let view = View {
            voters: status.voters,
            servers: self.book.active(),
            membership_version: self.book.version(),
            traffic: self.clients.traffic(),
            leads_for: self.timeline.leads_for(),
            tree: want.tree.then(|| self.member().tree()),
            quotas: (want.quotas && self.member().has_quotas()).then(|| self.member().tree()),
            deadlines: if want.deadlines { self.member().session_deadlines() } else { Vec::new() },
            local_deadlines: if want.deadlines {
                self.member().local_session_deadlines()
            } else {
                Vec::new()
            },
            watches: if want.watches { self.member().watches() } else { Vec::new() },
            connections: if want.connections { self.clients.connections() } else { Vec::new() },
            digests: if want.digests { self.member().digests() } else { Vec::new() },
            learners: if want.learners { self.member().learners() } else { Vec::new() },
            status,
        };
        if want.reset_server {
            self.clients.reset_traffic();
            self.metrics.reset();
        }
        if want.reset_connections {
            self.clients.reset_connections();
        }
        view
    }
}
