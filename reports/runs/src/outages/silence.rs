//! Silence: for how long fresh clients asked a system for changes, and were refused or not answered.
//!
//! Not every span without an acknowledgement is silence. Nobody may have asked; the bench may have been short
//! of clients; the machine may have stood still. So a clock runs here, and only over time that evidence
//! covers: operations that were sent and came to nothing, and attempts to connect that failed. And a client
//! that is refused again and again may be broken itself, so a member counts as silent only by clients that
//! are new since the silence began, or that others served meanwhile.
//!
//! A refusal that follows from the state is a sign of life: a compare-and-set that found another value, a
//! lock that somebody holds, a transaction that was aborted for another one. An empty queue is an answer. A
//! read is none where changes are asked for: who serves only what was, and takes nothing new, has stopped.

use std::collections::{BTreeMap, HashMap, HashSet};

use checker::history::{
    BAD_VERSION, Effect, Event, EventKind, Function, History, NOT_SENT, Op, Outcome, Vocabulary,
};
use workloads::{NOT_NEEDED, STALE_TOKEN};

use crate::numbers::NS_PER_S;
use crate::observed::{Observed, Shut};

/// Pieces of evidence that are no further apart than this, in ns, belong together: between them the clock
/// runs.
const JOINED_NS: u64 = 2 * NS_PER_S;
/// So many operations of fresh clients, or failed attempts to connect, show that a member is silent.
const ENOUGH: u64 = 2;
/// The last of them is at most this part of the silence before its end.
const LATE_PART: u64 = 3;

/// What one operation says of the system's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Somebody decided it.
    Life,
    /// It was sent, and was refused for no reason of its own, or not answered.
    Against,
    /// Neither: nobody was asked, or what it waited for was not the system's.
    Nothing,
}

/// What a change says. What asks for no change says nothing; see [`sign_of_any`].
pub fn sign(op: &Op) -> Sign {
    if op.is_change() { said(op.f, op.outcome, op.error.as_deref()) } else { Sign::Nothing }
}

/// The same of any operation, reads too.
pub fn sign_of_any(op: &Op) -> Sign {
    said(op.f, op.outcome, op.error.as_deref())
}

/// What a completion's line says of a change, as [`sign`] does. `vocabulary`: what its words ask for.
pub fn sign_of_line(line: &Event, vocabulary: &Vocabulary) -> Sign {
    let outcome = match line.kind {
        EventKind::Invoke => return Sign::Nothing,
        EventKind::Ok => Outcome::Ok,
        EventKind::Fail => Outcome::Fail,
        EventKind::Info => Outcome::Info,
    };
    let changes = vocabulary.effect(line.f) == Effect::Change;
    if changes { said(line.f, outcome, line.error.as_deref()) } else { Sign::Nothing }
}

fn said(function: Function, outcome: Outcome, error: Option<&str>) -> Sign {
    // The store is the bench's own. Of histories from elsewhere a compare-and-set that failed names no error.
    let of_the_store = function == Function::STORE;
    let compared = function == Function::CAS && outcome == Outcome::Fail && error.is_none();
    let error = error.unwrap_or_default();
    match outcome {
        _ if of_the_store || error == NOT_NEEDED || error.starts_with(NOT_SENT) => Sign::Nothing,
        Outcome::Ok => Sign::Life,
        Outcome::Fail if compared || follows_from_the_state(function, error) => Sign::Life,
        // What it waited for did not come in time; that others hold it, or are late, says nothing.
        Outcome::Fail | Outcome::Info if error == NOT_IN_TIME => Sign::Nothing,
        Outcome::Fail | Outcome::Info => Sign::Against,
    }
}

/// The error of an application whose turn did not come.
const NOT_IN_TIME: &str = "not-in-time";

/// Whether a refusal tells of what is there, and so that somebody looked.
fn follows_from_the_state(function: Function, error: &str) -> bool {
    let error = error.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| error.contains(word));
    if [BAD_VERSION, STALE_TOKEN].contains(&error.as_str())
        || says(&["exists", "mismatch", "no-node", "not-empty", "is empty", "queue-empty"])
    {
        return true;
    }
    match function {
        Function::ACQUIRE | Function::RELEASE => says(&["held", "busy", "locked", "taken", "not-holder"]),
        Function::TXN => says(&["conflict", "abort", "serializ", "deadlock"]),
        Function::DEQUEUE | Function::ACKNOWLEDGE => says(&["empty", "gone"]),
        _ => false,
    }
}

