//! What is accused of a log, and what is not.

use checker::Budget;
use checker::history::{Event, EventKind, Extent, History};
use checker::verdict::Verdict;
use rand::SeedableRng;
use serde_json::json;

use super::*;
use crate::beside::Beside;
use crate::case::{Case, Effort};
use crate::workload::Kind;

/// A history, line by line: a process does one thing after the other, and all do so at the same time only
/// where a test says it.
#[derive(Default)]
struct Lines {
    events: Vec<Event>,
    now: u64,
    finals: Vec<FinalState>,
}

impl Lines {
    fn op(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        self.events.extend([op.event(process, self.now), outcome.event(op, process, self.now + 1)]);
        self.now += 2;
    }

    fn send(mut self, process: u64, record: i64, offset: Option<i64>) -> Self {
        let op = Op::said(LOG, 0, &SEND_A_RECORD, Value::One(record));
        self.op(process, &op, &Outcome::told(offset.map_or(Value::Null, Value::One), None));
        self
    }

    fn lost(mut self, process: u64, record: i64) -> Self {
        let op = Op::said(LOG, 0, &SEND_A_RECORD, Value::One(record));
        self.op(process, &op, &Outcome::lost(&op, "no answer in time"));
        self
    }

    fn poll(mut self, process: u64, from: i64, records: &[(i64, i64)]) -> Self {
        let op = poll(0, from, A_PAGE);
        let told = polled(&op, &json!(records)).expect("records");
        self.op(process, &op, &Outcome::told(told, None));
        self
    }

    fn held(mut self, member: u64, records: &[(i64, i64)]) -> Self {
        let list = records.iter().flat_map(|(offset, record)| [*offset, *record]).collect();
        let state = FinalState { member, key: 0, version: None, value: None, mzxid: None, list: Some(list) };
        self.finals.push(state);
        self
    }

    /// The checks that accuse, with their sentences.
    fn accused_under(self, promise: Promise) -> Vec<(String, String)> {
        let history = History::from_events(self.events).expect("a history");
        let members = self.finals.iter().map(|state| state.member).collect();
        let beside = Beside { promise, final_states: self.finals, members, ..Beside::default() };
        let budget = Budget::default();
        let effort = Effort::of(&budget);
        let case = Case::new(&history, Extent::Whole, &beside, &effort);
        let results = [check::log(&case), check::durable(&case)];
        let invalid = results.into_iter().filter(|result| result.verdict == Verdict::Invalid);
        invalid.map(|result| (result.name, result.summary)).collect()
    }

    fn accused(self) -> Vec<(String, String)> {
        self.accused_under(Promise::LinearizableUpdates)
    }

    /// One check accuses, by these words.
    fn accuses(self, name: &str, words: &str) {
        let accused = self.accused();
        let [(by, sentence)] = &accused[..] else { panic!("{accused:?}") };
        assert!(by == name && sentence.contains(words), "{by}: {sentence}");
    }
}

#[test]
fn a_log_that_keeps_its_promise_is_not_accused() {
    let log = Lines::default().send(1, 11, Some(3)).send(2, 21, Some(7)).lost(3, 31).send(1, 12, None);
    // What was lost may be there, late; a reader may see less than is acknowledged, as long as it reads past
    // nothing.
    let log = log.poll(4, 0, &[(3, 11)]).poll(5, 0, &[(3, 11), (7, 21), (8, 31), (9, 12)]).poll(4, 4, &[]);
    let all = [(3, 11), (7, 21), (8, 31), (9, 12)];
    assert_eq!(log.held(1, &all).held(2, &all).accused(), []);
}

#[test]
fn an_offset_holds_one_record_for_all_readers() {
    let log = Lines::default().send(1, 11, Some(3)).send(2, 21, Some(3));
    log.accuses("log", "two records at offset 3");
    let log = Lines::default().send(1, 11, Some(3)).lost(2, 21).poll(4, 0, &[(3, 21)]);
    log.accuses("log", "two records at offset 3");
}

#[test]
fn what_stood_somewhere_is_not_read_past() {
    let log = Lines::default().send(1, 11, Some(3)).send(1, 12, Some(4)).poll(4, 0, &[(4, 12)]);
    log.accuses("log", "without 11, which stood at offset 3 before");
    let log = Lines::default().send(1, 12, Some(4)).lost(2, 21).poll(4, 0, &[(4, 12)]);
    log.poll(5, 0, &[(3, 21), (4, 12)]).accuses("log", "a gap that was read past");
    // Behind the last record of an answer nothing is read past.
    let log = Lines::default().send(1, 11, Some(3)).send(1, 12, Some(4));
    assert_eq!(log.poll(4, 0, &[(3, 11)]).poll(4, 4, &[(4, 12)]).accused(), []);
}

#[test]
fn a_linearizable_poll_to_the_end_shows_all_that_was_known() {
    for offset in [Some(4), None] {
        let log = || {
            let log = Lines::default().send(1, 11, Some(3)).send(1, 12, offset).poll(4, 0, &[(3, 11)]);
            log.poll(5, 0, &[(3, 11), (4, 12)])
        };
        assert_eq!(log().accused(), []);
        let accused = log().accused_under(Promise::Linearizable);
        assert!(accused[0].1.contains("without the record at offset 4, which was known"), "{accused:?}");
    }
    // What was not known before the poll was called need not be shown, nor what lies before its offset.
    let log = Lines::default().send(1, 11, Some(3)).poll(4, 0, &[(3, 11)]).send(1, 12, Some(4));
    assert_eq!(log.poll(4, 5, &[]).accused_under(Promise::Linearizable), []);
    // A full page does not read to the end.
    let mut log = Lines::default().send(1, 11, Some(3)).send(1, 12, Some(4));
    let op = poll(0, 0, 1);
    log.op(4, &op, &Outcome::told(Value::List([3, 11].into()), None));
    assert_eq!(log.accused_under(Promise::Linearizable), []);
}

