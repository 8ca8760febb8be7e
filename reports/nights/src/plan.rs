//! What a night tries first.
//!
//! A night has a budget and not a list to finish. What failed the last time, or was never run, comes first;
//! stable cases rotate by how long ago they ran, not by how often, or some would starve (CockroachDB's
//! roachtest learned that, #129621). A weight makes a case's time pass faster. What finds no room is named,
//! with the reason, because "not run" must never look like "valid".
//!
//! Shards agree without a word: a case belongs to the shard that its name falls to, with all its runs, so
//! that thresholds are judged where all their samples are.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use runs::numbers::plural;
use runs::span;

use crate::fold::Night;
use crate::index::LeftOut;
use crate::pile::Pile;
use crate::suite::Suite;

/// One run that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The case, by its place in the suite.
    pub case: usize,
    /// Which of its runs, from 1.
    pub repeat: u32,
    /// Its seed.
    pub seed: u64,
    /// How long it is expected to take.
    pub estimate: Duration,
    /// Why it has this place.
    pub turn: Turn,
}

/// Why a case has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// It was not valid the last time.
    Failed(Pile),
    /// It was never run.
    New,
    /// It was valid the last time, then.
    Stable(Timestamp),
}

impl Turn {
    /// The same in words.
    pub fn words(self, now: Timestamp) -> String {
        match self {
            Self::Failed(pile) => format!("the last time {}", pile.name()),
            Self::New => "never run".to_owned(),
            Self::Stable(last) => {
                let hours = now.duration_since(last).as_hours().max(0);
                match hours {
                    0 => "valid within the last hour".to_owned(),
                    1..48 => format!("valid {} ago", plural(hours.unsigned_abs(), "hour")),
                    _ => format!("valid {} ago", plural((hours / 24).unsigned_abs(), "day")),
                }
            }
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Failed(_) => 0,
            Self::New => 1,
            Self::Stable(_) => 2,
        }
    }
}

/// What decides a plan beside the suite.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The nights before, oldest first.
    pub nights: &'a [Night],
    /// When the night begins.
    pub now: Timestamp,
    /// From which every seed is made.
    pub seed: u64,
    /// This shard and of how many, from 1.
    pub shard: Option<(u32, u32)>,
    /// How long a run of a case takes that was never run, by its place in the suite.
    pub guess: &'a dyn Fn(usize) -> Duration,
}

/// What is known of a case from the nights before.
#[derive(Clone, Debug, Default)]
struct Past {
    last: Option<(Timestamp, Pile)>,
    took_ms: Vec<f64>,
}

/// No run takes longer; an index may say anything.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Runs of a case that tell how long it takes.
const RECENT: usize = 20;

/// The runs of a night in the order in which they are made.
pub fn order(suite: &Suite, terms: Terms<'_>) -> Vec<Slot> {
    let past = past(terms.nights);
    let nothing = Past::default();
    let mut slots: Vec<(u8, i64, Slot)> = Vec::new();
    for (at, case) in suite.cases.iter().enumerate() {
        if !terms.shard.is_none_or(|(shard, of)| belongs(&case.id, shard, of)) {
            continue;
        }
        let past = past.get(case.id.as_str()).unwrap_or(&nothing);
        let turn = match past.last {
            None => Turn::New,
            Some((at, Pile::Valid)) => Turn::Stable(at),
            Some((_, pile)) => Turn::Failed(pile),
        };
        let waited = match turn {
            Turn::Stable(last) => {
                terms.now.duration_since(last).as_secs().max(0).saturating_mul(i64::from(case.weight))
            }
            Turn::Failed(_) | Turn::New => i64::from(case.weight),
        };
        let estimate = past.usual().unwrap_or_else(|| (terms.guess)(at));
        for repeat in 1..=case.repeat {
            let seed = seed(terms.seed, &case.id, repeat);
            slots.push((turn.rank(), -waited, Slot { case: at, repeat, seed, estimate, turn }));
        }
    }
    // Within a case its runs follow each other: their samples belong together.
    slots.sort_by(|(rank, waited, a), (other, longer, b)| {
        (rank, waited, a.case, a.repeat).cmp(&(other, longer, b.case, b.repeat))
    });
    slots.into_iter().map(|(_, _, slot)| slot).collect()
}

impl Past {
    fn usual(&self) -> Option<Duration> {
        let mut took = self.took_ms.clone();
        took.sort_by(f64::total_cmp);
        let median = runs::numbers::nearest_rank(&took, 50.0)?;
        Duration::try_from_secs_f64(median / 1e3).ok().map(|usual| usual.min(LONGEST))
    }
}

