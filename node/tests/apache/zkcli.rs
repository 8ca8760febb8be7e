//! zkCli, the command line that comes with Apache ZooKeeper: what it prints of our members is what it prints
//! of its own.
//!
//! Each command is asked of both, in the same order, over the same ports. Compared is what it prints, apart
//! from what nobody promises: times, the order of a set, and numbers of transactions, of which only the order
//! counts.

use std::collections::BTreeSet;

use crate::java::Java;
use crate::members::{Kind, Members};
use crate::{connect, leader, run};

/// A command of zkCli's own that reaches no server and says one line: what stands before it is all of an
/// answer.
const MARK: (&str, &str) = ("printwatches", "printwatches is on");

/// Commands, and how many events each of them brings.
const COMMANDS: &[(&str, usize)] = &[
    ("ls /", 0),
    ("create /m", 0),
    ("create /m", 0),
    ("create /m/a data", 0),
    ("create -e /m/e eph", 0),
    ("create /m/e/below", 0),
    ("create -s /m/s- one", 0),
    ("create -s /m/s- two", 0),
    ("create -e -s /m/es- x", 0),
    ("create -c /m/c", 0),
    ("create -t 600000 /m/t ttl", 0),
    ("create -t 600000 -s /m/t- ttl", 0),
    ("create -t 600000 -e /m/t2 ttl", 0),
    ("create /none/child", 0),
    ("create m", 0),
    ("create /m/acl x world:anyone:r", 0),
    ("create /m/acl2 x bad", 0),
    ("ls /m", 0),
    ("ls -s /m", 0),
    ("ls -R /m", 0),
    ("ls -w /m", 0),
    ("create /m/seen", 1),
    ("ls /none", 0),
    ("get /m/a", 0),
    ("get -s /m/a", 0),
    ("get -s /m/e", 0),
    ("get -w /m/a", 0),
    ("get /none", 0),
    ("set /m/a new", 1),
    ("set -s /m/a newer", 0),
    ("set -v 1 /m/a old", 0),
    ("set -v 2 /m/a again", 0),
    ("set /none x", 0),
    ("stat /m", 0),
    ("stat -w /m/a", 0),
    ("set /m/a once", 1),
    ("stat /none", 0),
    ("sync /m", 0),
    ("getAcl /m", 0),
    ("getAcl -s /m/acl", 0),
    ("setAcl /m/acl world:anyone:cdrwa", 0),
    ("setAcl /m/a auth::cdrwa", 0),
    ("addauth digest ann:secret", 0),
    ("setAcl -s -R /m/c auth::cdrwa", 0),
    ("getAcl /m/c", 0),
    ("setAcl -v 9 /m/a world:anyone:r", 0),
    ("setAcl /m/a bad", 0),
    ("whoami", 0),
    ("getEphemerals", 0),
    ("getEphemerals /m/e", 0),
    ("getAllChildrenNumber /m", 0),
    ("getAllChildrenNumber /none", 0),
    ("addWatch /m", 0),
    ("addWatch -m PERSISTENT /m/a", 0),
    ("addWatch -m nothing /m", 0),
    ("set /m/a watched", 1),
    ("set /m/a watched-again", 1),
    ("create /m/c/below", 1),
    ("delete /m/c/below", 1),
    ("removewatches /m/none -d", 0),
    ("removewatches /m/a", 1),
    ("removewatches /m", 1),
    ("removewatches /m", 0),
    ("setquota -n 3 /m/c", 0),
    ("setquota -b 100 /m/c", 0),
    ("listquota /m/c", 0),
    ("listquota /m", 0),
    ("setquota -N 2 /m/c", 0),
    ("create /m/c/1", 0),
    ("create /m/c/2", 0),
    ("create /m/c/3", 0),
    ("delquota -n /m/c", 0),
    ("listquota /m/c", 0),
    ("delquota /m/c", 0),
    ("delquota /m", 0),
    ("config", 0),
    ("config -s", 0),
    ("config -c", 0),
    ("reconfig -remove 9", 0),
    ("addauth digest super:test", 0),
    ("reconfig -add server.9=127.0.0.1:9002:9003:observer;127.0.0.1:9001", 0),
    ("config -s", 0),
    ("reconfig -s -remove 9", 0),
    ("reconfig -v 1 -remove 9", 0),
    ("config -w", 0),
    ("reconfig -remove 77", 1),
    ("delete /m", 0),
    ("delete -v 7 /m/a", 0),
    ("delete /m/a", 0),
    ("delete /none", 0),
    ("deleteall /m", 0),
    ("deleteall /none", 0),
    ("ls -R /", 0),
    ("ls -x /", 0),
    ("get", 0),
    ("close", 1),
    ("ls /", 0),
];

