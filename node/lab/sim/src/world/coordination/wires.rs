//! Quorum connections: dials, packets and losses reach their members.

use node_core::io::Input;

use crate::host::Source;
use crate::network::{Conn, EndId, HostIndex};
use crate::world::{Event, World};

impl World {
    pub(in crate::world) fn dial_arrives(&mut self, from: HostIndex, life: u64, to: HostIndex) {
        if !self.ensemble.lives(from, life) {
            return;
        }
        let back = self.ensemble.link_delay(&mut self.clock, to, from);
        if self.ensemble.links.refuses(from, to) {
            self.clock.plan(back, Event::DialFailed { from, life, to });
            return;
        }
        if !self.ensemble.links.dials(from, to) {
            // Nothing answers: the dialler gives up by itself.
            self.clock.plan(self.clock.drawn.peer_timeout_ms * 1000, Event::DialFailed { from, life, to });
            return;
        }
        if self.ensemble.hosts[to].process.is_none() || self.clock.dice.chance(self.clock.drawn.refuse) {
            self.clock.plan(back, Event::DialFailed { from, life, to });
            return;
        }
        let target_life = self.ensemble.hosts[to].life;
        let (dialler, acceptor) = (
            EndId { conn: self.ensemble.conns.len(), end: 0 },
            EndId { conn: self.ensemble.conns.len(), end: 1 },
        );
        let mut conn = Conn::new((from, life), (to, target_life));
        conn.ends[0].incoming.not_before(self.clock.now + back);
        self.ensemble.conns_in_use.push(self.ensemble.conns.len());
        self.ensemble.conns.push(conn);
        self.clock.plan(back, Event::Dialled { end: dialler, to });
        self.give(to, target_life, acceptor.into(), Input::Accepted { conn: acceptor.id() });
    }

    pub(in crate::world) fn dial_succeeds(&mut self, end: EndId, to: HostIndex) {
        let leader = self.ensemble.server(to);
        let this = &mut self.ensemble.conns[end.conn].ends[end.end];
        let (host, life, open) = (this.host, this.life, this.open);
        this.announced = true;
        if open {
            self.give(host, life, end.into(), Input::Dialled { leader, conn: end.id() });
        } else {
            self.give(host, life, Source::Dial(to), Input::DialFailed { leader });
        }
    }

    pub(in crate::world) fn dial_fails(&mut self, from: HostIndex, life: u64, to: HostIndex) {
        let leader = self.ensemble.server(to);
        self.give(from, life, Source::Dial(to), Input::DialFailed { leader });
    }

    pub(in crate::world) fn arrive(&mut self, end: EndId) {
        let conn = &self.ensemble.conns[end.conn];
        let (host, life) = (conn.ends[end.end].host, conn.ends[end.end].life);
        if !conn.alive || !self.ensemble.links.passes(conn.ends[1 - end.end].host, host) {
            return;
        }
        while self.oracle.violation.is_none() {
            let this = &mut self.ensemble.conns[end.conn].ends[end.end];
            if !this.open {
                return;
            }
            let Some(cargo) = this.incoming.receive(self.clock.now) else { return };
            self.ensemble.links.count(self.ensemble.conns[end.conn].ends[1 - end.end].host, host);
            let conn = end.id();
            let input = self.clock.input_of(conn, cargo);
            self.give(host, life, end.into(), input);
        }
    }

    pub(in crate::world) fn tell_loss(&mut self, end: EndId) {
        let this = &mut self.ensemble.conns[end.conn].ends[end.end];
        let (host, life) = (this.host, this.life);
        if this.announced {
            self.give(host, life, end.into(), Input::PeerLost { conn: end.id() });
        } else {
            // Its dial has not been reported yet: it will be, as failed.
            this.open = false;
        }
    }

    /// A process is gone: its kernel closes its connections, or its machine went with it and nobody does.
    pub(super) fn cut_host(&mut self, host: HostIndex) {
        let abrupt = self.clock.dice.chance(self.clock.drawn.abrupt);
        for index in self.ensemble.conns_in_use() {
            let Some(end) = self.ensemble.conns[index].ends.iter().position(|end| end.host == host) else {
                continue;
            };
            if abrupt {
                self.ensemble.cut(&mut self.clock, index);
            }
            self.ensemble.close(&mut self.clock, EndId { conn: index, end });
        }
        self.ensemble.cut_channels_of(&mut self.clock, host);
        self.population.cut_clients_of(&mut self.clock, host, abrupt);
    }
}
