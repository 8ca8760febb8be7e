//! The answers to four-letter words.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::time::Duration;

use node_core::{Phase, Role, Status};
use node_wire::ids::SessionId;

use super::VERSION;
use super::report::Report;
use crate::clock::wall_ms;
use crate::facts::Facts;
use crate::metrics::{Detail, Labelled, Values, gauges, labelled, znodes};
use crate::view::{ConnectionView, View};
use crate::whitelist::Word;

/// What the member says when it has no leader.
const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

/// The answer to one word.
pub(crate) fn answer(word: Word, facts: &Facts) -> String {
    let view = &facts.view;
    let serves = view.status.established || view.status.read_only;
    match word {
        Word::Ruok => "imok".to_owned(),
        Word::Envi => envi(),
        Word::Isro if !serves => "null".to_owned(),
        Word::Isro if view.status.read_only => "ro".to_owned(),
        Word::Isro => "rw".to_owned(),
        // The mask is their.
        Word::Gtmk | Word::Stmk => String::new(),
        _ if !serves => NOT_SERVING.to_owned(),
        Word::Conf => conf(facts),
        Word::Cons => cons(view),
        Word::Crst => "Connection stats reset.\n".to_owned(),
        Word::Dirs => dirs(facts),
        Word::Dump => dump(facts),
        Word::Hash => hash(view),
        Word::Mntr => mntr(facts),
        Word::Srst => "Server stats reset.\n".to_owned(),
        Word::Srvr => srvr(facts, false),
        Word::Stat => srvr(facts, true),
        Word::Wchc => wchc(view),
        Word::Wchp => wchp(view),
        Word::Wchs => wchs(view),
    }
}

/// What the member is, as ZooKeeper's monitoring names it. A member of an ensemble with one voter leads or
/// follows it.
pub(crate) fn mode(facts: &Facts) -> &'static str {
    let status = &facts.view.status;
    match status.role {
        _ if stands_alone(facts) => "standalone",
        Role::Leading => "leader",
        Role::Following(_) if status.observes => "observer",
        Role::Following(_) => "follower",
        Role::Looking if status.read_only => "read-only",
        Role::Looking => "looking",
    }
}

/// True for a member that was started without others, and that no reconfiguration gave any.
pub(crate) fn stands_alone(facts: &Facts) -> bool {
    facts.about.config.stands_alone() && facts.view.voters <= 1
}

/// How far it is on the way to an epoch.
pub(crate) fn zab_state(status: &Status) -> &'static str {
    match status.phase {
        Phase::Election => "election",
        Phase::Discovery => "discovery",
        Phase::Synchronization => "synchronization",
        Phase::Broadcast => "broadcast",
    }
}

fn peer_state(status: &Status) -> String {
    let state = match status.role {
        Role::Looking => "looking",
        Role::Following(_) if status.observes => "observing",
        Role::Following(_) => "following",
        Role::Leading => "leading",
    };
    match status.phase {
        Phase::Election => state.to_owned(),
        Phase::Discovery | Phase::Synchronization | Phase::Broadcast => {
            format!("{state} - {}", zab_state(status))
        }
    }
}

fn conf(facts: &Facts) -> String {
    let (about, config, servers) = (&facts.about, &facts.about.config, &facts.view.servers);
    let mut report = Report::default();
    report.pair("clientPort", about.client_port());
    report.pair("secureClientPort", -1);
    report.pair("dataDir", config.version_dir().display());
    report.pair("dataDirSize", about.data_size());
    report.pair("dataLogDir", config.log_dir().display());
    report.pair("dataLogSize", about.log_size());
    report.pair("tickTime", config.tick_time.as_millis());
    report.pair("maxClientCnxns", config.max_client_cnxns);
    report.pair("minSessionTimeout", config.session_timeouts_ms.0);
    report.pair("maxSessionTimeout", config.session_timeouts_ms.1);
    report.pair("clientPortListenBacklog", config.limits.backlog);
    report.pair("serverId", config.id);
    if let Some(own) = servers.get(&config.id).filter(|_| !stands_alone(facts)) {
        report.pair("initLimit", config.init_limit);
        report.pair("syncLimit", config.sync_limit);
        report.pair("electionAlg", 3);
        report.pair("electionPort", own.election.port);
        report.pair("quorumPort", own.quorum.port);
        report.pair("peerType", u8::from(facts.view.status.observes));
        report.line("membership: ");
        for (id, line) in servers.iter() {
            report.line(format_args!("server.{id}={line}"));
        }
        report.line(format_args!("version={:x}", facts.view.membership_version.0));
    }
    report.finish()
}

