//! Inputs to members, and what becomes of their effects: the driver's duties of [`node_core::io`].

use node_core::io::{self, Effect, Input, StoreOp, SyncKind};
use node_core::{Role, Status};
use node_wire::ids::Zxid;
use node_wire::quorum::PacketType;

use crate::host::{MAX_INBOX, Source};
use crate::network::{Cargo, EndId, HostIndex};
use crate::outcome::Rule;
use crate::world::ensemble::membership::show_membership;
use crate::world::ensemble::work::size_of;
use crate::world::{Event, World};

impl World {
    pub(in crate::world) fn tick(&mut self, host: HostIndex, life: u64) {
        if !self.ensemble.lives(host, life) {
            return;
        }
        let delay = self.clock.tick_delay();
        self.clock.plan(delay, Event::Tick { host, life });
        let process = self.ensemble.hosts[host].process.as_ref().expect("the process lives");
        // A process that stands still finds one expired timer when it goes on, however long that was.
        let expired = process.inbox.iter().any(|(source, _)| *source == Source::Timer);
        if process.hears() || !expired {
            self.give(host, life, Source::Timer, Input::Tick);
        }
    }

    /// Gives an input, now or when the process goes on.
    pub(in crate::world) fn give(&mut self, host: HostIndex, life: u64, source: Source, input: Input) {
        if !self.ensemble.lives(host, life) {
            return;
        }
        let process = self.ensemble.hosts[host].process.as_mut().expect("the process lives");
        if !process.hears() {
            assert!(process.inbox.len() < MAX_INBOX, "a paused process has too many inputs waiting");
            process.inbox.push((source, input));
        } else {
            self.take_in(host, source, input);
        }
    }

    /// An input reaches the core, unless its connection has ended for the process meanwhile.
    pub(in crate::world) fn take_in(&mut self, host: HostIndex, source: Source, input: Input) {
        match source {
            Source::Conn((conn, end)) => {
                let end = &mut self.ensemble.conns[conn].ends[end];
                if !end.open {
                    return;
                }
                if matches!(input, Input::PeerLost { .. }) {
                    end.open = false;
                    end.incoming.lose();
                }
            }
            Source::Client(conn) => {
                let conn = &mut self.population.client_conns[conn];
                if !conn.member_open {
                    return;
                }
                if matches!(input, Input::ClientLost { .. }) {
                    conn.member_open = false;
                }
            }
            Source::Timer | Source::Store | Source::Election(_) | Source::Dial(_) => {}
        }
        let connected = match &input {
            Input::ElectionConnected { peer } => self.ensemble.index_of(*peer),
            _ => None,
        };
        self.step(host, input);
        // A connection that comes back carries the last vote again.
        if let Some(peer) = connected {
            self.ensemble.send_last_vote(&mut self.clock, host, peer);
        }
    }

    /// An input is about to reach a member: what follows from it for those who judge.
    fn oracle_hears(&mut self, host: HostIndex, input: &Input) {
        let oracle = &mut self.oracle;
        oracle.hear(&self.clock, &self.ensemble, &self.population, host, input);
        oracle.hear_vote(&self.ensemble, host, input);
        if self.ensemble.hosts[host].process.is_none() {
            return;
        }
        match input {
            Input::Packet { conn, packet } => match packet.kind {
                PacketType::Commit | PacketType::CommitAndActivate | PacketType::UpToDate => {
                    let told = Zxid::from_wire(packet.zxid);
                    oracle.inform(&self.clock, |invariants| invariants.hears(host, told));
                }
                PacketType::Snap => oracle.patience.tree_announced(*conn),
                _ => {}
            },
            Input::Image { conn, .. } => oracle.patience.tree_arrives(*conn),
            Input::PeerLost { conn } => oracle.patience.forget(*conn),
            _ => {}
        }
        oracle.patience.hears(host, input, self.clock.now);
    }

