//! A protocol as a system: its members live in virtual time alone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use checker::history::Function;
use harness_core::virtual_ensemble::{Setting, VirtualEnsemble};
use harness_protocols::entry::{Entry, Serves};
use harness_systems::catalogue::Chosen;
use harness_systems::system::{Dialling, Installation, System, Traits};
use runs::cluster_kind::ClusterKind;
use runs::comes_back::{ComesBack, When};
use runs::results::SystemInfo;
use workloads::Workload;

/// From one fault to the next, when nobody says.
const USUAL_INTERVAL: Duration = Duration::from_secs(4);

/// A protocol whose members serve clients.
pub(super) struct OfProtocol {
    protocol: &'static Entry,
    serves: Serves,
}

impl OfProtocol {
    /// The system of that name.
    pub(super) fn chosen(text: &str, protocol: &'static Entry) -> Chosen {
        let serves = protocol.serves.filter(|_| text == protocol.name)?;
        Some(Ok(Arc::new(Self { protocol, serves }) as _))
    }
}

/// Its world. A bug that it does not have is refused before.
pub(super) fn begin(protocol: &Entry, setting: &Setting, workload: Workload) -> Box<dyn VirtualEnsemble> {
    let made = (protocol.make)(setting.bug).or_else(|| (protocol.make)(None));
    made.expect("a protocol without a bug").begin(setting, workload)
}

impl fmt::Debug for OfProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.protocol.name)
    }
}

impl System for OfProtocol {
    fn name(&self) -> String {
        self.protocol.name.to_owned()
    }

    fn traits(&self) -> Traits {
        Traits {
            whose: self.protocol.name,
            clusters: &[ClusterKind::Sim],
            tells_synced: true,
            tells_leader: true,
            replaces: false,
            observers: false,
            takes_bugs: false,
            usual_interval: USUAL_INTERVAL,
            usual_peer_timeout: self.serves.peer_timeout,
            peer_ports: 0,
            clients_at: None,
            is_a_group: false,
            dialling: Dialling::ByPair,
            introduced_at: None,
        }
    }

    fn lacks(&self, function: Function) -> Option<String> {
        let all: Vec<String> = self.serves.functions.iter().map(Function::to_string).collect();
        (!self.serves.functions.contains(&function))
            .then(|| format!("members of {} answer {} and nothing else", self.protocol.name, all.join(", ")))
    }

    fn has_bug(&self, name: &str) -> bool {
        self.protocol.mutants.iter().any(|mutant| mutant.name == name)
    }

    fn comes_back(&self) -> ComesBack {
        ComesBack { when: When::WithQuorum, source: "harness/paxos".to_owned(), ..ComesBack::default() }
    }

    fn described(&self, _: Option<&dyn Installation>) -> SystemInfo {
        let name = self.protocol.name.to_owned();
        SystemInfo { name: name.clone(), before: name, ..SystemInfo::default() }
    }
}
