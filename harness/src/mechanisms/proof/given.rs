//! How long what was sent was on its way, as what carried it tells.
//!
//! A delay is proven by what was really given: in each direction that was to be slow hardly anything may have
//! been quicker than was asked for. What is slow beyond that, a busy machine may have done; so the control, a
//! direction that nobody made slow, must be quicker. Each direction is judged by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use harness_core::condition::Delay;
use harness_core::cut::Pair;
use harness_core::proof::Proof;

use crate::clock::nanoseconds;

/// So many of a hundred may have been quicker than was asked for: what was on its way when it began.
const QUICKER_PERCENT: usize = 10;
/// What is asked for is given to a tenth of it: a timer counts in whole ticks.
const LEAST_PERCENT: u64 = 90;
/// Directions that are told one by one; of more only how many there were.
const MOST_TOLD: usize = 4;

/// How long things were on their way, by direction, in us.
pub type Given = BTreeMap<Pair, Vec<u64>>;

/// Whether what was sent in these directions took as much longer as was asked for, in each where anything
/// was; none where nothing was sent in any of them.
pub fn were_slow(wanted: &BTreeMap<Pair, Delay>, given: &Given) -> Option<Proof> {
    let (mut holds, mut seen, mut words) = (true, 0, Vec::new());
    for (pair, delay) in wanted {
        let took = sorted(given.get(pair));
        let Some(low) = percentile(&took, QUICKER_PERCENT) else { continue };
        seen += 1;
        let least_us = (nanoseconds(delay.latency) / 1000).saturating_mul(LEAST_PERCENT) / 100;
        if low < least_us {
            holds = false;
        }
        if words.len() < MOST_TOLD || low < least_us {
            words.push(format!("{}: {}", direction(*pair), spread(&took)));
        }
    }
    let more = match seen - words.len().min(seen) {
        0 => String::new(),
        more => format!("; and {more} more directions"),
    };
    (seen > 0).then(|| Proof::new(holds, format!("{}{more}", words.join(", "))))
}

/// Whether what was sent took less than half of `than` beside what is asked for there, in each direction
/// where anything was; none where nothing was sent in any of them. The slowest one is told.
pub fn were_quick(wanted: &BTreeMap<Pair, Delay>, than: Duration, given: &Given) -> Option<Proof> {
    let beyond_us = |(pair, took): (&Pair, &Vec<u64>)| {
        let took = sorted(Some(took));
        let median = percentile(&took, 50)?;
        let wanted_us = wanted.get(pair).map_or(0, |delay| nanoseconds(delay.most()) / 1000);
        Some((median.saturating_sub(wanted_us), *pair, took))
    };
    let slowest = given.iter().filter_map(beyond_us).max_by_key(|(beyond_us, ..)| *beyond_us);
    let (beyond_us, pair, took) = slowest?;
    let directions = given.values().filter(|took| !took.is_empty()).count();
    let words = format!("of {directions} directions the slowest is {}: {}", direction(pair), spread(&took));
    Some(Proof::new(beyond_us < half_us(than), words))
}

/// Whether the control took less than half of so long; without any it shows nothing.
pub fn control_was_quick(than: Duration, took: &[u64]) -> Proof {
    let took = sorted(Some(&took.to_vec()));
    match percentile(&took, 50) {
        None => Proof::new(false, "not even the control arrived".to_owned()),
        Some(median) => Proof::new(median < half_us(than), format!("control: {}", spread(&took))),
    }
}

/// Whether what carries members' words holds them back by what is asked for, and by nothing else.
pub fn are_held(wanted: &BTreeMap<Pair, Delay>, held: &BTreeMap<Pair, Delay>) -> Proof {
    let all: BTreeSet<Pair> = wanted.keys().chain(held.keys()).copied().collect();
    let of = |from: &BTreeMap<Pair, Delay>, pair| from.get(pair).copied().unwrap_or_default();
    let other: Vec<Pair> = all.iter().filter(|pair| of(wanted, pair) != of(held, pair)).copied().collect();
    let words = match other.first() {
        None => format!("{} of {} directions are held back, as asked for", wanted.len(), all.len()),
        Some(pair) => format!(
            "{} is held back by {} ms, and not by {} ms as asked for, as the first of {} directions",
            direction(*pair),
            of(held, pair).latency.as_millis(),
            of(wanted, pair).latency.as_millis(),
            other.len()
        ),
    };
    Proof::new(other.is_empty(), words)
}

