//! Election connections: the larger id of a pair keeps one to the smaller, and dials it again when it breaks.
//!
//! Only the last vote for a peer matters: it waits while there is no connection, and is sent again on a new
//! one.

use bytes::BytesMut;
use node_core::io::Input;
use node_wire::client::{put_frame, take_frame};
use node_wire::election::{MAX_NOTIFICATION, Notification};

use super::{Clockwork, Ensemble, Event, World};
use crate::host::Source;
use crate::network::{HostIndex, Vote};
use harness_world::time::Time;

/// Between two attempts to connect when the other side refuses, at most.
const REDIAL_US: u64 = 50_000;

impl Clockwork {
    fn vote_through_codec(&mut self, notification: Notification) -> Notification {
        if !self.dice.chance(self.drawn.codec) {
            return notification;
        }
        let mut buffer = BytesMut::new();
        put_frame(&mut buffer, |w| notification.encode(w));
        let frame = take_frame(&mut buffer, MAX_NOTIFICATION).expect("what we encode can be decoded");
        let decoded = Notification::decode(frame.expect("a whole frame was written"))
            .expect("what we encode can be decoded");
        assert_eq!(decoded, notification, "a vote changed on its way");
        decoded
    }
}

impl Ensemble {
    /// Lets the larger id of a pair try to connect, if it is not doing so.
    pub(super) fn plan_election_dial(&mut self, clock: &mut Clockwork, host: HostIndex, peer: HostIndex) {
        let (from, to) = (host.max(peer), host.min(peer));
        if from == to || self.hosts[from].process.is_none() {
            return;
        }
        let life = self.hosts[from].life;
        let (channel, _) = self.channels.of(from, to);
        if !channel.up && !channel.dialling {
            channel.dialling = true;
            let delay = clock.dice.between(0, REDIAL_US);
            clock.plan(delay, Event::ElectionDial { from, life, to });
        }
    }

    pub(super) fn election_dial(&mut self, clock: &mut Clockwork, from: HostIndex, life: u64, to: HostIndex) {
        if !self.lives(from, life) {
            return;
        }
        if !self.links.dials(from, to) && !self.links.refuses(from, to) {
            clock.plan(clock.drawn.peer_timeout_ms * 1000, Event::ElectionDial { from, life, to });
            return;
        }
        let refused = self.hosts[to].process.is_none() || self.links.refuses(from, to);
        if refused || clock.dice.chance(clock.drawn.refuse) {
            let delay = clock.dice.between(REDIAL_US / 10, REDIAL_US);
            clock.plan(delay, Event::ElectionDial { from, life, to });
            return;
        }
        let (there, back) = (self.link_delay(clock, from, to), self.link_delay(clock, to, from));
        let (channel, rank) = self.channels.of(to, from);
        channel.dialling = false;
        channel.up = true;
        channel.generation += 1;
        let generation = channel.generation;
        let at = channel.ends[rank].incoming.send(clock.now + there, Vote::Hello);
        clock.queue.plan(at, Event::Votes { host: to, peer: from });
        clock.plan(there + back, Event::ElectionUp { host: from, peer: to, generation });
    }

    /// Sends the last vote for a peer, if a connection to it is known to stand.
    pub(super) fn send_last_vote(&mut self, clock: &mut Clockwork, host: HostIndex, peer: HostIndex) {
        if host == peer {
            return;
        }
        let to = self.server(peer);
        let Some(process) = self.hosts[host].process.as_ref() else { return };
        let Some(vote) = process.votes.get(&to).cloned() else { return };
        if clock.takes_vote(host, peer, &vote) {
            return;
        }
        let delay = self.link_delay(clock, host, peer);
        let (channel, rank) = self.channels.of(host, peer);
        if channel.up && channel.ends[rank].told {
            let at = channel.ends[1 - rank].incoming.send(clock.now + delay, Vote::Notification(vote));
            clock.queue.plan(at, Event::Votes { host: peer, peer: host });
        }
    }

