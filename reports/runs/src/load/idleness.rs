//! What the bench itself did not send.
//!
//! An operation that no client took in time was never sent, and there are three reasons. No member took the
//! clients: that is the system's. All clients waited for members that did not answer: that is the system's as
//! well. Or the bench had no client for it, because its clients were too few for the rate, or were being
//! replaced: that is the bench's. Nothing was asked of the system then, so such a stretch is no outage of the
//! system's, and nothing that fell due in it measures anything but the bench.
//!
//! A client that becomes free finds what expired and says that none was free in time. Whose doing that was is
//! seen from what stands beside it: members that answered others meanwhile were not silent. In doubt it is
//! the system's, so that no outage is excused by a guess.

use checker::history::{History, NOT_SENT, Op, Outcome};
use workloads::outcome::{CLIENT_REPLACED, NO_CLIENT_FREE, NO_MEMBER_TOOK, NO_PROCESS};

use crate::operations::{due_ns, is_update};
use crate::results::{Outage, RunInfo};
use crate::unsent::{Unsent, overlaps};

/// Stretches with less than this between them are one.
const APART_NS: u64 = 250_000_000;

/// What the bench did not send in a run of clients of its own.
pub fn of_run(run: &RunInfo, history: &History) -> Option<Unsent> {
    if run.is_wrapped() {
        return None;
    }
    of(history, run.operation_timeout_ms?.saturating_mul(1_000_000))
}

/// What the bench did not send of this history, whose operations waited for a client for so long at most.
/// None where it sent all.
pub fn of(history: &History, patience_ns: u64) -> Option<Unsent> {
    let mut refused: Vec<(u64, u64)> = Vec::new();
    let mut replaced: Vec<(u64, u64)> = Vec::new();
    let mut busy: Vec<(u64, u64)> = Vec::new();
    for op in history.ops() {
        let Some(why) = why_unsent(op) else { continue };
        let given_up = op.complete_ns.unwrap_or(op.invoke_ns);
        let waited = (due_ns(op), given_up.min(due_ns(op).saturating_add(patience_ns)).max(due_ns(op)));
        match why {
            NO_CLIENT_FREE => busy.push(waited),
            CLIENT_REPLACED | NO_PROCESS => replaced.push(waited),
            NO_MEMBER_TOOK => refused.push(waited),
            _ => {}
        }
    }
    if busy.is_empty() && replaced.is_empty() {
        return None;
    }
    let away = merged(replaced.clone(), 0);
    let answers = answers(history);
    busy.retain(|waited| overlaps(&away, *waited) || keeps_answering(&answers, *waited));
    let (no_client_free, number_replaced) = (number(&busy), number(&replaced));
    if no_client_free + number_replaced == 0 {
        return None;
    }
    let stretches = merged(busy.into_iter().chain(replaced).collect(), APART_NS);
    let asked = asked(history, patience_ns).chain(refused).collect();
    let idle = without(&stretches, &merged(asked, 0));
    let due = u64::try_from(history.ops().len()).unwrap_or(u64::MAX);
    Some(Unsent { due, no_client_free, replaced: number_replaced, stretches, idle })
}

fn number(of: &[(u64, u64)]) -> u64 {
    u64::try_from(of.len()).unwrap_or(u64::MAX)
}

/// Why an operation was never sent; none where it was.
fn why_unsent(op: &Op) -> Option<&str> {
    if op.outcome != Outcome::Fail || op.was_sent() {
        return None;
    }
    let error = op.error.as_deref()?;
    Some(error.strip_prefix(NOT_SENT)?.trim_start_matches([':', ' ']))
}

/// When members answered what was sent, ascending.
fn answers(history: &History) -> Vec<u64> {
    let answered = |op: &&Op| op.outcome != Outcome::Info && op.was_sent() && op.node.is_some();
    let mut answers: Vec<u64> =
        history.ops().iter().filter(answered).filter_map(|op| op.complete_ns).collect();
    answers.sort_unstable();
    answers
}

/// Whether members answered all through this time: never silent for half of it.
fn keeps_answering(answers: &[u64], (from, to): (u64, u64)) -> bool {
    let inside = &answers[answers.partition_point(|at| *at < from)..answers.partition_point(|at| *at <= to)];
    let mut last = from;
    let mut longest = 0;
    for at in inside.iter().copied().chain([to]) {
        longest = longest.max(at - last);
        last = at;
    }
    longest <= (to - from) / 2 && !inside.is_empty()
}

/// When members were asked for changes: from the sending until the answer, or for as long as one is waited
/// for.
fn asked(history: &History, patience_ns: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let sent = history.ops().iter().filter(|op| is_update(op) && op.was_sent());
    sent.map(move |op| (op.invoke_ns, op.complete_ns.unwrap_or(op.invoke_ns.saturating_add(patience_ns))))
}

