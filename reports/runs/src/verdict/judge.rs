//! Everything after a run, as a function of its folder: faults folded, episodes, checks, elections, outages,
//! the verdict.
//!
//! The way goes straight down: the record of a run comes in, [`judge`] makes results of it, the reports draw
//! them. The promises are judged by `workloads` and `checker`; what is added here is about the bench itself.
//! A history that is not complete can show a violation, and never the absence of one.

use std::collections::BTreeSet;

use checker::durability::FinalState;
use checker::history::{Datum, History, Loaded};
use checker::verdict::{CheckResult, Verdict};
use workloads::judge::Effort;

use crate::checks::{self, Case, recovery};
use crate::events::{Event, Said, Stamped};
use crate::faults::{FaultTransition, fold, tell_deaths};
use crate::member::MemberId;
use crate::numbers::{duration, len, moment, ns_to_ms, plural};
use crate::observed::Observed;
use crate::results::{FaultCounts, FaultRecord, LiveCheck, LiveViolation, Results, RunInfo};
use crate::unsent::Unsent;
use crate::{
    blame, cut_off, election_kinds, elections, idleness, key_outages, latency, operations, outages, spans,
    terms,
};

/// What a run left behind.
#[derive(Debug)]
pub struct Record {
    /// `run.json`.
    pub run: RunInfo,
    /// `history.jsonl`.
    pub loaded: Loaded,
    /// `faults.jsonl`.
    pub transitions: Vec<FaultTransition>,
    /// `observed.json`; none when the harness did not live to write it.
    pub observed: Option<Observed>,
}

/// A judged run.
#[derive(Debug)]
pub struct Judged {
    /// What was decided before the first operation.
    pub run: RunInfo,
    /// What came out.
    pub results: Results,
    /// The faults.
    pub faults: Vec<FaultRecord>,
    /// The history.
    pub history: History,
}

/// The check that says whether the record of faults is whole.
pub const RECORDED: &str = "fault-record";

/// The check that says whether a run came to its end.
pub const FINISHED: &str = "finished";

/// Faults folded from their lines, with the operations around each counted.
pub fn faults(run: &RunInfo, transitions: &[FaultTransition], history: &History) -> Vec<FaultRecord> {
    let mut faults = fold(transitions, &run.kinds);
    operations::count_around_faults(history, &mut faults);
    faults
}

/// Judges a run, and tells what is looked at now. `logs` gives the last lines of a member's log. Exit status,
/// files and the time that it took are the caller's to fill in.
pub fn judge(record: Record, effort: &Effort<'_>, logs: recovery::Logs<'_>, tell: &dyn Fn(&str)) -> Judged {
    let Record { run, loaded, transitions, observed } = record;
    let mut faults = faults(&run, &transitions, &loaded.history);
    tell_deaths(&mut faults, observed.as_ref().map_or(&[][..], |observed| &observed.events));
    let mut results = Results::new(Verdict::Unknown, &run);
    let lived_to_its_end = observed.is_some();
    let seen = observed.unwrap_or_default();
    let operations = len(loaded.history.ops().len());
    let case = Case { run: &run, loaded: &loaded, faults: &faults, observed: &seen, effort, logs };
    for check in checks::ALL {
        tell(&format!("judging {operations} operations: {}", check.about));
        results.checks.extend((check.judge)(&case));
    }
    results.checks.extend(seen.interrupted.then(|| stopped_early(&run, &seen)));
    let lines = u64::try_from(transitions.len()).unwrap_or(u64::MAX);
    if lived_to_its_end && seen.fault_lines != Some(lines) {
        let written = seen
            .fault_lines
            .map_or_else(|| "nobody says how many lines".to_owned(), |written| plural(written, "line"));
        let summary = format!(
            "the record of faults is not whole: {written} were written, and faults.jsonl has {lines}; \
             what it lacks may be what was broken"
        );
        results.checks.push(CheckResult::new(RECORDED, Verdict::Unknown, summary));
    }
    if !lived_to_its_end {
        let summary = "the harness did not live to the end of this run; without its end nothing is valid";
        results.checks.push(CheckResult::new(FINISHED, Verdict::Unknown, summary));
    }
    blame::stale_reads(&mut results.checks, &loaded.history, &faults, &run);
    results.verdict = Verdict::of(&results.checks);
    results.interrupted = seen.interrupted;
    results.lag_ms = Some(seen.lag.max_ms);
    results.timings = seen.timings;
    results.live = seen.live.clone();
    results.notes.extend(seen.live.as_ref().and_then(|live| live_note(live, results.verdict)));
    results.not_tried = not_tried(&run, &faults);
    results.notes.extend(not_tried_note(&run, &results.not_tried));
    results.notes.extend(not_found_note(&run, results.verdict));
    results.notes.extend(cut_off::note(&loaded.history, &faults, &run));
    tell("measuring elections and outages");
    fill_in(&mut results, &run, &loaded.history, &faults, &seen);
    Judged { run, results, faults, history: loaded.history }
}

/// Makes a judged run one that somebody interrupted when its members had ended.
pub fn interrupt(judged: &mut Judged, observed: &Observed) {
    let results = &mut judged.results;
    results.checks.push(stopped_early(&judged.run, observed));
    results.verdict = Verdict::of(&results.checks);
    results.interrupted = true;
}

/// What was not run shows nothing, so a run that somebody stopped is never valid.
fn stopped_early(run: &RunInfo, seen: &Observed) -> CheckResult {
    let ran = seen.workload_to_ns.saturating_sub(seen.workload_from_ns);
    let summary = format!(
        "the run was interrupted after {} s of {} s",
        moment(ran),
        moment(run.time_limit_ms.saturating_mul(1_000_000))
    );
    CheckResult::new(FINISHED, Verdict::Unknown, summary)
}

