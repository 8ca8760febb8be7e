//! Nodes that live as long as their session, and not longer.
//!
//! What is certain about a session, and what is not:
//!
//! - It lives for its time-out from the moment at which its client *sent* the last request that the leader is
//!   known to have seen: an acknowledged change, or its opening. Nothing less will do. A read is answered by
//!   a member that tells the leader of it with its next PING, and may not live that long; a ping of the
//!   client likewise. The time between the last such request and the time-out's end is certain, whatever
//!   comes after it is not. The members' clocks may run up to a tenth fast.
//! - Of one that its client left in silence only half of that is certain: Apache ZooKeeper's leader counts
//!   from the PING behind a request, half a tick later at most, and a member that dies before it takes that
//!   along. A time-out is two ticks at least, so a quarter of it and a tenth for the clocks leave more than
//!   half.
//! - It has ended when its closing was acknowledged, and when a member told its client that it had expired.
//! - One that its client left in silence has ended after its time-out and a bound that the caller states,
//!   counted from the moment at which everything was well: each new leader gives every session its whole
//!   time-out again. Without such a bound ([`Expiry`]) nothing is demanded of silent sessions.
//!
//! A node is made once by one session. While its session certainly lives, and from the acknowledgement of its
//! create or from the first look that found it, every look finds it. After its session certainly ended, no
//! look does. And what was once there and then was not never comes back. Looks are a sync and an existence as
//! one operation, or a whole listing.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::json;

use crate::figures::count;
use crate::history::{History, NEVER, Op, OpKind, Outcome, Rank, describe};
use crate::set::Reads;
use crate::verdict::{CheckResult, Verdict};
use crate::versions::counterexample;

/// The name of the check.
pub const NAME: &str = "ephemeral";

/// How much of its time-out a session certainly lives, in percent: clocks may run fast.
const CERTAIN_PERCENT: u64 = 90;
/// The same of one that its client left in silence.
const CERTAIN_IN_SILENCE_PERCENT: u64 = 50;

/// When a session that was left in silence has certainly ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// From when on everything was well: no fault in force, a leader established. Nanoseconds since the
    /// start.
    pub well_since_ns: u64,
    /// What an expiry may take beyond the time-out.
    pub bound_ns: u64,
}

type Broken<'a> = (&'static str, String, Vec<&'a Op>);

/// What is known of a session.
#[derive(Default)]
struct Session<'a> {
    timeout_ns: Option<u64>,
    /// The acknowledged change that was sent last, its opening included.
    contact: Option<&'a Op>,
    /// The first attempt to close it: from its call on nothing is certain any more.
    leaving: Option<&'a Op>,
    /// What says that it has ended.
    ended: Option<&'a Op>,
    /// When its client fell silent for ever.
    left: Option<&'a Op>,
}

impl Session<'_> {
    /// Until when it certainly lives, were it not ended by its client.
    fn alive_until_ns(&self) -> Option<u64> {
        let silent = self.left.is_some() && self.ended.is_none();
        let percent = if silent { CERTAIN_IN_SILENCE_PERCENT } else { CERTAIN_PERCENT };
        let certain = self.timeout_ns? / 100 * percent;
        Some(self.contact?.invoke_ns + certain)
    }

    /// Whether it certainly lived until this operation had returned.
    fn lived_through(&self, look: &Op) -> bool {
        let left = self.leaving.map_or(NEVER, |leaving| leaving.call);
        look.ret < left
            && matches!((look.complete_ns, self.alive_until_ns()), (Some(at), Some(until)) if at <= until)
    }

    fn silent_end_ns(&self, expiry: Expiry) -> Option<u64> {
        let left = self.left?.complete_ns?;
        // The other way round a clock may be slow by as much.
        let slow = self.timeout_ns? / CERTAIN_PERCENT * 100;
        Some(left.max(expiry.well_since_ns) + slow + expiry.bound_ns)
    }
}

