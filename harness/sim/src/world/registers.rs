//! Clients of the register workload: what they ask next, and what the answers mean.
//!
//! Each has one operation open at a time. One whose fate is unknown stays open for ever and retires its process.

use bytes::Bytes;
use checker::history::{Event as Line, EventKind, Function};
use node_core::Plant;
use node_wire::client::{ErrorCode, GetDataResponse, ReplyHeader, SetDataResponse, XID_PING, XID_WATCH};
use node_wire::jute::Reader;
use workloads::{Answer, Invocation};

use super::{World, notes};
use crate::client::{self, Purpose, Trade, Wake};
use crate::outcome::Rule;
use crate::script::{Deed, Transition};

/// How often a client looks whether there is something to do while there is not.
pub(super) const IDLE_US: u64 = 20_000;

impl<P: Plant> World<P> {
    pub(super) fn act(&mut self, index: usize) {
        if !self.clients[index].ready {
            return;
        }
        if self.record.closing {
            self.say_goodbye(index);
            return;
        }
        match &self.clients[index].trade {
            Trade::Register(scribe) => {
                let process = scribe.process;
                match self.record.next(index, process) {
                    Some(invocation) => self.invoke(index, invocation),
                    None => self.set_timer(index, IDLE_US, Wake::Act),
                }
            }
            Trade::Visitor(_) => self.act_as_visitor(index),
        }
    }

    /// A client ends its session.
    pub(super) fn say_goodbye(&mut self, index: usize) {
        self.write_down(|_| Transition::Asks { client: index, deed: Deed::Goodbye });
        if let Trade::Visitor(visitor) = &mut self.clients[index].trade {
            visitor.busy = true;
        }
        let frame = self.clients[index].goodbye();
        self.ask(index, vec![frame]);
    }

    pub(super) fn invoke(&mut self, index: usize, invocation: Invocation) {
        self.write_down(|_| {
            let deed = Deed::Operation(Box::new(invocation.clone()));
            Transition::Asks { client: index, deed }
        });
        let client = &mut self.clients[index];
        let frames = client.frames_of(&invocation.action);
        let Trade::Register(scribe) = &mut client.trade else { return };
        let process = scribe.process;
        let mut line = invocation.event(process, self.now.as_ns());
        scribe.open = Some(invocation);
        self.note(index, &mut line);
        self.record.history.push(line);
        self.ask(index, frames);
    }

    /// Adds to a line where its client is.
    fn note(&mut self, index: usize, line: &mut Line) {
        let client = &self.clients[index];
        line.index = u64::try_from(self.record.history.len()).expect("a history is short");
        line.node = u64::try_from(client.member + 1).ok();
        line.session = client.session.as_ref().map(|session| session.id.0.cast_unsigned());
    }

    /// The open operation of a register client ends.
    pub(super) fn complete(&mut self, index: usize, answer: &Answer) {
        let Trade::Register(scribe) = &mut self.clients[index].trade else { return };
        let Some(invocation) = scribe.open.take() else { return };
        let process = scribe.process;
        let completion = self.record.workload.complete(process, &invocation, answer);
        let mut line = completion.event(&invocation, process, self.now.as_ns());
        let figures = [process, line.index];
        self.note(index, &mut line);
        self.world_line("op", figures, || {
            format!(
                "p{process} {} r{} {:?} -> {:?} {:?}",
                invocation.f, invocation.key, invocation.value, completion.kind, completion.value
            )
        });
        self.record.history.push(line);
        self.remark(|_| notes::completion(index, &invocation, &completion));
        match completion.kind {
            EventKind::Ok => self.counters.ok += 1,
            EventKind::Info => self.counters.unknown += 1,
            EventKind::Fail | EventKind::Invoke => self.counters.failed += 1,
        }
        let Trade::Register(scribe) = &mut self.clients[index].trade else { return };
        if completion.retires() {
            scribe.process = self.record.process();
        } else if completion.kind == EventKind::Ok {
            scribe.served += 1;
        }
        self.record.finished(index, &invocation, answer);
        if let Answer::Written { zxid, .. } | Answer::Created { zxid } = answer {
            debug_assert_ne!(invocation.f, Function::Read, "a read writes nothing");
            let finding = self.judge.acknowledged(*zxid);
            self.judged(finding);
        }
    }

