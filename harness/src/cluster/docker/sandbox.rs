//! A member's sandbox: a container that runs our agent and owns the network and the processes of one member.
//!
//! It has an address before the member starts and keeps it when the member is started again. It must not
//! end while the run goes on; when it does, that is told as a failure of the harness.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use bollard::models::{
    ContainerCreateBody, EndpointSettings, HostConfig, HostConfigLogConfig, Mount, MountType,
    MountVolumeOptions, NetworkingConfig, PortBinding,
};
use runs::member::MemberId;
use tokio::sync::watch;

use super::agent::Agent;
use super::container::{self, Exit};
use super::failure::FirstFailure;
use super::image::{DATA, EXECUTABLE};
use super::labels::SANDBOX;
use super::limits::{MEMORY_BYTES, MOST_PROCESSES};
use super::resources::Resources;
use super::within::OUTPUT;
use crate::cluster::voice::Place;

/// How long a container's description may take.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);
/// How long the engine may take to tell how a container ended that has ended.
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
/// How often the way to an agent and back is tried, and with it the whole way through the engine.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A running sandbox.
pub(super) struct Sandbox {
    /// Its container.
    pub(super) id: String,
    /// The member's address on the run's network.
    pub(super) address: IpAddr,
    /// Where the engine publishes the member's ports, if it does.
    pub(super) published: BTreeMap<u16, u16>,
    /// What acts inside.
    pub(super) agent: Arc<Agent>,
}

/// What a sandbox is made of.
pub(super) struct Plan<'a> {
    pub(super) resources: &'a Resources,
    pub(super) image: &'a str,
    pub(super) network: &'a str,
    /// The member's volumes and where they are mounted.
    pub(super) volumes: &'a [(String, String)],
    /// The volume into which everybody writes what is asserted, where tests are run.
    pub(super) output: Option<&'a str>,
    /// Where the system serves clients, and is asked how it is.
    pub(super) ports: Vec<u16>,
    /// The address on which those ports are published.
    pub(super) publish: Option<IpAddr>,
    /// What the member calls itself, where it is no number.
    pub(super) hostname: Option<&'a str>,
    /// What others call it.
    pub(super) aliases: &'a [String],
    pub(super) failure: &'a FirstFailure,
}

impl Plan<'_> {
    /// Starts the sandbox of a member.
    pub(super) async fn start(&self, member: &Place) -> anyhow::Result<Sandbox> {
        let part = format!("n{}-sandbox", member.id.0);
        let engine = self.resources.engine();
        let id = container::make(self.resources, &self.resources.name(&part), self.body(member.id)).await?;
        let attached = container::attach(engine, &id, true).await?;
        let exit = container::start(self.resources, &id).await?;
        let log = crate::cluster::voice::append(&member.folder.join("agent.log"))?;
        let agent = Arc::new(Agent::new(engine, self.failure, member.id, attached, log));
        self.watch(Arc::clone(&agent), exit);
        let (address, published) =
            self.look(&id).await.with_context(|| format!("the sandbox of n{}", member.id.0))?;
        Ok(Sandbox { id, address, published, agent })
    }

    fn body(&self, member: MemberId) -> ContainerCreateBody {
        let binding = |address: IpAddr| PortBinding { host_ip: Some(address.to_string()), host_port: None };
        let published: Option<HashMap<String, Option<Vec<PortBinding>>>> = self.publish.map(|address| {
            self.ports.iter().map(|port| (of_tcp(*port), Some(vec![binding(address)]))).collect()
        });
        ContainerCreateBody {
            image: Some(self.image.to_owned()),
            cmd: Some(vec![EXECUTABLE.to_owned(), "agent".to_owned()]),
            hostname: Some(self.hostname.map_or_else(|| format!("n{}", member.0), str::to_owned)),
            networking_config: (!self.aliases.is_empty()).then(|| NetworkingConfig {
                endpoints_config: Some(HashMap::from([(
                    self.network.to_owned(),
                    EndpointSettings { aliases: Some(self.aliases.to_vec()), ..EndpointSettings::default() },
                )])),
            }),
            labels: Some(self.resources.labels().of(SANDBOX)),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(true),
            // The end of the one who attached is the end of the agent's input.
            stdin_once: Some(true),
            exposed_ports: published.as_ref().map(|_| self.ports.iter().map(|port| of_tcp(*port)).collect()),
            host_config: Some(bounded(HostConfig {
                network_mode: Some(self.network.to_owned()),
                port_bindings: published,
                auto_remove: Some(true),
                cap_drop: Some(vec!["ALL".to_owned()]),
                cap_add: Some(["NET_ADMIN", "SYS_PTRACE", "KILL"].map(str::to_owned).to_vec()),
                mounts: Some(self.mounts()),
                ..confined()
            })),
            ..ContainerCreateBody::default()
        }
    }

    fn mounts(&self) -> Vec<Mount> {
        let own = self.volumes.iter().map(|(name, path)| look_at(name, path));
        own.chain(self.output.map(|name| shared(name, OUTPUT))).collect()
    }

    /// The address that it got, and the ports that were published for its own.
    async fn look(&self, id: &str) -> anyhow::Result<(IpAddr, BTreeMap<u16, u16>)> {
        let name = id.to_owned();
        let seen = self
            .resources
            .engine()
            .call("looking at a container", LOOK_PATIENCE, |docker| async move {
                docker.inspect_container(&name, None).await
            })
            .await?;
        let settings = seen.network_settings.ok_or_else(|| anyhow!("the engine tells of no network"))?;
        let networks = settings.networks.unwrap_or_default();
        let address = networks.values().find_map(|network| network.ip_address.as_deref()?.parse().ok());
        let address = address.ok_or_else(|| anyhow!("it got no address: it may have ended at once"))?;
        let mut published = BTreeMap::new();
        if self.publish.is_some() {
            let ports = settings.ports.unwrap_or_default();
            for own in &self.ports {
                let bindings = ports.get(&of_tcp(*own)).cloned().flatten().unwrap_or_default();
                let port = bindings.iter().find_map(|binding| binding.host_port.as_deref()?.parse().ok());
                published.insert(*own, port.ok_or_else(|| anyhow!("its port {own} was not published"))?);
            }
        }
        Ok((address, published))
    }

    /// Sees to it that its end, or its silence, is told.
    fn watch(&self, agent: Arc<Agent>, mut exit: watch::Receiver<Option<Exit>>) {
        let (engine, failure) = (self.resources.engine().clone(), self.failure.clone());
        let task = async move {
            let silent = async {
                loop {
                    tokio::time::sleep(HEARTBEAT).await;
                    if let Err(error) = agent.heartbeat().await {
                        break error.to_string();
                    }
                }
            };
            let why = tokio::select! {
                gone = agent.gone() => gone,
                silent = silent => silent,
            };
            if failure.is_expected() {
                return;
            }
            let ended = tokio::time::timeout(EXIT_PATIENCE, exit.wait_for(Option::is_some)).await;
            let ended = ended.ok().and_then(Result::ok).and_then(|exit| exit.clone());
            failure.report_sandbox(&engine, agent.member(), &why, ended.as_ref()).await;
        };
        self.resources.engine().spawn(task);
    }
}

