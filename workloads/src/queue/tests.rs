//! The generator's conduct, and each check against histories that keep its promise and that break it.

use checker::Budget;
use checker::durability::FinalState;
use checker::history::{Event, History};
use checker::verdict::Verdict;
use rand::SeedableRng;

use super::*;
use crate::judge::{Beside, judge};
use crate::outcome::Refusal;
use crate::workload::Kind;

const S: u64 = 1_000_000_000;

/// A history in the making. Moments are in seconds.
#[derive(Default)]
struct Made {
    events: Vec<Event>,
    left: Option<Vec<i64>>,
}

/// What an answer tells.
#[derive(Clone, Copy)]
enum Answer {
    Takes(i64),
    HandsOut(i64),
    /// Element, token, since and until.
    Claims(i64, i64, u64, u64),
    Nothing,
    Fails,
    Lost,
}

impl Made {
    fn op(mut self, process: u64, body: Body, (from, to): (u64, u64), answer: Answer) -> Self {
        let op = queue(0, body);
        let list = |list: &[i64]| Outcome::told(Value::List(list.into()), None);
        let ns = |seconds: u64| i64::try_from(seconds * S).expect("small");
        let outcome = match answer {
            Answer::Takes(element) => Outcome::told(Value::One(element), None),
            Answer::HandsOut(element) => list(&[element]),
            Answer::Claims(element, token, since, until) => list(&[element, token, ns(since), ns(until)]),
            Answer::Nothing => Outcome::told(Value::Null, None),
            Answer::Fails => Outcome {
                refusal: Some(Refusal::Other),
                ..Outcome::without_result(EventKind::Fail, &op, "refused".to_owned())
            },
            Answer::Lost => Outcome::lost(&op, "no answer"),
        };
        self.events.extend([op.event(process, from * S), outcome.event(&op, process, to * S)]);
        self
    }

    /// Puts an element by a process of its own.
    fn put(self, element: i64, moments: (u64, u64)) -> Self {
        let process = 1000 + element.unsigned_abs();
        self.op(process, Body::Enqueue { element }, moments, Answer::Takes(element))
    }

    fn takes(self, process: u64, element: i64, moments: (u64, u64)) -> Self {
        self.op(process, Body::Dequeue, moments, Answer::Takes(element))
    }

    fn gets(self, process: u64, element: i64, moments: (u64, u64)) -> Self {
        self.op(process, Body::Dequeue, moments, Answer::HandsOut(element))
    }

    fn done(self, process: u64, element: i64, moments: (u64, u64)) -> Self {
        self.op(process, Body::Acknowledge { element }, moments, Answer::Takes(element))
    }

    /// What is there at the end, on one member.
    fn left(self, elements: &[i64]) -> Self {
        Self { left: Some(elements.to_vec()), ..self }
    }

    fn accused(self) -> Vec<String> {
        self.accused_under(Promise::Linearizable)
    }

    fn accused_under(mut self, promise: Promise) -> Vec<String> {
        self.events.sort_by_key(|event| event.time);
        let history = History::from_events(self.events).expect("a history");
        let state = |list| FinalState { member: 1, key: 0, version: None, value: None, mzxid: None, list };
        let final_states = self.left.map(|left| state(Some(left))).into_iter().collect();
        let beside = Beside { members: vec![1], final_states, promise, ..Beside::default() };
        let results = judge(Kind::QUEUE, &history, &beside, &Budget::default());
        results
            .into_iter()
            .filter(|result| result.verdict == Verdict::Invalid)
            .map(|result| result.name)
            .collect()
    }
}

#[test]
fn a_queue_that_keeps_its_promise_accuses_nobody() {
    let takes = Made::default().put(1, (0, 1)).put(2, (2, 3)).takes(1, 1, (4, 5)).takes(2, 2, (4, 5));
    assert!(takes.put(3, (6, 7)).left(&[3]).accused().is_empty());
    let hands_out = Made::default().put(1, (0, 1)).put(2, (2, 3));
    let again = hands_out.gets(1, 1, (4, 5)).gets(2, 2, (4, 5)).gets(3, 1, (6, 7));
    assert!(again.done(3, 1, (8, 9)).left(&[2]).accused().is_empty());
    let empty = Made::default().put(1, (0, 1)).op(2, Body::Dequeue, (2, 3), Answer::Nothing);
    assert!(empty.left(&[1]).accused().is_empty(), "somebody may have been about to take it");
}

