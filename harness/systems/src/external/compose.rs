//! A Compose file with a block of ours: members as containers.
//!
//! ```yaml
//! services:
//!   n1: { image: "redis:7", command: ["redis-server"], volumes: ["n1:/data"] }
//! volumes: { n1: {} }
//! x-harness:
//!   members: [n1]
//!   ports: { client: 6379 }
//!   ready: { send: "PING\r\n", expect: "+PONG" }
//!   client: { command: ["python3", "client.py"] }
//! ```
//!
//! The table of `harness/docs/system-file.md` says which keys of a service are obeyed. Any other key is
//! refused by its name: what is left out in silence would be another system than the user's. Anchors and
//! merge keys are YAML's own; `${NAME}`, `${NAME:-default}`, `${NAME-default}` and `${NAME:?why}` are filled
//! in from the environment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_yaml_ng::{Mapping, Value};

use super::depends;
use super::written::{Which, WrittenHarness};
use super::yaml::{self, text_of, texts};
use crate::service::{Auxiliaries, Auxiliary, Dependency, HealthCheck, Service, Volume};

/// What there is beside the block.
#[derive(Debug)]
pub(super) struct Compose {
    /// What the file calls itself.
    pub(super) name: Option<String>,
    /// The block, as it is written.
    pub(super) harness: WrittenHarness,
    /// The members, in the order of the block.
    pub(super) services: Vec<Service>,
    /// The other services.
    pub(super) auxiliaries: Auxiliaries,
    /// Whether a policy of its own would start a member again.
    pub(super) restarted: bool,
    /// What the file asks for that is done otherwise here.
    pub(super) notes: Vec<String>,
}

/// Keys of a service that say nothing that matters here.
const WITHOUT_A_PART: [&str; 7] =
    ["expose", "labels", "logging", "platform", "stop_grace_period", "annotations", "attach"];

/// Reads the services of a Compose file.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub(super) fn parse(
    text: &str,
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Compose, String> {
    let mut file = yaml::parse(text)?;
    file.apply_merge().map_err(|error| error.to_string())?;
    filled_in(&mut file, variable)?;
    let Value::Mapping(file) = file else { return Err("it is no Compose file: write services:".to_owned()) };
    for key in file.keys() {
        let key = text_of(key, "a key")?;
        if !matches!(key.as_str(), "name" | "version" | "services" | "volumes" | "networks")
            && !key.starts_with("x-")
        {
            return Err(format!("{key}: not supported here"));
        }
    }
    check_networks(file.get("networks"))?;
    let block = file.get("x-harness").ok_or("there is no x-harness block; `harness init redis` shows one")?;
    let harness: WrittenHarness =
        serde_yaml_ng::from_value(block.clone()).map_err(|error| format!("x-harness: {error}"))?;
    let services = mapping(file.get("services"), "services")?;
    let named: Vec<String> = keys(file.get("volumes"), "volumes")?;
    let mut notes = Vec::new();
    let read = |name: &str, is: Is, notes: &mut Vec<String>| {
        let service = services.get(name).ok_or_else(|| {
            format!("x-harness.members: there is no service {name}; the file has {}", listed(&services))
        })?;
        service_of(name, service, (&named, folder), is, notes).map_err(|why| format!("services.{name}.{why}"))
    };
    let mut members: Vec<Read> =
        harness.members.iter().map(|name| read(name, Is::Member, &mut notes)).collect::<Result<_, _>>()?;
    mark_process_1(&mut members, &harness.process_1, &mut notes)?;
    if let Some(name) = services.keys().find(|name| !name.is_string()) {
        return Err(format!("services.{}: write the name in quotes", text_of(name, "a service")?));
    }
    let mut others: Vec<Auxiliary> = services
        .keys()
        .filter_map(Value::as_str)
        .filter(|name| !harness.members.iter().any(|member| member == name))
        .map(|name| read(name, Is::Auxiliary, &mut notes).map(Read::auxiliary))
        .collect::<Result<_, _>>()?;
    check_apart(&members, &others)?;
    let client = harness.client.as_ref().and_then(|client| client.service.clone());
    if let Some(name) = &client {
        let other = others.iter_mut().find(|other| other.service.name == *name).ok_or_else(|| {
            format!(
                "x-harness.client.service: {name} is no service beside the members; the file has {}",
                listed(&services)
            )
        })?;
        leave_members_out(other, &harness.members, &mut notes);
    }
    let restarted = members.iter().any(|member| member.restarted);
    let depend: Vec<(String, Vec<Dependency>)> =
        members.iter().map(|member| (member.service.name.clone(), member.after.clone())).collect();
    let mut auxiliaries = depends::arranged(&depend, others, &services, &mut notes)?;
    auxiliaries.client = client;
    let services = members.into_iter().map(|member| member.service).collect();
    notes.sort();
    notes.dedup();
    let name = file.get("name").map(|name| text_of(name, "name")).transpose()?;
    Ok(Compose { name, services, auxiliaries, harness, restarted, notes })
}

