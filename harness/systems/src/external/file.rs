//! The file that describes a system: TOML, every key checked before anything is started.
//!
//! ```toml
//! name = "redis"
//! version = ["redis-server", "--version"]
//!
//! [member]
//! command = ["redis-server", "--port", "{client.port}", "--dir", "{data}"]
//! peers = 1
//! ready = { send = "PING\r\n", expect = "+PONG" }
//! leader = { send = "ROLE\r\n", expect = "master" }
//!
//! [client]
//! command = ["python3", "client.py"]
//!
//! [promises]
//! set = { promise = "nothing", source = "https://redis.io/docs/latest/operate/oss_and_stack/" }
//! ```
//!
//! What each key means, with its default, is in `harness/docs/system-file.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use runs::clock::whole_milliseconds;
use runs::comes_back::{ComesBack, When};
use runs::results::Promised;
use runs::span;
use workloads::{Kind, Promise};

use super::compose::{self, Compose};
use super::faults::{self, OwnFault};
use super::template::{self, Outside, Places};
pub use super::written::{How, Probe};
use super::written::{Written, WrittenClient, WrittenFault, WrittenMember, WrittenProbe, WrittenPromise};
use super::{lines, process};
use crate::alongside::InContainer;
use crate::bounded;
use crate::program::Program;
use crate::service::{Auxiliaries, Auxiliary, Service};

/// From the onset of one fault to the next, when nobody says.
const USUAL_INTERVAL: Duration = Duration::from_secs(10);
/// How long members may take to serve after their start, when nobody says.
const USUAL_START: Duration = Duration::from_secs(60);
/// How long a member may take to end, when nobody says.
const USUAL_FAREWELL: Duration = Duration::from_secs(10);
/// The silence after which members give up on one another, when nobody says.
const USUAL_SILENCE: Duration = Duration::from_secs(5);
/// And an interval is never less than so often the silence after which members give up on one another.
const INTERVALS: u32 = 4;
/// A port more than any member has.
const MOST_PEERS: u16 = 4;
/// Members that every ensemble has, for a first look at the templates.
const FIRST: u64 = 1;

/// A system, as its file describes it.
#[derive(Clone, Debug)]
pub struct Description {
    /// What it is called in sentences and in the run folder.
    pub name: String,
    /// The folder of the file, absolute. Commands run there.
    pub folder: PathBuf,
    /// Its members as processes, or as containers.
    pub members: Members,
    /// Whether a member serves.
    pub ready: Probe,
    /// Whether a member leads; none where nobody tells.
    pub leader: Option<Probe>,
    /// How long the members may take to serve after their start.
    pub start_patience: Duration,
    /// How long a member may take to end when it is asked to.
    pub farewell: Duration,
    /// The silence after which members give up on one another.
    pub gives_up_after: Duration,
    /// From the onset of one fault to the next, when nobody says.
    pub interval: Duration,
    /// What a client's process runs; none where the file names no client, so that only a command of the
    /// user's own can work on the members.
    pub client: Option<Arc<Program>>,
    /// By the workload's name, what is promised.
    pub promises: BTreeMap<String, Promised>,
    /// Whether it acknowledges changes again when nothing is broken any more.
    pub comes_back: ComesBack,
    /// Faults of the user's own.
    pub faults: Vec<OwnFault>,
    /// Variables of the harness's own environment that say how the system is set up.
    pub variables: Vec<String>,
}

/// What members are.
#[derive(Clone, Debug)]
pub enum Members {
    /// Local processes.
    Processes(AsProcesses),
    /// Containers.
    Containers(InContainers),
}

/// Members as local processes.
#[derive(Clone, Debug)]
pub struct AsProcesses {
    /// What tells the system's version.
    pub version: Option<Vec<String>>,
    /// What a member runs, with placeholders: at least a name.
    pub command: Vec<String>,
    /// What is in a member's environment, with placeholders.
    pub environment: BTreeMap<String, String>,
    /// Ports on which members dial each other.
    pub peers: u16,
    /// Which of those clients find a member at, where they have no port of their own.
    pub clients_at: Option<u16>,
}

