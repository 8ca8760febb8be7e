//! What members say of themselves, and what their trees hold.

use std::time::Duration;

use bytestring::ByteString;
use lab_apps::elections::RESOURCE;
use node_core::{Phase, Role, Status};
use node_recipes::names::{child, in_order};
use node_wire::ids::{Epoch, SessionId};

use crate::network::HostIndex;
use crate::watcher::{TWINS, below};
use crate::world::{Clockwork, Ensemble};
use harness_world::time::Time;

impl Ensemble {
    /// The znodes below the resource and their sessions, in every member that serves; nothing where there is
    /// no resource.
    pub(in crate::world) fn lines(&self) -> Vec<Vec<(ByteString, SessionId)>> {
        let processes = self.hosts.iter().filter_map(|host| host.process.as_ref());
        let serving = processes.filter(|process| process.established);
        let line = |process: &crate::host::Process| {
            let snapshot = process.member().tree();
            let tree = snapshot.tree();
            let (names, _) = tree.get_children(RESOURCE).unwrap_or_default();
            let owner =
                |path: &ByteString| tree.exists(path).map_or(SessionId::NONE, |stat| stat.ephemeral_owner);
            let contenders = in_order(&names).into_iter().map(|contender| child(RESOURCE, &contender.name));
            contenders.map(|path| (path.clone(), owner(&path))).collect()
        };
        serving.map(line).collect()
    }

    /// The line as the member knows it that leads, or as any other does.
    pub(in crate::world) fn line(&self) -> Vec<ByteString> {
        let leads = |process: &crate::host::Process| process.role == Role::Leading;
        let processes: Vec<_> = self.hosts.iter().filter_map(|host| host.process.as_ref()).collect();
        let serving = processes.iter().filter(|process| process.established);
        let place = serving.clone().position(|process| leads(process)).unwrap_or(0);
        let mut lines = self.lines();
        if place < lines.len() {
            lines.swap_remove(place).into_iter().map(|(path, _)| path).collect()
        } else {
            Vec::new()
        }
    }

    pub(in crate::world) fn running(&self) -> Vec<(HostIndex, Status)> {
        let status = |(host, machine): (HostIndex, &crate::host::Host)| {
            machine.process.as_ref().map(|process| (host, process.member().status()))
        };
        self.hosts.iter().enumerate().filter_map(status).collect()
    }

    /// Whether a member's disk has still to do what it was told before this moment.
    pub(in crate::world) fn is_behind(&self, host: HostIndex, moment: Time) -> bool {
        let process = self.hosts[host].process.as_ref();
        process.and_then(|process| process.store.waits_since()).is_some_and(|since| since < moment)
    }

    pub(in crate::world) fn promised(&self, host: HostIndex) -> Epoch {
        let process = self.hosts[host].process.as_ref();
        process.map_or(Epoch::ZERO, |process| process.member().status().accepted_epoch)
    }

    pub(in crate::world) fn mono(&self, clock: &Clockwork, host: HostIndex) -> Duration {
        self.hosts[host].clock.read(clock.now).mono
    }

    pub(in crate::world) fn statuses(&self) -> Option<Vec<Status>> {
        self.hosts.iter().map(|host| host.process.as_ref().map(|process| process.member().status())).collect()
    }

    /// What keeps the ensemble from being led, if anything does.
    pub(in crate::world) fn not_elected(&self) -> Option<String> {
        let Some(statuses) = self.statuses() else { return Some("a member is not running".to_owned()) };
        if statuses.iter().any(|status| !status.established) {
            return Some(format!(
                "the healed ensemble elected nobody in time: {}",
                roles(statuses.iter().enumerate())
            ));
        }
        if statuses.iter().filter(|status| status.role == Role::Leading).count() != 1 {
            return Some(format!(
                "the healed ensemble has not one leader: {}",
                roles(statuses.iter().enumerate())
            ));
        }
        None
    }

    pub(in crate::world) fn phase(&self, host: HostIndex) -> Option<Phase> {
        self.hosts[host].process.as_ref().map(|process| process.phase)
    }

    /// In every member's tree the twins are the same.
    pub(in crate::world) fn parted_twins(&self) -> Option<String> {
        let running = self.hosts.iter().filter_map(|host| Some((host.id, host.process.as_ref()?)));
        for (id, process) in running {
            let image = process.member().tree().to_image();
            let data_of = |path: String| {
                image.nodes.iter().find(|node| *node.path == *path).map(|node| node.data.clone())
            };
            let [first, second] = TWINS.map(|twin| data_of(below(twin)));
            if first.is_some() && second.is_some() && first != second {
                return Some(format!("server {} holds a half of what was written together", id.0));
            }
        }
        None
    }
}

pub(in crate::world) fn roles<'a>(statuses: impl IntoIterator<Item = (HostIndex, &'a Status)>) -> String {
    let one = |(host, status): (HostIndex, &Status)| {
        let stands = if status.established { "established" } else { "not established" };
        format!("s{} {:?} {stands} epoch {}", host + 1, status.role, status.current_epoch.0)
    };
    statuses.into_iter().map(one).collect::<Vec<_>>().join(", ")
}