/// What a service is in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    /// It is broken, and asked by `x-harness.ready`.
    Member,
    /// It stands beside them.
    Auxiliary,
}

/// A service as it was read.
struct Read {
    service: Service,
    after: Vec<Dependency>,
    health: Option<HealthCheck>,
    /// By a policy that is left out.
    restarted: bool,
}

impl Read {
    fn auxiliary(self) -> Auxiliary {
        let Self { service, after, health, restarted: _ } = self;
        Auxiliary { service, after, health }
    }
}

/// The client's container is there before any member: nothing is asked in it before all serve.
fn leave_members_out(client: &mut Auxiliary, members: &[String], notes: &mut Vec<String>) {
    let before = client.after.len();
    client.after.retain(|dependency| !members.contains(&dependency.on));
    if client.after.len() < before {
        notes.push("depends_on: of the client's service is left out where it names members".to_owned());
    }
}

/// Notes whose program is process 1 of its own namespace, and what becomes of `init`.
fn mark_process_1(members: &mut [Read], which: &Which, notes: &mut Vec<String>) -> Result<(), String> {
    if let Which::These(names) = which
        && let Some(name) = names.iter().find(|name| !members.iter().any(|one| one.service.name == **name))
    {
        return Err(format!("x-harness.process_1: {name} is not among x-harness.members"));
    }
    for Read { service, .. } in members {
        service.process_1 = match which {
            Which::All(all) => *all,
            Which::These(names) => names.contains(&service.name),
        };
        match (service.process_1, std::mem::take(&mut service.init)) {
            (true, true) => {
                return Err(format!(
                    "services.{}.init: then the engine's init is process 1, and x-harness.process_1 says \
                     that its own program is: leave out one of the two",
                    service.name
                ));
            }
            (true, false) => notes.push(
                "process_1: members that are process 1 are killed and paused by the engine; where the \
                 harness is killed they stay until the next `harness run` or `harness clean`"
                    .to_owned(),
            ),
            (false, true) => notes.push(
                "init: is left out of members: process 1 is the sandbox's, which waits for orphans as an \
                 init does"
                    .to_owned(),
            ),
            (false, false) => {}
        }
    }
    Ok(())
}

