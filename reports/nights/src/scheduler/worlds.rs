//! Worlds of the simulator with what is left of the budget.
//!
//! Each night goes on where the last one ended, and shards have a range of their own. Only a world that broke
//! a rule is lived through again the next night: it is a finding until it holds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use runs::span;
use serde::Deserialize;

use crate::findings::{Found, Replays};
use crate::fingerprint::Shape;
use crate::fold;
use crate::index::{Line, Worlds};
use crate::outcome::Ended;

use super::{Command, Moment, Phase, Process, Scheduler, Side, Task, flag, milliseconds};

/// A piece is not longer, so that a night that is killed loses little.
const PIECE: Duration = Duration::from_secs(300);
/// With less budget than this no piece is begun.
const LEAST: Duration = Duration::from_secs(10);
/// Broken worlds that are lived through again in one night.
const MOST_AGAIN: usize = 50;
/// Seeds of a shard.
const OF_A_SHARD: u64 = 1_000_000_000;

/// What is left to be lived through.
#[derive(Debug)]
pub(super) struct Living {
    /// Seeds that broke a rule before.
    again: VecDeque<u64>,
    /// Whether no more worlds are begun.
    is_over: bool,
}

/// What `harness sim --format json` says.
#[derive(Default, Deserialize)]
struct Said {
    worlds: u64,
    elapsed_ms: u64,
    violations: Vec<Violation>,
}

#[derive(Deserialize)]
struct Violation {
    seed: u64,
    rule: String,
    sentence: String,
}

impl Scheduler {
    pub(super) fn living(&self) -> Living {
        let is_over = !self.settings().worlds;
        Living { again: if is_over { VecDeque::new() } else { self.broken_before() }, is_over }
    }

    /// Begins worlds that were broken before, and then new ones.
    pub(super) fn lives(&mut self, now: Moment) -> bool {
        let rest = self.rest(now);
        let Phase::Worlds(living) = &mut self.phase else { return false };
        if living.is_over {
            return false;
        }
        if let Some(seed) = living.again.pop_front() {
            self.piece((seed, Some(seed.saturating_add(1))), PIECE, now);
        } else if rest >= LEAST {
            let limit = Duration::from_secs(rest.min(PIECE).as_secs());
            self.piece((self.next_seed(), None), limit, now);
        } else {
            return false;
        }
        true
    }

    /// Lives through the worlds from a seed on, up to another or for so long.
    fn piece(&mut self, (first, end): (u64, Option<u64>), limit: Duration, now: Moment) {
        let seeds = format!("{first}..{}", end.map(|end| end.to_string()).unwrap_or_default());
        let limit_words = span::show(limit);
        let step = format!("worlds of the simulator, {seeds}, for {limit_words}");
        self.out.push_back(Command::Step(step));
        let mut arguments = vec!["sim".to_owned()];
        arguments.extend(flag("--seeds", seeds));
        arguments.extend(flag("--format", "json"));
        arguments.extend(flag("--time-limit", limit_words));
        arguments.extend(flag("--store", self.folder().join("sim").display()));
        let (name, deadline) = (format!("worlds-{first}"), limit.saturating_mul(2).saturating_add(PIECE));
        let process = Process { name, build: Side::Tonight, arguments, deadline, runs: None };
        self.start(now, process, Task::Worlds(first));
    }

    /// Worlds were lived through. Where they could not be, no more are begun.
    pub(super) fn lived(&mut self, first: u64, now: Moment, ended: &Ended) {
        let said: Option<Said> = serde_json::from_str(&ended.output).ok();
        let is_violation = said.as_ref().is_some_and(|said| !said.violations.is_empty());
        if ended.interrupted && !is_violation {
            return;
        }
        let lived = said.filter(|_| matches!(ended.status, Some(0 | 1)) || is_violation);
        let failed = lived
            .is_none()
            .then(|| format!("from seed {first}: exit status {:?}: {}", ended.status, ended.last_words));
        let said = lived.unwrap_or_default();
        let goes_on = failed.is_none() && said.worlds > 0;
        if let Phase::Worlds(living) = &mut self.phase {
            living.is_over |= !goes_on;
        }
        if let Some(why) = &failed {
            self.say(format!("worlds {why}"));
        }
        self.write(Line::Worlds(Worlds {
            night: self.terms.begun.night.clone(),
            seeds: (first, first.saturating_add(said.worlds)),
            worlds: said.worlds,
            broken: said.violations.iter().map(|found| (found.seed, found.rule.clone())).collect(),
            took_ms: said.elapsed_ms,
            spent_ms: milliseconds(now.spent),
            failed,
        }));
        for violation in &said.violations {
            self.broken_world(violation);
        }
    }

    /// A world that breaks a rule is a finding. It repeats to the byte, so it needs no replay.
    fn broken_world(&mut self, violation: &Violation) {
        let shape = Shape {
            check: violation.rule.clone(),
            case: fold::WORLDS.to_owned(),
            kinds: BTreeSet::new(),
            operations: BTreeSet::new(),
        };
        let fingerprint = shape.fingerprint();
        if self.tonight().found.iter().any(|found| found.fingerprint == fingerprint) {
            return;
        }
        let night = self.terms.begun.night.clone();
        let found = Found {
            folder: format!("{night}/sim"),
            night,
            fingerprint: fingerprint.clone(),
            shape,
            sentence: violation.sentence.clone(),
            replays: Replays::default(),
            shrunk: None,
            command: format!("harness sim --seed {} --shrink", violation.seed),
        };
        self.say(format!("finding {fingerprint}: {}", found.command));
        self.write(Line::Finding(found));
        self.notify(&fingerprint);
    }

    /// Seeds that broke a rule the last time that they were lived through, in nights before this one.
    fn broken_before(&self) -> VecDeque<u64> {
        let mut broken: BTreeMap<u64, bool> = BTreeMap::new();
        for line in &self.lines {
            let Line::Worlds(worlds) = line else { continue };
            let (first, end) = worlds.seeds;
            broken.retain(|seed, _| !(first..end).contains(seed));
            let before = worlds.night != self.terms.begun.night;
            broken.extend(worlds.broken.iter().map(|(seed, _)| (*seed, before)));
        }
        broken.into_iter().filter(|(_, before)| *before).map(|(seed, _)| seed).take(MOST_AGAIN).collect()
    }

    fn next_seed(&self) -> u64 {
        let shard = self.terms.begun.shard.map_or(0, |(shard, _)| u64::from(shard.saturating_sub(1)));
        let first = shard.saturating_mul(OF_A_SHARD);
        let lived = self.lines.iter().filter_map(|line| match line {
            Line::Worlds(worlds) => Some(worlds.seeds.1),
            _ => None,
        });
        let ours = lived.filter(|end| (first..first.saturating_add(OF_A_SHARD)).contains(end));
        ours.max().unwrap_or(first)
    }
}
