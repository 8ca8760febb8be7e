//! The writing end of a connection: a queue, a socket, and TLS where there is any.
//!
//! The member's thread fills and empties the queue. While it works on something long another thread may
//! speak for it ([`Line::speak`]), so all of it is behind a lock, which nobody waits for in practice: the
//! member's thread holds it for an append or a write, the other one takes it only when it is free.
//!
//! What the other thread may write is bounded twice. Of the queue it writes only what was *released* by a
//! flush: whatever a turn has appended and not flushed may still be behind something that must come first.
//! And it adds nothing of its own but between two packets, when all that was released has left. TLS does not
//! matter: a packet becomes records of its own, and what a full socket left of a record is written before
//! anything else.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes, BytesMut};
use socket2::SockRef;
use tokio::net::tcp::OwnedWriteHalf;

use super::Overflow;
use crate::tls::channel::Channel;

/// A buffer that grew beyond this is given back when it is empty.
const KEEP_BUFFER: usize = 1 << 20;

/// A piece of the queue.
#[derive(Debug)]
enum Segment {
    /// Ready to be written; grows while it is the last.
    Open(BytesMut),
    /// Ready to be written, too large to be copied.
    Shared(Bytes),
    /// Will be a [`Segment::Shared`] later.
    Gap,
}

/// What waits for the socket.
#[derive(Debug, Default)]
struct Queue {
    segments: VecDeque<Segment>,
    /// Bytes in open segments.
    waiting: usize,
    /// Those of them at the end that no flush released yet.
    unreleased: usize,
    /// Whether somebody else may speak here.
    voice: Voice,
    /// The socket failed while somebody else wrote.
    failed: bool,
}

/// Whether the other end takes a packet that nobody asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Voice {
    #[default]
    Silent,
    /// As soon as what is queued has been released.
    Next,
    Speaks,
}

/// A socket with its queue.
#[derive(Debug)]
pub(crate) struct Line {
    pub(super) socket: OwnedWriteHalf,
    /// Where the connection has TLS.
    pub(super) channel: Option<Box<Channel>>,
    queue: Mutex<Queue>,
}

