//! `harness shrink`: a run that shows a violation, made smaller while it still shows it.
//!
//! A person understands one fault and five seconds, not twenty and five minutes. So what does not matter is
//! taken away: what came after the violation, then all faults, then some, then calm, then clients, then what
//! comes after the violation now; at last the same schedule is tried in the simulator, where it would repeat
//! exactly. A real run does not repeat exactly, so each smaller one has several tries, ends at its first
//! violation where the workload is judged meanwhile, and counts when it shows a violation of the same check.
//! The halving of faults is delta debugging (Zeller and Hildebrandt, 2002).
//!
//! What is never seen again is not smaller: that is said, and the status is that of a run that shows nothing.
//!
//! Every smaller run is a folder that `harness replay` runs again.

mod smaller;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use checker::verdict::Verdict;
use nights::findings::Shrunk;
use runs::cluster_kind::ClusterKind;
use runs::numbers::plural;
use runs::results::{Results, RunInfo};

use super::replay;
use super::run::make;
use super::screen::print;
use crate::cli::{Format, ReplayArgs, ShrinkArgs};
use crate::exit::{Exit, Failure};
use crate::num::narrow;
use crate::progress::Progress;
use crate::store::RunFolder;
use crate::text::{span, typed};
use smaller::Candidate;

/// Makes it smaller, and tells what is left.
pub fn shrink(args: &ShrinkArgs) -> Result<Exit, Failure> {
    let mut shrinking = Shrinking::of(args)?;
    let begun = shrinking.best.clone();
    let outcome = shrinking.try_everything();
    shrinking.progress.clear();
    // What was found until somebody interrupted is told.
    let interrupted = matches!(outcome, Err(Failure::Interrupted));
    match outcome {
        Ok(()) | Err(Failure::Interrupted) => {}
        Err(failure) => return Err(failure),
    }
    shrinking.tell(&begun)?;
    Ok(match (interrupted, shrinking.seen) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Done,
        (false, false) => Exit::Unknown,
    })
}

/// A search for a smaller run.
struct Shrinking<'a> {
    args: &'a ShrinkArgs,
    progress: Progress,
    /// What the run came to.
    results: Results,
    /// The check that must accuse again.
    check: String,
    /// The smallest that showed it.
    best: Candidate,
    /// Its folder.
    folder: PathBuf,
    /// Until when smaller ones are tried.
    until: Instant,
    /// Runs made.
    runs: u32,
    /// Whether any of them showed it.
    seen: bool,
    in_the_simulator: Option<bool>,
}

impl<'a> Shrinking<'a> {
    fn of(args: &'a ShrinkArgs) -> Result<Self, Failure> {
        let folder = RunFolder::at(&args.path);
        let results: Results = RunFolder::read_named_json(&folder.results())?;
        let accuses = results.checks.iter().find(|check| check.verdict == Verdict::Invalid);
        let Some(check) = accuses else {
            return Err(Failure::usage(format!(
                "{} shows no violation, so there is nothing to make smaller: it is {}",
                args.path.display(),
                results.verdict
            )));
        };
        let budget = span::parse(&args.budget).map_err(|why| Failure::usage(format!("--budget: {why}")))?;
        let best = Candidate::read(&folder)?;
        // Whether this build can repeat it at all is said before anything is started.
        replay::order(&replay_of(args, &args.path, None))?;
        Ok(Self {
            args,
            progress: Progress::on_stderr(),
            check: check.name.clone(),
            results,
            best,
            folder: args.path.clone(),
            until: Instant::now() + budget,
            runs: 0,
            seen: false,
            in_the_simulator: None,
        })
    }

    /// Tries each way to make the run smaller, the coarse ones first.
    fn try_everything(&mut self) -> Result<(), Failure> {
        let cut = match smaller::end_of_the_violation(&self.results) {
            Some(end_ms) => self.best.until(end_ms),
            None => self.best.clone(),
        };
        if !self.try_one("without any fault", &cut.with(&BTreeSet::new()))? {
            let faults = self.best.in_force(&self.args.path, &self.results);
            if !self.try_one("what was in force at the violation", &cut.with(&faults))? {
                self.try_one("what came before the violation's end", &cut)?;
            }
            self.fewer_faults()?;
        }
        let early = self.best.begun_at_once();
        self.try_one("without the calm before the first fault", &early)?;
        while self.best.clients() > 2 {
            let fewer = self.best.with_clients(self.best.clients() / 2);
            if !self.try_one(&format!("{} clients", fewer.clients()), &fewer)? {
                break;
            }
        }
        self.cut_again()?;
        self.try_the_simulator()
    }

    /// Less time, where the violation comes earlier now. What nothing smaller showed is tried as it was.
    fn cut_again(&mut self) -> Result<(), Failure> {
        if !self.seen {
            let as_it_was = self.best.clone();
            return self.try_times("as it was", &as_it_was).map(drop);
        }
        let results: Results = RunFolder::read_named_json(&RunFolder::at(&self.folder).results())?;
        let Some(end_ms) = smaller::end_of_the_violation(&results) else { return Ok(()) };
        let cut = self.best.until(end_ms);
        self.try_one("what comes before the violation's end now", &cut).map(drop)
    }

    /// Takes away halves, then quarters, and at last single faults.
    fn fewer_faults(&mut self) -> Result<(), Failure> {
        let mut size = self.best.faults().len() / 2;
        while size > 0 {
            let mut at = 0;
            while at < self.best.faults().len() && self.best.faults().len() > size {
                let fewer = self.best.without(at..at + size);
                if !self.try_one(&crate::num::plural(fewer.faults().len(), "fault"), &fewer)? {
                    at += size;
                }
            }
            size /= 2;
        }
        Ok(())
    }

