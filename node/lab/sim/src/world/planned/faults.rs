//! What can be broken in a planned world, and a look at what is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use harness_core::condition::{Condition, Delay, LinkCondition, Quality};
use harness_core::cut::{Pair, Severing};
use harness_core::virtual_ensemble::Process;
use harness_world::dice::Chance;
use harness_world::links::Slower;
use node_core::commit_times::CommitTimes;
use node_wire::ids::ServerId;
use runs::events::{Event, Said};

use super::super::{Clockwork, Ensemble, Oracle, World};
use super::server;
use crate::network::{Block, HostIndex, Links};

/// Whether such a world has conditions of this quality.
pub(super) fn can(quality: Quality) -> Result<(), String> {
    match quality {
        Quality::Passage | Quality::Delay | Quality::Process | Quality::Clock => Ok(()),
        Quality::Disk => Err("its disks fail only as a seed of `harness sim` draws it".to_owned()),
    }
}

/// By how much a link is slower.
fn slower(by: Delay) -> Slower {
    let whole = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Slower { latency_us: whole(by.latency), jitter_us: whole(by.jitter) }
}

/// What a direction is like, as far as it lets anything pass.
pub(super) fn link(links: &Links, from: HostIndex, to: HostIndex) -> LinkCondition {
    let Slower { latency_us, jitter_us } = links.slower(from, to);
    let delay =
        Delay { latency: Duration::from_micros(latency_us), jitter: Duration::from_micros(jitter_us) };
    LinkCondition { delay, ..LinkCondition::default() }
}

fn block(how: Severing) -> Block {
    match how {
        Severing::Silence => Block::Drop,
        Severing::Reject => Block::Refuse,
    }
}

impl Ensemble {
    /// The machines of a direction's members.
    pub(super) fn place(&self, pair: Pair) -> Option<(HostIndex, HostIndex)> {
        self.index_of(server(pair.from)).zip(self.index_of(server(pair.to)))
    }

    fn sever(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, pair: Pair, how: Severing) {
        let Some((from, to)) = self.place(pair) else { return };
        self.block(clock, oracle, from, to, block(how));
        if how == Severing::Reject {
            self.cut_pair(clock, oracle, from, to);
            self.cut_channel(clock, from, to);
        }
    }

    fn unsever(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, pair: Pair, how: Severing) {
        if let Some((from, to)) = self.place(pair) {
            self.unblock(clock, oracle, from, to, block(how));
        }
    }

    fn change_link(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, pair: Pair, link: LinkCondition) {
        if let Some(how) = link.severed {
            self.sever(clock, oracle, pair, how);
        }
        if let Some((from, to)) = self.place(pair).filter(|_| !link.delay.is_none()) {
            self.links.keep_delays();
            self.links.slow(from, to, slower(link.delay));
        }
    }

    fn mend_link(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, pair: Pair, link: LinkCondition) {
        if let Some(how) = link.severed {
            self.unsever(clock, oracle, pair, how);
        }
        if let Some((from, to)) = self.place(pair).filter(|_| !link.delay.is_none()) {
            self.links.quicken(from, to, slower(link.delay));
            if !self.links.are_slow() {
                self.links.keep_delays();
            }
        }
    }

    pub(super) fn waiting_between(&self, pair: Pair) -> u64 {
        let Some((from, to)) = self.place(pair) else { return 0 };
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
            Some(process) if process.pauses > 0 => Process::Stopped,
            Some(_) => Process::Running,
        }
    }
}

impl World {
    /// From now on this holds.
    pub(super) fn imposed(&mut self, condition: Condition) {
        match condition {
            Condition::Link(pair, link) => {
                self.ensemble.change_link(&mut self.clock, &mut self.oracle, pair, link);
            }
            Condition::Ended { member, loses_unsynced } => self.kill_member(server(member), loses_unsynced),
            Condition::Stopped(member) => self.pause_member(server(member)),
            Condition::Clock { member, offset_ns } => {
                self.shift_clock_of(server(member), offset_ns / 1_000_000);
            }
        }
    }

    /// It holds no more.
    pub(super) fn lifted(&mut self, condition: Condition) {
        match condition {
            Condition::Link(pair, link) => {
                self.ensemble.mend_link(&mut self.clock, &mut self.oracle, pair, link);
            }
            Condition::Ended { member, .. } => self.start_member(server(member)),
            Condition::Stopped(member) => self.resume_member(server(member)),
            Condition::Clock { member, .. } => self.shift_clock_of(server(member), 0),
        }
    }

    pub(super) fn start_member(&mut self, member: ServerId) {
        let Some(host) =
            self.ensemble.index_of(member).filter(|host| self.ensemble.hosts[*host].process.is_none())
        else {
            return;
        };
        self.note_event(host, Event::Spawned);
        // What a process that was killed had counted went with it.
        self.the_plan().commits[host] = CommitTimes::default();
        self.ensemble.stepping = None;
        let panic = catch_unwind(AssertUnwindSafe(|| {
            self.chaos.start_process(&mut self.clock, &mut self.ensemble, &mut self.oracle, host)
        }))
        .err();
        self.end_the_broken(panic, Some(host));
        if self.ensemble.hosts[host].process.is_some() {
            self.note_event(host, Event::Said(Said::Started {}));
        }
    }

    fn kill_member(&mut self, member: ServerId, loses_unsynced: bool) {
        let Some(host) =
            self.ensemble.index_of(member).filter(|host| self.ensemble.hosts[*host].process.is_some())
        else {
            return;
        };
        self.clock.drawn.power = if loses_unsynced { Chance::ALWAYS } else { Chance::NEVER };
        self.crash(host);
        self.note_event(host, Event::Exited("killed by a signal".to_owned()));
    }

    fn pause_member(&mut self, member: ServerId) {
        if let Some(host) = self.ensemble.index_of(member)
            && self.ensemble.pause(&mut self.clock, &mut self.oracle, host)
        {
            self.note_event(host, Event::Paused);
        }
    }

    fn resume_member(&mut self, member: ServerId) {
        if self.ensemble.process_of(member) != Process::Stopped {
            return;
        }
        let Some(host) = self.ensemble.index_of(member) else { return };
        self.note_event(host, Event::Resumed);
        let life = self.ensemble.hosts[host].life;
        self.ensemble.stepping = None;
        // What came meanwhile is taken in now, and may break it.
        let panic = catch_unwind(AssertUnwindSafe(|| self.resume(host, life))).err();
        self.end_the_broken(panic, Some(host));
    }

    fn shift_clock_of(&mut self, member: ServerId, offset_ms: i64) {
        let Some(host) = self.ensemble.index_of(member) else { return };
        let before = std::mem::replace(&mut self.the_plan().offsets_ms[host], offset_ms);
        self.ensemble.hosts[host].clock.wall_offset_ms += offset_ms - before;
        self.note_event(host, Event::Clock { offset_ns: offset_ms.saturating_mul(1_000_000), gap_ns: None });
    }
}
