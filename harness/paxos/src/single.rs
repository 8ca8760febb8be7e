//! Paxos for one value. Each member is proposer, acceptor and learner at once.
//!
//! **Phase one: prepare.** A proposer takes a ballot beyond all that it has heard of, and asks the acceptors
//! to promise that they accept nothing below it. An acceptor that promises says which proposal it accepted
//! last.
//!
//! **Phase two: accept.** When a quorum has promised, the proposer asks for a value to be accepted: the value
//! of the highest proposal that any of the quorum told it of, and its own value only if there was none. An
//! acceptor accepts unless it has promised a higher ballot meanwhile.
//!
//! A value is *chosen* when a quorum has accepted one proposal of it. Whoever hears that from a quorum has
//! learned it.
//!
//! **Why no second value is chosen.** Let ballot *b* have chosen *v*. The quorum that promised a later ballot
//! shares an acceptor with the quorum that accepted *b*. That acceptor accepted *b* before it promised, else
//! it would have refused *b*; so it tells the later proposer of *b*, or of a proposal between the two, and
//! those had the value *v* for the same reason. So the later proposer takes *v* over. Three things can be
//! seen then: the value was chosen, and is found (scenario `chosen`); it was not chosen and is found, and
//! gets chosen (`visible`); it was not chosen and is not found, and its own proposal fails (`hidden`).
//!
//! **What must be on disk.** An acceptor's promise and its last accepted proposal, before it answers: one
//! that forgets a promise accepts what it must not (scenario `forgotten-promise`). And a proposer's round,
//! before it asks: one that takes the same ballot twice may propose two values under it.
//!
//! **What is not promised.** Two proposers can outbid each other for ever (scenario `livelock`; Fischer,
//! Lynch and Paterson proved that something like it can't be excluded). A random back-off ends it in
//! practice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use checker::history::Value as Told;
use harness_protocols::{Broken, Id, Input, Io, Member as Seen, Protocol, Request};
use workloads::op::Body;
use workloads::{Kind, Op, Outcome};

use crate::ballot::Ballot;

/// What is proposed.
pub type Value = i64;

/// How long a proposer waits at least before it tries again, in microseconds.
const RETRY_US: u64 = 200_000;

/// The protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Paxos {
    /// Whether a proposer waits for a random while before it tries again.
    pub backs_off: bool,
    /// Whether acceptors say what they accepted, and whom they refuse. Without it nobody learns anything, and
    /// what is chosen is seen by who looks at all disks.
    pub tells: bool,
    /// What it does wrong.
    pub bug: Option<Bug>,
}

impl Default for Paxos {
    fn default() -> Self {
        Self { backs_off: true, tells: true, bug: None }
    }
}

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Promise that you accept nothing below this ballot.
    Prepare(Ballot),
    /// I promise, and this is what I accepted last.
    Promise(Ballot, Option<(Ballot, Value)>),
    /// Accept this.
    Accept(Ballot, Value),
    /// I accepted it.
    Accepted(Ballot, Value),
    /// No: I promised this other ballot.
    Refuse(Ballot, Ballot),
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prepare(ballot) => write!(f, "prepare {ballot}"),
            Self::Promise(ballot, None) => write!(f, "promise {ballot}"),
            Self::Promise(ballot, Some((earlier, value))) => {
                write!(f, "promise {ballot} ({earlier} {value})")
            }
            Self::Accept(ballot, value) => write!(f, "accept {ballot} {value}"),
            Self::Accepted(ballot, value) => write!(f, "accepted {ballot} {value}"),
            Self::Refuse(ballot, promised) => write!(f, "refuse {ballot} for {promised}"),
        }
    }
}

/// What is on disk. Each record replaces the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kept {
    /// The highest round that it proposed in.
    pub round: u32,
    /// The highest ballot that it promised.
    pub promised: Ballot,
    /// The proposal that it accepted last.
    pub accepted: Option<(Ballot, Value)>,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {}, promised {}", self.round, self.promised)?;
        self.accepted.map_or(Ok(()), |(ballot, value)| write!(f, ", accepted {ballot} {value}"))
    }
}

/// The end of a proposer's patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Retry;

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("retry")
    }
}

