//! Names that flags take, as help shows them and shells complete them.
//!
//! A name is only shown here. Whether it is known is decided where it is meant, because a message of ours
//! says more than clap's would, and because some flags take a list of them.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use harness_systems::mutant::ClientMutant;
use runs::cluster_kind::ClusterKind;
use workloads::{Kind, Promise};

use crate::nemesis::Nemesis;
use crate::protocols::PROTOCOLS;
use crate::systems::CATALOGUE;
use crate::text::suggest;

/// What there is to list.
pub(crate) const LISTS: [&str; 11] = [
    "nemeses",
    "swarm",
    "workloads",
    "systems",
    "settings",
    "models",
    "conditions",
    "faults",
    "mutants",
    "protocols",
    "scenarios",
];

/// Members and clients as they are.
pub(crate) const NO_MUTANT: &str = "none";

/// Any text; these names are shown.
#[derive(Clone)]
pub struct Named(fn() -> Vec<&'static str>);

impl TypedValueParser for Named {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// Where members may run.
pub fn a_cluster() -> Named {
    Named(clusters)
}

/// What may be tested.
pub fn a_system() -> Named {
    Named(systems)
}

/// What only some systems are told.
pub fn a_setting() -> Named {
    Named(settings)
}

/// What clients may do.
pub fn a_workload() -> Named {
    Named(workloads)
}

/// What a system may be held to.
pub fn a_promise() -> Named {
    Named(promises)
}

/// What may be broken.
pub fn a_nemesis() -> Named {
    Named(Nemesis::names)
}

/// What may be planted.
pub fn a_mutant() -> Named {
    Named(mutants)
}

/// What may be listed.
pub fn a_list() -> Named {
    Named(|| LISTS.to_vec())
}

pub(super) fn clusters() -> Vec<&'static str> {
    ClusterKind::ALL.map(ClusterKind::name).to_vec()
}

pub(super) fn promises() -> Vec<&'static str> {
    Promise::ALL.map(Promise::name).to_vec()
}

pub(super) fn workloads() -> Vec<&'static str> {
    Kind::ALL.iter().map(|workload| workload.name()).collect()
}

pub(super) fn systems() -> Vec<&'static str> {
    CATALOGUE.systems().map(|system| system.name).collect()
}

fn settings() -> Vec<&'static str> {
    CATALOGUE.settings().into_iter().map(|(setting, _)| setting.name).collect()
}

/// Bugs of the bundled node.
pub(super) fn bugs() -> Vec<&'static str> {
    lab_mutants::ALL.iter().map(|bug| bug.name()).collect()
}

/// Those, the clients', and those of protocols whose members serve clients.
pub(super) fn mutants() -> Vec<&'static str> {
    let serving = PROTOCOLS.iter().filter(|protocol| protocol.serves.is_some());
    let protocols = serving.flat_map(|protocol| protocol.mutants.iter().map(|bug| bug.name));
    bugs().into_iter().chain(ClientMutant::ALL.iter().map(|bug| bug.name())).chain(protocols).collect()
}

/// Nemeses, on lines that a terminal shows whole.
pub(super) fn nemeses() -> String {
    suggest::listed(&Nemesis::names())
}

/// The long lists, which would fill the help of their flags.
pub(super) fn of_a_run() -> String {
    format!(
        "Nemeses (`harness list nemeses` says what each does):\n{}\n\nMutants (`harness list mutants`):\n{}",
        nemeses(),
        suggest::listed(&mutants())
    )
}
