//! All members with their disks, and the messages under way; and one thing that happens to it.
//!
//! Messages are a bag: whatever is under way may arrive next. A process writes to its disk through a queue:
//! what is at its front is synced first, and what was sent behind a write leaves with it. A crash loses the
//! queue, but for so many of its first writes as the crash says.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use workloads::{Op, Outcome};

use crate::protocol::{Broken, Effect, Id, Input, Io, Member, Protocol, Request, Wait};

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<P: Protocol> {
    /// A client asks a member.
    Ask(Id, Request, Op),
    /// A message arrives.
    Deliver(Id, Id, P::Message),
    /// A message arrives, and is still under way.
    Copy(Id, Id, P::Message),
    /// A message never arrives.
    Lose(Id, Id, P::Message),
    /// What a member waited for is over.
    Fire(Id, P::Timer),
    /// The first write of a member's queue is on its disk.
    Sync(Id),
    /// A member ends. So many of the writes of its queue are on its disk all the same.
    Crash(Id, usize),
    /// A member starts.
    Start(Id),
}

impl<P: Protocol> fmt::Display for Step<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(id, request, op) => {
                write!(f, "{id} asked {}: {}", request.0, crate::op_words::op_in_words(op))
            }
            Self::Deliver(from, to, message) => write!(f, "{from} > {to}: {message}"),
            Self::Copy(from, to, message) => write!(f, "{from} >> {to}: {message}"),
            Self::Lose(from, to, message) => write!(f, "{from} x {to}: {message}"),
            Self::Fire(id, timer) => write!(f, "{id} waits no longer: {timer}"),
            Self::Sync(id) => write!(f, "{id} syncs"),
            Self::Crash(id, 0) => write!(f, "{id} crashes"),
            Self::Crash(id, kept) => write!(f, "{id} crashes, keeps {kept}"),
            Self::Start(id) => write!(f, "{id} starts"),
        }
    }
}

/// A member, running or not.
#[derive(Clone, Hash)]
struct Process<P: Protocol> {
    running: Option<P::Member>,
    disk: Vec<P::Record>,
    /// The first one is a write that is not synced.
    queue: VecDeque<Effect<P>>,
    timers: BTreeMap<P::Timer, u64>,
}

/// What came of a step.
#[derive(Debug)]
pub struct Came<P: Protocol> {
    /// Messages that were sent: from, to.
    pub sent: Vec<(Id, Id, P::Message)>,
    /// Answers to clients.
    pub answers: Vec<(Id, Request, Outcome)>,
    /// Timers that were set, with how long they wait, in microseconds.
    pub set: Vec<(Id, P::Timer, u64)>,
    /// Members that wait for their disks.
    pub writes: Vec<Id>,
}

impl<P: Protocol> Default for Came<P> {
    fn default() -> Self {
        Self { sent: Vec::new(), answers: Vec::new(), set: Vec::new(), writes: Vec::new() }
    }
}

/// What a member's clock shows, and the dice that it throws.
struct Moment<'a> {
    now_us: u64,
    draw: &'a mut dyn FnMut(u64) -> u64,
}

impl Moment<'_> {
    fn io<P: Protocol>(&mut self, me: Id, members: u8) -> Io<'_, P> {
        Io { me, members, now_us: self.now_us, draw: self.draw, effects: Vec::new(), waits: Vec::new() }
    }
}

/// All members and what is between them.
#[derive(Clone)]
pub struct Configuration<P: Protocol> {
    protocol: P,
    processes: Vec<Process<P>>,
    /// Messages under way, and how many of each.
    flight: BTreeMap<(Id, Id, P::Message), usize>,
    memory: P::Memory,
    broken: Option<Broken>,
    /// Whether disks sync at once.
    syncs_at_once: bool,
    /// Whose disk took what in the last step.
    synced: (Id, Vec<P::Record>),
}

impl<P: Protocol> Configuration<P> {
    /// So many members, none of which runs.
    #[must_use]
    pub fn new(protocol: P, members: u8, syncs_at_once: bool) -> Self {
        let process =
            || Process { running: None, disk: Vec::new(), queue: VecDeque::new(), timers: BTreeMap::new() };
        Self {
            protocol,
            processes: (0..members).map(|_| process()).collect(),
            flight: BTreeMap::new(),
            memory: P::Memory::default(),
            broken: None,
            syncs_at_once,
            synced: (Id(0), Vec::new()),
        }
    }