#[test]
fn what_nobody_put_or_not_yet_or_was_refused_is_not_handed_out() {
    assert_eq!(Made::default().takes(1, 7, (0, 1)).left(&[]).accused(), ["queue"]);
    assert_eq!(Made::default().put(1, (3, 4)).takes(1, 1, (0, 1)).left(&[]).accused(), ["queue"]);
    let refused = Made::default().op(9, Body::Enqueue { element: 1 }, (0, 1), Answer::Fails);
    assert_eq!(refused.takes(1, 1, (2, 3)).left(&[]).accused(), ["queue"]);
    let lost = Made::default().op(9, Body::Enqueue { element: 1 }, (0, 1), Answer::Lost);
    assert!(lost.takes(1, 1, (2, 3)).left(&[]).accused().is_empty(), "it may have been put");
    assert_eq!(Made::default().put(1, (0, 1)).left(&[1, 2]).accused(), ["queue"]);
}

#[test]
fn nobody_is_handed_what_is_done() {
    let twice = Made::default().put(1, (0, 1)).takes(1, 1, (2, 5)).takes(2, 1, (3, 4));
    assert_eq!(twice.left(&[]).accused(), ["queue"], "taken for good by two at once");
    let one = || Made::default().put(1, (0, 1)).gets(1, 1, (2, 3)).done(1, 1, (4, 6));
    assert_eq!(one().gets(2, 1, (7, 8)).left(&[]).accused(), ["queue"]);
    assert!(one().gets(2, 1, (5, 8)).left(&[]).accused().is_empty(), "asked for before it was done");
    assert_eq!(one().left(&[1]).accused(), ["queue"], "it came back");
    assert_eq!(Made::default().put(1, (0, 1)).left(&[1, 1]).accused(), ["queue"], "it is there twice");
}

#[test]
fn at_least_once_allows_what_comes_back_and_any_order_and_no_loss() {
    let two = || Made::default().put(1, (1, 2)).put(2, (3, 4));
    let back = || two().gets(1, 2, (5, 6)).done(1, 2, (7, 8)).gets(2, 2, (9, 10)).left(&[1, 2]);
    assert_eq!(back().accused(), ["queue"]);
    assert!(back().accused_under(Promise::AtLeastOnce).is_empty());
    let lost = two().gets(1, 2, (5, 6)).done(1, 2, (7, 8)).left(&[]);
    assert_eq!(lost.accused_under(Promise::AtLeastOnce), ["durability"]);
    let invented = two().gets(1, 3, (5, 6)).left(&[1, 2]);
    assert_eq!(invented.accused_under(Promise::AtLeastOnce), ["queue"]);
    let invented_at_the_end = two().gets(1, 1, (5, 6)).left(&[1, 2, 3]);
    assert_eq!(invented_at_the_end.accused_under(Promise::AtLeastOnce), ["queue"]);
    let refused = two().gets(1, 1, (5, 6)).op(9, Body::Enqueue { element: 4 }, (7, 8), Answer::Fails);
    assert_eq!(refused.left(&[1, 2, 4]).accused_under(Promise::AtLeastOnce), ["queue"]);
}

#[test]
fn last_reads_are_not_the_last_word_while_an_element_is_hidden() {
    let mut queues = Queues::new(1, ChaCha8Rng::seed_from_u64(1));
    let told = |value| Outcome::told(value, None);
    let lost = |op: &Op| Outcome::lost(op, "no answer");
    for element in 1..=2 {
        queues.complete(7, &queue(0, Body::Enqueue { element }), &told(Value::One(element)));
    }
    let dequeue = queue(0, Body::Dequeue);
    queues.complete(8, &dequeue, &told(Value::List([1].into())));
    let shown = |list: &[i64]| FinalState {
        member: 1,
        key: 0,
        version: None,
        value: None,
        mzxid: None,
        list: Some(list.to_vec()),
    };
    assert!(!queues.is_told(&[shown(&[2])]), "what was handed out is not done");
    assert!(queues.is_told(&[shown(&[2, 1])]));
    queues.complete(8, &queue(0, Body::Acknowledge { element: 1 }), &told(Value::Null));
    assert!(queues.is_told(&[shown(&[2])]));
    queues.complete(9, &dequeue, &lost(&dequeue));
    assert!(queues.is_told(&[shown(&[])]), "somebody may have taken it");
}

