//! The rule of who keeps a connection, and what a peer may do to one.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::address::HostPort;
use crate::book::Book;
use crate::config::NodeConfig;
use crate::testing::{config, connect, from_peer, listener, local};
use node_wire::election::PeerState;
use node_wire::ids::{Epoch, Round, Zxid};
use node_wire::quorum::Dialect;

fn vote(round: u64) -> Notification {
    Notification {
        state: PeerState::Looking,
        leader: ServerId(1),
        zxid: Zxid(5),
        round: Round(round),
        peer_epoch: Epoch(1),
        config: None,
        proposed: None,
        hears: None,
        dialect: Dialect::Own,
    }
}

fn framed(notification: &Notification) -> BytesMut {
    let mut frame = BytesMut::new();
    put_frame(&mut frame, |w| notification.encode(w));
    frame
}

fn hello(id: u64) -> BytesMut {
    let mut bytes = BytesMut::new();
    let hello = Hello { server: ServerId(id), addresses: vec![("127.0.0.1".to_owned(), 1)] };
    hello.encode(&mut Writer::new(&mut bytes));
    bytes
}

/// A port of member `id` among peers, started.
fn start(id: u64, own: TcpListener, all: &[(u64, &HostPort)]) -> (Rc<ElectionPort>, Rc<Inbox>) {
    start_with(config(id, all), own)
}

fn start_with(config: NodeConfig, own: TcpListener) -> (Rc<ElectionPort>, Rc<Inbox>) {
    let inbox = Rc::new(Inbox::default());
    let book = Rc::new(Book::new(&config));
    let port = ElectionPort::new(Rc::new(config), book, Rc::clone(&inbox));
    port.start(own);
    (port, inbox)
}

/// Reads one notification.
async fn heard(stream: &mut TcpStream) -> Notification {
    let mut received = BytesMut::new();
    loop {
        if let Some(frame) = take_frame(&mut received, MAX_NOTIFICATION).expect("a frame") {
            return Notification::decode(frame).expect("a notification");
        }
        assert_ne!(stream.read_buf(&mut received).await.expect("a read"), 0, "hung up");
    }
}

/// Accepts a connection and its hello.
async fn greeted(listener: &TcpListener) -> (TcpStream, Hello) {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut received = BytesMut::new();
    loop {
        if let Some(hello) = Hello::decode(&mut received).expect("a hello") {
            return (stream, hello);
        }
        assert_ne!(stream.read_buf(&mut received).await.expect("a read"), 0, "hung up");
    }
}

/// Waits until the other side hung up.
async fn hung_up(stream: &mut TcpStream) {
    let mut rest = [0; 64];
    while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
}

fn is_connected(input: &Input, id: u64) -> bool {
    matches!(input, Input::ElectionConnected { peer } if *peer == ServerId(id))
}

fn is_lost(input: &Input, id: u64) -> bool {
    matches!(input, Input::ElectionLost { peer } if *peer == ServerId(id))
}

async fn next_vote(inbox: &Rc<Inbox>) -> (ServerId, Notification) {
    loop {
        if let Input::Notification { from, notification } = from_peer(inbox).await {
            return (from, notification);
        }
    }
}

#[test]
fn members_that_dial_each_other_at_once_end_with_a_connection_that_works_both_ways() {
    local(async {
        let ((one, at_one), (two, at_two)) = (listener().await, listener().await);
        let all = [(1, &at_one), (2, &at_two)];
        let (first, inbox_of_first) = start(1, one, &all);
        let (second, inbox_of_second) = start(2, two, &all);
        first.notify(ServerId(2), &vote(7));
        second.notify(ServerId(1), &vote(8));
        assert_eq!(next_vote(&inbox_of_second).await, (ServerId(1), vote(7)));
        assert_eq!(next_vote(&inbox_of_first).await, (ServerId(2), vote(8)));
    });
}

