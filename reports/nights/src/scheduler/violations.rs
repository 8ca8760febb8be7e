//! A violation, looked at: its schedule run again, made smaller, and told to whoever wants to know.
//!
//! How often it shows again says how to work on it; it never says that it was none. One that no replay shows
//! stays a violation.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::time::Duration;

use checker::verdict::Verdict;
use runs::span;

use crate::findings::{Found, Replays, Shrunk};
use crate::fingerprint::Shape;
use crate::index::{Attempt, Line};
use crate::outcome::{Ended, Record, shapes};
use crate::pile::Pile;

use super::alarms::Side;
use super::{Command, GRACE, Made, Moment, Process, Scheduler, Task, called, flag, narrow, seconds};

/// A violation that is looked at.
#[derive(Debug)]
pub(super) struct Looking {
    case: usize,
    attempt: Attempt,
    /// The run folder that shows it, below the store.
    folder: String,
    /// What is new of it tonight: at least one.
    fresh: Vec<(Shape, String)>,
    /// How often its schedule is to be run again, and how often it was.
    replays: (u32, u32),
    /// The checks that accused in each replay that came to a verdict.
    accused: Vec<BTreeSet<String>>,
}

impl Scheduler {
    /// Violations of a night that was killed before it had looked at them.
    pub(super) fn not_looked_at(&self) -> VecDeque<Attempt> {
        let mut attempts = self.tonight().attempts;
        attempts.retain(|run| {
            run.pile == Pile::Violation && run.folder.is_some() && self.case(&run.case).is_some()
        });
        attempts.into()
    }

    /// Has the folder of the next of them read.
    pub(super) fn looks_again(&mut self) -> bool {
        let super::Phase::Violations(left) = &self.phase else { return false };
        let Some(folder) = left.front().and_then(|attempt| attempt.folder.clone()) else { return false };
        self.awaits = true;
        self.out.push_back(Command::Read(folder));
        true
    }

    pub(super) fn look_again(&mut self, attempt: Attempt, record: &Record, now: Moment) {
        let Some((case, _)) = self.case(&attempt.case) else { return };
        let shapes = shapes(&attempt.case, record);
        self.look(case, attempt, shapes, now);
    }

    /// Looks at a violation, unless all that it shows was looked at tonight.
    pub(super) fn look(&mut self, case: usize, attempt: Attempt, shapes: Vec<(Shape, String)>, now: Moment) {
        let Some(folder) = attempt.folder.clone() else { return };
        let found = self.tonight().found;
        let looked_at = |shape: &Shape| found.iter().any(|found| found.fingerprint == shape.fingerprint());
        let mut fresh = shapes;
        fresh.retain(|(shape, _)| !looked_at(shape));
        let Some((first, _)) = fresh.first() else { return };
        let replays = (self.owed(&first.fingerprint()), 0);
        self.look_on(Looking { case, attempt, folder, fresh, replays, accused: Vec::new() }, now);
    }

    /// How many replays a violation gets: one that is known or was seen before gets one, because others count
    /// on the budget.
    fn owed(&self, fingerprint: &str) -> u32 {
        let replays = self.settings().replays;
        let known = self.terms.suite.known.iter().any(|known| known.finding == fingerprint);
        let seen = |line: &Line| matches!(line, Line::Finding(found) if found.fingerprint == fingerprint);
        if known || self.lines.iter().any(seen) { replays.min(1) } else { replays }
    }

    /// The next replay, then the smaller schedule, then the finding.
    fn look_on(&mut self, mut looking: Looking, now: Moment) {
        let (owed, made) = looking.replays;
        if made < owed && !self.is_stopped() {
            looking.replays.1 += 1;
            self.replay(looking, now);
        } else {
            self.make_smaller(looking, now);
        }
    }

    fn replay(&mut self, looking: Looking, now: Moment) {
        let (case, nth) = (&self.terms.suite.cases[looking.case].id, looking.replays.1);
        let name = format!("{case}-{}-replay-{nth}", looking.attempt.repeat);
        self.out.push_back(Command::Step(format!("{name}: the schedule of a violation again")));
        let store = self.folder().join("replays").join(&name);
        let mut arguments = vec!["replay".to_owned(), self.path(&looking.folder)];
        arguments.extend(self.runs.typed(looking.case));
        arguments.extend(flag("--store", store.display()));
        arguments.extend(flag("--format", "json"));
        let deadline = took(&looking.attempt).saturating_mul(3).saturating_add(GRACE);
        // A replay is called as what it repeats.
        let runs = Some(store.join(called(&looking.folder)));
        let process = Process { name, build: Side::Tonight, arguments, deadline, runs };
        self.start(now, process, Task::Replay(looking));
    }

