//! Small histories whose answers are known from the literature, as claims.

use super::{Condition, check_registers};
use crate::budget::{Budget, Interrupt};
use crate::history::{Event, EventKind, Function, History, Value};
use crate::verdict::{Judged, Verdict};

/// One operation: process, key, `w` and the value written or `r` and the value read (0: nothing).
type Step = (u64, u64, char, i64);

/// Operations one after the other in real time.
fn in_turn(steps: &[Step]) -> History {
    told(steps, |_, _| {})
}

/// The same, with what else the answers say.
fn told(steps: &[Step], more: impl Fn(usize, &mut Event)) -> History {
    let spans: Vec<(u64, u64)> = (0..).step_by(10).take(steps.len()).map(|at| (at, at + 5)).collect();
    spanning(steps, &spans, more)
}

fn with_versions(steps: &[Step], versions: &[i64]) -> History {
    told(steps, |step, answer| answer.version = Some(versions[step]))
}

fn spanning(steps: &[Step], spans: &[(u64, u64)], more: impl Fn(usize, &mut Event)) -> History {
    let mut events = Vec::new();
    for (at, (&(process, key, f, value), &(call, ret))) in steps.iter().zip(spans).enumerate() {
        let (f, asked) =
            if f == 'w' { (Function::WRITE, Value::One(value)) } else { (Function::READ, Value::Null) };
        let answer = if value == 0 { Value::Null } else { Value::One(value) };
        events.push(Event::new(process, EventKind::Invoke, f, key, asked, call));
        let mut ok = Event::new(process, EventKind::Ok, f, key, answer, ret);
        more(at, &mut ok);
        events.push(ok);
    }
    events.sort_by_key(|event| event.time);
    (0..).zip(&mut events).for_each(|(index, event)| event.index = index);
    History::from_events(events).unwrap()
}

fn judge(history: &History, condition: Condition) -> Judged {
    check_registers(history, condition, &Budget::default())
}

fn verdicts(history: &History) -> [Verdict; 3] {
    [
        crate::linearizable::check(history, &Budget::default()).verdict,
        judge(history, Condition::OrderedSequential).result.verdict,
        judge(history, Condition::Sequential).result.verdict,
    ]
}

use Verdict::{Invalid, Valid};

#[test]
fn a_stale_local_read_is_ordered_sequential_but_not_linearizable() {
    let history = in_turn(&[(0, 0, 'w', 1), (0, 0, 'w', 2), (1, 0, 'r', 1)]);
    assert_eq!(verdicts(&history), [Invalid, Valid, Valid]);
    let judged = judge(&history, Condition::OrderedSequential);
    assert_eq!(judged.witness[0].order, [0, 4, 2], "the read stands between the writes");
    assert_eq!(judged.result.decided_by.as_deref(), Some("constraint-order"));
}

#[test]
fn updates_against_real_time_are_sequential_but_not_ordered() {
    // Process 2 sees the second write first, although the first had returned before the second was called.
    let history = in_turn(&[(0, 0, 'w', 1), (1, 0, 'w', 2), (2, 0, 'r', 2), (2, 0, 'r', 1)]);
    assert_eq!(verdicts(&history), [Invalid, Invalid, Valid]);
}

#[test]
fn two_processes_that_both_miss_the_others_write_are_not_sequential() {
    // Dekker's handshake with store buffers.
    let dekker = [(0, 0, 'w', 1), (1, 1, 'w', 2), (0, 1, 'r', 0), (1, 0, 'r', 0)];
    assert_eq!(verdicts(&in_turn(&dekker)), [Invalid, Invalid, Invalid]);
    let judged = judge(&in_turn(&dekker), Condition::Sequential);
    let counterexample = judged.result.counterexample.unwrap();
    assert_eq!(counterexample.ops.len(), 4);
    assert!(counterexample.rechecked);
    assert!(counterexample.sentence.contains("process 0 wrote 1 to key 0"), "{}", counterexample.sentence);
    assert_eq!(judged.result.decided_by.as_deref(), Some("constraint-cycle"));
}

#[test]
fn two_readers_who_see_independent_writes_in_different_orders_are_not_sequential() {
    let iriw =
        [(0, 0, 'w', 1), (1, 1, 'w', 2), (2, 0, 'r', 1), (2, 1, 'r', 0), (3, 1, 'r', 2), (3, 0, 'r', 0)];
    assert_eq!(verdicts(&in_turn(&iriw)), [Invalid, Invalid, Invalid]);
}

#[test]
fn two_readers_who_see_two_writes_of_one_key_in_different_orders_are_not_sequential() {
    let steps =
        [(0, 0, 'w', 1), (1, 0, 'w', 2), (2, 0, 'r', 1), (3, 0, 'r', 2), (2, 0, 'r', 2), (3, 0, 'r', 1)];
    let spans = [(0, 90), (1, 91), (10, 11), (12, 13), (14, 15), (16, 17)];
    assert_eq!(verdicts(&spanning(&steps, &spans, |_, _| {})), [Invalid, Invalid, Invalid]);
}

#[test]
fn a_session_that_goes_back_in_time_is_not_sequential() {
    let history = in_turn(&[(0, 0, 'w', 1), (0, 0, 'w', 2), (1, 0, 'r', 2), (1, 0, 'r', 1)]);
    assert_eq!(verdicts(&history), [Invalid, Invalid, Invalid]);
    // The same answers to two processes are fine, until one session holds both.
    let steps = [(0, 0, 'w', 1), (0, 0, 'w', 2), (1, 0, 'r', 2), (2, 0, 'r', 1)];
    assert_eq!(judge(&in_turn(&steps), Condition::OrderedSequential).result.verdict, Valid);
    let two = told(&steps, |_, answer| answer.session = Some(if answer.process == 0 { 6 } else { 7 }));
    let judged = judge(&two, Condition::OrderedSequential);
    assert_eq!(judged.result.verdict, Invalid);
    let sessions = judge(&two, Condition::SessionGuarantees).result;
    assert_eq!(sessions.verdict, Invalid);
    assert_eq!(sessions.evidence["guarantee"], "monotonic reads");
}

