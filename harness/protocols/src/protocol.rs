//! What a protocol is: how a member starts, what it does when something comes to it, and what must always be
//! true.
//!
//! A member is a value. [`Protocol::start`] makes it, from what its disk holds; [`Protocol::step`] changes
//! it. All that a member does to the world goes through [`Io`]. The same inputs give the same effects.
//!
//! **What a member does after it has written leaves when that is on disk.** So a promise that is written
//! before it is sent can't be forgotten, and nobody has to wait for a disk by hand. A member that must know
//! when something is on disk writes it and sends itself a message.

use std::fmt;
use std::hash::Hash;

use workloads::{Kind, Op, Outcome};

/// A member, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u8);

impl Id {
    /// Its place in a list.
    #[must_use]
    pub fn place(self) -> usize {
        usize::from(self.0).saturating_sub(1)
    }

    /// So many members.
    pub fn all(members: u8) -> impl Iterator<Item = Self> + Clone {
        (1..=members).map(Self)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// What a client asked, by its number: the answer names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request(pub u64);

/// A protocol, with its parameters and, for a mutant, its bug.
pub trait Protocol: Clone + fmt::Debug + Eq + Hash + Send + Sync + 'static {
    /// What a member knows while it runs.
    type Member: Clone + Hash + fmt::Debug + Send;
    /// What members say to each other, as scripts and pictures show it: in a few words.
    type Message: Clone + Ord + Hash + fmt::Display + fmt::Debug + Send;
    /// What is written to a disk, in one piece.
    type Record: Clone + Eq + Hash + fmt::Display + fmt::Debug + Send;
    /// What a member waits for.
    type Timer: Copy + Ord + Hash + fmt::Display + fmt::Debug + Send;
    /// What [`Protocol::judge`] remembers, because no member does.
    type Memory: Clone + Default + Hash + Send;

    /// The name on the command line.
    fn name(&self) -> &'static str;

    /// A member as it starts, with what its disk holds, oldest first.
    fn start(&self, disk: &[Self::Record], io: &mut Io<'_, Self>) -> Self::Member;

    /// What comes to a member, and what it does.
    fn step(&self, member: &mut Self::Member, input: Input<Self>, io: &mut Io<'_, Self>);

    /// The same for explorations: with as few messages as show what it does.
    #[must_use]
    fn small(&self) -> Self {
        self.clone()
    }

    /// Takes a parameter over, as a script names it: `with alpha 3`.
    ///
    /// # Errors
    /// Which parameters there are. Without this function there are none.
    fn set(&mut self, name: &str, _value: &str) -> Result<(), String> {
        Err(format!("{name}: {} has no parameters", self.name()))
    }

    /// What a disk holds that a script describes, oldest first.
    ///
    /// # Errors
    /// What such words are. Without this function every disk is empty at first.
    fn disk(&self, words: &str) -> Result<Vec<Self::Record>, String> {
        Err(format!("{words}: disks of {} are empty at first", self.name()))
    }

    /// Whether what a member sends itself arrives at once, and nobody sees it under way: so a member hears
    /// that something is on its disk.
    fn hears_itself_at_once(&self) -> bool {
        false
    }

    /// Leaves out what later records make needless. Without it a disk holds all that was ever written.
    fn compact(&self, _disk: &mut Vec<Self::Record>) {}

    /// What must be true after every step.
    ///
    /// # Errors
    /// What is not.
    fn judge(&self, _memory: &mut Self::Memory, _members: &[Member<'_, Self>]) -> Result<(), Broken> {
        Ok(())
    }

    /// What is so by now, in a few words, for scripts to look at: what is chosen.
    fn look(&self, _memory: &Self::Memory) -> String {
        String::new()
    }

    /// What clients do in drawn worlds: the operations of a workload, by whose checks their history is
    /// judged. Without one each client writes one value of its own, and the history is not judged.
    fn workload(&self) -> Option<Kind> {
        Some(Kind::REGISTER)
    }

    /// Whether a request that comes again, to whichever member, takes effect once. Then clients whose answer
    /// is late ask again.
    fn knows_requests(&self) -> bool {
        false
    }

    /// The term in which a member takes itself for the leader; none where it does not, or nobody leads.
    fn leads(&self, _member: &Self::Member) -> Option<u64> {
        None
    }

    /// The term of the leader that a member follows, by what it has heard; none where it follows nobody.
    fn follows(&self, _member: &Self::Member) -> Option<u64> {
        None
    }

    /// As leader: up to which place it has proposed, and up to which it knows what is decided. How long
    /// proposals wait for their decision is measured by it.
    fn progress(&self, _member: &Self::Member) -> Option<(u64, u64)> {
        None
    }

    /// The same, whose members take each other for gone after a silence of so long.
    #[must_use]
    fn with_peer_timeout(&self, _silence_us: u64) -> Self {
        self.clone()
    }

    /// What a picture marks beside a member after a step, in a word or two: what it has promised, or chosen.
    fn shows(&self, _member: &Self::Member) -> Option<String> {
        None
    }
}

/// A member as a judge sees it.
pub struct Member<'a, P: Protocol> {
    /// Which.
    pub id: Id,
    /// What it knows; none while it is down.
    pub running: Option<&'a P::Member>,
    /// What is on its disk.
    pub disk: &'a [P::Record],
    /// What the last step put there.
    pub synced: &'a [P::Record],
}

/// What comes to a member.
pub enum Input<P: Protocol> {
    /// A message.
    Message {
        /// By whom.
        from: Id,
        /// What.
        message: P::Message,
    },
    /// Something that was waited for long enough.
    Timer(P::Timer),
    /// A client asks.
    Request {
        /// The number that the answer names.
        request: Request,
        /// What.
        op: Op,
    },
}

/// What is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broken {
    /// The property, by name.
    pub rule: String,
    /// A sentence.
    pub words: String,
}

impl Broken {
    /// A property that is broken.
    pub fn new(rule: impl Into<String>, words: impl Into<String>) -> Self {
        Self { rule: rule.into(), words: words.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.words)
    }
}

/// What a member does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Effect<P: Protocol> {
    Write(P::Record),
    Send(Id, P::Message),
    Answer(Request, Answer),
}

/// An answer, which takes no part in what a state is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer(pub(crate) Outcome);

impl Hash for Answer {
    /// It follows from what its member knows.
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// A timer that is set, or no longer.
pub(crate) enum Wait<P: Protocol> {
    Set(P::Timer, u64),
    Cancel(P::Timer),
}

/// A draw below a bound.
pub(crate) type Draw<'a> = &'a mut dyn FnMut(u64) -> u64;

/// What a member can do to the world, and what it can know of it.
pub struct Io<'a, P: Protocol> {
    /// Who it is.
    pub me: Id,
    /// How many members there are.
    pub members: u8,
    /// What its own clock shows, in microseconds. In scripts and explorations no time passes.
    pub now_us: u64,
    pub(crate) draw: Draw<'a>,
    pub(crate) effects: Vec<Effect<P>>,
    pub(crate) waits: Vec<Wait<P>>,
}

impl<P: Protocol> Io<'_, P> {
    /// How many members are more than half.
    #[must_use]
    pub fn quorum(&self) -> usize {
        usize::from(self.members) / 2 + 1
    }

    /// Writes to the disk. What this member does from here on leaves when that is synced.
    pub fn write(&mut self, record: P::Record) {
        self.effects.push(Effect::Write(record));
    }

    /// Sends a message to a member, be it itself.
    pub fn send(&mut self, to: Id, message: P::Message) {
        self.effects.push(Effect::Send(to, message));
    }

    /// Sends a message to all members, itself included.
    pub fn send_all(&mut self, message: &P::Message) {
        for to in Id::all(self.members) {
            self.send(to, message.clone());
        }
    }

    /// Answers a client.
    pub fn answer(&mut self, request: Request, outcome: Outcome) {
        self.effects.push(Effect::Answer(request, Answer(outcome)));
    }

    /// Waits for so long; a timer that is set already starts anew. A crash forgets it.
    pub fn set(&mut self, timer: P::Timer, after_us: u64) {
        self.waits.push(Wait::Set(timer, after_us));
    }

    /// Waits no longer.
    pub fn cancel(&mut self, timer: P::Timer) {
        self.waits.push(Wait::Cancel(timer));
    }

    /// A number below `bound`, by chance; 0 in scripts and explorations.
    pub fn random(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { (self.draw)(bound) }
    }
}
