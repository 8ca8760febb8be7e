//! Three members in threads of this process, on loopback, with real files and a real client.

#[path = "../common/frames.rs"]
mod frames;
mod members;
mod raw;
mod watching;
mod working;

use std::time::Duration;

use members::{Ensemble, PATIENCE};
use node_client::{Client, ConnectOptions, ErrorCode, OpError, Session};
use tokio::time::{Instant, timeout};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Connects as soon as the member serves.
async fn connect(ensemble: &Ensemble, member: u64, session: Option<Session>) -> Client {
    let options = ConnectOptions { session, deadline: Duration::from_secs(1), ..ConnectOptions::default() };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match node_client::connect(ensemble.client_addr(member), options.clone()).await {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < deadline, "member {member} does not serve: {error}"),
        }
        ensemble.assert_alive();
        pause().await;
    }
}

/// Between two looks at a condition. Looking without a pause opens more connections in a second than a
/// connection-tracking firewall remembers.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// One key of `mntr`, empty where the member does not serve.
async fn mntr(ensemble: &Ensemble, member: u64, key: &str) -> String {
    let text = node_client::four_letter_word(ensemble.client_addr(member), "mntr").await.unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('\t'));
    value.unwrap_or_default().to_owned()
}

/// The leader and its followers, once all are known.
async fn roles(ensemble: &Ensemble) -> (u64, Vec<u64>) {
    let find = async {
        loop {
            let (mut leaders, mut followers) = (Vec::new(), Vec::new());
            for member in ensemble.running() {
                match mntr(ensemble, member, "zk_server_state").await.as_str() {
                    "leader" => leaders.push(member),
                    "follower" => followers.push(member),
                    _ => {}
                }
            }
            if leaders.len() == 1 && leaders.len() + followers.len() == ensemble.running().len() {
                return (leaders[0], followers);
            }
            pause().await;
        }
    };
    timeout(PATIENCE, find).await.expect("a leader and its followers")
}

/// Waits until all members say the same of themselves.
async fn converged(ensemble: &Ensemble) {
    let same = async {
        loop {
            let mut seen = std::collections::BTreeSet::new();
            for member in ensemble.running() {
                let zxid = mntr(ensemble, member, "zk_last_applied_zxid").await;
                seen.insert((zxid, mntr(ensemble, member, "zk_tree_digest").await));
            }
            if seen.len() == 1 && seen.first().is_some_and(|(zxid, _)| !zxid.is_empty()) {
                return;
            }
            pause().await;
        }
    };
    timeout(PATIENCE, same).await.expect("equal trees at equal zxids");
}

#[test]
fn three_members_elect_serve_and_agree() {
    let ensemble = Ensemble::start(3);
    runtime().block_on(async {
        let (leader, followers) = roles(&ensemble).await;
        let at_leader = connect(&ensemble, leader, None).await;
        let at_follower = connect(&ensemble, followers[0], None).await;

        let created = at_follower.create("/a", "one", 0).await.expect("created");
        assert_eq!(created.value, "/a");
        let set = at_leader.set_data("/a", "two", 0).await.expect("set");
        assert!(set.zxid > created.zxid);
        let stale = at_follower.set_data("/a", "three", 0).await.expect_err("bad version");
        assert!(matches!(stale, OpError::Refused { code: ErrorCode::BadVersion, .. }), "{stale:?}");
        for client in [&at_leader, &at_follower] {
            let read = client.sync_then_get("/a").await.expect("read");
            assert_eq!((read.value.data.as_deref(), read.value.stat.version), (Some(&b"two"[..]), 1));
        }
        let first = at_leader.create2("/a/s-", "", 2).await.expect("sequential").value.path;
        assert_eq!(first, "/a/s-0000000000");
        at_follower.sync("/").await.expect("synced");
        assert_eq!(at_follower.get_children("/a").await.expect("children").value, ["s-0000000000"]);
        at_follower.delete("/a/s-0000000000", -1).await.expect("deleted");
        assert_eq!(at_follower.exists("/a/s-0000000000").await.expect("asked").value, None);
        at_leader.close_session().await.expect("closed");
        converged(&ensemble).await;
    });
}

#[test]
fn many_requests_in_flight_come_back_in_order_and_all_count() {
    let ensemble = Ensemble::start(3);
    runtime().block_on(async {
        let (_, followers) = roles(&ensemble).await;
        let client = connect(&ensemble, followers[0], None).await;
        client.create("/n", "", 0).await.expect("created");
        let writes = (0..2000).map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.set_data("/n", format!("{n}"), -1).await })
        });
        let writes: Vec<_> = writes.collect();
        let mut last = node_wire::ids::Zxid::ZERO;
        for (write, version) in writes.into_iter().zip(1..) {
            let reply = write.await.expect("no panic").expect("written");
            assert!(reply.zxid > last, "answers come in the order of the zxids");
            assert_eq!(reply.value.version, version);
            last = reply.zxid;
        }
        converged(&ensemble).await;
    });
}