/// Members as containers.
#[derive(Clone, Debug)]
pub struct InContainers {
    /// What each of them is made of.
    pub services: Vec<Service>,
    /// What stands beside them.
    pub auxiliaries: Auxiliaries,
    /// Where they listen for clients.
    pub client_port: u16,
    /// Where they listen for each other.
    pub peer_ports: Vec<u16>,
    /// Where they are asked how they are, beside their client port.
    pub question_ports: Vec<u16>,
    /// What the file asks for that is done otherwise here.
    pub notes: Vec<String>,
}

/// Reads the file.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub fn read(path: &Path) -> Result<Description, String> {
    let text = bounded::text(path, bounded::WRITTEN).map_err(|error| {
        format!("{}: {error}; `harness init system` writes one to begin from", path.display())
    })?;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    described(&text, &absolute).map_err(|why| format!("{}: {why}", path.display()))
}

/// What the text of a file says that lies at a path, or will.
pub(super) fn described(text: &str, path: &Path) -> Result<Description, String> {
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let is_compose = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    if is_compose { parse_compose(text, folder) } else { parse(text, &stem, folder) }
}

/// Reads a Compose file with a block of ours.
pub(super) fn parse_compose(text: &str, folder: PathBuf) -> Result<Description, String> {
    let compose = compose::parse(text, &folder, &|name| std::env::var(name).ok())?;
    let Compose { name, harness, services, auxiliaries, restarted, notes } = compose;
    let name = name.or_else(|| services.first().map(|service| service.image.clone()));
    let homes: Vec<String> =
        services.iter().map(|service| format!("{}:{}", service.name, harness.ports.client)).collect();
    let members = Members::Containers(InContainers {
        services,
        auxiliaries,
        client_port: harness.ports.client,
        peer_ports: harness.ports.peers,
        question_ports: question_ports(&[Some(&harness.ready), harness.leader.as_ref()]),
        notes,
    });
    let asked = Asked {
        key: "x-harness",
        ready: harness.ready,
        leader: harness.leader,
        start_patience: harness.start_patience,
        farewell: harness.farewell,
        gives_up_after: harness.gives_up_after,
        interval: harness.interval,
        comes_back: harness.comes_back,
        comes_back_within: harness.comes_back_within,
        restarted,
        client: harness.client,
        promises: harness.promises,
        faults: harness.faults,
        variables: harness.variables,
    };
    let mut described = asked.described(name.unwrap_or_default(), folder, members, &homes)?;
    if let (Some(client), Members::Containers(members)) = (&described.client, &mut described.members) {
        idle(client, &mut members.auxiliaries);
    }
    Ok(described)
}

/// The container of a client runs what its file says. Where that is nothing it runs the client, which waits
/// for a request that never comes.
fn idle(client: &Program, auxiliaries: &mut Auxiliaries) {
    let Some(container) = &client.in_container else { return };
    let mut all = auxiliaries.before.iter_mut().chain(&mut auxiliaries.behind);
    let Some(Auxiliary { service, .. }) = all.find(|one| one.service.name == container.service) else {
        return;
    };
    if service.command.is_empty() && service.entrypoint.is_empty() {
        service.entrypoint.clone_from(&client.command);
        service.stdin_open = true;
        service.environment.extend(process::environment(client, &container.members));
    }
}

