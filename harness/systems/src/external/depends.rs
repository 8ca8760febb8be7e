//! What starts before what in a Compose file: `depends_on` with its conditions, and `healthcheck`.
//!
//! Members start together, so what they depend on among each other is left out. What they depend on beside
//! them starts first, and its conditions hold before any member starts. A service that depends on a member,
//! itself or by others, starts when all members serve: that is more than any condition asks of a member.

use std::collections::BTreeSet;
use std::time::Duration;

use runs::span;
use serde_yaml_ng::{Mapping, Value};

use super::yaml::{text_of, texts};
use crate::service::{Auxiliaries, Auxiliary, Condition, Dependency, HealthCheck};

/// The note that something among members is left out.
const AMONG_MEMBERS: &str = "depends_on: is left out among members: all members start together";

/// What must be there before a service starts.
pub(super) fn dependencies(value: &Value) -> Result<Vec<Dependency>, String> {
    match value {
        Value::Mapping(named) => named.iter().map(|(name, how)| dependency(name, how)).collect(),
        list => {
            let started = |on| Dependency { on, condition: Condition::Started };
            Ok(texts(list)?.into_iter().map(started).collect())
        }
    }
}

fn dependency(name: &Value, how: &Value) -> Result<Dependency, String> {
    let on = text_of(name, "a name")?;
    let Value::Mapping(how) = how else { return Err(format!("{on}: write its condition")) };
    let mut condition = Condition::Started;
    for (key, value) in how {
        match (key.as_str(), value.as_str()) {
            (Some("condition"), Some("service_started")) => condition = Condition::Started,
            (Some("condition"), Some("service_healthy")) => condition = Condition::Healthy,
            (Some("condition"), Some("service_completed_successfully")) => condition = Condition::Completed,
            (Some("condition"), _) => {
                return Err(format!(
                    "{on}.condition: write service_started, service_healthy or \
                     service_completed_successfully"
                ));
            }
            (Some("required"), _) if *value == Value::Bool(true) => {}
            (Some("restart"), _) if *value == Value::Bool(false) => {}
            (other, _) => return Err(format!("{on}.{}: not supported here", other.unwrap_or("a key"))),
        }
    }
    Ok(Dependency { on, condition })
}

/// How it is seen whether a service is healthy.
pub(super) fn health(value: &Value) -> Result<HealthCheck, String> {
    let Value::Mapping(written) = value else { return Err("its keys are expected".to_owned()) };
    let mut health = HealthCheck::default();
    for (key, value) in written {
        let key = text_of(key, "a key")?;
        let time = || time(&text_of(value, &key)?).map_err(|why| format!("{key}: {why}")).map(Some);
        match key.as_str() {
            "test" => health.test = test(value)?,
            "disable" if *value == Value::Bool(true) => health.test = vec!["NONE".to_owned()],
            "disable" => {}
            "interval" => health.interval = time()?,
            "timeout" => health.timeout = time()?,
            "start_period" => health.start_period = time()?,
            "retries" => health.retries = Some(retries(value)?),
            key => return Err(format!("{key}: not supported here")),
        }
    }
    Ok(health)
}

/// A time as Compose writes it, `1m30s`: the sum of its parts.
fn time(text: &str) -> Result<Duration, String> {
    let mut sum = Duration::ZERO;
    let mut rest = text;
    loop {
        let unit = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let end = rest[unit..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |end| unit + end);
        sum += span::parse(&rest[..end])?;
        rest = &rest[end..];
        if rest.is_empty() {
            return Ok(sum);
        }
    }
}

fn test(value: &Value) -> Result<Vec<String>, String> {
    let words = match value {
        Value::String(line) => vec!["CMD-SHELL".to_owned(), line.clone()],
        list => texts(list)?,
    };
    match words.first().map(String::as_str) {
        Some("CMD" | "CMD-SHELL" | "NONE") => Ok(words),
        _ => Err("test: a line, or a list that begins with CMD, CMD-SHELL or NONE".to_owned()),
    }
}