#[test]
fn each_session_guarantee_is_named_when_it_is_broken() {
    let own = in_turn(&[(0, 0, 'w', 1), (0, 0, 'w', 2), (0, 0, 'r', 1)]);
    let result = judge(&own, Condition::SessionGuarantees).result;
    assert_eq!((result.verdict, &result.evidence["guarantee"]), (Invalid, &"read your writes".into()));
    assert_eq!(result.counterexample.unwrap().ops.len(), 3);
    // By version: a write that takes effect before what its session had read, and before its session's own
    // write.
    for (first, guarantee) in [('r', "writes follow reads"), ('w', "monotonic writes")] {
        let value = if first == 'r' { 1 } else { 3 };
        let history = with_versions(&[(0, 0, 'w', 1), (1, 0, first, value), (1, 0, 'w', 2)], &[5, 5, 4]);
        let result = judge(&history, Condition::SessionGuarantees).result;
        assert_eq!((result.verdict, &result.evidence["guarantee"]), (Invalid, &guarantee.into()));
    }
}

#[test]
fn a_history_without_versions_keeps_the_session_guarantees_if_one_order_shows_it() {
    let history = in_turn(&[(0, 0, 'w', 1), (1, 0, 'r', 1), (1, 1, 'w', 2), (0, 1, 'r', 0)]);
    let result = judge(&history, Condition::SessionGuarantees).result;
    assert_eq!(result.verdict, Valid);
    assert!(result.summary.contains("every session guarantee holds"));
}

#[test]
fn sessions_that_no_one_order_explains_are_judged_key_by_key() {
    // Two writes to two keys, which two others see in different orders.
    let steps =
        [(0, 0, 'w', 1), (1, 1, 'w', 1), (2, 0, 'r', 1), (3, 1, 'r', 1), (2, 1, 'r', 0), (3, 0, 'r', 0)];
    let history = in_turn(&steps);
    assert_eq!(judge(&history, Condition::Sequential).result.verdict, Invalid);
    // A third session shows that each key has an order.
    let steps: Vec<Step> = steps.into_iter().chain([(2, 1, 'r', 1), (2, 0, 'r', 1)]).collect();
    let result = judge(&in_turn(&steps), Condition::SessionGuarantees).result;
    assert_eq!(result.verdict, Valid, "{}", result.summary);
    assert!(result.summary.contains("for each key"), "{}", result.summary);
}

#[test]
fn a_guarantee_alone_accuses_only_of_itself() {
    let guarantee = |one, steps: &[Step]| judge(&in_turn(steps), Condition::Guarantee(one)).result.verdict;
    use super::Guarantee::{MonotonicReads, ReadYourWrites};
    // The write may have been put before what was read: then the last read is no older than it.
    let between = [(1, 0, 'w', 1), (0, 0, 'r', 1), (0, 0, 'w', 2), (0, 0, 'r', 1)];
    assert_ne!(guarantee(ReadYourWrites, &between), Invalid);
    assert_eq!(judge(&in_turn(&between), Condition::SessionGuarantees).result.verdict, Invalid);
    // What is older in real time is older for no session that has not seen it so.
    let older = [(1, 0, 'w', 1), (2, 0, 'w', 2), (0, 0, 'r', 2), (0, 0, 'r', 1)];
    assert_ne!(guarantee(MonotonicReads, &older), Invalid);
    // Two sessions that see two writes in two orders break it together.
    let crossed: Vec<Step> = older.into_iter().chain([(3, 0, 'r', 1), (3, 0, 'r', 2)]).collect();
    assert_eq!(guarantee(MonotonicReads, &crossed), Invalid);
}

#[test]
fn the_order_that_the_system_claims_is_tried_first_and_never_trusted() {
    let steps = [(0, 0, 'w', 1), (1, 0, 'w', 2), (2, 0, 'r', 1)];
    let judged = judge(&with_versions(&steps, &[1, 2, 1]), Condition::OrderedSequential);
    assert_eq!(judged.result.decided_by.as_deref(), Some("claimed-order"));
    // A lie does not survive; the answers alone still have an order.
    let judged = judge(&with_versions(&steps, &[2, 1, 2]), Condition::OrderedSequential);
    assert_eq!(
        (judged.result.verdict, judged.result.decided_by.as_deref()),
        (Valid, Some("constraint-order"))
    );
}

#[test]
fn an_interrupt_ends_the_check_without_an_answer() {
    let steps: Vec<Step> = (0..4_000).map(|at| (at % 5, 0, 'w', i64::try_from(at).unwrap() + 1)).collect();
    let interrupt = Interrupt::armed();
    interrupt.time_is_over();
    let budget = Budget { interrupt, ..Budget::default() };
    let judged = check_registers(&in_turn(&steps), Condition::Sequential, &budget);
    assert_eq!(judged.result.verdict, Verdict::Unknown);
    assert!(judged.result.summary.contains("the time ran out"), "{}", judged.result.summary);
}

#[test]
fn every_condition_is_found_by_its_name() {
    for condition in Condition::ALL {
        assert_eq!(Condition::named(condition.as_str()), Some(condition));
    }
    assert_eq!(Condition::named("linearizable"), None);
}