#[test]
fn what_was_put_first_is_handed_out_first_unless_somebody_may_have_had_it() {
    let two = || Made::default().put(1, (0, 1)).put(2, (2, 3));
    let swapped = || two().takes(1, 2, (4, 5)).takes(2, 1, (6, 7));
    assert_eq!(swapped().left(&[]).accused(), ["queue"]);
    assert_eq!(two().takes(1, 2, (4, 5)).left(&[1]).accused(), ["queue"], "the first one waits still");
    assert!(two().takes(1, 2, (4, 7)).takes(2, 1, (6, 8)).left(&[]).accused().is_empty(), "at once");
    let beside = |moments, answer| swapped().op(8, Body::Dequeue, moments, answer).left(&[]).accused();
    assert!(beside((1, 2), Answer::Lost).is_empty(), "it may have had it ever since");
    assert_eq!(beside((3, 6), Answer::Fails), ["queue"], "it certainly had none");
    assert_eq!(beside((6, 9), Answer::Lost), ["queue"], "it came after");
    let handed = || two().gets(1, 2, (4, 5)).gets(2, 1, (6, 7)).left(&[1, 2]);
    assert_eq!(handed().accused(), ["queue"]);
    let refused = |made: Made| made.op(8, Body::Dequeue, (1, 2), Answer::Fails).accused();
    assert!(refused(handed()).is_empty(), "it may have had it and given it back");
    let three = Made::default().put(1, (0, 1)).put(2, (2, 3)).put(3, (4, 5)).takes(1, 3, (6, 7));
    let blind = three.op(8, Body::Dequeue, (5, 7), Answer::Lost).left(&[1, 2]);
    assert_eq!(blind.accused(), ["queue"], "it may have had one of the two");
}

#[test]
fn at_once_put_elements_have_no_order() {
    let two = Made::default().put(1, (0, 3)).put(2, (2, 3)).takes(1, 2, (4, 5)).takes(2, 1, (6, 7));
    assert!(two.left(&[]).accused().is_empty());
}

#[test]
fn what_was_put_stays_until_it_is_done() {
    let two = || Made::default().put(1, (0, 1)).put(2, (2, 3));
    assert_eq!(two().takes(1, 1, (4, 5)).left(&[]).accused(), ["durability"]);
    let lost = || two().takes(1, 1, (4, 5)).op(8, Body::Dequeue, (4, 5), Answer::Lost);
    assert!(lost().left(&[]).accused().is_empty(), "whoever has no answer may have taken it");
    assert_eq!(lost().put(3, (6, 7)).left(&[]).accused(), ["durability"], "one can't have taken two");
    let handed = || two().gets(1, 1, (4, 5));
    assert_eq!(handed().left(&[2]).accused(), ["durability"], "handed out is not done");
    let unknown = handed().op(1, Body::Acknowledge { element: 1 }, (6, 7), Answer::Lost);
    assert!(unknown.left(&[2]).accused().is_empty(), "it may be done");
    let blind = handed().op(8, Body::Dequeue, (4, 5), Answer::Lost);
    assert_eq!(blind.left(&[1]).accused(), ["durability"], "whoever is handed one has not done it");
}

#[test]
fn claims_of_an_element_follow_each_other_with_growing_tokens() {
    let claim = |made: Made, process, (token, since, until)| {
        made.op(process, Body::Dequeue, (since, since), Answer::Claims(1, token, since, until))
    };
    let two = |one, next| {
        let made = claim(claim(Made::default().put(1, (0, 1)), 1, one), 2, next);
        made.op(1, Body::Enqueue { element: 50 }, (10, 11), Answer::Takes(50)).left(&[1, 50]).accused()
    };
    assert!(two((10, 2, 4), (20, 5, 9)).is_empty());
    assert_eq!(two((10, 2, 6), (20, 5, 9)), ["exclusion"]);
    assert_eq!(two((20, 2, 4), (10, 5, 9)), ["exclusion"]);
    let lost = claim(Made::default().put(1, (0, 1)), 1, (10, 2, 9));
    let given = lost.op(1, Body::Acknowledge { element: 1 }, (3, 4), Answer::Lost);
    let ends = claim(given, 2, (20, 5, 9)).left(&[1]).accused();
    assert!(ends.is_empty(), "whoever asks for the end of its claim is certain no longer");
    let held = claim(Made::default().put(1, (0, 1)), 1, (10, 2, 9));
    let by_another = held.op(3, Body::Acknowledge { element: 1 }, (3, 4), Answer::Lost);
    let next = claim(by_another, 2, (20, 5, 9));
    let ends = next.op(1, Body::Enqueue { element: 50 }, (10, 11), Answer::Takes(50)).left(&[1, 50]);
    assert_eq!(ends.accused(), ["exclusion"], "what another one asks for ends no claim");
    let gone = claim(claim(Made::default().put(1, (0, 1)), 1, (10, 2, 9)), 2, (20, 5, 9)).left(&[1]);
    assert!(gone.accused().is_empty(), "whoever does nothing more may have given it back");
}

