//! Together with Apache ZooKeeper 3.8: its directories, its leaders, its followers, its observers; its
//! clients.
//!
//! Each test says so and passes where Apache ZooKeeper is not installed.

mod alike;
#[path = "../common/frames.rs"]
mod frames;
mod java;
mod members;
#[path = "../common/ports.rs"]
mod ports;
mod watching;
mod zkcli;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use node_client::{Client, ConnectOptions};
use tokio::time::{Instant, timeout};

use members::{Kind, Members, PATIENCE, SNAPPY, installed};

/// Java members log the digest at every zxid that this divides.
const DIGEST_INTERVAL: u64 = 128;

/// Clients that write while members are replaced.
const WRITERS: u64 = 3;

/// Acknowledged writes of each writer before the next member is replaced.
const WRITES_BETWEEN: usize = 100;

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

/// Between two looks at a condition.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Connects as soon as the member serves.
async fn connect(addr: &str) -> Client {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let options = ConnectOptions { deadline: Duration::from_secs(10), ..ConnectOptions::default() };
        match node_client::connect(addr.to_owned(), options).await {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < deadline, "{addr} does not serve: {error}"),
        }
        pause().await;
    }
}

/// What a member says it is.
async fn mode(members: &Members, id: u64) -> String {
    let asked = node_client::four_letter_word(members.client_addr(id), "srvr");
    let text = timeout(Duration::from_secs(2), asked)
        .await
        .map_or_else(|_| String::new(), Result::unwrap_or_default);
    text.lines().find_map(|line| line.strip_prefix("Mode: ")).unwrap_or_default().to_owned()
}

/// Waits until all that run serve, one of them as the leader. Gives the leader.
async fn leader(members: &Members) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut modes = Vec::new();
        for id in members.running() {
            modes.push((id, mode(members, id).await));
        }
        let leaders: Vec<u64> = modes
            .iter()
            .filter(|(_, mode)| mode == "leader" || mode == "standalone")
            .map(|(id, _)| *id)
            .collect();
        let all = modes
            .iter()
            .all(|(_, mode)| ["leader", "follower", "observer", "standalone"].contains(&mode.as_str()));
        if let ([leader], true) = (leaders.as_slice(), all) {
            return *leader;
        }
        assert!(Instant::now() < deadline, "no ensemble: {modes:?}");
        pause().await;
    }
}

/// The digest that a member has for a zxid, once it has come so far.
async fn digest(members: &Members, id: u64, kind: Kind, zxid: u64) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let word = if kind == Kind::Apache { "hash" } else { "mntr" };
        let text = node_client::four_letter_word(members.client_addr(id), word).await.unwrap_or_default();
        let found = match kind {
            Kind::Apache => text.lines().find_map(|line| {
                let (at, digest) = line.split_once(": ")?;
                (u64::from_str_radix(at, 16) == Ok(zxid)).then(|| digest.trim().parse::<i64>().ok())?
            }),
            Kind::Node => {
                let value =
                    |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix("\t0x"));
                let hex = |text: &str| u64::from_str_radix(text, 16).ok();
                let here = value("zk_last_applied_zxid").and_then(hex) == Some(zxid);
                value("zk_tree_digest").and_then(hex).filter(|_| here).map(u64::cast_signed)
            }
        };
        if let Some(found) = found {
            return found.cast_unsigned();
        }
        assert!(Instant::now() < deadline, "member {id} has no digest for {zxid:#x}: {text}");
        pause().await;
    }
}

/// Writes until Java members log a digest. Gives the zxid.
async fn write_to_a_digest(client: &Client, name: &str) -> u64 {
    for number in 0.. {
        let created = client.create(format!("/{name}-{number}"), Bytes::from(vec![7; 40]), 0).await;
        let zxid = created.expect("created").zxid.0;
        if zxid.is_multiple_of(DIGEST_INTERVAL) {
            return zxid;
        }
    }
    unreachable!("zxids count up")
}

/// Nobody said that trees differ.
fn assert_no_divergence(members: &Members, ids: impl IntoIterator<Item = u64>) {
    for id in ids {
        let said = members.said(id);
        let line = said.lines().find(|line| {
            let line = line.to_lowercase();
            line.contains("digest mismatch")
                || line.contains("digests are not matching")
                || line.contains("is not what the leader")
        });
        assert_eq!(line, None, "member {id}");
    }
}

#[test]
fn a_directory_is_opened_by_one_after_the_other() {
    if !installed() {
        return;
    }
    // One after the other here too: members alone look for the same ports.
    let mut keys = vec!["", "dataLogDir=logs\nsnapshot.compression.method=gz\n"];
    if Path::new(SNAPPY).exists() {
        keys.push("snapshot.compression.method=snappy\n");
    }
    for more in keys {
        one_after_the_other(Kind::Apache, more);
        one_after_the_other(Kind::Node, more);
    }
}

