//! `harness list`: what can be named on the command line, one name per line.

use checker::catalogue::{Condition, ModelName};
use harness_core::mechanism::Mechanism;
use harness_protocols::entry::Mutant;
use harness_systems::Setting;
use harness_systems::catalogue::{Entry, Meant};
use harness_systems::mutant::ClientMutant;
use workloads::Kind;

use super::screen::print;
use crate::cli::names::LISTS;
use crate::exit::{Exit, Failure};
use crate::nemesis::Nemesis;
use crate::protocols::PROTOCOLS;
use crate::systems::CATALOGUE;
use crate::text::{span, suggest};
use harness_core::fault::SwarmFault;

/// Prints the list; without a word, which lists there are.
pub fn list(what: Option<&str>) -> Result<Exit, Failure> {
    let Some(what) = what else {
        print(&LISTS.map(|kind| format!("harness list {kind}\n")).concat())?;
        return Ok(Exit::Done);
    };
    let rows = match what {
        "nemeses" | "nemesis" => nemeses(),
        "swarm" => swarm(),
        "workloads" | "workload" => workloads(),
        "systems" | "system" => systems(),
        "settings" | "setting" => settings(),
        "models" | "model" => models(),
        "conditions" | "condition" => conditions(),
        "faults" | "fault" => faults(),
        "mutants" | "mutant" => mutants(),
        "protocols" | "protocol" => protocols(),
        "scenarios" | "scenario" => scenarios(),
        _ => {
            return Err(Failure::Usage(suggest::unknown("list of", what, &LISTS, "`harness list` knows:")));
        }
    };
    print(&table(&rows))?;
    Ok(Exit::Done)
}

type Row = (&'static str, String);

/// Each with the class of faults that a cluster must be able to do for it.
fn nemeses() -> Vec<Row> {
    let mut rows = vec![(Nemesis::NONE, "breaks nothing".to_owned())];
    rows.extend(Nemesis::ALL.iter().map(|nemesis| {
        let (fewest, _) = nemesis.fewest_nodes();
        let needs = if fewest > 1 { format!(" (needs {fewest} nodes)") } else { String::new() };
        let parameters = nemesis.parameters().described();
        let takes: Vec<String> = parameters.iter().map(|(name, usual)| format!("{name}={usual}")).collect();
        let takes = if takes.is_empty() { String::new() } else { format!(" ({})", takes.join(", ")) };
        (nemesis.name(), format!("{}{needs}{takes} [{}]", nemesis.about(), nemesis.needs().name))
    }));
    rows
}

/// What the seeds of `harness sim` draw, each with the nemesis that does the same in a run, or a mark where
/// only a virtual world can.
fn swarm() -> Vec<Row> {
    let from = |fault: SwarmFault| match fault.nemesis() {
        Some(nemesis) if nemesis.name() == fault.name() => "[a nemesis of runs too]".to_owned(),
        Some(nemesis) => format!("[runs: {} in turn]", nemesis.name()),
        None => "[virtual worlds only]".to_owned(),
    };
    SwarmFault::ALL
        .into_iter()
        .map(|fault| (fault.name(), format!("{} {}", fault.about(), from(fault))))
        .collect()
}

/// What `harness sim` can live through; the first one is the members' own.
fn protocols() -> Vec<Row> {
    let row = |protocol: &harness_protocols::entry::Entry| {
        let runs =
            if protocol.serves.is_some() { "; a system of `harness run --cluster sim` too" } else { "" };
        (protocol.name, format!("{}{runs}", protocol.about))
    };
    PROTOCOLS.iter().map(row).collect()
}

fn scenarios() -> Vec<Row> {
    let all = PROTOCOLS.iter().flat_map(|protocol| protocol.scenarios.iter().map(move |one| (protocol, one)));
    all.map(|(protocol, one)| (one.name, format!("{} [{}]", one.about, protocol.name))).collect()
}

fn workloads() -> Vec<Row> {
    Kind::ALL.iter().map(|workload| (workload.name(), workload.summary().to_owned())).collect()
}

/// Each with what its runs take when nobody says otherwise.
fn systems() -> Vec<Row> {
    let usual = |example: &str| {
        let system = CATALOGUE.choose(example, Meant::of(5))?.ok()?.traits();
        let (interval, timeout) = (span::show(system.usual_interval), span::show(system.usual_peer_timeout));
        Some(format!(" [--interval {interval}, --peer-timeout {timeout}]"))
    };
    let about = |system: &Entry| format!("{}{}", system.about, usual(system.example).unwrap_or_default());
    CATALOGUE.systems().map(|system| (system.name, about(&system))).collect()
}

/// What only some systems are told, by `--set`.
fn settings() -> Vec<Row> {
    let about = |setting: &Setting, systems: &[&str]| {
        let usual = setting.usual.map(|usual| format!(" [default: {usual}]")).unwrap_or_default();
        format!(
            "--set {}={}: {}; of {}{usual}",
            setting.name,
            setting.value,
            setting.about,
            systems.join(", ")
        )
    };
    let row = |(setting, systems): (&Setting, Vec<&str>)| (setting.name, about(setting, &systems));
    CATALOGUE.settings().into_iter().map(row).collect()
}

fn models() -> Vec<Row> {
    ModelName::ALL.into_iter().map(|model| (model.name(), model.about())).collect()
}

fn conditions() -> Vec<Row> {
    Condition::ALL.into_iter().map(|condition| (condition.name(), condition.about())).collect()
}

/// What can be broken, and where.
fn faults() -> Vec<Row> {
    Mechanism::ALL.iter().map(|mechanism| (mechanism.name, mechanism.about.to_owned())).collect()
}

fn mutants() -> Vec<Row> {
    let members =
        lab_mutants::ALL.iter().map(|bug| (bug.name(), format!("{} ({})", bug.summary(), bug.origin())));
    let clients = ClientMutant::ALL.iter().map(|bug| (bug.name(), format!("{} (of clients)", bug.summary())));
    let protocols = PROTOCOLS.iter().flat_map(|protocol| {
        let row = |bug: &Mutant| (bug.name, format!("{} (of {})", bug.about, protocol.name));
        protocol.mutants.iter().map(row)
    });
    members.chain(clients).chain(protocols).collect()
}

fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, about)| format!("{name:width$}  {about}\n")).collect()
}

#[cfg(test)]
mod tests {
    use harness_core::mechanism::application::APPLICATION;

    use super::*;

    #[test]
    fn every_list_has_rows_and_an_unknown_one_is_refused() {
        for rows in [
            nemeses(),
            swarm(),
            workloads(),
            systems(),
            settings(),
            models(),
            conditions(),
            faults(),
            mutants(),
        ] {
            assert!(
                !rows.is_empty() && rows.iter().all(|(name, about)| !name.is_empty() && !about.is_empty())
            );
        }
        let (_, application) =
            faults().into_iter().find(|(name, _)| *name == APPLICATION.name).expect("a row");
        for workload in Kind::ALL.iter().filter(|workload| workload.applications().is_some()) {
            assert!(application.contains(workload.name()), "{} has applications too", workload.name());
        }
        let error = list(Some("nemises")).expect_err("no such list").to_string();
        assert!(error.contains("did you mean `nemeses`?"), "{error}");
    }
}
