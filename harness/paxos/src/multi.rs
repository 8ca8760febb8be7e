//! Multi-Paxos: a log of commands, each slot of it chosen by Paxos, as Ongaro and Ousterhout teach it.
//!
//! **A leader.** If everybody proposed, proposers would outbid each other all the time. So the running member
//! with the highest id proposes: each says now and then that it runs, and whoever has heard nothing of a
//! higher id for two such times takes itself for the leader. Two leaders at once are slow and safe.
//!
//! **Phase one once for many slots.** A new leader asks the acceptors to promise for *all* slots from its
//! first unchosen one on, and each answers with all that it has accepted there. Where nobody has accepted
//! anything the leader is free; from then on it needs phase two alone, one round trip for a command. What one
//! of them knows to be chosen the leader takes as chosen.
//!
//! **Holes.** A leader before may have left a slot empty between two others. The new one proposes a *no-op*
//! there, for commands take effect in the order of the slots, and none behind a hole.
//!
//! **Members change** by a command in the log, which counts *alpha* slots later ([`crate::voters`]). So at
//! most so many slots are open at a time.
//!
//! **Everybody learns.** A leader says with each `accept` up to where it knows everything chosen. A member
//! that has accepted a slot below that *under the same ballot* knows that it is chosen, for the leader
//! proposed nothing else there. That holds only while the leader itself has promised no higher ballot: one
//! that has learns, as acceptor, what others chose in slots in which it has proposed something else, and
//! would vouch for its own. Common accounts leave that out; here a leader steps down when it promises. Each
//! `accepted` says what the first slot is of which its sender does not know that; the leader tells it that
//! one (`success`), and so on.
//!
//! **Once.** A client that has no answer asks again, maybe another member, so a command may come to stand in
//! two slots. It takes effect in the first one: commands carry the number of the request.
//!
//! **What must be on disk** before it is answered: promises, acceptances, and the round of a proposer. Which
//! slots are chosen need not be: it can be learned again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use harness_protocols::{Broken, Id, Input, Io, Member as Seen, Protocol, Request};
use workloads::{Op, Outcome};

use crate::ballot::Ballot;
use crate::messages::{Command, Message, Record, Slot, Timer, Vote};
use crate::register::{Action, Registers};
use crate::voters::Voters;

/// How often a member says that it runs, in microseconds, when nobody says.
const HEARTBEAT_US: u64 = 50_000;
/// After so many heartbeats, in halves, a member that says nothing is taken for gone.
const SILENT_HALVES: u64 = 5;
/// After so many heartbeats a leader that is not answered begins anew.
const RETRY_AFTER: u64 = 5;

/// After how many slots a change of the members counts, when nobody says.
const ALPHA: Slot = 64;
/// A disk of so many records, and of twice as many each time, is looked through for those that later ones
/// replace.
const COMPACT_FIRST: usize = 64;

/// The protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiPaxos {
    /// After how many slots a change of the members counts, and how many are open at most.
    pub alpha: Slot,
    /// What it does wrong.
    pub bug: Option<Bug>,
    /// How often a member says that it runs, in microseconds.
    pub heartbeat_us: u64,
}

/// A slot, as a member knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    /// The ballot in which it was accepted last.
    ballot: Ballot,
    command: Command,
    is_chosen: bool,
}

/// What a leader knows beside.
#[derive(Clone, Debug, Hash)]
struct Lead {
    ballot: Ballot,
    /// Who promised, until a quorum has for each slot that it may propose in.
    promises: BTreeSet<Id>,
    /// In each slot the highest proposal that they told of, until it is proposed again.
    adopted: BTreeMap<Slot, (Ballot, Command)>,
    is_prepared: bool,
    /// What it has proposed in a slot, and who accepted it.
    proposed: BTreeMap<Slot, (Command, BTreeSet<Id>)>,
    /// The next slot that it proposes in.
    next: Slot,
    /// Commands that wait until it is prepared, and until their slot may be proposed in.
    waiting: VecDeque<Command>,
    /// Up to which slot it has told each member what is chosen, since it last said that it runs.
    told: BTreeMap<Id, Slot>,
}

