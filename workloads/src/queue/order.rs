//! The order of a queue: what was put first is handed out first.
//!
//! Element a is *overtaken* by b where a was put before b began to be put, and b was told before the first
//! dequeue that tells a began. Somebody else may have had a just then, whose dequeue tells nothing; each has
//! one element at a moment. So b may have overtaken as many elements as such dequeues had begun by then, and
//! not one more. That is counted for each b in n log n: elements are taken in by the end of their put, and
//! counted by when they were first asked for.

use checker::history::{NEVER, Op, Outcome, Rank, describe};

use super::told::{Element, Finding, Told};

/// When an element came and went.
struct Passage<'t, 'a> {
    element: &'t Element<'a>,
    /// When it was there at the latest.
    there: Rank,
    /// When the first dequeue that tells it was called.
    asked: Rank,
}

impl<'t, 'a> Passage<'t, 'a> {
    fn of(element: &'t Element<'a>) -> Self {
        let there = if element.put.outcome == Outcome::Ok { element.put.ret } else { NEVER };
        let asked = element.handed.iter().map(|op| op.call).min().unwrap_or(NEVER);
        Self { element, there, asked }
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
    let passages: Vec<Passage<'_, 'a>> = told.elements.values().map(Passage::of).collect();
    let mut by_there: Vec<&Passage<'_, 'a>> = passages.iter().filter(|one| one.there != NEVER).collect();
    by_there.sort_by_key(|one| one.there);
    let mut by_put: Vec<&Passage<'_, 'a>> = passages.iter().collect();
    by_put.sort_by_key(|one| one.element.put.call);
    let mut asked: Vec<Rank> = by_there.iter().map(|one| one.asked).collect();
    asked.sort_unstable();
    let mut counter = Counter::of(asked.len());
    let mut there = 0;
    for later in by_put {
        while let Some(one) = by_there.get(there).filter(|one| one.there < later.element.put.call) {
            counter.add(asked.partition_point(|other| *other < one.asked));
            there += 1;
        }
        let Some(first) = later.element.handed.iter().min_by_key(|op| op.ret).copied() else { continue };
        let overtakes = there - counter.before(asked.partition_point(|other| *other <= first.ret));
        let blind = told.blind.partition_point(|call| *call < first.ret);
        if overtakes > blind {
            let passed = by_there[..there].iter().filter(|one| one.asked > first.ret);
            let one = passed.min_by_key(|one| one.element.put.call)?;
            return Some(finding(one.element, (later.element, first), (overtakes, blind)));
        }
    }
    None
}

/// That the first element was overtaken by the second one, when this dequeue told that.
fn finding<'a>(
    one: &Element<'a>,
    (later, by): (&Element<'a>, &'a Op),
    (overtakes, blind): (usize, usize),
) -> Finding<'a> {
    let asked = one.handed.iter().min_by_key(|op| op.call).copied();
    let then = match asked {
        Some(op) => format!("and only afterwards {}", describe(op)),
        None => "and nobody was handed the first one at all".to_owned(),
    };
    let others = match (overtakes, blind) {
        (1, 0) => String::new(),
        (many, blind) => {
            format!(" ({many} elements were overtaken so, and {blind} dequeues may have had one of them)")
        }
    };
    let sentence = format!(
        "{}, and then {}, but {}, {then}{others}",
        describe(one.put),
        describe(later.put),
        describe(by)
    );
    let ops = [one.put, later.put, by].into_iter().chain(asked).collect();
    (sentence, ops)
}