fn past(nights: &[Night]) -> BTreeMap<&str, Past> {
    let mut all: BTreeMap<&str, Past> = BTreeMap::new();
    for night in nights {
        for attempt in &night.attempts {
            let past = all.entry(&attempt.case).or_default();
            // One that was refused at once does not tell how long a run takes.
            if attempt.pile != Pile::BenchFailure {
                past.took_ms.push(attempt.took_ms);
            }
            if past.took_ms.len() > RECENT {
                past.took_ms.remove(0);
            }
            let when = past.last.map_or(attempt.started_utc, |(at, _)| at.max(attempt.started_utc));
            past.last = Some((when, attempt.pile));
        }
        for case in night.cases() {
            if let (Some(pile), Some(past)) = (case.pile, all.get_mut(case.case.as_str()))
                && let Some((_, last)) = &mut past.last
            {
                *last = pile;
            }
        }
    }
    all
}

/// FNV-1a with 64 bits: short, and the same on every machine.
fn mark(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |mark, byte| (mark ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Mixes bits so that neighbours are far apart (Vigna's splitmix64).
fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Whether a case is this shard's.
pub fn belongs(case: &str, shard: u32, of: u32) -> bool {
    mixed(mark(case)) % u64::from(of.max(1)) == u64::from(shard.saturating_sub(1))
}

/// The seed of a run: ten digits at most, so that a person can read it out.
pub fn seed(night: u64, case: &str, repeat: u32) -> u64 {
    mixed(night ^ mixed(mark(case)) ^ u64::from(repeat)) & 0x7fff_ffff
}

/// The runs for which the rest of the budget has no room, by case.
pub fn no_room(suite: &Suite, slots: &[Slot], rest: Duration) -> Vec<LeftOut> {
    let mut left: Vec<LeftOut> = Vec::new();
    for slot in slots {
        let case = &suite.cases[slot.case];
        match left.last_mut() {
            Some(last) if last.case == case.id => last.runs += 1,
            _ => left.push(LeftOut {
                case: case.id.clone(),
                runs: 1,
                why: format!(
                    "a run takes about {}, and {} of the budget were left",
                    span::words(slot.estimate.max(Duration::from_secs(1))),
                    span::words(rest)
                ),
            }),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Attempt;
    use crate::invented;
    use crate::suite;

    fn suite() -> Suite {
        let text = "[[case]]\nname = \"old\"\n[[case]]\nname = \"recent\"\n[[case]]\nname = \"red\"\n\
                    repeat = 2\n[[case]]\nname = \"fresh\"\n[[case]]\nname = \"heavy\"\nweight = 50\n";
        suite::read(text, None).expect("a suite")
    }

    fn at(hour: u8) -> Timestamp {
        format!("2026-11-25T{hour:02}:00:00Z").parse().expect("a moment")
    }

    fn night(attempts: &[(&str, u8, Pile)]) -> Night {
        let attempt = |(case, hour, pile): &(&str, u8, Pile)| Attempt {
            started_utc: at(*hour),
            took_ms: 45_000.0,
            ..invented::attempt(case, *pile)
        };
        Night { attempts: attempts.iter().map(attempt).collect(), ..Night::new(invented::begun("n")) }
    }

    fn terms<'a>(nights: &'a [Night], shard: Option<(u32, u32)>) -> Terms<'a> {
        Terms { nights, now: at(23), seed: 7, shard, guess: &|_| Duration::from_secs(10) }
    }

    #[test]
    fn what_failed_comes_first_then_what_is_new_then_what_waited_longest() {
        let nights = [night(&[
            ("old", 1, Pile::Valid),
            ("recent", 20, Pile::Valid),
            ("red", 20, Pile::Unknown),
            ("heavy", 22, Pile::Valid),
        ])];
        let suite = suite();
        let slots = order(&suite, terms(&nights, None));
        let ids: Vec<&str> = slots.iter().map(|slot| suite.cases[slot.case].id.as_str()).collect();
        assert_eq!(ids, ["red", "red", "fresh", "heavy", "old", "recent"]);
        assert_eq!(slots[0].estimate, Duration::from_secs(45));
        assert_eq!(slots[2].estimate, Duration::from_secs(10));
        assert_eq!(slots[4].turn.words(at(23)), "valid 22 hours ago");
    }

    #[test]
    fn shards_divide_the_cases_and_agree_on_every_seed() {
        let suite = suite();
        let all = order(&suite, terms(&[], None));
        let mut together = Vec::new();
        for shard in 1..=3 {
            together.extend(order(&suite, terms(&[], Some((shard, 3)))));
        }
        together.sort_by_key(|slot| (slot.case, slot.repeat));
        let mut whole = all.clone();
        whole.sort_by_key(|slot| (slot.case, slot.repeat));
        assert_eq!(together, whole);
        let mut seeds: Vec<u64> = all.iter().map(|slot| slot.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), all.len());
    }

    #[test]
    fn what_finds_no_room_is_named_once_with_how_many_runs_and_why() {
        let suite = suite();
        let slots = order(&suite, terms(&[], None));
        let red: Vec<Slot> = slots.into_iter().filter(|slot| slot.case == 2).collect();
        let left = no_room(&suite, &red, Duration::from_secs(4));
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].case.as_str(), left[0].runs), ("red", 2));
        assert_eq!(left[0].why, "a run takes about 10 s, and 4 s of the budget were left");
    }
}
