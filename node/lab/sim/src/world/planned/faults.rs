//! What can be broken in a planned world, and a look at what is.

use std::time::Duration;

use harness_core::condition::Delay;
use harness_world::links::Slower;
use node_wire::ids::ServerId;

use super::super::{Clockwork, Ensemble, Oracle, World};
use super::Word;
use crate::network::{Block, HostIndex};
use harness_world::dice::Chance;

/// What becomes of what a cut does not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severing {
    /// It waits for a retransmission that gets through; connecting fails.
    Silence,
    /// Connections break, and new ones are answered with a reset.
    Reject,
}

impl Severing {
    fn block(self) -> Block {
        match self {
            Self::Silence => Block::Drop,
            Self::Reject => Block::Refuse,
        }
    }
}

/// What a member's process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// It runs.
    Running,
    /// It stands still.
    Paused,
    /// There is none.
    Gone,
}

/// By how much a link is slower.
pub(super) fn slower(by: Delay) -> Slower {
    let whole = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Slower { latency_us: whole(by.latency), jitter_us: whole(by.jitter) }
}

/// The same as the bench has it.
pub(super) fn delay(by: Slower) -> Delay {
    Delay { latency: Duration::from_micros(by.latency_us), jitter: Duration::from_micros(by.jitter_us) }
}

impl Ensemble {
    fn places(&self, directions: &[(ServerId, ServerId)]) -> Vec<(HostIndex, HostIndex)> {
        let places = |(from, to): &(ServerId, ServerId)| self.index_of(*from).zip(self.index_of(*to));
        directions.iter().filter_map(places).collect()
    }

    pub(super) fn sever(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        directions: &[(ServerId, ServerId)],
        how: Severing,
    ) {
        for (from, to) in self.places(directions) {
            self.block(clock, oracle, from, to, how.block());
            if how == Severing::Reject {
                self.cut_pair(clock, oracle, from, to);
                self.cut_channel(clock, from, to);
            }
        }
    }

    pub(super) fn unsever(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        directions: &[(ServerId, ServerId)],
        how: Severing,
    ) {
        for (from, to) in self.places(directions) {
            self.unblock(clock, oracle, from, to, how.block());
        }
    }

    pub(super) fn waiting_between(&self, from: ServerId, to: ServerId) -> u64 {
        let Some((from, to)) = self.index_of(from).zip(self.index_of(to)) else { return 0 };
        let of_conns = self.conns.iter().flat_map(|conn| {
            (0..2)
                .filter(move |end| conn.ends[*end].host == to && conn.ends[1 - end].host == from)
                .map(move |end| conn.ends[end].incoming.len())
        });
        let (channel, rank) = self.channels.look(to, from);
        let waiting = of_conns.sum::<usize>() + channel.ends[rank].incoming.len();
        u64::try_from(waiting).expect("messages are few")
    }

    pub(super) fn process_of(&self, member: ServerId) -> Process {
        match self.index_of(member).and_then(|host| self.hosts[host].process.as_ref()) {
            None => Process::Gone,
            Some(process) if process.pauses > 0 => Process::Paused,
            Some(_) => Process::Running,
        }
    }
}

impl World {
    pub(super) fn kill_member(&mut self, member: ServerId, loses_unsynced: bool) {
        let Some(host) =
            self.ensemble.index_of(member).filter(|host| self.ensemble.hosts[*host].process.is_some())
        else {
            return;
        };
        self.clock.drawn.power = if loses_unsynced { Chance::ALWAYS } else { Chance::NEVER };
        self.crash(host);
        self.note_word(host, Word::Exited("killed by a signal".to_owned()));
    }

    pub(super) fn pause_member(&mut self, member: ServerId) {
        if let Some(host) = self.ensemble.index_of(member)
            && self.ensemble.pause(&mut self.clock, &mut self.oracle, host)
        {
            self.note_word(host, Word::Paused);
        }
    }

    pub(super) fn resume_member(&mut self, member: ServerId) {
        if self.ensemble.process_of(member) != Process::Paused {
            return;
        }
        let Some(host) = self.ensemble.index_of(member) else { return };
        self.note_word(host, Word::Resumed);
        let life = self.ensemble.hosts[host].life;
        self.ensemble.stepping = None;
        // What came meanwhile is taken in now, and may break it.
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.resume(host, life))).err();
        self.end_the_broken(panic, Some(host));
    }

    pub(super) fn shift_clock_of(&mut self, member: ServerId, offset_ms: i64) {
        let Some(host) = self.ensemble.index_of(member) else { return };
        let before = std::mem::replace(&mut self.the_plan().offsets_ms[host], offset_ms);
        self.ensemble.hosts[host].clock.wall_offset_ms += offset_ms - before;
        self.note_word(host, Word::Clock { offset_ms });
    }
}
