//! Worlds of the simulator with what is left of the budget.
//!
//! Seeds are never lived through twice on one store: each night goes on where the last one ended. Shards have
//! a range of their own.

use std::time::Duration;

use nights::index::{Line, Worlds};
use serde::Deserialize;

use super::child::{self, Order};
use super::runner::Runner;
use crate::exit::Failure;
use crate::text::span;

/// A piece is not longer, so that a night that is killed loses little.
const PIECE: Duration = Duration::from_secs(300);
/// With less budget than this no piece is begun.
const LEAST: Duration = Duration::from_secs(10);
/// Seeds of a shard.
const OF_A_SHARD: u64 = 1_000_000_000;

/// What `harness sim --format json` says.
#[derive(Deserialize)]
struct Said {
    worlds: u64,
    elapsed_ms: u64,
    violations: Vec<Violation>,
}

#[derive(Deserialize)]
struct Violation {
    seed: u64,
    rule: String,
}

impl Runner {
    pub(super) async fn worlds(&self) -> Result<(), Failure> {
        while self.orders.suite.settings.worlds && !self.interrupt.was_asked() && self.rest() >= LEAST {
            let first = self.next_seed();
            let limit = Duration::from_secs(self.rest().min(PIECE).as_secs());
            self.progress
                .step(&format!("worlds of the simulator from seed {first}, for {}", span::show(limit)));
            let arguments = ["sim", "--seeds", &format!("{first}.."), "--format", "json", "--time-limit"];
            let mut arguments = arguments.map(str::to_owned).to_vec();
            arguments.extend([span::show(limit), "--store".to_owned()]);
            arguments.push(self.folder().join("sim").display().to_string());
            let log = self.log(&format!("worlds-{first}"));
            let deadline = limit * 2 + PIECE;
            let order =
                Order { executable: self.build.executable.clone(), arguments, log: log.clone(), deadline };
            let ended = child::run(&order, &self.interrupt).await?;
            let said = std::fs::read_to_string(child::output_of(&log)).unwrap_or_default();
            let said: Option<Said> = serde_json::from_str(&said).ok();
            let is_violation = said.as_ref().is_some_and(|said| !said.violations.is_empty());
            if ended.interrupted && !is_violation {
                break;
            }
            let Some(said) = said.filter(|_| matches!(ended.status, Some(0 | 1)) || is_violation) else {
                let why = format!("from seed {first}: exit status {:?}: {}", ended.status, ended.last_words);
                self.progress.say(&format!("worlds {why}"));
                self.store.borrow_mut().append(Line::Worlds(Worlds {
                    night: self.night.clone(),
                    seeds: (first, first),
                    worlds: 0,
                    broken: Vec::new(),
                    took_ms: 0,
                    spent_ms: self.spent_ms(),
                    failed: Some(why),
                }))?;
                break;
            };
            let broken = said.violations.into_iter().map(|found| (found.seed, found.rule)).collect();
            let worlds = Worlds {
                night: self.night.clone(),
                seeds: (first, first.saturating_add(said.worlds)),
                worlds: said.worlds,
                broken,
                took_ms: said.elapsed_ms,
                spent_ms: self.spent_ms(),
                failed: None,
            };
            self.store.borrow_mut().append(Line::Worlds(worlds))?;
            if said.worlds == 0 {
                break;
            }
        }
        Ok(())
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