#[test]
fn a_smaller_number_is_hung_up_on_and_dialled_back() {
    local(async {
        let ((own, at_own), (peer, at_peer)) = (listener().await, listener().await);
        let mut impatient = config(2, &[(1, &at_peer), (2, &at_own)]);
        impatient.peer_timeout = Duration::from_millis(20);
        let (_port, inbox) = start_with(impatient, own);
        let (first, _) = greeted(&peer).await;
        assert!(is_connected(&from_peer(&inbox).await, 1));

        // What has just come is not replaced, so it asks more than once.
        let ask = async {
            loop {
                let mut asking = connect(&at_own).await;
                asking.write_all(&hello(1)).await.expect("written");
                hung_up(&mut asking).await;
            }
        };
        let (_again, greeting) = tokio::select! {
            again = greeted(&peer) => again,
            () = ask => unreachable!("it asks for ever"),
        };
        assert_eq!(greeting.server, ServerId(2));
        drop(first);
        assert!(is_lost(&from_peer(&inbox).await, 1));
        assert!(is_connected(&from_peer(&inbox).await, 1));
    });
}

#[test]
fn a_smaller_number_asks_and_keeps_what_the_larger_dials() {
    local(async {
        let ((own, at_own), (peer, at_peer)) = (listener().await, listener().await);
        let (port, inbox) = start(2, own, &[(2, &at_own), (3, &at_peer)]);
        let (mut asked, greeting) = greeted(&peer).await;
        assert_eq!(greeting.server, ServerId(2));
        hung_up(&mut asked).await;

        port.notify(ServerId(3), &vote(1));
        let mut dialled = connect(&at_own).await;
        dialled.write_all(&hello(3)).await.expect("written");
        assert_eq!(heard(&mut dialled).await, vote(1));
        assert!(is_connected(&from_peer(&inbox).await, 3));
        dialled.write_all(&framed(&vote(4))).await.expect("written");
        assert_eq!(next_vote(&inbox).await, (ServerId(3), vote(4)));
    });
}

#[test]
fn only_the_last_vote_is_kept_and_it_is_sent_again_on_a_new_connection() {
    local(async {
        let ((own, at_own), (_peer, at_peer)) = (listener().await, listener().await);
        let (port, inbox) = start(2, own, &[(2, &at_own), (3, &at_peer)]);
        for round in 1..=9 {
            port.notify(ServerId(3), &vote(round));
        }
        for _ in 0..2 {
            let mut dialled = connect(&at_own).await;
            dialled.write_all(&hello(3)).await.expect("written");
            assert_eq!(heard(&mut dialled).await, vote(9));
            assert!(is_connected(&from_peer(&inbox).await, 3));
            drop(dialled);
            assert!(is_lost(&from_peer(&inbox).await, 3));
        }
    });
}

#[test]
fn a_newer_connection_of_the_same_peer_replaces_the_older() {
    local(async {
        let ((own, at_own), (_peer, at_peer)) = (listener().await, listener().await);
        let (_port, inbox) = start(2, own, &[(2, &at_own), (3, &at_peer)]);
        let mut older = connect(&at_own).await;
        older.write_all(&hello(3)).await.expect("written");
        assert!(is_connected(&from_peer(&inbox).await, 3));
        let mut newer = connect(&at_own).await;
        newer.write_all(&hello(3)).await.expect("written");
        assert!(is_lost(&from_peer(&inbox).await, 3));
        assert!(is_connected(&from_peer(&inbox).await, 3));
        hung_up(&mut older).await;
        newer.write_all(&framed(&vote(2))).await.expect("written");
        assert_eq!(next_vote(&inbox).await, (ServerId(3), vote(2)));
    });
}

#[test]
fn unknown_members_and_nonsense_lose_their_own_connection_and_nothing_else() {
    local(async {
        let ((own, at_own), (_peer, at_peer)) = (listener().await, listener().await);
        let (_port, inbox) = start(2, own, &[(2, &at_own), (3, &at_peer)]);
        let mut good = connect(&at_own).await;
        good.write_all(&hello(3)).await.expect("written");
        assert!(is_connected(&from_peer(&inbox).await, 3));

        for nonsense in [&hello(9)[..], &hello(2)[..], &[0xff; 64][..], b"GET / HTTP/1.1\r\n\r\n"] {
            let mut connection = connect(&at_own).await;
            connection.write_all(nonsense).await.expect("written");
            hung_up(&mut connection).await;
        }
        // A whole frame that is no vote is skipped.
        good.write_all(&[0, 0, 0, 2, 7, 7]).await.expect("written");
        good.write_all(&framed(&vote(6))).await.expect("written");
        assert_eq!(next_vote(&inbox).await, (ServerId(3), vote(6)));
        // A frame that is too long can't be.
        good.write_all(&i32::MAX.to_be_bytes()).await.expect("written");
        hung_up(&mut good).await;
        assert!(is_lost(&from_peer(&inbox).await, 3));
    });
}
