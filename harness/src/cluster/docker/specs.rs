//! Specifications of containers: of members, by our own image or by one that was named, and of services that
//! are no members.
//!
//! The system says what runs in them ([`Contained`]). An image that was named keeps its user and its root.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, EndpointSettings, HealthConfig, HostConfig, Mount, MountType, NetworkingConfig,
    ResourcesUlimits,
};
use harness_systems::{Auxiliary, Contained, HealthCheck, Placement, Service, Volume};

use super::image::NOBODY;
use super::sandbox::{bounded, confined, shared};
use super::within::{self, OUTPUT};

/// Where programs of a container write what they assert.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    /// The volume that all containers share.
    pub(super) volume: &'a str,
    /// What tells the file of this start from those of others.
    pub(super) file: u64,
}

impl Output<'_> {
    /// The same body with the volume, and with what its programs are told of it.
    fn into(self, service: &Service, mut body: ContainerCreateBody) -> ContainerCreateBody {
        let told = within::environment(&service.name, &format!("container-{}", self.file));
        body.env.get_or_insert_default().extend(told);
        let host = body.host_config.get_or_insert_default();
        host.mounts.get_or_insert_default().push(shared(self.volume, OUTPUT));
        body
    }
}

/// What all members' containers have in common.
pub(super) struct Common<'a> {
    /// The container whose namespaces it joins.
    pub(super) sandbox: &'a str,
    /// Its volumes and where they are mounted.
    pub(super) volumes: &'a [(String, String)],
    /// Where its programs write what they assert, where tests are run.
    pub(super) output: Option<Output<'a>>,
    /// What it carries.
    pub(super) labels: HashMap<String, String>,
}

impl Common<'_> {
    /// A service of a file, on the volumes that were made for it.
    pub(super) fn service(&self, service: &Service) -> ContainerCreateBody {
        let mut host = self.host(asked_for(service));
        if service.process_1 {
            // The network alone is shared then.
            host.pid_mode = None;
        }
        let body = described(service, self.body(host));
        match self.output {
            Some(output) => output.into(service, body),
            None => body,
        }
    }

    fn host(&self, base: HostConfig) -> HostConfig {
        let namespace = format!("container:{}", self.sandbox);
        let mut mounts = base.mounts.clone().unwrap_or_default();
        mounts.extend(self.volumes.iter().map(|(name, path)| shared(name, path)));
        bounded(HostConfig {
            network_mode: Some(namespace.clone()),
            pid_mode: Some(namespace),
            auto_remove: Some(true),
            mounts: Some(mounts),
            ..base
        })
    }

    fn body(&self, host: HostConfig) -> ContainerCreateBody {
        ContainerCreateBody {
            labels: Some(self.labels.clone()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        }
    }

    /// Our own image as a member.
    pub(super) fn ours(
        &self,
        image: &str,
        system: &dyn Contained,
        placement: &Placement<'_>,
    ) -> ContainerCreateBody {
        let host = HostConfig { cap_drop: Some(vec!["ALL".to_owned()]), ..confined() };
        ContainerCreateBody {
            image: Some(image.to_owned()),
            cmd: Some(system.command(placement)),
            user: Some(format!("{NOBODY}:{NOBODY}")),
            ..self.body(self.host(host))
        }
    }

    /// An image that was named; without a command it runs its own.
    pub(super) fn named(
        &self,
        (image, command): (&str, &[String]),
        system: &dyn Contained,
        placement: &Placement<'_>,
    ) -> ContainerCreateBody {
        let environment = system.environment(placement);
        ContainerCreateBody {
            image: Some(image.to_owned()),
            cmd: (!command.is_empty()).then(|| command.to_vec()),
            env: Some(environment.into_iter().map(|(name, value)| format!("{name}={value}")).collect()),
            ..self.body(self.host(HostConfig::default()))
        }
    }
}

/// A service that stands beside the members: on their network under its own names, in namespaces of its own.
pub(super) fn auxiliary(
    Auxiliary { service, health, .. }: &Auxiliary,
    network: &str,
    volumes: &[(String, String)],
    output: Option<Output<'_>>,
    labels: HashMap<String, String>,
) -> ContainerCreateBody {
    let mut host = bounded(HostConfig { network_mode: Some(network.to_owned()), ..asked_for(service) });
    host.mounts.get_or_insert_default().extend(volumes.iter().map(|(name, path)| shared(name, path)));
    let names = EndpointSettings { aliases: Some(service.aliases.clone()), ..EndpointSettings::default() };
    let body = ContainerCreateBody {
        labels: Some(labels),
        hostname: Some(service.hostname.clone().unwrap_or_else(|| service.name.clone())),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(network.to_owned(), names)])),
        }),
        healthcheck: health.as_ref().map(health_check),
        open_stdin: service.stdin_open.then_some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    };
    let body = described(service, body);
    match output {
        Some(output) => output.into(service, body),
        None => body,
    }
}

