//! Test templates: folders of executables in the containers, each named for when it may run.
//!
//! The layout is that of Antithesis' test composer, whose documents are the source of every rule here. An
//! executable's name begins with its kind ([`CommandKind`]). The folder that it lies in is its template, and
//! all containers that have a folder of that name share the template. A run takes one template.
//!
//! What is here is data: what was found and what became of it, as `tests.jsonl` ([`Execution`]) and
//! `observed.json` ([`TemplateRun`]) keep it. Which command runs when is decided by the composer in
//! `harness-core`, and what it means by [`crate::checks::template`].

use serde::{Deserialize, Serialize};

use crate::assertions::Asserted;
use crate::clock::RunNs;

/// When a test command may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandKind {
    /// Once, before every other and before any fault. Of several one is taken.
    First,
    /// Again and again, beside others of its kind.
    ParallelDriver,
    /// Again and again, with no other driver beside it.
    SerialDriver,
    /// Once, as the only driver of its run.
    SingletonDriver,
    /// Whenever the first one has ended, beside whatever runs.
    Anytime,
    /// Last, when faults are over. Drivers are ended for it: does the system recover?
    Eventually,
    /// Last, when faults are over and every driver has ended by itself: is what is left right?
    Finally,
}

impl CommandKind {
    /// All of them, in the order in which they may run.
    pub const ALL: [Self; 7] = [
        Self::First,
        Self::ParallelDriver,
        Self::SerialDriver,
        Self::SingletonDriver,
        Self::Anytime,
        Self::Eventually,
        Self::Finally,
    ];

    /// What the names of its executables begin with.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::First => "first_",
            Self::ParallelDriver => "parallel_driver_",
            Self::SerialDriver => "serial_driver_",
            Self::SingletonDriver => "singleton_driver_",
            Self::Anytime => "anytime_",
            Self::Eventually => "eventually_",
            Self::Finally => "finally_",
        }
    }

    /// The kind that a name tells.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| name.starts_with(kind.prefix()))
    }

    /// Whether it drives the system, and does not only look at it.
    #[must_use]
    pub fn is_driver(self) -> bool {
        match self {
            Self::ParallelDriver | Self::SerialDriver | Self::SingletonDriver => true,
            Self::First | Self::Anytime | Self::Eventually | Self::Finally => false,
        }
    }

    /// Whether it ends a run.
    #[must_use]
    pub fn is_last(self) -> bool {
        matches!(self, Self::Eventually | Self::Finally)
    }
}

/// An executable that is run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestCommand {
    /// The service in whose container it lies, by its name in the Compose file.
    pub container: String,
    /// The name of its file.
    pub name: String,
    /// When it may run.
    pub kind: CommandKind,
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// By itself, or by a signal that its exit status tells.
    Exited,
    /// The composer ended it for the last command.
    Ended,
    /// Its container went while it ran, or was not there: a fault's doing, where a member's.
    Lost,
    /// Somebody interrupted the run.
    Interrupted,
}

/// One run of a test command: a line of `tests.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// Its number, from 1, which its lines in `tests.log` begin with.
    pub number: u64,
    /// What was run.
    #[serde(flatten)]
    pub command: TestCommand,
    /// When it was started.
    pub from_ns: RunNs,
    /// When it had ended.
    pub to_ns: RunNs,
    /// How it ended.
    pub how: How,
    /// Its exit status, where it is known; 128 and a signal's number where a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i64>,
    /// Why it was lost, or its last words where its status is not zero.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// What became of one command, over all its executions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Which.
    #[serde(flatten)]
    pub command: TestCommand,
    /// How often it was started.
    pub started: u64,
    /// How often it ended with exit status 0.
    pub succeeded: u64,
    /// How often the composer ended it, or somebody who interrupted the run.
    pub ended: u64,
    /// How often its container went.
    pub lost: u64,
    /// How often it ended otherwise.
    pub otherwise: u64,
    /// The first of those whose end accuses; where none does, the first at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_other: Option<Execution>,
}

