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

use super::stage::Stage;
use crate::drawn::Drawn;
use crate::network::HostIndex;
use crate::script::{Crash, Line, Target, Transition};
use crate::world::Clockwork;
use harness_world::dice::Dice;

/// Lines that are written down of one world at most.
const MAX_LINES: usize = 400_000;

/// Who moves a world.
pub(in crate::world) enum Mover {
    /// Nobody but its dice.
    None,
    /// The dice, and everything is written down.
    Recording(Box<Recording>),
    /// A script.
    Scripted(Box<Scripted>),
}

/// What is written down.
#[derive(Default)]
pub(in crate::world) struct Recording {
    pub(in crate::world) lines: Vec<Line>,
    /// Ends of quorum connections that their processes know of.
    pub(in crate::world) known: BTreeSet<(usize, usize)>,
    /// The member that is in the middle of a step, the step's line, and the effects carried out so far.
    pub(in crate::world) stepping: Option<(HostIndex, usize, u64)>,
    /// The member whose disk is at work, and the line of it.
    storing: Option<(HostIndex, usize)>,
    /// The crash that is going on.
    crash: Crash,
}

/// The election connection of a pair, as a script moves it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::world) struct Pair {
    /// Counts connections.
    pub(in crate::world) generation: u64,
    pub(in crate::world) up: bool,
    /// The connection that each end believes in, the smaller id first.
    pub(in crate::world) known: [Option<u64>; 2],
}

/// What a script's world has beside a drawn one.
pub(in crate::world) struct Scripted {
    pub(in crate::world) members: usize,
    pub(in crate::world) pairs: Vec<Pair>,
    /// Votes in flight from one member to another, each with the connection it was sent on.
    pub(in crate::world) votes: Vec<VecDeque<(u64, Notification)>>,
    /// Dials that nobody has heard yet.
    pub(in crate::world) dials: Vec<(HostIndex, HostIndex)>,
    /// Connections of which a running process may still hold an end, oldest first.
    pub(in crate::world) conns: Vec<usize>,
    /// How each process is going to end.
    pub(in crate::world) crashes: Vec<Crash>,
    /// What a transition did, if anybody wants to read it.
    pub(in crate::world) notes: Option<Vec<String>>,
    /// The zxid of the last packet that arrived.
    pub(in crate::world) arrived: Option<Zxid>,
    /// Lists that replies have shown, with their key and version.
    pub(in crate::world) lists: Vec<(u64, Arc<[i64]>, i64)>,
}

/// Something that the dice decide at a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Choice {
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
    pub(in crate::world) fn new(members: usize, notes: bool) -> Self {
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
    pub(in crate::world) fn pair(&mut self, host: HostIndex, peer: HostIndex) -> (&mut Pair, usize) {
        let (small, large) = (host.min(peer), host.max(peer));
        (&mut self.pairs[small * self.members + large], usize::from(host > peer))
    }

    /// Votes on their way from one member to another.
    pub(in crate::world) fn votes(
        &mut self,
        from: HostIndex,
        to: HostIndex,
    ) -> &mut VecDeque<(u64, Notification)> {
        &mut self.votes[from * self.members + to]
    }

    /// An end of an election connection is gone, and what came on it with it.
    pub(in crate::world) fn forget(&mut self, host: HostIndex, peer: HostIndex) -> bool {
        let (pair, rank) = self.pair(host, peer);
        let Some(generation) = pair.known[rank].take() else { return false };
        pair.up &= generation != pair.generation;
        self.votes(peer, host).retain(|(sent_on, _)| *sent_on > generation);
        true
    }

    pub(in crate::world) fn crashed(&mut self, host: HostIndex) {
        self.dials.retain(|(from, _)| *from != host);
        for peer in (0..self.members).filter(|peer| *peer != host) {
            self.forget(host, peer);
            self.votes(peer, host).clear();
        }
    }
}

impl Recording {
    pub(in crate::world) fn push(&mut self, line: Line) {
        assert!(self.lines.len() < MAX_LINES, "a world does too much to be written down");
        self.lines.push(line);
    }
}

