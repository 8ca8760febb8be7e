//! The ensemble changes while it serves: members join and leave under a load of writes, the leader among
//! them, and no acknowledged write is lost.

mod members;
#[path = "../common/ports.rs"]
mod ports;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::rc::Rc;
use std::time::Duration;

use members::{Members, PATIENCE};
use node_client::{Client, ConnectOptions, ErrorCode, OpError};
use tokio::time::{Instant, timeout};

/// How long a write may take before its fate counts as unknown.
const IMPATIENCE: Duration = Duration::from_secs(2);

/// Between two looks at a condition.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

async fn try_connect(address: &str) -> Option<Client> {
    let options = ConnectOptions { deadline: Duration::from_secs(1), ..ConnectOptions::default() };
    node_client::connect(address, options).await.ok()
}

async fn connect(address: &str) -> Client {
    let connected = async {
        loop {
            if let Some(client) = try_connect(address).await {
                return client;
            }
            pause().await;
        }
    };
    timeout(PATIENCE, connected).await.expect("a member that serves")
}

async fn mntr(address: &str, key: &str) -> String {
    let text = node_client::four_letter_word(address, "mntr").await.unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('\t')).unwrap_or_default().to_owned()
}

async fn leader(members: &Members, among: &[u64]) -> u64 {
    let found = async {
        loop {
            for &id in among {
                if mntr(&members.client_addr(id), "zk_server_state").await == "leader" {
                    return id;
                }
            }
            pause().await;
        }
    };
    timeout(PATIENCE, found).await.expect("a leader")
}

/// Waits until all of these serve and count so many voters.
async fn agree(members: &Members, ids: &[u64], voters: usize) {
    let deadline = Instant::now() + PATIENCE;
    for &id in ids {
        let wanted = voters.to_string();
        loop {
            let size = mntr(&members.client_addr(id), "zk_quorum_size").await;
            if size == wanted {
                break;
            }
            assert!(Instant::now() < deadline, "member {id} counts `{size}` voters:\n{}", members.said(id));
            pause().await;
        }
    }
}

