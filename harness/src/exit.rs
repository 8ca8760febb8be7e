//! How the command ends: the exit statuses and the two kinds of failure that lead to them.
//!
//! A violation always wins, an outcome is never mixed up with a failure of the harness itself, and clap's
//! own status 2 never appears as "unknown". Jepsen's statuses are kept where it has them.

use std::fmt;
use std::process::ExitCode;

use checker::verdict::Verdict;
use nights::pile::Pile;

/// The exit statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Every promise held, or the command did what it was asked.
    Done = 0,
    /// A promise was broken.
    Invalid = 1,
    /// The run proves nothing either way.
    Unknown = 2,
    /// A number crossed its threshold, or stood out and was confirmed: nights alone say so.
    Regression = 3,
    /// A program that was to be run can't be, as shells say it too.
    NotRun = 126,
    /// Interrupted, after healing.
    Interrupted = 130,
    /// The command line or the configuration is wrong; nothing was started.
    Usage = 254,
    /// The harness itself failed.
    Failed = 255,
}

impl Exit {
    /// The number.
    pub fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Invalid => 1,
            Self::Unknown => 2,
            Self::Regression => 3,
            Self::NotRun => 126,
            Self::Interrupted => 130,
            Self::Usage => 254,
            Self::Failed => 255,
        }
    }

    /// The status of a run with this verdict: a violation wins over an interruption, and that over all else.
    pub fn of(verdict: Verdict, interrupted: bool) -> Self {
        match (verdict, interrupted) {
            (Verdict::Invalid, _) => Self::Invalid,
            (_, true) => Self::Interrupted,
            (Verdict::Valid, false) => Self::Done,
            (Verdict::Unknown, false) => Self::Unknown,
        }
    }
}

impl From<Pile> for Exit {
    fn from(pile: Pile) -> Self {
        match pile {
            Pile::Valid => Self::Done,
            Pile::Violation => Self::Invalid,
            Pile::Regression => Self::Regression,
            Pile::Unknown => Self::Unknown,
            Pile::BenchFailure => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.status())
    }
}

/// Why a command did not get as far as an outcome.
#[derive(Debug)]
pub enum Failure {
    /// The user can mend it; the message says how.
    Usage(String),
    /// The harness, or the machine below it, failed.
    Harness(anyhow::Error),
    /// Interrupted before there was anything to judge.
    Interrupted,
}

impl Failure {
    /// A failure that the user can mend.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// The exit status it leads to.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Harness(_) => Exit::Failed,
            Self::Interrupted => Exit::Interrupted,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Harness(error) => write!(f, "the harness failed: {error:#}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Harness(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pile_and_its_exit_have_one_number() {
        for pile in Pile::ALL {
            assert_eq!(Exit::from(pile).status(), pile.status());
        }
    }

    #[test]
    fn a_violation_wins_over_an_interruption() {
        assert_eq!(Exit::of(Verdict::Invalid, true), Exit::Invalid);
        assert_eq!(Exit::of(Verdict::Valid, true), Exit::Interrupted);
        assert_eq!(Exit::of(Verdict::Unknown, true), Exit::Interrupted);
        assert_eq!(Exit::of(Verdict::Unknown, false), Exit::Unknown);
        assert_eq!(Exit::of(Verdict::Valid, false), Exit::Done);
    }
}
