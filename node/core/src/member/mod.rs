//! One member: the role that it is in, and what leads from one role to the next.
//!
//! A fact goes to whom it concerns: the election, the role, the store's queue, the clients. A role that can't
//! go on says so, and the member looks for a leader again, or follows the one that is named. What a role
//! leaves behind is in [`Base`]; what can be asked of a member is in `view` and `status`.

mod fingerprint;
mod status;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use node_wire::client::{ConnectRequest, Id, Request};
use node_wire::election::Notification;
use node_wire::ids::{Epoch, ServerId};
use node_wire::membership::Membership;
use node_wire::quorum::QuorumPacket;
use node_wire::snapshot::ZxidDigest;

use crate::base::{Base, Leave};
use crate::clients::Ask;
use crate::config::Config;
use crate::election::{Election, Outbox};
use crate::ensemble::Changed;
use crate::io::{ClientId, ConnId, Effect, Event, Input, Now, Proof, Recovered};
use crate::leader::Leader;
use crate::learner::Learner;
use crate::sessions::Owner;
use crate::silence::Attention;
use crate::zab::{Protocol, Zab};

pub use status::{Role, Status};
pub use view::MemberView;

/// Connections of learners that are kept while we do not know yet that we lead.
const MAX_PARKED: usize = 64;

/// How long a member looks for a leader, at least, before it serves reads without one.
const READ_ONLY_AFTER: Duration = Duration::from_secs(2);

/// A connection that came while we were looking: its owner was quicker to know that we lead.
#[derive(Clone)]
struct Parked {
    since: Duration,
    packets: Vec<QuorumPacket>,
}

#[derive(Clone)]
enum RoleState {
    Looking { parked: BTreeMap<ConnId, Parked> },
    Following(Box<Learner>),
    Leading(Box<Leader>),
}

/// A learner says one thing before it is answered; it is kept until we know that we lead.
fn keep<P: Protocol>(
    parked: &mut BTreeMap<ConnId, Parked>,
    conn: ConnId,
    packet: QuorumPacket,
    base: &mut Base<P>,
) {
    let Some(waiting) = parked.get_mut(&conn) else { return };
    if waiting.packets.is_empty() {
        waiting.packets.push(packet);
    } else {
        parked.remove(&conn);
        base.emit(Effect::Close { conn });
    }
}

/// Whoever waited for this long does better to look for a leader again.
fn close_old<P: Protocol>(parked: &mut BTreeMap<ConnId, Parked>, patience: Duration, base: &mut Base<P>) {
    let awake = base.awake;
    let old = parked.iter().filter(|(_, parked)| awake > parked.since + patience).map(|(conn, _)| *conn);
    for conn in old.collect::<Vec<_>>() {
        parked.remove(&conn);
        base.emit(Effect::Close { conn });
    }
}

/// One member, by the rules `P`.
#[derive(Clone)]
pub struct Member<P: Protocol = Zab> {
    base: Base<P>,
    attention: Attention,
    election: Election<P>,
    role: RoleState,
    /// Since when it looks for a leader, if it does.
    looking_since: Duration,
    started: bool,
    /// Connections that came while we followed: where a leader is designated, others may hear of it first.
    early: BTreeMap<ConnId, Parked>,
}

impl<P: Protocol> Member<P> {
    /// A member that just started. It does nothing before its first step.
    pub fn new(config: Config, recovered: Recovered, now: Now, zab: P) -> Self {
        let Recovered { accepted_epoch, current_epoch, image, entries } = recovered;
        let base = Base::new(config, accepted_epoch, current_epoch, &image, entries, now, zab);
        Self {
            election: Election::new(&base.config, base.quorum.clone(), zab),
            attention: Attention::new(now.mono),
            base,
            role: RoleState::Looking { parked: BTreeMap::new() },
            looking_since: Duration::ZERO,
            started: false,
            early: BTreeMap::new(),
        }
    }

    /// What the writer of the recovered snapshot had as its digest, to be compared when the tree stands
    /// there. Given before the first step, if at all.
    pub fn expect_digest(&mut self, written: ZxidDigest) {
        self.base.expect_digest(written);
    }