/// Asks until it is done: newcomers must have followed for a moment, and leaders may have to be found.
async fn reconfig(members: &Members, at: &[u64], joining: &[u64], leaving: &[u64]) -> String {
    let joining = joining.iter().map(|id| members.line(*id)).collect::<Vec<_>>().join(",");
    let leaving = leaving.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let deadline = Instant::now() + PATIENCE;
    loop {
        for &id in at {
            let Some(client) = try_connect(&members.client_addr(id)).await else { continue };
            let asked = client.reconfig(&joining, &leaving, -1);
            match timeout(IMPATIENCE, asked).await {
                Ok(Ok(reply)) => {
                    return String::from_utf8(reply.value.data.unwrap_or_default().to_vec()).expect("text");
                }
                Ok(Err(OpError::Refused { code, .. })) => assert!(
                    matches!(code, ErrorCode::NewConfigNoQuorum | ErrorCode::ReconfigInProgress),
                    "refused: {code:?}"
                ),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        let said = || at.iter().map(|id| members.said(*id)).collect::<Vec<_>>().join("\n---\n");
        assert!(Instant::now() < deadline, "no answer to a reconfiguration:\n{}", said());
        pause().await;
    }
}

/// Writes one name after the other, wherever somebody serves, and notes which were acknowledged.
struct Load {
    addresses: RefCell<Vec<String>>,
    acknowledged: RefCell<BTreeSet<String>>,
    stop: Cell<bool>,
}

impl Load {
    async fn run(self: Rc<Self>) {
        let mut number = 0_u64;
        'members: for turn in 0.. {
            if self.stop.get() {
                return;
            }
            let address = {
                let addresses = self.addresses.borrow();
                addresses[turn % addresses.len()].clone()
            };
            let Some(client) = try_connect(&address).await else {
                pause().await;
                continue;
            };
            while !self.stop.get() {
                number += 1;
                let name = format!("n{number:08}");
                let written = client.create(format!("/w/{name}"), "", 0);
                match timeout(IMPATIENCE, written).await {
                    Ok(Ok(_)) => {
                        self.acknowledged.borrow_mut().insert(name);
                    }
                    Ok(Err(_)) | Err(_) => continue 'members,
                }
            }
        }
    }

    /// Waits until so many more writes were acknowledged.
    async fn goes_on(&self) {
        let before = self.acknowledged.borrow().len();
        let more = async {
            while self.acknowledged.borrow().len() < before + 50 {
                pause().await;
            }
        };
        timeout(PATIENCE, more).await.expect("writes are acknowledged");
    }

    fn use_only(&self, members: &Members, ids: &[u64]) {
        self.addresses.replace(ids.iter().map(|id| members.client_addr(*id)).collect());
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

async fn holds_all(members: &Members, ids: &[u64], acknowledged: &BTreeSet<String>) {
    for &id in ids {
        let client = connect(&members.client_addr(id)).await;
        let there =
            timeout(PATIENCE, client.sync_then_children("/w")).await.expect("an answer").expect("children");
        let there: BTreeSet<String> = there.value.iter().map(ToString::to_string).collect();
        let lost: Vec<&String> = acknowledged.difference(&there).collect();
        assert!(lost.is_empty(), "member {id} lost {} acknowledged writes: {lost:?}", lost.len());
    }
}

#[test]
fn an_ensemble_grows_and_shrinks_under_load_and_loses_nothing() {
    run(async {
        let mut members = Members::new(3, 2);
        for id in 1..=3 {
            members.start(id);
        }
        agree(&members, &[1, 2, 3], 3).await;
        connect(&members.client_addr(1)).await.create("/w", "", 0).await.expect("created");
        let load = Rc::new(Load {
            addresses: RefCell::default(),
            acknowledged: RefCell::default(),
            stop: Cell::new(false),
        });
        load.use_only(&members, &[1, 2, 3]);
        let writer = tokio::task::spawn_local(Rc::clone(&load).run());

        for (newcomer, voters) in [(4, 4), (5, 5)] {
            members.start(newcomer);
            let text = reconfig(&members, &[1, 2, 3], &[newcomer], &[]).await;
            assert!(text.contains(&members.line(newcomer)), "{text}");
            agree(&members, &(1..=newcomer).collect::<Vec<_>>(), voters).await;
            load.goes_on().await;
        }

        // The leader goes twice: it commits its own removal and hands over.
        let mut left: Vec<u64> = (1..=5).collect();
        for voters in [4, 3] {
            let leads = leader(&members, &left).await;
            left.retain(|id| *id != leads);
            load.use_only(&members, &left);
            reconfig(&members, &left, &[], &[leads]).await;
            agree(&members, &left, voters).await;
            assert!(left.contains(&leader(&members, &left).await));
            load.goes_on().await;
            members.kill(leads);
            load.goes_on().await;
        }

        load.stop.set(true);
        writer.await.expect("no panic");
        let acknowledged = load.acknowledged.borrow().clone();
        assert!(acknowledged.len() >= 300, "only {} writes", acknowledged.len());
        holds_all(&members, &left, &acknowledged).await;

        // What they wrote down is what they start with.
        for id in members.running() {
            let text = fs::read_to_string(members.zoo_cfg(id)).expect("a file");
            assert!(text.starts_with("# by hand\n") && text.contains("dynamicConfigFile="), "{text}");
            assert!(!text.contains("server."), "{text}");
            members.kill(id);
        }
        for &id in &left {
            members.start(id);
        }
        agree(&members, &left, 3).await;
        holds_all(&members, &left, &acknowledged).await;
    });
}

/// Members of the membership that rules, as somebody who serves says.
async fn membership(members: &Members) -> Option<BTreeSet<u64>> {
    for id in members.running() {
        let Some(client) = try_connect(&members.client_addr(id)).await else { continue };
        let Ok(Ok(read)) = timeout(IMPATIENCE, client.sync_then_get("/zookeeper/config")).await else {
            continue;
        };
        let text = String::from_utf8(read.value.data.unwrap_or_default().to_vec()).expect("text");
        let ids =
            text.lines().filter_map(|line| line.strip_prefix("server.")?.split('=').next()?.parse().ok());
        return Some(ids.collect());
    }
    None
}

/// One attempt, whatever comes of it.
async fn attempt(members: &Members, joining: Option<u64>, leaving: Option<u64>) {
    let joining = joining.map(|id| members.line(id)).unwrap_or_default();
    let leaving = leaving.map(|id| id.to_string()).unwrap_or_default();
    for id in members.running() {
        let Some(client) = try_connect(&members.client_addr(id)).await else { continue };
        if let Ok(Ok(_)) = timeout(IMPATIENCE, client.reconfig(&joining, &leaving, -1)).await {
            return;
        }
    }
}

#[test]
fn members_die_while_the_ensemble_changes_and_nothing_is_lost() {
    run(async {
        let all: BTreeSet<u64> = (1..=5).collect();
        let mut members = Members::new(3, 2);
        for &id in &all {
            members.start(id);
        }
        agree(&members, &[1, 2, 3], 3).await;
        connect(&members.client_addr(1)).await.create("/w", "", 0).await.expect("created");
        let load = Rc::new(Load {
            addresses: RefCell::default(),
            acknowledged: RefCell::default(),
            stop: Cell::new(false),
        });
        load.use_only(&members, &all.iter().copied().collect::<Vec<_>>());
        let writer = tokio::task::spawn_local(Rc::clone(&load).run());

        // A member dies right when a change is asked for, and comes back; who, follows from the round.
        for round in 0..12_u64 {
            let Some(now) = membership(&members).await else {
                pause().await;
                continue;
            };
            let outside = all.difference(&now).copied().next();
            for &id in &all {
                members.revive(id, &now);
            }
            let inside = now.iter().copied().nth(usize::try_from(round).expect("few") % now.len());
            let victim = 1 + (round * 3) % 5;
            let change = async {
                match outside {
                    Some(newcomer) if round % 3 != 0 || now.len() <= 3 => {
                        attempt(&members, Some(newcomer), None).await;
                    }
                    Some(_) | None => attempt(&members, None, inside).await,
                }
            };
            let _ = timeout(Duration::from_millis(20 * (round % 4)), change).await;
            if now.contains(&victim) && members.running().contains(&victim) {
                members.kill(victim);
                members.start(victim);
            }
            load.goes_on().await;
        }

        load.stop.set(true);
        writer.await.expect("no panic");
        let acknowledged = load.acknowledged.borrow().clone();
        let serves = async {
            loop {
                if let Some(now) = membership(&members).await {
                    return now;
                }
                pause().await;
            }
        };
        let now = timeout(PATIENCE, serves).await.expect("somebody serves");
        for &id in &now {
            members.revive(id, &now);
        }
        holds_all(&members, &now.into_iter().collect::<Vec<_>>(), &acknowledged).await;
    });
}

#[test]
fn a_member_whose_client_port_moves_listens_there() {
    run(async {
        let mut members = Members::new(3, 1);
        for id in 1..=3 {
            members.start(id);
        }
        agree(&members, &[1, 2, 3], 3).await;
        let client = connect(&members.client_addr(1)).await;
        // The newcomer's port is free: it is never started.
        let moved = members.line(1).replace(&members.client_addr(1), &members.client_addr(4));
        client.reconfig(&moved, "", -1).await.expect("done");
        let there = connect(&members.client_addr(4)).await;
        let text = there.get_data("/zookeeper/config").await.expect("read").value.data.unwrap_or_default();
        assert!(String::from_utf8_lossy(&text).contains(&moved));
        assert!(client.exists("/").await.is_ok(), "who is connected stays");
        // A port between members stays while its process lives.
        let line = members.line(2).replace("server.2=127.0.0.1:", "server.2=127.0.0.2:");
        let refused = there.reconfig(&line, "", -1).await.expect_err("refused");
        assert_eq!(refused.refusal(), Some(ErrorCode::BadArguments));
    });
}
