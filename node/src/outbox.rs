//! What waits to be written to one socket.
//!
//! The member's task appends while it carries out effects and writes once at the end of a batch, straight
//! into the socket: many messages, one system call, no other task in between. Only what the socket does not
//! take is left to the connection's own task, which waits for room. A connection that takes nothing for too
//! long is ended at a limit, because memory is not a place to keep what a peer does not want.
//!
//! A connection with TLS seals what it writes and opens what it reads on the way; the queue is the same. One
//! without knows of it by a branch that is never taken.
//!
//! Two things are not plain bytes. A snapshot is encoded on another thread; its place in the order is kept by
//! a gap, which holds back what comes behind it. And a connection that is to be closed is first written out:
//! then the end is announced, and what still arrives is read and dropped for a moment, because closing a
//! socket with unread bytes makes the kernel destroy what the other side has not read yet.

mod line;

use std::cell::Cell;
use std::io;
use std::net::Shutdown;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use socket2::SockRef;
use tokio::io::AsyncReadExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

use crate::tls::channel::Channel;

pub(crate) use line::Line;

/// How long a closed connection may take to drain, and the other side to hang up.
const LINGER: Duration = Duration::from_secs(1);

/// Bytes that are read and dropped while lingering; whoever sends more is cut off.
const LINGER_BYTES: usize = 16 << 20;

/// How the connection is to end, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Alive,
    /// When all is written.
    Closing,
    /// Now.
    Dead,
}

/// A socket with its queue. The connection's task reads from it, everyone on this thread may write.
#[derive(Debug)]
pub(crate) struct Outbox {
    line: Arc<Line>,
    limit: usize,
    blocked: Cell<bool>,
    /// The connection's task leaves the socket unread until it is poked.
    unread: Cell<bool>,
    /// Somebody will flush already.
    dirty: Cell<bool>,
    fate: Cell<Fate>,
    changed: Notify,
}