/// One node: who made it, and the looks that say most.
struct Node<'a> {
    create: &'a Op,
    /// The earliest return of anybody who knows that it is there.
    born: Rank,
    witness: &'a Op,
    /// The earliest return of a look that began after its birth and did not find it.
    gone: Option<&'a Op>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    nodes: usize,
    sessions: usize,
    closed: usize,
    expired: usize,
    silent: usize,
    found: usize,
    certain: usize,
    missing_after_end: usize,
}

/// Judges every node. With stale reads only the last word counts: what `expiry` demands.
#[must_use]
pub fn check(history: &History, reads: Reads, expiry: Option<Expiry>) -> CheckResult {
    let mut counts = Counts::default();
    match judge(history, reads, expiry, &mut counts) {
        Err((what, why, culprits)) => CheckResult::new(NAME, Verdict::Invalid, what)
            .with_evidence(json!({"kind": what, "operations": history.ops().len()}))
            .with_counterexample(counterexample(why, &culprits, history.ops().len())),
        Ok(()) => {
            let Counts { nodes, sessions, closed, expired, silent, found, certain, missing_after_end } =
                counts;
            let evidence = json!({"nodes": nodes, "sessions": sessions, "closed": closed,
                "told_expired": expired, "left_silent": silent, "found": found, "certainly_alive": certain,
                "gone_after_the_end": missing_after_end});
            if certain == 0 && missing_after_end == 0 {
                let summary = "no look fell into a time of which anything is certain, so nothing was tested";
                return CheckResult::new(NAME, Verdict::Unknown, summary).with_evidence(evidence);
            }
            let summary = format!(
                "{} nodes of {} sessions: there in {} looks while their session certainly lived, gone in {} \
                 after it had ended ({} closed, {} expired, {} left silent), and none came back",
                count(nodes),
                count(sessions),
                count(certain),
                count(missing_after_end),
                count(closed),
                count(expired),
                count(silent)
            );
            CheckResult::new(NAME, Verdict::Valid, summary).with_evidence(evidence)
        }
    }
}

/// A look at one node.
#[derive(Clone, Copy)]
struct Look<'a> {
    op: &'a Op,
    present: bool,
}

fn judge<'a>(
    history: &'a History,
    reads: Reads,
    expiry: Option<Expiry>,
    counts: &mut Counts,
) -> Result<(), Broken<'a>> {
    let sessions = sessions(history)?;
    let mut nodes = nodes(history)?;
    let looks = looks(history, &nodes)?;
    counts.nodes = nodes.len();
    counts.sessions = sessions.len();
    counts.closed =
        sessions.values().filter(|s| s.ended.is_some_and(|op| op.kind() == OpKind::Close)).count();
    counts.expired =
        sessions.values().filter(|s| s.ended.is_some_and(|op| op.kind() == OpKind::Abandon)).count();
    counts.silent = sessions.values().filter(|s| s.ended.is_none() && s.left.is_some()).count();
    if reads == Reads::Current {
        told_early(&sessions)?;
    }
    for (name, looks) in &looks {
        let Some(node) = nodes.get_mut(name) else { continue };
        let session = node.create.session.and_then(|id| sessions.get(&id));
        let made_by = session.unwrap_or(&NOTHING_KNOWN);
        judge_node(node, made_by, looks, reads, expiry, counts)?;
    }
    Ok(())
}

const NOTHING_KNOWN: Session<'static> =
    Session { timeout_ns: None, contact: None, leaving: None, ended: None, left: None };

fn judge_node<'a>(
    node: &mut Node<'a>,
    session: &Session<'a>,
    looks: &[Look<'a>],
    reads: Reads,
    expiry: Option<Expiry>,
    counts: &mut Counts,
) -> Result<(), Broken<'a>> {
    for look in looks.iter().filter(|look| look.present) {
        counts.found += 1;
        possible(node, look.op)?;
        if look.op.ret < node.born {
            (node.born, node.witness) = (look.op.ret, look.op);
        }
    }
    for look in looks {
        after_silence(node, session, *look, expiry, counts)?;
        if reads == Reads::Current {
            after_end(node, session, *look, counts)?;
            while_alive(node, session, *look, counts)?;
        }
    }
    if reads == Reads::Current {
        for look in looks.iter().filter(|look| !look.present && look.op.call > node.born) {
            if node.gone.is_none_or(|gone| look.op.ret < gone.ret) {
                node.gone = Some(look.op);
            }
        }
        let Some(gone) = node.gone else { return Ok(()) };
        if let Some(back) = looks.iter().find(|look| look.present && look.op.call > gone.ret) {
            let why = format!(
                "{}, but {} before that, when it had been there: {}",
                describe(back.op),
                describe(gone),
                describe(node.witness)
            );
            return Err(("a node came back", why, vec![node.witness, gone, back.op]));
        }
    }
    Ok(())
}

