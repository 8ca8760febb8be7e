//! How long what was sent was on its way, as what carried it tells.
//!
//! A delay is proven by what was really given: in each direction that was to be slow hardly anything may have
//! been quicker than was asked for. What is slow beyond that, a busy machine may have done; so the control, a
//! direction that nobody made slow, must be quicker.

use std::collections::BTreeMap;
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

/// Whether what was sent in these directions took as much longer as was asked for; none where nothing was
/// sent in any of them.
pub fn were_slow(wanted: &BTreeMap<Pair, Delay>, given: &Given) -> Option<Proof> {
    let (mut holds, mut seen, mut words) = (true, 0, Vec::new());
    for (pair, delay) in wanted {
        let mut took = given.get(pair).cloned().unwrap_or_default();
        took.sort_unstable();
        let Some(low) = percentile(&took, QUICKER_PERCENT) else { continue };
        seen += 1;
        let least_us = nanoseconds(delay.latency) / 1000 * LEAST_PERCENT / 100;
        if low < least_us {
            holds = false;
        }
        if words.len() < MOST_TOLD || low < least_us {
            words.push(format!("n{} to n{}: {}", pair.from.0, pair.to.0, spread(&took)));
        }
    }
    let more = match seen - words.len().min(seen) {
        0 => String::new(),
        more => format!("; and {more} more directions"),
    };
    (seen > 0).then(|| Proof::new(holds, format!("{}{more}", words.join(", "))))
}

/// Whether probes in directions other than these took less than half of so long.
pub fn were_quick(slow: &BTreeMap<Pair, Delay>, than: Duration, probes: &Given) -> Proof {
    let bound_us = nanoseconds(than) / 1000 / 2;
    let mut others: Vec<u64> = probes
        .iter()
        .filter(|(pair, _)| !slow.contains_key(pair))
        .flat_map(|(_, took)| took)
        .copied()
        .collect();
    others.sort_unstable();
    match percentile(&others, 50) {
        None => Proof::new(true, "no other direction was left to be probed".to_owned()),
        Some(median) => Proof::new(median < bound_us, format!("other probes: {}", spread(&others))),
    }
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

    #[test]
    fn a_delay_is_shown_by_what_was_given_and_a_control_that_was_not() {
        let pair = Pair::from((1, 2));
        let delay = Delay { latency: Duration::from_millis(100), ..Delay::default() };
        let wanted = BTreeMap::from([(pair, delay)]);
        let given =
            |took: &[u64], other: &[u64]| Given::from([(pair, took.to_vec()), (pair.back(), other.to_vec())]);
        let shown = |took: &[u64], other: &[u64]| were_slow(&wanted, &given(took, other));
        let quick = |other: &[u64]| were_quick(&wanted, delay.latency, &given(&[100_000], other)).holds;
        let slow = shown(&[100_200, 100_900, 131_000], &[300, 200]).expect("something was sent");
        let words = slow.detail.evidence.expect("words");
        assert_eq!(words, "n1 to n2: 3 sent took 100.2 / 100.9 / 131.0 ms (least, median, most)");
        assert!(slow.holds && quick(&[300, 200]));
        assert!(!shown(&[400, 100_900, 101_000], &[]).expect("something was sent").holds);
        assert_eq!(shown(&[], &[300]), None);
        assert!(!quick(&[99_000]), "all is slow");
    }
}