/// A member.
#[derive(Clone, Debug, Hash)]
pub struct Member {
    round: u32,
    promised: Ballot,
    log: BTreeMap<Slot, Entry>,
    /// Of all slots below it is known that they are chosen, and what they do is done.
    first_unchosen: Slot,
    registers: Registers,
    voters: Voters,
    /// Members with a higher id that were heard of.
    heard: BTreeSet<Id>,
    /// The highest ballot in which one of them says that it leads.
    leader: Option<Ballot>,
    /// The highest round that it has heard of.
    heard_round: u32,
    lead: Option<Lead>,
    /// Clients that wait here.
    clients: BTreeSet<Request>,
}

impl MultiPaxos {
    /// The protocol, with a bug or without.
    #[must_use]
    pub fn of(bug: Option<Bug>) -> Self {
        Self { alpha: ALPHA, heartbeat_us: HEARTBEAT_US, bug }
    }

    /// After how long a member that says nothing is taken for gone.
    fn silence_us(&self) -> u64 {
        self.heartbeat_us * SILENT_HALVES / 2
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether these are a quorum in a slot.
    fn are_quorum<'a>(
        &self,
        (voters, slot): (&Voters, Slot),
        who: impl Iterator<Item = &'a Id>,
        io: &Io<'_, Self>,
    ) -> bool {
        voters.are_quorum((slot, self.alpha), who, io.members, self.has(Bug::Minority))
    }

    /// Takes the lead, or begins anew.
    fn lead(&self, member: &mut Member, io: &mut Io<'_, Self>) {
        member.round = member.round.max(member.heard_round).max(member.promised.round) + 1;
        io.write(Record::Round(member.round));
        let ballot = Ballot::of(member.round, io.me);
        let waiting = member.lead.take().map(|lead| lead.waiting).unwrap_or_default();
        member.lead = Some(Lead {
            ballot,
            promises: BTreeSet::new(),
            adopted: BTreeMap::new(),
            is_prepared: false,
            proposed: BTreeMap::new(),
            next: member.first_unchosen,
            waiting,
            told: BTreeMap::new(),
        });
        io.send_all(&Message::Prepare(ballot, member.first_unchosen));
        self.wait(io);
    }

    /// A client's command comes to whoever it takes for the leader.
    fn command(&self, member: &mut Member, request: Request, action: Action, io: &mut Io<'_, Self>) {
        if let Some(above) = member.heard.last() {
            io.send(*above, Message::Forward(request, action));
            return;
        }
        member.clients.insert(request);
        if let Some(outcome) = member.registers.answered(request) {
            self.answer(member, request, outcome, io);
            return;
        }
        let Some(lead) = &mut member.lead else {
            self.lead(member, io);
            return self.command(member, request, action, io);
        };
        let command = Command::Client(request, action);
        if !lead.waiting.contains(&command) {
            lead.waiting.push_back(command);
        }
        self.propose(member, io);
    }

    fn answer(&self, member: &mut Member, request: Request, outcome: Outcome, io: &mut Io<'_, Self>) {
        if member.clients.remove(&request) {
            io.answer(request, outcome);
        }
    }

