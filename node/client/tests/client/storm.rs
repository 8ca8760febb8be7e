//! Many requests over connections that end at any moment, with the client's tasks on several threads.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use node_client::{CreateMode, Failure, Keeper, KeeperOptions, Request};
use node_recipes::recipe::{Ask, Input};
use node_wire::client::{Create2Response, CreateRequest, OpCode, Stat, XID_PING};
use node_wire::jute::Reader;

use crate::drive::{Call, Recorder};
use crate::fake::{Fake, in_time};

/// How much is asked.
const ASKS: u64 = 1500;

/// How much may be open.
const OPEN: usize = 24;

type Received = Arc<Mutex<Vec<String>>>;

/// Serves connections that end after a number of requests, some of them without an answer.
async fn serve(fake: Fake, received: Received) {
    for number in 0_u32.. {
        let mut side = fake.serve().await;
        let (answered, unanswered) = (number * 7 % 61, number % 5);
        for nth in 0..answered + unanswered {
            let Some(request) = side.request().await else { break };
            if request.xid == XID_PING {
                continue;
            }
            assert_eq!(request.op, OpCode::Create2.code());
            let create = CreateRequest::decode(&mut Reader::new(request.body)).expect("a create");
            received.lock().expect("sound").push(create.path.to_string());
            if nth < answered {
                let created = Create2Response { path: create.path, stat: Stat::default() };
                side.answer(request.xid, 1, 0, |w| created.encode(w)).await;
            }
        }
    }
}

fn create(name: u64) -> Request {
    let (path, mode) = (format!("/{name}").into(), CreateMode::Persistent);
    Request::Create { path, data: Bytes::new(), acl: Vec::new(), mode }
}

/// Asks through a recipe, and holds its driver to all that it owes. Gives what was not sent, and what was
/// answered.
async fn asks(keeper: &Keeper) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut running = keeper.drive(Recorder::default());
    let (mut asked, mut is_connected) = (0, false);
    let mut open: VecDeque<Ask> = VecDeque::new();
    let (mut not_sent, mut answered) = (BTreeSet::new(), BTreeSet::new());
    let mut called = 0;
    while answered.len() < usize::try_from(ASKS).expect("a number") {
        while is_connected && called - asked + u64::try_from(open.len()).expect("a number") < OPEN as u64 {
            called += 1;
            running.call(Call::Ask(vec![create(called)]));
        }
        match in_time(running.next()).await.expect("not over").1 {
            Input::Call(_) => {
                asked += 1;
                open.push_back(Ask(asked));
            }
            Input::Answered { ask, answer } => {
                assert_eq!(Some(ask), open.pop_front(), "once, and in order");
                match answer {
                    Ok(_) => assert!(answered.insert(format!("/{}", ask.0))),
                    Err(Failure::NotSent) => assert!(not_sent.insert(format!("/{}", ask.0))),
                    Err(failure) => assert_eq!(failure, Failure::Unknown),
                }
            }
            Input::Connected { .. } => is_connected = true,
            Input::Suspended => {
                assert!(open.is_empty(), "{open:?} have no answer");
                is_connected = false;
            }
            other => panic!("{other:?}"),
        }
    }
    (not_sent, answered)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_request_is_sent_twice_and_what_is_said_of_each_is_true() {
    let fake = Fake::bind().await;
    let keeper = Keeper::start(fake.addr, KeeperOptions::default()).expect("a list");
    let received = Received::default();
    let server = tokio::spawn(serve(fake, Arc::clone(&received)));
    let beside: Vec<_> = (1..=4_u64)
        .map(|caller| {
            let keeper = keeper.clone();
            tokio::spawn(async move {
                let mut outcomes = Vec::new();
                for nth in 0..100 {
                    let name = 1_000_000 * caller + nth;
                    outcomes.push((format!("/{name}"), keeper.call(create(name)).await));
                }
                outcomes
            })
        })
        .collect();
    let (mut not_sent, mut answered) = asks(&keeper).await;
    for caller in beside {
        for (path, outcome) in in_time(caller).await.expect("no panic") {
            match outcome {
                Ok(_) => assert!(answered.insert(path)),
                Err(error) if error.is_definite() => assert!(not_sent.insert(path)),
                Err(_) => {}
            }
        }
    }
    server.abort();
    let received = received.lock().expect("sound").clone();
    let once: BTreeSet<String> = received.iter().cloned().collect();
    assert_eq!(once.len(), received.len(), "nothing came twice");
    assert!(answered.is_subset(&once));
    assert!(not_sent.is_disjoint(&once), "what was not sent did not come");
}
