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
