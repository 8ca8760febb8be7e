//! Quorum connections: dialled, used, closed, reset; and links that hold what travels on them.

use bytes::BytesMut;
use node_core::io::{ConnId, Input};
use node_wire::ids::ServerId;
use node_wire::jute::Writer;
use node_wire::quorum::{QuorumPacket, decode_packet};
use node_wire::snapshot::{Image, StreamDecoder, encode_stream};

use super::{Clockwork, Ensemble, Event, Oracle, World};
use crate::host::Source;
use crate::network::{Block, Cargo, Conn, EndId, HostIndex};

/// Peer time-outs that the stream of a tree takes at most.
const STREAM_TIMEOUTS: u64 = 3;
/// Most packets take no more bytes than this.
const ROOM_FOR_PACKET: usize = 256;

impl Clockwork {
    /// How long a tree is on its way behind the packet that announces it, and all that follows behind it:
    /// long enough for either side to die meanwhile. After the faults it leaves room within the limit for
    /// taking a history over, or a member whose luck is bad would never be brought in.
    fn stream_us(&mut self) -> u64 {
        let (least, most) = (0, STREAM_TIMEOUTS * self.drawn.peer_timeout_ms * 1000);
        let (least, most) = self.drawn.rare.stream_us.unwrap_or((least, most));
        let drawn_us = self.dice.between(least, most);
        let init_us = u64::from(self.drawn.init_limit) * self.drawn.tick_time_ms * 1000;
        if self.in_chaos() { drawn_us } else { drawn_us.min(init_us / 2) }
    }

    /// What arrives, as the member is told of it.
    pub(super) fn input_of(&mut self, conn: ConnId, cargo: Cargo) -> Input {
        match cargo {
            Cargo::Packet(packet) => {
                self.counters.packets += 1;
                Input::Packet { conn, packet: self.packet_through_codec(packet) }
            }
            Cargo::Image(snapshot) => {
                Input::Image { conn, image: self.image_through_codec(snapshot.to_image()) }
            }
            Cargo::Fin => Input::PeerLost { conn },
        }
    }

    fn packet_through_codec(&mut self, packet: QuorumPacket) -> QuorumPacket {
        if !self.dice.chance(self.drawn.codec) {
            return packet;
        }
        let mut buffer = BytesMut::with_capacity(ROOM_FOR_PACKET);
        packet.encode(&mut Writer::new(&mut buffer));
        let decoded = decode_packet(&mut buffer).expect("what we encode can be decoded");
        assert!(buffer.is_empty(), "a packet left bytes behind: {packet:?}");
        let decoded = decoded.expect("a whole packet was written");
        assert_eq!(decoded, packet, "a packet changed on its way");
        decoded
    }

    fn image_through_codec(&mut self, image: Image) -> Image {
        if !self.dice.chance(self.drawn.codec) {
            return image;
        }
        let mut buffer = BytesMut::new();
        encode_stream(&image, &mut buffer);
        let mut decoder = StreamDecoder::new(image.zxid);
        decoder.feed(&mut buffer).expect("what we encode can be decoded").expect("a whole image was written")
    }
}

impl Ensemble {
    pub(super) fn dial(&self, clock: &mut Clockwork, from: HostIndex, leader: ServerId) {
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
    pub(super) fn send(&mut self, clock: &mut Clockwork, from: EndId, cargo: Cargo) {
        let conn = &self.conns[from.conn];
        let to = from.other();
        if !conn.alive || !conn.ends[from.end].open || !conn.ends[to.end].open {
            return;
        }
        let (sender, receiver) = (conn.ends[from.end].host, conn.ends[to.end].host);
        let stream_us = if matches!(cargo, Cargo::Image(_)) { clock.stream_us() } else { 0 };
        let delay = self.link_delay(clock, sender, receiver) + stream_us;
        let at = self.conns[to.conn].ends[to.end].incoming.send(clock.now + delay, cargo);
        clock.queue.plan(at, Event::Arrival(to));
    }

    /// Closes an end: the other one learns of it behind everything that was sent.
    pub(super) fn close(&mut self, clock: &mut Clockwork, end: EndId) {
        if !self.conns[end.conn].ends[end.end].open {
            return;
        }
        self.send(clock, end, Cargo::Fin);
        let this = &mut self.conns[end.conn].ends[end.end];
        this.open = false;
        this.incoming.lose();
    }

    /// Breaks a connection: what is in flight is lost, and both ends learn of it sooner or later.
    pub(super) fn cut(&mut self, clock: &mut Clockwork, index: usize) {
        self.cut_ends(clock, index, [true, true]);
    }

    /// The quorum connections between two members break, and only those who dialled learn of it: the others
    /// keep what leads nowhere until they miss an answer, or until the same member is there again.
    pub(super) fn half_open(
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
    fn conns_in_use(&mut self) -> Vec<usize> {
        let conns = &self.conns;
        self.conns_in_use.retain(|conn| conns[*conn].ends.iter().any(|end| end.open));
        self.conns_in_use.clone()
    }

    /// Breaks the quorum connections between two members.
    pub(super) fn cut_pair(
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

    pub(super) fn block(
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
    pub(super) fn unblock(
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

impl World {
    pub(super) fn dial_arrives(&mut self, from: HostIndex, life: u64, to: HostIndex) {
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

    pub(super) fn dial_succeeds(&mut self, end: EndId, to: HostIndex) {
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

    pub(super) fn dial_fails(&mut self, from: HostIndex, life: u64, to: HostIndex) {
        let leader = self.ensemble.server(to);
        self.give(from, life, Source::Dial(to), Input::DialFailed { leader });
    }

    pub(super) fn arrive(&mut self, end: EndId) {
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

    pub(super) fn tell_loss(&mut self, end: EndId) {
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