    /// One fact in, its effects out, appended in order.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        self.base.now = now;
        self.base.awake = self.attention.advance(now.mono);
        std::mem::swap(&mut self.base.out, out);
        if !self.started {
            self.started = true;
            self.base.compare_with_snapshot();
            self.look(None, "started".to_owned());
        }
        self.take(input);
        self.ensemble_changed();
        std::mem::swap(&mut self.base.out, out);
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Tick => self.tick(),
            Input::Stored { ticket } => self.stored(ticket),
            Input::Notification { from, notification } => self.notification(from, &notification),
            Input::ElectionConnected { peer } => self.election.connected(peer),
            Input::ElectionLost { peer } => {
                self.elect(|election, at, outbox| election.lost(peer, at, outbox));
            }
            Input::Dialled { leader, conn } => self.dialled(leader, conn),
            Input::DialFailed { leader } => {
                let outcome = match &mut self.role {
                    RoleState::Following(learner) if learner.leader() == leader => {
                        learner.dial_failed(&self.base, self.election.is_gone(leader))
                    }
                    _ => Ok(()),
                };
                self.leave_if(outcome);
            }
            Input::Accepted { conn } => self.accepted(conn),
            Input::Packet { conn, packet } => self.packet(conn, packet),
            Input::Image { conn, image } => {
                let outcome = match &mut self.role {
                    RoleState::Following(learner) if learner.is_at(conn) => {
                        learner.image(&mut self.base, image)
                    }
                    _ => Ok(()),
                };
                self.leave_if(outcome);
            }
            Input::Alive { conn } => match &mut self.role {
                RoleState::Following(learner) if learner.is_at(conn) => learner.alive(&mut self.base),
                RoleState::Leading(leader) => leader.alive(conn, self.base.awake),
                RoleState::Looking { .. } | RoleState::Following(_) => {}
            },
            Input::PeerLost { conn } => self.peer_lost(conn),
            Input::ClientConnect { client, request, who } => self.client_connect(client, &request, who),
            Input::ClientRequest { client, request } => self.client_request(client, request),
            Input::ClientProof { client, xid, proof } => self.client_proof(client, xid, proof),
            Input::ClientLost { client } => self.client_lost(client),
        }
    }

    // Elections.

    fn elect(&mut self, part: impl FnOnce(&mut Election<P>, Duration, &mut Outbox) -> Option<ServerId>) {
        let mut outbox = Outbox::new();
        let decided = part(&mut self.election, self.base.awake, &mut outbox);
        for (to, notification) in outbox {
            self.base.emit(Effect::Notify { to, notification });
        }
        if let Some(leader) = decided {
            self.elected(leader);
        }
    }

    fn notification(&mut self, from: ServerId, notification: &Notification) {
        self.hear_of_ensemble(notification);
        self.hear_of_proposal(from, notification);
        self.elect(|election, at, outbox| election.heard(from, notification, at, outbox));
        if matches!(self.role, RoleState::Leading(_))
            && !self.established()
            && self.election.is_newer_leader(from, notification)
        {
            self.leave_if(Err(Leave::because(format!("member {from} leads a newer epoch"))));
        }
    }

    /// A vote carries the membership that rules where it comes from. Who looks takes over a later one than
    /// its own, and begins anew; who has a leader hears of it from there.
    fn hear_of_ensemble(&mut self, notification: &Notification) {
        let (true, RoleState::Looking { .. }, Some(config)) =
            (self.base.ensemble.changes, &self.role, &notification.config)
        else {
            return;
        };
        let Ok(membership) = Membership::from_bytes(config) else { return };
        let changed = self.base.ensemble.activate(membership);
        self.base.adapt(changed);
        if changed == Changed::Active {
            self.look(None, "a later membership was heard of".to_owned());
        }
    }

    /// A vote tells what the log of its candidate proposes. While no epoch stands that decides who takes
    /// part. Of those of whom nobody told yet nothing is believed: if they are needed, somebody else will
    /// tell.
    fn hear_of_proposal(&mut self, from: ServerId, notification: &Notification) {
        if !self.base.ensemble.changes || self.established() || !self.election.knows(from) {
            return;
        }
        let proposed = notification.proposed.as_ref().and_then(|text| Membership::from_bytes(text).ok());
        let changed = self.base.ensemble.hear(from, notification.leader, proposed);
        self.base.adapt(changed);
        self.ensemble_changed();
    }

    /// Tells the election and the driver who is in the ensemble, if that changed.
    fn ensemble_changed(&mut self) {
        if !std::mem::take(&mut self.base.ensemble_changed) {
            return;
        }
        let ensemble = &self.base.ensemble;
        self.election.reconfigure(ensemble, self.base.quorum.clone());
        let (active, joining) = (Arc::new(ensemble.active().clone()), ensemble.joining());
        self.base.emit(Effect::Ensemble { active, joining });
    }

    /// Leaves whatever it was and looks for a leader.
    fn look(&mut self, left: Option<ServerId>, reason: String) {
        let unanswered = self.leave_role();
        self.ensemble_changed();
        self.base.lookup_began();
        let (epoch, zxid) = (self.base.current_epoch, self.base.journal.last());
        let mut outbox = Outbox::new();
        let decided = self.election.start(epoch, zxid, left, unanswered, self.base.awake, &mut outbox);
        self.base.tell(Event::Looking { round: self.election.round(), left, reason });
        for (to, notification) in outbox {
            self.base.emit(Effect::Notify { to, notification });
        }
        if let Some(leader) = decided {
            self.elected(leader);
        }
    }

    /// Leaves whatever it was and goes to a leader that needs no election.
    fn go_over(&mut self, left: ServerId, successor: ServerId, reason: String) {
        self.leave_role();
        self.ensemble_changed();
        self.base.lookup_began();
        let (epoch, zxid) = (self.base.current_epoch, self.base.journal.last());
        let leader = self.election.designate(successor, epoch, zxid);
        self.base.tell(Event::Looking { round: self.election.round(), left: Some(left), reason });
        self.elected(leader);
    }

    /// Nothing of a role survives it. True when it followed a leader that never answered.
    fn leave_role(&mut self) -> bool {
        self.looking_since = self.base.awake;
        self.base.forget_waiting();
        let mut waiting = std::mem::take(&mut self.early);
        if let RoleState::Looking { parked } = &mut self.role {
            waiting.append(parked);
        }
        let role = std::mem::replace(&mut self.role, RoleState::Looking { parked: waiting });
        match &role {
            RoleState::Looking { .. } => {}
            RoleState::Following(learner) => learner.close(&mut self.base),
            RoleState::Leading(leader) => leader.close(&mut self.base),
        }
        if !self.base.zab.serves(false) {
            self.base.clients.close_all(&mut self.base.out);
        }
        matches!(&role, RoleState::Following(learner) if learner.is_unanswered())
    }

    fn elected(&mut self, leader: ServerId) {
        let looking = RoleState::Looking { parked: BTreeMap::new() };
        let RoleState::Looking { parked } = std::mem::replace(&mut self.role, looking) else {
            unreachable!("only a member that looks takes part in an election");
        };
        if self.base.clients.is_read_only() {
            // They come back when there is somebody who takes their writes.
            self.base.clients.close_all(&mut self.base.out);
        }
        self.base.tell(Event::Elected { leader, round: self.election.round() });
        if leader == self.base.config.id {
            let slowest = self.election.slowest_voter();
            self.role = RoleState::Leading(Box::new(Leader::start(slowest, &mut self.base)));
            for (conn, parked) in parked {
                self.accepted(conn);
                for packet in parked.packets {
                    self.packet(conn, packet);
                }
            }
        } else {
            for conn in parked.into_keys() {
                self.base.emit(Effect::Close { conn });
            }
            let dialect = self.election.dialect(leader);
            self.role = RoleState::Following(Box::new(Learner::start(leader, dialect, &mut self.base)));
        }
    }

    fn leave_if(&mut self, outcome: Result<(), Leave>) {
        let Err(Leave { reason, successor }) = outcome else { return };
        let left = match &self.role {
            RoleState::Looking { .. } => return,
            RoleState::Following(learner) => learner.leader(),
            RoleState::Leading(_) => self.base.config.id,
        };
        match successor {
            Some(successor) => self.go_over(left, successor, reason),
            None => self.look(Some(left), reason),
        }
    }

    /// Tells the election once that the epoch stands: late starters compare it.
    fn note_established(&mut self, before: bool) {
        if !before && self.established() {
            self.base.epoch_established();
            self.ensemble_changed();
            let epoch = self.base.current_epoch;
            self.elect(|election, at, outbox| {
                election.epoch_established(epoch, at, outbox);
                None
            });
        }
    }

    fn established(&self) -> bool {
        match &self.role {
            RoleState::Looking { .. } => false,
            RoleState::Following(learner) => learner.established(),
            RoleState::Leading(leader) => leader.established(),
        }
    }

    // Time and the store.

    fn tick(&mut self) {
        let before = self.established();
        self.base.clients.tick(self.base.awake, &mut self.base.out);
        let outcome = match &mut self.role {
            RoleState::Looking { parked } => {
                let patience = self.base.discovery_timeout(self.election.slowest_voter());
                close_old(parked, patience, &mut self.base);
                self.elect(|election, at, outbox| election.tick(at, outbox));
                self.serve_reads();
                Ok(())
            }
            RoleState::Following(learner) => {
                let patience = self.base.discovery_timeout(self.election.slowest_voter());
                close_old(&mut self.early, patience, &mut self.base);
                learner.tick(&mut self.base)
            }
            RoleState::Leading(leader) => leader.tick(&mut self.base),
        };
        self.note_established(before);
        self.leave_if(outcome);
    }

    /// Begins to serve reads without a leader, when it was looked for long enough.
    fn serve_reads(&mut self) {
        let patience = READ_ONLY_AFTER.max(self.base.config.tick_time);
        if self.base.config.clients.read_only_mode
            && matches!(self.role, RoleState::Looking { .. })
            && !self.base.clients.is_read_only()
            && self.base.awake >= self.looking_since + patience
        {
            self.base.clients.begin_read_only();
            self.base.tell(Event::ReadOnly);
        }
    }

    fn stored(&mut self, ticket: u64) {
        self.base.stored(ticket);
        while let Some(then) = self.base.next_due() {
            let before = self.established();
            let outcome = match &mut self.role {
                RoleState::Looking { .. } => Ok(()),
                RoleState::Following(learner) => {
                    learner.stored(&mut self.base, then);
                    Ok(())
                }
                RoleState::Leading(leader) => leader.stored(&mut self.base, then),
            };
            self.note_established(before);
            self.leave_if(outcome);
        }
    }

    // The quorum port.

    fn dialled(&mut self, leader: ServerId, conn: ConnId) {
        match &mut self.role {
            RoleState::Following(learner) if learner.leader() == leader => {
                learner.dialled(&mut self.base, conn)
            }
            _ => self.base.emit(Effect::Close { conn }),
        }
    }

    fn accepted(&mut self, conn: ConnId) {
        match &mut self.role {
            RoleState::Looking { parked } if parked.len() < MAX_PARKED => {
                parked.insert(conn, Parked { since: self.base.awake, packets: Vec::new() });
            }
            RoleState::Leading(leader) => leader.accepted(&self.base, conn),
            RoleState::Following(_) if self.base.ensemble.changes && self.early.len() < MAX_PARKED => {
                self.early.insert(conn, Parked { since: self.base.awake, packets: Vec::new() });
            }
            RoleState::Looking { .. } | RoleState::Following(_) => self.base.emit(Effect::Close { conn }),
        }
    }

    fn packet(&mut self, conn: ConnId, packet: QuorumPacket) {
        let before = self.established();
        let outcome = match &mut self.role {
            RoleState::Looking { parked } => {
                keep(parked, conn, packet, &mut self.base);
                Ok(())
            }
            RoleState::Following(learner) if learner.is_at(conn) => learner.packet(&mut self.base, packet),
            RoleState::Following(_) => {
                keep(&mut self.early, conn, packet, &mut self.base);
                Ok(())
            }
            RoleState::Leading(leader) => leader.packet(&mut self.base, conn, packet),
        };
        self.note_established(before);
        self.leave_if(outcome);
    }

    fn peer_lost(&mut self, conn: ConnId) {
        let outcome = match &mut self.role {
            RoleState::Looking { parked } => {
                parked.remove(&conn);
                Ok(())
            }
            RoleState::Following(learner) if learner.is_at(conn) => {
                Err(Leave::because("the connection to the leader broke"))
            }
            RoleState::Following(_) => {
                self.early.remove(&conn);
                Ok(())
            }
            RoleState::Leading(leader) => {
                leader.lost(conn);
                // Not only at the next tick: who has no quorum must not go on serving.
                leader.quorum_holds(&self.base)
            }
        };
        self.leave_if(outcome);
    }

    // Clients.

    fn client_connect(&mut self, client: ClientId, request: &ConnectRequest, who: Vec<Id>) {
        if !self.established() && !self.base.clients.is_read_only() {
            self.base.emit(Effect::CloseClient { client });
            return;
        }
        let bounds = self.base.config.session_bounds();
        let (tree, out) = (&self.base.tree, &mut self.base.out);
        let ask = self.base.clients.connect(client, request, who, bounds, tree, out);
        self.ask(ask);
    }

    /// A client was heard of.
    fn touch(&mut self, client: ClientId) {
        let Some(session) = self.base.clients.session(client) else { return };
        match &mut self.role {
            RoleState::Looking { .. } => {}
            RoleState::Following(learner) => {
                // One that the ensemble does not know is local, or begins with a request that is under way.
                if let Some(timeout_ms) = self.base.tree.session(session) {
                    learner.touch(session, timeout_ms);
                }
            }
            RoleState::Leading(leader) => leader.touch(session, self.base.awake),
        }
    }

    fn client_proof(&mut self, client: ClientId, xid: i32, proof: Proof) {
        if self.established() {
            self.touch(client);
            self.base.clients.proof(client, xid, proof, &self.base.tree, &mut self.base.out);
        }
    }

    fn client_request(&mut self, client: ClientId, request: Request) {
        if !self.base.zab.serves(self.established()) && !self.base.clients.is_read_only() {
            // Closed when the role ended; this was still on its way.
            return;
        }
        self.touch(client);
        let ask = self.base.clients.request(client, request, &self.base.tree, &mut self.base.out);
        if self.base.zab.serves(false) && !self.established() {
            // There is nobody to ask: by this rule what is here is new enough.
            if let Some(Ask::Sync(client)) = ask {
                self.base.clients.synced(client, &self.base.tree, &mut self.base.out);
            }
            return;
        }
        self.ask(ask);
    }

    fn client_lost(&mut self, client: ClientId) {
        self.base.clients.lost(client);
    }

    fn ask(&mut self, ask: Option<Ask>) {
        let Some(ask) = ask else { return };
        let outcome = match &mut self.role {
            RoleState::Looking { .. } => Ok(()),
            RoleState::Following(learner) => {
                learner.ask(&mut self.base, ask);
                Ok(())
            }
            RoleState::Leading(leader) => match ask {
                Ask::Forward(request) => leader.request(&mut self.base, Owner::Local, request),
                Ask::Upgrade(creation, request) => leader
                    .request(&mut self.base, Owner::Local, creation)
                    .and_then(|()| leader.request(&mut self.base, Owner::Local, request)),
                Ask::Revalidate(revalidate) => {
                    leader.revalidate(&mut self.base, Owner::Local, &revalidate);
                    Ok(())
                }
                Ask::Sync(client) => {
                    leader.local_sync(&mut self.base, client);
                    Ok(())
                }
            },
        };
        self.leave_if(outcome);
    }

    /// The epoch that this member established or follows, if it stands.
    fn established_epoch(&self) -> Option<Epoch> {
        self.established().then_some(self.base.current_epoch)
    }
}
