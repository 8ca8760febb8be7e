//! Worlds of the simulator with what is left of the budget.
//!
//! Each night goes on where the last one ended, and shards have a range of their own. Only a world that broke
//! a rule is lived through again the next night: it is a finding until it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nights::findings::{Found, Replays};
use nights::fingerprint::Shape;
use nights::fold;
use nights::index::{Line, Worlds};
use serde::Deserialize;

use super::runner::Runner;
use crate::exit::Failure;
use crate::text::span;

/// A piece is not longer, so that a night that is killed loses little.
const PIECE: Duration = Duration::from_secs(300);
/// With less budget than this no piece is begun.
const LEAST: Duration = Duration::from_secs(10);
/// Broken worlds that are lived through again in one night.
const MOST_AGAIN: usize = 50;
/// Seeds of a shard.
const OF_A_SHARD: u64 = 1_000_000_000;

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

impl Runner {
    /// Lives through worlds that were broken before, and then through new ones.
    pub(super) async fn worlds(&self) -> Result<(), Failure> {
        if !self.orders.suite.settings.worlds {
            return Ok(());
        }
        for seed in self.broken_before() {
            if self.interrupt.was_asked() || !self.piece((seed, Some(seed + 1)), PIECE).await? {
                return Ok(());
            }
        }
        while !self.interrupt.was_asked() && self.rest() >= LEAST {
            let limit = Duration::from_secs(self.rest().min(PIECE).as_secs());
            if !self.piece((self.next_seed(), None), limit).await? {
                break;
            }
        }
        Ok(())
    }

    /// Lives through the worlds from a seed on, up to another or for so long. False where no more are to be
    /// begun.
    async fn piece(&self, (first, end): (u64, Option<u64>), limit: Duration) -> Result<bool, Failure> {
        let seeds = format!("{first}..{}", end.map(|end| end.to_string()).unwrap_or_default());
        self.progress.step(&format!("worlds of the simulator, {seeds}, for {}", span::show(limit)));
        let arguments = ["sim", "--seeds", &seeds, "--format", "json", "--time-limit", &span::show(limit)];
        let mut arguments = arguments.map(str::to_owned).to_vec();
        arguments.extend(["--store".to_owned(), self.folder().join("sim").display().to_string()]);
        let name = format!("worlds-{first}");
        let ended = self.process(&name, &self.build.executable, arguments, limit * 2 + PIECE).await?;
        let said: Option<Said> = serde_json::from_str(&ended.output).ok();
        let is_violation = said.as_ref().is_some_and(|said| !said.violations.is_empty());
        if ended.interrupted && !is_violation {
            return Ok(false);
        }
        let lived = said.filter(|_| matches!(ended.status, Some(0 | 1)) || is_violation);
        let failed = lived
            .is_none()
            .then(|| format!("from seed {first}: exit status {:?}: {}", ended.status, ended.last_words));
        let said = lived.unwrap_or_default();
        let goes_on = failed.is_none() && said.worlds > 0;
        if let Some(why) = &failed {
            self.progress.say(&format!("worlds {why}"));
        }
        let worlds = Worlds {
            night: self.night.clone(),
            seeds: (first, first.saturating_add(said.worlds)),
            worlds: said.worlds,
            broken: said.violations.iter().map(|found| (found.seed, found.rule.clone())).collect(),
            took_ms: said.elapsed_ms,
            spent_ms: self.spent_ms(),
            failed,
        };
        self.store.borrow_mut().append(Line::Worlds(worlds))?;
        for violation in &said.violations {
            self.broken_world(violation)?;
        }
        Ok(goes_on)
    }

    /// A world that breaks a rule is a finding. It repeats to the byte, so it needs no replay.
    fn broken_world(&self, violation: &Violation) -> Result<(), Failure> {
        let shape = Shape {
            check: violation.rule.clone(),
            case: fold::WORLDS.to_owned(),
            kinds: BTreeSet::new(),
            operations: BTreeSet::new(),
        };
        let known = self.tonight().found.iter().any(|found| found.fingerprint == shape.fingerprint());
        if known {
            return Ok(());
        }
        let found = Found {
            night: self.night.clone(),
            fingerprint: shape.fingerprint(),
            shape,
            sentence: violation.sentence.clone(),
            folder: format!("{}/sim", self.night),
            replays: Replays::default(),
            shrunk: None,
            command: format!("harness sim --seed {} --shrink", violation.seed),
        };
        self.progress.say(&format!("finding {}: {}", found.fingerprint, found.command));
        self.store.borrow_mut().append(Line::Finding(found.clone()))?;
        self.tell(&found);
        Ok(())
    }

    /// Seeds that broke a rule the last time that they were lived through, in nights before this one.
    fn broken_before(&self) -> Vec<u64> {
        let mut broken: BTreeMap<u64, bool> = BTreeMap::new();
        let store = self.store.borrow();
        for line in &store.lines {
            let Line::Worlds(worlds) = line else { continue };
            let (first, end) = worlds.seeds;
            broken.retain(|seed, _| !(first..end).contains(seed));
            broken.extend(worlds.broken.iter().map(|(seed, _)| (*seed, worlds.night != self.night)));
        }
        broken.into_iter().filter(|(_, before)| *before).map(|(seed, _)| seed).take(MOST_AGAIN).collect()
    }

    fn next_seed(&self) -> u64 {
        let shard = self.orders.shard.map_or(0, |(shard, _)| u64::from(shard.saturating_sub(1)));
        let first = shard * OF_A_SHARD;
        let store = self.store.borrow();
        let lived = store.lines.iter().filter_map(|line| match line {
            Line::Worlds(worlds) => Some(worlds.seeds.1),
            _ => None,
        });
        let ours = lived.filter(|end| (first..first + OF_A_SHARD).contains(end));
        ours.max().unwrap_or(first)
    }
}