fn connection(view: &ConnectionView, brief: bool) -> String {
    // The operation that ZooKeeper's selector waits for.
    let interest = u8::from(view.is_read);
    let mut text = format!(
        " /{}[{interest}](queued={},recved={},sent={}",
        view.remote, view.outstanding, view.received, view.sent
    );
    if let Some(session) = view.session.filter(|_| !brief) {
        let cxid = view
            .last_cxid
            .filter(|cxid| *cxid >= 0)
            .map_or(String::new(), |cxid| format!(",lcxid={cxid:#x}"));
        let ms = |latency: Duration| latency.as_millis();
        text += &format!(
            ",sid={:#x},lop={},est={},to={}{cxid},lzxid={:#x},lresp={},llat={},minlat={},avglat={},maxlat={}",
            session.0,
            view.last_operation,
            view.established_ms,
            view.timeout_ms,
            view.last_zxid,
            view.last_response_ms,
            ms(view.last_latency),
            ms(view.min_latency),
            ms(view.avg_latency),
            ms(view.max_latency),
        );
    }
    text + ")"
}

fn cons(view: &View) -> String {
    let mut report = Report::default();
    view.connections.iter().for_each(|view| report.line(connection(view, false)));
    report.line("");
    report.finish()
}

fn dirs(facts: &Facts) -> String {
    let about = &facts.about;
    format!("datadir_size: {}\nlogdir_size: {}\n", about.data_size(), about.log_size())
}

fn dump(facts: &Facts) -> String {
    let (view, tick) = (&facts.view, facts.about.config.tick_time);
    let mut report = Report::default();
    let Some(tree) = view.tree.as_ref().map(node_core::tree::TreeSnapshot::tree) else {
        return String::new();
    };
    report.line("SessionTracker dump:");
    let local = facts.about.config.rules.local_sessions || !view.local_deadlines.is_empty();
    if local {
        session_sets(&mut report, "Local ", &view.local_deadlines, tick);
    }
    if view.status.role == Role::Leading {
        session_sets(&mut report, if local { "Global " } else { "" }, &view.deadlines, tick);
    } else {
        report.line(format_args!("Global Sessions({}):", view.status.sessions));
        for (session, timeout_ms) in tree.sessions() {
            report.line(format_args!("{:#x}\t{timeout_ms}ms", session.0));
        }
    }
    report.line("ephemeral nodes dump:");
    let owners: Vec<SessionId> = tree.sessions().map(|(session, _)| session).collect();
    let owners: Vec<_> =
        owners.into_iter().filter(|owner| tree.ephemerals(*owner).next().is_some()).collect();
    report.line(format_args!("Sessions with Ephemerals ({}):", owners.len()));
    for owner in owners {
        report.line(format_args!("{:#x}:", owner.0));
        tree.ephemerals(owner).for_each(|path| report.line(format_args!("\t{path}")));
    }
    report.line("Connections dump:");
    report.finish()
}

fn session_sets(report: &mut Report, of: &str, deadlines: &[(SessionId, Duration)], tick: Duration) {
    let sets = expiries(deadlines, tick);
    report.line(format_args!("{of}Session Sets ({})/({}):", sets.len(), deadlines.len()));
    for (at_ms, sessions) in &sets {
        report.line(format_args!("{} expire at {}:", sessions.len(), java_date(*at_ms)));
        sessions.iter().for_each(|session| report.line(format_args!("\t{:#x}", session.0)));
    }
}

