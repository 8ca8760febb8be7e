//! Faults that act at once, taken together.
//!
//! What one of them did can't be told from what the others did: a leader that was cut off is followed by a
//! new epoch only when enough members are alive again to make one. So where faults overlap, or follow each
//! other with hardly any calm between, the whole *episode* is looked at, from the first injection to the
//! moment when all was seen to be gone and well. Without overlap every fault is an episode by itself.

use std::collections::BTreeMap;

use crate::results::FaultRecord;

/// Less calm than this part of the interval shows nothing.
const CALM_SHARE: u64 = 16;

/// The faults of a run that were injected, by episode, in the order of time.
#[derive(Clone, Debug)]
pub struct Episodes<'a> {
    episodes: Vec<Vec<&'a FaultRecord>>,
    /// When all was gone that was in force together with a fault, by the fault's name.
    ends: BTreeMap<&'a str, u64>,
}

impl<'a> Episodes<'a> {
    /// Groups them. Only faults that overlapped another make a longer calm necessary.
    pub fn of(faults: &'a [FaultRecord], interval_ms: u64) -> Self {
        let mut injected: Vec<&FaultRecord> =
            faults.iter().filter(|fault| fault.injected_ns.is_some()).collect();
        injected.sort_by_key(|fault| fault.injected_ns);
        let calm_ns = interval_ms * 1_000_000 / CALM_SHARE;
        let mut episodes: Vec<Vec<&FaultRecord>> = Vec::new();
        let mut until = 0;
        for fault in injected {
            let (from, gone) = (fault.injected_ns.unwrap_or_default(), end(fault));
            match episodes.last_mut() {
                Some(episode) if from < until => episode.push(fault),
                Some(episode) if episode.len() > 1 && from - until < calm_ns => episode.push(fault),
                _ => episodes.push(vec![fault]),
            }
            until = until.max(gone);
        }
        let mut ends = BTreeMap::new();
        for episode in &episodes {
            let last = episode.iter().map(|fault| end(fault)).max().unwrap_or_default();
            for fault in episode {
                ends.entry(fault.id.as_str()).or_insert(last);
            }
        }
        Self { episodes, ends }
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &[&'a FaultRecord]> {
        self.episodes.iter().map(Vec::as_slice)
    }

    /// When everything was gone that was in force together with this fault; the end of time if it never was.
    pub fn end_ns(&self, fault: &FaultRecord) -> u64 {
        self.ends.get(fault.id.as_str()).copied().unwrap_or_else(|| end(fault))
    }
}

fn end(fault: &FaultRecord) -> u64 {
    fault.verified_healed_ns.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(id: &str, from_ms: u64, gone_ms: Option<u64>) -> FaultRecord {
        FaultRecord {
            id: id.to_owned(),
            injected_ns: Some(from_ms * 1_000_000),
            verified_healed_ns: gone_ms.map(|gone| gone * 1_000_000),
            ..FaultRecord::default()
        }
    }

    fn names(faults: &[FaultRecord]) -> Vec<Vec<&str>> {
        let episodes = Episodes::of(faults, 4000);
        episodes.iter().map(|episode| episode.iter().map(|fault| fault.id.as_str()).collect()).collect()
    }

    #[test]
    fn faults_in_turn_are_episodes_of_their_own_however_little_calm_there_is() {
        let faults = [fault("F1", 2000, Some(4000)), fault("F2", 4001, Some(6000))];
        assert_eq!(names(&faults), [["F1"], ["F2"]]);
    }

    #[test]
    fn a_fault_that_overlaps_or_hardly_waits_belongs_to_the_episode() {
        let faults = [
            fault("F1", 2000, Some(4700)),
            fault("F2", 2700, Some(4100)),
            fault("F3", 4800, Some(5500)),
            fault("F4", 6000, Some(7000)),
        ];
        assert_eq!(names(&faults), [vec!["F1", "F2", "F3"], vec!["F4"]]);
        let episodes = Episodes::of(&faults, 4000);
        assert_eq!(episodes.end_ns(&faults[1]), 5_500_000_000);
        assert_eq!(episodes.end_ns(&faults[3]), 7_000_000_000);
    }

    #[test]
    fn what_was_never_gone_has_no_end_and_what_was_never_injected_no_place() {
        let mut faults = [fault("F1", 2000, None), fault("F2", 9000, Some(9500)), fault("F3", 0, None)];
        faults[2].injected_ns = None;
        assert_eq!(names(&faults), [["F1", "F2"]]);
        assert_eq!(Episodes::of(&faults, 4000).end_ns(&faults[1]), u64::MAX);
    }
}