#[test]
fn when_the_leader_stops_the_others_go_on_and_it_comes_back_to_the_same_tree() {
    let mut ensemble = Ensemble::start(3);
    runtime().block_on(async {
        let (leader, followers) = roles(&ensemble).await;
        let client = connect(&ensemble, leader, None).await;
        client.create("/kept", "before", 0).await.expect("created");
        client.create("/mine", "", 1).await.expect("ephemeral");
        let session = client.session();

        ensemble.stop(leader);
        timeout(PATIENCE, client.closed()).await.expect("the connection ends with its member");
        let error = client.set_data("/kept", "x", -1).await.expect_err("no connection");
        assert!(error.is_definite(), "{error:?}");

        let moved = connect(&ensemble, followers[0], Some(session.clone())).await;
        assert_eq!(moved.session().id, session.id);
        let set = moved.set_data("/kept", "after", 0).await.expect("a new leader commits");
        assert!(set.zxid.epoch() > session.last_zxid_seen.epoch(), "in a new epoch");
        assert!(moved.exists("/mine").await.expect("asked").value.is_some(), "the session lives");

        ensemble.start_again(leader);
        let back = connect(&ensemble, leader, None).await;
        assert_eq!(
            back.sync_then_get("/kept").await.expect("read").value.data.as_deref(),
            Some(&b"after"[..])
        );
        converged(&ensemble).await;
    });
}

#[test]
fn what_was_acknowledged_is_there_after_all_have_restarted() {
    let mut ensemble = Ensemble::start(3);
    runtime().block_on(async {
        let client = connect(&ensemble, 1, None).await;
        for n in 0..50 {
            client.create(format!("/n{n}"), format!("{n}"), 0).await.expect("created");
        }
        for member in 1..=3 {
            ensemble.stop(member);
        }
        for member in 1..=3 {
            ensemble.start_again(member);
        }
        let client = connect(&ensemble, 3, None).await;
        for n in 0..50 {
            let read = client.sync_then_get(format!("/n{n}")).await.expect("read");
            assert_eq!(read.value.data.as_deref(), Some(n.to_string().as_bytes()));
        }
        converged(&ensemble).await;
    });
}

#[test]
fn a_member_without_history_is_sent_the_tree_when_the_log_does_not_reach_back() {
    let mut ensemble = Ensemble::new(3);
    ensemble.snap_count = 10;
    ensemble.start_again(1);
    ensemble.start_again(2);
    runtime().block_on(async {
        let client = connect(&ensemble, 1, None).await;
        for n in 0..100 {
            client.create(format!("/n{n}"), vec![7; 1000], 0).await.expect("created");
        }
        let snapshots = |member: u64| {
            let mut files = ensemble.files(member);
            files.retain(|name| name.starts_with("snapshot."));
            files.len()
        };
        timeout(PATIENCE, async {
            while snapshots(1) < 2 || snapshots(2) < 2 {
                client.set_data("/n0", "again", -1).await.expect("set");
            }
        })
        .await
        .expect("snapshots are taken in the background");
        for member in [1, 2] {
            ensemble.stop(member);
            ensemble.start_again(member);
        }
        connect(&ensemble, 1, None).await;
        ensemble.start_again(3);
        let client = connect(&ensemble, 3, None).await;
        assert_eq!(client.sync_then_get("/n99").await.expect("read").value.data, Some(vec![7; 1000].into()));
        converged(&ensemble).await;
        assert!(ensemble.files(3).iter().any(|name| name.starts_with("snapshot.")), "the tree was installed");
    });
}

#[test]
fn an_ensemble_of_one_serves_alone() {
    let ensemble = Ensemble::start(1);
    runtime().block_on(async {
        let client = connect(&ensemble, 1, None).await;
        client.create("/a", "x", 0).await.expect("created");
        assert_eq!(client.sync_then_get("/a").await.expect("read").value.data.as_deref(), Some(&b"x"[..]));
        let answer = node_client::four_letter_word(ensemble.client_addr(1), "ruok").await.expect("an answer");
        assert_eq!(answer, "imok");
    });
}

#[test]
fn a_member_alone_of_three_serves_nobody_and_says_so() {
    let ensemble = Ensemble::start_some(3, &[1]);
    runtime().block_on(async {
        let refused = node_client::connect(ensemble.client_addr(1), ConnectOptions::default()).await;
        assert!(matches!(refused, Err(node_client::ConnectError::NotServing)), "{refused:?}");
        let answer = node_client::four_letter_word(ensemble.client_addr(1), "srvr").await.expect("an answer");
        assert_eq!(answer, "This ZooKeeper instance is not currently serving requests\n");
    });
}
