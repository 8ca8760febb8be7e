//! What clients ask next, and what the answers mean: any workload, through the mapping that real clients use.
//!
//! Each client has one operation open at a time. One whose fate is unknown stays open for ever and retires
//! its process. Workloads that judge sessions have their openings and ends in the history as well.

use bytes::Bytes;
use checker::history::{Event as Line, EventKind};
use node_wire::client::{
    ChildrenResponse, CreateResponse, ErrorCode, GetDataResponse, ReplyHeader, SetDataResponse, XID_PING,
    XID_WATCH,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::Reader;
use workloads::Op;
use workloads::op::Body;
use zookeeper_mapping::{Answer, outcome};

use crate::client::{self, Open, Purpose, Wake};
use crate::outcome::Rule;
use crate::script::{ClientAction, Transition};
use crate::watcher::Ask;
use crate::world::scripted::describe;
use crate::world::{Clockwork, Ensemble, Oracle, Population};
use harness_world::time::Time;

/// How often a client looks whether there is something to do while there is not.
const IDLE_US: u64 = 20_000;

/// How long the client that reads everything last thinks before each.
const LAST_READS_US: u64 = 1_000;

impl Population {
    pub(in crate::world) fn act(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
    ) {
        if !self.clients[index].ready {
            return;
        }
        if self.record.closing {
            self.say_goodbye(clock, oracle, index);
            return;
        }
        if self.rests(clock, index) {
            return self.set_timer(clock, index, IDLE_US, Wake::Act);
        }
        if self.clients[index].watcher.only {
            if self.record.quiet {
                self.set_timer(clock, index, IDLE_US, Wake::Act);
            } else {
                self.watchers(clock, oracle, index);
            }
            return;
        }
        if self.clients[index].prober.only {
            if self.record.quiet {
                self.set_timer(clock, index, IDLE_US, Wake::Act);
            } else {
                self.probers(clock, ensemble, oracle, index);
            }
            return;
        }
        match self.next_operation(index) {
            Some((job, op)) => self.invoke(clock, ensemble, oracle, index, job, op),
            None => self.set_timer(clock, index, IDLE_US, Wake::Act),
        }
    }

    /// What a client does next. The first one prepares every workload, and reads all of it last.
    pub(in crate::world) fn next_operation(&mut self, index: usize) -> Option<(usize, Op)> {
        if index == 0
            && let Some(load) = self.record.unfinished()
        {
            let job = self.clients[0].jobs.iter().position(|job| job.load == load)?;
            return Some((job, self.record.chore(load)?));
        }
        let client = &mut self.clients[index];
        let job = client.dice.index(client.regular_jobs);
        let op = self.record.next(client.jobs[job])?;
        Some((job, op))
    }

    /// A client ends its session, and all is over for it.
    pub(super) fn say_goodbye(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, index: usize) {
        clock.write_down(|| Transition::Asks { client: index, action: ClientAction::Goodbye });
        let frame = self.clients[index].goodbye();
        self.ask(clock, oracle, index, vec![frame]);
    }

    pub(super) fn invoke(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        job: usize,
        op: Op,
    ) {
        clock.write_down(|| {
            let load = self.clients[index].jobs[job].load;
            let kind = self.record.loads[load].workload.kind();
            Transition::Asks { client: index, action: ClientAction::Operation(kind, Box::new(op.clone())) }
        });
        let client = &mut self.clients[index];
        let frames = client.frames_of(&op);
        let line = op.event(client.jobs[job].process, clock.now.as_ns());
        let leaves_silently = frames.is_empty();
        client.open = Some(Open { job, op });
        self.push(index, job, line);
        if leaves_silently {
            self.complete(clock, oracle, index, &Answer::Abandoned);
            self.hang_up(clock, index);
            self.clients[index].session = None;
            self.on_lost(clock, ensemble, oracle, index, "walked out");
        } else {
            self.ask(clock, oracle, index, frames);
        }
    }

    /// Adds a line, and to it where its client is.
    pub(in crate::world) fn push(&mut self, index: usize, job: usize, mut line: Line) {
        let client = &self.clients[index];
        let history = &mut self.record.loads[client.jobs[job].load].history;
        line.index = u64::try_from(history.len()).expect("a history is short");
        line.node = u64::try_from(client.member + 1).ok();
        line.session = client.session.as_ref().map(|session| session.id.0.cast_unsigned());
        history.push(line);
    }

    /// The open operation of a client ends.
    pub(in crate::world) fn complete(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        index: usize,
        answer: &Answer,
    ) {
        let client = &mut self.clients[index];
        let Some(Open { job, op }) = client.open.take() else { return };
        let process = client.jobs[job].process;
        let load = client.jobs[job].load;
        let outcome = outcome(&op, answer);
        self.record.loads[load].workload.complete(process, &op, &outcome);
        let line = outcome.event(&op, process, clock.now.as_ns());
        let figures = [process, u64::try_from(self.record.loads[load].history.len()).unwrap_or(0)];
        clock.world_line("op", figures, || {
            format!(
                "p{process} {} k{} {} -> {:?} {}",
                op.function(),
                op.key,
                op.value(),
                outcome.kind,
                outcome.value
            )
        });
        clock.remark(|| describe::completion(index, &op, &outcome));
        clock.show(&op, &outcome);
        self.push(index, job, line);
        match outcome.kind {
            EventKind::Ok => clock.counters.ok += 1,
            EventKind::Info => clock.counters.unknown += 1,
            EventKind::Fail | EventKind::Invoke => clock.counters.failed += 1,
        }
        if outcome.retires() {
            self.clients[index].jobs[job].process = self.record.new_process();
        } else if outcome.kind == EventKind::Ok && *answer != Answer::Abandoned {
            self.clients[index].served += 1;
        }
        self.record.finished(load, &op, &outcome);
        if let Some(zxid) = changed_at(answer) {
            clock.count(op.object);
            oracle.judge(clock, |invariants| invariants.acknowledged(zxid));
        }
        // Whatever became of it, the client will not use the session again.
        if op.body == Body::Close && outcome.kind != EventKind::Ok {
            self.note_leaving(clock, index, &Answer::Abandoned);
            self.clients[index].session = None;
        }
    }

    /// A session was opened, or is left, beside the workload's own operations: workloads that judge sessions
    /// know.
    fn note_session(&mut self, clock: &Clockwork, index: usize, op: &Op, answer: &Answer, since: Time) {
        for job in 0..self.clients[index].regular_jobs {
            let client = &self.clients[index];
            let (load, process) = (client.jobs[job].load, client.jobs[job].process);
            let workload = &mut self.record.loads[load].workload;
            if !workload.records_sessions() {
                continue;
            }
            let outcome = outcome(op, answer);
            workload.complete(process, op, &outcome);
            let asked = op.event(process, since.as_ns());
            let told = outcome.event(op, process, clock.now.as_ns());
            self.push(index, job, asked);
            self.push(index, job, told);
        }
    }

    pub(super) fn note_opening(&mut self, clock: &Clockwork, index: usize, timeout_ms: i32) {
        let since = self.clients[index].asked_at;
        self.note_session(clock, index, &Op::open(), &Answer::Opened { timeout_ms }, since);
    }

    /// A client gives its session up, or hears that it has expired.
    pub(super) fn note_leaving(&mut self, clock: &Clockwork, index: usize, answer: &Answer) {
        self.note_session(clock, index, &Op::abandon(), answer, clock.now);
    }

    pub(super) fn on_reply(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        frame: Bytes,
    ) {
        let (header, body) = client::reply(frame);
        if header.xid == XID_WATCH {
            self.watcher_is_told(clock, oracle, index, body);
            return;
        }
        if header.xid == XID_PING {
            self.explain(clock, oracle, index, header.zxid, false);
            return;
        }
        let client = &mut self.clients[index];
        let Some((xid, purpose)) = client.awaited.pop_front() else {
            oracle.report(
                clock,
                Rule::Answer,
                format!("client {index} got a reply {} to nothing", header.xid),
            );
            return;
        };
        if xid != header.xid {
            oracle.report(
                clock,
                Rule::Answer,
                format!("client {index} got reply {} before {xid}", header.xid),
            );
            return;
        }
        let resumes = purpose == Purpose::Ask && client.watcher.open.front() == Some(&Ask::Resume);
        self.explain(clock, oracle, index, header.zxid, resumes);
        let client = &mut self.clients[index];
        let Some(session) = &mut client.session else { return };
        if header.zxid < session.seen {
            let sentence =
                format!("session {} saw {} and then only {}", session.id, session.seen, header.zxid);
            oracle.report(clock, Rule::SessionOrder, sentence);
            return;
        }
        session.seen = header.zxid;
        oracle.prove_answered(index, purpose);
        self.take_reply(clock, ensemble, oracle, index, purpose, (header, body));
    }

    fn take_reply(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        purpose: Purpose,
        (header, body): (ReplyHeader, Reader),
    ) {
        if purpose == Purpose::Goodbye {
            self.leave(clock, ensemble, oracle, index);
            return;
        }
        if purpose == Purpose::Ask {
            self.watcher_is_answered(clock, oracle, index, header, body);
            return;
        }
        if purpose == Purpose::Probe {
            self.probe_is_answered(clock, ensemble, oracle, index, header, body);
            return;
        }
        let answer = match answer_of(purpose, header, body) {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(sentence) => {
                oracle.report(clock, Rule::Answer, sentence);
                return;
            }
        };
        if purpose == Purpose::Sync {
            // The read behind a refused sync counts for nothing.
            if let Some((_, next)) = self.clients[index].awaited.front_mut() {
                *next = Purpose::Nothing;
            }
        }
        self.complete(clock, oracle, index, &answer);
        if purpose == Purpose::Close {
            self.leave(clock, ensemble, oracle, index);
        } else if index == 0 && self.record.quiet {
            self.set_timer(clock, index, LAST_READS_US, Wake::Act);
        } else {
            self.think(clock, index);
        }
    }

    /// The session ended as it should.
    pub(in crate::world) fn leave(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
    ) {
        self.hang_up(clock, index);
        let client = &mut self.clients[index];
        client.session = None;
        client.awaited.clear();
        if self.record.closing {
            client.gone = true;
        } else {
            self.on_lost(clock, ensemble, oracle, index, "left");
        }
    }

    /// True when no client waits for an answer.
    pub(in crate::world) fn is_quiet(&self) -> bool {
        self.clients.iter().all(|client| !client.is_busy())
    }

    /// True for the password of a session that a client has.
    pub(in crate::world) fn keeps(&self, session: SessionId, password: &Bytes) -> bool {
        let of_clients = self.clients.iter().filter_map(|client| client.session.as_ref());
        let of_applications = self.applications.iter().filter_map(|one| one.application.credentials());
        of_clients.map(|known| (known.id, &known.password)).any(|known| known == (session, password))
            || of_applications
                .map(|known| (known.id, &known.password))
                .any(|known| known == (session, password))
    }
}

/// Where in the order an acknowledged change took its place.
fn changed_at(answer: &Answer) -> Option<Zxid> {
    match answer {
        Answer::Written { zxid, .. }
        | Answer::Created { zxid, .. }
        | Answer::Deleted { zxid }
        | Answer::Closed { zxid } => Some(*zxid),
        _ => None,
    }
}

/// What a reply means for the operation it belongs to; nothing when the operation goes on.
pub(in crate::world) fn answer_of(
    purpose: Purpose,
    header: ReplyHeader,
    mut body: Reader,
) -> Result<Option<Answer>, String> {
    let zxid = header.zxid;
    if header.err != 0 {
        let code =
            ErrorCode::from_code(header.err).ok_or_else(|| format!("an unknown error {}", header.err))?;
        return Ok(match (purpose, code) {
            (Purpose::Nothing, _) => None,
            (Purpose::Exists, ErrorCode::NoNode) => Some(Answer::Exists { present: false, zxid }),
            _ => Some(Answer::Refused { code, zxid: Some(zxid) }),
        });
    }
    let malformed = |error| format!("a malformed answer: {error}");
    Ok(match purpose {
        Purpose::Sync | Purpose::Nothing | Purpose::Goodbye | Purpose::Ask | Purpose::Probe => None,
        Purpose::Create => {
            let path = CreateResponse::decode(&mut body).map_err(malformed)?.path;
            Some(Answer::Created { path, zxid })
        }
        Purpose::Read => {
            let read = GetDataResponse::decode(&mut body).map_err(malformed)?;
            Some(Answer::Read { data: read.data, version: read.stat.version, mzxid: read.stat.mzxid, zxid })
        }
        Purpose::Children => {
            let names = ChildrenResponse::decode(&mut body).map_err(malformed)?.children;
            Some(Answer::Children { names, zxid })
        }
        Purpose::Exists => Some(Answer::Exists { present: true, zxid }),
        Purpose::Write => {
            let stat = SetDataResponse::decode(&mut body).map_err(malformed)?.stat;
            Some(Answer::Written { version: stat.version, mzxid: stat.mzxid, zxid })
        }
        Purpose::Delete => Some(Answer::Deleted { zxid }),
        Purpose::Close => Some(Answer::Closed { zxid }),
    })
}