/// The ports at which members are asked, each once.
fn question_ports(probes: &[Option<&WrittenProbe>]) -> Vec<u16> {
    let mut ports: Vec<u16> = probes.iter().flatten().filter_map(|probe| probe.at).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Reads the text of a file for local processes.
///
/// # Errors
/// See [`read`].
pub fn parse(text: &str, stem: &str, folder: PathBuf) -> Result<Description, String> {
    let Written { name, version, variables, member, client, promises, faults } =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let WrittenMember { peers, clients_at_peer: clients_at, .. } = member;
    if peers > MOST_PEERS {
        return Err(format!("member.peers = {peers}: at most {MOST_PEERS}"));
    }
    if clients_at.is_some_and(|port| port >= peers) {
        return Err(format!("member.clients_at_peer: peers = {peers}, and the first of them is 0"));
    }
    let members = AsProcesses {
        version: version.map(|words| words.command("version")).transpose()?,
        command: member.command.command("member.command")?,
        environment: member.environment,
        peers,
        clients_at,
    };
    check(&members)?;
    let asked = Asked {
        key: "member",
        ready: member.ready,
        leader: member.leader,
        start_patience: member.start_patience,
        farewell: member.farewell,
        gives_up_after: member.gives_up_after,
        interval: member.interval,
        comes_back: member.comes_back,
        comes_back_within: member.comes_back_within,
        restarted: false,
        client,
        promises,
        faults,
        variables,
    };
    asked.described(name.unwrap_or_else(|| stem.to_owned()), folder, Members::Processes(members), &[])
}

/// What both kinds of files say in the same words.
struct Asked {
    /// Where most of it stands.
    key: &'static str,
    ready: WrittenProbe,
    leader: Option<WrittenProbe>,
    start_patience: Option<String>,
    farewell: Option<String>,
    gives_up_after: Option<String>,
    interval: Option<String>,
    comes_back: Option<WrittenPromise>,
    comes_back_within: Option<String>,
    /// A policy that the bench leaves out would start members again.
    restarted: bool,
    client: Option<WrittenClient>,
    promises: BTreeMap<String, WrittenPromise>,
    faults: BTreeMap<String, WrittenFault>,
    variables: Vec<String>,
}

impl Asked {
    /// `found` is where members are found from a container beside them.
    fn described(
        self,
        name: String,
        folder: PathBuf,
        members: Members,
        found: &[String],
    ) -> Result<Description, String> {
        let key = |name: &str| format!("{}.{name}", self.key);
        let probe = |name: &str, written: WrittenProbe| {
            let probe = written.probe(&key(name))?;
            check_question(&probe, &members).map_err(|why| format!("{}: {why}", key(name)))?;
            Ok::<_, String>(probe)
        };
        let time = |name: &str, written: Option<String>, usual: Duration| match written {
            Some(text) => span::parse(&text).map_err(|why| format!("{}: {why}", key(name))),
            None => Ok(usual),
        };
        let gives_up_after = time("gives_up_after", self.gives_up_after, USUAL_SILENCE)?;
        // A fault is held for half of an interval, and that must outlast what members take for silence.
        let usual_interval = (gives_up_after * INTERVALS).max(USUAL_INTERVAL);
        let client = self.client.map(|client| program(client, &folder, found)).transpose()?;
        let ready = probe("ready", self.ready)?;
        let leader = self.leader.map(|leader| probe("leader", leader)).transpose()?;
        let faults = faults::described(self.faults, matches!(members, Members::Containers(_)))?;
        Ok(Description {
            name,
            folder,
            members,
            ready,
            leader,
            start_patience: time("start_patience", self.start_patience, USUAL_START)?,
            farewell: time("farewell", self.farewell, USUAL_FAREWELL)?,
            gives_up_after,
            interval: time("interval", self.interval, usual_interval)?,
            client,
            comes_back: comes_back(&key, self.comes_back, self.comes_back_within.as_deref(), self.restarted)?,
            promises: self.promises.into_iter().map(promise).collect::<Result<_, _>>()?,
            faults,
            variables: variables(self.variables)?,
        })
    }
}

/// What the file says about coming back; `key` is where such a key stands.
fn comes_back(
    key: &dyn Fn(&str) -> String,
    written: Option<WrittenPromise>,
    within: Option<&str>,
    restarted: bool,
) -> Result<ComesBack, String> {
    let (when, source) = match written {
        None => (When::default(), String::new()),
        Some(WrittenPromise::Alone(text)) => (named(key, &text)?, "its file".to_owned()),
        Some(WrittenPromise::WithSource { promise, source }) => (named(key, &promise)?, source),
    };
    let within_ms = match within {
        None => None,
        Some(_) if when == When::Never => {
            return Err(format!(
                "{}: it never comes back by its own word; leave one of them out",
                key("comes_back_within")
            ));
        }
        Some(text) => {
            let within = span::parse(text).map_err(|why| format!("{}: {why}", key("comes_back_within")))?;
            if within.is_zero() {
                return Err(format!(
                    "{}: nothing comes back at once; write a span",
                    key("comes_back_within")
                ));
            }
            Some(whole_milliseconds(within))
        }
    };
    Ok(ComesBack { when, within_ms, source, restarted })
}

fn named(key: &dyn Fn(&str) -> String, text: &str) -> Result<When, String> {
    let known = || When::ALL.map(When::name).join(", ");
    When::named(text).ok_or_else(|| format!("{} = \"{text}\": write {}", key("comes_back"), known()))
}

/// Names of variables, each once.
fn variables(named: Vec<String>) -> Result<Vec<String>, String> {
    for name in &named {
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !begins || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("variables: {name:?} is no name of a variable; write names alone, [WAIT]"));
        }
        if name.starts_with("HARNESS_") {
            return Err(format!("variables: the harness sets {name} itself"));
        }
    }
    let once: std::collections::BTreeSet<String> = named.into_iter().collect();
    Ok(once.into_iter().collect())
}