fn sorted(took: Option<&Vec<u64>>) -> Vec<u64> {
    let mut took = took.cloned().unwrap_or_default();
    took.sort_unstable();
    took
}

fn half_us(of: Duration) -> u64 {
    nanoseconds(of) / 1000 / 2
}

fn direction(pair: Pair) -> String {
    format!("n{} to n{}", pair.from.0, pair.to.0)
}

/// The value below which so many of a hundred lie.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get(last * percent / 100).copied()
}

/// `24 pieces in 100.1 / 100.4 / 131.0 ms (least, median, most)`.
fn spread(sorted: &[u64]) -> String {
    let ms = |percent| {
        let us = percentile(sorted, percent).unwrap_or_default();
        format!("{}.{}", us / 1000, us % 1000 / 100)
    };
    format!("{} sent took {} / {} / {} ms (least, median, most)", sorted.len(), ms(0), ms(50), ms(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_way() -> Pair {
        Pair::from((1, 2))
    }

    fn by(latency_ms: u64) -> Delay {
        Delay { latency: Duration::from_millis(latency_ms), ..Delay::default() }
    }

    #[test]
    fn a_delay_is_shown_by_what_was_given_in_each_direction() {
        let wanted = BTreeMap::from([(one_way(), by(100)), (one_way().back(), by(100))]);
        let shown = |took: &[u64], other: &[u64]| {
            were_slow(&wanted, &Given::from([(one_way(), took.to_vec()), (one_way().back(), other.to_vec())]))
        };
        let slow = shown(&[100_200, 100_900, 131_000], &[]).expect("something was sent");
        let words = slow.detail.evidence.expect("words");
        assert_eq!(words, "n1 to n2: 3 sent took 100.2 / 100.9 / 131.0 ms (least, median, most)");
        assert!(slow.holds);
        assert!(!shown(&[400, 100_900, 101_000], &[]).expect("something was sent").holds);
        assert!(!shown(&[101_000; 30], &[300]).expect("something was sent").holds, "one way alone");
        assert_eq!(shown(&[], &[]), None);
    }

    #[test]
    fn one_direction_that_is_slow_is_not_made_good_by_many_that_are_quick() {
        let quick = |wanted: &BTreeMap<Pair, Delay>, took: &[((u64, u64), u64)]| {
            let given = took.iter().map(|(pair, took)| (Pair::from(*pair), vec![*took; 5])).collect();
            were_quick(wanted, Duration::from_millis(100), &given).map(|proof| proof.holds)
        };
        let none = BTreeMap::new();
        assert_eq!(quick(&none, &[((1, 2), 300), ((1, 3), 300), ((2, 3), 400)]), Some(true));
        assert_eq!(quick(&none, &[((1, 2), 300), ((1, 3), 300), ((2, 3), 99_000)]), Some(false));
        assert_eq!(quick(&none, &[]), None);
        let rest = BTreeMap::from([(one_way(), by(200))]);
        assert_eq!(quick(&rest, &[((1, 2), 200_300)]), Some(true), "another fault's doing");
        assert_eq!(quick(&rest, &[((1, 2), 300_300)]), Some(false), "more than that");
        assert!(control_was_quick(Duration::from_millis(100), &[400]).holds);
        assert!(!control_was_quick(Duration::from_millis(100), &[60_000]).holds);
        assert!(!control_was_quick(Duration::from_millis(100), &[]).holds);
    }

    #[test]
    fn what_is_held_back_must_be_what_is_asked_for_in_every_direction() {
        let wanted = BTreeMap::from([(one_way(), by(100))]);
        let with = |more: &[(Pair, Delay)]| {
            let others = [(one_way().back(), by(0))];
            are_held(&wanted, &others.iter().chain(more).copied().collect()).holds
        };
        assert!(with(&[(one_way(), by(100))]));
        assert!(!with(&[]) && !with(&[(one_way(), by(50))]));
        assert!(!with(&[(one_way(), by(100)), (one_way().back(), by(100))]));
    }
}