fn health_check(health: &HealthCheck) -> HealthConfig {
    let nanoseconds = |time: std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    HealthConfig {
        test: (!health.test.is_empty()).then(|| health.test.clone()),
        interval: health.interval.map(nanoseconds),
        timeout: health.timeout.map(nanoseconds),
        start_period: health.start_period.map(nanoseconds),
        retries: health.retries.map(i64::from),
        ..HealthConfig::default()
    }
}

/// What a file asks of the machine for a service.
fn asked_for(service: &Service) -> HostConfig {
    let limit = |(name, soft, hard): &(String, i64, i64)| ResourcesUlimits {
        name: Some(name.clone()),
        soft: Some(*soft),
        hard: Some(*hard),
    };
    let bound = |volume: &Volume| match volume {
        Volume::Bound { from, target, read_only } => Some(Mount {
            source: Some(from.display().to_string()),
            target: Some(target.clone()),
            typ: Some(MountType::BIND),
            read_only: Some(*read_only),
            ..Mount::default()
        }),
        Volume::Own { .. } => None,
    };
    HostConfig {
        cap_add: some(&service.cap_add),
        init: service.init.then_some(true),
        ulimits: Some(service.ulimits.iter().map(limit).collect()),
        mounts: Some(service.volumes.iter().filter_map(bound).collect()),
        ..HostConfig::default()
    }
}

/// The same body as this service.
fn described(service: &Service, body: ContainerCreateBody) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(service.image.clone()),
        entrypoint: some(&service.entrypoint),
        cmd: some(&service.command),
        env: some(&service.environment),
        user: service.user.clone(),
        working_dir: service.working_dir.clone(),
        ..body
    }
}

fn some(words: &[String]) -> Option<Vec<String>> {
    (!words.is_empty()).then(|| words.to_vec())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use harness_systems::System;
    use harness_zookeeper::ZooKeeper;
    use runs::member::MemberId;

    use super::*;
    use crate::cluster::docker::image::{DATA, EXECUTABLE};

    const PLACEMENT: Placement<'static> = Placement {
        executable: EXECUTABLE,
        data: DATA,
        ensemble: &[],
        voters: &[MemberId(1)],
        id: MemberId(1),
        peer_timeout: Duration::from_millis(250),
        bug: None,
        lose_unsynced: false,
    };

    fn common<'a>(volumes: &'a [(String, String)]) -> Common<'a> {
        Common { sandbox: "h1", volumes, output: None, labels: HashMap::new() }
    }

    #[test]
    fn our_own_image_has_no_rights() {
        let volumes = [("v".to_owned(), DATA.to_owned())];
        let system = ZooKeeper::Node.contained().expect("it runs in containers");
        let body = common(&volumes).ours("harness:x", system, &PLACEMENT);
        let host = body.host_config.expect("a host configuration");
        assert_eq!(body.user.as_deref(), Some("65534:65534"));
        assert_eq!(host.pid_mode.as_deref(), Some("container:h1"));
        assert_eq!((host.cap_drop, host.cap_add), (Some(vec!["ALL".to_owned()]), None));
        assert_eq!((host.readonly_rootfs, host.restart_policy), (Some(true), None));
        assert_eq!((host.memory, host.pids_limit), (Some(2 << 30), Some(4_096)));
    }

    #[test]
    fn an_image_that_was_named_keeps_its_command_and_its_user() {
        let volumes = [("v".to_owned(), DATA.to_owned())];
        let system = ZooKeeper::Node.contained().expect("it runs in containers");
        let body = common(&volumes).named(("zookeeper:3.9", &[]), system, &PLACEMENT);
        assert!(body.env.is_some_and(|env| !env.is_empty()));
        assert_eq!((body.cmd, body.user), (None, None));
        let host = body.host_config.expect("a host configuration");
        assert_eq!((host.memory, host.pids_limit), (Some(2 << 30), Some(4_096)));
    }
}
