//! Terms of applications, and what a fault of a holder cost: who held what, and how long nobody did.
//!
//! A change of the holder is taken apart by the clock of the run: from the fault until the old holder was not
//! certain any more; from the fault until the ensemble ended its session; from there until the next one in
//! the line was told; until it held; and until the first write behind that was taken. A leader says when it
//! ends a silent session, and each application when it is told of the end of the one ahead of it. Where
//! nobody said so, that moment is missing.

use checker::history::History;
use workloads::terms::{by_key, is_stale};

use crate::clock::RunNs;
use crate::events::{Event, Said, Stamped};
use crate::faults::FaultRecord;
use crate::notices::{End, Notice};
use crate::observed::Observed;
use crate::results::HolderChange;

/// A term, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// The number of the application's process; none where it is not told.
    pub application: Option<u64>,
    /// Its token.
    pub token: i64,
    /// Since when it held.
    pub from_ns: RunNs,
    /// Until when it was certain, or was asked to release.
    pub to_ns: RunNs,
}

/// What is known of one lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// Its key.
    pub key: u64,
    /// Its terms, in the order of time.
    pub terms: Vec<Term>,
    /// When writes were refused for a token that was stale.
    pub stale: Vec<RunNs>,
}

/// The locks of a history, by key.
pub fn locks(history: &History) -> Vec<Lock> {
    let held = by_key(history);
    let lock = |(key, held): (&u64, &workloads::terms::Held<'_>)| {
        let term = |term: &workloads::terms::Term<'_>| Term {
            application: term.acquired.session,
            token: term.token,
            from_ns: term.since,
            to_ns: term.end().max(term.since),
        };
        let refused = history.ops().iter().filter(|op| op.key == *key && is_stale(op));
        Lock {
            key: *key,
            terms: held.terms.iter().map(term).collect(),
            stale: refused.filter_map(|op| op.complete_ns).collect(),
        }
    };
    held.iter().map(lock).collect()
}

/// When the session was ended by which an application held at a moment, behind a fault.
fn expired(observed: &Observed, application: u64, held: RunNs, injected_ns: RunNs) -> Option<RunNs> {
    let session = observed.notices.session_of(application, held)?;
    let is_it = |stamped: &&Stamped| {
        stamped.time > injected_ns
            && matches!(&stamped.event, Event::Said(Said::Expired { session: expired }) if expired == session)
    };
    observed.events.iter().filter(is_it).map(|stamped| stamped.time).min()
}

/// When an application was told behind a fault that one ahead of it is gone, before it held.
fn told(observed: &Observed, application: u64, key: u64, injected_ns: RunNs, held: RunNs) -> Option<RunNs> {
    let is_it = |notice: &&Notice| {
        notice.application == application
            && notice.key == key
            && notice.of != End::Line
            && (injected_ns..=held).contains(&notice.time)
    };
    // Others ahead of it may have gone before.
    observed.notices.told.iter().filter(is_it).map(|notice| notice.time).max()
}

/// What each fault of a holder was followed by.
pub fn changes(history: &History, faults: &[FaultRecord], observed: &Observed) -> Vec<HolderChange> {
    let held = by_key(history);
    let change = |fault: &FaultRecord| {
        let (holder, injected_ns) = (fault.holder?, fault.injected_ns?);
        let token = i64::try_from(holder.token).ok()?;
        let lock = held.get(&holder.key)?;
        let old = lock.terms.iter().find(|term| term.token == token)?;
        let next = lock.terms.iter().find(|term| term.since > injected_ns && term.token > token);
        // The next holder may have given up without a write: a load that lags behind asks it for none.
        let first = next.and_then(|next| lock.writes.iter().find(|write| write.token >= next.token));
        let next_is = next.and_then(|next| Some((next.acquired.session?, next.since)));
        Some(HolderChange {
            fault: fault.id.clone(),
            kind: fault.kind.clone(),
            key: holder.key,
            injected_ns,
            certain_until_ns: old.certain_until().max(injected_ns),
            expired_ns: expired(observed, holder.application, old.since, injected_ns),
            told_ns: next_is.and_then(|(who, since)| told(observed, who, holder.key, injected_ns, since)),
            held_ns: next.map(|next| next.since),
            written_ns: first.map(|first| first.stored),
        })
    };
    faults.iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Holder;
    use crate::member::MemberId;
    use checker::history::{Event as Line, EventKind, Function, Value};

    fn ok(process: u64, f: Function, asked: Value, told: Value, at: u64) -> [Line; 2] {
        let mut done = Line::new(process, EventKind::Ok, f, 0, told, at + 1);
        done.session = Some(process);
        [Line::new(process, EventKind::Invoke, f, 0, asked, at), done]
    }

    /// Application 1 works by the session 0xa, which ends at 60; application 2 is told at 64.
    fn observed() -> Observed {
        let mut observed = Observed::default();
        for (time, session) in [(15, "0xa"), (60, "0xa"), (90, "0xb")] {
            let event = Event::Said(Said::Expired { session: session.to_owned() });
            observed.events.push(Stamped { time, node: MemberId(1), event });
        }
        observed.notices.works_by(5, 1, "0xa");
        for (time, application, of) in
            [(18, 2, End::Place(1)), (64, 2, End::Place(2)), (66, 2, End::Line), (67, 3, End::Place(3))]
        {
            observed.notices.note(Notice { time, application, key: 0, of });
        }
        observed
    }

    #[test]
    fn a_change_of_a_holder_is_taken_apart() {
        let list = |values: &[i64]| Value::List(values.into());
        let events = [
            ok(1, Function::ACQUIRE, Value::Null, list(&[7, 10, 50]), 10),
            ok(2, Function::ACQUIRE, Value::Null, list(&[9, 70, 99]), 70),
            ok(2, Function::STORE, Value::Pair(Some(9), 1), list(&[9, 1, 75, 99, 80]), 75),
        ];
        let history = History::from_events(events.concat()).expect("a history");
        let fault = FaultRecord {
            id: "F1".to_owned(),
            kind: "kill-holder".to_owned(),
            injected_ns: Some(20),
            holder: Some(Holder { application: 1, key: 0, token: 7 }),
            ..FaultRecord::default()
        };
        let changes = changes(&history, &[fault, FaultRecord::default()], &observed());
        assert_eq!(changes.len(), 1);
        assert_eq!((changes[0].injected_ns, changes[0].certain_until_ns), (20, 50));
        assert_eq!((changes[0].expired_ns, changes[0].told_ns), (Some(60), Some(64)));
        assert_eq!((changes[0].held_ns, changes[0].written_ns), (Some(70), Some(80)));
        let locks = locks(&history);
        assert_eq!(locks[0].terms[0], Term { application: Some(1), token: 7, from_ns: 10, to_ns: 50 });
    }
}
