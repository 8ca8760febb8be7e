//! Election connections: the larger id of a pair keeps one to the smaller, and dials it again when it breaks.
//!
//! Only the last vote for a peer matters: it waits while there is no connection, and is sent again on a new
//! one.

use crate::network::{HostIndex, Vote};
use crate::world::{Clockwork, Ensemble, Event};
use harness_world::time::Time;

/// Between two attempts to connect when the other side refuses, at most.
const REDIAL_US: u64 = 50_000;

impl Ensemble {
    /// Lets the larger id of a pair try to connect, if it is not doing so.
    pub(in crate::world) fn plan_election_dial(
        &mut self,
        clock: &mut Clockwork,
        host: HostIndex,
        peer: HostIndex,
    ) {
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

    pub(in crate::world) fn election_dial(
        &mut self,
        clock: &mut Clockwork,
        from: HostIndex,
        life: u64,
        to: HostIndex,
    ) {
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
    pub(in crate::world) fn send_last_vote(
        &mut self,
        clock: &mut Clockwork,
        host: HostIndex,
        peer: HostIndex,
    ) {
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
            self.links.note_delay(host, peer, at.0 - clock.now.0);
            clock.queue.plan(at, Event::Votes { host: peer, peer: host });
        }
    }

    /// Breaks the election connection of a pair: what is in flight is lost.
    pub(in crate::world) fn cut_channel(&mut self, clock: &mut Clockwork, one: HostIndex, other: HostIndex) {
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
    pub(in crate::world) fn cut_channels_of(&mut self, clock: &mut Clockwork, host: HostIndex) {
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