/// Each service is there once, and has its volumes for itself: one that two share would be two here.
fn check_apart(members: &[Read], others: &[Auxiliary]) -> Result<(), String> {
    if members.is_empty() {
        return Err("x-harness.members: name the services that are broken".to_owned());
    }
    let (mut names, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let services = members.iter().map(|member| &member.service);
    for service in services.chain(others.iter().map(|other| &other.service)) {
        if !names.insert(&service.name) {
            return Err(format!("x-harness.members: {} is there twice", service.name));
        }
        for volume in &service.volumes {
            if let Volume::Own { name, .. } = volume
                && !taken.insert(name)
            {
                return Err(format!("volumes: {name} is mounted twice, which is not supported here"));
            }
        }
    }
    Ok(())
}

fn listed(services: &Mapping) -> String {
    services.keys().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn mapping(value: Option<&Value>, what: &str) -> Result<Mapping, String> {
    match value {
        Some(Value::Mapping(mapping)) => Ok(mapping.clone()),
        _ => Err(format!("{what}: must be there, and have something in it")),
    }
}

/// The names of volumes of the run's own.
fn keys(value: Option<&Value>, what: &str) -> Result<Vec<String>, String> {
    let Some(Value::Mapping(volumes)) = value else { return Ok(Vec::new()) };
    volumes
        .iter()
        .map(|(name, described)| {
            let name = text_of(name, what)?;
            let is_plain = match described {
                Value::Null => true,
                Value::Mapping(described) => described.is_empty(),
                _ => false,
            };
            if is_plain {
                Ok(name)
            } else {
                Err(format!("{what}.{name}: a volume of the run's own has no settings"))
            }
        })
        .collect()
}

/// All members are on one network, which the run makes.
fn check_networks(networks: Option<&Value>) -> Result<(), String> {
    let Some(Value::Mapping(networks)) = networks else { return Ok(()) };
    let plain = networks.values().all(|network| match network {
        Value::Null => true,
        Value::Mapping(described) => described.is_empty(),
        _ => false,
    });
    if networks.len() <= 1 && plain {
        return Ok(());
    }
    Err("networks: one without settings is supported; all members are on the run's own".to_owned())
}

fn service_of(
    name: &str,
    service: &Value,
    (named, folder): (&[String], &Path),
    is: Is,
    notes: &mut Vec<String>,
) -> Result<Read, String> {
    let Value::Mapping(written) = service else { return Err("image: must be there".to_owned()) };
    let mut member = Service { name: name.to_owned(), aliases: vec![name.to_owned()], ..Service::default() };
    let (mut after, mut asked, mut restarted) = (Vec::new(), None, false);
    for (key, value) in written {
        let key = text_of(key, "a key")?;
        let because = |why: String| format!("{key}: {why}");
        match key.as_str() {
            "image" => member.image = text_of(value, "image")?,
            "command" => member.command = command(value).map_err(because)?,
            "entrypoint" => member.entrypoint = command(value).map_err(because)?,
            "environment" => member.environment = environment(value).map_err(because)?,
            "user" => member.user = Some(text_of(value, "user")?),
            "working_dir" => member.working_dir = Some(text_of(value, "working_dir")?),
            "hostname" => member.hostname = Some(text_of(value, "hostname")?),
            "container_name" => member.aliases.push(text_of(value, "container_name")?),
            "volumes" => member.volumes = volumes(value, named, folder).map_err(because)?,
            "networks" => member.aliases.extend(aliases(value).map_err(because)?),
            "ulimits" => member.ulimits = ulimits(value).map_err(because)?,
            "cap_add" => member.cap_add = texts(value).map_err(because)?,
            "restart" => {
                restarted = value.as_str() != Some("no") && *value != Value::Bool(false);
                notes.push("restart: is left out: the harness alone starts services again".to_owned());
            }
            "ports" => notes.push("ports: are left out: members are found at their own addresses".to_owned()),
            "depends_on" => after = depends::dependencies(value).map_err(because)?,
            "healthcheck" if is == Is::Auxiliary => asked = Some(depends::health(value).map_err(because)?),
            "healthcheck" => {
                notes.push("healthcheck: is left out of members: x-harness.ready asks them".to_owned());
            }
            "init" => {
                member.init = value.as_bool().ok_or_else(|| because("true or false".to_owned()))?;
            }
            "build" => return Err("build: build the image first, and name it as image".to_owned()),
            key if WITHOUT_A_PART.contains(&key) || key.starts_with("x-") => {}
            key => return Err(format!("{key}: not supported here")),
        }
    }
    if member.image.is_empty() {
        return Err("image: must be there".to_owned());
    }
    Ok(Read { service: member, after, health: asked, restarted })
}

/// A list of words, or a line that is taken apart as a shell would, which Compose does too.
fn command(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(line) => words(line),
        list => texts(list),
    }
}

/// The words of a line, by blanks, quotes and backslashes.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let (mut word, mut begun, mut quote) = (String::new(), false, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => {
                begun = true;
                word.extend(letters.next());
            }
            (letter, Some(open)) if letter == open => quote = None,
            (letter, Some(_)) => word.push(letter),
            ('"' | '\'', None) => {
                begun = true;
                quote = Some(letter);
            }
            (letter, None) if letter.is_whitespace() => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (letter, None) => {
                begun = true;
                word.push(letter);
            }
        }
    }
    if quote.is_some() {
        return Err("a quote is never closed".to_owned());
    }
    if begun {
        words.push(word);
    }
    Ok(words)
}

