//! Where a run takes place: decided before anything of it exists, and said.
//!
//! `auto` takes containers when an engine answers and this executable can run in one, and local processes
//! otherwise. Somebody who names a cluster gets that one or a refusal.

use std::sync::Arc;

use anyhow::Context;
use checker::history::Function;
use harness_systems::Installation;
use runs::cluster_kind::ClusterKind;

#[cfg(feature = "docker")]
use crate::cluster::docker::{self, Engine};
use crate::cluster::ports::{self, Layout, PortPlan};
use crate::config::RunOptions;
use crate::exit::Failure;

/// A place that was looked at and found fit.
pub enum Site {
    /// Ports of this machine that were free a moment ago, and the system as it was found here.
    Process(PortPlan, Arc<dyn Installation>),
    /// An engine that answers.
    #[cfg(feature = "docker")]
    Docker(Engine),
}

/// Decides, and writes the decision into the options. The simulator needs no site.
pub async fn settle(options: &mut RunOptions) -> Result<Option<Site>, Failure> {
    options.system.unpack().map_err(|why| of_the_system(options, &why))?;
    if options.workload.has_clients()
        && let Some(functions) = ask_a_client(options)?
    {
        options.check_functions(&functions)?;
        options.functions = Some(functions);
    }
    if options.cluster.kind == ClusterKind::Auto && options.system.traits().runs_only_in(ClusterKind::Sim) {
        options.cluster.kind = ClusterKind::Sim;
        options.cluster.reason = format!("auto: {} lives in virtual time alone", options.system.name());
    }
    Ok(Some(match options.cluster.kind {
        ClusterKind::Sim => return Ok(None),
        ClusterKind::Docker => in_containers(options).await?,
        ClusterKind::Auto => automatic(options).await?,
        ClusterKind::Process => as_processes(options)?,
    }))
}

/// What a client of the system can do, where it has to be asked.
fn ask_a_client(options: &RunOptions) -> Result<Option<Vec<Function>>, Failure> {
    let executable = std::env::current_exe().context("finding this executable")?;
    options.system.functions(&executable).map_err(|why| of_the_system(options, &why))
}

/// Something is wrong with the system that was asked for.
fn of_the_system(options: &RunOptions, why: &str) -> Failure {
    Failure::usage(format!("--system {}: {why}", options.system.name()))
}

impl Site {
    /// The system as it was found on this machine, where that matters.
    pub fn installation(&self) -> Option<&Arc<dyn Installation>> {
        match self {
            Self::Process(_, installation) => Some(installation),
            #[cfg(feature = "docker")]
            Self::Docker(_) => None,
        }
    }
}

fn as_processes(options: &RunOptions) -> Result<Site, Failure> {
    let installation =
        options.system.install(&options.wanted()).map_err(|why| of_the_system(options, &why))?;
    let layout = Layout::of(options.members(), options.system.traits())?;
    Ok(Site::Process(ports::take(layout, options.base_port)?, installation))
}

/// `auto` said no to containers for this reason.
fn fall_back(options: &mut RunOptions, reason: String) -> Result<Site, Failure> {
    options.cluster.kind = ClusterKind::Process;
    options.cluster.reason = format!("auto: {reason}");
    as_processes(options)
}

#[cfg(feature = "docker")]
async fn in_containers(_options: &mut RunOptions) -> Result<Site, Failure> {
    let engine = Engine::find().await.map_err(|none| Failure::usage(format!("--cluster docker: {none}")))?;
    docker::fits(&engine).map_err(|unfit| Failure::usage(format!("--cluster docker: {unfit}")))?;
    Ok(Site::Docker(engine))
}

#[cfg(feature = "docker")]
async fn automatic(options: &mut RunOptions) -> Result<Site, Failure> {
    if options.base_port.is_some() {
        return fall_back(options, "--base-port is for local processes".to_owned());
    }
    if options.system.traits().runs_only_in(ClusterKind::Process) {
        return fall_back(options, format!("--system {} is for local processes", options.system.name()));
    }
    let asked_for = options.containers.any();
    let engine = match Engine::find().await {
        Ok(engine) => engine,
        Err(none) if asked_for => return Err(Failure::usage(format!("--image and --publish: {none}"))),
        Err(none) if options.system.traits().runs_only_in(ClusterKind::Docker) => {
            return Err(of_the_system(options, &none.to_string()));
        }
        Err(none) => return fall_back(options, none.to_string()),
    };
    if let Err(unfit) = docker::fits(&engine) {
        if options.system.traits().runs_only_in(ClusterKind::Docker) {
            return Err(of_the_system(options, &unfit));
        }
        return fall_back(options, unfit);
    }
    if !asked_for && !options.system.traits().runs_only_in(ClusterKind::Docker) && !engine.place().is_local()
    {
        let reason =
            format!("the engine at {} is on another machine, which asks for --publish", engine.place());
        return fall_back(options, reason);
    }
    options.cluster.kind = ClusterKind::Docker;
    options.cluster.reason = format!("auto: {} answers", engine.describe());
    Ok(Site::Docker(engine))
}

#[cfg(not(feature = "docker"))]
async fn in_containers(_options: &mut RunOptions) -> Result<Site, Failure> {
    Err(Failure::usage(
        "--cluster docker: this harness was built without it; build it with the feature `docker`, which is \
         on by default",
    ))
}

#[cfg(not(feature = "docker"))]
async fn automatic(options: &mut RunOptions) -> Result<Site, Failure> {
    fall_back(options, "this harness was built without containers".to_owned())
}
