//! Quorum connections: dialled, used, closed, reset; and links that hold what travels on them.

use node_core::io::ConnId;
use node_wire::ids::ServerId;

use crate::network::{Block, Cargo, Conn, EndId, HostIndex};
use crate::world::clockwork::mover::Mover;
use crate::world::{Clockwork, Ensemble, Event, Oracle};

/// A direction between two members.
pub(in crate::world) type Link = (HostIndex, HostIndex);

impl Ensemble {
    pub(in crate::world) fn links_around(&self, host: HostIndex) -> Vec<Link> {
        let sides: Vec<bool> = (0..self.hosts.len()).map(|other| other == host).collect();
        links_between(&sides)
    }

    pub(in crate::world) fn peer_at(&self, conn: ConnId) -> HostIndex {
        let end = EndId::of(conn).other();
        self.conns[end.conn].ends[end.end].host
    }

    /// How many newer connections of the same pair their end knows of.
    pub(in crate::world) fn older(&self, clock: &Clockwork, conn: ConnId) -> usize {
        let Mover::Recording(recording) = &clock.mover else { return 0 };
        let this = EndId::of(conn);
        let hosts = |end: EndId| {
            let ends = &self.conns[end.conn].ends;
            (ends[end.end].host, ends[1 - end.end].host)
        };
        recording
            .known
            .range((this.conn + 1, 0)..)
            .map(|(conn, end)| EndId { conn: *conn, end: *end })
            .filter(|end| hosts(*end) == hosts(this) && self.conns[end.conn].ends[end.end].open)
            .count()
    }

    /// The connection that a dial waits for, in a world that a script moves. None without such a dial, or
    /// when one of the two does not run.
    pub(in crate::world) fn new_conn(
        &mut self,
        clock: &mut Clockwork,
        from: HostIndex,
        to: HostIndex,
    ) -> Option<usize> {
        if from == to || !self.runs(from) || !self.runs(to) {
            return None;
        }
        let dials = &mut clock.scripted().dials;
        let place = dials.iter().position(|dial| *dial == (from, to))?;
        dials.remove(place);
        let mut conn = Conn::new((from, self.hosts[from].life), (to, self.hosts[to].life));
        conn.ends[1].announced = false;
        let index = self.conns.len();
        self.conns.push(conn);
        // A storm of elections makes tens of thousands: whoever looks for one looks through those that are
        // left.
        let mut held = std::mem::take(&mut clock.scripted().conns);
        held.retain(|conn| {
            self.conns[*conn].ends.iter().any(|end| end.open && end.life == self.hosts[end.host].life)
        });
        held.push(index);
        clock.scripted().conns = held;
        Some(index)
    }

    /// A connection of which this end (0 dialled, 1 accepted) has not heard.
    pub(in crate::world) fn unannounced(
        &self,
        clock: &Clockwork,
        end: usize,
        host: HostIndex,
        peer: HostIndex,
    ) -> Option<usize> {
        clock.held().iter().copied().find(|conn| {
            let ends = &self.conns[*conn].ends;
            let (this, other) = (&ends[end], &ends[1 - end]);
            this.host == host
                && other.host == peer
                && this.open
                && !this.announced
                && this.life == self.hosts[host].life
        })
    }

    /// An end of a connection that its process knows of and holds open: the newest, or one so many older.
    pub(in crate::world) fn open_end(
        &self,
        clock: &Clockwork,
        host: HostIndex,
        peer: HostIndex,
        old: usize,
    ) -> Option<EndId> {
        if !self.runs(host) {
            return None;
        }
        let life = self.hosts[host].life;
        let ends = clock.held().iter().rev().filter_map(|index| {
            let conn = &self.conns[*index];
            let end = (0..2).find(|end| conn.ends[*end].host == host && conn.ends[1 - end].host == peer)?;
            let this = &conn.ends[end];
            (this.open && this.announced && this.life == life).then_some(EndId { conn: *index, end })
        });
        ends.into_iter().nth(old)
    }

    pub(in crate::world) fn dial(&self, clock: &mut Clockwork, from: HostIndex, leader: ServerId) {
        let life = self.hosts[from].life;
        let target = self.index_of(leader).filter(|to| *to != from);
        if clock.takes_dial(from, target) {
            return;
        }
        match target {
            Some(to) => {
                let delay = self.link_delay(clock, from, to);
                clock.plan(delay, Event::Dial { from, life, to });
            }
            None => clock.plan(0, Event::DialFailed { from, life, to: from }),
        }
    }

