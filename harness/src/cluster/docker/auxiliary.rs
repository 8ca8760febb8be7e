//! Services beside the members: started in their order, waited for, read, and otherwise left alone.
//!
//! No fault hits them. What they say goes into `services/NAME.log` in the run folder. They go with everything
//! else of the run. A job may end with exit status 0 at any time. One that ends otherwise is a failure of the
//! bench's, and ends the run: members that depend on it would be accused of its death.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use bollard::models::HealthStatusEnum;
use futures_util::StreamExt;
use harness_systems::{Auxiliary, Condition, Dependency, bounded};
use tokio::sync::watch;

use super::container::{self, Exit};
use super::engine::Engine;
use super::failure::FirstFailure;
use super::resources::Resources;
use super::specs::{self, Output};
use super::within::Within;

/// How long looking at a container may take.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);
/// From one look whether a service is healthy to the next.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Bytes of a log that are shown.
const TAIL_BYTES: u64 = 600;

/// A service that was started.
pub(super) struct Started {
    id: String,
    exit: watch::Receiver<Option<Exit>>,
    log: PathBuf,
}

/// Those that were started, and where.
pub(super) struct Auxiliaries<'a> {
    pub(super) resources: &'a Resources,
    /// The members' network.
    pub(super) network: &'a str,
    /// The run's own volumes of each, by its name.
    pub(super) volumes: &'a BTreeMap<String, Vec<(String, String)>>,
    /// The volume into which everybody writes what is asserted, where tests are run.
    pub(super) output: Option<&'a str>,
    /// Where it is told that they run, for test commands.
    pub(super) within: Option<&'a Within>,
    /// Where their words are kept.
    pub(super) folder: PathBuf,
    /// Where it is told that one ended which should not.
    pub(super) failure: &'a FirstFailure,
    /// How long a condition may take.
    pub(super) patience: Duration,
    pub(super) started: BTreeMap<String, Started>,
}

impl Auxiliaries<'_> {
    /// Starts these, one after the other, each when what it depends on is so.
    pub(super) async fn start(&mut self, these: &[Auxiliary]) -> anyhow::Result<()> {
        for auxiliary in these {
            let name = &auxiliary.service.name;
            self.wait_for(&auxiliary.after).await.with_context(|| format!("before the service {name}"))?;
            let started =
                self.begin(auxiliary).await.with_context(|| format!("starting the service {name}"))?;
            self.started.insert(name.clone(), started);
        }
        Ok(())
    }

    /// The container of a service in which the client's processes are to run.
    pub(super) fn container_of(&self, name: &str) -> anyhow::Result<String> {
        let started = self.started.get(name).ok_or_else(|| anyhow!("the service {name} was not started"))?;
        if let Some(exit) = started.exit.borrow().as_ref() {
            bail!(
                "the service {name} ended ({}), and must not, because the client's processes run in its \
                 container{}",
                exit.words(),
                tail(started)
            );
        }
        Ok(started.id.clone())
    }

    async fn begin(&self, auxiliary: &Auxiliary) -> anyhow::Result<Started> {
        let (resources, name) = (self.resources, &auxiliary.service.name);
        let volumes = self.volumes.get(name).map(Vec::as_slice).unwrap_or_default();
        let output = self.output.map(|volume| Output { volume, file: 1 });
        let labels = resources.labels().of("service");
        let body = specs::auxiliary(auxiliary, self.network, volumes, output, labels);
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("creating {}", self.folder.display()))?;
        let log = self.folder.join(format!("{name}.log"));
        let mut words = std::fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let id = container::make(resources, &resources.name(&format!("service-{name}")), body).await?;
        let mut attached = container::attach(resources.engine(), &id, false).await?;
        resources.engine().spawn(async move {
            while let Some(Ok(piece)) = attached.output.next().await {
                // What can't be written down is lost for the reader of the folder only.
                let _ = words.write_all(&piece.into_bytes());
            }
        });
        let exit = container::start(resources, &id).await?;
        self.watch(name, exit.clone());
        if let Some(within) = self.within {
            within.runs(name, id.clone());
        }
        Ok(Started { id, exit, log })
    }

    /// Sees to it that an end that nobody wanted is told.
    fn watch(&self, name: &str, mut exit: watch::Receiver<Option<Exit>>) {
        let (name, failure) = (name.to_owned(), self.failure.clone());
        self.resources.engine().spawn(async move {
            let ended = exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
            if let Some(exit) = ended.filter(|exit| *exit != Exit::Status(0)) {
                failure
                    .report(format!("the service {name} ended ({}); see services/{name}.log", exit.words()));
            }
        });
    }

    /// Waits until all of this is so.
    pub(super) async fn wait_for(&self, dependencies: &[Dependency]) -> anyhow::Result<()> {
        for Dependency { on, condition } in dependencies {
            let started = self.started.get(on).ok_or_else(|| anyhow!("the service {on} was not started"))?;
            match condition {
                Condition::Started => {}
                Condition::Completed => self.completed(on, started).await?,
                Condition::Healthy => self.healthy(on, started).await?,
            }
        }
        Ok(())
    }

    async fn completed(&self, name: &str, started: &Started) -> anyhow::Result<()> {
        let mut exit = started.exit.clone();
        let ended = tokio::time::timeout(self.patience, exit.wait_for(Option::is_some)).await;
        match ended.ok().and_then(Result::ok).and_then(|exit| exit.clone()) {
            Some(Exit::Status(0)) => Ok(()),
            Some(exit) => bail!("the service {name} did not complete: {}{}", exit.words(), tail(started)),
            None => {
                let seconds = self.patience.as_secs();
                bail!("the service {name} did not complete within {seconds} s{}", tail(started))
            }
        }
    }

    async fn healthy(&self, name: &str, started: &Started) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            if let Some(exit) = started.exit.borrow().clone() {
                bail!("the service {name} ended ({}) before it was healthy{}", exit.words(), tail(started));
            }
            match health(self.resources.engine(), &started.id).await? {
                Some(HealthStatusEnum::HEALTHY) => return Ok(()),
                Some(HealthStatusEnum::NONE | HealthStatusEnum::EMPTY) | None => {
                    bail!("nobody can tell whether the service {name} is healthy: give it a healthcheck")
                }
                Some(HealthStatusEnum::STARTING | HealthStatusEnum::UNHEALTHY)
                    if begun.elapsed() < self.patience => {}
                Some(_) => {
                    let seconds = self.patience.as_secs();
                    bail!("the service {name} is not healthy within {seconds} s{}", tail(started))
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// What the engine says of its health; none where it does not look.
async fn health(engine: &Engine, id: &str) -> anyhow::Result<Option<HealthStatusEnum>> {
    let id = id.to_owned();
    let seen = engine
        .call("looking at a container", LOOK_PATIENCE, |docker| async move {
            docker.inspect_container(&id, None).await
        })
        .await?;
    Ok(seen.state.and_then(|state| state.health).and_then(|health| health.status))
}

/// The end of its log, for a message.
fn tail(started: &Started) -> String {
    let end = bounded::tail(&started.log, TAIL_BYTES).trim().to_owned();
    if end.is_empty() { String::new() } else { format!("; the end of its log:\n{end}") }
}