#[test]
fn what_comes_from_elsewhere_is_judged_as_it_is() {
    // A record may be sent again by whoever does not know what came of it.
    let again = Lines::default().lost(1, 11).send(2, 11, Some(4)).send(2, 21, Some(5));
    assert_eq!(again.poll(4, 0, &[(3, 11), (4, 11), (5, 21)]).accused(), []);
    let mut odd = Lines::default().send(1, 11, Some(3));
    odd.op(4, &poll(0, 0, 9), &Outcome::told(Value::List([3, 11, 4].into()), None));
    odd.accuses("log", "which is no list of offsets and records");
}

#[test]
fn records_of_one_sender_keep_their_order_and_others_need_not() {
    let log = Lines::default().send(1, 11, Some(4)).send(1, 12, Some(3));
    log.accuses("log", "they stand at offsets 4 and 3");
    let untold = Lines::default().send(1, 11, None).send(1, 12, None).poll(4, 0, &[(3, 12), (4, 11)]);
    untold.accuses("log", "they stand at offsets 4 and 3");
    assert_eq!(Lines::default().send(1, 11, Some(4)).send(2, 21, Some(3)).accused(), []);
}

#[test]
fn what_nobody_sent_and_what_stands_in_no_order_is_accused() {
    Lines::default().poll(4, 0, &[(3, 11)]).accuses("log", "which nobody sent");
    let early = Lines::default().poll(4, 0, &[(3, 11)]).send(1, 11, None);
    early.accuses("log", "stands 11, but");
    let back = Lines::default().send(1, 11, None).send(1, 12, None).poll(4, 0, &[(4, 12), (3, 11)]);
    back.accuses("log", "is not behind the one before it");
    let before = Lines::default().send(1, 11, Some(3)).poll(4, 4, &[(3, 11)]);
    before.accuses("log", "before 4, where it was to begin");
}

#[test]
fn duplicates_are_counted_and_accused_where_none_are_promised() {
    let twice = || Lines::default().send(1, 11, Some(3)).poll(4, 0, &[(3, 11), (5, 11)]);
    assert_eq!(twice().accused(), []);
    let accused = twice().accused_under(Promise::ExactlyOnce);
    assert!(accused[0].1.contains("record 11 stands at offset 3"), "{accused:?}");
}

#[test]
fn what_was_acknowledged_is_there_at_the_end_on_each_member() {
    let log = Lines::default().send(1, 11, Some(3)).send(1, 12, Some(4)).held(1, &[(3, 11), (4, 12)]);
    log.held(2, &[(3, 11)]).accuses("durability", "member 2 does not have 12");
}

#[test]
fn what_is_lost_is_told_beside_what_has_no_place() {
    let log = Lines::default().send(1, 11, Some(3)).send(2, 21, Some(3)).held(1, &[(3, 21)]);
    let accused: Vec<String> = log.accused().into_iter().map(|(name, _)| name).collect();
    assert_eq!(accused, ["log", "durability"]);
}

#[test]
fn answers_are_read_or_it_is_said_what_should_have_been_answered() {
    let op = poll(0, 0, A_PAGE);
    assert_eq!(polled(&op, &json!([[3, 11], [4, 12]])), Ok(Value::List([3, 11, 4, 12].into())));
    for wrong in
        [json!(null), json!([3]), json!([[3]]), json!([[3, -1]]), json!([[3, 1.5]]), json!([[3, 4, 5]])]
    {
        assert!(polled(&op, &wrong).is_err(), "{wrong}");
    }
    assert_eq!(sent(&op, &json!(null)), Ok(Value::Null));
    assert!(sent(&op, &json!("x")).is_err());
}

/// Logs in memory, which answer as they should.
#[test]
fn whoever_reads_goes_on_behind_what_it_was_told() {
    let mut workload = Logs::new(2, 50, ChaCha8Rng::seed_from_u64(7));
    let mut logs: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    let mut lines = Lines::default();
    assert_eq!(workload.setup().len(), 2);
    for at in 0..600 {
        let process = at % 5;
        let op = if at % 11 == 0 { workload.next_look(process) } else { workload.next_op(process) };
        let log = logs.entry(op.key).or_default();
        let told = match (op.function(), op.value()) {
            (SEND, Value::One(record)) => {
                log.push(record);
                Value::One(i64::try_from(log.len() - 1).expect("short"))
            }
            (POLL, Value::Pair(Some(from), most)) => {
                let records = (0_i64..).zip(log.iter()).skip(usize::try_from(from).expect("an offset"));
                let page = records.take(usize::try_from(most).expect("some"));
                Value::List(page.flat_map(|(at, record)| [at, *record]).collect())
            }
            other => panic!("no operation of a log: {other:?}"),
        };
        let outcome = Outcome::told(told, None);
        workload.complete(process, &op, &outcome);
        lines.op(process, &op, &outcome);
    }
    assert!(workload.at.values().any(|at| *at > 20), "readers go on");
    assert_eq!(Kind::LOG.vocabulary().effect(POLL), Effect::Look);
    let read = lines.events.iter().filter(|event| event.f == POLL && event.kind == EventKind::Ok).count();
    assert!(read > 100);
    assert_eq!(lines.accused_under(Promise::Linearizable), []);
}
