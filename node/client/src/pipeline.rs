//! The pipeline: requests in one direction, answers in the other, and the task that moves both.
//!
//! Handles append whole frames to one buffer under a lock and wake the task; the task swaps the buffer
//! against an empty one and hands all of it to the kernel in as few calls as it can. It counts the bytes that
//! the kernel took. Every open operation remembers where its frame ends in that count, which is all that is
//! needed to say afterwards whether it can have reached the server.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use node_wire::client::{OpCode, ReplyHeader, XID_PING, XID_WATCH, put_frame, take_frame};
use node_wire::ids::Zxid;
use node_wire::jute::limits::MAX_FRAME;
use node_wire::jute::{DecodeError, Reader, Writer};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use crate::error::{CloseReason, Doubt, NotSent, OpError};

/// Room made for each read from the socket.
const READ_CHUNK: usize = 64 << 10;

/// A write buffer that grew beyond this is given back rather than kept.
const KEEP_BUFFER: usize = 1 << 20;

/// A frame from the server may carry more than a request: its limit is ours twice, with room for a Stat.
const MAX_ANSWER: usize = 2 * MAX_FRAME + 1024;

/// An answer before its body is read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) zxid: Zxid,
    pub(crate) body: Reader,
}

type AnswerSender = oneshot::Sender<Result<Answer, OpError>>;
pub(crate) type AnswerReceiver = oneshot::Receiver<Result<Answer, OpError>>;

/// An operation whose answer has not come.
#[derive(Debug)]
struct Open {
    xid: i32,
    /// The count of bytes at which its frame ends.
    end: u64,
    answer: AnswerSender,
}

#[derive(Debug, Default)]
struct State {
    /// Frames that the task has not taken yet.
    queued: BytesMut,
    /// Bytes ever put into `queued`.
    enqueued: u64,
    /// Bytes that the kernel took.
    written: u64,
    open: VecDeque<Open>,
    last_xid: i32,
    last_zxid_seen: Zxid,
    /// A close request was queued: the server will end the connection and means no harm by it.
    closing: bool,
    closed: Option<CloseReason>,
}

/// What handles and the task share.
#[derive(Debug)]
pub(crate) struct Pipeline {
    state: Mutex<State>,
    wake: Notify,
    closed: watch::Sender<Option<CloseReason>>,
    max_outstanding: usize,
}

impl Pipeline {
    pub(crate) fn new(max_outstanding: usize, last_zxid_seen: Zxid) -> Self {
        Self {
            state: Mutex::new(State { last_zxid_seen, ..State::default() }),
            wake: Notify::new(),
            closed: watch::Sender::new(None),
            max_outstanding,
        }
    }