/// What shows the silence of a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// For how long it covers the span, in ns, without what the machine stood still.
    pub clock_ns: u64,
    /// Operations that were refused.
    pub refused: u64,
    /// Operations without an answer.
    pub unanswered: u64,
    /// Attempts to connect that failed.
    pub connects: u64,
    /// Members that fresh clients found silent, again and again and to the end.
    pub silent: Vec<u64>,
}

/// Who asked whom, to be asked about spans.
pub struct Silences<'a> {
    history: &'a History,
    observed: &'a Observed,
    /// How long a client waits for an answer.
    patience_ns: u64,
    /// When each process was first heard of.
    begun: HashMap<u64, u64>,
}

impl<'a> Silences<'a> {
    /// Of a run.
    pub fn of(history: &'a History, observed: &'a Observed, patience_ns: u64) -> Self {
        let mut begun = HashMap::new();
        // Operations stand in the order of their calls.
        for op in history.ops() {
            begun.entry(op.process).or_insert(op.invoke_ns);
        }
        Self { history, observed, patience_ns, begun }
    }

    /// What shows that none of these members decided the operations that `of` chooses in a span.
    pub fn evidence(
        &self,
        (from, to): (u64, u64),
        members: &[u64],
        of: impl Fn(&Op) -> bool,
        sign: impl Fn(&Op) -> Sign,
    ) -> Evidence {
        let mut found = Evidence::default();
        let mut covered: Vec<(u64, u64)> = Vec::new();
        let mut by_member: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let meanwhile = self.within(from, to);
        let served: HashSet<u64> = meanwhile
            .iter()
            .filter(|op| op.outcome == Outcome::Ok && op.was_sent())
            .map(|op| op.process)
            .collect();
        for op in meanwhile.iter().filter(|op| of(op) && sign(op) == Sign::Against) {
            let end = op.complete_ns.unwrap_or(op.invoke_ns.saturating_add(self.patience_ns)).min(to);
            covered.push((op.invoke_ns, end.max(op.invoke_ns)));
            match op.outcome {
                Outcome::Fail => found.refused += 1,
                _ => found.unanswered += 1,
            }
            let is_fresh = self.begun.get(&op.process).is_some_and(|begun| *begun >= from);
            if let Some(member) = op.node.filter(|_| is_fresh || served.contains(&op.process)) {
                let of_member = by_member.entry(member).or_default();
                *of_member = (of_member.0 + 1, of_member.1.max(end));
            }
        }
        let tried = |shut: &&Shut| members.contains(&shut.member) && shut.from_ns < to && shut.to_ns > from;
        for shut in self.observed.shut.iter().filter(tried) {
            covered.push((shut.from_ns.max(from), shut.to_ns.min(to)));
            found.connects += shut.attempts;
            let of_member = by_member.entry(shut.member).or_default();
            *of_member = (of_member.0 + shut.attempts, of_member.1.max(shut.to_ns.min(to)));
        }
        let late = to.saturating_sub((to - from) / LATE_PART).saturating_sub(self.patience_ns).max(from);
        let is_silent = |member: &&u64| {
            by_member.get(member).is_some_and(|(number, last)| *number >= ENOUGH && *last >= late)
        };
        found.silent = members.iter().filter(is_silent).copied().collect();
        found.clock_ns = self.running(covered);
        found
    }