/// A proposal under way.
#[derive(Clone, Debug, Hash)]
struct Proposal {
    ballot: Ballot,
    value: Value,
    /// Who promised, and what each had accepted.
    promises: BTreeMap<Id, Option<(Ballot, Value)>>,
    /// How many promises came, whoever sent them.
    came: usize,
    /// Whether it is in phase two.
    accepts: bool,
}

/// A member.
#[derive(Clone, Debug, Hash)]
pub struct Member {
    kept: Kept,
    /// The highest round that it has heard of.
    heard: u32,
    proposal: Option<Proposal>,
    /// How often it tried, for its back-off.
    tries: u32,
    /// Who accepted what.
    accepted: BTreeMap<Ballot, (Value, BTreeSet<Id>)>,
    learned: Option<Value>,
    /// Clients that wait, with what they asked for.
    waiting: BTreeMap<Request, Value>,
}

impl Paxos {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn quorum(&self, io: &Io<'_, Self>) -> usize {
        if self.has(Bug::Minority) { usize::from(io.members) / 2 } else { io.quorum() }.max(1)
    }

    fn write(&self, member: &Member, unless: Bug, io: &mut Io<'_, Self>) {
        if !self.has(unless) {
            io.write(member.kept);
        }
    }

    /// Phase one begins.
    fn propose(&self, member: &mut Member, value: Value, io: &mut Io<'_, Self>) {
        member.kept.round = member.kept.round.max(member.heard).max(member.kept.promised.round) + 1;
        self.write(member, Bug::ForgetsRound, io);
        let ballot = Ballot::of(member.kept.round, io.me);
        let promises = BTreeMap::new();
        member.proposal = Some(Proposal { ballot, value, promises, came: 0, accepts: false });
        if self.has(Bug::NoPhaseOne) || self.has(Bug::FirstOnly) {
            self.ask_to_accept(member, io);
        } else {
            io.send_all(&Message::Prepare(ballot));
        }
        member.tries += 1;
        let more = if self.backs_off { io.random(RETRY_US << member.tries.min(5)) } else { 0 };
        io.set(Retry, RETRY_US + more);
    }

    /// An acceptor is asked to promise.
    fn prepare(&self, member: &mut Member, from: Id, ballot: Ballot, io: &mut Io<'_, Self>) {
        if ballot < member.kept.promised {
            self.refuse(member, from, ballot, io);
            return;
        }
        if !self.has(Bug::NoPromise) {
            member.kept.promised = ballot;
        }
        self.write(member, Bug::ForgetsPromise, io);
        let accepted = if self.has(Bug::HidesAccepted) { None } else { member.kept.accepted };
        io.send(from, Message::Promise(ballot, accepted));
    }

    /// A proposer is promised.
    fn promised(
        &self,
        member: &mut Member,
        from: Id,
        (ballot, accepted): (Ballot, Option<(Ballot, Value)>),
        io: &mut Io<'_, Self>,
    ) {
        let quorum = self.quorum(io);
        let Some(proposal) = &mut member.proposal else { return };
        if proposal.ballot != ballot || proposal.accepts {
            return;
        }
        proposal.promises.insert(from, accepted);
        proposal.came += 1;
        let promised =
            if self.bug == Some(Bug::CountsTwice) { proposal.came } else { proposal.promises.len() };
        if promised < quorum {
            return;
        }
        let told = proposal.promises.values().flatten();
        let adopted = match self.bug {
            Some(Bug::NoAdoption) => None,
            Some(Bug::AdoptsLowest) => told.min(),
            _ => told.max(),
        };
        if let Some((_, value)) = adopted {
            proposal.value = *value;
        }
        self.ask_to_accept(member, io);
    }

    /// Phase two begins.
    fn ask_to_accept(&self, member: &mut Member, io: &mut Io<'_, Self>) {
        let Some(proposal) = &mut member.proposal else { return };
        proposal.accepts = true;
        let message = Message::Accept(proposal.ballot, proposal.value);
        io.send_all(&message);
    }