impl Line {
    pub(super) fn new(socket: OwnedWriteHalf, channel: Option<Channel>) -> Self {
        Self { socket, channel: channel.map(Box::new), queue: Mutex::default() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn append(&self, limit: usize, write: impl FnOnce(&mut BytesMut)) -> Result<(), Overflow> {
        let mut queue = self.queue();
        if !matches!(queue.segments.back(), Some(Segment::Open(_))) {
            queue.segments.push_back(Segment::Open(BytesMut::new()));
        }
        if let Some(Segment::Open(buffer)) = queue.segments.back_mut() {
            let before = buffer.len();
            write(buffer);
            let added = buffer.len() - before;
            queue.waiting += added;
            queue.unreleased += added;
        }
        if queue.waiting > limit { Err(Overflow) } else { Ok(()) }
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue().waiting
    }

    pub(super) fn open_gap(&self) {
        self.queue().segments.push_back(Segment::Gap);
    }

    pub(super) fn fill_gap(&self, bytes: Bytes) {
        let mut queue = self.queue();
        if let Some(gap) = queue.segments.iter_mut().find(|segment| matches!(segment, Segment::Gap)) {
            *gap = Segment::Shared(bytes);
        }
    }

    /// Writes as much as the socket takes. True when it is full.
    pub(super) fn flush(&self) -> io::Result<bool> {
        let mut queue = self.queue();
        if queue.failed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        queue.unreleased = 0;
        if queue.voice == Voice::Next {
            queue.voice = Voice::Speaks;
        }
        self.write(&mut queue, &|bytes| self.socket.try_write(bytes))
    }

    /// From the next flush on the other end takes what [`Line::speak`] says.
    pub(super) fn may_speak(&self) {
        let mut queue = self.queue();
        if queue.voice == Voice::Silent {
            queue.voice = Voice::Next;
        }
    }

    /// Nobody speaks here any more.
    pub(super) fn hush(&self) {
        self.queue().voice = Voice::Silent;
    }

    /// Writes what was released, and a packet behind it where all of that leaves: for another thread than
    /// the member's. Where the socket is full nothing is added, because what it holds is a sign of life too.
    pub(crate) fn speak(&self, packet: &[u8]) {
        // Whoever has the lock is speaking.
        let Ok(mut queue) = self.queue.try_lock() else { return };
        if queue.voice != Voice::Speaks || queue.failed {
            return;
        }
        // Not as the runtime would: it knows only of sockets that it could look at since they were full.
        let send = |bytes: &[u8]| SockRef::from(self.socket.as_ref()).send(bytes);
        let said = self.write(&mut queue, &send).and_then(|full| {
            if !full && queue.is_between_packets() { self.say(&mut queue, packet, &send) } else { Ok(()) }
        });
        // The member's thread finds out by its next flush: a socket tells its error only once.
        queue.failed = said.is_err();
    }

    fn say(
        &self,
        queue: &mut Queue,
        packet: &[u8],
        send: &dyn Fn(&[u8]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let written = match &self.channel {
            None => send(packet),
            Some(channel) => channel.write(packet, send),
        };
        match written {
            Ok(count) => {
                if let Some(rest) = packet.get(count..).filter(|rest| !rest.is_empty()) {
                    queue.waiting += rest.len();
                    queue.segments.push_front(Segment::Open(BytesMut::from(rest)));
                }
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// True when the socket is full.
    fn write(&self, queue: &mut Queue, send: &dyn Fn(&[u8]) -> io::Result<usize>) -> io::Result<bool> {
        match &self.channel {
            None => queue.write(send),
            Some(channel) => {
                let full = queue.write(&|bytes| channel.write(bytes, send))?;
                Ok(full || channel.flush(send)?)
            }
        }
    }

    pub(super) fn is_written(&self) -> bool {
        let has_left = self.channel.as_ref().is_none_or(|channel| channel.is_flushed());
        has_left
            && self.queue().segments.iter().all(|segment| match segment {
                Segment::Open(buffer) => buffer.is_empty(),
                Segment::Shared(bytes) => bytes.is_empty(),
                Segment::Gap => false,
            })
    }

    /// Says that nothing more comes, where the connection has TLS: the end of a stream that says so cannot
    /// be mistaken for one that somebody cut. It is small.
    pub(super) fn say_end(&self) {
        if let Some(channel) = &self.channel {
            channel.close();
            let _ = channel.flush(&|bytes| self.socket.try_write(bytes));
        }
    }
}

impl Queue {
    /// True when all that was released has left, and nothing that is announced is still to come.
    fn is_between_packets(&self) -> bool {
        let is_open = matches!(self.segments.front(), None | Some(Segment::Open(_)));
        is_open && self.waiting == self.unreleased
    }

    /// Writes what is released. True when the socket is full.
    fn write(&mut self, send: &dyn Fn(&[u8]) -> io::Result<usize>) -> io::Result<bool> {
        while let Some(front) = self.segments.front_mut() {
            let released = self.waiting.saturating_sub(self.unreleased);
            let written = match front {
                Segment::Open(buffer) if buffer.is_empty() => Ok(0),
                Segment::Shared(bytes) if bytes.is_empty() => Ok(0),
                Segment::Open(buffer) => match buffer.get(..released).unwrap_or(buffer) {
                    [] => return Ok(false),
                    released => send(released),
                },
                Segment::Shared(bytes) => send(bytes),
                Segment::Gap => return Ok(false),
            };
            match written {
                Ok(count) => {
                    let done = match front {
                        Segment::Open(buffer) => {
                            self.waiting = self.waiting.saturating_sub(count);
                            consume(buffer, count)
                        }
                        Segment::Shared(bytes) => {
                            bytes.advance(count);
                            bytes.is_empty()
                        }
                        Segment::Gap => false,
                    };
                    if !done {
                        continue;
                    }
                    // The last open segment is kept with its memory.
                    if self.segments.len() == 1 && matches!(self.segments.front(), Some(Segment::Open(_))) {
                        return Ok(false);
                    }
                    self.segments.pop_front();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// Drops what was written. True when nothing is left.
fn consume(buffer: &mut BytesMut, count: usize) -> bool {
    if count < buffer.len() {
        buffer.advance(count);
        return false;
    }
    if buffer.capacity() > KEEP_BUFFER {
        *buffer = BytesMut::new();
    } else {
        // Clearing, unlike advancing, makes the memory usable again.
        buffer.clear();
    }
    true
}
