//! Judges a virtual run while it goes on, so that `--fail-fast` can end it.
//!
//! It is the check of real runs, asked after every line and in the same thread: virtual time stands still
//! meanwhile, so the moment at which the run ends follows from the seed.

use std::path::Path;

use checker::history::Event as Line;
use runs::results::{LiveCheck, LiveViolation};
use workloads::{Kind, Promise};

use crate::clock::RunNs;
use crate::judge::live::{self, Flush, Judge};
use crate::progress::Progress;

/// The check under way.
pub(super) struct Live {
    judge: Box<dyn Judge>,
    off: Option<String>,
    violation: Option<LiveViolation>,
    progress: Progress,
}

impl Live {
    /// A check that ends the run, if there is one for this workload.
    pub(super) fn start(kind: Kind, promise: Promise, history: &Path, progress: &Progress) -> Option<Self> {
        let judge = live::judge_of(kind, promise, history)?;
        Some(Self { judge, off: None, violation: None, progress: progress.clone() })
    }

    /// Whether a violation was seen.
    pub(super) fn ends_the_run(&self) -> bool {
        self.violation.is_some()
    }

    /// Takes the next line, which was written to the history. `flush` puts that on the disk.
    pub(super) fn push(&mut self, line: Line, seen_ns: RunNs, flush: Flush<'_>) {
        if self.off.is_some() || self.violation.is_some() {
            return;
        }
        match self.judge.push(line, flush) {
            Ok(None) => {}
            Ok(Some(found)) => {
                let violation = found.at(seen_ns, true);
                self.progress.say(&live::words(&violation));
                self.violation = Some(violation);
            }
            Err(why) => {
                self.progress.say(&live::words_off(&why));
                self.off = Some(why);
            }
        }
    }

    /// What it saw.
    pub(super) fn finish(self) -> LiveCheck {
        let (judged, _) = self.judge.progress();
        LiveCheck { judged, off: self.off, violation: self.violation }
    }
}
