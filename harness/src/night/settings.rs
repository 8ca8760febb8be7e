//! A night as it is meant: the file, the flags, and every case as a run, checked before anything starts.

use std::path::PathBuf;
use std::time::Duration;

use nights::scheduler::Runs;
use nights::suite::{Case, Suite};
use nights::threshold::Threshold;
use runs::cluster_kind::ClusterKind;
use runs::numbers::{count, plural};

use crate::config::RunOptions;
use crate::config::flags::must_be_typed;
use crate::exit::Failure;
use crate::text::{span, typed};

/// A night that can be run.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The file.
    pub suite: Suite,
    /// Each case as a run, in the suite's order.
    pub options: Vec<RunOptions>,
    /// How long it may take.
    pub budget: Duration,
    /// Where nights are kept.
    pub store: PathBuf,
    /// What it is called; none is its start.
    pub name: Option<String>,
    /// From which every seed is made.
    pub seed: u64,
    /// This shard and of how many, from 1.
    pub shard: Option<(u32, u32)>,
    /// The profile.
    pub profile: Option<String>,
    /// Whether the last night of the store goes on.
    pub resume: bool,
    /// And whether another one begins where there is none to go on with.
    pub or_begin: bool,
}

/// What starting and ending an ensemble, and judging its run, takes beside the workload.
const AROUND: Duration = Duration::from_secs(12);
/// The same where members are containers.
const AROUND_CONTAINERS: Duration = Duration::from_secs(25);
/// By how much a virtual run is faster than its time, at least.
const VIRTUAL: u32 = 10;

impl Orders {
    /// Refuses thresholds that no night can judge: elections by a fault that is not in the case, and
    /// percentiles of more elections than its runs can have.
    ///
    /// # Errors
    ///
    /// What to write instead.
    pub fn check_thresholds(&self) -> Result<(), Failure> {
        for (case, options) in self.suite.cases.iter().zip(&self.options) {
            for threshold in &case.thresholds {
                enough(case, options, threshold)
                    .map_err(|why| Failure::usage(format!("case {}: {}: {why}", case.id, threshold.text)))?;
            }
        }
        Ok(())
    }
}

impl Runs for Orders {
    fn time_limit(&self, case: usize) -> Duration {
        self.options[case].time_limit
    }

    fn guess(&self, case: usize) -> Duration {
        let options = &self.options[case];
        match options.cluster.kind {
            ClusterKind::Sim => options.time_limit / VIRTUAL + AROUND / 4,
            ClusterKind::Process => options.time_limit + AROUND,
            ClusterKind::Docker | ClusterKind::Auto => options.time_limit + AROUND_CONTAINERS,
        }
    }

    fn command(&self, case: usize, seed: u64) -> String {
        RunOptions { seed, ..self.options[case].clone() }.command_line()
    }

    fn typed(&self, case: usize) -> Vec<String> {
        let flags = self.suite.cases[case].flags.iter();
        let typed = flags.filter(|(name, value)| must_be_typed(name, value));
        typed.flat_map(|(name, value)| [format!("--{name}"), value.clone()]).collect()
    }

    fn quoted(&self, word: &str) -> String {
        typed::word(word)
    }
}

fn enough(case: &Case, options: &RunOptions, threshold: &Threshold) -> Result<(), String> {
    if !threshold.metric.is_of_elections() {
        return Ok(());
    }
    let faults = options.plan().faults(options.time_limit).faults;
    let kind = threshold.metric.kind_of_election();
    // What counts from the healing of a fault is a kind of its own.
    let fault = kind.map(|kind| kind.strip_suffix(", healing").unwrap_or(kind));
    let of_kind = faults.iter().filter(|planned| fault.is_none_or(|fault| fault == planned.kind.name()));
    let a_run = u64::try_from(of_kind.count()).unwrap_or(u64::MAX);
    if a_run == 0 {
        let what = fault.unwrap_or("any fault");
        return Err(format!("its runs have no {what}, so nothing would be measured"));
    }
    let (have, need) = (a_run * u64::from(case.repeat), threshold.needs());
    if have < need {
        let runs = need.div_ceil(a_run);
        return Err(format!(
            "it needs {} elections, and {} of {} have {} at most; write repeat = {runs}, a longer \
             time_limit, or max in place of the percentile",
            count(need),
            plural(u64::from(case.repeat), "run"),
            span::show(options.time_limit),
            count(have)
        ));
    }
    Ok(())
}

/// Reads `2/4`. Where an engine counts from 0, `1+1/4` says the same.
///
/// # Errors
///
/// What to write instead.
pub fn shard(text: &str) -> Result<(u32, u32), Failure> {
    let number = |text: &str| -> Option<u32> {
        let (index, more) = text.split_once('+').unwrap_or((text, "0"));
        index.parse::<u32>().ok()?.checked_add(more.parse().ok()?)
    };
    let parsed = text.split_once('/').and_then(|(shard, of)| Some((number(shard)?, of.parse().ok()?)));
    match parsed {
        Some((shard, of)) if (1..=of).contains(&shard) => Ok((shard, of)),
        _ => Err(Failure::usage(format!("--shard {text}: write which of how many, from 1: `2/4`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_some() {
        assert_eq!(shard("2/4").expect("a shard"), (2, 4));
        assert_eq!(shard("0+1/4").expect("an index"), (1, 4));
        for text in ["0/4", "5/4", "2", "a/b", "1/0", "3+2/4", "4294967295+1/4"] {
            assert!(shard(text).is_err(), "{text}");
        }
    }
}
