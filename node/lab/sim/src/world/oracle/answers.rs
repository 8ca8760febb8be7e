//! Answers in time: who asks a member that is well, of a leader that is well with a quorum, is answered.
//!
//! A client waits for the answer to the first of its open requests. While its connection stands and nothing
//! disturbs its member, the leader and a quorum that follows it, that answer comes within what a commit may
//! take, and half of that more: a request may have to wait for one that is under way. An answer that never
//! comes keeps all behind it from coming too. Where the ensemble changes nothing is demanded: who is needed
//! may be another from one moment to the next.

use node_core::Role;

use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::world::ensemble::membership::set_of;
use crate::world::{Clockwork, Ensemble, Oracle, Population};
use harness_world::time::Time;

/// A request that a client waits for: on which connection, its xid, and since when it has been seen to wait.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct Wait {
    conn: usize,
    xid: i32,
    since: Time,
}

/// What clients wait for.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct Waits {
    of_clients: Vec<Option<Wait>>,
}

impl Waits {
    /// A client is seen to wait for this, or for nothing. Since when.
    pub(in crate::world) fn seen(
        &mut self,
        client: usize,
        waits_for: Option<(usize, i32)>,
        at: Time,
    ) -> Option<Time> {
        if self.of_clients.len() <= client {
            self.of_clients.resize(client + 1, None);
        }
        let known = &mut self.of_clients[client];
        *known = waits_for.map(|(conn, xid)| match known {
            Some(wait) if (wait.conn, wait.xid) == (conn, xid) => *wait,
            _ => Wait { conn, xid, since: at },
        });
        known.map(|wait| wait.since)
    }
}

impl Oracle {
    /// Looks whether clients are answered in time.
    pub(in crate::world) fn check_answers(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        population: &Population,
    ) {
        if clock.drawn.changes || !clock.options.progress {
            return;
        }
        let bound_us = clock.commit_bound_us() * 3 / 2;
        for index in 0..population.clients.len() {
            let client = &population.clients[index];
            let waits_for =
                client.conn.filter(|_| client.ready).zip(client.awaited.front().map(|(xid, _)| *xid));
            let waits_for = waits_for.filter(|(conn, _)| {
                let conn = &population.client_conns[*conn];
                conn.member_open && conn.client_open && conn.life == ensemble.hosts[conn.host].life
            });
            let Some(since) = self.waits.seen(index, waits_for, clock.now) else { continue };
            let Some((conn, xid)) = waits_for.filter(|_| clock.now.since(since) > bound_us) else { continue };
            let host = population.client_conns[conn].host;
            if self.serves_well(clock, ensemble, host, since) {
                let sentence = format!(
                    "server {} has followed a quorum's leader or led it all the time, and does not answer \
                        request {xid} of client {index} in {} ms",
                    host + 1,
                    clock.now.since(since) / 1000
                );
                self.report(clock, Rule::Liveness, sentence);
            }
        }
    }

    /// True when this member, its leader and a quorum that follows it have been undisturbed since then.
    fn serves_well(&self, clock: &Clockwork, ensemble: &Ensemble, host: HostIndex, since: Time) -> bool {
        let Some(process) = &ensemble.hosts[host].process else { return false };
        let leader = match process.role {
            Role::Leading => Some(host),
            Role::Following(leader) => ensemble.index_of(leader),
            Role::Looking => None,
        };
        let Some(leader) = leader.filter(|_| process.established) else { return false };
        let well = self.well_behind(clock, ensemble, leader, since);
        well.contains(&host) && well.contains(&leader) && self.suffices(clock, set_of(well.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_its_answer_or_its_connection() {
        let mut waits = Waits::default();
        assert_eq!(waits.seen(1, Some((4, 7)), Time(10)), Some(Time(10)));
        assert_eq!(waits.seen(1, Some((4, 7)), Time(20)), Some(Time(10)), "it still waits");
        assert_eq!(waits.seen(1, Some((4, 8)), Time(30)), Some(Time(30)), "it was answered");
        assert_eq!(waits.seen(1, Some((5, 8)), Time(40)), Some(Time(40)), "it came back");
        assert_eq!(waits.seen(1, None, Time(50)), None);
        assert_eq!(waits.seen(1, Some((5, 8)), Time(60)), Some(Time(60)));
        assert_eq!(waits.seen(0, None, Time(60)), None);
    }
}
