//! The order of a queue: what was put first is handed out first.
//!
//! Element a is *overtaken* by b where a was put before b began to be put, and b was told before the first
//! dequeue that tells a began. Somebody else may have had a just then, and given it back or died: a dequeue
//! that tells nothing, and was not over. Each such has one element at a moment. So b may have overtaken as
//! many elements as there are such dequeues beside it, and not one more. That is counted for each b, in
//! n log n: in the order of their puts from the last to the first, among those that were told later.

use checker::history::{NEVER, Op, Outcome, Rank, describe};

use super::told::{Element, Finding, Told};

/// When an element came and went.
struct Passage<'a> {
    element: &'a Element<'a>,
    /// The first dequeue that tells it.
    first: Option<&'a Op>,
    /// Its call, or never.
    call: Rank,
}

impl<'a> Passage<'a> {
    fn of(element: &'a Element<'a>) -> Self {
        let first = element.handed.iter().min_by_key(|op| op.ret).copied();
        let call = element.handed.iter().map(|op| op.call).min().unwrap_or(NEVER);
        Self { element, first, call }
    }

    /// When it was there at the latest.
    fn there(&self) -> Rank {
        if self.element.put.outcome == Outcome::Ok { self.element.put.ret } else { NEVER }
    }
}

/// Numbers in growing order that are counted by their place (Fenwick 1994).
struct Counter(Vec<usize>);

impl Counter {
    fn of(places: usize) -> Self {
        Self(vec![0; places + 1])
    }

    /// One more at this place.
    fn add(&mut self, place: usize) {
        let mut at = place + 1;
        while at < self.0.len() {
            self.0[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// How many stand before this place.
    fn before(&self, place: usize) -> usize {
        let (mut at, mut sum) = (place, 0);
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }
}

/// An element that was overtaken, and nobody may have had it then.
pub(super) fn overtaken<'a>(told: &Told<'a>) -> Option<Finding<'a>> {
    let passages: Vec<Passage<'_>> = told.elements.values().map(Passage::of).collect();
    let mut by_there: Vec<&Passage<'_>> = passages.iter().filter(|one| one.there() != NEVER).collect();
    by_there.sort_by_key(|one| one.there());
    let mut by_put: Vec<&Passage<'_>> = passages.iter().filter(|one| one.first.is_some()).collect();
    by_put.sort_by_key(|one| one.element.put.call);
    let mut calls: Vec<Rank> = by_there.iter().map(|one| one.call).collect();
    calls.sort_unstable();
    let (begun, ended) = blind(told);
    let mut seen = Counter::of(calls.len());
    let mut number = 0;
    let mut earlier = by_there.iter().peekable();
    for later in by_put {
        while let Some(one) = earlier.next_if(|one| one.there() < later.element.put.call) {
            seen.add(calls.partition_point(|call| *call < one.call));
            number += 1;
        }
        let Some(first) = later.first else { continue };
        let overtakes = number - seen.before(calls.partition_point(|call| *call <= first.ret));
        let beside =
            begun.partition_point(|call| *call < first.ret) - ended.partition_point(|end| *end < first.call);
        if overtakes > beside {
            return sentence(told, later, first, (overtakes, beside));
        }
    }
    None
}

/// When dequeues that tell nothing began, and when they ended.
fn blind(told: &Told<'_>) -> (Vec<Rank>, Vec<Rank>) {
    let (mut begun, mut ended): (Vec<Rank>, Vec<Rank>) = told.blind.iter().copied().unzip();
    begun.sort_unstable();
    ended.sort_unstable();
    (begun, ended)
}

/// Names the element that was put first of those that were overtaken.
fn sentence<'a>(
    told: &Told<'a>,
    later: &Passage<'_>,
    first: &Op,
    (overtakes, beside): (usize, usize),
) -> Option<Finding<'a>> {
    let (put, told_by) = (later.element.put, first);
    let passed = |element: &&Element<'a>| {
        let one = Passage { element, first: None, call: NEVER };
        let call = element.handed.iter().map(|op| op.call).min().unwrap_or(NEVER);
        one.there() < put.call && call > told_by.ret
    };
    let element = told.elements.values().filter(passed).min_by_key(|element| element.put.call)?;
    let own = told.elements.values().find(|element| std::ptr::eq(element.put, put))?;
    let by = own.handed.iter().find(|op| std::ptr::eq(**op, told_by)).copied()?;
    let then = match element.handed.iter().min_by_key(|op| op.call) {
        Some(op) => format!("and only afterwards {}", describe(op)),
        None => "and nobody was handed the first one at all".to_owned(),
    };
    let others = match (overtakes, beside) {
        (1, 0) => String::new(),
        (many, beside) => {
            format!(" ({many} elements were overtaken so, and {beside} dequeues may have had one of them)")
        }
    };
    let sentence = format!(
        "{}, and then {}, but {}, {then}{others}",
        describe(element.put),
        describe(own.put),
        describe(by)
    );
    let mut ops = vec![element.put, own.put, by];
    ops.extend(element.handed.iter().min_by_key(|op| op.call).copied());
    Some((sentence, ops))
}
