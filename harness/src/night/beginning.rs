//! How a night begins: anew, or where one that did not come to its end stopped.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nights::fold::Night;
use nights::index::Begun;
use nights::plan;

use super::build::{self, Build};
use super::machine;
use super::settings::Orders;
use crate::exit::Failure;
use crate::progress::Progress;

/// A night that is older, in seconds, is begun anew where `--or-begin` leaves the choice.
const OLD_S: u64 = 12 * 3600;

/// What is run, by which build.
pub(super) struct Beginning {
    pub(super) orders: Orders,
    pub(super) build: Build,
    /// The night that goes on; none where one begins.
    pub(super) going_on: Option<Night>,
}

impl Beginning {
    /// Decides it. `last` is the last night of the store.
    pub(super) fn of(
        mut orders: Orders,
        store: &Path,
        last: Option<&Night>,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        let unfinished = last.filter(|night| night.judged.is_none());
        let build = build::keep(store)?;
        if orders.or_begin && unfinished.is_none_or(is_old) {
            orders.resume = false;
        }
        match unfinished {
            Some(night) if orders.resume => {
                let orders = resumed(orders, night)?;
                Ok(Self {
                    orders,
                    build: made_by(store, night, build, progress),
                    going_on: Some(night.clone()),
                })
            }
            None if orders.resume => Err(Failure::usage(format!(
                "--resume: the last night of {} came to its end, so there is nothing to go on with",
                orders.store.display()
            ))),
            unfinished => {
                if let Some(night) = unfinished {
                    progress.say(&format!(
                        "the night {} did not come to its end; --resume would go on with it",
                        night.begun.night
                    ));
                }
                Ok(Self { orders, build, going_on: None })
            }
        }
    }
}

/// A night that nobody went on with for so long is not tonight's.
fn is_old(night: &Night) -> bool {
    let age = jiff::Timestamp::now().duration_since(night.begun.started_utc).as_secs();
    age.unsigned_abs() > night.begun.budget_s.max(OLD_S)
}

/// The build that made the beginning makes the rest, because the numbers of one night are of one build; this
/// one where that is not there, or is nobody's that may be run.
fn made_by(store: &Path, night: &Night, build: Build, progress: &Progress) -> Build {
    let name = &night.begun.build;
    match build::earlier(store, name) {
        Ok(executable) => Build { name: name.clone(), executable },
        Err(why) => {
            progress.say(&format!("{why}; {} goes on", build.name));
            build
        }
    }
}

/// What of its budget a night had used when it was last heard of.
pub(super) fn spent(night: &Night) -> Duration {
    let runs = night.attempts.iter().chain(&night.mutants).map(|run| run.spent_ms);
    let most = runs.chain(night.worlds.iter().map(|worlds| worlds.spent_ms)).max();
    Duration::from_millis(most.unwrap_or(0))
}

/// The orders of a night that goes on: what decides its runs is taken from its first line.
fn resumed(orders: Orders, night: &Night) -> Result<Orders, Failure> {
    let begun = &night.begun;
    if begun.profile != orders.profile {
        return Err(Failure::usage(format!(
            "--resume: the night {} was begun with {}; say the same",
            begun.night,
            begun.profile.as_ref().map_or("no --profile".to_owned(), |name| format!("--profile {name}"))
        )));
    }
    let orders = Orders { seed: begun.seed, shard: begun.shard, ..orders };
    let ours = cases(&orders);
    if ours != begun.cases {
        return Err(Failure::usage(format!(
            "--resume: the night {} was begun with other cases or owners than the file has now; begin a new \
             one, or restore the file",
            begun.night
        )));
    }
    Ok(Orders { budget: Duration::from_secs(begun.budget_s), ..orders })
}

/// The cases of this shard, with their owners.
fn cases(orders: &Orders) -> BTreeMap<String, Option<String>> {
    let ours = orders
        .suite
        .cases
        .iter()
        .filter(|case| orders.shard.is_none_or(|(shard, of)| plan::belongs(&case.id, shard, of)));
    ours.map(|case| (case.id.clone(), case.owner.clone())).collect()
}

pub(super) fn first_line(
    orders: &Orders,
    nights: &[Night],
    build: &Build,
    now: jiff::Timestamp,
) -> Result<Begun, Failure> {
    let started = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let night = orders.name.clone().unwrap_or(started);
    if nights.iter().any(|other| other.begun.night == night) {
        return Err(Failure::usage(format!(
            "--night {night}: {} has a night of that name already; give this one another",
            orders.store.display()
        )));
    }
    Ok(Begun {
        night,
        started_utc: jiff::Timestamp::from_second(now.as_second()).unwrap_or(now),
        budget_s: orders.budget.as_secs(),
        seed: orders.seed,
        build: build.name.clone(),
        machine: machine::look(&orders.store, orders.suite.settings.jobs),
        profile: orders.profile.clone(),
        shard: orders.shard,
        cases: cases(orders),
    })
}