/// Intervals joined where they overlap or stand no further apart than this, in the order of time.
pub(crate) fn merged(mut all: Vec<(u64, u64)>, apart_ns: u64) -> Vec<(u64, u64)> {
    all.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (from, to) in all {
        match joined.last_mut() {
            Some(last) if from <= last.1.saturating_add(apart_ns) => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// What is left of the first intervals without the second; both are in order and apart.
pub(crate) fn without(these: &[(u64, u64)], those: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    for &(from, to) in these {
        let mut at = from;
        for &(begin, end) in &those[those.partition_point(|(_, end)| *end <= from)..] {
            if begin >= to {
                break;
            }
            if begin > at {
                left.push((at, begin));
            }
            at = at.max(end);
        }
        if at < to {
            left.push((at, to));
        }
    }
    left
}

/// Outages without the time in which the bench asked nobody: what is left of each, where that is at least so
/// long.
pub fn cut_out(outages: Vec<Outage>, unsent: Option<&Unsent>, minimum_ns: u64) -> Vec<Outage> {
    let Some(unsent) = unsent.filter(|unsent| !unsent.idle.is_empty()) else { return outages };
    let parts = |outage: Outage| {
        let left = without(&[(outage.from_ns, outage.to_ns)], &unsent.idle);
        let end = outage.to_ns;
        left.into_iter().filter(move |(from, to)| to - from >= minimum_ns).map(move |(from_ns, to_ns)| {
            Outage { from_ns, to_ns, open: outage.open && to_ns == end, ..outage.clone() }
        })
    };
    outages.into_iter().flat_map(parts).collect()
}

#[cfg(test)]
mod tests {
    use checker::history::{Event, EventKind, Function, Value};

    use super::*;

    const MS: u64 = 1_000_000;
    const PATIENCE: u64 = 500 * MS;

    /// A history of writes: when due, when sent, when over, and how; an error that begins with `not-sent` is
    /// of one that never left.
    fn history(ops: &[(u64, u64, u64, Result<EventKind, &str>)]) -> History {
        let mut events = Vec::new();
        for (process, (due, sent, over, how)) in (0_u64..).zip(ops) {
            let line = |kind, at| {
                let value = Value::One(i64::try_from(process).expect("small"));
                Event::new(process, kind, Function::WRITE, 0, value, at * MS)
            };
            let mut invoke = line(EventKind::Invoke, *sent);
            invoke.due = Some(due * MS);
            let mut end = line(how.unwrap_or(EventKind::Fail), *over);
            match how {
                Ok(_) => invoke.node = Some(1),
                Err(why) => end.error = Some(format!("{NOT_SENT}: {why}").into()),
            }
            events.extend([invoke, end]);
        }
        events.sort_by_key(|event| (event.time, event.kind != EventKind::Invoke));
        History::from_events(events).expect("a history")
    }

    fn answered(from_ms: u64, to_ms: u64) -> Vec<(u64, u64, u64, Result<EventKind, &'static str>)> {
        (from_ms..to_ms).step_by(20).map(|at| (at, at, at + 10, Ok(EventKind::Ok))).collect()
    }

    #[test]
    fn what_fell_due_while_clients_were_replaced_is_the_benchs() {
        let mut ops = answered(0, 1000);
        ops.extend((1000..2000).step_by(50).map(|at| (at, at + 510, at + 510, Err(CLIENT_REPLACED))));
        ops.extend((1100..2000).step_by(300).map(|at| (at, at + 510, at + 510, Err(NO_CLIENT_FREE))));
        ops.extend(answered(2600, 3000));
        let unsent = of(&history(&ops), PATIENCE).expect("unsent");
        assert_eq!((unsent.replaced, unsent.no_client_free), (20, 3));
        assert_eq!(unsent.stretches, [(1000 * MS, 2450 * MS)]);
        assert_eq!(unsent.idle, [(1000 * MS, 2450 * MS)]);
        assert!(unsent.is_notable() && unsent.why().contains("replaced"));
    }

    #[test]
    fn clients_too_few_for_the_rate_are_the_benchs_while_members_answer() {
        let mut ops = answered(0, 3000);
        ops.extend((1000..2000).step_by(50).map(|at| (at, at + 510, at + 510, Err(NO_CLIENT_FREE))));
        let unsent = of(&history(&ops), PATIENCE).expect("unsent");
        assert_eq!((unsent.replaced, unsent.no_client_free), (0, 20));
        assert_eq!(unsent.stretches, [(1000 * MS, 2450 * MS)]);
        assert!(unsent.idle.iter().all(|(from, to)| to - from <= 10 * MS), "members were asked all along");
    }

    #[test]
    fn clients_that_all_wait_for_members_or_are_refused_by_them_are_the_systems() {
        // One that hangs holds each client; what fell due meanwhile is written off when it is over.
        let mut ops = answered(0, 1000);
        ops.extend((0..5).map(|_| (1000, 1000, 3000, Ok(EventKind::Info))));
        ops.extend((1010..2400).step_by(50).map(|at| (at, 3001, 3001, Err(NO_CLIENT_FREE))));
        ops.extend(answered(3000, 4000));
        assert_eq!(of(&history(&ops), PATIENCE), None);
        let mut ops = answered(0, 1000);
        ops.extend((1010..2400).step_by(50).map(|at| (at, at + 501, at + 501, Err(NO_MEMBER_TOOK))));
        ops.extend((2400..2500).step_by(50).map(|at| (at, 3001, 3001, Err(NO_CLIENT_FREE))));
        ops.extend(answered(3000, 4000));
        assert_eq!(of(&history(&ops), PATIENCE), None);
        assert_eq!(of(&history(&answered(0, 1000)), PATIENCE), None, "all was sent");
    }

    #[test]
    fn an_outage_is_cut_where_the_bench_asked_nobody() {
        let outage =
            |from: u64, to: u64| Outage { from_ns: from, to_ns: to, open: true, ..Outage::default() };
        let unsent = Unsent { idle: vec![(200, 500), (900, 1000)], ..Unsent::default() };
        let cut = |from, to| -> Vec<(u64, u64, bool)> {
            let left = cut_out(vec![outage(from, to)], Some(&unsent), 30);
            left.into_iter().map(|left| (left.from_ns, left.to_ns, left.open)).collect()
        };
        assert_eq!(cut(100, 600), [(100, 200, false), (500, 600, true)]);
        assert_eq!(cut(210, 520), [], "what is left is too short");
        assert_eq!(cut(600, 800), [(600, 800, true)]);
        assert_eq!(cut(850, 1000), [(850, 900, false)]);
        assert_eq!(cut_out(vec![outage(200, 500)], None, 30), [outage(200, 500)]);
    }
}
