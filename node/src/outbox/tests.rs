//! Order, bounds and ends of what waits for a socket.

use std::rc::Rc;

use tokio::net::TcpStream;

use super::*;
use crate::testing::{connect, listener, local};

/// A queue in front of a socket, its reading half, and the other end.
async fn pair(limit: usize) -> (Rc<Outbox>, OwnedReadHalf, TcpStream) {
    let (listener, addr) = listener().await;
    let (ours, theirs) = tokio::join!(connect(&addr), listener.accept());
    let (reader, writer) = ours.into_split();
    (Rc::new(Outbox::new(writer, None, limit)), reader, theirs.expect("accepted").0)
}

fn put(outbox: &Outbox, bytes: &[u8]) -> Result<(), Overflow> {
    outbox.append(|buffer| buffer.extend_from_slice(bytes))
}

async fn expect(stream: &mut TcpStream, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    stream.read_exact(&mut got).await.expect("bytes");
    assert_eq!(got, bytes);
}

#[test]
fn what_comes_behind_a_gap_waits_for_it() {
    local(async {
        let (outbox, _reader, mut peer) = pair(1000).await;
        put(&outbox, b"before ").expect("room");
        outbox.open_gap();
        put(&outbox, b"after").expect("room");
        outbox.flush();
        expect(&mut peer, b"before ").await;
        assert_eq!(outbox.waiting(), 5);
        outbox.fill_gap(Bytes::from_static(b"image "));
        expect(&mut peer, b"image after").await;
        assert_eq!(outbox.waiting(), 0);
    });
}

#[test]
fn a_queue_beyond_its_limit_says_so() {
    local(async {
        let (outbox, _reader, _peer) = pair(10).await;
        assert_eq!(put(&outbox, &[1; 10]), Ok(()));
        assert_eq!(put(&outbox, &[1]), Err(Overflow));
    });
}

#[test]
fn a_close_writes_everything_first_even_to_a_slow_reader() {
    local(async {
        let total = 8 << 20;
        let (outbox, mut reader, mut peer) = pair(total).await;
        put(&outbox, &vec![3; total]).expect("room");
        outbox.flush();
        assert!(outbox.waiting() > 0, "the socket does not take it all");
        outbox.close();
        let closing = Rc::clone(&outbox);
        let ended = tokio::task::spawn_local(async move {
            let read = closing.read(&mut reader, &mut BytesMut::new(), 64, || true).await;
            assert!(!read.expect("no error"), "nothing more is read");
            closing.linger(&mut reader).await;
        });
        let mut got = Vec::new();
        peer.read_to_end(&mut got).await.expect("an end");
        assert_eq!(got.len(), total);
        drop(peer);
        ended.await.expect("over");
    });
}

#[test]
fn a_reader_that_may_not_read_writes_on_and_reads_when_poked() {
    local(async {
        let (outbox, mut reader, mut peer) = pair(8 << 20).await;
        tokio::io::AsyncWriteExt::write_all(&mut peer, b"hello").await.expect("written");
        let allowed = Rc::new(Cell::new(false));
        let (reading, may) = (Rc::clone(&outbox), Rc::clone(&allowed));
        let read = tokio::task::spawn_local(async move {
            let mut received = BytesMut::new();
            assert!(reading.read(&mut reader, &mut received, 64, || may.get()).await.expect("no error"));
            received
        });
        let total = 4 << 20;
        put(&outbox, &vec![3; total]).expect("room");
        outbox.flush();
        expect(&mut peer, &vec![3; total]).await;
        assert!(!read.is_finished());
        allowed.set(true);
        outbox.poke();
        assert_eq!(read.await.expect("read"), &b"hello"[..]);
    });
}

/// Reads all that is there now.
async fn drained(peer: &mut TcpStream) -> Vec<u8> {
    let mut got = Vec::new();
    loop {
        let mut chunk = [0; 1 << 16];
        match peer.try_read(&mut chunk) {
            Ok(count) => got.extend_from_slice(&chunk[..count]),
            Err(_) => return got,
        }
        tokio::task::yield_now().await;
    }
}

fn line(outbox: &Outbox) -> std::sync::Arc<Line> {
    outbox.line().upgrade().expect("it lives")
}

#[test]
fn somebody_else_speaks_from_the_flush_on_behind_which_it_may_until_the_end() {
    local(async {
        let (outbox, _reader, mut peer) = pair(1000).await;
        line(&outbox).speak(b"early");
        put(&outbox, b"history ").expect("room");
        outbox.may_speak();
        line(&outbox).speak(b"early");
        outbox.flush();
        line(&outbox).speak(b"PING ");
        put(&outbox, b"last").expect("room");
        outbox.close();
        line(&outbox).speak(b"late");
        outbox.flush();
        expect(&mut peer, b"history PING last").await;
        assert_eq!(drained(&mut peer).await, b"");
    });
}

#[test]
fn what_no_flush_released_stays_behind_what_somebody_else_says() {
    local(async {
        let (outbox, _reader, mut peer) = pair(1000).await;
        outbox.may_speak();
        outbox.flush();
        put(&outbox, b"of this turn").expect("room");
        line(&outbox).speak(b"PING ");
        assert_eq!(outbox.waiting(), 12);
        outbox.flush();
        expect(&mut peer, b"PING of this turn").await;
    });
}

#[test]
fn nobody_speaks_between_an_announcement_and_what_it_announces() {
    local(async {
        let (outbox, _reader, mut peer) = pair(1000).await;
        outbox.may_speak();
        put(&outbox, b"SNAP ").expect("room");
        outbox.open_gap();
        outbox.flush();
        line(&outbox).speak(b"PING");
        outbox.fill_gap(Bytes::from_static(b"image "));
        line(&outbox).speak(b"PING");
        expect(&mut peer, b"SNAP image PING").await;
    });
}

#[test]
fn while_a_packet_is_half_written_somebody_else_writes_its_rest_and_says_nothing_in_it() {
    local(async {
        let total = 8 << 20;
        let (outbox, _reader, mut peer) = pair(2 * total).await;
        outbox.may_speak();
        put(&outbox, &vec![3; total]).expect("room");
        outbox.flush();
        let left = outbox.waiting();
        assert!(left > 0, "the socket does not take it all");
        line(&outbox).speak(b"PING");
        let mut got = drained(&mut peer).await;
        assert!(!got.contains(&b'P'));
        // The runtime does nothing for the connection: its task does not run.
        while outbox.waiting() > 0 {
            line(&outbox).speak(b"PING");
            got.extend(drained(&mut peer).await);
        }
        line(&outbox).speak(b"PING");
        while got.len() < total + 8 {
            got.extend(drained(&mut peer).await);
            tokio::task::yield_now().await;
        }
        assert!(got[..total].iter().all(|byte| *byte == 3));
        assert_eq!(&got[total..], b"PINGPING", "one when the rest had left, and the next");
    });
}