    /// A disk, before its member starts.
    pub fn hold(&mut self, id: Id, disk: Vec<P::Record>) {
        if let Some(process) = self.processes.get_mut(id.place()) {
            process.disk = disk;
        }
    }

    /// How many members there are.
    #[must_use]
    pub fn members(&self) -> u8 {
        u8::try_from(self.processes.len()).unwrap_or(u8::MAX)
    }

    /// The protocol.
    #[must_use]
    pub fn protocol(&self) -> &P {
        &self.protocol
    }

    /// The first property that was broken.
    #[must_use]
    pub fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// A member that runs.
    #[must_use]
    pub fn running(&self, id: Id) -> Option<&P::Member> {
        self.processes.get(id.place())?.running.as_ref()
    }

    /// Writes that a member waits for.
    #[must_use]
    pub fn unsynced(&self, id: Id) -> usize {
        let is_write = |effect: &&Effect<P>| matches!(effect, Effect::Write(_));
        self.processes.get(id.place()).map_or(0, |process| process.queue.iter().filter(is_write).count())
    }

    /// What the protocol says is so by now.
    #[must_use]
    pub fn look(&self) -> String {
        self.protocol.look(&self.memory)
    }

    /// What a member waits for.
    pub fn timers(&self, id: Id) -> impl Iterator<Item = P::Timer> + '_ {
        self.processes.get(id.place()).into_iter().flat_map(|process| process.timers.keys().copied())
    }

    /// What is under way.
    pub fn flight(&self) -> impl Iterator<Item = &(Id, Id, P::Message)> {
        self.flight.keys()
    }

    /// A number that two equal states share, and two others hardly ever.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for process in &self.processes {
            process.running.hash(&mut hasher);
            process.disk.hash(&mut hasher);
            process.queue.hash(&mut hasher);
            // When a timer is over the dice say; that it is set is what counts.
            process.timers.keys().for_each(|timer| timer.hash(&mut hasher));
        }
        self.flight.hash(&mut hasher);
        self.memory.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether a step can happen.
    #[must_use]
    pub fn can(&self, step: &Step<P>) -> bool {
        let process = |id: &Id| self.processes.get(id.place());
        let runs = |id: &Id| process(id).is_some_and(|process| process.running.is_some());
        match step {
            Step::Ask(id, ..) => runs(id),
            Step::Deliver(from, to, message) | Step::Copy(from, to, message) => {
                runs(to) && self.flight.contains_key(&(*from, *to, message.clone()))
            }
            Step::Lose(from, to, message) => self.flight.contains_key(&(*from, *to, message.clone())),
            Step::Fire(id, timer) => {
                runs(id) && process(id).is_some_and(|process| process.timers.contains_key(timer))
            }
            Step::Sync(id) => self.unsynced(*id) > 0,
            Step::Crash(id, kept) => runs(id) && *kept <= self.unsynced(*id),
            Step::Start(id) => process(id).is_some_and(|process| process.running.is_none()),
        }
    }

    /// Does a step, which can happen; one that can't changes nothing. `now_us` is what the member's clock
    /// shows.
    pub fn apply(&mut self, step: &Step<P>, now_us: u64, draw: &mut dyn FnMut(u64) -> u64) -> Came<P> {
        let mut came = Came::default();
        if !self.can(step) {
            return came;
        }
        self.synced.1.clear();
        let at = &mut Moment { now_us, draw };
        match step {
            Step::Ask(id, request, op) => {
                let input = Input::Request { request: *request, op: op.clone() };
                self.step(*id, input, at, &mut came);
            }
            Step::Deliver(from, to, message) => {
                self.take(*from, *to, message);
                let input = Input::Message { from: *from, message: message.clone() };
                self.step(*to, input, at, &mut came);
            }
            Step::Copy(from, to, message) => {
                let input = Input::Message { from: *from, message: message.clone() };
                self.step(*to, input, at, &mut came);
            }
            Step::Lose(from, to, message) => self.take(*from, *to, message),
            Step::Fire(id, timer) => {
                self.processes[id.place()].timers.remove(timer);
                self.step(*id, Input::Timer(*timer), at, &mut came);
            }
            Step::Sync(id) => self.sync(*id, at, &mut came),
            Step::Crash(id, kept) => self.crash(*id, *kept),
            Step::Start(id) => self.start(*id, at, &mut came),
        }
        self.judge();
        came
    }

    fn take(&mut self, from: Id, to: Id, message: &P::Message) {
        let key = (from, to, message.clone());
        if let Some(count) = self.flight.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.flight.remove(&key);
            }
        }
    }

    fn step(&mut self, id: Id, input: Input<P>, at: &mut Moment<'_>, came: &mut Came<P>) {
        let members = self.members();
        let process = &mut self.processes[id.place()];
        let Some(member) = &mut process.running else { return };
        let mut io = at.io(id, members);
        self.protocol.step(member, input, &mut io);
        let (effects, waits) = (io.effects, io.waits);
        self.settle(id, effects, waits, at, came);
    }

    fn start(&mut self, id: Id, at: &mut Moment<'_>, came: &mut Came<P>) {
        let members = self.members();
        let process = &mut self.processes[id.place()];
        let mut io = at.io(id, members);
        let member = self.protocol.start(&process.disk, &mut io);
        process.running = Some(member);
        let (effects, waits) = (io.effects, io.waits);
        self.settle(id, effects, waits, at, came);
    }

    /// Lets go what may leave, and queues what waits for a write.
    fn settle(
        &mut self,
        id: Id,
        mut effects: Vec<Effect<P>>,
        waits: Vec<Wait<P>>,
        at: &mut Moment<'_>,
        came: &mut Came<P>,
    ) {
        let process = &mut self.processes[id.place()];
        for wait in waits {
            match wait {
                Wait::Set(timer, after_us) => {
                    process.timers.insert(timer, after_us);
                    came.set.push((id, timer, after_us));
                }
                Wait::Cancel(timer) => drop(process.timers.remove(&timer)),
            }
        }
        // What was written and is not synced holds up all that comes later.
        let waits = !self.processes[id.place()].queue.is_empty();
        let first = effects.iter().position(|effect| matches!(effect, Effect::Write(_)));
        let behind = effects.split_off(if waits { 0 } else { first.unwrap_or(effects.len()) });
        for effect in effects {
            self.leave(id, effect, at, came);
        }
        if behind.is_empty() {
            return;
        }
        self.processes[id.place()].queue.extend(behind);
        if self.syncs_at_once {
            while self.unsynced(id) > 0 {
                self.sync(id, at, came);
            }
        } else {
            came.writes.push(id);
        }
    }

    fn leave(&mut self, id: Id, effect: Effect<P>, at: &mut Moment<'_>, came: &mut Came<P>) {
        match effect {
            Effect::Send(to, message) if to == id && self.protocol.hears_itself_at_once() => {
                self.step(id, Input::Message { from: id, message }, at, came);
            }
            Effect::Send(to, message) => {
                *self.flight.entry((id, to, message.clone())).or_default() += 1;
                came.sent.push((id, to, message));
            }
            Effect::Answer(request, answer) => came.answers.push((id, request, answer.0)),
            Effect::Write(_) => {}
        }
    }

    fn sync(&mut self, id: Id, at: &mut Moment<'_>, came: &mut Came<P>) {
        let process = &mut self.processes[id.place()];
        let Some(Effect::Write(record)) = process.queue.pop_front() else { return };
        self.synced.0 = id;
        self.synced.1.push(record.clone());
        process.disk.push(record);
        self.protocol.compact(&mut process.disk);
        while let Some(next) = self.processes[id.place()].queue.front() {
            if matches!(next, Effect::Write(_)) {
                break;
            }
            if let Some(effect) = self.processes[id.place()].queue.pop_front() {
                self.leave(id, effect, at, came);
            }
        }
    }

    fn crash(&mut self, id: Id, kept: usize) {
        let process = &mut self.processes[id.place()];
        let writes = process.queue.drain(..).filter_map(|effect| match effect {
            Effect::Write(record) => Some(record),
            _ => None,
        });
        let kept: Vec<P::Record> = writes.take(kept).collect();
        process.disk.extend(kept.iter().cloned());
        self.synced = (id, kept);
        self.protocol.compact(&mut process.disk);
        process.running = None;
        process.timers.clear();
    }

    fn judge(&mut self) {
        if self.broken.is_some() {
            return;
        }
        let members: Vec<Member<'_, P>> = Id::all(self.members())
            .zip(&self.processes)
            .map(|(id, process)| {
                let synced = if id == self.synced.0 { self.synced.1.as_slice() } else { &[] };
                Member { id, running: process.running.as_ref(), disk: &process.disk, synced }
            })
            .collect();
        self.broken = self.protocol.judge(&mut self.memory, &members).err();
    }
}