    /// Phase two, in the next free slots: what was found there, and then what clients wait for.
    fn propose(&self, member: &mut Member, io: &mut Io<'_, Self>) {
        let first = member.first_unchosen;
        while let Some(lead) = member.lead.as_mut().filter(|lead| lead.is_prepared) {
            lead.next = lead.next.max(first);
            lead.adopted.retain(|slot, _| *slot >= lead.next);
            // It stands in an open slot already: the client asks again.
            let open = |command: &Command| lead.proposed.range(first..).any(|(_, (open, _))| open == command);
            while lead.waiting.front().is_some_and(open) {
                lead.waiting.pop_front();
            }
            let slot = lead.next;
            let is_idle = lead.adopted.is_empty() && lead.waiting.is_empty();
            if is_idle || slot >= first + self.alpha {
                return;
            }
            if !self.are_quorum((&member.voters, slot), lead.promises.iter(), io) {
                // Others vote there, and have not promised.
                return self.lead(member, io);
            }
            lead.next += 1;
            let found = lead.adopted.remove(&slot).map(|(_, command)| command);
            let command = match found {
                None if lead.adopted.is_empty() => lead.waiting.pop_front(),
                None if self.has(Bug::LeavesHoles) => None,
                None => Some(Command::NoOp),
                found => found,
            };
            if let Some(command) = command {
                self.ask_to_accept(member, slot, command, io);
            }
        }
    }

    fn ask_to_accept(&self, member: &mut Member, slot: Slot, command: Command, io: &mut Io<'_, Self>) {
        let first = member.first_unchosen;
        let Some(lead) = &mut member.lead else { return };
        let is_alone = lead.proposed.range(first..).next().is_none();
        lead.proposed.entry(slot).or_insert_with(|| (command.clone(), BTreeSet::new()));
        io.send_all(&Message::Accept(Vote { slot, ballot: lead.ballot, command }, first));
        if is_alone {
            self.wait(io);
        }
    }

    /// A leader was not answered: it asks again for what is open, or begins anew where somebody has promised
    /// a higher ballot.
    fn retry(&self, member: &mut Member, io: &mut Io<'_, Self>) {
        if !member.heard.is_empty() {
            return;
        }
        let first = member.first_unchosen;
        let heard = member.heard_round;
        match &member.lead {
            Some(lead) if lead.is_prepared && heard <= lead.ballot.round => {
                for (slot, (command, _)) in lead.proposed.range(first..) {
                    let vote = Vote { slot: *slot, ballot: lead.ballot, command: command.clone() };
                    io.send_all(&Message::Accept(vote, first));
                }
                self.wait(io);
            }
            _ => self.lead(member, io),
        }
    }

    fn promise(&self, member: &mut Member, from: Id, (ballot, first): (Ballot, Slot), io: &mut Io<'_, Self>) {
        if ballot < member.promised {
            io.send(from, Message::Refuse(member.promised));
            return;
        }
        member.promised = ballot;
        // Whoever led in an older one gets no vote of this member any more.
        member.leader = member.leader.filter(|leader| *leader >= ballot);
        self.step_down(member, ballot, io);
        if !self.has(Bug::ForgetsPromise) {
            io.write(Record::Promised(ballot));
        }
        let mut votes: Vec<Vote> = member.votes(first).collect();
        if self.has(Bug::HidesAccepted) {
            votes.clear();
        }
        io.send(from, Message::Promise(ballot, votes, member.first_unchosen));
    }

    /// What somebody else knows to be chosen is.
    fn learn(&self, member: &mut Member, chosen: Vec<Vote>, io: &mut Io<'_, Self>) {
        for Vote { slot, ballot, command } in chosen {
            member.log.insert(slot, Entry { ballot, command, is_chosen: true });
        }
        self.advance(member, io);
    }

    fn promised(
        &self,
        member: &mut Member,
        from: Id,
        (ballot, votes): (Ballot, Vec<Vote>),
        io: &mut Io<'_, Self>,
    ) {
        let first = member.first_unchosen;
        let Some(lead) = member.lead.as_mut().filter(|lead| lead.ballot == ballot && !lead.is_prepared)
        else {
            return;
        };
        lead.promises.insert(from);
        for vote in votes.into_iter().filter(|_| !self.has(Bug::NoAdoption)) {
            let one = lead.adopted.entry(vote.slot).or_insert_with(|| (vote.ballot, vote.command.clone()));
            if one.0 < vote.ballot {
                *one = (vote.ballot, vote.command);
            }
        }
        let promises = &lead.promises;
        if !(first..first + self.alpha)
            .all(|slot| self.are_quorum((&member.voters, slot), promises.iter(), io))
        {
            return;
        }
        lead.is_prepared = true;
        self.tell_below(member, io);
        self.propose(member, io);
        let first = member.first_unchosen;
        let is_open = |lead: &Lead| lead.proposed.range(first..).next().is_some();
        if !member.lead.as_ref().is_some_and(is_open) {
            io.cancel(Timer::Retry);
        }
    }