/// Sessions by the tick in which they end, in milliseconds since the Unix epoch.
pub(crate) fn expiries(deadlines: &[(SessionId, Duration)], tick: Duration) -> BTreeMap<i64, Vec<SessionId>> {
    let tick = i64::try_from(tick.as_millis()).unwrap_or(i64::MAX).max(1);
    let now = wall_ms();
    let mut sets: BTreeMap<i64, Vec<SessionId>> = BTreeMap::new();
    for (session, left) in deadlines {
        let left = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
        let at = now.saturating_add(left);
        sets.entry((at / tick).saturating_add(1).saturating_mul(tick)).or_default().push(*session);
    }
    sets
}

/// As Java prints a date.
fn java_date(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map_or_else(|_| ms.to_string(), |at| at.strftime("%a %b %d %H:%M:%S UTC %Y").to_string())
}

/// What the member knows of its surroundings, under Java's names as far as they mean anything.
pub(crate) fn environment() -> Vec<(&'static str, String)> {
    let said = |name: &str| env::var(name).unwrap_or_else(|_| "<NA>".to_owned());
    let read = |path: &str| fs::read_to_string(path).map_or("<NA>".to_owned(), |text| text.trim().to_owned());
    let memory = read("/proc/meminfo");
    let megabytes = |name: &str| {
        let line = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.map_or("<NA>".to_owned(), |kilobytes| format!("{}MB", kilobytes >> 10))
    };
    let dir = env::current_dir().map_or("<NA>".to_owned(), |dir| dir.display().to_string());
    vec![
        ("zookeeper.version", format!("{VERSION}, built on unknown")),
        ("host.name", read("/proc/sys/kernel/hostname")),
        ("java.version", "<NA>".to_owned()),
        ("os.name", "Linux".to_owned()),
        ("os.arch", env::consts::ARCH.to_owned()),
        ("os.version", read("/proc/sys/kernel/osrelease")),
        ("user.name", said("USER")),
        ("user.home", said("HOME")),
        ("user.dir", dir),
        ("os.memory.free", megabytes("MemAvailable")),
        ("os.memory.max", megabytes("MemTotal")),
        ("os.memory.total", megabytes("MemTotal")),
    ]
}

fn envi() -> String {
    let mut report = Report::default();
    report.line("Environment:");
    environment().iter().for_each(|(key, value)| report.pair(key, value));
    report.finish()
}

fn hash(view: &View) -> String {
    let mut report = Report::default();
    view.digests.iter().for_each(|(zxid, digest)| report.line(format_args!("{:x}: {digest}", zxid.0)));
    report.finish()
}

fn srvr(facts: &Facts, with_connections: bool) -> String {
    let (view, traffic) = (&facts.view, &facts.view.traffic);
    let status = &view.status;
    let mut report = Report::default();
    report.line(format_args!("Zookeeper version: {VERSION}, built on unknown"));
    if with_connections {
        report.line("Clients:");
        view.connections.iter().for_each(|view| report.line(connection(view, true)));
        report.line("");
    }
    report.line(format_args!(
        "Latency min/avg/max: {}/{:.4}/{}",
        traffic.latency_min_ms(),
        traffic.latency_avg_ms(),
        traffic.latency_max.as_millis()
    ));
    report.line(format_args!("Received: {}", traffic.received));
    report.line(format_args!("Sent: {}", traffic.sent));
    report.line(format_args!("Connections: {}", traffic.connections));
    report.line(format_args!("Outstanding: {}", status.outstanding));
    report.line(format_args!("Zxid: {}", status.last_applied));
    let mode = mode(facts);
    report.line(format_args!("Mode: {mode}"));
    report.line(format_args!("Node count: {}", znodes(view)));
    if mode == "leader" {
        let (last, min, max) = facts.metrics.proposals.get();
        report.line(format_args!("Proposal sizes last/min/max: {last}/{min}/{max}"));
    }
    report.finish()
}

