//! Who moves a world: its queue and dice alone, its queue and dice with somebody who writes down, or a
//! script.
//!
//! A drawn world tells each transition here in one line; that costs a comparison when nobody writes. A
//! script's world asks here for what the dice would have decided.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use checker::history::{EventKind, Value};
use node_wire::election::Notification;
use node_wire::ids::Zxid;
use workloads::op::{Body, Object};
use workloads::{Op, Outcome};

use super::Clockwork;
use crate::drawn::Drawn;
use crate::network::HostIndex;
use crate::script::{Crash, Line, Transition};
use harness_world::dice::Dice;

/// Lines that are written down of one world at most.
const MAX_LINES: usize = 400_000;

/// Who moves a world.
pub(super) enum Mover {
    /// Nobody but its dice.
    None,
    /// The dice, and everything is written down.
    Recording(Box<Recording>),
    /// A script.
    Scripted(Box<Scripted>),
}

/// What is written down.
#[derive(Default)]
pub(super) struct Recording {
    pub(super) lines: Vec<Line>,
    /// Ends of quorum connections that their processes know of.
    pub(super) known: BTreeSet<(usize, usize)>,
    /// The member that is in the middle of a step, the step's line, and the effects carried out so far.
    pub(super) stepping: Option<(HostIndex, usize, u64)>,
    /// The member whose disk is at work, and the line of it.
    storing: Option<(HostIndex, usize)>,
    /// The crash that is going on.
    crash: Crash,
}

/// The election connection of a pair, as a script moves it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    /// Counts connections.
    pub(super) generation: u64,
    pub(super) up: bool,
    /// The connection that each end believes in, the smaller id first.
    pub(super) known: [Option<u64>; 2],
}

/// What a script's world has beside a drawn one.
pub(super) struct Scripted {
    pub(super) members: usize,
    pub(super) pairs: Vec<Pair>,
    /// Votes in flight from one member to another, each with the connection it was sent on.
    pub(super) votes: Vec<VecDeque<(u64, Notification)>>,
    /// Dials that nobody has heard yet.
    pub(super) dials: Vec<(HostIndex, HostIndex)>,
    /// Connections of which a running process may still hold an end, oldest first.
    pub(super) conns: Vec<usize>,
    /// How each process is going to end.
    pub(super) crashes: Vec<Crash>,
    /// What a transition did, if anybody wants to read it.
    pub(super) notes: Option<Vec<String>>,
    /// The zxid of the last packet that arrived.
    pub(super) arrived: Option<Zxid>,
    /// Lists that replies have shown, with their key and version.
    pub(super) lists: Vec<(u64, Arc<[i64]>, i64)>,
}

/// Something that the dice decide at a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Whether the page cache is lost (1) or not (0).
    Power,
    /// The disk operation of the writer that is interrupted.
    Store,
    /// The disk operation of a snapshot that is interrupted.
    Snapshot,
    /// How much of something unsynchronized is kept.
    Keep,
}

impl Scripted {
    /// A world in which nothing happened yet.
    pub(super) fn new(members: usize, notes: bool) -> Self {
        Self {
            members,
            pairs: vec![Pair::default(); members * members],
            votes: vec![VecDeque::new(); members * members],
            dials: Vec::new(),
            conns: Vec::new(),
            crashes: vec![Crash::default(); members],
            notes: notes.then(Vec::new),
            arrived: None,
            lists: Vec::new(),
        }
    }

    /// The connection of a pair and the rank of the first of the two.
    pub(super) fn pair(&mut self, host: HostIndex, peer: HostIndex) -> (&mut Pair, usize) {
        let (small, large) = (host.min(peer), host.max(peer));
        (&mut self.pairs[small * self.members + large], usize::from(host > peer))
    }

    /// Votes on their way from one member to another.
    pub(super) fn votes(&mut self, from: HostIndex, to: HostIndex) -> &mut VecDeque<(u64, Notification)> {
        &mut self.votes[from * self.members + to]
    }

    /// An end of an election connection is gone, and what came on it with it.
    pub(super) fn forget(&mut self, host: HostIndex, peer: HostIndex) -> bool {
        let (pair, rank) = self.pair(host, peer);
        let Some(generation) = pair.known[rank].take() else { return false };
        pair.up &= generation != pair.generation;
        self.votes(peer, host).retain(|(sent_on, _)| *sent_on > generation);
        true
    }

    fn crashed(&mut self, host: HostIndex) {
        self.dials.retain(|(from, _)| *from != host);
        for peer in (0..self.members).filter(|peer| *peer != host) {
            self.forget(host, peer);
            self.votes(peer, host).clear();
        }
    }
}

impl Recording {
    fn push(&mut self, line: Line) {
        assert!(self.lines.len() < MAX_LINES, "a world does too much to be written down");
        self.lines.push(line);
    }
}

impl Clockwork {
    /// Writes a transition down, if anybody does.
    pub(super) fn write_down(&mut self, transition: impl FnOnce() -> Transition) {
        if !matches!(self.mover, Mover::Recording(_)) {
            return;
        }
        let transition = transition();
        let line = Line { at_us: Some(self.now.0), transition, note: String::new() };
        if let Mover::Recording(recording) = &mut self.mover {
            recording.push(line);
        }
    }

