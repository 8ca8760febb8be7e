//! Planted bugs, in turn from night to night. Each must be convicted: where one is not, the night shows
//! nothing.

use std::time::Duration;

use crate::index::{Attempt, Line, Purpose};
use crate::outcome::Ended;
use crate::pile::Pile;
use crate::plan;

use super::alarms::Side;
use super::{Command, GRACE, Made, Moment, PATIENCE, Run, Scheduler, Task, narrow};

/// Bugs whose recipe needs more tries in real members are not for nights: one that is missed makes a night
/// unknown.
const MOST_TRIES: u32 = 3;

impl Scheduler {
    /// Begins the next try of the next bug that was not convicted yet.
    pub(super) fn hunts(&mut self, now: Moment) -> bool {
        let tonight = self.tonight().mutants;
        let pool: Vec<_> = self.terms.bugs.iter().filter(|bug| bug.tries <= MOST_TRIES).collect();
        let hunted = usize::try_from(self.settings().mutants).unwrap_or(usize::MAX).min(pool.len());
        let turn = self.nights_begun().saturating_mul(hunted);
        for nth in 0..hunted {
            let bug = pool[turn.saturating_add(nth) % pool.len()].clone();
            let tries: Vec<&Attempt> = tonight.iter().filter(|run| run.case == bug.name).collect();
            let number = narrow(tries.len()).saturating_add(1);
            if number > bug.tries || tries.iter().any(|run| run.pile == Pile::Violation) {
                continue;
            }
            // A hunt that was begun is ended: one that is broken off would say that nothing was found.
            if number == 1 && nth > 0 && self.rest(now) < self.terms.budget / 2 {
                return false;
            }
            let name = format!("mutant-{}-{number}", bug.name);
            let seed = plan::seed(self.terms.begun.seed, &bug.name, number);
            let line = format!(
                "--cluster process --nemesis {} --workload {} --mutant {} --seed {seed} {}",
                bug.nemesis, bug.workload, bug.name, bug.flags
            );
            let flags: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
            let quoted: Vec<String> = flags.iter().map(|flag| self.runs.quoted(flag)).collect();
            let command = format!("harness run {}", quoted.join(" "));
            self.out.push_back(Command::Step(format!("{name}: the planted bug must be convicted")));
            let deadline: Duration = GRACE * PATIENCE;
            let process = self.run_of(name, Side::Tonight, flags, deadline);
            self.start(now, process, Task::Bug { bug, number, seed, command });
            return true;
        }
        false
    }

    pub(super) fn hunted(&mut self, name: &str, run: Run<'_>, now: Moment, ended: &Ended, made: &Made) {
        if ended.interrupted {
            return;
        }
        let (attempt, _) = self.attempt(run, now, ended, made);
        let attempt = Attempt { purpose: Purpose::Mutant, ..attempt };
        self.say_attempt(name, &attempt);
        self.write(Line::Attempt(attempt));
    }
}