impl Clockwork {
    /// Writes a transition down, if anybody does.
    pub(in crate::world) fn write_down(&mut self, transition: impl FnOnce() -> Transition) {
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
    pub(in crate::world) fn decide(
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
    pub(in crate::world) fn is_scripted(&self) -> bool {
        matches!(self.mover, Mover::Scripted(_))
    }

    /// A member's disk does what was written down last.
    pub(in crate::world) fn disk_begins(&mut self, host: HostIndex) {
        if let Mover::Recording(recording) = &mut self.mover {
            recording.storing = Some((host, recording.lines.len().saturating_sub(1)));
        }
    }

    /// And has done it, or failed.
    pub(in crate::world) fn disk_done(&mut self) {
        if let Mover::Recording(recording) = &mut self.mover {
            recording.storing = None;
        }
    }

    /// What a reply showed of a list, for clients of a script that go on from there.
    pub(in crate::world) fn show(&mut self, op: &Op, outcome: &Outcome) {
        let Mover::Scripted(scripted) = &mut self.mover else { return };
        let Some(version) = outcome.claims.version else { return };
        if op.object != Object::LIST {
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
    pub(in crate::world) fn crashed(&mut self, host: HostIndex) {
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
    pub(in crate::world) fn remark(&mut self, text: impl FnOnce() -> String) {
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
    pub(in crate::world) fn takes_vote(
        &mut self,
        from: HostIndex,
        to: HostIndex,
        vote: &Notification,
    ) -> bool {
        let Mover::Scripted(scripted) = &mut self.mover else { return false };
        let (pair, rank) = scripted.pair(from, to);
        if pair.up && pair.known[rank] == Some(pair.generation) {
            let generation = pair.generation;
            scripted.votes(from, to).push_back((generation, vote.clone()));
        }
        true
    }

    /// A script's network takes a dial. False in a drawn world.
    pub(in crate::world) fn takes_dial(&mut self, from: HostIndex, to: Option<HostIndex>) -> bool {
        let Mover::Scripted(scripted) = &mut self.mover else { return false };
        scripted.dials.push((from, to.unwrap_or(from)));
        true
    }

    /// The member carried out an effect of its step.
    pub(in crate::world) fn effect_done(&mut self) {
        if let Mover::Recording(recording) = &mut self.mover
            && let Some((_, _, effects)) = &mut recording.stepping
        {
            *effects += 1;
        }
    }

    /// The member's step is over.
    pub(in crate::world) fn step_done(&mut self) {
        if let Mover::Recording(recording) = &mut self.mover {
            recording.stepping = None;
        }
    }

    pub(in crate::world) fn scripted(&mut self) -> &mut Scripted {
        match &mut self.mover {
            Mover::Scripted(scripted) => scripted,
            Mover::None | Mover::Recording(_) => unreachable!("only a script moves a world by hand"),
        }
    }

    /// Connections of which a running process may hold an end, oldest first.
    pub(in crate::world) fn held(&self) -> &[usize] {
        match &self.mover {
            Mover::Scripted(scripted) => &scripted.conns,
            Mover::None | Mover::Recording(_) => &[],
        }
    }

    pub(in crate::world) fn write_down_look(&mut self) {
        let target = match self.stage {
            Stage::Chaos | Stage::Over => return,
            Stage::Quorum { .. } | Stage::Electing { .. } => Target::Elected,
            Stage::Serving { .. } | Stage::Settling { .. } => Target::Serving,
            Stage::Converging { .. } => Target::Converged,
            Stage::Closing { .. } => Target::Closed,
        };
        self.write_down(|| Transition::Look(target));
    }
}

impl Recording {
    /// True when the last line is that this member's writer finished.
    pub(in crate::world) fn just_wrote(&self, host: HostIndex) -> bool {
        let last = self.lines.last().map(|line| &line.transition);
        matches!(last, Some(Transition::Wrote { host: wrote, .. }) if *wrote == host)
    }

    pub(in crate::world) fn hears_at_once(&mut self) {
        if let Some(line) = self.lines.last_mut()
            && let Transition::Wrote { host, ops } = line.transition
        {
            line.transition = Transition::Stored { host, ops };
        }
    }
}