/// A client, on this machine or in the container of a service.
fn program(written: WrittenClient, folder: &Path, found: &[String]) -> Result<Arc<Program>, String> {
    let command = written.command.command("client.command")?;
    let in_container = match written.service {
        None if written.functions.is_empty() => None,
        None => return Err("client.functions: goes with service; any other client says it itself".to_owned()),
        Some(_) if found.is_empty() => {
            return Err(
                "client.service: is for Compose files; here the client runs on this machine".to_owned()
            );
        }
        Some(_) if written.functions.is_empty() => {
            return Err(
                "client.functions: write what its hello will say, [read, write] or more, because it \
                        must be known before its container runs"
                    .to_owned(),
            );
        }
        Some(service) => {
            let functions =
                lines::named(&written.functions).map_err(|why| format!("client.functions: {why}"))?;
            Some(InContainer { service, members: found.to_vec(), functions })
        }
    };
    Ok(Arc::new(Program {
        command,
        environment: written.environment,
        folder: folder.to_path_buf(),
        in_container,
    }))
}

impl Description {
    /// What it promises of a workload: what its own line says, else what is said of all. By the latter the
    /// workload may be none that can be judged.
    pub(super) fn promised(&self, workload: Kind) -> Promised {
        let own = self.promises.get(workload.name());
        own.or_else(|| self.promises.get(OF_ALL)).cloned().unwrap_or_default()
    }
}

/// What is promised of every workload that has no line of its own.
const OF_ALL: &str = "all";

fn promise((workload, written): (String, WrittenPromise)) -> Result<(String, Promised), String> {
    let kinds: Vec<Kind> = match Kind::from_name(&workload) {
        Some(kind) => vec![kind],
        None if workload == OF_ALL => Kind::ALL.to_vec(),
        None => {
            let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            let known = known.join(", ");
            return Err(format!("promises.{workload}: there is no such workload; write {known} or {OF_ALL}"));
        }
    };
    let (text, source) = match written {
        WrittenPromise::Alone(text) => (text, String::new()),
        WrittenPromise::WithSource { promise, source } => (promise, source),
    };
    let is_one = |what: &Promise| kinds.iter().any(|kind| kind.promised(*what).is_some());
    let what = Promise::named(&text).filter(is_one).ok_or_else(|| {
        let names: Vec<&str> = Promise::ALL.into_iter().filter(is_one).map(Promise::name).collect();
        format!("promises.{workload} = \"{text}\": write {}", names.join(", "))
    })?;
    Ok((workload, Promised { what, source }))
}

/// Whether every placeholder of a question means something.
fn check_question(probe: &Probe, members: &Members) -> Result<(), String> {
    match (members, &probe.how) {
        (Members::Containers(_), How::Exec(words)) if words.iter().any(|word| word.contains("{folder}")) => {
            return Err("{folder} is on this machine, and the command runs in the container; mount what it \
                        needs with volumes"
                .to_owned());
        }
        (Members::Processes(_), _) if probe.at.is_some() => {
            return Err(
                "at is for members in containers; here a command (exec) can ask at any port".to_owned()
            );
        }
        _ => {}
    }
    for text in probe.texts() {
        template::filled(text, FIRST, &Outside::first()).map_err(|why| {
            format!("{why}; a question knows {{id}}, {{client}} with its parts, and {{folder}}")
        })?;
    }
    Ok(())
}