    fn accept(&self, member: &mut Member, from: Id, (vote, chosen): (Vote, Slot), io: &mut Io<'_, Self>) {
        let Vote { slot, ballot, command } = vote.clone();
        if ballot < member.promised && !self.has(Bug::AcceptsAnything) {
            io.send(from, Message::Refuse(member.promised));
            return;
        }
        if ballot > member.promised {
            member.promised = ballot;
            self.step_down(member, ballot, io);
            io.write(Record::Promised(ballot));
        }
        let is_chosen = member.log.get(&slot).is_some_and(|entry| entry.is_chosen);
        if !is_chosen {
            member.log.insert(slot, Entry { ballot, command, is_chosen });
            if !self.has(Bug::ForgetsAccepted) {
                io.write(Record::Accepted(vote));
            }
        }
        for (_, entry) in member.log.range_mut(member.first_unchosen.min(chosen)..chosen) {
            entry.is_chosen |= entry.ballot == ballot || self.has(Bug::BelievesAnyBallot);
        }
        self.advance(member, io);
        io.send(from, Message::Accepted(ballot, slot, member.first_unchosen));
    }

    fn accepted(
        &self,
        member: &mut Member,
        from: Id,
        (ballot, slot, their_first): (Ballot, Slot, Slot),
        io: &mut Io<'_, Self>,
    ) {
        let Some(lead) = member.lead.as_mut().filter(|lead| lead.ballot == ballot) else { return };
        let Some((command, who)) = lead.proposed.get_mut(&slot) else { return };
        who.insert(from);
        if self.are_quorum((&member.voters, slot), who.iter(), io) {
            let entry = Entry { ballot, command: command.clone(), is_chosen: true };
            member
                .log
                .entry(slot)
                .and_modify(|known| known.is_chosen |= known.ballot == ballot)
                .or_insert(entry);
        }
        let before = member.first_unchosen;
        self.advance(member, io);
        self.bring_up(member, from, their_first, io);
        self.propose(member, io);
        let first = member.first_unchosen;
        let Some(lead) = &member.lead else { return };
        if lead.proposed.range(first..).next().is_none() {
            io.cancel(Timer::Retry);
        } else if first > before {
            // As long as more gets chosen it goes on.
            self.wait(io);
        }
    }

    /// Tells somebody of the first slot of which it does not know that it is chosen.
    fn bring_up(&self, member: &mut Member, to: Id, first: Slot, io: &mut Io<'_, Self>) {
        let Some(lead) = &mut member.lead else { return };
        let entry = member.log.get(&first).filter(|entry| entry.is_chosen);
        let Some(entry) = entry.filter(|_| to != io.me && lead.told.get(&to) < Some(&first)) else { return };
        lead.told.insert(to, first);
        io.send(to, Message::Success(first, entry.command.clone()));
    }

    fn success(
        &self,
        member: &mut Member,
        from: Id,
        (slot, command): (Slot, Command),
        io: &mut Io<'_, Self>,
    ) {
        let ballot = member.log.get(&slot).map_or(Ballot::default(), |entry| entry.ballot);
        member.log.insert(slot, Entry { ballot, command, is_chosen: true });
        self.advance(member, io);
        io.send(from, Message::Known(member.first_unchosen));
    }