/// A member's volume as its sandbox sees it: to be read from at the end, and by nobody before.
fn look_at(name: &str, path: &str) -> Mount {
    Mount {
        source: Some(name.to_owned()),
        target: Some(path.to_owned()),
        typ: Some(MountType::VOLUME),
        read_only: Some(true),
        volume_options: Some(MountVolumeOptions { no_copy: Some(true), ..MountVolumeOptions::default() }),
        ..Mount::default()
    }
}

/// A volume of the run's as everybody sees it who may write there.
pub(super) fn shared(name: &str, path: &str) -> Mount {
    Mount {
        source: Some(name.to_owned()),
        target: Some(path.to_owned()),
        typ: Some(MountType::VOLUME),
        ..Mount::default()
    }
}

/// What holds for every container of our own image: it can't write anywhere but to its volume, nor get more
/// rights than it has, and the engine keeps no log of what is read here anyway.
pub(super) fn confined() -> HostConfig {
    HostConfig {
        readonly_rootfs: Some(true),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..HostConfig::default()
    }
}

/// What bounds every container of a run: a member that leaks takes neither the memory nor the processes of
/// the machine. Both bounds are far above what a member needs.
pub(super) fn bounded(host: HostConfig) -> HostConfig {
    HostConfig { memory: Some(MEMORY_BYTES), pids_limit: Some(MOST_PROCESSES), ..host }
}

/// Where a member's volumes are mounted.
pub(super) fn mount_points(own_image: bool) -> Vec<String> {
    let places: &[&str] = if own_image { &[DATA] } else { &[DATA, "/datalog"] };
    places.iter().map(|place| (*place).to_owned()).collect()
}

/// A port as the engine names it.
fn of_tcp(port: u16) -> String {
    format!("{port}/tcp")
}

/// The address of a published port on which clients dial: "any" is no address to dial.
pub(super) fn dialled(publish: IpAddr, engine: Option<IpAddr>, port: u16) -> SocketAddr {
    let host =
        if publish.is_unspecified() { engine.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)) } else { publish };
    SocketAddr::new(host, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_published_on_every_address_is_dialled_at_the_engine() {
        let (any, engine) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(dialled(any, Some(engine), 7).to_string(), "192.0.2.1:7");
        assert_eq!(dialled(any, None, 7).to_string(), "127.0.0.1:7");
        assert_eq!(dialled(engine, None, 7).to_string(), "192.0.2.1:7");
    }
}
