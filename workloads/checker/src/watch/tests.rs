//! Small histories, one rule each.

use super::{GONE, PATIENCE_NS, Promised, check};
use crate::history::{Event, EventKind, Function, History, Value};
use crate::verdict::{CheckResult, Verdict};

const S: u64 = 1_000_000_000;

/// A history, operation by operation; moments are in seconds.
#[derive(Default)]
struct Lines(Vec<Event>);

impl Lines {
    fn op(&mut self, process: u64, f: Function, asked: Value, told: (EventKind, Value), at: (u64, u64)) {
        self.0.push(Event::new(process, EventKind::Invoke, f, 0, asked, at.0 * S));
        self.0.push(Event::new(process, told.0, f, 0, told.1, at.1 * S));
    }

    fn write(&mut self, value: i64, kind: EventKind, at: (u64, u64)) {
        let process = 1000 + value.unsigned_abs();
        self.op(process, Function::WRITE, Value::One(value), (kind, Value::One(value)), at);
    }

    fn wrote(&mut self, value: i64, at: (u64, u64)) {
        self.write(value, EventKind::Ok, at);
    }

    /// A watcher asks from a position, and is told values without versions, and the next position.
    fn told(&mut self, watcher: i64, from: Option<i64>, values: &[i64], next: i64, at: (u64, u64)) {
        let list = values.iter().flat_map(|value| [*value, -1]);
        let told = Value::List([next].into_iter().chain(list).collect());
        let asked = Value::Pair(from, watcher);
        self.op(watcher.unsigned_abs(), Function::WATCH, asked, (EventKind::Ok, told), at);
    }

    fn read(&mut self, value: i64, at: (u64, u64)) {
        self.op(900, Function::READ, Value::Null, (EventKind::Ok, Value::One(value)), at);
    }

    fn judged(mut self, promised: Promised) -> CheckResult {
        self.0.sort_by_key(|event| event.time);
        check(&History::from_events(self.0).expect("a history"), promised, Some(0))
    }

    fn kind(self, promised: Promised) -> String {
        let result = self.judged(promised);
        assert_eq!(result.verdict, Verdict::Invalid, "{}", result.summary);
        result.evidence["kind"].as_str().expect("a kind").to_owned()
    }
}

use Promised::{EveryChange, Latest};

/// 1, 2 and 3 are written one after the other; a watcher was there before.
fn three() -> Lines {
    let mut lines = Lines::default();
    lines.told(1, None, &[], 10, (1, 2));
    for value in 1..=3_i64 {
        let at = value.unsigned_abs() * 10;
        lines.wrote(value, (at, at + 1));
    }
    lines.read(3, (60, 61));
    lines
}

#[test]
fn what_is_told_in_order_is_valid_and_how_late_it_came_is_measured() {
    let mut lines = three();
    lines.told(1, Some(10), &[1, 2], 12, (5, 23));
    lines.told(1, Some(12), &[3], 13, (24, 33));
    let result = lines.judged(EveryChange);
    assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
    assert_eq!((&result.evidence["told"], &result.evidence["watchers"]), (&3.into(), &1.into()));
    assert_eq!(result.evidence["delay_ms"]["max"], 12_000.0, "1 was acknowledged at 11 s");
    assert_eq!(result.evidence["delay_ms"]["p50"], 2_000.0);
}

#[test]
fn an_acknowledged_change_between_two_that_were_told_is_lost_where_every_change_is_promised() {
    let lines = |()| {
        let mut lines = three();
        lines.told(1, Some(10), &[1, 3], 13, (5, 40));
        lines
    };
    assert_eq!(lines(()).kind(EveryChange), "a change was lost");
    assert_eq!(lines(()).judged(Latest).verdict, Verdict::Valid);
}

#[test]
fn a_change_behind_the_beginning_of_a_watcher_is_lost_if_it_is_not_told_first() {
    let mut lines = three();
    lines.told(1, Some(10), &[2, 3], 13, (5, 40));
    assert_eq!(lines.kind(EveryChange), "a change was lost");
    // One that began later may have begun behind it.
    let mut lines = three();
    lines.told(1, Some(10), &[1, 2, 3], 13, (5, 40));
    lines.told(2, None, &[], 11, (9, 22));
    lines.told(2, Some(11), &[2, 3], 13, (23, 40));
    assert_eq!(lines.judged(EveryChange).verdict, Verdict::Valid);
}

