//! Removes what a killed harness left on an engine, and leaves the living alone.
//!
//! A harness of this machine is looked for. One of another machine (a shared engine), of another namespace or
//! of an earlier boot can't be looked for; but its sandboxes live only as long as somebody renews their
//! lease, so a run without a running sandbox, of which nothing was made lately, is dead.

use std::collections::BTreeMap;
use std::time::Duration;

use super::engine::{Engine, EngineError, NoEngine};
use super::inventory::{self, Removed, Thing};
use super::labels::{self, Owner};

/// How long asking for the engine's clock may take.
const CLOCK_PATIENCE: Duration = Duration::from_secs(5);
/// A run that made something this lately may be about to start its sandboxes.
const YOUNG_S: i64 = 60;

/// What a sweep of an engine did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// What was removed.
    pub removed: Removed,
    /// Runs that live, or may live, and were left alone.
    pub alive: usize,
}

impl Swept {
    /// Whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty()
    }

    /// What was removed, in words.
    pub fn sentence(&self) -> String {
        format!("removed {}", inventory::in_words(&self.removed))
    }
}

/// Sweeps an engine.
pub async fn sweep(engine: &Engine) -> Result<Swept, EngineError> {
    let (dead, alive) = dead_runs(engine).await?;
    let removed = if dead.is_empty() { Removed::new() } else { inventory::empty(engine, &dead).await? };
    Ok(Swept { removed, alive })
}

/// Sweeps the engine that the environment names, from outside any runtime. None when there is no engine and
/// nobody said that there was one.
pub fn sweep_what_is_there() -> Result<Option<Swept>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        match Engine::find().await {
            Ok(engine) => sweep(&engine).await.map(Some).map_err(|error| error.to_string()),
            Err(NoEngine { absent: true, .. }) => Ok(None),
            Err(none) => Err(none.reason),
        }
    })
}

/// The tokens of dead runs, and the number of the others.
async fn dead_runs(engine: &Engine) -> Result<(Vec<String>, usize), EngineError> {
    let things = inventory::list(engine).await?;
    if things.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let info = engine
        .call("asking for its clock", CLOCK_PATIENCE, |docker| async move { docker.info().await })
        .await?;
    let now_s = info.system_time.as_deref().map_or(0, inventory::seconds);
    let mut runs: BTreeMap<&str, Vec<&Thing>> = BTreeMap::new();
    for thing in &things {
        runs.entry(&thing.token).or_default().push(thing);
    }
    let all = runs.len();
    let dead: Vec<String> = runs
        .into_iter()
        .filter(|(token, things)| {
            let namespace = things.iter().find_map(|thing| thing.namespace.as_deref());
            is_dead(labels::owner(token, namespace), things, now_s)
        })
        .map(|(token, _)| token.to_owned())
        .collect();
    let alive = all - dead.len();
    Ok((dead, alive))
}

fn is_dead(owner: Owner, things: &[&Thing], now_s: i64) -> bool {
    let leased = things.iter().any(|thing| thing.leased);
    let youngest = things.iter().map(|thing| thing.created_s).max().unwrap_or(0);
    match owner {
        Owner::Lives => false,
        Owner::Dead => true,
        Owner::Elsewhere => !leased && now_s.saturating_sub(youngest) > YOUNG_S,
    }
}

#[cfg(test)]
mod tests {
    use super::super::inventory::Kind;
    use super::*;

    fn thing(leased: bool, created_s: i64) -> Thing {
        let kind = if leased { Kind::Container } else { Kind::Volume };
        let (name, token) = (String::new(), String::new());
        Thing { kind, name, token, namespace: None, leased, created_s }
    }

    #[test]
    fn a_run_whose_harness_is_dead_is_dead_and_one_whose_harness_lives_is_not() {
        assert!(is_dead(Owner::Dead, &[&thing(true, 1_000)], 1_000));
        assert!(!is_dead(Owner::Lives, &[&thing(false, 0)], 1_000));
    }

    #[test]
    fn a_run_from_elsewhere_is_dead_only_without_a_lease_and_when_nothing_was_made_lately() {
        assert!(!is_dead(Owner::Elsewhere, &[&thing(true, 0), &thing(false, 0)], 1_000));
        assert!(!is_dead(Owner::Elsewhere, &[&thing(false, 0), &thing(false, 950)], 1_000));
        assert!(is_dead(Owner::Elsewhere, &[&thing(false, 0), &thing(false, 900)], 1_000));
    }
}
