//! What a workload is: a definition, which says what it promises, and a generator, which says what clients
//! do.
//!
//! Whoever drives clients asks a [`Workload`] for its next operation, has it done once, and hands back what
//! came of it. Which workload it is matters to nobody but its own file: what drivers and judges need to know
//! of it are fields of its `Definition`, and they ask its [`Kind`] for them.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use checker::durability::FinalState;
use checker::history::{EventKind, Function, Value, Vocabulary, What};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::case::Check;
use crate::op::{Body, Object, Op, Word};
use crate::outcome::{Outcome, UNREADABLE};
use crate::params::{Params, ParamsError};
use crate::promise::Promise;

/// What clients do next, and what they remember for that. Every choice comes from dice that are handed in.
pub trait Generator: Duplicate + fmt::Debug + Send {
    /// What must be done, one by one and each with success, before the load begins.
    fn setup(&mut self) -> Vec<Op>;

    /// What `process` is to do next.
    fn next_op(&mut self, process: u64) -> Op;

    /// What a process is to do next that changes nothing.
    fn next_read(&mut self) -> Op;

    /// The same, where it matters who the process is.
    fn next_look(&mut self, _process: u64) -> Op {
        self.next_read()
    }

    /// Remembers what came of an operation.
    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome);

    /// A fault hits a process. What it holds it does not give up before it has changed something once more:
    /// else the fault shows nothing.
    fn works_on(&mut self, _process: u64) {}

    /// A process goes on with another client: what the one before held is not its own.
    fn begins_anew(&mut self, _process: u64) {}

    /// What is read, on each member, after everything has healed.
    fn final_reads(&self) -> Vec<Op>;

    /// Whether clients were told all that is to be told of what the members hold at the end.
    fn is_told(&self, _: &[FinalState]) -> bool {
        true
    }
}

/// Duplicates a generator whose type is not known. Whatever can be cloned has it.
pub trait Duplicate {
    /// A generator that goes on as this one does.
    fn duplicate(&self) -> Box<dyn Generator>;
}

impl<G: Generator + Clone + 'static> Duplicate for G {
    fn duplicate(&self) -> Box<dyn Generator> {
        Box::new(self.clone())
    }
}

/// The functions of all workloads, each once.
#[must_use]
pub fn functions() -> BTreeSet<Function> {
    Kind::ALL
        .iter()
        .flat_map(|kind| kind.asks_for().into_iter().chain(kind.0.marks.iter().copied()))
        .collect()
}

/// What a workload asks for by a function of its own, with this number as the last one of the argument where
/// it is a change; none of a function that is not one workload's own, nor of a change without a number in its
/// argument, whose request nobody would know again.
#[must_use]
pub fn example(function: Function, number: i64) -> Option<Op> {
    let has = |kind: &Kind| kind.0.words.iter().any(|word| word.function == function);
    let kind = Kind::ALL.iter().copied().find(has)?;
    let mut workload = Workload::new(kind, Params::of_keys(1), ChaCha8Rng::seed_from_u64(0)).ok()?;
    let setup = workload.setup();
    let ops = setup.into_iter().chain((0..ENOUGH).map(|_| workload.next_op(0)));
    let is_one = |op: &Op| matches!(op.body, Body::Said { word, .. } if word.function == function);
    ops.into_iter().find(is_one).and_then(|op| with_last(op, number))
}

/// So many operations of a workload have each of its functions.
const ENOUGH: u32 = 1000;

/// The same change with another last number in its argument, if that has one; a look as it is.
fn with_last(mut op: Op, number: i64) -> Option<Op> {
    let is_change = op.is_change();
    if let Body::Said { value, .. } = &mut op.body
        && is_change
    {
        match value {
            Value::One(last) | Value::Pair(_, last) => *last = number,
            Value::List(list) => {
                let mut longer = list.to_vec();
                *longer.last_mut()? = number;
                *list = longer.into();
            }
            _ => return None,
        }
    }
    Some(op)
}

/// What the functions of all workloads ask for.
#[must_use]
pub fn vocabulary() -> &'static Vocabulary {
    static ALL: LazyLock<Vocabulary> = LazyLock::new(|| of_all(Kind::ALL));
    &ALL
}

fn of_all(kinds: &[Kind]) -> Vocabulary {
    let words = kinds.iter().flat_map(|kind| kind.0.words).map(|word| (word.function, word.effect));
    Vocabulary::new(words)
}

