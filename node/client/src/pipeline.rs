//! The pipeline: requests in one direction, answers in the other, and the task that moves both.
//!
//! Handles append whole frames to one buffer under a lock and wake the task; the task swaps the buffer
//! against an empty one and hands all of it to the kernel in as few calls as it can. It counts the bytes that
//! the kernel took. Every open operation remembers where its frame ends in that count, which is all that is
//! needed to say afterwards whether it can have reached the server.
//!
//! An answer goes to a caller who waits, or to a function. Functions and the one for events are called by the
//! task, in the order of the frames, and none of them once the pipeline is closed and settled.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use node_wire::client::{
    AuthPacket, ErrorCode, OpCode, ReplyHeader, SetWatches, SetWatches2, WatcherEvent, XID_AUTH, XID_PING,
    XID_SET_WATCHES, XID_WATCH, put_frame, take_frame,
};
use node_wire::ids::Zxid;
use node_wire::jute::limits::MAX_FRAME;
use node_wire::jute::{DecodeError, Reader, Writer};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use crate::error::{CloseReason, Doubt, NotSent, OpError};
use crate::stream::{Stream, Turn};

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

pub(crate) type AnswerReceiver = oneshot::Receiver<Result<Answer, OpError>>;

/// What an answer is handed to. It must not come back into the pipeline: the pipeline is locked meanwhile.
pub(crate) type Settle = Box<dyn FnOnce(Result<Answer, OpError>) + Send>;

/// What events are handed to. It must not come back into the pipeline either.
pub(crate) type OnEvent = Box<dyn Fn(WatcherEvent) + Send + Sync>;

/// Where an answer goes.
enum To {
    Caller(oneshot::Sender<Result<Answer, OpError>>),
    Function(Settle),
}

impl To {
    fn settle(self, result: Result<Answer, OpError>) {
        match self {
            // A receiver that is gone belongs to a caller who stopped waiting: the late answer is dropped.
            Self::Caller(sender) => drop(sender.send(result)),
            Self::Function(settle) => settle(result),
        }
    }
}

impl std::fmt::Debug for To {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Caller(_) => "Caller",
            Self::Function(_) => "Function",
        })
    }
}

/// An operation whose answer has not come.
#[derive(Debug)]
struct Open {
    xid: i32,
    /// The count of bytes at which its frame ends.
    end: u64,
    to: To,
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
    /// Identities that were shown and not judged yet. They are judged in order, but not in that of `open`.
    auths: VecDeque<To>,
    last_xid: i32,
    last_zxid_seen: Zxid,
    /// A close request was queued: the server will end the connection and means no harm by it.
    closing: bool,
    closed: Option<CloseReason>,
}