    /// The operations that were called in a span.
    pub fn within(&self, from: u64, to: u64) -> &'a [Op] {
        let ops = self.history.ops();
        let first = ops.partition_point(|op| op.invoke_ns < from);
        &ops[first..ops.partition_point(|op| op.invoke_ns < to).max(first)]
    }

    /// How long what is covered is, joined over short gaps, without the time in which the machine stood
    /// still.
    fn running(&self, mut covered: Vec<(u64, u64)>) -> u64 {
        covered.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in covered {
            match joined.last_mut() {
                Some(last) if from <= last.1.saturating_add(JOINED_NS) => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        let still = |from: u64, to: u64| -> u64 {
            let shared = |stall: &(u64, u64)| stall.1.min(to).saturating_sub(stall.0.max(from));
            self.observed.stalls.iter().map(shared).sum()
        };
        joined.iter().map(|(from, to)| (to - from).saturating_sub(still(*from, *to))).sum()
    }
}

#[cfg(test)]
mod tests {
    use checker::history::Value;

    use super::*;

    const S: u64 = NS_PER_S;

    fn line(f: Function, kind: EventKind, error: Option<&str>) -> Event {
        let mut line = Event::new(1, kind, f, 0, Value::Null, 2);
        line.error = error.map(Into::into);
        line
    }

    #[test]
    fn a_refusal_that_follows_from_the_state_is_life_and_any_other_is_not() {
        use EventKind::{Fail, Info, Ok};
        for (f, kind, error, wanted) in [
            (Function::WRITE, Ok, None, Sign::Life),
            (Function::WRITE, Fail, Some("stuck"), Sign::Against),
            (Function::WRITE, Fail, Some("busy"), Sign::Against),
            (Function::WRITE, Fail, Some("not-sent: no client was free"), Sign::Nothing),
            (Function::WRITE, Info, Some("lost: no answer in time"), Sign::Against),
            (Function::WRITE, Ok, Some(NOT_NEEDED), Sign::Nothing),
            (Function::CAS, Fail, Some(BAD_VERSION), Sign::Life),
            (Function::CAS, Fail, Some("stuck"), Sign::Against),
            (Function::DEQUEUE, Ok, None, Sign::Life),
            (Function::ACQUIRE, Fail, Some("busy"), Sign::Life),
            (Function::ACQUIRE, Fail, Some("held"), Sign::Life),
            (Function::ACQUIRE, Fail, Some("stuck"), Sign::Against),
            (Function::STORE, Fail, Some("refused"), Sign::Nothing),
            (Function::TXN, Fail, Some("conflict"), Sign::Life),
            (Function::READ, Ok, None, Sign::Nothing),
        ] {
            assert_eq!(
                sign_of_line(&line(f, kind, error), &Vocabulary::default()),
                wanted,
                "{f} {kind:?} {error:?}"
            );
        }
        let read = vec![line(Function::READ, EventKind::Invoke, None), line(Function::READ, Ok, None)];
        let history = History::from_events(read).expect("a history");
        assert_eq!(sign_of_any(&history.ops()[0]), Sign::Life, "of one member a read is one");
    }

    /// Writes at members in turn, one a second, refused, by processes that are told from the number.
    fn refused(seconds: std::ops::Range<u64>, process: impl Fn(u64) -> u64) -> History {
        let mut events = Vec::new();
        for at in seconds {
            let (process, value) = (process(at), Value::One(i64::try_from(at).expect("small")));
            let mut invoke =
                Event::new(process, EventKind::Invoke, Function::WRITE, 0, value.clone(), at * S);
            invoke.node = Some(1 + at % 3);
            let mut fail = Event::new(process, EventKind::Fail, Function::WRITE, 0, value, at * S + S / 2);
            fail.error = Some("stuck".into());
            events.extend([invoke, fail]);
        }
        History::from_events(events).expect("a history")
    }

    fn evidence(history: &History, observed: &Observed, span: (u64, u64)) -> Evidence {
        Silences::of(history, observed, S).evidence(span, &[1, 2, 3], |_| true, sign)
    }

    #[test]
    fn only_fresh_clients_show_that_a_member_is_silent() {
        let observed = Observed::default();
        let fresh = refused(0..60, |at| at);
        let found = evidence(&fresh, &observed, (20 * S, 60 * S));
        assert_eq!((found.silent.as_slice(), found.refused), (&[1, 2, 3][..], 40));
        assert_eq!(found.clock_ns, 39 * S + S / 2);
        let old = refused(0..60, |_| 7);
        assert_eq!(evidence(&old, &observed, (20 * S, 60 * S)).silent, [0; 0], "one client, broken perhaps");
    }

    #[test]
    fn the_clock_stands_where_nobody_asked_and_where_the_machine_stood_still() {
        let observed = Observed { stalls: vec![(25 * S, 28 * S)], ..Observed::default() };
        let found = evidence(&refused(20..30, |at| at), &observed, (0, 60 * S));
        assert_eq!(found.clock_ns, 9 * S + S / 2 - 3 * S);
        assert!(found.silent.is_empty(), "what became of it later nobody asked");
    }

    #[test]
    fn a_member_that_takes_no_connections_is_silent_too() {
        let shut = |member| Shut { member, from_ns: 10 * S, to_ns: 50 * S, attempts: 400 };
        let observed = Observed { shut: vec![shut(1), shut(3)], ..Observed::default() };
        let found = evidence(&refused(0..0, |at| at), &observed, (10 * S, 50 * S));
        assert_eq!((found.silent.as_slice(), found.clock_ns, found.connects), (&[1, 3][..], 40 * S, 800));
    }
}