fn environment(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Mapping(pairs) => pairs
            .iter()
            .map(|(name, value)| {
                let name = text_of(name, "a name")?;
                match value {
                    Value::Null => Err(format!("{name}: give it a value; nothing is taken over from here")),
                    value => Ok(format!("{name}={}", text_of(value, &name)?)),
                }
            })
            .collect(),
        list => {
            let entries = texts(list)?;
            match entries.iter().find(|entry| !entry.contains('=')) {
                Some(name) => Err(format!("{name}: give it a value; nothing is taken over from here")),
                None => Ok(entries),
            }
        }
    }
}

fn volumes(value: &Value, named: &[String], folder: &Path) -> Result<Vec<Volume>, String> {
    texts(value)?
        .into_iter()
        .map(|text| {
            let mut parts = text.splitn(3, ':');
            let (Some(source), Some(target)) = (parts.next(), parts.next()) else {
                return Err(format!("{text}: write NAME:/PATH or ./FILE:/PATH"));
            };
            let read_only = match parts.next() {
                None | Some("rw") => false,
                Some("ro") => true,
                Some(other) => return Err(format!("{text}: {other} is not supported here")),
            };
            let target = target.to_owned();
            if source.starts_with(['.', '/', '~']) {
                let from: PathBuf = folder.join(source);
                let from = from.canonicalize().map_err(|error| format!("{text}: {error}"))?;
                return Ok(Volume::Bound { from, target, read_only });
            }
            if !named.iter().any(|name| name == source) {
                return Err(format!("{text}: there is no volume {source} in the file"));
            }
            if read_only {
                return Err(format!("{text}: a volume of the run's own is empty at first, and ro is no use"));
            }
            Ok(Volume::Own { name: source.to_owned(), target })
        })
        .collect()
}

fn aliases(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Sequence(_) => Ok(Vec::new()),
        Value::Mapping(networks) => {
            let mut found = Vec::new();
            for settings in networks.values() {
                let Value::Mapping(settings) = settings else { continue };
                for (key, value) in settings {
                    match key.as_str() {
                        Some("aliases") => found.extend(texts(value)?),
                        other => return Err(format!("{}: not supported here", other.unwrap_or("a key"))),
                    }
                }
            }
            Ok(found)
        }
        _ => Err("a list, or networks with their aliases".to_owned()),
    }
}

fn ulimits(value: &Value) -> Result<Vec<(String, i64, i64)>, String> {
    let Value::Mapping(limits) = value else { return Err("limits by their names are expected".to_owned()) };
    limits
        .iter()
        .map(|(name, limit)| {
            let name = text_of(name, "a name")?;
            let number = |key: &str| limit.get(key).and_then(Value::as_i64);
            let both = match limit.as_i64() {
                Some(limit) => Some((limit, limit)),
                None => number("soft").zip(number("hard")),
            };
            let (soft, hard) = both.ok_or_else(|| format!("{name}: a number, or soft and hard"))?;
            Ok((name, soft, hard))
        })
        .collect()
}