/// What handles and the task share.
pub(crate) struct Pipeline {
    state: Mutex<State>,
    wake: Notify,
    closed: watch::Sender<Option<CloseReason>>,
    max_outstanding: usize,
    on_event: Option<OnEvent>,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Pipeline {
    pub(crate) fn new(max_outstanding: usize, last_zxid_seen: Zxid) -> Self {
        Self {
            state: Mutex::new(State { last_zxid_seen, ..State::default() }),
            wake: Notify::new(),
            closed: watch::Sender::new(None),
            max_outstanding,
            on_event: None,
        }
    }

    /// With a function for events, and with this many xids used up already.
    pub(crate) fn with_events(max_outstanding: usize, last_xid: i32, on_event: OnEvent) -> Self {
        let pipeline = Self::new(max_outstanding, Zxid::ZERO);
        pipeline.state().last_xid = last_xid;
        Self { on_event: Some(on_event), ..pipeline }
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
        let (answer, receiver) = oneshot::channel();
        self.push(op, body, To::Caller(answer))?;
        Ok(receiver)
    }

    /// As [`Pipeline::submit`]. The answer goes to a function, which is not called when the request is
    /// refused here.
    pub(crate) fn submit_to(
        &self,
        op: OpCode,
        body: impl FnOnce(&mut Writer<'_>),
        settle: Settle,
    ) -> Result<(), NotSent> {
        self.push(op, body, To::Function(settle))
    }

    fn push(&self, op: OpCode, body: impl FnOnce(&mut Writer<'_>), to: To) -> Result<(), NotSent> {
        let mut state = self.state();
        state.admit(1, self.max_outstanding)?;
        state.push(op, body, to)?;
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Queues two requests with nothing between them; both or none.
    pub(crate) fn submit_pair(
        &self,
        first: (OpCode, impl FnOnce(&mut Writer<'_>)),
        second: (OpCode, impl FnOnce(&mut Writer<'_>)),
    ) -> Result<(AnswerReceiver, AnswerReceiver), NotSent> {
        let (first_answer, first_receiver) = oneshot::channel();
        let (second_answer, second_receiver) = oneshot::channel();
        let first = (first.0, first.1, To::Caller(first_answer));
        self.push_pair(first, (second.0, second.1, To::Caller(second_answer)))?;
        Ok((first_receiver, second_receiver))
    }

    /// As [`Pipeline::submit_pair`]. The answers go to functions.
    pub(crate) fn submit_pair_to(
        &self,
        first: (OpCode, impl FnOnce(&mut Writer<'_>), Settle),
        second: (OpCode, impl FnOnce(&mut Writer<'_>), Settle),
    ) -> Result<(), NotSent> {
        let first = (first.0, first.1, To::Function(first.2));
        self.push_pair(first, (second.0, second.1, To::Function(second.2)))
    }

    fn push_pair(
        &self,
        first: (OpCode, impl FnOnce(&mut Writer<'_>), To),
        second: (OpCode, impl FnOnce(&mut Writer<'_>), To),
    ) -> Result<(), NotSent> {
        let mut state = self.state();
        state.admit(2, self.max_outstanding)?;
        state.push(first.0, first.1, first.2)?;
        state.push(second.0, second.1, second.2)?;
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Shows an identity. The server's judgement goes to a function.
    pub(crate) fn auth(&self, packet: &AuthPacket, settle: Settle) -> Result<(), NotSent> {
        let mut state = self.state();
        state.admit(0, self.max_outstanding)?;
        state.push_frame(XID_AUTH, OpCode::Auth, |w| packet.encode(w));
        state.auths.push_back(To::Function(settle));
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Leaves watches again. Where none of them is persistent the older operation does, which every server
    /// knows.
    pub(crate) fn leave_watches(&self, watches: SetWatches2) {
        let is_older =
            watches.persistent_watches.is_empty() && watches.persistent_recursive_watches.is_empty();
        let mut state = self.state();
        if is_older {
            let SetWatches2 { relative_zxid, data_watches, exist_watches, child_watches, .. } = watches;
            let older = SetWatches { relative_zxid, data_watches, exist_watches, child_watches };
            state.push_frame(XID_SET_WATCHES, OpCode::SetWatches, |w| older.encode(w));
        } else {
            state.push_frame(XID_SET_WATCHES, OpCode::SetWatches2, |w| watches.encode(w));
        }
        drop(state);
        self.wake.notify_one();
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
        let auths = std::mem::take(&mut state.auths);
        drop(state);
        for to in auths {
            to.settle(Err(OpError::Unknown { doubt: Doubt::Unanswered(reason.clone()) }));
        }
        for operation in open {
            let error = if operation.end <= written {
                OpError::Unknown { doubt: Doubt::Unanswered(reason.clone()) }
            } else {
                OpError::NotSent(NotSent::Closed(reason.clone()))
            };
            operation.to.settle(Err(error));
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

    fn push(&mut self, op: OpCode, body: impl FnOnce(&mut Writer<'_>), to: To) -> Result<(), NotSent> {
        let xid = if self.last_xid == i32::MAX { 1 } else { self.last_xid + 1 };
        let before = self.queued.len();
        let length = self.push_frame(xid, op, body);
        if length - 4 > MAX_FRAME {
            self.queued.truncate(before);
            self.enqueued -= count(length);
            return Err(NotSent::TooLong(length - 4));
        }
        self.last_xid = xid;
        self.closing |= op == OpCode::CloseSession;
        self.open.push_back(Open { xid, end: self.enqueued, to });
        Ok(())
    }

    /// Queues a frame and gives its length.
    fn push_frame(&mut self, xid: i32, op: OpCode, body: impl FnOnce(&mut Writer<'_>)) -> usize {
        let before = self.queued.len();
        put_frame(&mut self.queued, |w| {
            w.int(xid);
            w.int(op.code());
            body(w);
        });
        let length = self.queued.len() - before;
        self.enqueued += count(length);
        length
    }

    fn push_ping(&mut self) {
        self.push_frame(XID_PING, OpCode::Ping, |_| ());
    }
}

/// Lengths fit: no platform that tokio runs on has a wider usize.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The task of one connection; ends when the connection does.
pub(crate) struct Driver {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) stream: Stream,
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
                turn = self.stream.turn(&mut self.received, blocked) => match turn {
                    Turn::Read(read) => match self.took(read) {
                        Ok(_) => heard = Instant::now(),
                        Err(reason) => return reason,
                    },
                    Turn::Writable => {}
                },
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
    fn write(&mut self, sending: &mut BytesMut) -> io::Result<bool> {
        match self.stream.try_write(sending) {
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
        let read = self.stream.try_read(&mut self.received);
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

    /// Hands every whole answer to whoever waits for it, and every event on.
    fn settle(&mut self) -> Result<(), CloseReason> {
        let malformed = |error: DecodeError| CloseReason::Malformed(error.to_string());
        let mut state = self.pipeline.state();
        // Everybody was told that the connection is over: what still comes is nobody's.
        if let Some(reason) = &state.closed {
            return Err(reason.clone());
        }
        while let Some(frame) = take_frame(&mut self.received, MAX_ANSWER).map_err(malformed)? {
            settle_one(&mut state, self.pipeline.on_event.as_ref(), frame).map_err(|error| match error {
                Unsettled::Decode(error) => malformed(error),
                Unsettled::OutOfOrder { got, want } => {
                    CloseReason::Malformed(format!("answer to request {got} where {want:?} is due"))
                }
                Unsettled::Watches(err) => {
                    CloseReason::Malformed(format!("watches that can't be left again (error {err})"))
                }
            })?;
        }
        Ok(())
    }
}

impl Drop for Driver {
    /// A runtime that goes down drops the task: nobody waits for ever because of it.
    fn drop(&mut self) {
        self.pipeline.finish(CloseReason::Dropped);
    }
}

enum Unsettled {
    Decode(DecodeError),
    OutOfOrder { got: i32, want: Option<i32> },
    Watches(i32),
}

fn settle_one(state: &mut State, on_event: Option<&OnEvent>, frame: Bytes) -> Result<(), Unsettled> {
    let mut reader = Reader::new(frame);
    let header = ReplyHeader::decode(&mut reader).map_err(Unsettled::Decode)?;
    if header.xid == XID_WATCH {
        if let Some(on_event) = on_event {
            on_event(WatcherEvent::decode(&mut reader).map_err(Unsettled::Decode)?);
        }
        return Ok(());
    }
    // Errors before the first transaction carry -1 or 0 here.
    if header.zxid.to_wire() > 0 {
        state.last_zxid_seen = state.last_zxid_seen.max(header.zxid);
    }
    let result = |reader| match header.err {
        0 => Ok(Answer { zxid: header.zxid, body: reader }),
        err => Err(OpError::from_header(err, header.zxid)),
    };
    match header.xid {
        XID_PING => return Ok(()),
        XID_AUTH => {
            if let Some(to) = state.auths.pop_front() {
                to.settle(result(reader));
            }
            return Ok(());
        }
        // Without its watches a session would miss what they wait for.
        XID_SET_WATCHES if header.err != ErrorCode::Ok.code() => return Err(Unsettled::Watches(header.err)),
        XID_SET_WATCHES => return Ok(()),
        _ => {}
    }
    match state.open.front() {
        Some(open) if open.xid == header.xid => {}
        other => {
            return Err(Unsettled::OutOfOrder { got: header.xid, want: other.map(|open| open.xid) });
        }
    }
    let Some(operation) = state.open.pop_front() else { return Ok(()) };
    operation.to.settle(result(reader));
    Ok(())
}