/// One that is being talked to.
struct Cli {
    java: Java,
    /// What its watches told.
    events: Vec<String>,
    /// What it printed behind the mark: without a session it says after every command that it is not
    /// connected.
    behind: Vec<String>,
}

impl Cli {
    /// Starts it and waits until it is connected.
    async fn start(hosts: &str) -> Self {
        let java = Java::start(&["org.apache.zookeeper.ZooKeeperMain", "-server", hosts]);
        let mut cli = Self { java, events: Vec::new(), behind: Vec::new() };
        cli.ask("").await;
        cli.wait_for(1).await;
        cli
    }

    /// What a command prints but for events, which may come in between from another thread.
    async fn ask(&mut self, command: &str) -> Vec<String> {
        self.java.say(command);
        self.java.say(MARK.0);
        let mut printed = std::mem::take(&mut self.behind);
        loop {
            match self.next().await {
                Some(line) if line == MARK.1 => return printed,
                Some(line) => printed.push(line),
                None => {}
            }
        }
    }

    /// Waits until so many events have come.
    async fn wait_for(&mut self, events: usize) {
        while self.events.len() < events {
            let line = self.next().await;
            self.behind.extend(line);
        }
    }

    /// The next line, unless it is an event's.
    async fn next(&mut self) -> Option<String> {
        let line = self.java.line().await.expect("it ends only when it is told");
        if line.is_empty() || line == "WATCHER::" {
            return None;
        }
        if line.starts_with("WatchedEvent ") {
            self.events.push(line);
            return None;
        }
        Some(line)
    }
}

/// What is printed by all commands, and what is told.
async fn talk(members: &Members) -> (Vec<Vec<String>>, Vec<String>) {
    let hosts: Vec<String> = (1..=3).map(|id| members.client_addr(id)).collect();
    let mut cli = Cli::start(&hosts.join(",")).await;
    let mut printed = Vec::new();
    for (command, events) in COMMANDS {
        let known = cli.events.len();
        let mut lines = cli.ask(command).await;
        cli.wait_for(known + events).await;
        // Sets of identities and of servers.
        if ["whoami", "config", "reconf"].iter().any(|unordered| command.starts_with(unordered)) {
            lines.sort();
        }
        printed.push(lines.iter().map(|line| in_order(line)).collect());
    }
    cli.ask(&format!("connect {}", hosts[0])).await;
    assert_eq!(cli.ask("ls /").await, ["[zookeeper]"]);
    cli.java.say("quit");
    let mut told = cli.events;
    while let Some(line) = cli.java.line().await {
        told.extend(line.starts_with("WatchedEvent ").then_some(line));
    }
    assert_eq!(cli.java.ended().await, Some(0));
    (printed, told)
}

/// A line whose list is in order.
fn in_order(line: &str) -> String {
    let sorted = |text: &str, separator: &str| {
        let mut items: Vec<&str> = text.split(separator).collect();
        items.sort_unstable();
        items.join(separator)
    };
    match (line.strip_prefix('[').and_then(|list| list.strip_suffix(']')), line.split_once(' ')) {
        (Some(list), _) => format!("[{}]", sorted(list, ", ")),
        (None, Some((version, hosts))) if u64::from_str_radix(version, 16).is_ok() => {
            format!("version={version} {}", sorted(hosts, ","))
        }
        (None, _) => line.to_owned(),
    }
}