#[test]
fn a_resume_that_begins_one_too_late_is_convicted_by_what_others_were_told() {
    let mut lines = Lines::default();
    lines.told(1, None, &[], 10, (1, 2));
    lines.told(2, None, &[], 10, (1, 2));
    // Both are written at once and by nobody who was answered: only what was told says their order.
    lines.write(1, EventKind::Info, (10, 50));
    lines.write(2, EventKind::Info, (10, 50));
    lines.told(1, Some(10), &[1, 2], 12, (3, 20));
    lines.told(2, Some(10), &[2], 12, (3, 20));
    lines.read(2, (60, 61));
    assert_eq!(lines.kind(EveryChange), "a change was lost");
}

#[test]
fn two_successors_of_one_change_contradict_each_other() {
    let mut lines = three();
    lines.told(1, Some(10), &[1, 2, 3], 13, (5, 40));
    lines.told(2, None, &[1], 11, (6, 12));
    lines.told(2, Some(11), &[3], 13, (13, 40));
    assert_eq!(lines.kind(EveryChange), "a change was lost");
}

#[test]
fn what_is_told_again_behind_its_position_is_doubled_and_from_before_it_is_not() {
    let mut lines = three();
    lines.told(1, Some(10), &[1, 2, 3], 13, (5, 40));
    lines.told(1, Some(13), &[3], 14, (41, 42));
    assert_eq!(lines.kind(EveryChange), "a change was told twice");
    let mut lines = three();
    lines.told(1, Some(10), &[1, 2, 3], 13, (5, 40));
    lines.told(1, Some(10), &[1, 2], 12, (41, 42));
    lines.told(1, Some(12), &[3], 13, (43, 44));
    assert_eq!(lines.judged(EveryChange).verdict, Verdict::Valid);
}

#[test]
fn what_is_told_out_of_order_goes_back() {
    for promised in [EveryChange, Latest] {
        let mut lines = three();
        lines.told(1, Some(10), &[2, 1, 3], 13, (5, 40));
        assert_eq!(lines.kind(promised), "changes were told out of order");
        // Those of unknown order as well, once two were told otherwise.
        let mut lines = Lines::default();
        lines.told(1, None, &[], 10, (1, 2));
        lines.told(2, None, &[], 10, (1, 2));
        lines.wrote(1, (3, 50));
        lines.wrote(2, (3, 50));
        lines.told(1, Some(10), &[1, 2], 12, (5, 40));
        lines.told(2, Some(10), &[2, 1], 12, (5, 40));
        lines.read(2, (60, 61));
        assert_eq!(lines.kind(promised), "changes were told out of order");
    }
}

#[test]
fn nothing_is_told_that_nobody_wrote_or_before_it_is_written_or_that_did_not_happen() {
    let mut lines = three();
    lines.told(1, Some(10), &[7], 11, (5, 40));
    assert_eq!(lines.kind(Latest), "a change was invented");
    let mut lines = three();
    lines.told(1, Some(10), &[1, 2, 3], 13, (5, 25));
    assert_eq!(lines.kind(Latest), "a change was told too early");
    let mut lines = three();
    lines.write(4, EventKind::Fail, (35, 36));
    lines.told(1, Some(10), &[1, 2, 3, 4], 14, (5, 40));
    assert_eq!(lines.kind(Latest), "what did not happen was told");
}

