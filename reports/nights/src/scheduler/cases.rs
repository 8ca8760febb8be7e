//! Cases in the order of the plan, as far as the budget has room, each tried again once where the bench or
//! the load fell short.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use crate::fence;
use crate::fold;
use crate::index::{Line, Purpose};
use crate::outcome::Ended;
use crate::pile::Pile;
use crate::plan::{self, Slot};

use super::alarms::Side;
use super::{Command, Made, Moment, Run, Scheduler, Task, flag, narrow, patience};

/// The share of the budget that is kept back for comparing builds, where alarms are possible.
const FOR_ALARMS: u32 = 6;
/// The flag by which a run compresses its history.
const COMPRESS: &str = "--compress";

impl Scheduler {
    /// The runs of the night that are not made yet, in their order.
    pub(super) fn planned(&self, now: Moment) -> VecDeque<Slot> {
        let begun = &self.terms.begun;
        let mut past = fold::nights(&self.lines);
        past.retain(|night| night.begun.night != begun.night);
        let terms = plan::Terms {
            nights: &past,
            now: now.utc,
            seed: begun.seed,
            shard: begun.shard,
            guess: &|case| self.runs.guess(case),
        };
        let mut slots = plan::order(&self.terms.suite, terms);
        slots.retain(|slot| {
            let tries = self.tries_of(slot);
            let used_up = narrow(tries.len()) > self.settings().retries;
            tries.last().is_none_or(|pile| pile.is_tried_again() && !used_up)
        });
        slots.into()
    }

    /// What the tries of a run were taken for, in this night.
    fn tries_of(&self, slot: &Slot) -> Vec<Pile> {
        let case = &self.terms.suite.cases[slot.case].id;
        let of_run = self.lines.iter().filter_map(|line| match line {
            Line::Attempt(run) if self.is_case(line) && run.case == *case && run.repeat == slot.repeat => {
                Some(run.pile)
            }
            _ => None,
        });
        of_run.collect()
    }

    fn is_case(&self, line: &Line) -> bool {
        matches!(line, Line::Attempt(run)
            if run.night == self.terms.begun.night && run.purpose == Purpose::Case)
    }

    /// Begins the next run that finds room. What finds none is kept to be named.
    pub(super) fn tries(&mut self, now: Moment) -> bool {
        let may_alarm = self.settings().pairs > 0 && self.nights_begun() > fence::LEAST_NIGHTS;
        let kept_back = if may_alarm { self.terms.budget / FOR_ALARMS } else { Duration::ZERO };
        let rest = self.rest(now);
        while let Some(slot) = self.queue.pop_front() {
            // Something is always tried, however small the budget.
            let first = !self.lines.iter().any(|line| self.is_case(line));
            if first || slot.estimate <= rest.saturating_sub(kept_back) {
                let number = narrow(self.tries_of(&slot).len()).saturating_add(1);
                self.try_run(slot, number, now);
                return true;
            }
            self.no_room.push((slot, rest));
        }
        false
    }

    fn try_run(&mut self, slot: Slot, number: u32, now: Moment) {
        let case = &self.terms.suite.cases[slot.case];
        let mut name = format!("{}-{}", case.id, slot.repeat);
        if number > 1 {
            name.push_str("-again");
        }
        let mut flags = case.words();
        flags.extend(flag("--seed", slot.seed));
        // A case may ask for it by itself.
        if self.settings().retention.compress && !flags.iter().any(|flag| flag == COMPRESS) {
            flags.push(COMPRESS.to_owned());
        }
        let command = self.runs.command(slot.case, slot.seed);
        self.out.push_back(Command::Step(format!("{name}: {command}")));
        let deadline = patience(self.runs.time_limit(slot.case));
        let process = self.run_of(name, Side::Tonight, flags, deadline);
        self.start(now, process, Task::Case { slot, number });
    }

    pub(super) fn tried(
        &mut self,
        slot: &Slot,
        number: u32,
        (name, started): (&str, Timestamp),
        now: Moment,
        ended: &Ended,
        made: &Made,
    ) {
        // A violation wins over an interruption.
        if ended.interrupted && Pile::of_status(ended.status) != Pile::Violation {
            return;
        }
        let case = self.terms.suite.cases[slot.case].id.clone();
        let command = self.runs.command(slot.case, slot.seed);
        let run = Run { case: &case, repeat: slot.repeat, number, seed: slot.seed, started, command };
        let (attempt, outcome) = self.attempt(run, now, ended, made);
        let pile = attempt.pile;
        self.say_attempt(name, &attempt);
        self.write(Line::Attempt(attempt.clone()));
        if pile == Pile::Violation {
            self.look(slot.case, attempt, outcome.shapes, now);
        } else if pile.is_tried_again() && number <= self.settings().retries && !self.is_stopped() {
            self.try_run(slot.clone(), number.saturating_add(1), now);
        }
    }
}
