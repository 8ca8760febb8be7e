//! Faults: what the nemesis does to a world, and how each fault ends.
//!
//! A fault is resolved when it is injected (who leads now), counted, and carries its own end with it, so that
//! healing is nothing but ending all faults at once. Faults overlap freely.

use node_core::{Plant, Role};

use super::{Event, World};
use crate::dice::{Chance, Dice, HALF, Part};
use crate::drawn::FaultKind;
use crate::network::{Block, HostIndex};

/// One time in three.
const THIRD: Chance = Chance(3_333);

/// Faults in force at once, at most.
const MAX_FAULTS: usize = 24;

/// How far a wall clock jumps at most.
const MAX_JUMP_MS: u64 = 3_600_000;

/// How a fault ends.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    /// The process starts again.
    Start(HostIndex),
    /// The process of this life goes on.
    Resume(HostIndex, u64),
    /// Links pass again.
    Unblock(Vec<(HostIndex, HostIndex)>, Block),
}

impl<P: Plant> World<P> {
    /// Injects the next fault and plans the one after it.
    pub(super) fn next_fault(&mut self) {
        if !self.in_chaos() {
            return;
        }
        self.fate = Dice::part(self.drawn.seed, Part::Turn(self.turn));
        self.turn += 1;
        let delay = self.fate.around(self.drawn.fault_every_us);
        self.plan(delay.max(1), Event::Nemesis);
        if self.reduction.turns.contains(&(self.turn - 1)) {
            return;
        }
        if self.faults.len() < MAX_FAULTS
            && let Some(kind) = self.choose_fault()
        {
            self.inject(kind);
        }
    }

    fn choose_fault(&mut self) -> Option<FaultKind> {
        let sum: u64 = self.drawn.weights.iter().sum();
        if sum == 0 {
            return None;
        }
        let mut drawn = self.fate.between(0, sum - 1);
        FaultKind::ALL.into_iter().zip(self.drawn.weights).find_map(|(kind, weight)| {
            if drawn < weight {
                return Some(kind);
            }
            drawn -= weight;
            None
        })
    }

    fn inject(&mut self, kind: FaultKind) {
        self.world_line("fault", [u64::from(self.drawn.weights[kind as usize] > 0), 0], || {
            kind.name().to_owned()
        });
        match kind {
            FaultKind::CrashOne => {
                let host = self.anyone();
                self.crash_for_a_while(host);
            }
            FaultKind::CrashLeader => {
                let host = self.leader();
                self.crash_for_a_while(host);
            }
            FaultKind::CrashMany => self.crash_many(),
            FaultKind::PauseOne => {
                let host = self.anyone();
                self.pause_for_a_while(host);
            }
            FaultKind::PauseLeader => {
                let host = self.leader();
                self.pause_for_a_while(host);
            }
            FaultKind::PartitionHalves => {
                let sides: Vec<bool> = (0..self.hosts.len()).map(|_| self.fate.chance(HALF)).collect();
                self.partition(&sides);
            }
            FaultKind::IsolateLeader => {
                let host = self.leader();
                self.isolate(host);
            }
            FaultKind::DeposeLeader => self.depose(),
            FaultKind::IsolateOne => {
                let host = self.anyone();
                self.isolate(host);
            }
            FaultKind::OneWay => self.one_way(),
            FaultKind::Reset => self.reset(),
            FaultKind::SlowDisk => {
                let host = self.anyone();
                self.hosts[host].slow_until = self.now + self.fate.around(self.drawn.fault_us);
                self.counters.slow_disks += 1;
            }
            FaultKind::WallJump => self.wall_jump(),
            FaultKind::CutClients => self.cut_clients(),
        }
    }

    fn anyone(&mut self) -> HostIndex {
        self.fate.index(self.hosts.len())
    }

    /// Whoever leads; anyone when nobody does.
    fn leader(&mut self) -> HostIndex {
        let leads = |established: bool| {
            self.hosts.iter().position(|host| {
                host.process.as_ref().is_some_and(|process| {
                    process.role == Role::Leading && process.established == established
                })
            })
        };
        match leads(true).or_else(|| leads(false)) {
            Some(host) => host,
            None => self.anyone(),
        }
    }

    fn lasts_a_while(&mut self, undo: Undo) {
        let duration_us = self.fate.around(self.drawn.fault_us).max(1);
        self.lasts(undo, duration_us);
    }

    /// Notes how a fault ends and plans that end.
    fn lasts(&mut self, undo: Undo, duration_us: u64) {
        let fault = self.next_fault;
        self.next_fault += 1;
        self.faults.insert(fault, undo);
        self.plan(duration_us, Event::Undo { fault });
    }

    pub(super) fn undo(&mut self, fault: u64) {
        match self.faults.remove(&fault) {
            None => {}
            Some(Undo::Start(host)) => self.start_process(host),
            Some(Undo::Resume(host, life)) => self.resume(host, life),
            Some(Undo::Unblock(links, block)) => {
                self.world_line("unblock", [fault, 0], || format!("{links:?}"));
                for (from, to) in links {
                    self.unblock(from, to, block);
                }
            }
        }
    }