    /// Does what is chosen, in the order of the slots, up to the first one that is not.
    fn advance(&self, member: &mut Member, io: &mut Io<'_, Self>) {
        loop {
            let next = match member.log.get(&member.first_unchosen) {
                Some(entry) if entry.is_chosen => Some(entry.command.clone()),
                _ if self.has(Bug::SkipsHoles) => {
                    let later = member.log.range(member.first_unchosen..).find(|(_, entry)| entry.is_chosen);
                    let Some((slot, entry)) = later else { return };
                    member.first_unchosen = *slot;
                    Some(entry.command.clone())
                }
                _ => None,
            };
            let Some(command) = next else { return };
            member.voters.chosen(member.first_unchosen, &command);
            member.first_unchosen += 1;
            if let Command::Client(request, action) = command {
                let outcome = member.registers.take(request, &action, self.has(Bug::TakesTwice));
                self.answer(member, request, outcome, io);
            }
        }
    }

    /// A leader that has promised a higher ballot leads no longer.
    fn step_down(&self, member: &mut Member, ballot: Ballot, io: &mut Io<'_, Self>) {
        let is_deposed = member.lead.as_ref().is_some_and(|lead| lead.ballot < ballot);
        if is_deposed && !self.has(Bug::GoesOnDeposed) {
            member.lead = None;
            self.wait(io);
        }
    }

    /// Waits for answers; by chance for longer, so that two leaders do not outbid each other for ever.
    fn wait(&self, io: &mut Io<'_, Self>) {
        let retry_us = RETRY_AFTER * self.heartbeat_us;
        let more = io.random(retry_us);
        io.set(Timer::Retry, retry_us + more);
    }

    /// A member with a higher id is heard.
    fn heard(&self, member: &mut Member, from: Id, leads: Option<Ballot>, io: &mut Io<'_, Self>) {
        if from <= io.me {
            return;
        }
        member.heard.insert(from);
        member.leader = member.leader.max(leads);
        member.lead = None;
        io.cancel(Timer::Retry);
        io.set(Timer::Silence(from), self.silence_us());
    }

    /// Says to those below that it runs, and whether it leads.
    fn tell_below(&self, member: &Member, io: &mut Io<'_, Self>) {
        let leads = member.lead.as_ref().filter(|lead| lead.is_prepared).map(|lead| lead.ballot);
        let me = io.me;
        for id in Id::all(io.members).filter(|id| *id < me) {
            io.send(id, Message::Alive(leads));
        }
    }
}

impl Member {
    /// What it has accepted from a slot on.
    fn votes(&self, first: Slot) -> impl Iterator<Item = Vote> + '_ {
        self.log.range(first..).map(|(slot, entry)| Vote {
            slot: *slot,
            ballot: entry.ballot,
            command: entry.command.clone(),
        })
    }
}

