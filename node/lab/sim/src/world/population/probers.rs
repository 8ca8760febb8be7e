//! What probers do in a world, and what is made of their answers ([`crate::prober`]).

use bytes::Bytes;
use node_wire::client::{ConnectResponse, ErrorCode, Id, ReplyHeader};
use node_wire::jute::Reader;

use crate::client::{Flow, Wake};
use crate::invariants::Told;
use crate::outcome::Rule;
use crate::prober::{Open, Probe, Prober, Sense};
use crate::script::{ClientAction, Transition};
use crate::world::{Clockwork, Ensemble, Event, Oracle, Population};
use harness_world::dice::HALF;

/// Ways over a link that a prober pauses for, at most: a write of it is under way for as long.
const LINKS: u64 = 4;

impl Population {
    /// A prober's next batch.
    pub(in crate::world) fn probers(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
    ) {
        let client = &mut self.clients[index];
        if !client.prober.open.is_empty() {
            // It did not wait for its connection, and waits for answers now.
            let patience_us = clock.drawn.op_timeout_us;
            self.set_timer(clock, index, patience_us, Wake::GiveUp);
            return;
        }
        let rest = std::mem::take(&mut client.prober.rest);
        let mut batch = if rest.is_empty() { client.prober.batch(&mut client.dice) } else { rest };
        let pauses = Prober::pauses(&batch);
        if let Some(conn) = client.conn.filter(|_| !pauses.is_empty() && self.pauses.chance(HALF)) {
            client.prober.rest = batch.split_off(pauses[self.pauses.index(pauses.len())]);
            let delay_us = self.pauses.between(0, LINKS * clock.drawn.link_us.1 + 2 * clock.drawn.fsync_us.1);
            clock.plan(delay_us, Event::Client { client: index, plan: 0, wake: Wake::Rest { conn } });
        }
        self.probe(clock, ensemble, oracle, index, batch);
    }

    /// A prober goes on with its batch.
    pub(super) fn probe_rest(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        conn: usize,
    ) {
        let client = &mut self.clients[index];
        if client.conn != Some(conn) || !client.ready {
            return;
        }
        let rest = std::mem::take(&mut client.prober.rest);
        if !rest.is_empty() && !self.record.quiet && !self.record.closing {
            self.probe(clock, ensemble, oracle, index, rest);
        }
    }

    /// A client asks all of this at once.
    pub(super) fn probe(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        mut batch: Vec<Probe>,
    ) {
        clock.write_down(|| Transition::Asks { client: index, action: ClientAction::Probe(batch.clone()) });
        clock.counters.batches += 1;
        let leaves = batch.last() == Some(&Probe::Leave);
        let first = match batch.first() {
            Some(first @ (Probe::Forge(_) | Probe::Rush)) => Some(first.clone()),
            _ => None,
        };
        if first.is_none() && self.clients[index].watcher.watching.seen().is_none() {
            // It has not left them again: they are given up.
            self.clients[index].watcher.watching.forget();
        }
        match first {
            Some(Probe::Forge(forgery)) => {
                let password =
                    self.clients[index].session.as_ref().map(|session| forgery.of(&session.password));
                batch.remove(0);
                self.forge(clock, ensemble, oracle, index, password.unwrap_or_default(), &batch);
                return;
            }
            Some(_) => {
                batch.remove(0);
                clock.counters.rude += 1;
                // What it asks comes before it could leave them again.
                self.clients[index].watcher.watching.forget();
                if !self.connect_at_once(clock, ensemble, oracle, index, None) {
                    return;
                }
            }
            None => {}
        }
        let frames: Vec<Bytes> =
            batch.into_iter().filter_map(|probe| self.prepare(oracle, index, probe)).collect();
        if !frames.is_empty() {
            self.ask(clock, oracle, index, frames);
        } else if !leaves {
            self.think(clock, index);
        }
        if leaves {
            clock.counters.rude += 1;
            clock.write_down(|| Transition::HangsUp { client: index });
            self.hang_up(clock, index);
            self.on_lost(clock, ensemble, oracle, index, "left with everything under way");
        }
    }

    /// The frame of a probe, which is from now on waited for.
    fn prepare(&mut self, oracle: &mut Oracle, index: usize, probe: Probe) -> Option<Bytes> {
        let committed = oracle.invariants.last_committed();
        let client = &mut self.clients[index];
        let (op, body, sense) = probe.request(index)?;
        if let Probe::Auth(name) = probe
            && !client.prober.who.contains(&name)
        {
            client.prober.who.push(name);
        }
        let frame = client.probe(op, &body);
        let who = client.prober.who.clone();
        if let (Sense::Update(update), Some(session)) = (&sense, &client.session) {
            let who: Vec<Id> = who.iter().map(|name| name.id()).collect();
            oracle.invariants.spec_asks(session.id, client.xid, who, update.clone());
        }
        client.prober.open.push_back(Open { probe, sense, who, committed });
        Some(frame)
    }