    /// Ends every fault.
    pub(super) fn undo_all(&mut self) {
        while let Some((fault, _)) = self.faults.first_key_value() {
            let fault = *fault;
            self.undo(fault);
        }
        for host in 0..self.hosts.len() {
            self.pardon(host);
            self.start_process(host);
        }
    }

    fn crash_for_a_while(&mut self, host: HostIndex) {
        self.doom(host);
        self.lasts_a_while(Undo::Start(host));
    }

    fn crash_many(&mut self) {
        let all = self.fate.chance(HALF);
        for host in 0..self.hosts.len() {
            if all || self.fate.chance(HALF) {
                self.crash(host);
                self.lasts_a_while(Undo::Start(host));
            }
        }
    }

    fn pause_for_a_while(&mut self, host: HostIndex) {
        let life = self.hosts[host].life;
        if self.pause(host) {
            self.lasts_a_while(Undo::Resume(host, life));
        }
    }

    fn isolate(&mut self, host: HostIndex) {
        let links = self.links_around(host);
        self.block_for_a_while(links);
    }

    fn links_around(&self, host: HostIndex) -> Vec<(HostIndex, HostIndex)> {
        let sides: Vec<bool> = (0..self.hosts.len()).map(|other| other == host).collect();
        links_between(&sides)
    }

    /// Long enough for the others to elect, and then some time in which the old leader does not know it.
    fn depose(&mut self) {
        let host = self.leader();
        let life = self.hosts[host].life;
        if !self.pause(host) {
            return;
        }
        let timeout_us = self.drawn.peer_timeout_ms * 1000;
        let pause_us = self.fate.between(timeout_us, 4 * timeout_us);
        let after_us = self.fate.between(0, 2 * timeout_us);
        self.lasts(Undo::Resume(host, life), pause_us);
        let links = self.links_around(host);
        let block = if self.fate.chance(HALF) { Block::Hold } else { Block::Drop };
        self.counters.partitions += 1;
        for (from, to) in &links {
            self.block(*from, *to, block);
        }
        self.lasts(Undo::Unblock(links, block), pause_us + after_us);
    }

    /// Members of different sides do not reach each other.
    fn partition(&mut self, sides: &[bool]) {
        self.block_for_a_while(links_between(sides));
    }

    fn one_way(&mut self) {
        let mut links = Vec::new();
        for from in 0..self.hosts.len() {
            for to in 0..self.hosts.len() {
                if from != to && self.fate.chance(THIRD) {
                    links.push((from, to));
                }
            }
        }
        self.block_for_a_while(links);
    }

    fn block_for_a_while(&mut self, links: Vec<(HostIndex, HostIndex)>) {
        if links.is_empty() {
            return;
        }
        let block = if self.fate.chance(HALF) { Block::Hold } else { Block::Drop };
        let breaks = self.fate.chance(THIRD);
        self.counters.partitions += 1;
        self.world_line("block", [u64::from(block == Block::Drop), u64::from(breaks)], || {
            format!("{block:?} {links:?}{}", if breaks { ", connections break" } else { "" })
        });
        for (from, to) in &links {
            self.block(*from, *to, block);
            if breaks {
                self.cut_pair(*from, *to);
                self.cut_channel(*from, *to);
            }
        }
        self.lasts_a_while(Undo::Unblock(links, block));
    }

    fn reset(&mut self) {
        let (one, other) = (self.anyone(), self.anyone());
        if one == other {
            return;
        }
        self.counters.resets += 1;
        self.world_line("reset", [0, 0], || format!("{one} {other}"));
        self.cut_pair(one, other);
        if self.fate.chance(HALF) {
            self.cut_channel(one, other);
        }
    }

    fn wall_jump(&mut self) {
        let host = self.anyone();
        let jump = i64::try_from(self.fate.between(0, 2 * MAX_JUMP_MS)).expect("a bounded jump");
        let centre = i64::try_from(MAX_JUMP_MS).expect("a bounded jump");
        self.hosts[host].clock.wall_offset_ms = jump - centre;
        self.write_down_clock(host);
        self.counters.wall_jumps += 1;
    }

    fn cut_clients(&mut self) {
        for client in 0..self.clients.len() {
            if self.fate.chance(HALF) {
                self.counters.client_cuts += 1;
                self.cut_client(client);
            }
        }
    }
}

/// Every direction from one side to the other.
fn links_between(sides: &[bool]) -> Vec<(HostIndex, HostIndex)> {
    let mut links = Vec::new();
    for (from, from_side) in sides.iter().enumerate() {
        links.extend((0..sides.len()).filter(|to| sides[*to] != *from_side).map(|to| (from, to)));
    }
    links
}
