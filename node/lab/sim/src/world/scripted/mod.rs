//! A world moved by a script: each transition in its turn, or not at all when it is not possible.
//!
//! Nothing happens by itself here. Effects of members fill pipes, stores' queues and lists of dials as in a
//! drawn world; lines of the script empty them.

pub(super) mod describe;
mod fair;
mod writer;

use lab_mutants::Mutant;
use node_core::io::Input;
use node_wire::ids::Zxid;

use crate::client::Flow;
use crate::host::Source;
use crate::network::{Cargo, EndId, HostIndex};
use crate::outcome::{Options, Violation};
use crate::script::{Crash, Head, Kind, Line, Prompt, Transition};
use crate::traffic::Traffic;
use crate::world::World;
use crate::world::clockwork::mover::{Mover, Scripted};
use crate::world::population::record::Record;
use harness_world::clock::Clock;
use harness_world::dice::Dice;
use harness_world::time::Time;

/// Between two lines of which the second says no time.
const SHORTLY_US: u64 = 100;

/// Between a line and a tick that says no time: as much as a member counts of the time between two of its
/// steps (three ticks), so that what else happens between its ticks does not matter.
const TICK_US: u64 = 30_000;

/// What happens of itself behind one line at most.
const MAX_PUMPED: usize = 100_000;

impl World {
    /// A world in which nothing has happened, for a script to move. `mutant`: whose driver it has.
    pub(crate) fn for_script(head: &Head, mutant: Option<Mutant>, notes: bool) -> Self {
        let options = Options { mutant, look_inside: !head.outside, ..Options::default() };
        let mut world = Self::of(head.drawn(), Dice::new(0), options);
        for host in &mut world.ensemble.hosts {
            host.clock = Clock { mono_offset: host.clock.mono_offset, ..Clock::default() };
        }
        // Whoever is asked to does any of them.
        world.population.record = Record::of(Traffic::all(), &world.clock.drawn, &mut Dice::new(0));
        world.prompt = head.prompt;
        world.clock.mover = Mover::Scripted(Box::new(Scripted::new(head.hosts(), notes)));
        world.population.populate(&mut world.clock, &world.ensemble);
        world
    }

    /// Carries out a line. False when that is not possible now.
    pub(crate) fn carry_out_line(&mut self, line: &Line) -> bool {
        let pause = if matches!(line.transition, Transition::Tick { .. }) { TICK_US } else { SHORTLY_US };
        let before = self.clock.now;
        self.clock.now = line.at_us.map_or(before + pause, |at| Time(at.max(before.0)));
        let done = self.transition(&line.transition);
        if done {
            self.pump();
        } else {
            self.clock.now = before;
        }
        done
    }

    /// True when a promise was broken.
    pub(crate) fn is_over(&self) -> bool {
        self.oracle.violation.is_some()
    }

    /// The end: the clients' history is judged.
    pub(crate) fn end(&mut self) {
        if self.oracle.violation.is_none() {
            self.population.check_history(&mut self.clock, &mut self.oracle);
        }
    }

    /// What the last line did.
    pub(crate) fn take_notes(&mut self) -> (Vec<String>, Option<Zxid>) {
        let scripted = self.clock.scripted();
        let notes = scripted.notes.as_mut().map(std::mem::take).unwrap_or_default();
        (notes, scripted.arrived.take())
    }

    /// What was found.
    pub(crate) fn into_violation(self, panic: Option<String>) -> Option<Violation> {
        self.into_outcome(panic).violation
    }

