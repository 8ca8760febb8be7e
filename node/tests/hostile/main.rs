//! Hostile clients and strangers beside a client that behaves: three members in threads of this process. Each
//! attack is small here and large in `examples/hostile.rs`; what must hold is the same. The client that
//! behaves is answered, all that it wrote is there, and what was refused was refused for its reason.

mod attacks;
#[path = "../ensemble/members.rs"]
#[allow(dead_code, reason = "it serves another test too")]
mod members;

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use bytestring::ByteString;
use members::{Ensemble, PATIENCE};
use node_client::{Client, ConnectOptions};
use node_wire::client::{AddWatchRequest, ErrorCode, OpCode};
use node_wire::ids::ServerId;
use tokio::time::{Instant, timeout};

use attacks::Attacker;

/// Runs an attack on three members beside a client that never stops. What the attack gives is held for some
/// more of its operations.
fn beside<T, F: Future<Output = T>>(attack: impl FnOnce(Place) -> F) {
    let ensemble = Ensemble::start(3);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&ensemble, 1).await;
        connect(&ensemble, 2).await;
        connect(&ensemble, 3).await;
        client.create("/behaved", "0", 0).await.expect("created");
        let place = Place::of(&ensemble);
        let stands = Cell::new(false);
        let attack = async {
            let held = timeout(PATIENCE, attack(place)).await.expect("an attack ends");
            stands.set(true);
            held
        };
        let behaved = async {
            let (mut written, mut left) = (0, 20);
            while left > 0 {
                behave(&client, written).await.expect("the one that behaves is answered");
                written += 1;
                left -= i32::from(stands.get());
                ensemble.assert_alive();
            }
            written
        };
        let (held, written) = tokio::join!(attack, behaved);
        drop(held);
        for member in 1..=3 {
            let other = connect(&ensemble, member).await;
            other.sync("/behaved").await.expect("in step");
            let read = other.get_data("/behaved").await.expect("read").value;
            assert_eq!(read.data.as_deref(), Some(written.to_string().as_bytes()), "member {member}");
            assert_eq!(read.stat.version, written, "member {member}");
        }
    });
}

async fn behave(client: &Client, written: i32) -> Result<(), String> {
    let next = (written + 1).to_string();
    let set = timeout(PATIENCE, client.set_data("/behaved", next.clone(), written)).await;
    set.map_err(|_| "not in time".to_owned())?.map_err(|error| error.to_string())?;
    let read = client.get_data("/behaved").await.map_err(|error| error.to_string())?;
    if read.value.data.as_deref() == Some(next.as_bytes()) { Ok(()) } else { Err("an old value".to_owned()) }
}

async fn connect(ensemble: &Ensemble, member: u64) -> Client {
    let options = ConnectOptions { deadline: Duration::from_secs(1), ..ConnectOptions::default() };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match node_client::connect(ensemble.client_addr(member), options.clone()).await {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < deadline, "member {member} does not serve: {error}"),
        }
        ensemble.assert_alive();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Where the members listen.
#[derive(Clone)]
struct Place {
    clients: Vec<SocketAddr>,
    peers: Vec<(SocketAddr, SocketAddr)>,
}

impl Place {
    fn of(ensemble: &Ensemble) -> Self {
        Self {
            clients: (1..=3).map(|id| ensemble.client_addr(id)).collect(),
            peers: (1..=3).map(|id| ensemble.peer_addrs(id)).collect(),
        }
    }
}

#[test]
fn half_a_frame_keeps_nobody_waiting() {
    beside(|place| async move {
        let mut held = Vec::new();
        for addr in place.clients.iter().cycle().take(30) {
            held.push(attacks::half_a_frame(*addr).await.expect("let in"));
        }
        held
    });
}

#[test]
fn a_gigabyte_that_is_announced_ends_the_connection() {
    beside(|place| async move {
        for addr in place.clients.iter().cycle().take(12) {
            attacks::gigabyte(*addr).await.expect("let in and hung up on");
        }
    });
}