/// A promise as one of single operations.
pub(crate) fn of_operations(promise: Promise) -> Option<Promise> {
    match promise {
        Promise::Linearizable | Promise::LinearizableUpdates | Promise::Nothing => Some(promise),
        // What of it is decided without an order of all operations; the rest is the check `session-order`.
        Promise::OrderedSequential => Some(Promise::LinearizableUpdates),
        _ => None,
    }
}

/// A promise as one of registers.
pub(crate) fn of_registers(promise: Promise) -> Option<Promise> {
    if promise.order().is_some() { Some(promise) } else { of_operations(promise) }
}

/// A workload, as its file defines it.
pub(crate) struct Definition {
    /// The name on the command line and in every file.
    pub(crate) name: &'static str,
    /// One line about it.
    pub(crate) summary: &'static str,
    /// What its keys stand for.
    pub(crate) object: Object,
    /// The kinds of operations of which a load that could find something has some.
    pub(crate) functions: &'static [Function],
    /// Those of them without which it still finds something, where clients don't have them.
    pub(crate) dispensable: &'static [Function],
    /// Functions that no other workload has: a history with one of them is this workload's.
    pub(crate) marks: &'static [Function],
    /// The functions that its own file describes.
    pub(crate) words: &'static [&'static Word],
    /// Makes its generator. The parameters make sense.
    pub(crate) generator: fn(&Params, ChaCha8Rng) -> Box<dyn Generator>,
    /// Whether the openings and ends of sessions are part of the history.
    pub(crate) records_sessions: bool,
    /// Whether a run must see sessions expire, so that their time-out has to be short.
    pub(crate) sessions_expire: bool,
    /// Whether its history is one of registers whose values are unique, and can be judged while it is made.
    pub(crate) goes_along: bool,
    /// What its clients are, where they are applications: processes of their own that hold something.
    pub(crate) applications: Option<Applications>,
    /// Whether last reads on which all members agree are the last word.
    pub(crate) is_settled: fn(&[FinalState]) -> bool,
    /// The checks of what its history shows by itself. The first one is its own.
    pub(crate) promises: &'static [Check],
    /// A promise as this workload knows it; none where it can't be judged by that.
    pub(crate) judged_by: fn(Promise) -> Option<Promise>,
    /// The check that what was acknowledged is on every member at the end.
    pub(crate) durability: Option<Check>,
}

/// What the applications of a workload are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applications {
    /// Each stands in line for a lock, and leaves the line when it has waited for too long.
    Lock,
    /// Each stands for election, and goes on standing.
    Election,
    /// One is active, the others stand by. Whoever becomes active shuts the one before out first.
    Standby,
    /// Each puts elements into queues, and claims and acknowledges what others put.
    Queue,
    /// Some enter a round of a barrier together, and leave it together.
    Barrier,
}

impl Applications {
    /// Whether one of them holds what all of them want, so that somebody must hold when all is well.
    #[must_use]
    pub fn one_holds(self) -> bool {
        !matches!(self, Self::Queue | Self::Barrier)
    }
}