/// The nemeses of which nothing came into force.
fn not_tried(run: &RunInfo, faults: &[FaultRecord]) -> Vec<String> {
    let injected = |kind: &str| faults.iter().any(|fault| fault.kind == kind && fault.injected_ns.is_some());
    let never = |kind: &&String| !injected(kind);
    run.nemeses.iter().filter(never).chain(&run.not_tried).cloned().collect()
}

/// The same in a sentence: what nobody may believe to have been tried.
fn not_tried_note(run: &RunInfo, not_tried: &[String]) -> Option<String> {
    let all = run.nemeses.len() + run.not_tried.len();
    (!not_tried.is_empty()).then(|| {
        format!(
            "Not tried, and no part of this verdict: {} ({} of {all} nemeses).",
            not_tried.join(", "),
            not_tried.len()
        )
    })
}

/// A mutant that a run did not find is no sound ensemble.
fn not_found_note(run: &RunInfo, verdict: Verdict) -> Option<String> {
    let mutant = run.mutant.as_ref().filter(|_| verdict == Verdict::Valid)?;
    Some(format!(
        "The mutant {mutant} was there and was not found: this run shows nothing of it. Try other nemeses, \
         or more of them."
    ))
}

/// What the live check adds to the verdict.
fn live_note(live: &LiveCheck, verdict: Verdict) -> Option<String> {
    if let Some(why) = &live.off {
        return Some(format!("The live check went off: {why}. The verdict is drawn from the whole history."));
    }
    let LiveViolation { happened_ns, seen_ns, ended_the_run, .. } = *live.violation.as_ref()?;
    let late = duration(ns_to_ms(seen_ns.saturating_sub(happened_ns)));
    let then = if ended_the_run { ", and ended the run (--fail-fast)" } else { "" };
    let doubt = match verdict {
        Verdict::Invalid => "",
        Verdict::Valid | Verdict::Unknown => {
            " The whole history does not show it: one of the two judgements is wrong, which is a bug of \
                this checker."
        }
    };
    Some(format!(
        "The live check saw a violation at {} s, {late} after the answer that cannot be{then}.{doubt}",
        moment(seen_ns)
    ))
}

/// What can be counted and drawn.
fn fill_in(results: &mut Results, run: &RunInfo, history: &History, faults: &[FaultRecord], seen: &Observed) {
    let members: Vec<MemberId> = run.members().map(MemberId).collect();
    let end = seen.end_ns.max(operations::end_ns(history));
    results.faults = FaultCounts::of(faults);
    results.unsent = idleness::of_run(run, history);
    results.notes.extend(results.unsent.as_ref().map(unsent_note));
    results.elections = elections::from_events(&seen.events, faults, history, &elections::Traits::of(run));
    results.election_kinds = election_kinds::by_kind(&results.elections, faults);
    // A run whose end nobody saw is judged by its history alone.
    let load_end_ns = Some(seen.workload_to_ns).filter(|at| *at > 0);
    let context = outages::Context { faults, elections: &results.elections, load_end_ns };
    let found = outages::from_history(history, context, outages::MINIMUM_NS);
    results.outages = idleness::cut_out(found, results.unsent.as_ref(), outages::MINIMUM_NS);
    results.key_outages = key_outages::of(history, context, &results.outages, results.unsent.as_ref())
        .filter(|_| !run.is_wrapped());
    results.holder_changes = terms::changes(history, faults, seen);
    let stretches = results.unsent.as_ref().map_or(&[][..], |unsent| &unsent.stretches);
    results.latency = latency::summaries(history, faults, stretches);
    results.commits = latency::counted(commits(&seen.events));
    results.operations = operations::counts(history);
    results.member_spans = spans::from_events(&seen.events, &members, end);
    results.held_at_the_end = held_at_the_end(&results.checks, &seen.finals);
    let needless = results.elections.iter().filter(|election| election.fault.is_none()).count();
    if needless > 0 {
        results.notes.push(format!(
            "{} without a fault behind it",
            plural(u64::try_from(needless).unwrap_or(u64::MAX), "election")
        ));
    }
}

/// What the bench did not send, and what that means for what was measured.
fn unsent_note(unsent: &Unsent) -> String {
    format!(
        "{} were never sent by the bench itself, because {}: what fell due then is no outage of the \
         system's, \
         and is left out of the latencies.",
        unsent.in_figures(),
        unsent.why()
    )
}

/// How long leaders said that their proposals waited for their commit, in ns, and how many of them.
fn commits(events: &[Stamped]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let told = events.iter().filter_map(|stamped| match &stamped.event {
        Event::Said(Said::Commits { us }) => Some(us),
        _ => None,
    });
    told.flatten().map(|(us, number)| (us.saturating_mul(1000), *number))
}

/// The final states of the keys that counterexamples are about, for the page.
fn held_at_the_end(checks: &[CheckResult], finals: &[FinalState]) -> Vec<FinalState> {
    let found = checks.iter().filter_map(|check| check.counterexample.as_ref());
    let keys: BTreeSet<u64> = found
        .flat_map(|found| &found.ops)
        .filter_map(|op| match &op.key {
            Datum::Int(key) => u64::try_from(*key).ok(),
            _ => None,
        })
        .collect();
    // A list may be as long as the run; what the page says of it is in the check's own words.
    finals.iter().filter(|state| keys.contains(&state.key) && state.list.is_none()).cloned().collect()
}
