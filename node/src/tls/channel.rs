//! An established connection: what a socket carries becomes what was said, and the other way round.
//!
//! Nothing here waits. Whoever owns the socket calls when it can be read or written, and is told when it is
//! full. The library's buffers stay small: bytes are sealed only when those before them have left. Writing
//! and reading share the library's state, and somebody else than the member's thread may write: hence the
//! lock.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{BufMut, BytesMut};
use rustls::Connection;
use tokio::net::tcp::OwnedReadHalf;

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
    connection: Mutex<Connection>,
    /// The other end said that it says no more, or hung up.
    ended: AtomicBool,
    closing: AtomicBool,
}

impl Channel {
    /// A connection whose handshake is done.
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection: Mutex::new(connection),
            ended: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        }
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_if(&self, ended: bool) {
        if ended {
            self.ended.store(true, Ordering::Relaxed);
        }
    }

    /// Seals some of these bytes and writes them. Gives how many were taken.
    ///
    /// # Errors
    /// `WouldBlock` when the socket is full and nothing was taken, and whatever ends the connection.
    pub(crate) fn write(&self, bytes: &[u8], send: &dyn Fn(&[u8]) -> io::Result<usize>) -> io::Result<usize> {
        if self.flush(send)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let some = bytes.get(..CHUNK).unwrap_or(bytes);
        let taken = self.connection().writer().write(some)?;
        // What does not leave now is looked at before anything else is taken.
        self.flush(send)?;
        if taken == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(taken) }
    }

    /// Writes what is sealed. True when the socket is full before the end of it.
    pub(crate) fn flush(&self, send: &dyn Fn(&[u8]) -> io::Result<usize>) -> io::Result<bool> {
        let mut connection = self.connection();
        while connection.wants_write() {
            match connection.write_tls(&mut Writes(send)) {
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
        !self.connection().wants_write()
    }

    /// Says that nothing more comes, once.
    pub(crate) fn close(&self) {
        if !self.closing.swap(true, Ordering::Relaxed) {
            self.connection().send_close_notify();
        }
    }

    /// True when nothing more will be read.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// What was said and not fetched yet. Gives how many bytes.
    pub(crate) fn fetch(&self, received: &mut BytesMut) -> io::Result<usize> {
        let mut connection = self.connection();
        let state = connection.process_new_packets().map_err(broken)?;
        self.end_if(state.peer_has_closed());
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
                self.end_if(true);
                return Ok(0);
            }
            self.open(buffer.get(..count).unwrap_or_default(), received)
        })
    }

    fn open(&self, mut sealed: &[u8], received: &mut BytesMut) -> io::Result<usize> {
        let mut connection = self.connection();
        let mut opened = 0;
        while !sealed.is_empty() && !self.is_ended() {
            if connection.read_tls(&mut sealed)? == 0 {
                break;
            }
            let state = connection.process_new_packets().map_err(broken)?;
            self.end_if(state.peer_has_closed());
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
struct Writes<'a>(&'a dyn Fn(&[u8]) -> io::Result<usize>);

impl Write for Writes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
