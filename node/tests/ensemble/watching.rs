//! Watches of real clients, through the loss of a leader.

use std::time::Instant;

use node_wire::client::{
    Acl, CreateRequest, EventType, GetDataResponse, OpCode, PathWatch, SetDataRequest, SetWatches,
};

use crate::members::{Ensemble, PATIENCE};
use crate::raw::RawClient;
use crate::{roles, runtime};

/// Nodes that are written before the client is back, and while it is.
const BEFORE: usize = 10;
const ALL: usize = 20;

fn path(number: usize) -> bytestring::ByteString {
    format!("/watched-{number}").into()
}

fn create(client: &mut RawClient, number: usize) {
    let request = CreateRequest { path: path(number), data: None, acl: vec![Acl::world_anyone()], flags: 0 };
    let (error, _) = client.ask(OpCode::Create, |w| request.encode(w)).expect("a member that stays");
    assert_eq!(error, 0);
}

fn set(client: &mut RawClient, number: usize) {
    let request = SetDataRequest { path: path(number), data: None, version: 0 };
    let (error, _) = client.ask(OpCode::SetData, |w| request.encode(w)).expect("a member that stays");
    assert_eq!(error, 0);
}

/// The version of a node, as the client's member has it.
fn version(client: &mut RawClient, number: usize, watch: bool) -> i32 {
    let request = PathWatch { path: path(number), watch };
    let (error, mut body) = client.ask(OpCode::GetData, |w| request.encode(w)).expect("a member that stays");
    assert_eq!(error, 0);
    GetDataResponse::decode(&mut body).expect("data").stat.version
}

/// How often a node's change was told.
fn told(client: &RawClient, number: usize) -> usize {
    let kind = EventType::NodeDataChanged.code();
    client.events.iter().filter(|event| event.kind == kind && event.path == path(number)).count()
}

#[test]
fn a_client_that_loses_its_leader_is_told_of_every_change_once_and_before_it_sees_it() {
    let mut ensemble = Ensemble::start(3);
    let (leader, followers) = runtime().block_on(roles(&ensemble));
    let mut watcher = RawClient::connect(ensemble.client_addr(leader), None);
    for number in 0..ALL {
        create(&mut watcher, number);
        assert_eq!(version(&mut watcher, number, true), 0);
    }

    ensemble.stop(leader);
    let mut writer = RawClient::connect(ensemble.client_addr(followers[0]), None);
    (0..BEFORE).for_each(|number| set(&mut writer, number));

    let seen = watcher.moving.seen;
    let mut watcher = RawClient::connect(ensemble.client_addr(followers[1]), Some(&watcher.moving));
    let data_watches = (0..ALL).map(path).collect();
    let again = SetWatches { relative_zxid: seen, data_watches, ..SetWatches::default() };
    let (error, _) = watcher.ask(OpCode::SetWatches, |w| again.encode(w)).expect("a member that stays");
    assert_eq!(error, 0);

    for number in 0..ALL {
        if number >= BEFORE {
            set(&mut writer, number);
        }
        // The watcher's member may be behind; whenever it shows the change it has told of it.
        let deadline = Instant::now() + PATIENCE;
        while version(&mut watcher, number, false) == 0 {
            assert!(Instant::now() < deadline, "node {number} stays as it was");
        }
        assert_eq!(told(&watcher, number), 1, "node {number}");
    }
    assert_eq!(watcher.events.len(), ALL, "nothing else was told");
}
