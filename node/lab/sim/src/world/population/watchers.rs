//! What watchers do in a world, and what is made of their answers ([`crate::watcher`]).

use node_wire::client::{Acl, ErrorCode, EventType, ReplyHeader, WatcherEvent};
use node_wire::ids::Zxid;
use node_wire::jute::Reader;

use crate::outcome::Rule;
use crate::script::{ClientAction, Transition};
use crate::watcher::{Ask, below};
use crate::world::{Clockwork, Oracle, Population};

impl Population {
    /// A watcher's next ask.
    pub(in crate::world) fn watchers(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, index: usize) {
        let ttl_ms = clock.drawn.mortal_ms;
        let client = &mut self.clients[index];
        let ask = client.watcher.ask(&mut client.dice, index, ttl_ms);
        self.seek(clock, oracle, index, ask);
    }

    /// A client that comes back leaves its watches again before it does anything else.
    pub(super) fn resume_watches(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        index: usize,
    ) -> bool {
        let client = &self.clients[index];
        let resumes = (client.watcher.only || client.prober.only) && !client.watcher.watching.is_empty();
        if resumes {
            self.seek(clock, oracle, index, Ask::Resume);
        }
        resumes
    }

    /// A client asks.
    pub(super) fn seek(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, index: usize, ask: Ask) {
        clock.write_down(|| Transition::Asks { client: index, action: ClientAction::Ask(ask.clone()) });
        let client = &mut self.clients[index];
        if ask != Ask::Resume && client.watcher.watching.seen().is_none() {
            // It has not left them again: they are given up.
            client.watcher.watching.forget();
        }
        let frame = client.ask(ask);
        self.ask(clock, oracle, index, vec![frame]);
    }

    /// An event came.
    pub(super) fn watcher_is_told(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        index: usize,
        mut body: Reader,
    ) {
        let Ok(event) = WatcherEvent::decode(&mut body) else {
            oracle.report(clock, Rule::Answer, format!("client {index} got a malformed event"));
            return;
        };
        clock.counters.events += 1;
        let kind = EventType::from_code(event.kind);
        clock.line_of_event(index, kind, &event.path);
        self.clients[index].watcher.watching.is_told((event.kind, event.path));
    }

    /// A reply of this place came: what was told before it is what had happened up to there.
    pub(in crate::world) fn explain(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        index: usize,
        zxid: Zxid,
        resumes: bool,
    ) {
        if !resumes && self.clients[index].watcher.watching.rests(zxid) {
            return;
        }
        if zxid > oracle.invariants.last_committed() {
            // From a member that left its role in the same step: the sequence is not known so far.
            self.clients[index].watcher.watching.forget();
            self.clients[index].watcher.watching.moves();
            return;
        }
        let client = &mut self.clients[index];
        let (proven, said) = client.prober.identities();
        let watching = &mut client.watcher.watching;
        let judge = &oracle.invariants;
        let reads = |list: &[Acl]| judge.spec_of_events(list, &proven, &said);
        let outcome = match (watching.seen(), resumes) {
            (Some(seen), false) => watching.shown(zxid, judge.changes_between(seen, zxid), reads),
            (_, true) => {
                let since = client.session.as_ref().map_or(Zxid::ZERO, |session| session.seen);
                watching.resumed(zxid, since, |path| judge.standing(path, zxid), reads)
            }
            (None, false) => watching.shown(zxid, &[], reads),
        };
        match outcome {
            Ok(_) => {}
            Err((rule, sentence)) => oracle.report(clock, rule, format!("client {index} {sentence}")),
        }
    }

    /// A ask is answered.
    pub(super) fn watcher_is_answered(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        index: usize,
        header: ReplyHeader,
        body: Reader,
    ) {
        let Some(ask) = self.clients[index].watcher.open.pop_front() else { return };
        clock.counters.asks += 1;
        if ask.reconfigures() {
            self.ensemble_changes(clock, index, &ask, header);
        } else {
            self.clients[index].served += 1;
        }
        if ask.changes() && header.err == 0 {
            oracle.judge(clock, |invariants| invariants.acknowledged(header.zxid));
        }
        self.learn(clock, oracle, index, &ask, header, body);
        self.think(clock, index);
    }

    /// An operator is answered. It is served when the ensemble did change: a healed one must be able to. Dice
    /// may ask several times for a member to go that can't be spared, so it leaves them where the ensemble is
    /// healed.
    fn ensemble_changes(&mut self, clock: &mut Clockwork, index: usize, ask: &Ask, header: ReplyHeader) {
        let chaos = clock.in_chaos();
        let client = &mut self.clients[index];
        if header.err == 0 {
            clock.counters.reconfigurations += 1;
            client.served += 1;
            client.watcher.relent();
        } else {
            clock.counters.unreconfigured += 1;
            if header.err == ErrorCode::BadArguments.code() && !chaos && client.served == 0 {
                client.watcher.insist(ask);
            }
        }
    }

    /// A watcher is answered: which events it must see from here on follows from what it asked and was told.
    fn learn(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        index: usize,
        ask: &Ask,
        header: ReplyHeader,
        body: Reader,
    ) {
        let watching = &mut self.clients[index].watcher.watching;
        let there = header.err == 0;
        match ask {
            Ask::Look(place) if there => watching.data(below(place).into()),
            Ask::Exists(place) if there => watching.data(below(place).into()),
            Ask::Exists(place) if header.err == ErrorCode::NoNode.code() => {
                watching.absent(below(place).into());
            }
            Ask::List(place) if there => watching.children(below(place).into()),
            Ask::Follow(place) if there => watching.persistent(below(place).into()),
            Ask::FollowAll(place) if there => watching.recursive(below(place).into()),
            Ask::Pair if there => oracle.check_twins(clock, index, header.zxid, body),
            Ask::Both(_) | Ask::Break(_) => clock.counters.multis += 1,
            Ask::Usage => oracle.check_usage(clock, index, header, body),
            Ask::Make(place) => oracle.check_room(clock, header, place, None),
            Ask::Fill(place, bytes) => oracle.check_room(clock, header, place, Some(*bytes)),
            _ => {}
        }
    }
}