/// The queue is longer than the connection's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl Outbox {
    /// For a connection of which the handshake, where it has TLS, is done.
    pub(crate) fn new(socket: OwnedWriteHalf, channel: Option<Channel>, limit: usize) -> Self {
        Self {
            line: Arc::new(Line::new(socket, channel)),
            limit,
            blocked: Cell::new(false),
            unread: Cell::new(false),
            dirty: Cell::new(false),
            fate: Cell::new(Fate::Alive),
            changed: Notify::new(),
        }
    }

    /// Appends what `write` writes. Nothing is sent before [`Outbox::flush`].
    pub(crate) fn append(&self, write: impl FnOnce(&mut BytesMut)) -> Result<(), Overflow> {
        self.line.append(self.limit, write)
    }

    /// True when nobody was told to flush since the last flush.
    pub(crate) fn make_dirty(&self) -> bool {
        !self.dirty.replace(true)
    }

    /// Bytes that wait, a snapshot's not counted.
    pub(crate) fn waiting(&self) -> usize {
        self.line.waiting()
    }

    /// Keeps a place for bytes that come later. One gap at a time is enough for the protocol.
    pub(crate) fn open_gap(&self) {
        self.line.open_gap();
    }

    /// Fills the first gap and writes on.
    pub(crate) fn fill_gap(&self, bytes: Bytes) {
        self.line.fill_gap(bytes);
        self.flush();
    }

    /// Writes as much as the socket takes.
    pub(crate) fn flush(&self) {
        self.dirty.set(false);
        if self.fate.get() == Fate::Dead {
            return;
        }
        match self.line.flush() {
            Ok(blocked) => {
                if self.blocked.replace(blocked) != blocked || self.fate.get() == Fate::Closing {
                    self.changed.notify_one();
                }
            }
            // The reader may never learn of it by itself: the first to look takes the error away.
            Err(_) => self.kill(),
        }
    }

    /// True when the socket holds bytes that nobody read.
    pub(crate) fn holds_unread(&self) -> bool {
        rustix::io::ioctl_fionread(self.line.socket.as_ref()).is_ok_and(|count| count > 0)
    }

    /// The writing end, for who speaks while the member's thread works.
    pub(crate) fn line(&self) -> Weak<Line> {
        Arc::downgrade(&self.line)
    }

    /// From the next flush on the other end takes what somebody else says between two packets.
    pub(crate) fn may_speak(&self) {
        if self.is_alive() {
            self.line.may_speak();
        }
    }

    /// Ends the connection once everything is written.
    pub(crate) fn close(&self) {
        if self.fate.get() == Fate::Alive {
            self.fate.set(Fate::Closing);
        }
        self.line.hush();
        self.changed.notify_one();
    }

    /// Ends the connection at once.
    pub(crate) fn kill(&self) {
        self.fate.set(Fate::Dead);
        self.line.hush();
        self.changed.notify_one();
    }

    /// True until [`Outbox::close`] or [`Outbox::kill`].
    pub(crate) fn is_alive(&self) -> bool {
        self.fate.get() == Fate::Alive
    }

    /// True while the connection's task leaves the socket unread.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread.get()
    }

    /// Lets the connection's task look again whether it may read.
    pub(crate) fn poke(&self) {
        if self.unread.get() {
            self.changed.notify_one();
        }
    }

    /// Reads once, as soon as `may_read` allows it, and writes what waits meanwhile. False at the end of the
    /// connection, from whichever side.
    pub(crate) async fn read(
        &self,
        reader: &mut OwnedReadHalf,
        received: &mut BytesMut,
        chunk: usize,
        may_read: impl Fn() -> bool,
    ) -> io::Result<bool> {
        while self.is_alive() {
            received.reserve(chunk);
            let may_read = may_read();
            self.unread.set(!may_read);
            tokio::select! {
                biased;
                read = self.receive(reader, received), if may_read => return read.map(|count| count > 0),
                () = self.changed.notified() => {}
                ready = self.line.socket.writable(), if self.blocked.get() => {
                    ready?;
                    self.flush();
                }
            }
        }
        Ok(false)
    }

    /// Waits for bytes. None only at the end.
    async fn receive(&self, reader: &mut OwnedReadHalf, received: &mut BytesMut) -> io::Result<usize> {
        let Some(channel) = &self.line.channel else { return reader.read_buf(received).await };
        let mut count = channel.fetch(received)?;
        while count == 0 && !channel.is_ended() {
            reader.readable().await?;
            count = match channel.read(reader, received) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                read => read?,
            };
            if !channel.is_flushed() {
                // The protocol itself had something to say.
                self.flush();
            }
        }
        Ok(count)
    }

    /// Waits for a condition that comes true with a poke, and writes what waits meanwhile. False when the
    /// connection is to end first.
    pub(crate) async fn until(&self, condition: impl Fn() -> bool) -> io::Result<bool> {
        while self.is_alive() {
            if condition() {
                self.unread.set(false);
                return Ok(true);
            }
            self.unread.set(true);
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                ready = self.line.socket.writable(), if self.blocked.get() => {
                    ready?;
                    self.flush();
                }
            }
        }
        Ok(false)
    }

    /// The connection's last moments. Writes the rest if that was asked for, bounded by [`LINGER`].
    pub(crate) async fn linger(&self, reader: &mut OwnedReadHalf) {
        if self.fate.get() == Fate::Closing {
            // Too slow is too slow: nothing is owed to whoever does not read.
            let _ = tokio::time::timeout(LINGER, self.drain(reader)).await;
        }
        self.kill();
    }

    async fn drain(&self, reader: &mut OwnedReadHalf) {
        self.flush();
        while !self.line.is_written() {
            if self.fate.get() == Fate::Dead {
                return;
            }
            tokio::select! {
                () = self.changed.notified() => {}
                ready = self.line.socket.writable(), if self.blocked.get() => match ready {
                    Ok(()) => self.flush(),
                    Err(_) => return,
                },
            }
        }
        self.line.say_end();
        if SockRef::from(self.line.socket.as_ref()).shutdown(Shutdown::Write).is_err() {
            return;
        }
        let mut dropped = [0; 4096];
        let mut total = 0;
        while total < LINGER_BYTES {
            match reader.read(&mut dropped).await {
                Ok(0) | Err(_) => return,
                Ok(count) => total += count,
            }
        }
    }
}

#[cfg(test)]
mod tests;