#[test]
fn what_was_refused_may_be_written_again() {
    let mut lines = three();
    lines.write(4, EventKind::Fail, (40, 41));
    lines.write(4, EventKind::Fail, (41, 42));
    lines.wrote(4, (42, 43));
    lines.write(4, EventKind::Fail, (43, 44));
    lines.told(1, Some(10), &[1, 2, 3, 4], 14, (45, 46));
    let result = lines.judged(EveryChange);
    assert_ne!(result.verdict, Verdict::Invalid, "{}", result.summary);
    let mut early = three();
    early.write(4, EventKind::Fail, (40, 41));
    early.told(1, Some(10), &[1, 2, 3, 4], 14, (42, 43));
    early.wrote(4, (44, 45));
    assert_eq!(early.kind(EveryChange), "a change was told too early");
    let mut twice = three();
    twice.write(4, EventKind::Info, (40, 41));
    twice.wrote(4, (42, 43));
    assert_eq!(twice.kind(EveryChange), "a value was written twice");
}

#[test]
fn what_nobody_knows_may_be_told_or_not() {
    for told in [&[1, 2, 3][..], &[1, 2, 4, 3], &[4, 1, 2, 3], &[1, 2, 3, 4]] {
        let mut lines = three();
        lines.write(4, EventKind::Info, (3, 4));
        lines.told(1, Some(10), told, 13, (5, 40));
        let result = lines.judged(EveryChange);
        assert_eq!(result.verdict, Verdict::Valid, "{told:?}: {:?}", result.counterexample);
    }
}

/// Asked again and again from the same position after the read, until so many seconds later.
fn asked_in_vain(seconds: u64) -> Lines {
    let mut lines = three();
    lines.told(1, Some(10), &[1, 2], 12, (5, 40));
    for at in 0..seconds {
        lines.told(1, Some(12), &[], 12, (62 + at, 63 + at));
    }
    lines
}

#[test]
fn what_is_not_told_in_the_end_is_a_violation_once_it_was_waited_for_and_unknown_before() {
    let long = PATIENCE_NS / S + 1;
    for promised in [EveryChange, Latest] {
        assert_eq!(asked_in_vain(long).kind(promised), "the last change was not told");
        assert_eq!(asked_in_vain(3).judged(promised).verdict, Verdict::Unknown);
    }
    let Lines(events) = asked_in_vain(long);
    let mut sorted = events;
    sorted.sort_by_key(|event| event.time);
    let history = History::from_events(sorted).expect("a history");
    assert_eq!(check(&history, EveryChange, None).verdict, Verdict::Unknown, "a fault may be in force");
}

#[test]
fn a_watcher_whose_position_is_gone_has_no_claim_on_what_comes() {
    let mut lines = three();
    lines.told(1, Some(10), &[1], 11, (5, 12));
    let asked = Value::Pair(Some(11), 1);
    lines.op(1, Function::WATCH, asked.clone(), (EventKind::Fail, asked), (13, 14));
    lines.0.last_mut().expect("a line").error = Some(GONE.into());
    lines.told(2, None, &[], 12, (22, 23));
    lines.told(2, Some(12), &[3], 13, (24, 40));
    let result = lines.judged(EveryChange);
    assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
    assert!(result.summary.contains("1 begun anew"), "{}", result.summary);
}

#[test]
fn versions_tell_the_order_and_contradictions_of_theirs_are_told() {
    let told = |versions: [i64; 2]| {
        let mut lines = Lines::default();
        lines.told(1, None, &[], 10, (1, 2));
        lines.wrote(1, (3, 50));
        lines.wrote(2, (3, 50));
        let list = Value::List([12, 1, versions[0], 2, versions[1]].into());
        lines.op(1, Function::WATCH, Value::Pair(Some(10), 1), (EventKind::Ok, list), (5, 40));
        lines.read(2, (60, 61));
        lines
    };
    assert_eq!(told([4, 5]).judged(EveryChange).verdict, Verdict::Valid);
    assert_eq!(told([5, 4]).kind(EveryChange), "changes were told out of order");
    assert_eq!(told([5, 4]).kind(Latest), "changes were told out of order");
    assert_eq!(told([5, 5]).kind(Latest), "two changes have one version");
}

#[test]
fn where_nothing_was_told_nothing_was_tested() {
    let result = three().judged(EveryChange);
    assert_eq!(result.verdict, Verdict::Unknown);
    assert!(result.summary.contains("nothing was tested"), "{}", result.summary);
}
