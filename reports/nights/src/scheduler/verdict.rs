//! The verdict of a night: thresholds over all runs of a case, what was left out, and what all comes to.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::fold::{self, Night};
use crate::index::{Judged, LeftOut, Line};
use crate::measures::{self, Metric, Samples};
use crate::outcome::Record;
use crate::pile::{INTERRUPTED, Pile};
use crate::plan::{self, Slot};
use crate::threshold::{Judgement, Threshold};

use super::{Command, Moment, Phase, Scheduler};

/// How a night ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// All nights of the store, this one last.
    pub nights: Vec<Night>,
    /// The worst of its piles.
    pub pile: Pile,
    /// Whether somebody stopped it.
    pub interrupted: bool,
}

/// What thresholds are judged by, as far as it was read.
#[derive(Debug)]
pub(super) struct Judging {
    /// Run folders that are not read yet, each with its case.
    folders: VecDeque<(String, String)>,
    /// The thresholds of each case, with their samples.
    thresholds: BTreeMap<String, Vec<(Threshold, Samples)>>,
}

impl Judging {
    /// Takes in a run folder.
    pub(super) fn take_in(&mut self, record: Option<&Record>) {
        let Some((case, _)) = self.folders.pop_front() else { return };
        let Some(record) = record else { return };
        for (threshold, pooled) in self.thresholds.get_mut(&case).into_iter().flatten() {
            pooled.add(measures::samples(&threshold.metric, &record.results, &record.faults));
        }
    }

    fn judgements(self) -> BTreeMap<String, Vec<Judgement>> {
        let of_case = |all: Vec<(Threshold, Samples)>| {
            all.into_iter().map(|(threshold, pooled)| threshold.judge(&pooled)).collect()
        };
        self.thresholds.into_iter().map(|(case, all)| (case, of_case(all))).collect()
    }
}

impl Scheduler {
    /// Every threshold of every case that was run, on the samples of all its valid runs.
    pub(super) fn judging(&self) -> Judging {
        let tonight = self.tonight();
        let mut judging = Judging { folders: VecDeque::new(), thresholds: BTreeMap::new() };
        for case in self.terms.suite.cases.iter().filter(|case| !case.thresholds.is_empty()) {
            let last = tonight.last_tries(&case.id);
            if last.is_empty() {
                continue;
            }
            let valid = last.iter().filter(|run| run.pile == Pile::Valid);
            let folders = valid.filter_map(|run| run.folder.clone());
            judging.folders.extend(folders.map(|folder| (case.id.clone(), folder)));
            let samples = |threshold: &Threshold| match threshold.metric {
                Metric::Unknown => share_of_unknown(&tonight, &case.id),
                _ => Samples::default(),
            };
            let thresholds = case.thresholds.iter().map(|one| (one.clone(), samples(one))).collect();
            judging.thresholds.insert(case.id.clone(), thresholds);
        }
        judging
    }

    /// Has the next run folder read.
    pub(super) fn reads(&mut self) -> bool {
        let Phase::Verdict(judging) = &self.phase else { return false };
        let Some((_, folder)) = judging.folders.front() else { return false };
        self.awaits = true;
        self.out.push_back(Command::Read(folder.clone()));
        true
    }

    /// Judges what there is.
    pub(super) fn conclude(&mut self, judging: Judging, now: Moment) -> Finished {
        let interrupted = self.interrupted;
        // Thresholds count before the night is concluded.
        let mut judged = Judged {
            night: self.terms.begun.night.clone(),
            ended_utc: now.utc,
            pile: Pile::Valid,
            status: 0,
            sentence: String::new(),
            shard: self.terms.begun.shard,
            interrupted,
            left_out: self.left_out(),
            thresholds: judging.judgements(),
        };
        let mut nights = fold::nights(&self.lines);
        nights.retain(|night| night.begun.night != self.terms.begun.night);
        nights.push(Night { judged: Some(judged.clone()), ..self.tonight() });
        let mut conclusion = fold::conclude(&nights, &self.terms.suite.known, &judged.left_out);
        if let Some(why) = &self.failed {
            conclusion.pile = conclusion.pile.max(Pile::BenchFailure);
            conclusion.sentence = format!("The night itself failed: {why}. {}", conclusion.sentence);
        }
        judged.pile = conclusion.pile;
        judged.status = match conclusion.pile {
            Pile::Violation => Pile::Violation.status(),
            _ if interrupted => INTERRUPTED,
            pile => pile.status(),
        };
        judged.sentence = conclusion.sentence;
        // A night that was stopped, or that failed, is taken up where it was.
        if !self.is_stopped() {
            self.write(Line::Judged(judged.clone()));
        }
        if let Some(tonight) = nights.last_mut() {
            tonight.judged = Some(judged);
            tonight.tell_shards();
        }
        Finished { nights, pile: conclusion.pile, interrupted }
    }

    /// What was planned and not run.
    fn left_out(&self) -> Vec<LeftOut> {
        let suite = &self.terms.suite;
        let mut left: Vec<LeftOut> = Vec::new();
        for (slot, rest) in &self.no_room {
            for one in plan::no_room(suite, std::slice::from_ref(slot), *rest) {
                match left.last_mut() {
                    Some(LeftOut { case, runs, .. }) if *case == one.case => *runs += 1,
                    _ => left.push(one),
                }
            }
        }
        let rest: Vec<Slot> = self.queue.iter().cloned().collect();
        for mut unrun in plan::no_room(suite, &rest, Duration::ZERO) {
            let why =
                if self.interrupted { "the night was interrupted" } else { "the night came to an early end" };
            why.clone_into(&mut unrun.why);
            left.push(unrun);
        }
        left
    }
}

/// The tries of a case, those that came to nothing as 1.
fn share_of_unknown(tonight: &Night, case: &str) -> Samples {
    let tries = tonight.attempts.iter().filter(|run| run.case == case);
    Samples::of_values(tries.map(|run| f64::from(u8::from(run.pile == Pile::Unknown))).collect())
}