/// Whether every placeholder of a member means something. Members beyond the first are looked at when it is
/// known how many there are.
fn check(members: &AsProcesses) -> Result<(), String> {
    let places = Imagined { peers: members.peers };
    let command = members.command.iter().map(|text| ("member.command".to_owned(), text));
    let environment =
        members.environment.iter().map(|(name, text)| (format!("member.environment.{name}"), text));
    for (key, text) in command.chain(environment) {
        template::filled(text, FIRST, &places).map_err(|why| format!("{key}: {why}"))?;
    }
    Ok(())
}

/// Members as there may be, before any is.
struct Imagined {
    peers: u16,
}

impl Places for Imagined {
    fn members(&self) -> Vec<u64> {
        (FIRST..=9).collect()
    }

    fn client(&self, _: u64) -> std::net::SocketAddr {
        std::net::SocketAddr::from(([127, 0, 0, 1], 1))
    }

    fn listen(&self, member: u64, port: u16) -> Option<std::net::SocketAddr> {
        (port < self.peers).then(|| self.client(member))
    }

    fn dial(&self, member: u64, port: u16) -> Option<std::net::SocketAddr> {
        self.listen(member, port)
    }

    fn word(&self, _: u64, word: &str) -> Option<String> {
        matches!(word, "data" | "folder").then(String::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBER: &str = "[member]\ncommand = [\"a\", \"{client.port}\"]\nready = { http = \"/health\" }\n";
    const CLIENT: &str = "[client]\ncommand = \"python3 client.py\"\n";

    fn parsed(text: &str) -> Result<Description, String> {
        parse(text, "stem", PathBuf::from("/f"))
    }

    #[test]
    fn the_least_is_a_command_a_question_and_a_client() {
        let read = parsed(&format!("{MEMBER}{CLIENT}")).expect("a description");
        let Members::Processes(members) = &read.members else { panic!("local processes") };
        assert_eq!((read.name.as_str(), members.peers, members.clients_at), ("stem", 0, None));
        let client = read.client.expect("a client");
        assert_eq!(client.command, ["sh", "-c", "python3 client.py"]);
        let ready = Probe { how: How::Http("/health".to_owned()), expect: String::new(), at: None };
        assert_eq!(read.ready, ready);
        assert!(read.leader.is_none() && read.promises.is_empty());
    }

    #[test]
    fn an_interval_outlasts_what_members_take_for_silence() {
        for (said, interval) in [
            ("", 20),
            ("gives_up_after = \"1s\"\n", 10),
            ("gives_up_after = \"9s\"\n", 36),
            ("interval = \"7s\"\n", 7),
        ] {
            let read = parsed(&format!("{MEMBER}{said}{CLIENT}")).expect("a description");
            assert_eq!(read.interval, Duration::from_secs(interval), "{said}");
        }
    }

    #[test]
    fn what_is_promised_has_a_source() {
        let promises = "[promises]\nset = { promise = \"nothing\", source = \"redis.io\" }\n\
                        register = \"linearizable\"\n";
        let read = parsed(&format!("{MEMBER}{CLIENT}{promises}")).expect("a description");
        let set = Promised { what: Promise::Nothing, source: "redis.io".to_owned() };
        assert_eq!(read.promises["set"], set);
        assert_eq!(read.promises["register"].what, Promise::Linearizable);
        let all = "[promises]\nall = \"linearizable-updates\"\nwatch = \"latest\"\n";
        let of = |kind| {
            let described = parsed(&format!("{MEMBER}{CLIENT}{all}")).expect("a description");
            described.promised(kind).what
        };
        assert_eq!((of(Kind::SET), of(Kind::WATCH)), (Promise::LinearizableUpdates, Promise::Latest));
        assert_eq!(of(Kind::TXN), Promise::LinearizableUpdates, "nothing else is put in its place");
    }

    #[test]
    fn a_question_knows_who_is_asked_and_nothing_else() {
        let with = |leader: &str| parsed(&format!("{MEMBER}leader = {leader}\n{CLIENT}"));
        assert!(with("{ send = \"who\", expect = \"n{id}\" }").is_ok());
        for leader in ["{ exec = [\"a\", \"{dial.0}\"] }", "{ send = \"{data}\", expect = \"x\" }"] {
            let error = with(leader).expect_err(leader);
            assert!(error.contains("a question knows {id}"), "{error}");
        }
    }

    #[test]
    fn a_client_that_is_a_service_waits_in_its_container_where_that_runs_nothing_else() {
        let read = |app: &str, more: &str| {
            let text = format!(
                "services: {{ a: {{ image: x }}, app: {{ image: y{app} }} }}\nx-harness:\n  members: [a]\n  \
                 ports: {{ client: 7 }}\n  ready: {{ http: / }}\n  \
                 client: {{ service: app, command: [c, d]{more} }}\n"
            );
            parse_compose(&text, PathBuf::from("/f"))
        };
        let container = |app: &str| {
            let read = read(app, ", functions: [read, cas]").expect("a description");
            let container =
                read.client.as_ref().and_then(|client| client.in_container.clone()).expect("a container");
            assert_eq!((container.members.join(" "), container.functions.len()), ("a:7".to_owned(), 2));
            let Members::Containers(members) = read.members else { panic!("containers") };
            let Auxiliaries { before, behind, client, .. } = members.auxiliaries;
            assert_eq!((before.len(), behind.len(), client.as_deref()), (1, 0, Some("app")));
            before[0].service.clone()
        };
        let waits = container(", depends_on: [a]");
        assert_eq!((waits.entrypoint.join(" "), waits.stdin_open), ("c d".to_owned(), true));
        assert_eq!(waits.environment, ["HARNESS_MEMBERS=n1=a:7"]);
        let own = container(", command: [sleep, 9]");
        assert_eq!((own.entrypoint.len(), own.command.join(" ")), (0, "sleep 9".to_owned()));
        assert!(!own.stdin_open);
        for (more, why) in
            [("", "client.functions: write what"), (", functions: [get]", "\"get\" that no workload has")]
        {
            let error = read("", more).expect_err(more);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_advice() {
        let peers = "[member]\ncommand = [\"a\"]\nready = { http = \"/\" }\n";
        for (text, advice) in [
            (format!("nam = 1\n{MEMBER}{CLIENT}"), "unknown field `nam`"),
            (format!("{MEMBER}{CLIENT}[promises]\nsets = \"nothing\"\n"), "no such workload"),
            (format!("{MEMBER}{CLIENT}[promises]\nset = \"all\"\n"), "linearizable, linearizable-updates"),
            (format!("{MEMBER}[client]\ncommand = []\n"), "client.command: name a program"),
            (format!("{MEMBER}{CLIENT}service = \"a\"\n"), "client.service: is for Compose files"),
            (format!("{MEMBER}{CLIENT}functions = [\"read\"]\n"), "client.functions: goes with service"),
            (format!("{peers}peers = 9\n{CLIENT}"), "at most 4"),
            (format!("{peers}clients_at_peer = 0\n{CLIENT}"), "peers = 0"),
            (format!("{peers}farewell = \"soon\"\n{CLIENT}"), "member.farewell"),
            (peers.replace("\"a\"", "\"{dial.0}\"") + CLIENT, "member.command: nobody knows"),
            (peers.replace("http = \"/\"", "send = \"x\"") + CLIENT, "the kernel accepts"),
            (peers.replace("\"/\"", "\"health\"") + CLIENT, "begin with a /"),
            (peers.replace("http = \"/\"", "http = \"/\", exec = [\"a\"]") + CLIENT, "one of send, http"),
            (peers.replace("http = \"/\"", "http = \"/\", at = 8008") + CLIENT, "a command (exec) can ask"),
            (peers.replace("http = \"/\"", "http = \"/\", at = 0") + CLIENT, "from 1 to 65535"),
            (peers.replace("http = \"/\"", "exec = [\"a\"], at = 1") + CLIENT, "at is for send and http"),
        ] {
            let error = parsed(&text).expect_err(&text);
            assert!(error.contains(advice), "{text}\n{error}");
        }
    }
}