    /// Breaks the election connection of a pair: what is in flight is lost.
    pub(super) fn cut_channel(&mut self, clock: &mut Clockwork, one: HostIndex, other: HostIndex) {
        let (channel, _) = self.channels.of(one, other);
        if !channel.up {
            return;
        }
        channel.up = false;
        let generation = channel.generation;
        for end in &mut channel.ends {
            end.incoming.lose();
        }
        for (host, peer) in [(one, other), (other, one)] {
            let delay = clock.notice_delay();
            clock.plan(delay, Event::ElectionLost { host, peer, generation });
        }
    }

    /// A process is gone, and with it what it knew of its election connections.
    pub(super) fn cut_channels_of(&mut self, clock: &mut Clockwork, host: HostIndex) {
        for peer in (0..self.hosts.len()).filter(|peer| *peer != host) {
            self.cut_channel(clock, host, peer);
            let (channel, rank) = self.channels.of(host, peer);
            channel.ends[rank].told = false;
            if host > peer {
                channel.dialling = false;
            }
        }
    }

    /// Moves on the votes that a link held.
    pub(super) fn release_votes(&mut self, clock: &mut Clockwork, from: HostIndex, to: HostIndex, at: Time) {
        let (channel, rank) = self.channels.of(to, from);
        for arrival in channel.ends[rank].incoming.release(at) {
            clock.queue.plan(arrival, Event::Votes { host: to, peer: from });
        }
    }
}

impl World {
    pub(super) fn election_up(&mut self, host: HostIndex, peer: HostIndex, generation: u64) {
        let (channel, rank) = self.ensemble.channels.of(host, peer);
        if channel.up && channel.generation == generation && !channel.ends[rank].told {
            channel.ends[rank].told = true;
            self.tell_election(host, peer, true);
        }
    }

    /// Tells a member that its election connection stands, or that it is gone.
    fn tell_election(&mut self, host: HostIndex, peer: HostIndex, stands: bool) {
        let life = self.ensemble.hosts[host].life;
        let from = self.ensemble.server(peer);
        let input =
            if stands { Input::ElectionConnected { peer: from } } else { Input::ElectionLost { peer: from } };
        self.give(host, life, Source::Election(peer), input);
    }

    pub(super) fn votes_arrive(&mut self, host: HostIndex, peer: HostIndex) {
        if !self.ensemble.links.passes(peer, host) {
            return;
        }
        while self.oracle.violation.is_none() {
            let now = self.clock.now;
            let (channel, rank) = self.ensemble.channels.of(host, peer);
            let end = &mut channel.ends[rank];
            let Some(vote) = end.incoming.receive(now) else { return };
            self.ensemble.links.count(peer, host);
            match vote {
                Vote::Hello => {
                    // A new connection takes the place of one whose end was not noticed.
                    let stale = std::mem::replace(&mut end.told, true);
                    if stale {
                        self.tell_election(host, peer, false);
                    }
                    self.tell_election(host, peer, true);
                }
                Vote::Notification(notification) => {
                    self.clock.counters.votes += 1;
                    let notification = self.clock.vote_through_codec(notification);
                    let (life, from) = (self.ensemble.hosts[host].life, self.ensemble.server(peer));
                    let input = Input::Notification { from, notification };
                    self.give(host, life, Source::Election(peer), input);
                }
            }
        }
    }

    pub(super) fn election_lost(&mut self, host: HostIndex, peer: HostIndex, generation: u64) {
        let (channel, rank) = self.ensemble.channels.of(host, peer);
        if channel.up || channel.generation != generation {
            return;
        }
        if std::mem::take(&mut channel.ends[rank].told) {
            self.tell_election(host, peer, false);
        }
        if host > peer {
            self.ensemble.plan_election_dial(&mut self.clock, host, peer);
        }
    }
}