    /// Hangs up, and connects to the same member without a pause. False when nobody is there.
    fn connect_at_once(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        password: Option<Bytes>,
    ) -> bool {
        let host = self.clients[index].member;
        self.hang_up(clock, index);
        self.clients[index].awaited.clear();
        self.clients[index].prober.moves();
        self.clients[index].watcher.open.clear();
        if ensemble.hosts[host].process.is_none() {
            self.on_lost(clock, ensemble, oracle, index, "refused");
            return false;
        }
        let conn = self.open_client_conn(ensemble, oracle, index, host);
        let timeout = i32::try_from(clock.drawn.session_timeout_ms).expect("a drawn time-out is small");
        let client = &mut self.clients[index];
        client.conn = Some(conn);
        client.asked_at = clock.now;
        client.prober.forging = password.is_some();
        let frame = match (password, &mut client.session) {
            (Some(password), Some(session)) => {
                let right = std::mem::replace(&mut session.password, password);
                let frame = client.connect(timeout, None, false);
                if let Some(session) = &mut client.session {
                    session.password = right;
                }
                frame
            }
            _ => client.connect(timeout, None, false),
        };
        self.send_to_member(clock, conn, Flow::Frame(frame));
        true
    }

    /// Tries a wrong password, with requests right behind it that nobody may answer.
    fn forge(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        password: Bytes,
        batch: &[Probe],
    ) {
        clock.counters.rude += 1;
        if !self.connect_at_once(clock, ensemble, oracle, index, Some(password)) {
            return;
        }
        let mut frames = Vec::new();
        for (op, body, _) in batch.iter().filter_map(|probe| probe.request(index)) {
            frames.push(self.clients[index].probe(op, &body));
        }
        self.clients[index].awaited.clear();
        self.ask(clock, oracle, index, frames);
    }

    /// The answer to a wrong password. True when that is what it was.
    pub(super) fn forgery_is_answered(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        response: &ConnectResponse,
    ) -> bool {
        if !self.clients[index].prober.forging {
            return false;
        }
        if response.timeout_ms > 0 {
            let sentence = format!(
                "session {} was given to client {index}, which does not know its password",
                response.session
            );
            oracle.report(clock, Rule::LawfulAnswers, sentence);
            return true;
        }
        self.hang_up(clock, index);
        self.on_lost(clock, ensemble, oracle, index, "a wrong password");
        true
    }

    /// The connection is gone, and what was under way with it.
    pub(super) fn give_up_probes(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.prober.moves() {
            // Whatever became of its end, the client will not use the session again.
            client.session = None;
            client.watcher.watching.forget();
        }
    }

    /// Gives the answer to the prober that asked, and judges what it makes of it.
    pub(super) fn probe_is_answered(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        header: ReplyHeader,
        mut body: Reader,
    ) {
        let client = &mut self.clients[index];
        let Some(open) = client.prober.open.pop_front() else { return };
        let probe = &open.probe;
        let Some(session) = client.session.as_ref().map(|session| session.id) else { return };
        let before = std::mem::replace(&mut client.prober.shown, header.zxid);
        clock.counters.probes += 1;
        client.served += 1;
        let told = match &open.sense {
            Sense::Update(update) => update.told(header.err, &mut body),
            Sense::Look(look) => look.told(header.err, &mut body),
            Sense::Sync | Sense::Other if header.err == 0 => Ok(Told::Done),
            Sense::Sync | Sense::Other => Ok(Told::Refused(header.err)),
        };
        let Ok(told) = told else {
            oracle.report(clock, Rule::Answer, format!("client {index} got a malformed answer to {probe}"));
            return;
        };
        clock.counters.refused_probes += u64::from(matches!(told, Told::Refused(_)));
        // From a member that left its role in the same step: the sequence is not known so far.
        if header.zxid <= oracle.invariants.last_committed() {
            oracle.check_probe(clock, session, header, before, &open, &told);
        }
        self.keep_watch(index, probe, header);
        let client = &mut self.clients[index];
        client.prober.learns(&mut client.dice, probe, &told);
        if *probe == Probe::Close {
            self.leave(clock, ensemble, oracle, index);
        } else if self.clients[index].prober.open.is_empty() {
            self.think(clock, index);
        }
    }

    /// What an answer leaves to be told of.
    fn keep_watch(&mut self, index: usize, probe: &Probe, header: ReplyHeader) {
        let Some(path) = probe.path(index) else { return };
        let watching = &mut self.clients[index].watcher.watching;
        match probe {
            Probe::Exists(..) if header.err == ErrorCode::NoNode.code() => watching.absent(path),
            _ if header.err != 0 => {}
            Probe::Get(..) | Probe::Exists(..) => watching.data(path),
            Probe::Children(..) => watching.children(path),
            Probe::Follow(_) => watching.persistent(path),
            _ => watching.recursive(path),
        }
    }
}