    pub(super) fn replayed(&mut self, mut looking: Looking, now: Moment, ended: &Ended, made: Made) {
        let record = made.record.filter(|_| matches!(ended.status, Some(0..=2)));
        looking.accused.extend(record.map(|record| {
            let invalid = record.results.checks.iter().filter(|check| check.verdict == Verdict::Invalid);
            invalid.map(|check| check.name.clone()).collect::<BTreeSet<String>>()
        }));
        self.look_on(looking, now);
    }

    /// Looks for a smaller schedule, where nobody has one yet.
    fn make_smaller(&mut self, looking: Looking, now: Moment) {
        let budget = self.settings().shrink;
        let fingerprint = looking.fresh[0].0.fingerprint();
        let has_one = |line: &Line| match line {
            Line::Finding(found) => found.fingerprint == fingerprint && found.shrunk.is_some(),
            _ => false,
        };
        if budget.is_zero() || self.is_stopped() || self.lines.iter().any(has_one) {
            return self.find(&looking, None);
        }
        let case = &self.terms.suite.cases[looking.case].id;
        let name = format!("{case}-{}-shrink", looking.attempt.repeat);
        self.out.push_back(Command::Step(format!("{name}: making the schedule smaller")));
        let store = self.folder().join("smaller").join(&name);
        let mut arguments = vec!["shrink".to_owned(), self.path(&looking.folder)];
        arguments.extend(self.runs.typed(looking.case));
        arguments.extend(flag("--budget", span::show(budget)));
        arguments.extend(flag("--store", store.display()));
        arguments.extend(flag("--format", "json"));
        let deadline = budget.saturating_add(took(&looking.attempt).saturating_mul(2)).saturating_add(GRACE);
        let process = Process { name, build: Side::Tonight, arguments, deadline, runs: None };
        self.start(now, process, Task::Smaller(looking));
    }

    pub(super) fn made_smaller(&mut self, looking: &Looking, name: &str, ended: &Ended) {
        if ended.status != Some(0) {
            self.say(format!("{name}: it was not made smaller: {}", ended.last_words));
            return self.find(looking, None);
        }
        let Ok(shrunk) = serde_json::from_str::<Shrunk>(&ended.output) else {
            self.say(format!("{name}: what it said is not understood"));
            return self.find(looking, None);
        };
        let below = Path::new(&shrunk.folder).strip_prefix(&self.terms.store).ok().and_then(Path::to_str);
        let shrunk = below.map(|folder| Shrunk { folder: folder.to_owned(), ..shrunk.clone() });
        self.find(looking, shrunk);
    }

    /// Puts down what came of it.
    fn find(&mut self, looking: &Looking, mut shrunk: Option<Shrunk>) {
        for (shape, sentence) in &looking.fresh {
            let shown = looking.accused.iter().filter(|checks| checks.contains(&shape.check)).count();
            // The smaller schedule shows the first check; it is not known to show the others.
            let shrunk = shrunk.take();
            let shown_by = shrunk.as_ref().map_or(&looking.folder, |shrunk| &shrunk.folder);
            let found = Found {
                night: self.terms.begun.night.clone(),
                fingerprint: shape.fingerprint(),
                shape: shape.clone(),
                sentence: sentence.clone(),
                folder: looking.folder.clone(),
                replays: Replays { shown: narrow(shown), of: narrow(looking.accused.len()) },
                command: self.repeats(looking.case, shown_by),
                shrunk,
            };
            self.say(format!(
                "finding {}: shown again by {} of {} replays; {}",
                found.fingerprint, found.replays.shown, found.replays.of, found.command
            ));
            let fingerprint = found.fingerprint.clone();
            self.write(Line::Finding(found));
            self.notify(&fingerprint);
        }
    }

    /// What repeats a finding.
    fn repeats(&self, case: usize, folder: &str) -> String {
        let mut words = vec!["harness".to_owned(), "replay".to_owned()];
        words.push(self.runs.quoted(&self.path(folder)));
        words.extend(self.runs.typed(case).iter().map(|word| self.runs.quoted(word)));
        words.join(" ")
    }

    /// A path below the store as a command line names it.
    fn path(&self, folder: &str) -> String {
        self.terms.store.join(folder).to_string_lossy().into_owned()
    }
}

/// How long the run took that is looked at.
fn took(attempt: &Attempt) -> Duration {
    seconds(attempt.took_ms / 1e3)
}
