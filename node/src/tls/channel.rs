//! An established connection: what a socket carries becomes what was said, and the other way round.
//!
//! Nothing here waits. Whoever owns the socket calls when it can be read or written, and is told when it is
//! full. The library's buffers stay small: bytes are sealed only when those before them have left.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};

use bytes::{BufMut, BytesMut};
use rustls::Connection;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Read from a socket at a time, into memory that all connections of a thread share.
const SCRATCH: usize = 64 << 10;

/// Sealed at a time: two records of the largest kind.
const CHUNK: usize = 32 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
}

/// The library's state of one connection.
#[derive(Debug)]
pub(crate) struct Channel {
    connection: RefCell<Connection>,
    /// The other end said that it says no more, or hung up.
    ended: Cell<bool>,
    closing: Cell<bool>,
}

impl Channel {
    /// A connection whose handshake is done.
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection: RefCell::new(connection), ended: Cell::new(false), closing: Cell::new(false) }
    }

    /// Seals some of these bytes and writes them. Gives how many were taken.
    ///
    /// # Errors
    /// `WouldBlock` when the socket is full and nothing was taken, and whatever ends the connection.
    pub(crate) fn write(&self, bytes: &[u8], socket: &OwnedWriteHalf) -> io::Result<usize> {
        if self.flush(socket)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let some = bytes.get(..CHUNK).unwrap_or(bytes);
        let taken = self.connection.borrow_mut().writer().write(some)?;
        // What does not leave now is looked at before anything else is taken.
        self.flush(socket)?;
        if taken == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(taken) }
    }

    /// Writes what is sealed. True when the socket is full before the end of it.
    pub(crate) fn flush(&self, socket: &OwnedWriteHalf) -> io::Result<bool> {
        let mut connection = self.connection.borrow_mut();
        while connection.wants_write() {
            match connection.write_tls(&mut Writes(socket)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// True when everything that was sealed has left.
    pub(crate) fn is_flushed(&self) -> bool {
        !self.connection.borrow().wants_write()
    }

    /// Says that nothing more comes, once.
    pub(crate) fn close(&self) {
        if !self.closing.replace(true) {
            self.connection.borrow_mut().send_close_notify();
        }
    }

    /// True when nothing more will be read.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.get()
    }

    /// What was said and not fetched yet. Gives how many bytes.
    pub(crate) fn fetch(&self, received: &mut BytesMut) -> io::Result<usize> {
        let mut connection = self.connection.borrow_mut();
        let state = connection.process_new_packets().map_err(broken)?;
        self.ended.set(self.ended.get() || state.peer_has_closed());
        take(&mut connection, state.plaintext_bytes_to_read(), received)
    }

    /// Reads what the socket has and opens it. Gives how many bytes were said, which may be none.
    ///
    /// # Errors
    /// `WouldBlock` when the socket has nothing, and whatever ends the connection.
    pub(crate) fn read(&self, socket: &OwnedReadHalf, received: &mut BytesMut) -> io::Result<usize> {
        BUFFER.with_borrow_mut(|buffer| {
            let count = socket.try_read(buffer)?;
            if count == 0 {
                self.ended.set(true);
                return Ok(0);
            }
            self.open(buffer.get(..count).unwrap_or_default(), received)
        })
    }

    fn open(&self, mut sealed: &[u8], received: &mut BytesMut) -> io::Result<usize> {
        let mut connection = self.connection.borrow_mut();
        let mut opened = 0;
        while !sealed.is_empty() && !self.ended.get() {
            if connection.read_tls(&mut sealed)? == 0 {
                break;
            }
            let state = connection.process_new_packets().map_err(broken)?;
            self.ended.set(state.peer_has_closed());
            opened += take(&mut connection, state.plaintext_bytes_to_read(), received)?;
        }
        Ok(opened)
    }
}

fn take(connection: &mut Connection, count: usize, received: &mut BytesMut) -> io::Result<usize> {
    if count == 0 {
        return Ok(0);
    }
    received.reserve(count);
    let copied = io::copy(&mut connection.reader().take(count as u64), &mut received.writer())?;
    Ok(usize::try_from(copied).unwrap_or(count))
}

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A socket as the library writes to it.
struct Writes<'a>(&'a OwnedWriteHalf);

impl Write for Writes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