    /// A member answers a client. `alone`: it serves without a leader, and this was its role before the step.
    fn check_reply(&mut self, host: HostIndex, serves: bool, alone: Option<Role>, status: &Status) {
        self.clock.counters.lone_answers += u64::from(alone.is_some());
        self.oracle.judge(&mut self.clock, |invariants| {
            let Some(before) = alone else { return invariants.answers(host, serves) };
            let elected = before != Role::Looking && status.role != Role::Looking;
            invariants.answers_alone(host, elected, status.last_applied, status.digest)
        });
    }

    pub(in crate::world) fn step(&mut self, host: HostIndex, input: Input) {
        self.clock.trace_input(host, &input);
        self.oracle_hears(host, &input);
        self.population.write_down_input(&mut self.clock, &self.ensemble, host, &input);
        self.clock.counters.steps += 1;
        let now = self.ensemble.hosts[host].now(self.clock.now);
        let mut effects = std::mem::take(&mut self.ensemble.effects);
        let Some(process) = self.ensemble.hosts[host].process.as_mut() else { return };
        let led = process.role == Role::Leading;
        let (served, before) = (process.established, process.role);
        let version = process.member().membership().version;
        self.ensemble.stepping = Some(host);
        process.machine.step(now, input, &mut effects);
        let status = process.member().status();
        // A member that hands over leaves its role in the step in which it commits why.
        let changed = process.member().membership().version != version;
        let stood = |effect: &Effect| matches!(effect, Effect::Event(io::Event::Established { .. }));
        let stands = status.established || changed && (served || effects.iter().any(stood));
        process.role = status.role;
        process.phase = status.phase;
        process.established = status.established;
        let leads = led || status.role == Role::Leading;
        let serves = served || status.established;
        let alone = process.alone || status.read_only;
        process.alone = status.read_only;
        if served && !stands {
            self.oracle.inform(&self.clock, |invariants| invariants.parts_with(status.last_applied));
        }
        self.oracle.patience.stepped(host, &status, self.clock.now);
        let mut survives = true;
        let mut size = 0;
        for effect in effects.drain(..) {
            if let Effect::Store { op, .. } = &effect {
                size += size_of(op);
            }
            if matches!(effect, Effect::Reply { .. }) {
                let alone = (alone && !serves).then_some(before);
                self.check_reply(host, serves, alone, &status);
            }
            if !survives || self.oracle.violation.is_some() {
                break;
            }
            self.clock.remark(|| self.population.describe_effect(&self.ensemble, host, &effect));
            survives = self.carry_out(host, effect, leads);
            self.clock.effect_done();
            survives &= self.survives_effect(host);
        }
        self.clock.step_done();
        if survives {
            self.trap_stepped(host);
        }
        self.ensemble.effects = effects;
        self.ensemble.works(&mut self.clock, &mut self.oracle, host, size);
        self.committed(host, status.last_applied, status.role == Role::Leading);
        // Also of a process that died in this step: what it committed is committed, and may have been told.
        let status = Status { established: stands, ..status };
        let mut commits = 0;
        self.oracle
            .judge(&mut self.clock, |invariants| invariants.stepped(host, &status).map(|new| commits = new));
        self.clock.counters.commits += commits;
    }

