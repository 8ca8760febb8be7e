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
use crate::numbers::{duration, ns_to_ms, plural};
use crate::observed::CommandEnd;
use crate::results::{FaultRecord, FaultState, RunInfo};

/// What it is called in results.
pub const NAME: &str = "command";
/// What the other one is called.
pub const MET_FAULTS: &str = "command-met-faults";

/// The check.
pub(super) const CHECK: Check = Check { about: "what the command found", judge };

fn judge(case: &Case<'_>) -> Vec<CheckResult> {
    if !case.run.is_wrapped() {
        return Vec::new();
    }
    let Some(end) = &case.observed.command else {
        let summary = "how the command ended is not on record";
        return vec![CheckResult::new(NAME, Verdict::Unknown, summary)];
    };
    [Some(ended(end)), met_faults(case.run, case.faults, end)].into_iter().flatten().collect()
}

fn ran(end: &CommandEnd) -> String {
    duration(ns_to_ms(end.to_ns.saturating_sub(end.from_ns)))
}

/// The statuses by which shells say that a signal ended what they ran: 128 and the signal's number.
const SIGNALLED: std::ops::RangeInclusive<i32> = 129..=192;

/// What its end says.
fn ended(end: &CommandEnd) -> CheckResult {
    let ran = ran(end);
    // A shell says of what it ran that a signal ended it by its own status.
    let told = |status: i32| SIGNALLED.contains(&status).then(|| status - SIGNALLED.start());
    let (status, signal) = match end.status.and_then(told) {
        Some(signal) => (None, Some(signal + 1)),
        None => (end.status, end.signal),
    };
    let (verdict, summary) = match (end.stopped, status, signal) {
        (true, _, _) => (
            Verdict::Unknown,
            format!("the command was asked to end after {ran}, and found nothing until then"),
        ),
        (false, Some(status @ (126 | 127)), _) => {
            let says = "which says that a program is not there or can't be run";
            (Verdict::Unknown, format!("the command ended with exit status {status}, {says}"))
        }
        (false, Some(0), _) => (Verdict::Valid, format!("the command succeeded after {ran}")),
        (false, Some(status), _) => {
            (Verdict::Invalid, format!("the command failed with exit status {status} after {ran}"))
        }
        (false, None, Some(signal)) => match crash(signal) {
            Some(name) => (Verdict::Invalid, format!("the command crashed ({name}) after {ran}")),
            None => (
                Verdict::Unknown,
                format!("signal {signal} ended the command from outside after {ran}, so it found nothing"),
            ),
        },
        (false, None, None) => (Verdict::Unknown, "how the command ended is not known".to_owned()),
    };
    CheckResult::new(NAME, verdict, summary).with_evidence(json!(end))
}

/// The signals that a program brings upon itself.
fn crash(signal: i32) -> Option<&'static str> {
    // Numbers of Linux, as every architecture that this runs on has them.
    Some(match signal {
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        11 => "SIGSEGV",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// Whether any fault was seen to bite while it ran; none where no faults were asked for.
fn met_faults(run: &RunInfo, faults: &[FaultRecord], end: &CommandEnd) -> Option<CheckResult> {
    if run.nemeses.is_empty() && run.not_tried.is_empty() {
        return None;
    }
    let met: Vec<&str> = faults
        .iter()
        .filter(|fault| fault.state == FaultState::Verified)
        .filter(|fault| fault.verified_ns.is_some_and(|at| at < end.to_ns))
        .filter(|fault| fault.verified_healed_ns.is_none_or(|at| at > end.from_ns))
        .map(|fault| fault.id.as_str())
        .collect();
    let number = u64::try_from(met.len()).unwrap_or(u64::MAX);
    let (verdict, summary) = if met.is_empty() {
        let advice = "let it run longer, or shorten --interval";
        (Verdict::Unknown, format!("the command ended after {} and met no fault: {advice}", ran(end)))
    } else {
        (Verdict::Valid, format!("the command ran through {}", plural(number, "verified fault")))
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
        let verdict = |faults: &[FaultRecord]| met_faults(&asked, faults, &done).map(|found| found.verdict);
        assert_eq!(verdict(&[]), Some(Verdict::Unknown));
        assert_eq!(verdict(&[fault(12 * S, FaultState::Verified)]), Some(Verdict::Unknown));
        assert_eq!(verdict(&[fault(3 * S, FaultState::Leaked)]), Some(Verdict::Unknown));
        // Injected in its last moment, and seen to bite when it was gone.
        assert_eq!(verdict(&[fault(11 * S - 1, FaultState::Verified)]), Some(Verdict::Unknown));
        assert_eq!(verdict(&[fault(3 * S, FaultState::Verified)]), Some(Verdict::Valid));
        assert_eq!(met_faults(&RunInfo::default(), &[], &done), None);
    }
}
