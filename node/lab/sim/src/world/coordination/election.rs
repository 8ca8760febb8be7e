//! Election connections come up, carry votes, and break.

use node_core::io::Input;

use crate::host::Source;
use crate::network::{HostIndex, Vote};
use crate::world::World;

impl World {
    pub(in crate::world) fn election_up(&mut self, host: HostIndex, peer: HostIndex, generation: u64) {
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

    pub(in crate::world) fn votes_arrive(&mut self, host: HostIndex, peer: HostIndex) {
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

    pub(in crate::world) fn election_lost(&mut self, host: HostIndex, peer: HostIndex, generation: u64) {
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