/// A node is there only after somebody asked for it, and not when that was refused.
fn possible<'a>(node: &Node<'a>, look: &'a Op) -> Result<(), Broken<'a>> {
    let create = node.create;
    if create.call > look.ret {
        let why = format!("{}, but {} only afterwards", describe(look), describe(create));
        return Err(("a node was there before it was made", why, vec![look, create]));
    }
    if create.outcome == Outcome::Fail {
        let why = format!("{}, but {} and was told that it did not happen", describe(look), describe(create));
        return Err(("a node is there that was refused", why, vec![create, look]));
    }
    Ok(())
}

fn while_alive<'a>(
    node: &Node<'a>,
    session: &Session<'a>,
    look: Look<'a>,
    counts: &mut Counts,
) -> Result<(), Broken<'a>> {
    if look.op.call < node.born || !session.lived_through(look.op) {
        return Ok(());
    }
    counts.certain += 1;
    if look.present {
        return Ok(());
    }
    let Some(contact) = session.contact else { return Ok(()) };
    let timeout_ms = session.timeout_ns.unwrap_or_default() / 1_000_000;
    let why = format!(
        "{}, and {}, so its session with a time-out of {timeout_ms} ms lived, but {}",
        describe(node.witness),
        describe(contact),
        describe(look.op)
    );
    let mut culprits = vec![node.witness];
    if !std::ptr::eq(contact, node.witness) {
        culprits.push(contact);
    }
    culprits.push(look.op);
    Err(("a node died before its session", why, culprits))
}

fn after_end<'a>(
    node: &Node<'a>,
    session: &Session<'a>,
    look: Look<'a>,
    counts: &mut Counts,
) -> Result<(), Broken<'a>> {
    let Some(ended) = session.ended else { return Ok(()) };
    // Who was told that a session had expired was told the state at which the answer was given.
    if look.op.call < ended.ret {
        return Ok(());
    }
    if !look.present {
        counts.missing_after_end += 1;
        return Ok(());
    }
    let why =
        format!("{}, and {}, but afterwards {}", describe(node.create), describe(ended), describe(look.op));
    Err(("a node survived its session", why, vec![node.create, ended, look.op]))
}

fn after_silence<'a>(
    node: &Node<'a>,
    session: &Session<'a>,
    look: Look<'a>,
    expiry: Option<Expiry>,
    counts: &mut Counts,
) -> Result<(), Broken<'a>> {
    let Some(end_ns) = expiry.and_then(|expiry| session.silent_end_ns(expiry)) else { return Ok(()) };
    let Some(left) = session.left else { return Ok(()) };
    if look.op.invoke_ns < end_ns {
        return Ok(());
    }
    if !look.present {
        counts.missing_after_end += usize::from(session.ended.is_none());
        return Ok(());
    }
    let timeout_ms = session.timeout_ns.unwrap_or_default() / 1_000_000;
    let why = format!(
        "{}, and {} with a time-out of {timeout_ms} ms, which was over with all allowance at {} ms, but {}",
        describe(node.create),
        describe(left),
        end_ns / 1_000_000,
        describe(look.op)
    );
    Err(("a node survived its silent session", why, vec![node.create, left, look.op]))
}