    /// When it is.
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now.0
    }

    fn sets_clock(&mut self, host: HostIndex, transition: &Transition) -> bool {
        let Transition::Clock { wall_ms, drift_ppm, fast_ppm, jump_us, .. } = transition else {
            return false;
        };
        let Some(machine) = self.ensemble.hosts.get_mut(host) else { return false };
        let clock = &mut machine.clock;
        let before = clock.read(self.clock.now).mono;
        (clock.wall_offset_ms, clock.wall_pace_ppm) = (*wall_ms, *drift_ppm);
        clock.pace_ppm = *fast_ppm;
        // Whatever its pace was, it does not go back.
        let behind = before.saturating_sub(clock.read(self.clock.now).mono).as_micros();
        clock.mono_offset += u64::try_from(behind).unwrap_or(0) + jump_us;
        self.clock.counters.suspensions += u64::from(*jump_us > 0);
        true
    }

    pub(super) fn transition(&mut self, transition: &Transition) -> bool {
        match transition {
            Transition::Start { host } => {
                self.chaos.starts(&mut self.clock, &mut self.ensemble, &mut self.oracle, *host)
            }
            Transition::Crash { host, crash } => self.ends(*host, crash),
            Transition::Tick { host, times } => self.ticks(*host, *times),
            Transition::Stored { host, ops } => self.store_by_script(*host, *ops, true),
            Transition::Wrote { host, ops } => self.store_by_script(*host, *ops, false),
            Transition::Told { host } => self.is_told(*host),
            Transition::Snapshot { host } => self.writes_snapshot(*host),
            Transition::Clock { host, .. } => self.sets_clock(*host, transition),
            Transition::Disk { host, change } => self.ensemble.change_disk(*host, *change),
            Transition::Rots { host, file, bit } => self.ensemble.rots(*host, file, *bit),
            Transition::DiskFails { host, nth, lasting } => {
                let Some(machine) = self.ensemble.hosts.get(*host) else { return false };
                let kind = std::io::ErrorKind::Other;
                if *lasting {
                    machine.disk.fail_from_nth(*nth, kind);
                } else {
                    machine.disk.fail_nth(*nth, kind);
                }
                true
            }
            Transition::Meets { host, peer } => self.meets(*host, *peer),
            Transition::Misses { host, peer } => self.misses(*host, *peer),
            Transition::Vote { from, to } => self.vote_arrives(*from, *to, true),
            Transition::Dials { host, peer } => {
                // Not one without the other: half a dial has lines of its own.
                self.ensemble.runs(*host) && self.accepts(*peer, *host) && self.dialled(*host, *peer)
            }
            Transition::Accepts { host, peer } => self.accepts(*host, *peer),
            Transition::Dialled { host, peer } => self.dialled(*host, *peer),
            Transition::Refused { host, peer } => self.refused(*host, *peer),
            Transition::Packet { from, to, kind, old, .. } => self.packets_arrive(*from, *to, *kind, *old),
            Transition::Loses { host, peer, old } => self.loses(*host, *peer, *old),
            Transition::Connects { client, host, anew } => self.population.connects(
                &mut self.clock,
                &self.ensemble,
                &mut self.oracle,
                *client,
                *host,
                *anew,
            ),
            Transition::Asks { client, action } => {
                self.population.asks(&mut self.clock, &self.ensemble, &mut self.oracle, *client, action)
            }
            Transition::Pings { client } => self.population.pings(&mut self.clock, *client),
            Transition::HangsUp { client } => {
                self.population.hangs_up(&mut self.clock, &self.ensemble, &mut self.oracle, *client)
            }
            Transition::Hears { host, client, old } => self.hears(*host, *client, *old),
            Transition::Drops { host, client, old } => self.drops(*host, *client, *old),
            Transition::Listens { client } => {
                self.population.listens(&mut self.clock, &self.ensemble, &mut self.oracle, *client)
            }
            Transition::Cut { client } => {
                self.population.is_cut(&mut self.clock, &self.ensemble, &mut self.oracle, *client)
            }
            Transition::Look(target) => {
                self.look_for(*target);
                true
            }
        }
    }

    pub(super) fn ends(&mut self, host: HostIndex, crash: &Crash) -> bool {
        if !self.ensemble.runs(host) {
            return false;
        }
        self.clock.scripted().crashes[host] = crash.clone();
        if crash.at_failure {
            return true;
        }
        match crash.in_step {
            None => self.crash(host),
            Some(effects) => {
                let process = self.ensemble.hosts[host].process.as_mut().expect("the process runs");
                process.dies_after = Some(effects.max(1));
            }
        }
        true
    }

    pub(super) fn ticks(&mut self, host: HostIndex, times: u32) -> bool {
        if !self.ensemble.runs(host) {
            return false;
        }
        for tick in 0..times {
            if tick > 0 {
                self.clock.now = self.clock.now + TICK_US;
            }
            if !self.ensemble.runs(host) || self.is_over() {
                break;
            }
            self.take_in(host, Source::Timer, Input::Tick);
        }
        true
    }

    fn store_by_script(&mut self, host: HostIndex, ops: Option<usize>, hears: bool) -> bool {
        let Some(machine) = self.ensemble.hosts.get_mut(host) else { return false };
        let life = machine.life;
        let Some(process) = machine.process.as_mut() else { return false };
        process.store.start(process.snapshot.is_some());
        if process.store.is_idle() {
            return false;
        }
        if let Some(ops) = ops {
            process.store.rebatch(ops);
        }
        // One that stands still is told later.
        process.pauses = u32::from(!hears);
        self.store_finishes(host, life);
        if let Some(process) = self.ensemble.hosts[host].process.as_mut() {
            process.pauses = 0;
        }
        true
    }

    pub(super) fn is_told(&mut self, host: HostIndex) -> bool {
        if !self.ensemble.runs(host) {
            return false;
        }
        let process = self.ensemble.hosts[host].process.as_mut().expect("the process runs");
        let waiting = std::mem::take(&mut process.inbox);
        let told = !waiting.is_empty();
        for (source, input) in waiting {
            if self.ensemble.runs(host) && !self.is_over() {
                self.take_in(host, source, input);
            }
        }
        self.chaos.start_store(&mut self.clock, &mut self.ensemble, host);
        told
    }

    fn writes_snapshot(&mut self, host: HostIndex) -> bool {
        let Some(machine) = self.ensemble.hosts.get(host) else { return false };
        let life = machine.life;
        if machine.process.as_ref().is_none_or(|process| process.snapshot.is_none()) {
            return false;
        }
        self.snapshot_finishes(host, life);
        true
    }

    fn meets(&mut self, host: HostIndex, peer: HostIndex) -> bool {
        if host == peer || !self.ensemble.runs(host) || peer >= self.ensemble.hosts.len() {
            return false;
        }
        let peer_runs = self.ensemble.runs(peer);
        let scripted = self.clock.scripted();
        let (pair, rank) = scripted.pair(host, peer);
        if pair.known[rank].is_some() {
            return false;
        }
        let joins = pair.up && pair.known[1 - rank] == Some(pair.generation);
        if !joins {
            if !peer_runs {
                return false;
            }
            pair.generation += 1;
            pair.up = true;
            // The larger id dials; if it had not noticed that its old connection broke, it never will.
            if peer > host && pair.known[1 - rank].is_some() {
                pair.known[1 - rank] = Some(pair.generation);
            }
        }
        let generation = pair.generation;
        pair.known[rank] = Some(generation);
        scripted.votes(peer, host).retain(|(sent_on, _)| *sent_on == generation);
        let peer_id = self.ensemble.server(peer);
        self.take_in(host, Source::Election(peer), Input::ElectionConnected { peer: peer_id });
        true
    }

    fn misses(&mut self, host: HostIndex, peer: HostIndex) -> bool {
        if host == peer
            || !self.ensemble.runs(host)
            || peer >= self.ensemble.hosts.len()
            || !self.clock.scripted().forget(host, peer)
        {
            return false;
        }
        let peer_id = self.ensemble.server(peer);
        self.take_in(host, Source::Election(peer), Input::ElectionLost { peer: peer_id });
        true
    }

    fn vote_arrives(&mut self, from: HostIndex, to: HostIndex, told: bool) -> bool {
        if from >= self.ensemble.hosts.len() || !self.ensemble.runs(to) {
            return false;
        }
        let Some((_, notification)) = self.clock.scripted().votes(from, to).pop_front() else { return false };
        let from_id = self.ensemble.server(from);
        // One that arrives by itself is only told of when it decides something.
        if told {
            self.clock.remark(|| describe::vote(&notification));
        }
        self.take_in(to, Source::Election(from), Input::Notification { from: from_id, notification });
        true
    }

    fn accepts(&mut self, host: HostIndex, peer: HostIndex) -> bool {
        if !self.ensemble.runs(host) {
            return false;
        }
        let Some(conn) = self
            .ensemble
            .unannounced(&self.clock, 1, host, peer)
            .or_else(|| self.ensemble.new_conn(&mut self.clock, peer, host))
        else {
            return false;
        };
        self.ensemble.conns[conn].ends[1].announced = true;
        let end = EndId { conn, end: 1 };
        self.take_in(host, end.into(), Input::Accepted { conn: end.id() });
        true
    }

    pub(super) fn dialled(&mut self, host: HostIndex, peer: HostIndex) -> bool {
        if !self.ensemble.runs(host) {
            return false;
        }
        let Some(conn) = self
            .ensemble
            .unannounced(&self.clock, 0, host, peer)
            .or_else(|| self.ensemble.new_conn(&mut self.clock, host, peer))
        else {
            return false;
        };
        self.ensemble.conns[conn].ends[0].announced = true;
        let end = EndId { conn, end: 0 };
        let leader = self.ensemble.server(peer);
        self.take_in(host, end.into(), Input::Dialled { leader, conn: end.id() });
        true
    }

    pub(super) fn refused(&mut self, host: HostIndex, peer: HostIndex) -> bool {
        if !self.ensemble.runs(host) || peer >= self.ensemble.hosts.len() {
            return false;
        }
        if let Some(conn) = self.ensemble.unannounced(&self.clock, 0, host, peer) {
            self.ensemble.close(&mut self.clock, EndId { conn, end: 0 });
        } else {
            let dials = &mut self.clock.scripted().dials;
            let Some(place) = dials.iter().position(|dial| *dial == (host, peer)) else { return false };
            dials.remove(place);
        }
        let leader = self.ensemble.server(peer);
        self.take_in(host, Source::Dial(peer), Input::DialFailed { leader });
        true
    }

    fn packets_arrive(&mut self, from: HostIndex, to: HostIndex, kind: Kind, old: usize) -> bool {
        let Some(end) = self.ensemble.open_end(&self.clock, to, from, old) else { return false };
        let is_kind = |cargo: &Cargo| match (cargo, kind) {
            (Cargo::Packet(packet), Kind::Packet(kind)) => packet.kind == kind,
            (Cargo::Image(_), Kind::Image) => true,
            (Cargo::Packet(_) | Cargo::Image(_) | Cargo::Fin, _) => false,
        };
        let Some(last) = self.ensemble.conns[end.conn].ends[end.end].incoming.items().position(is_kind)
        else {
            return false;
        };
        let life = self.ensemble.hosts[to].life;
        for _ in 0..=last {
            let this = &mut self.ensemble.conns[end.conn].ends[end.end];
            if !this.open || self.oracle.violation.is_some() || self.ensemble.hosts[to].life != life {
                break;
            }
            let Some(cargo) = this.incoming.take_next() else { break };
            let input = self.clock.input_of(end.id(), cargo);
            self.clock.scripted().arrived = describe::zxid_of(&input);
            self.clock.remark(|| describe::arrival(&input, last > 0));
            self.take_in(to, end.into(), input);
        }
        true
    }

    pub(super) fn loses(&mut self, host: HostIndex, peer: HostIndex, old: usize) -> bool {
        let Some(end) = self.ensemble.open_end(&self.clock, host, peer, old) else { return false };
        self.take_in(host, end.into(), Input::PeerLost { conn: end.id() });
        true
    }

    pub(super) fn hears(&mut self, host: HostIndex, client: usize, old: usize) -> bool {
        let Some(conn) = self.population.client_conn(&self.ensemble, host, client, old) else { return false };
        if !self.population.client_conns[conn]
            .to_member
            .items()
            .next()
            .is_some_and(|flow| matches!(flow, Flow::Frame(_)))
        {
            return false;
        }
        let Some(flow) = self.population.client_conns[conn].to_member.take_next() else { return false };
        let input = self.population.input_from_client(conn, flow);
        self.clock.remark(|| describe::arrival(&input, false));
        self.take_in(host, Source::Client(conn), input);
        true
    }

    fn drops(&mut self, host: HostIndex, client: usize, old: usize) -> bool {
        let Some(conn) = self.population.client_conn(&self.ensemble, host, client, old) else { return false };
        let input = self.population.input_from_client(conn, Flow::Fin);
        self.take_in(host, Source::Client(conn), input);
        true
    }

    /// What is prompt happens.
    fn pump(&mut self) {
        if self.prompt == Prompt::default() {
            return;
        }
        for _ in 0..MAX_PUMPED {
            let moved = !self.is_over()
                && (self.prompt.disks && self.pump_disks()
                    || self.prompt.votes && self.pump_votes()
                    || self.prompt.clients && self.pump_clients());
            if !moved {
                return;
            }
        }
    }

    fn pump_disks(&mut self) -> bool {
        (0..self.ensemble.hosts.len()).any(|host| self.store_by_script(host, None, true))
    }

    fn pump_votes(&mut self) -> bool {
        let members = self.ensemble.hosts.len();
        (0..members * members).any(|pair| self.vote_arrives(pair / members, pair % members, false))
    }

    fn pump_clients(&mut self) -> bool {
        for conn in 0..self.population.client_conns.len() {
            let this = &mut self.population.client_conns[conn];
            let (host, life) = (this.host, this.life);
            if this.member_open
                && self.ensemble.hosts[host].life == life
                && let Some(flow) = this.to_member.take_next()
            {
                let input = self.population.input_from_client(conn, flow);
                self.take_in(host, Source::Client(conn), input);
                return true;
            }
            if self.population.client_conns[conn].client_open
                && let Some(flow) = self.population.client_conns[conn].to_client.take_next()
            {
                self.population.client_receives(
                    &mut self.clock,
                    &self.ensemble,
                    &mut self.oracle,
                    conn,
                    flow,
                );
                return true;
            }
        }
        false
    }
}
