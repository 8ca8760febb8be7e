//! The generator's conduct, and each check against histories that keep its promise and that break it.

use std::collections::BTreeSet;

use checker::Budget;
use checker::durability::FinalState;
use checker::history::{Event, History};
use checker::verdict::{CheckResult, Verdict};
use rand::SeedableRng;

use super::*;
use crate::judge::{Beside, judge};
use crate::outcome::{Claims, Refusal, STALE_TOKEN};
use crate::workload::Kind;

const S: u64 = 1_000_000_000;

/// A history in the making. Moments are in seconds.
#[derive(Default)]
struct Made(Vec<Event>);

impl Made {
    fn op(mut self, process: u64, body: Body, (from, to): (u64, u64), outcome: &Outcome) -> Self {
        let op = lock(0, body);
        self.0.extend([op.event(process, from * S), outcome.event(&op, process, to * S)]);
        self
    }

    fn acquired(self, process: u64, token: i64, since: u64, until: u64) -> Self {
        let list = [token, ns(since), ns(until)];
        self.op(process, Body::Acquire, (since, since), &Outcome::told(Value::List(list.into()), None))
    }

    fn stored(self, token: i64, at: u64, until: u64, place: i64) -> Self {
        self.stored_late(token, (at, at), until, place)
    }

    /// Whoever wrote looked at its clock at the first moment, and its write came at the second.
    fn stored_late(self, token: i64, (looked, at): (u64, u64), until: u64, place: i64) -> Self {
        let list = [token, place, ns(looked), ns(until), ns(at)];
        let claims = Claims { version: Some(place), ..Claims::default() };
        let told = Outcome { claims, ..Outcome::told(Value::List(list.into()), None) };
        self.op(token.unsigned_abs(), Body::Store { token, value: place }, (at, at), &told)
    }

    fn released(self, process: u64, token: i64, at: u64) -> Self {
        self.op(process, Body::Release { token }, (at, at), &Outcome::told(Value::One(token), None))
    }

    fn history(mut self) -> History {
        self.0.sort_by_key(|event| event.time);
        History::from_events(self.0).expect("a history")
    }

    fn accusations(self) -> Vec<CheckResult> {
        let results = judge(Kind::LOCK, &self.history(), &Beside::default(), &Budget::default());
        results.into_iter().filter(|result| result.verdict == Verdict::Invalid).collect()
    }

    fn accused(self) -> Vec<String> {
        self.accusations().into_iter().map(|result| result.name).collect()
    }

    /// The sentence of the one check that accuses.
    fn sentence(self) -> String {
        let accusations = self.accusations();
        assert_eq!(accusations.len(), 1);
        accusations[0].counterexample.as_ref().expect("what shows it").sentence.clone()
    }
}

/// What `left-behind` says of a lock whose line is read at `read`, with `left` in it. Its holder released it
/// at 3, or at `released`; all was well since `well`.
fn left_behind(left: Option<&[i64]>, well: Option<u64>, released: u64, read: u64) -> Verdict {
    let made = Made::default().acquired(1, 10, 1, 2).released(1, 10, released);
    let lost = Outcome::lost(&lock(0, Body::Read), "no answer");
    let read_once = made.op(2, Body::Read, (read, read), &Outcome::told(Value::Null, None));
    let history = read_once.op(2, Body::Read, (read + 20, read + 21), &lost).history();
    let state = |list: &[i64]| FinalState {
        member: 1,
        key: 0,
        version: None,
        value: None,
        mzxid: None,
        list: Some(list.to_vec()),
    };
    let final_states = left.map(state).into_iter().collect();
    let beside = Beside { final_states, well_since_ns: well.map(|well| well * S), ..Beside::default() };
    let results = judge(Kind::LOCK, &history, &beside, &Budget::default());
    results.into_iter().find(|result| result.name == "left-behind").expect("it is judged").verdict
}

#[test]
fn whoever_is_left_in_a_line_is_accused_once_the_end_of_its_session_is_due() {
    assert_eq!(left_behind(Some(&[]), Some(2), 3, 20), Verdict::Valid);
    assert_eq!(left_behind(Some(&[7]), Some(2), 3, 20), Verdict::Invalid);
    // A session of four seconds and three for its end, from when all was well or somebody last did anything.
    assert_eq!(left_behind(Some(&[7]), Some(2), 3, 10), Verdict::Unknown);
    assert_eq!(left_behind(Some(&[7]), Some(2), 14, 20), Verdict::Unknown, "its release has just come");
    assert_eq!(left_behind(Some(&[7]), Some(14), 3, 20), Verdict::Unknown, "a fault has just gone");
    assert_eq!(left_behind(Some(&[7]), None, 3, 20), Verdict::Unknown, "it never was well");
    assert_eq!(left_behind(None, Some(2), 3, 20), Verdict::Unknown, "no line was read");
}

fn ns(seconds: u64) -> i64 {
    i64::try_from(seconds * S).expect("small")
}