/// Nobody is told that a session has expired while it certainly lives.
fn told_early<'a>(sessions: &BTreeMap<u64, Session<'a>>) -> Result<(), Broken<'a>> {
    for session in sessions.values() {
        let Some(told) = session.ended.filter(|op| op.kind() == OpKind::Abandon) else { continue };
        let Some((contact, until)) = session.contact.zip(session.alive_until_ns()) else { continue };
        if session.leaving.is_some_and(|leaving| leaving.call < told.call) {
            continue;
        }
        if told.complete_ns.is_some_and(|at| at < until) {
            let timeout_ms = session.timeout_ns.unwrap_or_default() / 1_000_000;
            let why = format!(
                "{}, but {}, less than its time-out of {timeout_ms} ms before",
                describe(told),
                describe(contact)
            );
            return Err(("a session expired before its time", why, vec![contact, told]));
        }
    }
    Ok(())
}

/// What the history says of each session.
fn sessions(history: &History) -> Result<BTreeMap<u64, Session<'_>>, Broken<'_>> {
    let mut sessions: BTreeMap<u64, Session<'_>> = BTreeMap::new();
    for op in history.ops() {
        let Some(session) = op.session.map(|id| sessions.entry(id).or_default()) else { continue };
        // Who falls silent has sent nothing: the session lives for its time-out, whatever became of its
        // connection.
        let leaves = op.kind() == OpKind::Close && op.was_sent();
        if leaves && session.leaving.is_none() {
            session.leaving = Some(op);
        }
        match (op.kind(), op.outcome) {
            (OpKind::Open { timeout_ms: Some(timeout_ms) }, Outcome::Ok) => {
                session.timeout_ns = u64::try_from(timeout_ms).ok().map(|ms| ms * 1_000_000);
                session.contact = newer(session.contact, op);
            }
            (OpKind::Close, Outcome::Ok) => session.ended = session.ended.or(Some(op)),
            (OpKind::Abandon, Outcome::Ok) => {
                session.left = session.left.or(Some(op));
                if op.error.is_some() {
                    session.ended = session.ended.or(Some(op));
                }
            }
            (_, Outcome::Ok) if op.is_change() => session.contact = newer(session.contact, op),
            _ => {}
        }
    }
    Ok(sessions)
}

fn newer<'a>(known: Option<&'a Op>, op: &'a Op) -> Option<&'a Op> {
    match known {
        Some(known) if known.invoke_ns >= op.invoke_ns => Some(known),
        _ => Some(op),
    }
}

fn nodes(history: &History) -> Result<HashMap<i64, Node<'_>>, Broken<'_>> {
    let mut nodes = HashMap::new();
    for op in history.ops() {
        let OpKind::Create { name, .. } = op.kind() else { continue };
        let born = if op.outcome == Outcome::Ok { op.ret } else { NEVER };
        if let Some(Node { create, .. }) =
            nodes.insert(name, Node { create: op, born, witness: op, gone: None })
        {
            let why = format!("{} and {}: a node is made once only", describe(create), describe(op));
            return Err(("a node was made twice", why, vec![create, op]));
        }
    }
    Ok(nodes)
}