    /// Runs a smaller one until it shows the violation, as often as it may. It is the best one then.
    fn try_one(&mut self, what: &str, smaller: &Candidate) -> Result<bool, Failure> {
        if *smaller == self.best {
            return Ok(false);
        }
        self.try_times(what, smaller)
    }

    fn try_times(&mut self, what: &str, smaller: &Candidate) -> Result<bool, Failure> {
        for _ in 0..self.args.tries {
            if Instant::now() >= self.until {
                return Ok(false);
            }
            if let Some(folder) = self.shows(smaller, None)? {
                self.progress.say(&format!("{what}: still there ({})", smaller.sentence()));
                self.best = smaller.clone();
                self.folder = folder;
                self.seen = true;
                return Ok(true);
            }
        }
        self.progress.say(&format!("{what}: not seen in {}", plural(u64::from(self.args.tries), "run")));
        Ok(false)
    }

    /// The folder of a run that showed it.
    fn shows(&mut self, smaller: &Candidate, cluster: Option<&str>) -> Result<Option<PathBuf>, Failure> {
        self.runs += 1;
        let variant = self.args.store.join("smaller").join(format!("{}-{}", std::process::id(), self.runs));
        smaller.write(&variant, &self.args.again)?;
        let order = match replay::order(&replay_of(self.args, &variant, cluster)) {
            Ok(mut order) => {
                order.options.fail_fast = order.options.can_fail_fast().is_ok();
                order
            }
            // What is too small to be a run is no smaller run.
            Err(Failure::Usage(why)) => {
                self.progress.say(&format!("not possible: {why}"));
                return Ok(None);
            }
            Err(failure) => return Err(failure),
        };
        match make(order, &self.progress) {
            Ok((_, judged)) if judged.results.interrupted => Err(Failure::Interrupted),
            Ok((folder, judged)) => {
                let accuses = judged
                    .results
                    .checks
                    .iter()
                    .any(|check| check.verdict == Verdict::Invalid && check.name == self.check);
                Ok(accuses.then(|| folder.path().to_owned()))
            }
            Err(Failure::Harness(error)) => {
                self.progress.say(&format!("a run came to nothing: {error:#}"));
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// There it would repeat exactly, from one command.
    fn try_the_simulator(&mut self) -> Result<(), Failure> {
        if self.best.cluster() == ClusterKind::Sim || Instant::now() >= self.until {
            return Ok(());
        }
        // A system that it does not have says nothing of the violation.
        if replay::order(&replay_of(self.args, &self.folder, Some(ClusterKind::Sim.name()))).is_err() {
            return Ok(());
        }
        // Once: the simulator says the same whenever it is asked the same.
        let best = self.best.clone();
        let shown = self.shows(&best, Some(ClusterKind::Sim.name()))?;
        if let Some(folder) = &shown {
            self.progress.say(&format!("the simulator shows it too: {}", folder.display()));
        }
        self.in_the_simulator = Some(shown.is_some());
        Ok(())
    }

    fn tell(&self, begun: &Candidate) -> Result<(), Failure> {
        let best = &self.best;
        let faults = (narrow(begun.faults().len()), narrow(best.faults().len()));
        let shrunk = Shrunk {
            folder: self.folder.display().to_string(),
            faults,
            clients: (begun.clients(), best.clients()),
            workload_ms: (begun.workload_ms(), best.workload_ms()),
            in_the_simulator: self.in_the_simulator,
            runs: self.runs,
            seen: self.seen,
        };
        match self.args.format {
            Format::Json => {
                let text = serde_json::to_string_pretty(&shrunk).context("encoding the result")?;
                print(&(text + "\n"))
            }
            Format::Human => print(&screen(&shrunk, &self.check, self.best.variables(), self.args)),
        }
    }
}

fn screen(shrunk: &Shrunk, check: &str, variables: &BTreeMap<String, String>, args: &ShrinkArgs) -> String {
    let mut again =
        vec![format!("{}harness replay {}", typed::assignments(variables), typed::word(&shrunk.folder))];
    again.extend(replay::typed_here(&args.again));
    if !shrunk.seen {
        return format!(
            "{check} was not seen again, in {}: nothing is smaller. More --tries and a longer --budget may \
             show it\n\nrepeat     {}\n",
            plural(u64::from(shrunk.runs), "run"),
            again.join(" ")
        );
    }
    let Shrunk { faults, clients, workload_ms, runs, .. } = shrunk;
    let time = |ms: u64| span::show(Duration::from_millis(ms));
    let simulator = match shrunk.in_the_simulator {
        Some(true) => "\nsimulator  shows it too: add --cluster sim",
        Some(false) => "\nsimulator  does not show it",
        None => "",
    };
    format!(
        "{check} is still broken, after {}\n\nfaults     {} of {}\nclients    {} of {}\ntime       {} of \
         {}{simulator}\nrepeat     {}\n",
        plural(u64::from(*runs), "run"),
        faults.1,
        faults.0,
        clients.1,
        clients.0,
        time(workload_ms.1),
        time(workload_ms.0),
        again.join(" ")
    )
}

fn replay_of(args: &ShrinkArgs, path: &Path, cluster: Option<&str>) -> ReplayArgs {
    ReplayArgs {
        path: path.to_owned(),
        cluster: cluster.map(str::to_owned),
        again: args.again.clone(),
        store: args.store.clone(),
        format: args.format,
    }
}

/// Whether a folder names a run of its own flags.
fn is_replay(run: &RunInfo) -> bool {
    run.settings.contains_key(crate::run::describe::REPEATS)
}
