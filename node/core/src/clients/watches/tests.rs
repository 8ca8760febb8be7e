//! Who is told of what, and how often.

use super::*;

fn kind_and_path(frame: &bytes::Bytes) -> (i32, String) {
    let mut r = node_wire::jute::Reader::new(frame.slice(4..));
    let header = node_wire::client::ReplyHeader::decode(&mut r).expect("a header");
    assert_eq!(header.xid, node_wire::client::XID_WATCH);
    let event = node_wire::client::WatcherEvent::decode(&mut r).expect("an event");
    (event.kind, event.path.to_string())
}

const ANN: ClientId = ClientId(1);
const BOB: ClientId = ClientId(2);

fn path(text: &'static str) -> ByteString {
    ByteString::from_static(text)
}

fn told(watches: &mut Watches, kind: EventType, at: &'static str) -> Vec<ClientId> {
    let mut out = Vec::new();
    let list = std::sync::Arc::new(vec![Acl::world_anyone()]);
    watches.tell(&[Seen { kind, path: path(at), list }], |_, _| true, &mut out);
    out.into_iter()
        .map(|effect| match effect {
            Effect::Reply { client, frame } => {
                assert_eq!(kind_and_path(&frame), (kind.code(), at.to_owned()));
                client
            }
            other => panic!("no reply: {other:?}"),
        })
        .collect()
}

#[test]
fn a_watch_is_told_once() {
    let mut watches = Watches::default();
    watches.once(ANN, &path("/a"), Place::Data);
    watches.once(BOB, &path("/a"), Place::Children);
    assert_eq!(told(&mut watches, EventType::NodeDataChanged, "/a"), [ANN]);
    assert_eq!(told(&mut watches, EventType::NodeDataChanged, "/a"), []);
    assert_eq!(told(&mut watches, EventType::NodeChildrenChanged, "/a"), [BOB]);
    assert_eq!(watches.count(), 0);
}

#[test]
fn a_deletion_is_told_once_to_who_watches_data_and_children() {
    let mut watches = Watches::default();
    watches.once(ANN, &path("/a"), Place::Data);
    watches.once(ANN, &path("/a"), Place::Children);
    assert_eq!(told(&mut watches, EventType::NodeDeleted, "/a"), [ANN]);
    assert_eq!(watches.count(), 0);
}

#[test]
fn a_persistent_watch_stays_and_hears_of_children() {
    let mut watches = Watches::default();
    watches.add(ANN, &path("/a"), AddWatchMode::Persistent);
    for _ in 0..2 {
        assert_eq!(told(&mut watches, EventType::NodeDataChanged, "/a"), [ANN]);
        assert_eq!(told(&mut watches, EventType::NodeChildrenChanged, "/a"), [ANN]);
        assert_eq!(told(&mut watches, EventType::NodeDeleted, "/a"), [ANN]);
    }
    assert_eq!(told(&mut watches, EventType::NodeCreated, "/a/b"), []);
}

#[test]
fn a_recursive_watch_hears_of_everything_below_but_not_of_lists_of_children() {
    let mut watches = Watches::default();
    watches.add(ANN, &path("/"), AddWatchMode::PersistentRecursive);
    assert_eq!(told(&mut watches, EventType::NodeCreated, "/a/b/c"), [ANN]);
    assert_eq!(told(&mut watches, EventType::NodeDeleted, "/a"), [ANN]);
    assert_eq!(told(&mut watches, EventType::NodeDataChanged, "/"), [ANN]);
    assert_eq!(told(&mut watches, EventType::NodeChildrenChanged, "/"), []);
    assert!(watches.remove(ANN, &path("/"), Which::Any));
    assert_eq!(told(&mut watches, EventType::NodeCreated, "/a/b/c"), []);
}