fn retries(value: &Value) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| "retries: a number is expected".to_owned())
}

/// Puts the services that are no members in the order of their starts.
pub(super) fn arranged(
    members: &[(String, Vec<Dependency>)],
    others: Vec<Auxiliary>,
    services: &Mapping,
    notes: &mut Vec<String>,
) -> Result<Auxiliaries, String> {
    let all = members.iter().map(|(name, after)| (name.as_str(), after.as_slice()));
    let all = all.chain(others.iter().map(|other| (other.service.name.as_str(), other.after.as_slice())));
    for (name, after) in all {
        if let Some(lack) = after.iter().find(|dependency| !services.contains_key(dependency.on.as_str())) {
            return Err(format!("services.{name}.depends_on: there is no service {}", lack.on));
        }
    }
    let is_member = |name: &str| members.iter().any(|(member, _)| member == name);
    let mut members_after: Vec<Dependency> = Vec::new();
    for dependency in members.iter().flat_map(|(_, after)| after) {
        if is_member(&dependency.on) {
            notes.push(AMONG_MEMBERS.to_owned());
        } else if !members_after.contains(dependency) {
            members_after.push(dependency.clone());
        }
    }
    let behind = behind_members(&others, &is_member)?;
    if let Some(both) = members_after.iter().find(|dependency| behind.contains(&dependency.on)) {
        return Err(format!(
            "services.{}: members depend on it, and it depends on members: one of them must be first",
            both.on
        ));
    }
    let mut auxiliaries = Auxiliaries { members_after, ..Auxiliaries::NONE };
    for mut other in in_order(others, &is_member)? {
        other.after.retain(|dependency| !is_member(&dependency.on));
        let list = if behind.contains(&other.service.name) {
            &mut auxiliaries.behind
        } else {
            &mut auxiliaries.before
        };
        list.push(other);
    }
    Ok(auxiliaries)
}

/// The names of those that depend on a member, themselves or by others.
fn behind_members(
    others: &[Auxiliary],
    is_member: &dyn Fn(&str) -> bool,
) -> Result<BTreeSet<String>, String> {
    let mut behind: BTreeSet<String> = BTreeSet::new();
    loop {
        let before = behind.len();
        for Auxiliary { service, after, .. } in others {
            let ends = |dependency: &&Dependency| {
                is_member(&dependency.on) && dependency.condition == Condition::Completed
            };
            if let Some(dependency) = after.iter().find(ends) {
                return Err(format!(
                    "services.{}.depends_on.{}: a member does not complete before the run's end",
                    service.name, dependency.on
                ));
            }
            if after.iter().any(|dependency| is_member(&dependency.on) || behind.contains(&dependency.on)) {
                behind.insert(service.name.clone());
            }
        }
        if behind.len() == before {
            return Ok(behind);
        }
    }
}

/// Each behind what it depends on, otherwise as in the file.
fn in_order(mut others: Vec<Auxiliary>, is_member: &dyn Fn(&str) -> bool) -> Result<Vec<Auxiliary>, String> {
    let mut ordered: Vec<Auxiliary> = Vec::new();
    while !others.is_empty() {
        let is_there = |name: &str| {
            is_member(name) || ordered.iter().any(|other: &Auxiliary| other.service.name == name)
        };
        let next = others.iter().position(|other| other.after.iter().all(|after| is_there(&after.on)));
        let Some(next) = next else {
            let names: Vec<&str> = others.iter().map(|other| other.service.name.as_str()).collect();
            return Err(format!("depends_on: these wait for each other: {}", names.join(", ")));
        };
        ordered.push(others.remove(next));
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_sums_of_their_parts() {
        for (text, seconds) in [("1m30s", 90.0), ("10s", 10.0), ("1h1m1s500ms", 3661.5)] {
            assert_eq!(time(text).map(|time| time.as_secs_f64()), Ok(seconds), "{text}");
        }
        for text in ["", "10", "1m30", "s", "1x", "1m 30"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