fn mntr(facts: &Facts) -> String {
    let (view, metrics) = (&facts.view, &facts.metrics);
    let status = &view.status;
    let mut report = Report::default();
    report.number("version", format_args!("{VERSION}, built on unknown"));
    report.number("server_state", mode(facts));
    if !stands_alone(facts) {
        report.number("peer_state", peer_state(status));
    }
    for (name, value) in gauges(view, metrics) {
        match name {
            // ZooKeeper's own formats of these: an average with a fraction, all else whole.
            "avg_latency" => report.number(name, format_args!("{value:.4}")),
            "connection_drop_probability" => report.number(name, format_args!("{value:?}")),
            _ => report.number(name, format_args!("{:.0}", value.floor())),
        }
    }
    metrics.counters().iter().for_each(|(name, value)| report.number(name, value));
    for (name, detail, values) in metrics.summaries() {
        summary(&mut report, name, detail, &values);
    }
    for (name, keys) in labelled(view, metrics) {
        for (key, value) in keys {
            let name = format!("{key}_{name}");
            match value {
                Labelled::Number(value, _) => report.number(&name, format_args!("{value:.0}")),
                Labelled::Tally(tally) => self::tally(&mut report, &name, tally),
                Labelled::Summary(values) => summary(&mut report, &name, Detail::Advanced, &values),
            }
        }
    }
    report.number("current_epoch", status.current_epoch);
    report.number("last_logged_zxid", status.last_logged);
    report.number("last_applied_zxid", status.last_applied);
    report.number("tree_digest", format_args!("{:#018x}", status.digest));
    report.finish()
}

fn summary(report: &mut Report, name: &str, detail: Detail, values: &Values) {
    report.number(&format!("avg_{name}"), format_args!("{:.4}", values.average()));
    report.number(&format!("min_{name}"), format_args!("{:.0}", values.min.floor()));
    report.number(&format!("max_{name}"), format_args!("{:.0}", values.max.floor()));
    report.number(&format!("cnt_{name}"), values.count);
    report.number(&format!("sum_{name}"), format_args!("{:.0}", values.sum.floor()));
    if detail == Detail::Advanced {
        for (part, shown) in [(0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999")] {
            let value = values.quantile(part).unwrap_or(0.0).round();
            report.number(&format!("{shown}_{name}"), format_args!("{value:.0}"));
        }
    }
}

fn tally(report: &mut Report, name: &str, [count, sum, min, max]: [u64; 4]) {
    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    let average = if count == 0 { 0.0 } else { sum as f64 / count as f64 };
    report.number(&format!("avg_{name}"), format_args!("{average:.4}"));
    for (part, value) in [("min", min), ("max", max), ("cnt", count), ("sum", sum)] {
        report.number(&format!("{part}_{name}"), value);
    }
}

fn wchs(view: &View) -> String {
    let sessions: BTreeSet<_> = view.watches.iter().map(|(session, _)| session).collect();
    let paths: BTreeSet<_> = view.watches.iter().map(|(_, path)| path).collect();
    format!(
        "{} connections watching {} paths\nTotal watches:{}\n",
        sessions.len(),
        paths.len(),
        view.watches.len()
    )
}

fn wchc(view: &View) -> String {
    let mut by_session: BTreeMap<SessionId, BTreeSet<&str>> = BTreeMap::new();
    for (session, path) in &view.watches {
        by_session.entry(*session).or_default().insert(path);
    }
    let mut report = Report::default();
    for (session, paths) in by_session {
        report.line(format_args!("{:#x}", session.0));
        paths.iter().for_each(|path| report.line(format_args!("\t{path}")));
    }
    report.line("");
    report.finish()
}

fn wchp(view: &View) -> String {
    let mut by_path: BTreeMap<&str, BTreeSet<SessionId>> = BTreeMap::new();
    for (session, path) in &view.watches {
        by_path.entry(path).or_default().insert(*session);
    }
    let mut report = Report::default();
    for (path, sessions) in by_path {
        report.line(path);
        sessions.iter().for_each(|session| report.line(format_args!("\t{:#x}", session.0)));
    }
    report.line("");
    report.finish()
}