impl Protocol for MultiPaxos {
    type Member = Member;
    type Message = Message;
    type Record = Record;
    type Timer = Timer;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "multi-paxos"
    }

    fn start(&self, disk: &[Record], io: &mut Io<'_, Self>) -> Member {
        let mut member = Member {
            round: 0,
            promised: Ballot::default(),
            log: BTreeMap::new(),
            first_unchosen: 1,
            registers: Registers::default(),
            voters: Voters::default(),
            heard: BTreeSet::new(),
            leader: None,
            heard_round: 0,
            lead: None,
            clients: BTreeSet::new(),
        };
        for record in disk {
            match record {
                Record::Round(round) => member.round = *round,
                Record::Promised(ballot) => member.promised = *ballot,
                Record::Accepted(Vote { slot, ballot, command }) => {
                    let entry = Entry { ballot: *ballot, command: command.clone(), is_chosen: false };
                    member.log.insert(*slot, entry);
                }
            }
        }
        // Until it has listened for a while it takes everybody above for running.
        let me = io.me;
        for above in Id::all(io.members).filter(|id| *id > me) {
            member.heard.insert(above);
            io.set(Timer::Silence(above), self.silence_us());
        }
        io.set(Timer::Heartbeat, self.heartbeat_us);
        if member.heard.is_empty() {
            self.lead(&mut member, io);
        }
        member
    }

    fn step(&self, member: &mut Member, input: Input<Self>, io: &mut Io<'_, Self>) {
        match input {
            Input::Request { request, op } => self.asked(member, request, &op, io),
            Input::Timer(Timer::Heartbeat) => {
                if let Some(lead) = &mut member.lead {
                    lead.told.clear();
                }
                self.tell_below(member, io);
                io.set(Timer::Heartbeat, self.heartbeat_us);
            }
            Input::Timer(Timer::Silence(id)) => {
                member.heard.remove(&id);
                if member.heard.is_empty() && member.lead.is_none() {
                    self.lead(member, io);
                }
            }
            Input::Timer(Timer::Retry) => self.retry(member, io),
            Input::Message { from, message } => self.message(member, from, message, io),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let alpha = value.parse().ok().filter(|alpha| name == "alpha" && *alpha > 0);
        self.alpha = alpha.ok_or("multi-paxos can be told `alpha N`, a number of slots")?;
        Ok(())
    }

    fn compact(&self, disk: &mut Vec<Record>) {
        if disk.len() < COMPACT_FIRST || !disk.len().is_power_of_two() {
            return;
        }
        let mut later = BTreeSet::new();
        let mut kept: Vec<Record> = Vec::with_capacity(disk.len());
        for record in disk.drain(..).rev() {
            let replaced_by = match &record {
                Record::Round(_) => (0, 0),
                Record::Promised(_) => (1, 0),
                Record::Accepted(vote) => (2, vote.slot),
            };
            if later.insert(replaced_by) {
                kept.push(record);
            }
        }
        kept.reverse();
        *disk = kept;
    }

    fn judge(&self, memory: &mut Memory, members: &[Seen<'_, Self>]) -> Result<(), Broken> {
        memory.judge(self.alpha, members)
    }

    fn look(&self, memory: &Memory) -> String {
        let slots: Vec<String> =
            memory.chosen.iter().map(|(slot, command)| format!("{slot}={command}")).collect();
        if slots.is_empty() { "nothing chosen".to_owned() } else { format!("chosen {}", slots.join(", ")) }
    }

    fn knows_requests(&self) -> bool {
        true
    }

    fn leads(&self, member: &Member) -> Option<u64> {
        let lead = member.lead.as_ref().filter(|lead| lead.is_prepared)?;
        Some(lead.ballot.as_term())
    }

    fn follows(&self, member: &Member) -> Option<u64> {
        let leader = member.leader?;
        member.heard.contains(&Id(leader.proposer)).then(|| leader.as_term())
    }

    fn progress(&self, member: &Member) -> Option<(u64, u64)> {
        let lead = member.lead.as_ref()?;
        Some((u64::from(lead.next) - 1, u64::from(member.first_unchosen) - 1))
    }

    fn with_peer_timeout(&self, silence_us: u64) -> Self {
        Self { heartbeat_us: (silence_us * 2 / SILENT_HALVES).max(1), ..self.clone() }
    }

    fn shows(&self, member: &Member) -> Option<String> {
        let first = format!("★ chosen below {}", member.first_unchosen);
        match &member.lead {
            Some(lead) if lead.is_prepared => Some(format!("leads {}; {first}", lead.ballot)),
            _ if member.promised == Ballot::default() => None,
            _ => Some(format!("○ promised {}; {first}", member.promised)),
        }
    }
}

impl MultiPaxos {
    fn asked(&self, member: &mut Member, request: Request, op: &Op, io: &mut Io<'_, Self>) {
        let Some(action) = Action::of(op) else { return };
        if self.has(Bug::ReadsLocally) && action.is_read() {
            let outcome = member.registers.take(request, &action, true);
            io.answer(request, outcome);
            return;
        }
        self.command(member, request, action, io);
    }

    fn message(&self, member: &mut Member, from: Id, message: Message, io: &mut Io<'_, Self>) {
        match message {
            Message::Alive(leads) => self.heard(member, from, leads, io),
            Message::Forward(request, action) => self.command(member, request, action, io),
            Message::Prepare(ballot, slot) => {
                member.heard_round = member.heard_round.max(ballot.round);
                // Whoever wants to lead runs.
                self.heard(member, from, None, io);
                self.promise(member, from, (ballot, slot), io);
            }
            Message::Promise(ballot, votes, chosen) => {
                let (chosen, open) = votes.into_iter().partition(|vote| vote.slot < chosen);
                self.learn(member, chosen, io);
                self.promised(member, from, (ballot, open), io);
            }
            Message::Accept(vote, chosen) => self.accept(member, from, (vote, chosen), io),
            Message::Accepted(ballot, slot, first) => self.accepted(member, from, (ballot, slot, first), io),
            Message::Refuse(promised) => member.heard_round = member.heard_round.max(promised.round),
            Message::Success(slot, command) => self.success(member, from, (slot, command), io),
            Message::Known(first) => self.bring_up(member, from, first, io),
        }
    }
}

/// What the properties remember.
#[derive(Clone, Debug, Default, Hash)]
pub struct Memory {
    /// By slot, ballot and command: who accepted it.
    votes: BTreeMap<(Slot, Ballot, Command), BTreeSet<Id>>,
    chosen: BTreeMap<Slot, Command>,
    voters: Voters,
    /// Up to where each member's log was looked at.
    seen: BTreeMap<Id, Slot>,
}

impl Memory {
    /// - `agreement`: in each slot at most one command is chosen.
    /// - `learned-is-chosen`: what a member takes for chosen is.
    fn judge(&mut self, alpha: Slot, members: &[Seen<'_, MultiPaxos>]) -> Result<(), Broken> {
        let all = u8::try_from(members.len()).unwrap_or(u8::MAX);
        for seen in members {
            let held = seen.synced.iter().filter_map(|record| match record {
                Record::Accepted(vote) => Some(vote),
                _ => None,
            });
            for Vote { slot, ballot, command } in held {
                let key = (*slot, *ballot, command.clone());
                let who = self.votes.entry(key).or_default();
                who.insert(seen.id);
                if !self.voters.are_quorum((*slot, alpha), who.iter(), all, false) {
                    continue;
                }
                self.voters.chosen(*slot, command);
                let chosen = self.chosen.entry(*slot).or_insert_with(|| command.clone());
                if chosen != command {
                    let words = format!("in slot {slot} {chosen} is chosen, and {command}");
                    return Err(Broken::new("agreement", words));
                }
            }
        }
        for seen in members {
            let Some(member) = seen.running else { continue };
            let first = self.seen.insert(seen.id, member.first_unchosen).unwrap_or(1);
            let log = member.log.range(first.min(member.first_unchosen)..);
            for (slot, entry) in log.filter(|(_, entry)| entry.is_chosen) {
                if self.chosen.get(slot) != Some(&entry.command) {
                    let words = format!("{} takes {} for chosen in slot {slot}", seen.id, entry.command);
                    return Err(Broken::new("learned-is-chosen", words));
                }
            }
        }
        Ok(())
    }
}

crate::bugs! {
    AcceptsAnything = "accepts-anything", "an acceptor accepts below what it promised";
    NoAdoption = "no-adoption", "a new leader proposes its own commands whatever it is told";
    HidesAccepted = "hides-accepted", "an acceptor that promises does not say what it accepted";
    ForgetsPromise = "forgets-promise", "a promise is not on disk when it is given";
    ForgetsAccepted = "forgets-accepted", "what is accepted is not on disk when that is said";
    Minority = "minority", "half of the members are taken for a quorum";
    LeavesHoles = "leaves-holes", "a new leader puts nothing into the holes that it finds";
    SkipsHoles = "skips-holes", "commands behind a hole take effect, and what fills it never does";
    BelievesAnyBallot = "believes-any-ballot", "what was accepted is taken for chosen, whoever proposed it";
    TakesTwice = "takes-twice", "a command that stands in two slots takes effect twice";
    GoesOnDeposed = "goes-on-deposed", "a leader that has promised a higher ballot goes on proposing";
    ReadsLocally = "reads-locally", "whoever is asked answers a read by what it knows";
}
