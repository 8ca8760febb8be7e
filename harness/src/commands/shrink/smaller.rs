//! A run as data that can be made smaller: its flags, and its faults as planned.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use checker::verdict::Verdict;
use runs::cluster_kind::ClusterKind;
use runs::results::{Results, RunInfo};
use runs::schedule::{PlannedFault, Schedule};

use super::super::replay::flags_of;
use crate::cli::AgainArgs;
use crate::config::RunOptions;
use crate::exit::Failure;
use crate::night::record;
use crate::run::describe::{AS_A_RUN, REPEATS};
use crate::store::RunFolder;
use crate::text::span;

/// How long a run goes on behind the answer that cannot be: its fault is healed meanwhile.
const BEHIND_MS: u64 = 1500;
/// When the first fault may begin: clients have written by then.
const FIRST_ONSET_MS: u64 = 1000;

/// A run that may still show the violation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    run: RunInfo,
    schedule: Schedule,
}

impl Candidate {
    /// The run of a folder as it was.
    pub(super) fn read(folder: &RunFolder) -> Result<Self, Failure> {
        let run: RunInfo = RunFolder::read_named_json(&folder.run())?;
        let schedule: Schedule = RunFolder::read_named_json(&folder.schedule())?;
        Ok(Self { run, schedule })
    }

    pub(super) fn faults(&self) -> &[PlannedFault] {
        &self.schedule.faults
    }

    pub(super) fn clients(&self) -> u32 {
        self.run.concurrency
    }

    pub(super) fn workload_ms(&self) -> u64 {
        self.run.time_limit_ms
    }

    pub(super) fn cluster(&self) -> ClusterKind {
        self.run.cluster
    }

    /// Variables that the run was set up with.
    pub(super) fn variables(&self) -> &BTreeMap<String, String> {
        &self.run.variables
    }

    /// No workload is shorter, because a shorter one has no room for a fault.
    fn shortest_ms(&self) -> u64 {
        self.run.interval_ms * 3 / 2
    }

    /// What is left of it, in a few words.
    pub(super) fn sentence(&self) -> String {
        let faults = crate::num::plural(self.faults().len(), "fault");
        let time = span::show(Duration::from_millis(self.workload_ms()));
        format!("{faults}, {} clients, {time}", self.clients())
    }

    /// Only what begins until then, and no workload behind it.
    pub(super) fn until(&self, end_ms: u64) -> Self {
        let mut cut = self.clone();
        cut.run.time_limit_ms = (end_ms + BEHIND_MS).max(self.shortest_ms()).min(self.run.time_limit_ms);
        let limit = cut.run.time_limit_ms;
        cut.schedule.faults.retain(|fault| fault.start_ms < limit);
        cut
    }

    /// Only these faults.
    pub(super) fn with(&self, ids: &BTreeSet<String>) -> Self {
        let mut fewer = self.clone();
        fewer.schedule.faults.retain(|fault| ids.contains(&fault.id));
        fewer
    }

    /// Without some.
    pub(super) fn without(&self, range: Range<usize>) -> Self {
        let mut fewer = self.clone();
        let end = range.end.min(fewer.schedule.faults.len());
        fewer.schedule.faults.drain(range.start..end);
        fewer
    }

    /// The faults of a folder that were in force around the violation.
    pub(super) fn in_force(&self, folder: &Path, results: &Results) -> BTreeSet<String> {
        let Some((from, to)) = span_of_the_violation(results) else { return BTreeSet::new() };
        let faults = record::read(folder).map(|record| record.faults).unwrap_or_default();
        let overlaps = |range: (u64, u64)| range.0 <= to && from.saturating_sub(1_000_000_000) <= range.1;
        faults
            .iter()
            .filter(|fault| fault.interval(u64::MAX).is_some_and(overlaps))
            .map(|fault| fault.id.clone())
            .collect()
    }

    /// The same with its first fault as early as can be.
    pub(super) fn begun_at_once(&self) -> Self {
        let first = self.faults().first().map_or(0, |fault| fault.start_ms);
        let earlier = first.saturating_sub(FIRST_ONSET_MS);
        let mut early = self.clone();
        early.run.time_limit_ms = (self.run.time_limit_ms.saturating_sub(earlier)).max(self.shortest_ms());
        for fault in &mut early.schedule.faults {
            fault.start_ms -= earlier;
        }
        early
    }

    pub(super) fn with_clients(&self, clients: u32) -> Self {
        let mut fewer = self.clone();
        fewer.run.concurrency = clients.max(1);
        fewer
    }

    /// Writes it as a folder that can be run again.
    pub(super) fn write(&self, folder: &Path, again: &AgainArgs) -> Result<(), Failure> {
        let mut run = self.run.clone();
        let mut flags = flags_of(&run, again, folder)?;
        flags.concurrency = run.concurrency;
        flags.time_limit = span::show(Duration::from_millis(run.time_limit_ms));
        let command = RunOptions::from_args(&flags)?.command_line();
        if !super::is_replay(&run) {
            run.settings.insert(REPEATS.to_owned(), run.name.clone());
        }
        run.settings.insert(AS_A_RUN.to_owned(), command.clone());
        run.repeat = command;
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let to = RunFolder::at(folder);
        RunFolder::write_json(&to.run(), &run)?;
        RunFolder::write_json(&to.schedule(), &self.schedule)?;
        Ok(())
    }
}

/// From the first operation that shows the violation to the last, in ns since the start of the run.
fn span_of_the_violation(results: &Results) -> Option<(u64, u64)> {
    let broken = results.checks.iter().find(|check| check.verdict == Verdict::Invalid)?;
    let ops = &broken.counterexample.as_ref()?.ops;
    let from = ops.iter().map(|op| op.invoke_ns).min()?;
    let to = ops.iter().map(|op| op.complete_ns.unwrap_or(op.invoke_ns)).max()?;
    Some((from, to))
}

/// When the violation was complete, in ms since the first operation of the workload.
pub(super) fn end_of_the_violation(results: &Results) -> Option<u64> {
    let live = results.live.as_ref().and_then(|live| Some(live.violation.as_ref()?.happened_ns));
    let judged = span_of_the_violation(results).map(|(_, to)| to);
    let to = live.into_iter().chain(judged).min()?;
    // The start of the members is before the workload, and is not known more exactly: a little more is cut
    // off later.
    Some(to / 1_000_000)
}