#[test]
fn a_watch_that_is_told_once_leaves_a_persistent_one_alone() {
    let mut watches = Watches::default();
    watches.add(ANN, &path("/a"), AddWatchMode::Persistent);
    watches.once(ANN, &path("/a"), Place::Data);
    assert_eq!(told(&mut watches, EventType::NodeDataChanged, "/a"), [ANN]);
    assert_eq!(told(&mut watches, EventType::NodeDataChanged, "/a"), [ANN]);
}

#[test]
fn a_watch_is_taken_back_from_its_place() {
    let mut watches = Watches::default();
    watches.once(ANN, &path("/a"), Place::Data);
    assert!(!watches.remove(ANN, &path("/a"), Which::Children));
    assert!(!watches.remove(BOB, &path("/a"), Which::Any));
    assert!(watches.contains(ANN, "/a", Which::Data));
    assert!(watches.remove(ANN, &path("/a"), Which::Data));
    assert!(!watches.contains(ANN, "/a", Which::Any));
    assert_eq!(watches.count(), 0);
}

#[test]
fn the_watches_of_a_connection_go_with_it() {
    let mut watches = Watches::default();
    watches.add(ANN, &path("/"), AddWatchMode::PersistentRecursive);
    watches.once(ANN, &path("/a"), Place::Data);
    watches.once(BOB, &path("/a"), Place::Data);
    watches.forget(ANN);
    assert_eq!(told(&mut watches, EventType::NodeDataChanged, "/a"), [BOB]);
    assert_eq!((watches.recursive, watches.by_path.len(), watches.by_client.len()), (0, 0, 0));
}

#[test]
fn a_million_watches_go_step_by_step_and_are_told_of_nothing_meanwhile() {
    let mut watches = Watches::default();
    let paths: Vec<ByteString> = (0..3 * SWEPT).map(|number| format!("/{number}").into()).collect();
    for path in &paths {
        watches.add(ANN, path, AddWatchMode::PersistentRecursive);
        watches.once(BOB, path, Place::Data);
    }
    watches.forget(ANN);
    assert_eq!(watches.all().filter(|(client, _)| *client == ANN).count(), 0);
    for path in &paths {
        assert_eq!(watches.told(EventType::NodeDataChanged, path), BTreeSet::from([BOB]), "{path}");
    }
    assert_eq!(watches.by_path.len(), 2 * SWEPT, "the first of them went with the connection");
    watches.sweep();
    watches.sweep();
    assert_eq!((watches.recursive, watches.by_path.len(), watches.gone.len()), (0, 0, 0));
}

#[test]
fn what_stood_when_nobody_was_served_any_more_is_given_back_step_by_step() {
    let mut watches = Watches::default();
    for number in 0..3 * SWEPT {
        watches.once(ANN, &format!("/{number}").into(), Place::Data);
    }
    watches.clear();
    watches.once(ANN, &path("/0"), Place::Data);
    assert_eq!(watches.count(), 1);
    watches.clear();
    assert_eq!(told(&mut watches, EventType::NodeCreated, "/0"), []);
    (0..4).for_each(|_| watches.sweep());
    assert!(watches.discarded.by_path.is_empty() && watches.discarded.by_client.is_empty());
}

#[test]
fn a_connection_watches_so_many_bytes_and_no_more() {
    let mut watches = Watches::default();
    let client = ClientId(1);
    let long = |number: usize| ByteString::from(format!("/{number}{}", "p".repeat(1 << 20)));
    let mut count = 0;
    while watches.has_room(client, std::iter::once(&long(count))) {
        watches.once(client, &long(count), Place::Data);
        watches.once(client, &long(count), Place::Children);
        count += 1;
    }
    assert_eq!(count, 63, "two watches at a path are one path");
    assert!(watches.has_room(ClientId(2), std::iter::once(&long(0))), "others have room of their own");
    assert!(watches.remove(client, &long(7), Which::Any));
    assert!(watches.has_room(client, std::iter::once(&long(count))));
    watches.forget(client);
    assert_eq!((watches.count(), watches.all().count()), (0, 0));
}