/// One kind of member, the other, and the first again, over the same directory with these keys.
fn one_after_the_other(first: Kind, more: &str) {
    run(async {
        let second = if first == Kind::Node { Kind::Apache } else { Kind::Node };
        let mut members = Members::new(1, 0);
        members.configure(1, more);
        let mut paths = BTreeSet::new();
        for (turn, kind) in [first, second, first].into_iter().enumerate() {
            members.start(1, kind);
            leader(&members).await;
            let client = connect(&members.client_addr(1)).await;
            let found = client.get_children("/").await.expect("read").value;
            let found: BTreeSet<String> = found.iter().map(ToString::to_string).collect();
            assert!(paths.is_subset(&found), "{kind:?} lacks what was written before turn {turn}");
            // Beyond a snapshot, and behind it.
            for number in 0..250 {
                let path = format!("/{turn}-{number}");
                client.create(path.clone(), "x", 0).await.expect("created");
                match number % 3 {
                    0 => drop(client.set_data(path.clone(), "y", 0).await.expect("set")),
                    1 => drop(client.delete(path.clone(), 0).await.expect("deleted")),
                    _ => {}
                }
                if number % 3 != 1 {
                    paths.insert(path[1..].to_owned());
                }
            }
            client.create("/ephemeral", "", 1).await.expect("created");
            client.close_session().await.expect("closed");
            members.stop(1).await;
            let method = more.lines().find_map(|line| line.strip_prefix("snapshot.compression.method="));
            let snapshots = members.snapshots(1);
            let named = |name: &String| method.is_none_or(|method| name.ends_with(&format!(".{method}")));
            assert!(snapshots.iter().any(named), "{kind:?} wrote {snapshots:?}");
        }
        assert_no_divergence(&members, [1]);
    });
}

#[test]
fn members_and_observers_of_both_kinds_have_equal_trees() {
    if !installed() {
        return;
    }
    run(async {
        let kinds = [Kind::Apache, Kind::Node, Kind::Node, Kind::Apache, Kind::Node];
        let ids = || (1_u64..).zip(kinds);
        let mut members = Members::new(3, 2);
        ids().for_each(|(id, kind)| members.start(id, kind));
        for round in 0..2 {
            let leader = leader(&members).await;
            for (id, _) in ids() {
                let client = connect(&members.client_addr(id)).await;
                client.create(format!("/{round}-through-{id}"), "x", 0).await.expect("created");
                client.create(format!("/{round}-with-{id}"), "", 1).await.expect("created");
                client.close_session().await.expect("closed");
            }
            let client = connect(&members.client_addr(4)).await;
            let zxid = write_to_a_digest(&client, &format!("{round}-filling")).await;
            let mut digests = BTreeSet::new();
            for (id, kind) in ids() {
                digests.insert(digest(&members, id, kind, zxid).await);
            }
            assert_eq!(digests.len(), 1, "{digests:x?}");
            for observer in [4, 5] {
                assert_eq!(mode(&members, observer).await, "observer");
            }
            let kind = kinds[usize::try_from(leader - 1).expect("few")];
            members.stop(leader).await;
            members.start(leader, kind);
        }
        assert_no_divergence(&members, 1..=5);
    });
}

/// One client that writes and goes to another member when it is sent away. Gives what was acknowledged.
async fn write(
    writer: u64,
    addrs: Vec<String>,
    written: Rc<Cell<usize>>,
    stop: Rc<Cell<bool>>,
) -> BTreeSet<String> {
    let mut acknowledged = BTreeSet::new();
    let mut client = None;
    for number in 0_usize.. {
        if stop.get() {
            return acknowledged;
        }
        let connected = match client.take() {
            Some(client) => client,
            None => {
                let addr = addrs[number % addrs.len()].clone();
                let options =
                    ConnectOptions { deadline: Duration::from_secs(2), ..ConnectOptions::default() };
                match node_client::connect(addr, options).await {
                    Ok(client) => client,
                    Err(_) => {
                        pause().await;
                        continue;
                    }
                }
            }
        };
        let name = format!("{writer}-{number}");
        let reply = timeout(Duration::from_secs(5), connected.create(format!("/{name}"), "x", 0)).await;
        // Whatever else came of it: nothing was promised.
        if let Ok(Ok(_)) = reply {
            acknowledged.insert(name);
            written.set(written.get() + 1);
            client = Some(connected);
        }
    }
    acknowledged
}

#[test]
fn a_serving_ensemble_is_replaced_member_by_member_and_back() {
    if !installed() {
        return;
    }
    run(async {
        let mut members = Members::new(3, 0);
        (1..=3).for_each(|id| members.start(id, Kind::Apache));
        leader(&members).await;
        let addrs: Vec<String> = (1..=3).map(|id| members.client_addr(id)).collect();
        let stop = Rc::new(Cell::new(false));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let written = Rc::new(Cell::new(0));
                let task = write(writer, addrs.clone(), Rc::clone(&written), Rc::clone(&stop));
                (written, tokio::task::spawn_local(task))
            })
            .collect();
        for kind in [Kind::Node, Kind::Apache] {
            let began = Instant::now();
            // The leader last, as operators do.
            let last = leader(&members).await;
            for id in (1..=3).filter(|id| *id != last).chain([last]) {
                members.stop(id).await;
                members.start(id, kind);
                leader(&members).await;
                for (written, _) in &writers {
                    let goal = written.get() + WRITES_BETWEEN;
                    let deadline = Instant::now() + PATIENCE;
                    while written.get() < goal {
                        assert!(Instant::now() < deadline, "writes stand still with member {id} as {kind:?}");
                        pause().await;
                    }
                }
            }
            println!("replaced by {kind:?} in {:?}", began.elapsed());
        }
        stop.set(true);
        let mut acknowledged = BTreeSet::new();
        for (_, task) in writers {
            acknowledged.extend(task.await.expect("a writer that ends"));
        }
        for id in 1..=3 {
            let client = connect(&members.client_addr(id)).await;
            let found = client.sync_then_children("/").await.expect("read").value;
            let found: BTreeSet<String> = found.iter().map(ToString::to_string).collect();
            let lost: Vec<&String> = acknowledged.difference(&found).collect();
            assert!(lost.is_empty(), "member {id} lost {} of {}: {lost:?}", lost.len(), acknowledged.len());
        }
        assert_no_divergence(&members, 1..=3);
    });
}