    /// No code under this lock panics, so a poisoned one holds a sound state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn last_zxid_seen(&self) -> Zxid {
        self.state().last_zxid_seen
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.state().open.len()
    }

    pub(crate) fn closed(&self) -> watch::Receiver<Option<CloseReason>> {
        self.closed.subscribe()
    }

    /// Queues one request behind all others.
    pub(crate) fn submit(
        &self,
        op: OpCode,
        body: impl FnOnce(&mut Writer<'_>),
    ) -> Result<AnswerReceiver, NotSent> {
        let mut state = self.state();
        state.admit(1, self.max_outstanding)?;
        let receiver = state.push(op, body)?;
        drop(state);
        self.wake.notify_one();
        Ok(receiver)
    }

    /// Queues two requests with nothing between them; both or none.
    pub(crate) fn submit_pair(
        &self,
        first: (OpCode, impl FnOnce(&mut Writer<'_>)),
        second: (OpCode, impl FnOnce(&mut Writer<'_>)),
    ) -> Result<(AnswerReceiver, AnswerReceiver), NotSent> {
        let mut state = self.state();
        state.admit(2, self.max_outstanding)?;
        let receivers = (state.push(first.0, first.1)?, state.push(second.0, second.1)?);
        drop(state);
        self.wake.notify_one();
        Ok(receivers)
    }

    /// Ends the pipeline from the handles' side.
    pub(crate) fn close(&self, reason: CloseReason) {
        self.finish(reason);
        self.wake.notify_one();
    }

    /// Settles every open operation. The first reason stays.
    fn finish(&self, reason: CloseReason) {
        let mut state = self.state();
        if state.closed.is_some() {
            return;
        }
        let reason = match reason {
            CloseReason::ByServer | CloseReason::Io(_) if state.closing => CloseReason::SessionClosed,
            other => other,
        };
        state.closed = Some(reason.clone());
        let written = state.written;
        let open = std::mem::take(&mut state.open);
        drop(state);
        for operation in open {
            let error = if operation.end <= written {
                OpError::Unknown { doubt: Doubt::Unanswered(reason.clone()) }
            } else {
                OpError::NotSent(NotSent::Closed(reason.clone()))
            };
            // A receiver that is gone belongs to a caller who stopped waiting.
            let _ = operation.answer.send(Err(error));
        }
        self.closed.send_replace(Some(reason));
    }
}

impl State {
    fn admit(&self, more: usize, limit: usize) -> Result<(), NotSent> {
        if let Some(reason) = &self.closed {
            return Err(NotSent::Closed(reason.clone()));
        }
        if self.open.len() + more > limit {
            return Err(NotSent::Overloaded);
        }
        Ok(())
    }

    fn push(&mut self, op: OpCode, body: impl FnOnce(&mut Writer<'_>)) -> Result<AnswerReceiver, NotSent> {
        let xid = if self.last_xid == i32::MAX { 1 } else { self.last_xid + 1 };
        let before = self.queued.len();
        put_frame(&mut self.queued, |w| {
            w.int(xid);
            w.int(op.code());
            body(w);
        });
        let length = self.queued.len() - before;
        if length - 4 > MAX_FRAME {
            self.queued.truncate(before);
            return Err(NotSent::TooLong(length - 4));
        }
        self.last_xid = xid;
        self.closing |= op == OpCode::CloseSession;
        self.enqueued += count(length);
        let (answer, receiver) = oneshot::channel();
        self.open.push_back(Open { xid, end: self.enqueued, answer });
        Ok(receiver)
    }

    fn push_ping(&mut self) {
        let before = self.queued.len();
        put_frame(&mut self.queued, |w| {
            w.int(XID_PING);
            w.int(OpCode::Ping.code());
        });
        self.enqueued += count(self.queued.len() - before);
    }
}

/// Lengths fit: no platform that tokio runs on has a wider usize.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The task of one connection; ends when the connection does.
pub(crate) struct Driver {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) reader: OwnedReadHalf,
    pub(crate) writer: OwnedWriteHalf,
    /// What came behind the connect response.
    pub(crate) received: BytesMut,
    /// The negotiated time-out of the session.
    pub(crate) timeout: Duration,
}

impl Driver {
    pub(crate) async fn run(mut self) {
        let reason = self.drive().await;
        self.pipeline.finish(reason);
    }

    async fn drive(&mut self) -> CloseReason {
        let ping_every = self.timeout / 3;
        let silence = self.timeout / 3 * 2;
        let mut sending = BytesMut::new();
        let mut sent = Instant::now();
        let mut heard = Instant::now();
        loop {
            if let Some(reason) = self.take_queued(&mut sending) {
                return reason;
            }
            let mut blocked = false;
            while !sending.is_empty() && !blocked {
                match self.write(&mut sending) {
                    Ok(true) => sent = Instant::now(),
                    Ok(false) => blocked = true,
                    // What the server said before it broke off may be in the socket still: an answer that
                    // arrived is worth more than a doubt.
                    Err(error) => return self.drain().unwrap_or(CloseReason::Io(Arc::new(error))),
                }
            }
            let alarm = (sent + ping_every).min(heard + silence);
            self.received.reserve(READ_CHUNK);
            tokio::select! {
                biased;
                read = self.reader.read_buf(&mut self.received) => match self.took(read) {
                    Ok(_) => heard = Instant::now(),
                    Err(reason) => return reason,
                },
                _ = self.writer.writable(), if blocked => {}
                () = self.pipeline.wake.notified() => {}
                () = tokio::time::sleep_until(alarm) => {
                    // The process itself may have slept: look into the socket before blaming the server.
                    match self.read_now() {
                        Ok(true) => heard = Instant::now(),
                        Ok(false) if heard.elapsed() >= silence => return CloseReason::Silent,
                        Ok(false) => {}
                        Err(reason) => return reason,
                    }
                    if sent.elapsed() >= ping_every {
                        self.pipeline.state().push_ping();
                        // A ping that waits in a full socket need not be joined by another.
                        sent = Instant::now();
                    }
                }
            }
        }
    }

    /// Moves queued frames to `sending` when that is used up. Gives the reason when handles closed.
    fn take_queued(&self, sending: &mut BytesMut) -> Option<CloseReason> {
        let mut state = self.pipeline.state();
        if let Some(reason) = &state.closed {
            return Some(reason.clone());
        }
        if sending.is_empty() && !state.queued.is_empty() {
            if sending.capacity() > KEEP_BUFFER {
                *sending = BytesMut::new();
            }
            std::mem::swap(sending, &mut state.queued);
        }
        None
    }

    /// One write; false when the socket is full.
    fn write(&self, sending: &mut BytesMut) -> io::Result<bool> {
        match self.writer.try_write(sending) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => {
                self.pipeline.state().written += count(taken);
                if taken == sending.len() {
                    sending.clear();
                } else {
                    bytes::Buf::advance(sending, taken);
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// One read without waiting; false when there was nothing.
    fn read_now(&mut self) -> Result<bool, CloseReason> {
        self.received.reserve(READ_CHUNK);
        let read = self.reader.try_read_buf(&mut self.received);
        self.took(read)
    }

    /// What one read brought; false when there was nothing.
    fn took(&mut self, read: io::Result<usize>) -> Result<bool, CloseReason> {
        match read {
            Ok(0) => Err(CloseReason::ByServer),
            Ok(_) => {
                self.settle()?;
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(false)
            }
            Err(error) => Err(CloseReason::Io(Arc::new(error))),
        }
    }

    /// Reads what is left after a failed write. The socket's end is no news then.
    fn drain(&mut self) -> Option<CloseReason> {
        loop {
            match self.read_now() {
                Ok(true) => {}
                Ok(false) | Err(CloseReason::ByServer | CloseReason::Io(_)) => return None,
                Err(reason) => return Some(reason),
            }
        }
    }

    /// Hands every whole answer to whoever waits for it.
    fn settle(&mut self) -> Result<(), CloseReason> {
        let malformed = |error: DecodeError| CloseReason::Malformed(error.to_string());
        let mut state = self.pipeline.state();
        while let Some(frame) = take_frame(&mut self.received, MAX_ANSWER).map_err(malformed)? {
            settle_one(&mut state, frame).map_err(|error| match error {
                Unsettled::Decode(error) => malformed(error),
                Unsettled::OutOfOrder { got, want } => {
                    CloseReason::Malformed(format!("answer to request {got} where {want:?} is due"))
                }
            })?;
        }
        Ok(())
    }
}

enum Unsettled {
    Decode(DecodeError),
    OutOfOrder { got: i32, want: Option<i32> },
}

fn settle_one(state: &mut State, frame: Bytes) -> Result<(), Unsettled> {
    let mut reader = Reader::new(frame);
    let header = ReplyHeader::decode(&mut reader).map_err(Unsettled::Decode)?;
    if header.xid == XID_WATCH {
        return Ok(());
    }
    // Errors before the first transaction carry -1 or 0 here.
    if header.zxid.to_wire() > 0 {
        state.last_zxid_seen = state.last_zxid_seen.max(header.zxid);
    }
    if header.xid == XID_PING {
        return Ok(());
    }
    match state.open.front() {
        Some(open) if open.xid == header.xid => {}
        other => {
            return Err(Unsettled::OutOfOrder { got: header.xid, want: other.map(|open| open.xid) });
        }
    }
    let Some(operation) = state.open.pop_front() else { return Ok(()) };
    let result = if header.err == 0 {
        Ok(Answer { zxid: header.zxid, body: reader })
    } else {
        Err(OpError::from_header(header.err, header.zxid))
    };
    // A receiver that is gone belongs to a caller who stopped waiting: the late answer is dropped.
    let _ = operation.answer.send(result);
    Ok(())
}