/// Every look at each node, nodes in the order of their names.
fn looks<'a>(
    history: &'a History,
    nodes: &HashMap<i64, Node<'a>>,
) -> Result<BTreeMap<i64, Vec<Look<'a>>>, Broken<'a>> {
    let mut looks: BTreeMap<i64, Vec<Look<'a>>> = BTreeMap::new();
    let stranger = |op: &'a Op, name: i64| {
        let why = format!("{}, and nobody ever made node {name}", describe(op));
        Err(("a node is there that nobody made", why, vec![op]))
    };
    for op in history.ops().iter().filter(|op| op.outcome == Outcome::Ok) {
        if let OpKind::Exists { name, present } = op.kind() {
            if present && !nodes.contains_key(&name) {
                return stranger(op, name);
            }
            looks.entry(name).or_default().push(Look { op, present });
        } else if let Some(list) = op.list() {
            if let Some(name) = list.iter().find(|name| !nodes.contains_key(name)) {
                return stranger(op, *name);
            }
            let listed: HashSet<i64> = list.iter().copied().collect();
            let of_this_place = nodes.iter().filter(|(_, node)| node.create.key == op.key);
            for (name, _) in of_this_place {
                looks.entry(*name).or_default().push(Look { op, present: listed.contains(name) });
            }
        }
    }
    Ok(looks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Event, EventKind, Function, Value};

    const MS: u64 = 1_000_000;
    /// The time-out of every session of these tests.
    const TIMEOUT_MS: i64 = 1000;

    /// A history in the making; each operation has a process of its own and takes one millisecond.
    #[derive(Default)]
    struct Script(Vec<Event>, u64);

    impl Script {
        fn op(
            mut self,
            at_ms: u64,
            session: u64,
            f: Function,
            asked: Value,
            kind: EventKind,
            told: Value,
        ) -> Self {
            let mut invoke = Event::new(self.1, EventKind::Invoke, f, 0, asked, at_ms * MS);
            let mut end = Event::new(self.1, kind, f, 0, told, (at_ms + 1) * MS);
            (invoke.session, end.session) = (Some(session), Some(session));
            self.1 += 1;
            self.0.extend([invoke, end]);
            self
        }

        fn open(self, at: u64, session: u64) -> Self {
            self.op(at, session, Function::OPEN, Value::Null, EventKind::Ok, Value::One(TIMEOUT_MS))
        }

        fn create(self, at: u64, session: u64, name: i64) -> Self {
            self.op(at, session, Function::CREATE, Value::One(name), EventKind::Ok, Value::One(name))
        }

        fn lost_create(self, at: u64, session: u64, name: i64) -> Self {
            self.op(at, session, Function::CREATE, Value::One(name), EventKind::Info, Value::One(name))
        }

        fn look(self, at: u64, name: i64, present: bool) -> Self {
            let told = Value::Pair(Some(name), i64::from(present));
            self.op(at, 99, Function::EXISTS, Value::One(name), EventKind::Ok, told)
        }

        fn list(self, at: u64, names: &[i64]) -> Self {
            self.op(at, 99, Function::READ, Value::Null, EventKind::Ok, Value::List(names.into()))
        }

        fn close(self, at: u64, session: u64, kind: EventKind) -> Self {
            self.op(at, session, Function::CLOSE, Value::Null, kind, Value::Null)
        }

        fn abandon(mut self, at: u64, session: u64, error: Option<&str>) -> Self {
            self = self.op(at, session, Function::ABANDON, Value::Null, EventKind::Ok, Value::Null);
            self.0.last_mut().unwrap().error = error.map(Into::into);
            self
        }

        fn judged(self) -> CheckResult {
            let expiry = Expiry { well_since_ns: 0, bound_ns: 500 * MS };
            check(&History::from_events(self.0).unwrap(), Reads::Current, Some(expiry))
        }

        fn broken(self) -> (String, usize) {
            let result = self.judged();
            assert_eq!(result.verdict, Verdict::Invalid, "{}", result.summary);
            (result.summary, result.counterexample.unwrap().ops.len())
        }

        fn valid(self) -> CheckResult {
            let result = self.judged();
            assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
            result
        }
    }

    fn begun() -> Script {
        Script::default().open(0, 1).create(10, 1, 7)
    }

    #[test]
    fn a_node_that_lives_and_ends_with_its_session_is_valid() {
        let result =
            begun().look(20, 7, true).look(900, 7, true).close(950, 1, EventKind::Ok).look(960, 7, false);
        let result = result.valid();
        assert_eq!(result.evidence["certainly_alive"], 2);
        assert_eq!(result.evidence["gone_after_the_end"], 1);
    }

    #[test]
    fn a_node_that_is_missing_while_its_session_certainly_lives_died_early() {
        let (summary, ops) = begun().look(300, 7, false).broken();
        assert_eq!((summary.as_str(), ops), ("a node died before its session", 2));
        // A later acknowledged change proves a longer life.
        let (_, ops) = begun().create(800, 1, 8).look(1500, 7, false).broken();
        assert_eq!(ops, 3);
        assert!(begun().list(300, &[]).broken().0.contains("died"));
    }

    #[test]
    fn between_the_last_contact_and_the_time_out_s_end_nothing_more_is_certain() {
        begun().look(20, 7, true).look(960, 7, false).valid();
        begun().look(20, 7, true).look(960, 7, true).valid();
        // A read of the session is no contact: the leader may never have heard of it.
        let read = |script: Script| {
            script.op(700, 1, Function::READ, Value::Null, EventKind::Ok, Value::List([7].into()))
        };
        read(begun()).look(1500, 7, false).valid();
        // And an attempt to close it may succeed at any moment after its call.
        begun().look(20, 7, true).close(100, 1, EventKind::Info).look(200, 7, false).valid();
        begun().look(20, 7, true).close(100, 1, EventKind::Info).look(200, 7, true).valid();
    }

    #[test]
    fn a_session_that_was_left_in_silence_lives_for_half_of_its_time_out_all_the_same() {
        let (summary, ops) = begun().abandon(100, 1, None).look(200, 7, false).broken();
        assert_eq!((summary.as_str(), ops), ("a node died before its session", 2));
        begun().abandon(100, 1, None).look(200, 7, true).look(560, 7, false).valid();
        // One whose closing got no answer may have ended, and is left in silence as well.
        begun()
            .look(20, 7, true)
            .close(100, 1, EventKind::Info)
            .abandon(150, 1, None)
            .look(200, 7, false)
            .valid();
    }

    #[test]
    fn a_node_that_is_there_after_its_session_ended_survived_it() {
        let (summary, ops) = begun().close(100, 1, EventKind::Ok).look(110, 7, true).broken();
        assert_eq!((summary.as_str(), ops), ("a node survived its session", 3));
        let told = begun().abandon(1500, 1, Some("session-expired")).look(1510, 7, true);
        assert_eq!(told.broken().1, 3);
        let overlapping = begun().look(20, 7, true).close(100, 1, EventKind::Ok);
        overlapping.look(100, 7, true).valid();
    }

    #[test]
    fn a_create_of_unknown_fate_may_have_happened_and_not_after_the_end() {
        let opened = || Script::default().open(0, 1).create(5, 1, 1).look(6, 1, true).lost_create(10, 1, 7);
        opened().look(20, 7, false).look(40, 7, true).look(60, 7, true).valid();
        assert!(opened().look(20, 7, true).look(40, 7, false).broken().0.contains("died"));
        assert!(opened().close(50, 1, EventKind::Ok).look(60, 7, true).broken().0.contains("survived"));
    }

    #[test]
    fn a_silent_session_has_ended_after_its_time_out_and_the_stated_bound() {
        let left = || begun().look(20, 7, true).abandon(100, 1, None);
        left().look(1600, 7, true).valid();
        let (summary, ops) = left().look(1800, 7, true).broken();
        assert_eq!((summary.as_str(), ops), ("a node survived its silent session", 3));
        left().look(1800, 7, false).valid();
    }

    #[test]
    fn a_session_that_certainly_lives_is_not_called_expired() {
        let (summary, ops) = begun().abandon(400, 1, Some("session-expired")).broken();
        assert_eq!((summary.as_str(), ops), ("a session expired before its time", 2));
        begun().look(20, 7, true).abandon(1200, 1, Some("session-expired")).valid();
    }

    #[test]
    fn what_is_gone_stays_gone() {
        let (summary, ops) = begun().look(950, 7, false).look(960, 7, true).broken();
        assert_eq!((summary.as_str(), ops), ("a node came back", 3));
    }

    #[test]
    fn what_nobody_made_or_not_yet_is_not_there() {
        assert_eq!(begun().look(20, 8, true).broken().1, 1);
        assert_eq!(begun().list(20, &[7, 8]).broken().1, 1);
        let (summary, _) = Script::default().open(0, 1).look(5, 7, true).create(10, 1, 7).broken();
        assert!(summary.contains("before it was made"), "{summary}");
    }

    #[test]
    fn a_stale_look_accuses_nobody_of_what_is_not_the_last_word() {
        let script = begun().look(300, 7, false);
        let result = check(&History::from_events(script.0).unwrap(), Reads::Stale, None);
        assert_eq!(result.verdict, Verdict::Unknown);
    }
}