    pub(super) fn on_reply(&mut self, index: usize, frame: Bytes) {
        let (header, body) = client::reply(frame);
        if header.xid == XID_WATCH || header.xid == XID_PING {
            return;
        }
        let client = &mut self.clients[index];
        let Some((xid, purpose)) = client.awaited.pop_front() else {
            self.convict(Rule::Answer, format!("client {index} got a reply {} to nothing", header.xid));
            return;
        };
        if xid != header.xid {
            self.convict(Rule::Answer, format!("client {index} got reply {} before {xid}", header.xid));
            return;
        }
        let Some(session) = &mut client.session else { return };
        if header.zxid < session.seen {
            let sentence =
                format!("session {} saw {} and then only {}", session.id, session.seen, header.zxid);
            self.convict(Rule::SessionOrder, sentence);
            return;
        }
        session.seen = header.zxid;
        match self.clients[index].trade {
            Trade::Register(_) => self.on_register_reply(index, &purpose, header, body),
            Trade::Visitor(_) => self.on_visitor_reply(index, &purpose, header, body),
        }
    }

    fn on_register_reply(&mut self, index: usize, purpose: &Purpose, header: ReplyHeader, body: Reader) {
        if *purpose == Purpose::Goodbye {
            self.leave(index);
            return;
        }
        let answer = match answer_of(purpose, header, body) {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(sentence) => {
                self.convict(Rule::Answer, sentence);
                return;
            }
        };
        if *purpose == Purpose::Sync {
            // The read behind a refused sync counts for nothing.
            if let Some((_, next)) = self.clients[index].awaited.front_mut() {
                *next = Purpose::Nothing;
            }
        }
        self.complete(index, &answer);
        self.think(index);
    }

    /// The session ended as it should.
    pub(super) fn leave(&mut self, index: usize) {
        self.hang_up(index);
        let client = &mut self.clients[index];
        client.session = None;
        client.awaited.clear();
        if self.record.closing {
            client.gone = true;
        } else {
            self.on_lost(index, "left");
        }
    }

    /// True when no client waits for an answer.
    pub(super) fn is_quiet(&self) -> bool {
        self.clients.iter().all(|client| !client.is_busy())
    }
}

/// What a reply means for the operation it belongs to; nothing when the operation goes on.
fn answer_of(purpose: &Purpose, header: ReplyHeader, mut body: Reader) -> Result<Option<Answer>, String> {
    let zxid = header.zxid;
    if header.err != 0 {
        let code =
            ErrorCode::from_code(header.err).ok_or_else(|| format!("an unknown error {}", header.err))?;
        let refused = Answer::Refused { code, zxid: Some(zxid) };
        return Ok((*purpose != Purpose::Nothing).then_some(refused));
    }
    let malformed = |error| format!("a malformed answer: {error}");
    Ok(match purpose {
        Purpose::Sync | Purpose::Nothing | Purpose::Goodbye | Purpose::Visit | Purpose::Revisit => None,
        Purpose::Create => Some(Answer::Created { zxid }),
        Purpose::Read => {
            let read = GetDataResponse::decode(&mut body).map_err(malformed)?;
            Some(Answer::Read { data: read.data, version: read.stat.version, mzxid: read.stat.mzxid, zxid })
        }
        Purpose::Write => {
            let stat = SetDataResponse::decode(&mut body).map_err(malformed)?.stat;
            Some(Answer::Written { version: stat.version, mzxid: stat.mzxid, zxid })
        }
    })
}