/// Which workload.
#[derive(Clone, Copy)]
pub struct Kind(pub(crate) &'static Definition);

impl Kind {
    /// The name on the command line and in every file.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// One line about it.
    #[must_use]
    pub fn summary(self) -> &'static str {
        self.0.summary
    }

    /// What its keys stand for.
    #[must_use]
    pub fn object(self) -> Object {
        self.0.object
    }

    /// The kinds of operations of which a load that could find something has some.
    #[must_use]
    pub fn functions(self) -> &'static [Function] {
        self.0.functions
    }

    /// What its functions ask for, as far as the checker does not know them itself.
    #[must_use]
    pub fn vocabulary(self) -> Vocabulary {
        of_all(&[self])
    }

    /// Whether it still finds something where clients don't have this function.
    #[must_use]
    pub fn can_do_without(self, function: Function) -> bool {
        self.0.dispensable.contains(&function)
    }

    /// What a client is asked for: to set up, under load, and when members are read at the end. Of places
    /// that are made it need not know.
    #[must_use]
    pub fn asks_for(self) -> BTreeSet<Function> {
        let mut generator = (self.0.generator)(&Params::of_keys(1), ChaCha8Rng::seed_from_u64(0));
        let set_up = generator.setup().into_iter().filter(|op| !op.makes_a_place());
        let asked: Vec<Function> = set_up.chain(generator.final_reads()).map(|op| op.function()).collect();
        self.functions().iter().copied().chain(asked).collect()
    }

    /// Whether an operation with this function may stand in a history of its.
    #[must_use]
    pub fn may_have(self, function: Function) -> bool {
        let of_sessions = [Function::OPEN, Function::CLOSE, Function::ABANDON];
        function == Function::CREATE
            || self.0.marks.contains(&function)
            || self.0.words.iter().any(|word| word.function == function)
            || of_sessions.contains(&function) && self.records_sessions()
            || self.asks_for().contains(&function)
    }

    /// A promise as this workload knows it; none where it can't be judged by that. What is linearizable is,
    /// of transactions, strictly serializable; of watches it tells every change.
    #[must_use]
    pub fn promised(self, promise: Promise) -> Option<Promise> {
        (self.0.judged_by)(promise)
    }

    /// The names of the promises that it can be judged by, the strongest first.
    #[must_use]
    pub fn promise_names(self) -> Vec<&'static str> {
        let known = Promise::ALL.into_iter().filter(|promise| self.promised(*promise).is_some());
        known.map(Promise::name).collect()
    }

    /// Whether the openings and ends of sessions are part of the history.
    #[must_use]
    pub fn records_sessions(self) -> bool {
        self.0.records_sessions
    }

    /// Whether a run must see sessions expire, so that their time-out has to be short.
    #[must_use]
    pub fn sessions_expire(self) -> bool {
        self.0.sessions_expire
    }

    /// Whether its history is one of registers whose values are unique, and can be judged while it is made.
    #[must_use]
    pub fn goes_along(self) -> bool {
        self.0.goes_along
    }

    /// Whether there are clients of the bench's at all, and not a command of the user's own.
    #[must_use]
    pub fn has_clients(self) -> bool {
        self != Self::COMMAND
    }

    /// What its clients are, where they are applications: processes of their own that hold something.
    #[must_use]
    pub fn applications(self) -> Option<Applications> {
        self.0.applications
    }

    /// The checks of what its history shows by itself. The first one is its own.
    #[must_use]
    pub fn promises(self) -> &'static [Check] {
        self.0.promises
    }

    /// The check that what was acknowledged is on every member at the end; none where nothing is to stay.
    #[must_use]
    pub fn durability(self) -> Option<Check> {
        self.0.durability
    }

    /// The workload called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Which workload left a history with these operations, as far as they tell: of those that they mark the
    /// last one in the list, else the workload of registers.
    #[must_use]
    pub fn of_functions(functions: impl IntoIterator<Item = Function>) -> Self {
        let functions: BTreeSet<Function> = functions.into_iter().collect();
        let marked = |kind: &Self| kind.0.marks.iter().any(|mark| functions.contains(mark));
        Self::ALL.iter().copied().filter(marked).max().unwrap_or_default()
    }

    /// Its place in the list.
    fn place(self) -> Option<usize> {
        Self::ALL.iter().position(|other| *other == self)
    }
}

impl Default for Kind {
    fn default() -> Self {
        Self::REGISTER
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kind {}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}

/// A workload under way.
#[derive(Debug)]
pub struct Workload {
    kind: Kind,
    generator: Box<dyn Generator>,
}

impl Clone for Workload {
    fn clone(&self) -> Self {
        Self { kind: self.kind, generator: self.generator.duplicate() }
    }
}

impl Workload {
    /// A workload whose every choice comes from `rng`.
    ///
    /// # Errors
    /// [`ParamsError`] when the parameters make no sense.
    pub fn new(kind: Kind, params: Params, rng: ChaCha8Rng) -> Result<Self, ParamsError> {
        params.check()?;
        Ok(Self { kind, generator: (kind.0.generator)(&params, rng) })
    }

    /// Which it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What must be done, one by one and each with success, before the load begins.
    pub fn setup(&mut self) -> Vec<Op> {
        self.generator.setup()
    }

    /// What `process` is to do next.
    pub fn next_op(&mut self, process: u64) -> Op {
        self.generator.next_op(process)
    }

    /// What a process is to do next that changes nothing.
    pub fn next_look(&mut self, process: u64) -> Op {
        self.generator.next_look(process)
    }

    /// Remembers what came of an operation.
    pub fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        self.generator.complete(process, op, outcome);
    }

    /// A fault hits a process: it gives nothing up before it has changed something once more.
    pub fn works_on(&mut self, process: u64) {
        self.generator.works_on(process);
    }

    /// A process goes on with another client, which holds nothing.
    pub fn begins_anew(&mut self, process: u64) {
        self.generator.begins_anew(process);
    }