/// Whether an element was overtaken that nobody may have had, tried pair by pair.
fn naive(puts: &[(u64, u64)], takes: &[Option<(u64, u64)>], blind: &[(u64, u64)]) -> bool {
    let never = (u64::MAX, u64::MAX);
    (0..puts.len()).any(|later| {
        let Some((_, ret)) = takes[later] else { return false };
        let overtaken = (0..puts.len())
            .filter(|one| puts[*one].1 < puts[later].0 && takes[*one].unwrap_or(never).0 > ret)
            .count();
        let beside = blind.iter().filter(|(from, _)| *from < ret).count();
        overtaken > beside
    })
}

proptest::proptest! {
    #[test]
    fn counting_agrees_with_trying_each_pair(
        puts in proptest::collection::vec((0_u64..30, 1_u64..6), 1..7),
        takes in proptest::collection::vec(proptest::option::of((0_u64..30, 1_u64..6)), 7),
        blind in proptest::collection::vec((0_u64..60, 1_u64..6), 0..3),
    ) {
        // All moments differ: a put's are 0 or 1 in 8, a dequeue's are others.
        let moments = |(from, length): (u64, u64), offset: u64| {
            (from * 8 + offset, (from + length) * 8 + offset + 1)
        };
        let puts: Vec<(u64, u64)> = puts.into_iter().map(|put| moments(put, 0)).collect();
        let takes: Vec<Option<(u64, u64)>> = takes
            .into_iter()
            .zip(&puts)
            .map(|(take, put)| take.map(|(from, length)| {
                let (call, ret) = moments((from, length), 2);
                (call, ret.max(put.0 + 3))
            }))
            .collect();
        let blind: Vec<(u64, u64)> = blind.into_iter().map(|blind| moments(blind, 4)).collect();
        let mut made = Made::default();
        for (element, put) in (1..).zip(&puts) {
            made = made.put(element, *put);
        }
        let mut left = Vec::new();
        for (element, take) in (1_i64..).zip(&takes) {
            match take {
                Some(take) => made = made.takes(element.unsigned_abs(), element, *take),
                None => left.push(element),
            }
        }
        for (process, blind) in (500..).zip(&blind) {
            made = made.op(process, Body::Dequeue, *blind, Answer::Lost);
        }
        let accused = made.left(&left).accused().contains(&"queue".to_owned());
        proptest::prop_assert_eq!(accused, naive(&puts, &takes, &blind));
    }
}

#[test]
fn a_process_puts_or_asks_works_and_acknowledges_what_it_was_handed() {
    let mut queues = Queues::new(2, ChaCha8Rng::seed_from_u64(7));
    let mut elements = std::collections::BTreeSet::new();
    let (mut holds, mut works) = (None, 0);
    for _ in 0..2_000 {
        let op = queues.next_op(3);
        let told = match op.body {
            Body::Enqueue { element } => {
                assert!(elements.insert((op.key, element)), "an element is put into a queue once");
                works += u32::from(holds.is_some());
                op.value()
            }
            Body::Dequeue => {
                assert_eq!(holds.replace(op.key), None, "one thing at a time");
                Value::List([77].into())
            }
            Body::Acknowledge { element } => {
                assert_eq!((holds.take(), element), (Some(op.key), 77));
                op.value()
            }
            ref other => panic!("{other:?}"),
        };
        queues.complete(3, &op, &Outcome::told(told, None));
    }
    let waiting: i64 = queues.waiting.values().sum();
    assert!(works > 200 && waiting < 3 * MOST, "{works} puts by holders, {waiting} are left");
    let of_another = (0..9).map(|_| queues.next_op(4)).find_map(|op| match op.body {
        Body::Enqueue { element } => Some(element),
        _ => None,
    });
    assert!(elements.iter().all(|(_, element)| Some(*element) < of_another), "elements of its own");
}