/// Fills variables in, in every text of the file.
fn filled_in(value: &mut Value, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
    match value {
        Value::String(text) => *text = interpolated(text, variable)?,
        Value::Sequence(list) => {
            for one in list {
                filled_in(one, variable)?;
            }
        }
        Value::Mapping(pairs) => {
            for (_, one) in pairs.iter_mut() {
                filled_in(one, variable)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn interpolated(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('$') {
            out.push('$');
            rest = behind;
        } else if let Some(inside) = rest.strip_prefix('{') {
            let end = inside.find('}').ok_or_else(|| format!("{text}: a brace is never closed"))?;
            out.push_str(&meaning(&inside[..end], variable)?);
            rest = &inside[end + 1..];
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            if end == 0 {
                return Err(format!("{text}: a dollar itself is $$"));
            }
            out.push_str(&variable(&rest[..end]).unwrap_or_default());
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn meaning(inside: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    let set = variable(name);
    let full = set.clone().filter(|value| !value.is_empty());
    match rest.split_at(rest.len().min(2)) {
        ("", _) => Ok(set.unwrap_or_default()),
        (":-", default) => Ok(full.unwrap_or_else(|| default.to_owned())),
        (":?", why) => full.ok_or_else(|| format!("${{{name}}}: {why}")),
        _ => match rest.split_at(1) {
            ("-", default) => Ok(set.unwrap_or_else(|| default.to_owned())),
            ("?", why) => set.ok_or_else(|| format!("${{{name}}}: {why}")),
            _ => Err(format!("${{{inside}}}: not supported here")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Condition;

    const BLOCK: &str = "x-harness:\n  members: [a, b]\n  ports: { client: 6379, peers: [16379] }\n  \
                         ready: { send: \"PING\\r\\n\", expect: \"+PONG\" }\n  \
                         client: { command: [python3, c.py] }\n";

    fn parsed(services: &str) -> Result<Compose, String> {
        let set = |name: &str| (name == "SET").then(|| "set".to_owned());
        parse(&format!("{services}\n{BLOCK}"), Path::new("/"), &set)
    }

    #[test]
    fn what_a_service_says_is_honoured() {
        let text = "x-all: &all\n  image: \"${IMAGE:-redis:7}\"\n  environment: { A: 1, B: $SET }\n  \
                    restart: always\n\
                    volumes: { d: }\n\
                    services:\n  a:\n    <<: *all\n    command: redis-server --port \"6 7\"\n    \
                    hostname: h\n    \
                    volumes: [\"d:/data\"]\n    ulimits: { nofile: 99 }\n    user: \"1:2\"\n  \
                    b: { <<: *all, container_name: c, networks: { default: { aliases: [x] } } }\n";
        let compose = parsed(text).expect("a file");
        let [a, b] = compose.services.as_slice() else { panic!("two members") };
        assert_eq!(
            (a.image.as_str(), a.command.join("|")),
            ("redis:7", "redis-server|--port|6 7".to_owned())
        );
        assert_eq!((a.environment.join(" "), a.hostname.as_deref()), ("A=1 B=set".to_owned(), Some("h")));
        assert_eq!(a.volumes, [Volume::Own { name: "d".to_owned(), target: "/data".to_owned() }]);
        assert_eq!(
            (a.ulimits.as_slice(), a.user.as_deref()),
            (&[("nofile".to_owned(), 99, 99)][..], Some("1:2"))
        );
        assert_eq!(b.aliases, ["b", "x", "c"]);
        assert!(compose.notes.len() == 1 && compose.notes[0].starts_with("restart:"), "{:?}", compose.notes);
        assert!(compose.restarted);
    }

    #[test]
    fn services_beside_the_members_start_before_them_or_behind_them() {
        let text = concat!(
            "services:\n",
            "  proxy: { image: p, depends_on: [app] }\n",
            "  app: { image: p, depends_on: { a: { condition: service_healthy } } }\n",
            "  schema: { image: s, depends_on: { store: { condition: service_healthy } } }\n",
            "  store: { image: s, healthcheck: { test: \"ok?\", interval: 2s, retries: 9 } }\n",
            "  a:\n    image: x\n    depends_on:\n      b: { condition: service_started }\n",
            "      schema: { condition: service_completed_successfully }\n",
            "  b: { image: x }\n",
        );
        let compose = parsed(text).expect("a file");
        let names = |list: &[Auxiliary]| {
            list.iter().map(|one| one.service.name.clone()).collect::<Vec<_>>().join(" ")
        };
        let Auxiliaries { before, members_after, behind, .. } = &compose.auxiliaries;
        let (first, last) = ("store schema".to_owned(), "app proxy".to_owned());
        assert_eq!((names(before), names(behind)), (first, last));
        let schema = Dependency { on: "schema".to_owned(), condition: Condition::Completed };
        assert_eq!(members_after, &[schema]);
        assert_eq!(before[1].after[0].condition, Condition::Healthy);
        // That all members serve is more than was asked for.
        assert_eq!(behind[0].after, []);
        let health = before[0].health.clone().expect("a health check");
        assert_eq!((health.test.join("|"), health.retries), ("CMD-SHELL|ok?".to_owned(), Some(9)));
        assert_eq!(compose.notes, ["depends_on: is left out among members: all members start together"]);
    }

    #[test]
    fn what_is_not_supported_is_refused_by_its_name() {
        let others = |of_a: &str, others: &str| {
            format!("services: {{ a: {{ image: x, {of_a} }}, b: {{ image: x }}, {others} }}")
        };
        for (services, name) in [
            ("services: { a: { image: x, privileged: true }, b: { image: x } }", "services.a.privileged"),
            ("services: { a: { build: . }, b: { image: x } }", "build the image first"),
            ("services: { a: { image: x } }", "there is no service b"),
            ("services: { a: { image: x }, b: { image: x }, 1: { image: x } }", "services.1: write the name"),
            (&others("depends_on: [c]", ""), "services.a.depends_on: there is no service c"),
            (
                &others("", "c: { image: y, depends_on: [d] }, d: { image: y, depends_on: [c] }"),
                "other: c, d",
            ),
            (
                &others("depends_on: [c]", "c: { image: y, depends_on: [b] }"),
                "services.c: members depend on it",
            ),
            (
                &others("depends_on: { c: { condition: up } }", "c: { image: y }"),
                "services.a.depends_on: c.condition: write service_started",
            ),
            (
                &others("", "c: { image: y, healthcheck: { test: [true] } }"),
                "services.c.healthcheck: test: a line",
            ),
            ("services: { a: { image: x, volumes: [\"v:/d\"] }, b: { image: x } }", "there is no volume v"),
            ("services: { a: { image: x, extends: c }, b: { image: x } }", "services.a.extends"),
            ("services: { a: { image: \"${X:?say which}\" }, b: { image: x } }", "say which"),
            ("services: { a: { image: x, command: \"a 'b\" }, b: { image: x } }", "never closed"),
            ("services: { a: { image: x }, b: { image: x } }\nsecrets: {}", "secrets: not supported"),
            ("services: { a: { image: x, init: 1 }, b: { image: x } }", "services.a.init: true or false"),
            ("services: { a: { image: x }, b: { image: x } }\nnetworks: { p: , q: }", "networks: one"),
            (
                "volumes: { v: }\nservices: { a: { image: x, volumes: [\"v:/d\"] }, b: { image: x, volumes: \
                 [\"v:/d\"] } }",
                "v is mounted twice",
            ),
            (
                "volumes: { v: }\nservices: { a: { image: x, volumes: [\"v:/d:ro\"] }, b: { image: x } }",
                "ro is no use",
            ),
            ("services: { a: { image: x, environment: [HOME] }, b: { image: x } }", "HOME: give it a value"),
            ("services: [", "did not find"),
        ] {
            let error = parsed(services).expect_err(services);
            assert!(error.contains(name), "{services}: {error}");
        }
    }

    #[test]
    fn members_whose_program_is_process_1_are_named_and_have_no_other_init() {
        let read = |process_1: &str, a: &str| {
            let block =
                BLOCK.replace("members: [a, b]", &format!("members: [a, b]\n  process_1: {process_1}"));
            let services = format!("services: {{ a: {{ image: x, {a} }}, b: {{ image: x }} }}");
            parse(&format!("{services}\n{block}"), Path::new("/"), &|_| None)
        };
        for (process_1, who) in [("true", [true, true]), ("false", [false; 2]), ("[b]", [false, true])] {
            let compose = read(process_1, "init: false").expect(process_1);
            assert_eq!([&compose.services[0], &compose.services[1]].map(|one| one.process_1), who);
            assert_eq!(compose.notes.len(), usize::from(who[1]), "{:?}", compose.notes);
        }
        let noted = read("[b]", "init: true").expect("an init where it is of no use").notes;
        assert!(noted.iter().any(|note| note.starts_with("init: is left out")), "{noted:?}");
        for (process_1, a, why) in [
            ("[c]", "", "process_1: c is not among"),
            ("true", "init: true", "services.a.init: then the engine's"),
            ("maybe", "", "true, false, or a list of members"),
        ] {
            let error = read(process_1, a).expect_err(process_1);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn variables_are_filled_in_as_compose_does() {
        let set = |name: &str| match name {
            "SET" => Some("s".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, meant) in [
            ("a $SET b", "a s b"),
            ("${SET}-${NO}", "s-"),
            ("${EMPTY:-d}${EMPTY-d}${NO-d}", "dd"),
            ("$$HOME", "$HOME"),
        ] {
            assert_eq!(interpolated(text, &set).as_deref(), Ok(meant), "{text}");
        }
    }
}