#[test]
fn terms_that_follow_each_other_accuse_nobody() {
    let made = Made::default()
        .acquired(1, 10, 1, 5)
        .stored(10, 2, 6, 1)
        .released(1, 10, 3)
        .acquired(2, 20, 4, 8)
        .stored(20, 5, 9, 2)
        .stored(20, 6, 9, 3);
    assert!(made.accused().is_empty());
}

#[test]
fn a_token_that_comes_again_or_is_smaller_than_before_is_found() {
    assert_eq!(Made::default().acquired(1, 10, 1, 2).acquired(2, 10, 3, 4).accused(), ["tokens"]);
    assert_eq!(Made::default().acquired(1, 10, 1, 2).acquired(2, 9, 3, 4).accused(), ["tokens"]);
}

#[test]
fn two_that_hold_at_once_are_found_and_a_release_ends_a_term() {
    assert_eq!(Made::default().acquired(1, 10, 1, 5).acquired(2, 20, 4, 8).accused(), ["exclusion"]);
    let told_later = Made::default().acquired(1, 10, 1, 3).stored(10, 2, 9, 1).acquired(2, 20, 4, 8);
    assert_eq!(told_later.accused(), ["exclusion"], "a write told of more certainty");
    let released = Made::default().acquired(1, 10, 1, 9).released(1, 10, 3).acquired(2, 20, 4, 8);
    assert!(released.accused().is_empty());
}

#[test]
fn a_term_that_lasts_is_held_against_all_that_follow_and_ends_by_its_own_release_alone() {
    // Another one is certain of a moment alone within it, and a third one holds later.
    let long = || Made::default().acquired(1, 10, 1, 9).acquired(2, 20, 2, 2);
    assert_eq!(long().acquired(3, 30, 4, 8).accused(), ["exclusion"]);
    assert!(long().released(1, 10, 3).acquired(3, 30, 4, 8).accused().is_empty());
    assert_eq!(long().released(2, 20, 3).acquired(3, 30, 4, 8).accused(), ["exclusion"]);
    assert!(long().acquired(3, 30, 9, 12).accused().is_empty(), "it holds to 9 and not at 9");
    let first = || Made::default().acquired(1, 10, 1, 3).acquired(2, 20, 4, 9);
    assert!(first().acquired(3, 30, 9, 12).accused().is_empty());
    assert_eq!(first().acquired(3, 30, 6, 8).accused(), ["exclusion"]);
}

#[test]
fn a_term_lasts_to_the_latest_that_any_of_its_writes_tells() {
    let next = |made: Made| made.acquired(2, 20, 7, 8).accused();
    let shorter = Made::default().acquired(1, 10, 1, 3).stored(10, 2, 9, 1).stored(10, 3, 6, 2);
    assert_eq!(next(shorter), ["exclusion"]);
    let longer = Made::default().acquired(1, 10, 1, 3).stored(10, 2, 6, 1).stored(10, 3, 9, 2);
    assert_eq!(next(longer), ["exclusion"]);
    let over = Made::default().acquired(1, 10, 1, 3).stored(10, 2, 6, 1).stored(10, 3, 7, 2);
    assert!(next(over).is_empty());
}

#[test]
fn a_term_says_until_when_its_holder_was_certain_if_that_one_said_so() {
    let terms = |made: Made| {
        let history = made.history();
        let held = crate::terms::by_key(&history);
        held[&0].terms.iter().map(|term| (term.tells_its_end(), term.certain_until())).collect::<Vec<_>>()
    };
    let silent = Made::default().acquired(1, 10, 1, 1).stored(10, 2, 4, 1).released(1, 10, 3);
    assert_eq!(terms(silent.acquired(2, 20, 5, 9)), [(false, 4 * S), (true, 9 * S)]);
}

#[test]
fn accusations_name_tokens_and_moments() {
    let twice = Made::default().acquired(1, 10, 1, 2).acquired(2, 10, 3, 4).sentence();
    assert!(twice.starts_with("token 10 was given twice: "), "{twice}");
    let smaller = Made::default().acquired(1, 10, 1, 2).acquired(2, 9, 3, 4).sentence();
    assert!(smaller.starts_with("token 9 was given after token 10: "), "{smaller}");
    let both = Made::default().acquired(1, 10, 1, 5).acquired(2, 20, 4, 8).sentence();
    assert!(both.contains("by token 10 until 5.0000 s") && both.ends_with("since 4.0000 s"), "{both}");
}

#[test]
fn a_write_whose_holder_was_not_certain_any_more_is_found() {
    assert_eq!(Made::default().acquired(1, 10, 1, 5).stored(10, 6, 5, 1).accused(), ["exclusion"]);
}

#[test]
fn a_stale_write_that_the_store_took_is_found_and_one_that_it_refused_is_none() {
    let two = || Made::default().acquired(1, 10, 1, 2).acquired(2, 20, 3, 9).stored(20, 4, 9, 1);
    assert_eq!(two().stored_late(10, (1, 5), 2, 2).accused(), ["guarded-store"]);
    let op = lock(0, Body::Store { token: 10, value: 2 });
    let refused = Outcome {
        refusal: Some(Refusal::Other),
        ..Outcome::without_result(EventKind::Fail, &op, STALE_TOKEN.to_owned())
    };
    assert!(two().op(10, op.body.clone(), (5, 5), &refused).accused().is_empty());
}