/// The number of a transaction in a line: what is before it, and behind it.
fn zxid(line: &str) -> Option<(&str, u64, &str)> {
    let prefixes = ["cZxid = 0x", "mZxid = 0x", "pZxid = 0x", "version="];
    let (prefix, rest) = prefixes.iter().find_map(|prefix| Some((*prefix, line.strip_prefix(prefix)?)))?;
    let (number, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    Some((prefix, u64::from_str_radix(number, 16).ok()?, rest))
}

/// What two ensembles print alike: numbers of transactions by their order, without times and ids of sessions.
fn alike(printed: &[Vec<String>]) -> Vec<Vec<String>> {
    let zxids: BTreeSet<u64> = printed.iter().flatten().filter_map(|line| Some(zxid(line)?.1)).collect();
    let line = |line: &String| {
        if let Some((prefix, number, rest)) = zxid(line) {
            return format!("{prefix}#{}{rest}", zxids.range(..number).count());
        }
        let mut prefixes = ["ctime = ", "mtime = ", "ephemeralOwner = 0x"].into_iter();
        let hidden = prefixes.find(|prefix| line.strip_prefix(prefix).is_some_and(|value| value != "0"));
        hidden.unwrap_or(line).to_owned()
    };
    printed.iter().map(|lines| lines.iter().map(line).collect()).collect()
}

#[test]
fn zkcli_prints_of_our_members_what_it_prints_of_its_own() {
    if !crate::members::installed() {
        return;
    }
    run(async {
        let mut members = Members::changeable(3);
        let mut talks = Vec::new();
        for kind in [Kind::Node, Kind::Apache] {
            (1..=3).for_each(|id| members.start(id, kind));
            leader(&members).await;
            let (printed, told) = talk(&members).await;
            talks.push((alike(&printed), told));
            members.begin_anew();
        }
        let [(ours, ours_told), (theirs, theirs_told)] = &talks[..] else { unreachable!("two talks") };
        for (((command, _), ours), theirs) in COMMANDS.iter().zip(ours).zip(theirs) {
            assert_eq!(ours, theirs, "{command}");
        }
        assert_eq!(ours_told, theirs_told, "events");
    });
}

/// Nodes that are made while nobody is killed.
const CREATED: usize = 20;

#[test]
fn zkcli_is_told_once_and_in_order_through_the_loss_of_two_leaders() {
    if !crate::members::installed() {
        return;
    }
    run(async {
        let mut members = Members::changeable(3);
        (1..=3).for_each(|id| members.start(id, Kind::Node));
        let mut last = leader(&members).await;
        let client = connect(&members.client_addr(1)).await;
        for path in ["/list", "/value"] {
            client.create(path, "", 0).await.expect("created");
        }
        drop(client);
        // Its first server is the one that it loses.
        let hosts = [last, last % 3 + 1, (last + 1) % 3 + 1].map(|id| members.client_addr(id));
        let mut cli = Cli::start(&hosts.join(",")).await;
        assert_eq!(cli.ask("addWatch /list").await, [""; 0]);
        let mut expected = Vec::new();
        let told =
            |kind: &str, path: &str| format!("WatchedEvent state:SyncConnected type:{kind} path:{path}");
        for round in 0..2 {
            let client = connect(&members.client_addr(last % 3 + 1)).await;
            for number in 0..CREATED {
                let path = format!("/list/{round}-{number}");
                client.create(path.clone(), "", 0).await.expect("created");
                expected.push(told("NodeCreated", &path));
            }
            drop(client);
            cli.ask("get -w /value").await;

            members.kill(last);
            let client = connect(&members.client_addr(last % 3 + 1)).await;
            client.set_data("/value", round.to_string(), round).await.expect("set");
            expected.push(told("NodeDataChanged", "/value"));
            drop(client);
            // It answers when it has found another member.
            while cli.ask("sync /").await != ["Sync is OK"] {}
            assert_eq!(cli.ask("get /value").await, [round.to_string()]);
            members.start(last, Kind::Node);
            last = leader(&members).await;
        }
        let changes = |events: &[String]| -> Vec<String> {
            events.iter().filter(|event| !event.contains(" type:None ")).cloned().collect()
        };
        while changes(&cli.events).len() < expected.len() {
            cli.wait_for(cli.events.len() + 1).await;
        }
        assert_eq!(changes(&cli.events), expected);
        assert!(!cli.events.iter().any(|event| event.contains("Expired")), "{:?}", cli.events);
    });
}