    /// Carries out one effect. False when the process ended by it.
    pub(in crate::world) fn carry_out(&mut self, host: HostIndex, effect: Effect, leads: bool) -> bool {
        match effect {
            Effect::Store { ticket, op } => self.store(host, ticket, op, leads),
            Effect::TakeSnapshot(snapshot) => self.ensemble.take_snapshot(&mut self.clock, host, snapshot),
            Effect::Notify { to, notification } => {
                let Some(peer) = self.ensemble.index_of(to) else { return true };
                self.oracle.check_vote_storm(&mut self.clock, host, peer, &notification);
                let process = self.ensemble.hosts[host].process.as_mut().expect("it just stepped");
                process.votes.insert(to, notification);
                self.ensemble.send_last_vote(&mut self.clock, host, peer);
            }
            Effect::Dial { leader } => self.ensemble.dial(&mut self.clock, host, leader),
            Effect::Send { conn, packet } => {
                if packet.kind == PacketType::Proposal {
                    let bytes = packet.data.clone().unwrap_or_default();
                    let zxid = Zxid::from_wire(packet.zxid);
                    self.oracle
                        .judge(&mut self.clock, |invariants| invariants.proposes(host, zxid, &bytes, leads));
                }
                self.ensemble.may_speak(&self.clock, conn, &packet);
                self.ensemble.send(&mut self.clock, EndId::of(conn), Cargo::Packet(packet));
            }
            Effect::SendImage { conn, snapshot } => {
                self.oracle.tree_is_sent(&self.clock, &self.ensemble, host, conn);
                self.ensemble.send(&mut self.clock, EndId::of(conn), Cargo::Image(snapshot));
            }
            Effect::Close { conn } => {
                let goes_on = leads
                    && self.ensemble.hosts[host]
                        .process
                        .as_ref()
                        .is_some_and(|process| process.role == Role::Leading);
                self.oracle.check_patience(&mut self.clock, &self.ensemble, host, goes_on, conn);
                self.oracle.check_welcome_of_learner(&mut self.clock, &self.ensemble, host, goes_on, conn);
                self.oracle.patience.forget(conn);
                self.ensemble.close(&mut self.clock, EndId::of(conn));
            }
            Effect::Reply { client, frame } => {
                self.oracle.overhear(&mut self.clock, &self.ensemble, host, client, &frame);
                self.population.reply(&mut self.clock, client, frame);
            }
            Effect::CloseClient { client } => self.population.close_client(&mut self.clock, client),
            // A wire goes to whoever the core names; there is no book.
            Effect::Ensemble { active, .. } => {
                self.clock.line(host, "membership", [active.version.0, 0], || show_membership(&active));
                self.oracle.judge(&mut self.clock, |invariants| invariants.rules(host, &active));
                self.oracle.progress.counts_anew(host, self.clock.now);
                self.oracle.progress.changed(self.oracle.invariants.known_memberships(), self.clock.now);
            }
            Effect::Event(event) => {
                self.oracle.check_silence_of_leader(&mut self.clock, host, &event);
                self.oracle.check_work_of_leader(&mut self.clock, &self.ensemble, &self.chaos, host, &event);
                self.told(host, &event);
            }
            Effect::Halt { reason } => {
                let id = self.ensemble.server(host).0;
                self.oracle.report(&mut self.clock, Rule::Halt, format!("server {id} stopped: {reason}"));
                return false;
            }
        }
        true
    }

    pub(in crate::world) fn store(&mut self, host: HostIndex, ticket: u64, op: StoreOp, leads: bool) {
        self.clock.trace_store(host, &op, ticket);
        self.oracle.judge(&mut self.clock, |invariants| invariants.stores(host, &op, leads));
        if leads {
            self.oracle.check_expiry(&mut self.clock, &self.ensemble, host, &op);
            self.proposed(host, &op);
            self.oracle.patience.proposes(host, &op, self.clock.now);
        }
        let process = self.ensemble.hosts[host].process.as_mut().expect("it just stepped");
        let appends = matches!(op, StoreOp::Append(_));
        self.clock.counters.trunc_then_diff += u64::from(process.truncated && appends);
        process.truncated = matches!(op, StoreOp::Truncate(_));
        process.store.push(ticket, op, self.clock.now);
        self.chaos.start_store(&mut self.clock, &mut self.ensemble, host);
    }

    pub(in crate::world) fn told(&mut self, host: HostIndex, event: &io::Event) {
        self.clock.line(host, "event", [0, 0], || format!("{event:?}"));
        self.overheard(host, event);
        if let io::Event::Synchronizing { how, .. } = event {
            match how {
                SyncKind::Diff => self.clock.counters.diff += 1,
                SyncKind::Trunc => self.clock.counters.trunc += 1,
                SyncKind::Snap => self.clock.counters.snap += 1,
            }
        }
        self.oracle.hear_of_epoch(&self.clock, &self.ensemble, host, event);
        if let io::Event::Looking { reason, .. } = event {
            self.clock.counters.full_epochs += u64::from(reason.contains("counter"));
        }
        self.oracle.judge(&mut self.clock, |invariants| invariants.told(host, event));
        if matches!(event, io::Event::Established { .. }) {
            self.chaos.trap_established(&mut self.clock, &mut self.ensemble, host);
        }
    }
}