#[test]
fn a_refused_write_of_a_holder_that_says_no_moment_shows_that_it_went_on() {
    let op = lock(0, Body::Store { token: 10, value: 2 });
    let refused = Outcome {
        refusal: Some(Refusal::Other),
        ..Outcome::without_result(EventKind::Fail, &op, STALE_TOKEN.to_owned())
    };
    // It was stopped at 2 and acts at 6 as if it held; another one has held since 4.
    let two = |since, until| {
        let first = Made::default().acquired(1, 10, since, until);
        first.acquired(2, 20, 4, 4).stored(20, 5, 6, 1).op(1, op.body.clone(), (3, 6), &refused)
    };
    assert_eq!(two(1, 1).accused(), ["exclusion"]);
    assert!(two(1, 3).accused().is_empty(), "it says that it was certain until 3");

    // What else became of its operations shows nothing of the kind.
    let without = |body, outcome: &Outcome| {
        let first = Made::default().acquired(1, 10, 1, 1).acquired(2, 20, 4, 4);
        first.stored(20, 5, 6, 1).op(1, body, (3, 6), outcome).accused()
    };
    let failed = |error: &str| Outcome::without_result(EventKind::Fail, &op, error.to_owned());
    assert!(without(op.body.clone(), &failed("no such member")).is_empty(), "it failed otherwise");
    let lost = Outcome::lost(&op, STALE_TOKEN);
    assert!(without(op.body.clone(), &lost).is_empty(), "nobody knows what became of it");
    let again = Body::Acquire;
    let refused = Outcome::without_result(EventKind::Fail, &lock(0, again.clone()), STALE_TOKEN.to_owned());
    assert!(without(again, &refused).is_empty(), "it is no write");
}

#[test]
fn whoever_holds_writes_and_releases_and_whoever_lost_it_begins_anew() {
    let mut holding = Holding::new(2, 2..=2, ChaCha8Rng::seed_from_u64(7));
    let tell = |holding: &mut Holding, op: &Op, kind, refusal| {
        let list = [5, 0, 9];
        let told = match op.body {
            Body::Acquire => Outcome::told(Value::List(list.into()), None),
            _ => Outcome { kind, refusal, ..Outcome::told(op.value(), None) },
        };
        holding.complete(3, op, &told);
    };
    let mut bodies = Vec::new();
    for _ in 0..8 {
        let op = holding.next_op(3);
        tell(&mut holding, &op, EventKind::Ok, None);
        bodies.push(op.function().as_str());
    }
    let term = ["acquire", "store", "store", "release"];
    assert_eq!(bodies, [term, term].concat());
    let acquire = holding.next_op(3);
    tell(&mut holding, &acquire, EventKind::Ok, None);
    let write = holding.next_op(3);
    tell(&mut holding, &write, EventKind::Fail, None);
    assert_eq!(holding.next_op(3).function(), Function::STORE, "what was never sent ends no term");
    tell(&mut holding, &write, EventKind::Fail, Some(Refusal::Other));
    assert_eq!(holding.next_op(3).function(), Function::ACQUIRE);
}

/// Process 3 holds, and has nothing left to write.
fn done() -> Holding {
    let mut holding = Holding::new(2, 1..=1, ChaCha8Rng::seed_from_u64(7));
    for _ in ["acquire", "store"] {
        let op = holding.next_op(3);
        let value = if op.body == Body::Acquire { Value::List([5, 0, 9].into()) } else { op.value() };
        holding.complete(3, &op, &Outcome::told(value, None));
    }
    holding
}

#[test]
fn a_holder_that_a_fault_hits_writes_once_more_and_one_that_was_replaced_holds_nothing() {
    let mut hit = done();
    hit.works_on(3);
    hit.works_on(4);
    assert_eq!(hit.next_op(3).function(), Function::STORE);
    assert_eq!(hit.next_op(3).function(), Function::RELEASE);
    assert_eq!(hit.next_op(4).function(), Function::ACQUIRE);
    let mut replaced = done();
    replaced.begins_anew(3);
    assert_eq!(replaced.next_op(3).function(), Function::ACQUIRE);
}

#[test]
fn no_two_writes_have_the_same_value() {
    let mut holding = Holding::new(3, 1..=6, ChaCha8Rng::seed_from_u64(1));
    let mut values = BTreeSet::new();
    for at in 0..500_u64 {
        let op = holding.next_op(at % 5);
        if let Body::Store { value, .. } = op.body {
            assert!(values.insert(value));
        }
        let list = [i64::try_from(at).expect("small"), 0, 1];
        let value = if op.body == Body::Acquire { Value::List(list.into()) } else { op.value() };
        holding.complete(at % 5, &op, &Outcome::told(value, None));
    }
    assert!(values.len() > 100);
}