    /// What the dice decide, or the script.
    pub(super) fn decide(
        &mut self,
        host: HostIndex,
        choice: Choice,
        draw: impl FnOnce(&mut Dice, &Drawn) -> u64,
    ) -> u64 {
        if let Mover::Scripted(scripted) = &mut self.mover {
            let crash = &mut scripted.crashes[host];
            return match choice {
                Choice::Power => u64::from(crash.power),
                Choice::Store => crash.store.unwrap_or(1),
                Choice::Snapshot => crash.snapshot.unwrap_or(1),
                Choice::Keep if crash.keeps.is_empty() => 0,
                Choice::Keep => crash.keeps.remove(0),
            };
        }
        let decided = draw(&mut self.dice, &self.drawn);
        if let Mover::Recording(recording) = &mut self.mover {
            let crash = &mut recording.crash;
            match choice {
                Choice::Power => crash.power = decided > 0,
                Choice::Store => crash.store = Some(decided),
                Choice::Snapshot => crash.snapshot = Some(decided),
                Choice::Keep => crash.keeps.push(decided),
            }
        }
        decided
    }

    /// True when a script moves the world.
    pub(super) fn is_scripted(&self) -> bool {
        matches!(self.mover, Mover::Scripted(_))
    }

    /// A member's disk does what was written down last.
    pub(super) fn disk_begins(&mut self, host: HostIndex) {
        if let Mover::Recording(recording) = &mut self.mover {
            recording.storing = Some((host, recording.lines.len().saturating_sub(1)));
        }
    }

    /// And has done it, or failed.
    pub(super) fn disk_done(&mut self) {
        if let Mover::Recording(recording) = &mut self.mover {
            recording.storing = None;
        }
    }

    /// What a reply showed of a list, for clients of a script that go on from there.
    pub(super) fn show(&mut self, op: &Op, outcome: &Outcome) {
        let Mover::Scripted(scripted) = &mut self.mover else { return };
        let Some(version) = outcome.claims.version else { return };
        if op.object != Object::List {
            return;
        }
        let list = match (&outcome.value, &op.body) {
            (Value::List(list), _) => Some(Arc::clone(list)),
            (_, Body::Append { element, onto, .. }) if outcome.kind == EventKind::Ok => {
                Some(onto.iter().copied().chain([*element]).collect())
            }
            _ => None,
        };
        scripted.lists.extend(list.map(|list| (op.key, list, version)));
    }

    /// A process has ended, with all that was decided about it.
    pub(super) fn crashed(&mut self, host: HostIndex) {
        let at_us = Some(self.now.0);
        match &mut self.mover {
            Mover::None => {}
            Mover::Recording(recording) => {
                let mut crash = std::mem::take(&mut recording.crash);
                while crash.keeps.last() == Some(&0) {
                    crash.keeps.pop();
                }
                // A crash in the middle of a step has to be announced before that step.
                let step = recording.stepping.filter(|(stepping, _, _)| *stepping == host);
                crash.in_step = step.map(|(_, _, effects)| effects);
                // So has one that a failing disk leads to.
                let storing = recording.storing.filter(|(storing, _)| *storing == host);
                crash.at_failure = storing.is_some();
                let place = step.map(|(_, line, _)| line).or(storing.map(|(_, line)| line));
                let place = place.unwrap_or(recording.lines.len());
                let transition = Transition::Crash { host, crash };
                recording.lines.insert(place, Line { at_us, transition, note: String::new() });
            }
            Mover::Scripted(scripted) => scripted.crashed(host),
        }
    }

    /// Notes what a transition does, if anybody wants to read it.
    pub(super) fn remark(&mut self, text: impl FnOnce() -> String) {
        if !matches!(&self.mover, Mover::Scripted(scripted) if scripted.notes.is_some()) {
            return;
        }
        let text = text();
        if let Mover::Scripted(scripted) = &mut self.mover
            && let Some(notes) = &mut scripted.notes
            && !text.is_empty()
        {
            notes.push(text);
        }
    }

    /// A script's network takes a vote. False in a drawn world, which has its own.
    pub(super) fn takes_vote(&mut self, from: HostIndex, to: HostIndex, vote: &Notification) -> bool {
        let Mover::Scripted(scripted) = &mut self.mover else { return false };
        let (pair, rank) = scripted.pair(from, to);
        if pair.up && pair.known[rank] == Some(pair.generation) {
            let generation = pair.generation;
            scripted.votes(from, to).push_back((generation, vote.clone()));
        }
        true
    }

    /// A script's network takes a dial. False in a drawn world.
    pub(super) fn takes_dial(&mut self, from: HostIndex, to: Option<HostIndex>) -> bool {
        let Mover::Scripted(scripted) = &mut self.mover else { return false };
        scripted.dials.push((from, to.unwrap_or(from)));
        true
    }
}