    /// An acceptor is asked to accept.
    fn accept(&self, member: &mut Member, from: Id, (ballot, value): (Ballot, Value), io: &mut Io<'_, Self>) {
        let is_late = ballot < member.kept.promised && !self.has(Bug::AcceptsAnything);
        let has_one = self.has(Bug::FirstOnly) && member.kept.accepted.is_some_and(|(_, had)| had != value);
        if is_late || has_one {
            self.refuse(member, from, ballot, io);
            return;
        }
        if !self.has(Bug::NoPromise) {
            member.kept.promised = ballot.max(member.kept.promised);
        }
        member.kept.accepted = Some((ballot, value));
        self.write(member, Bug::ForgetsAccepted, io);
        if self.tells {
            io.send_all(&Message::Accepted(ballot, value));
        }
    }

    fn refuse(&self, member: &Member, from: Id, ballot: Ballot, io: &mut Io<'_, Self>) {
        if self.tells {
            io.send(from, Message::Refuse(ballot, member.kept.promised));
        }
    }

    /// A learner hears of an acceptance.
    fn accepted(
        &self,
        member: &mut Member,
        from: Id,
        (ballot, value): (Ballot, Value),
        io: &mut Io<'_, Self>,
    ) {
        let (_, who) = member.accepted.entry(ballot).or_insert_with(|| (value, BTreeSet::new()));
        who.insert(from);
        let enough = if self.has(Bug::LearnsFromOne) { 1 } else { self.quorum(io) };
        if who.len() < enough {
            return;
        }
        member.learned = Some(value);
        member.proposal = None;
        io.cancel(Retry);
        for (request, _) in std::mem::take(&mut member.waiting) {
            io.answer(request, Outcome::told(Told::One(value), None));
        }
    }
}

impl Protocol for Paxos {
    type Member = Member;
    type Message = Message;
    type Record = Kept;
    type Timer = Retry;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "paxos"
    }

    fn small(&self) -> Self {
        Self { tells: false, ..self.clone() }
    }

    fn start(&self, disk: &[Kept], _: &mut Io<'_, Self>) -> Member {
        Member {
            kept: disk.last().copied().unwrap_or_default(),
            heard: 0,
            proposal: None,
            tries: 0,
            accepted: BTreeMap::new(),
            learned: None,
            waiting: BTreeMap::new(),
        }
    }

    fn step(&self, member: &mut Member, input: Input<Self>, io: &mut Io<'_, Self>) {
        match input {
            Input::Request { request, op } => {
                let Some(value) = proposed(&op) else { return };
                if let Some(learned) = member.learned {
                    io.answer(request, Outcome::told(Told::One(learned), None));
                    return;
                }
                member.waiting.insert(request, value);
                if member.proposal.is_none() {
                    self.propose(member, value, io);
                }
            }
            Input::Timer(Retry) => {
                if let Some(value) = member.waiting.values().next().copied() {
                    self.propose(member, value, io);
                }
            }
            Input::Message { from, message } => match message {
                Message::Prepare(ballot) => self.prepare(member, from, ballot, io),
                Message::Promise(ballot, accepted) => self.promised(member, from, (ballot, accepted), io),
                Message::Accept(ballot, value) => self.accept(member, from, (ballot, value), io),
                Message::Accepted(ballot, value) => self.accepted(member, from, (ballot, value), io),
                Message::Refuse(_, promised) => member.heard = member.heard.max(promised.round),
            },
        }
    }

    fn compact(&self, disk: &mut Vec<Kept>) {
        disk.drain(..disk.len().saturating_sub(1));
    }

    fn judge(&self, memory: &mut Memory, members: &[Seen<'_, Self>]) -> Result<(), Broken> {
        memory.judge(members)
    }

    fn look(&self, memory: &Memory) -> String {
        let values: Vec<String> = memory.chosen.iter().map(ToString::to_string).collect();
        if values.is_empty() {
            "nothing chosen".to_owned()
        } else {
            format!("chosen {}", values.join(" and "))
        }
    }

    fn workload(&self) -> Option<Kind> {
        None
    }

    fn shows(&self, member: &Member) -> Option<String> {
        let Kept { promised, accepted, .. } = member.kept;
        match (member.learned, accepted) {
            (Some(value), _) => Some(format!("★ has learned {value}")),
            (None, Some((ballot, value))) if ballot == promised => {
                Some(format!("● accepted {ballot} {value}"))
            }
            (None, Some((ballot, value))) => Some(format!("○ promised {promised}; ● {ballot} {value}")),
            (None, None) if promised > Ballot::default() => Some(format!("○ promised {promised}")),
            (None, None) => None,
        }
    }
}