    /// Sends on a connection. What is sent on a broken one vanishes, as it does until the loss is noticed.
    pub(in crate::world) fn send(&mut self, clock: &mut Clockwork, from: EndId, cargo: Cargo) {
        let conn = &self.conns[from.conn];
        let to = from.other();
        if !conn.alive || !conn.ends[from.end].open || !conn.ends[to.end].open {
            return;
        }
        let (sender, receiver) = (conn.ends[from.end].host, conn.ends[to.end].host);
        let stream_us = if matches!(cargo, Cargo::Image(_)) { clock.stream_us() } else { 0 };
        let delay = self.link_delay(clock, sender, receiver) + stream_us;
        let at = self.conns[to.conn].ends[to.end].incoming.send(clock.now + delay, cargo);
        self.links.note_delay(sender, receiver, at.0 - clock.now.0);
        clock.queue.plan(at, Event::Arrival(to));
    }

    /// Closes an end: the other one learns of it behind everything that was sent.
    pub(in crate::world) fn close(&mut self, clock: &mut Clockwork, end: EndId) {
        if !self.conns[end.conn].ends[end.end].open {
            return;
        }
        self.send(clock, end, Cargo::Fin);
        let this = &mut self.conns[end.conn].ends[end.end];
        this.open = false;
        this.incoming.lose();
    }

    /// Breaks a connection: what is in flight is lost, and both ends learn of it sooner or later.
    pub(in crate::world) fn cut(&mut self, clock: &mut Clockwork, index: usize) {
        self.cut_ends(clock, index, [true, true]);
    }

    /// The quorum connections between two members break, and only those who dialled learn of it: the others
    /// keep what leads nowhere until they miss an answer, or until the same member is there again.
    pub(in crate::world) fn half_open(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        one: HostIndex,
        other: HostIndex,
    ) {
        oracle.progress.disturbed_pair(one, other, clock.now);
        for index in self.conns_in_use() {
            let hosts = [0, 1].map(|end| self.conns[index].ends[end].host);
            if hosts == [one, other] || hosts == [other, one] {
                clock.counters.half_open += u64::from(self.conns[index].alive);
                self.cut_ends(clock, index, [true, false]);
            }
        }
    }

    /// As [`Self::cut`]; says which ends learn of it.
    fn cut_ends(&mut self, clock: &mut Clockwork, index: usize, learns: [bool; 2]) {
        let conn = &mut self.conns[index];
        if !conn.alive {
            return;
        }
        conn.alive = false;
        for (end, learns) in learns.into_iter().enumerate() {
            let this = &mut self.conns[index].ends[end];
            this.incoming.lose();
            if this.open && learns {
                let delay = clock.notice_delay();
                clock.plan(delay, Event::Lost(EndId { conn: index, end }));
            }
        }
    }

    /// Connections that somebody still holds, ascending. Most were closed long ago.
    pub(in crate::world) fn conns_in_use(&mut self) -> Vec<usize> {
        let conns = &self.conns;
        self.conns_in_use.retain(|conn| conns[*conn].ends.iter().any(|end| end.open));
        self.conns_in_use.clone()
    }

    /// Breaks the quorum connections between two members.
    pub(in crate::world) fn cut_pair(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        one: HostIndex,
        other: HostIndex,
    ) {
        oracle.progress.disturbed_pair(one, other, clock.now);
        for index in self.conns_in_use() {
            let [left, right] = &self.conns[index].ends;
            let hosts = (left.host, right.host);
            if hosts == (one, other) || hosts == (other, one) {
                self.cut(clock, index);
            }
        }
    }

    pub(in crate::world) fn block(
        &mut self,
        clock: &Clockwork,
        oracle: &mut Oracle,
        from: HostIndex,
        to: HostIndex,
        block: Block,
    ) {
        oracle.progress.disturbed_pair(from, to, clock.now);
        self.links.block(from, to, block);
    }

    /// Takes a fault from a link. What it held moves on.
    pub(in crate::world) fn unblock(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        from: HostIndex,
        to: HostIndex,
        block: Block,
    ) {
        oracle.progress.disturbed_pair(from, to, clock.now);
        if !self.links.unblock(from, to, block) {
            return;
        }
        // A dropped segment is sent again after a while; what a link process holds goes out at once.
        let wait = match block {
            Block::Hold | Block::Refuse => 0,
            Block::Drop => clock.dice.between(0, 200_000),
        };
        let at = clock.now + wait + self.link_delay(clock, from, to);
        for conn in self.conns_in_use() {
            for end in 0..2 {
                let ends = &mut self.conns[conn].ends;
                if ends[end].host == to && ends[1 - end].host == from {
                    for arrival in ends[end].incoming.release(at) {
                        clock.queue.plan(arrival, Event::Arrival(EndId { conn, end }));
                    }
                }
            }
        }
        self.release_votes(clock, from, to, at);
    }
}

/// Every direction from one side to the other.
pub(in crate::world) fn links_between(sides: &[bool]) -> Vec<Link> {
    let mut links = Vec::new();
    for (from, from_side) in sides.iter().enumerate() {
        links.extend((0..sides.len()).filter(|to| sides[*to] != *from_side).map(|to| (from, to)));
    }
    links
}