    /// What is read, on each member, after everything has healed.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Op> {
        self.generator.final_reads()
    }

    /// Whether the openings and ends of sessions are part of the history.
    #[must_use]
    pub fn records_sessions(&self) -> bool {
        self.kind.records_sessions()
    }

    /// What a last read says of the member that answered it; none when it says nothing.
    #[must_use]
    pub fn final_state(&self, member: u64, read: &Op, told: &Outcome) -> Option<FinalState> {
        if told.kind != EventKind::Ok || read.is_watch() {
            return None;
        }
        let (value, list) = match &told.value {
            Value::List(list) => {
                let mut list = list.to_vec();
                if read.object == Object::QUEUE {
                    // In any order: what was handed out may stand anywhere.
                    list.sort_unstable();
                }
                (None, Some(list))
            }
            Value::Txn(micros) => match micros.first().map(|micro| &micro.what) {
                Some(What::Read(Some(list))) => (None, Some(list.to_vec())),
                _ => (None, None),
            },
            Value::One(value) if *value != UNREADABLE => (Some(*value), None),
            _ => (None, None),
        };
        let (version, mzxid) = (told.claims.version, told.claims.changed_at);
        Some(FinalState { member, key: read.key, version, value, mzxid, list })
    }

    /// Whether these last reads are the last word: all members hold the same, and what the workload demands
    /// beyond that is so.
    #[must_use]
    pub fn is_settled(&self, states: &[FinalState]) -> bool {
        let mut first: std::collections::BTreeMap<u64, &FinalState> = std::collections::BTreeMap::new();
        let agree = states.iter().all(|state| first.entry(state.key).or_insert(state).holds_the_same(state));
        agree && (self.kind.0.is_settled)(states) && self.generator.is_told(states)
    }
}

/// What members agree on is the last word.
pub(crate) fn as_agreed(_: &[FinalState]) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use checker::history::Effect;

    use super::*;

    #[test]
    fn workloads_are_found_by_their_names_and_stand_in_the_order_of_the_list() {
        for (place, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!((Kind::from_name(kind.name()), kind.place()), (Some(*kind), Some(place)));
            assert!(
                !kind.summary().is_empty() && !kind.functions().is_empty() && !kind.promises().is_empty()
            );
        }
        assert!(Kind::ALL.is_sorted());
        assert_eq!((Kind::from_name("registre"), Kind::default().name()), (None, "register"));
    }

    #[test]
    fn a_function_marks_one_workload_at_most_and_one_that_does_it() {
        for function in functions() {
            let marked: Vec<&Kind> =
                Kind::ALL.iter().filter(|kind| kind.0.marks.contains(&function)).collect();
            assert!(marked.len() <= 1, "{function}: {marked:?}");
        }
        for kind in Kind::ALL {
            let told = Kind::of_functions(kind.functions().iter().copied());
            assert!(
                told == *kind || kind.0.marks.is_empty() && told.0.object == kind.0.object,
                "{kind:?}: {told:?}"
            );
        }
    }

    #[test]
    fn a_function_of_one_workloads_own_has_an_example() {
        static ASKED: Word =
            Word { function: Function::named("asked"), effect: Effect::Change, read: |op, _| Ok(op.value()) };
        let value = |name: &'static str| {
            example(Function::named(name), 77).map(|op| (op.is_change(), op.value().to_string()))
        };
        let numbers =
            |name: &'static str| value(name).map(|(is_change, value)| (is_change, value.contains("77")));
        for change in ["send", "open-account", "transfer"] {
            assert_eq!(numbers(change), Some((true, true)), "{change}");
        }
        for look in ["poll", "balances"] {
            assert_eq!(numbers(look), Some((false, false)), "{look}");
        }
        assert_eq!(example(Function::WRITE, 77), None);
        let word = |value| with_last(Op::said(Object::SET, 0, &ASKED, value), 77);
        assert_eq!(word(Value::Null), None, "nothing in a request for it is known again");
        assert_eq!(word(Value::One(1)).map(|op| op.value()), Some(Value::One(77)));
    }

    #[test]
    fn a_clone_goes_on_as_the_workload_does() {
        for kind in Kind::ALL {
            let rng = ChaCha8Rng::seed_from_u64(3);
            let mut workload = Workload::new(*kind, Params::of_keys(2), rng).expect("two keys");
            let mut clone = workload.clone();
            assert_eq!(workload.setup(), clone.setup());
            let ops =
                |workload: &mut Workload| (0..50).map(|at| workload.next_op(at % 3)).collect::<Vec<_>>();
            assert_eq!(ops(&mut workload), ops(&mut clone), "{kind:?}");
        }
    }
}