/// The value that a client proposes.
fn proposed(op: &Op) -> Option<Value> {
    match op.body {
        Body::Write { value } => Some(value),
        _ => None,
    }
}

/// What the properties remember.
#[derive(Clone, Debug, Default, Hash)]
pub struct Memory {
    /// What clients have proposed.
    proposed: BTreeSet<Value>,
    /// By ballot: the values that were accepted in it, and by whom.
    votes: BTreeMap<(Ballot, Value), BTreeSet<Id>>,
    chosen: BTreeSet<Value>,
}

impl Memory {
    /// - `agreement`: at most one value is chosen.
    /// - `validity`: what is chosen was proposed.
    /// - `one-value-a-ballot`: nobody proposes two values under one ballot.
    /// - `learned-is-chosen`: who has learned a value has learned what is chosen.
    fn judge(&mut self, members: &[Seen<'_, Paxos>]) -> Result<(), Broken> {
        let quorum = members.len() / 2 + 1;
        for seen in members {
            let running = seen.running.into_iter();
            self.proposed.extend(running.clone().flat_map(|member| member.waiting.values().copied()));
            if let Some(vote) = seen.disk.last().and_then(|kept| kept.accepted) {
                self.votes.entry(vote).or_default().insert(seen.id);
            }
            // What an acceptor has said counts as well, whether it wrote it or not.
            let said = running.flat_map(|member| &member.accepted);
            for (ballot, (value, who)) in said {
                self.votes.entry((*ballot, *value)).or_default().extend(who);
            }
        }
        let chosen = self.votes.iter().filter(|(_, who)| who.len() >= quorum).map(|((_, value), _)| *value);
        self.chosen.extend(chosen);
        let mut chosen = self.chosen.iter();
        if let (Some(one), Some(other)) = (chosen.next(), chosen.next()) {
            return Err(Broken::new("agreement", format!("{one} is chosen, and {other}")));
        }
        if let Some(value) = self.chosen.iter().find(|value| !self.proposed.contains(value)) {
            return Err(Broken::new("validity", format!("{value} is chosen, which nobody proposed")));
        }
        let mut votes = self.votes.keys().peekable();
        while let (Some((ballot, one)), Some((next, other))) = (votes.next(), votes.peek()) {
            if ballot == next {
                let words = format!("{one} and {other} were accepted in ballot {ballot}");
                return Err(Broken::new("one-value-a-ballot", words));
            }
        }
        for seen in members {
            let learned = seen.running.and_then(|member| member.learned);
            if let Some(value) = learned.filter(|value| !self.chosen.contains(value)) {
                let words = format!("{} has learned {value}, which is not chosen", seen.id);
                return Err(Broken::new("learned-is-chosen", words));
            }
        }
        Ok(())
    }
}

crate::bugs! {
    FirstOnly = "first-only", "without phase one, an acceptor accepts the first value, and never another";
    AcceptsAnything = "accepts-anything", "an acceptor accepts below what it promised";
    NoPhaseOne = "no-phase-one", "a proposer asks to accept without having looked";
    NoPromise = "no-promise", "an acceptor answers a proposer, and promises nothing";
    NoAdoption = "no-adoption", "a proposer keeps its own value whatever it is told";
    AdoptsLowest = "adopts-lowest", "a proposer takes over the oldest proposal that it is told of";
    HidesAccepted = "hides-accepted", "an acceptor that promises does not say what it accepted";
    ForgetsPromise = "forgets-promise", "a promise is not on disk when it is given";
    ForgetsAccepted = "forgets-accepted", "what is accepted is not on disk when that is said";
    ForgetsRound = "forgets-round", "a proposer's round is not on disk when it proposes";
    Minority = "minority", "half of the members are taken for a quorum";
    CountsTwice = "counts-twice", "a promise that comes twice counts twice";
    LearnsFromOne = "learns-from-one", "a learner believes the first acceptor that it hears of";
}
