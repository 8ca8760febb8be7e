//! The crate from outside, in three ways: against bytes that ZooKeeper 3.8.0 wrote ([`golden`]), against
//! itself for every value there is ([`round_trip`]), and against bytes that nobody wrote on purpose
//! ([`hostile`]).

mod golden;
mod hostile;
mod round_trip;
mod values;

use bytes::{Bytes, BytesMut};
use node_wire::jute::Writer;

/// What a closure writes.
fn written(write: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut buffer = BytesMut::new();
    write(&mut Writer::new(&mut buffer));
    buffer.freeze()
}
