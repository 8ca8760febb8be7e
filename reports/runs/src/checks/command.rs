//! What the user's own command found, where one worked on the members (`harness wrap`).
//!
//! Its exit status is its word: zero says that everything was as promised, any other that something was not.
//! A command that crashed did not finish its work because of what it met, so that accuses as well. One that
//! somebody ended from outside said nothing, nor did one that shells say can't be run (126 and 127); what a
//! shell says of a signal (128 and its number) counts as that signal. And a
//! command that no fault met shows nothing of faults: that is `command-met-faults`, which never accuses.

use checker::verdict::{CheckResult, Verdict};
use serde_json::json;

use super::{Case, Check};
use crate::clock::RunNs;
use crate::numbers::{duration, ns_to_ms, plural};
use crate::observed::CommandEnd;
use crate::results::{FaultRecord, FaultState, RunInfo};
use crate::template::Word;

/// What it is called in results.
pub const NAME: &str = "command";
/// What the other one is called.
pub const MET_FAULTS: &str = "command-met-faults";

/// The check.
pub(super) const CHECK: Check = Check { about: "what the command found", judge };

fn judge(case: &Case<'_>) -> Vec<CheckResult> {
    if case.run.command.is_none() {
        return Vec::new();
    }
    let Some(end) = &case.observed.command else {
        let summary = "how the command ended is not on record";
        return vec![CheckResult::new(NAME, Verdict::Unknown, summary)];
    };
    let met = met_faults(case.run, case.faults, (end.from_ns, end.to_ns), "the command");
    [Some(ended(end)), met].into_iter().flatten().collect()
}

fn ran(end: &CommandEnd) -> String {
    lasted((end.from_ns, end.to_ns))
}

fn lasted((from, to): (RunNs, RunNs)) -> String {
    duration(ns_to_ms(to.saturating_sub(from)))
}

/// What its end says.
fn ended(end: &CommandEnd) -> CheckResult {
    let ran = ran(end);
    let word = match (end.status, end.signal) {
        (Some(status), _) => Some(Word::of(status.into())),
        (None, signal) => signal.map(|signal| Word::of_signal(signal.into())),
    };
    let (verdict, summary) = match word {
        _ if end.stopped => (
            Verdict::Unknown,
            format!("the command was asked to end after {ran}, and found nothing until then"),
        ),
        Some(Word::Succeeded) => (Verdict::Valid, format!("the command succeeded after {ran}")),
        Some(Word::Failed(status)) => {
            (Verdict::Invalid, format!("the command failed with exit status {status} after {ran}"))
        }
        Some(Word::Crashed(name)) => (Verdict::Invalid, format!("the command crashed ({name}) after {ran}")),
        Some(Word::CantRun(status)) => {
            let says = "which says that a program is not there or can't be run";
            (Verdict::Unknown, format!("the command ended with exit status {status}, {says}"))
        }
        Some(Word::FromOutside(signal)) => (
            Verdict::Unknown,
            format!("signal {signal} ended the command from outside after {ran}, so it found nothing"),
        ),
        None => (Verdict::Unknown, "how the command ended is not known".to_owned()),
    };
    CheckResult::new(NAME, verdict, summary).with_evidence(json!(end))
}

/// Whether any fault was seen to bite while `what` ran, from one moment to another; none where no faults were
/// asked for.
pub(super) fn met_faults(
    run: &RunInfo,
    faults: &[FaultRecord],
    span: (RunNs, RunNs),
    what: &str,
) -> Option<CheckResult> {
    if run.nemeses.is_empty() && run.not_tried.is_empty() {
        return None;
    }
    let met: Vec<&str> = faults
        .iter()
        .filter(|fault| fault.state == FaultState::Verified)
        .filter(|fault| fault.verified_ns.is_some_and(|at| at < span.1))
        .filter(|fault| fault.verified_healed_ns.is_none_or(|at| at > span.0))
        .map(|fault| fault.id.as_str())
        .collect();
    let number = u64::try_from(met.len()).unwrap_or(u64::MAX);
    let (verdict, summary) = if met.is_empty() {
        let advice = "let it run longer, or shorten --interval";
        (Verdict::Unknown, format!("{what} ended after {} and met no fault: {advice}", lasted(span)))
    } else {
        (Verdict::Valid, format!("{what} ran through {}", plural(number, "verified fault")))
    };
    Some(CheckResult::new(MET_FAULTS, verdict, summary).with_evidence(json!({ "faults": met })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn end(status: Option<i32>, signal: Option<i32>, stopped: bool) -> CommandEnd {
        CommandEnd { from_ns: S, to_ns: 11 * S, status, signal, stopped }
    }

    #[test]
    fn an_exit_status_is_the_commands_word_and_a_signal_from_outside_is_none() {
        for (status, signal, stopped, verdict) in [
            (Some(0), None, false, Verdict::Valid),
            (Some(3), None, false, Verdict::Invalid),
            (Some(127), None, false, Verdict::Unknown),
            (None, Some(6), false, Verdict::Invalid),
            (Some(134), None, false, Verdict::Invalid),
            (Some(137), None, false, Verdict::Unknown),
            (Some(143), None, false, Verdict::Unknown),
            (Some(255), None, false, Verdict::Invalid),
            (None, Some(9), false, Verdict::Unknown),
            (None, Some(15), false, Verdict::Unknown),
            (Some(0), None, true, Verdict::Unknown),
            (Some(1), None, true, Verdict::Unknown),
            (None, None, false, Verdict::Unknown),
        ] {
            let result = ended(&end(status, signal, stopped));
            assert_eq!(result.verdict, verdict, "{}", result.summary);
        }
    }

    #[test]
    fn a_command_that_no_fault_met_shows_nothing() {
        let asked = RunInfo { nemeses: vec!["kill-one".to_owned()], ..RunInfo::default() };
        let done = end(Some(0), None, false);
        let fault = |from: u64, state| FaultRecord {
            state,
            injected_ns: Some(from),
            verified_ns: Some(from + S / 2),
            verified_healed_ns: Some(from + S),
            ..FaultRecord::default()
        };
        let span = (done.from_ns, done.to_ns);
        let met = |run: &RunInfo, faults: &[FaultRecord]| met_faults(run, faults, span, "the command");
        let verdict = |faults: &[FaultRecord]| met(&asked, faults).map(|found| found.verdict);
        assert_eq!(verdict(&[]), Some(Verdict::Unknown));
        assert_eq!(verdict(&[fault(12 * S, FaultState::Verified)]), Some(Verdict::Unknown));
        assert_eq!(verdict(&[fault(3 * S, FaultState::Leaked)]), Some(Verdict::Unknown));
        // Injected in its last moment, and seen to bite when it was gone.
        assert_eq!(verdict(&[fault(11 * S - 1, FaultState::Verified)]), Some(Verdict::Unknown));
        assert_eq!(verdict(&[fault(0, FaultState::Verified)]), Some(Verdict::Unknown), "gone as it began");
        assert_eq!(verdict(&[fault(S / 2, FaultState::Verified)]), Some(Verdict::Valid));
        assert_eq!(verdict(&[fault(3 * S, FaultState::Verified)]), Some(Verdict::Valid));
        assert_eq!(met(&RunInfo::default(), &[]), None);
    }
}