impl Tally {
    /// A command that was never started.
    #[must_use]
    pub fn of(command: TestCommand) -> Self {
        Self { command, started: 0, succeeded: 0, ended: 0, lost: 0, otherwise: 0, first_other: None }
    }

    /// Counts one of its executions that is over.
    pub fn count(&mut self, execution: &Execution) {
        self.started += 1;
        match (execution.how, execution.status) {
            (How::Exited, Some(0)) => self.succeeded += 1,
            (How::Ended | How::Interrupted, _) => self.ended += 1,
            (How::Lost, _) => self.lost += 1,
            (How::Exited, status) => {
                self.otherwise += 1;
                let accuses = |status: Option<i64>| status.is_some_and(|status| Word::of(status).accuses());
                let known = self.first_other.as_ref().map(|known| accuses(known.status));
                if known.is_none_or(|known| !known && accuses(status)) {
                    self.first_other = Some(execution.clone());
                }
            }
        }
    }
}

/// What an exit status says, as `sh` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Everything was as promised.
    Succeeded,
    /// Something was not.
    Failed(i64),
    /// A program is not there or can't be run: 126 and 127.
    CantRun(i64),
    /// It met what it could not live with: a signal that a program brings upon itself, by its name.
    Crashed(&'static str),
    /// A signal ended it from outside, so it said nothing.
    FromOutside(i64),
}

impl Word {
    /// What this status says.
    #[must_use]
    pub fn of(status: i64) -> Self {
        match status {
            0 => Self::Succeeded,
            126 | 127 => Self::CantRun(status),
            129..=192 => Self::of_signal(status - 128),
            status => Self::Failed(status),
        }
    }

    /// What an end by this signal says.
    #[must_use]
    pub fn of_signal(signal: i64) -> Self {
        // Numbers of Linux, as every architecture that this runs on has them.
        Self::Crashed(match signal {
            4 => "SIGILL",
            5 => "SIGTRAP",
            6 => "SIGABRT",
            7 => "SIGBUS",
            8 => "SIGFPE",
            11 => "SIGSEGV",
            31 => "SIGSYS",
            signal => return Self::FromOutside(signal),
        })
    }

    /// Whether it accuses the system.
    #[must_use]
    pub fn accuses(self) -> bool {
        matches!(self, Self::Failed(_) | Self::Crashed(_))
    }
}

/// The command that was to end the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// Which.
    #[serde(flatten)]
    pub command: TestCommand,
    /// Why it did not run, where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<String>,
}

/// What a template's commands did in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TemplateRun {
    /// The template that was taken.
    pub template: String,
    /// All that were found.
    pub templates: Vec<String>,
    /// Files in it that are no test commands, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// When drivers were let begin.
    pub from_ns: RunNs,
    /// When faults were over.
    pub to_ns: RunNs,
    /// Whether somebody interrupted it.
    pub interrupted: bool,
    /// The command that was drawn to end the run; none where the template has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// Its commands, and what became of them.
    pub commands: Vec<Tally>,
    /// What programs in the containers asserted.
    pub asserted: Asserted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_kind_by_its_beginning_alone() {
        for kind in CommandKind::ALL {
            assert_eq!(CommandKind::of_name(&format!("{}x.sh", kind.prefix())), Some(kind));
        }
        for name in ["helper_first_x", "driver_x", "parallel_x", "First_x", "", "eventually"] {
            assert_eq!(CommandKind::of_name(name), None, "{name}");
        }
    }

    #[test]
    fn the_first_end_that_accuses_is_kept_before_one_that_does_not() {
        let command =
            TestCommand { container: "c".into(), name: "anytime_x".into(), kind: CommandKind::Anytime };
        let mut tally = Tally::of(command.clone());
        for (number, status) in [(1, 0), (2, 137), (3, 1), (4, 2)] {
            let how = How::Exited;
            let (words, status) = (String::new(), Some(status));
            let command = command.clone();
            tally.count(&Execution { number, command, from_ns: 0, to_ns: 1, how, status, words });
        }
        assert_eq!((tally.started, tally.succeeded, tally.otherwise), (4, 1, 3));
        assert_eq!(tally.first_other.map(|execution| execution.number), Some(3));
    }
}
