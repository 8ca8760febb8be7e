//! The election port: a hello, then votes.

use bytes::{Bytes, BytesMut};
use node_wire::client::{put_frame, take_frame};
use node_wire::election::{Hello, MAX_HELLO_ADDRESSES, MAX_NOTIFICATION, Notification};

use super::{read, written};
use crate::meter::{Bound, within};

/// A list of addresses becomes strings of their own.
const HELLO: Bound = Bound { flat: 2048, per_byte: 64 };

pub(super) fn election(input: &[u8]) {
    let mut received = BytesMut::from(input);
    let Some(hello) = take_hello(&mut received) else { return };
    // What came byte by byte says the same.
    let mut dribble = BytesMut::new();
    for (index, &byte) in input.iter().enumerate() {
        dribble.extend_from_slice(&[byte]);
        if let Some(same) = take_hello(&mut dribble) {
            assert_eq!(same, hello);
            assert_eq!(index + 1, input.len() - received.len(), "a hello ends where it ends");
            break;
        }
    }
    let hello_again = written(|w| {
        // Written in the shorter form where there is one.
        if hello.addresses.is_empty() { w.long(hello.server.0.cast_signed()) } else { hello.encode(w) }
    });
    if hello_again.len() <= MAX_HELLO_ADDRESSES {
        assert_eq!(take_hello(&mut BytesMut::from(&hello_again[..])), Some(hello));
    }
    while let Ok(Some(frame)) = take_frame(&mut received, MAX_NOTIFICATION) {
        vote(&frame);
    }
}

fn take_hello(buffer: &mut BytesMut) -> Option<Hello> {
    within(HELLO, buffer.len(), || Hello::decode(buffer)).ok().flatten()
}

fn vote(frame: &Bytes) {
    let decode = |bytes: &Bytes| {
        let whole = bytes.clone();
        read(bytes, |_| Notification::decode(whole)).map(|(notification, _)| notification)
    };
    let Ok(notification) = decode(frame) else { return };
    let once = written(|w| notification.encode(w));
    assert_eq!(decode(&once).as_ref(), Ok(&notification), "a vote is read as it was written");
    let mut framed = BytesMut::new();
    put_frame(&mut framed, |w| notification.encode(w));
    assert_eq!(framed[4..], once);
}