#[test]
fn one_client_watches_much_and_not_without_end() {
    beside(|place| async move {
        let (mut attacker, taken) =
            attacks::watches(place.clients[0], 50_000, 10_000).await.expect("answered");
        assert_eq!(taken, 50_000);
        // So many bytes of paths and no more: the others are refused, the connection stands.
        let mut refused = 0;
        for number in 0..80 {
            let path = ByteString::from(format!("/{number}{}", "p".repeat(1_000_000)));
            let error = attacker.ask(OpCode::AddWatch, &AddWatchRequest { path, mode: 0 }).await;
            match error.expect("answered") {
                0 => assert_eq!(refused, 0, "what is full stays full"),
                error => {
                    assert_eq!(error, ErrorCode::ThrottledOp.code());
                    refused += 1;
                }
            }
        }
        assert!((10..20).contains(&refused), "{refused} of 80 megabytes were refused");
        attacker
    });
}

#[test]
fn the_connections_of_one_host_are_counted() {
    beside(|place| async move {
        let held = attacks::connections(place.clients[1], 100).await;
        // Of a host there may be 60.
        assert!((50..=60).contains(&held.len()), "{} were let in", held.len());
        drop(held);
        // Those who hang up make room.
        while Attacker::connect(place.clients[1]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn whoever_reads_nothing_is_hung_up_on() {
    beside(|place| async move {
        let setup = node_client::connect(place.clients[0], ConnectOptions::default()).await.expect("let in");
        setup.create("/large", vec![7; 1_000_000], 0).await.expect("created");
        let mut attacker = attacks::slow_reader(place.clients[0], "/large", 200).await.expect("let in");
        // Far more is asked for than a member keeps for one who does not read.
        while !is_gone(place.clients[0], &attacker).await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(attacker.hung_up().await);
    });
}

/// True when a member has closed the connection whose answers nobody reads.
async fn is_gone(addr: SocketAddr, attacker: &Attacker) -> bool {
    let local = attacker.stream.local_addr().expect("connected").to_string();
    let open = node_client::four_letter_word(addr, "stat").await.unwrap_or_default();
    !open.is_empty() && !open.contains(&local)
}

#[test]
fn a_flood_of_connections_is_waded_through() {
    beside(|place| async move {
        let addr = place.clients[2];
        let lanes: Vec<_> = (0..4).map(|_| tokio::spawn(attacks::flood(addr, 100))).collect();
        for lane in lanes {
            assert!(lane.await.expect("no panic") > 0);
        }
    });
}

#[test]
fn strangers_on_the_ports_between_members_are_shown_out() {
    beside(|place| async move {
        let mut held = Vec::new();
        for (quorum, election) in &place.peers {
            held.extend(attacks::strangers(*election, *quorum, 5).await);
        }
        assert!(!held.is_empty());
        held
    });
}

/// Nobody proves who he is on the ports between members unless they are told to ask. A liar can make the true
/// one dial again; he can't make a leader of himself nor a lost write.
#[test]
fn a_liar_among_members_gets_nowhere() {
    let ensemble = Ensemble::start(3);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&ensemble, 1).await;
        client.create("/true", "yes", 0).await.expect("created");
        let place = Place::of(&ensemble);
        for (id, (quorum, election)) in (1..).zip(&place.peers) {
            let claims = ServerId(if id == 3 { 2 } else { 3 });
            let _held = attacks::liar(*election, *quorum, claims).await.expect("let in");
        }
        // However they found each other again: all of them serve, and agree.
        for member in 1..=3 {
            let written = async {
                loop {
                    let client = connect(&ensemble, member).await;
                    let path = format!("/by-{member}-");
                    if client.create(path, "x", 2).await.is_ok()
                        && client.sync("/").await.is_ok()
                        && let Ok(read) = client.get_data("/true").await
                    {
                        return read.value.data;
                    }
                }
            };
            let data = timeout(PATIENCE, written).await.expect("in time");
            assert_eq!(data.as_deref(), Some(&b"yes"[..]), "member {member}");
        }
        ensemble.assert_alive();
    });
}
