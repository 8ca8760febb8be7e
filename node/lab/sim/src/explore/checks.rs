//! What must hold in every state, and what is remembered to judge the states behind it.
//!
//! What lies in the past is judged by the memory of it, the [`Ghost`]. The names of the rules are those of
//! [`Rule`].

use std::collections::BTreeSet;

use node_core::io::{Event, StoreOp};
use node_core::{Machine, Maker, Role};
use node_wire::election::PeerState;
use node_wire::ids::{Epoch, Round, ServerId, Zxid};

use super::disk::{Mark, mark};
use super::ghost::{Committed, Ghost};
use super::place::{Place, place_of, server};
use super::starts;
use super::world::{Vote, World};
use crate::outcome::Rule;

/// A rule and the sentence that says how it was broken.
pub(super) type Finding = Result<(), (Rule, String)>;

impl<F: Maker, const N: usize> World<F, N> {
    fn ghost(&mut self) -> &mut Ghost {
        std::rc::Rc::make_mut(&mut self.ghost)
    }

    /// A member puts an operation into its store's queue.
    pub(super) fn check_store(&mut self, place: Place, op: &StoreOp, leads: bool) -> Finding {
        match op {
            StoreOp::Append(entry) => self.check_proposal(place, mark(entry), leads),
            StoreOp::Truncate(_)
            | StoreOp::Install(_)
            | StoreOp::AcceptedEpoch(_)
            | StoreOp::CurrentEpoch(_)
            | StoreOp::Membership(_) => Ok(()),
        }
    }

    /// An entry is logged only if a leader proposed it, and a zxid names one entry for ever.
    pub(super) fn check_proposal(&mut self, place: Place, mark: Mark, leads: bool) -> Finding {
        let id = server(place).0;
        match self.ghost.proposed.binary_search_by_key(&mark.0, |proposed| proposed.0) {
            Ok(found) if self.ghost.proposed[found] == mark => Ok(()),
            Ok(_) => Err((
                Rule::Integrity,
                format!("server {id} holds an entry {} that differs from the first one", mark.0),
            )),
            Err(at) if leads => {
                self.ghost().proposed.insert(at, mark);
                Ok(())
            }
            Err(_) => {
                Err((Rule::Integrity, format!("server {id} holds {}, which no leader proposed", mark.0)))
            }
        }
    }

    /// A member sends a vote: [`Self::check_votes`] asks later who voted for a leader. A vote counts for its
    /// round while its sender looks; one that follows or leads stands by its leader in any round, so it is
    /// kept without one.
    pub(super) fn remember_vote(&mut self, place: Place, vote: Vote) {
        let round = (vote.state == PeerState::Looking).then_some(vote.round);
        let told = (place, vote.leader, round);
        if let Err(at) = self.ghost.votes.binary_search(&told) {
            self.ghost().votes.insert(at, told);
        }
    }

    /// A leader is elected by a quorum that voted for it in its round, or that follows it already.
    fn check_votes(&self, place: Place, leader: ServerId, round: Round) -> Finding {
        let voters = (0..N).filter(|voter| {
            let told = |round| self.ghost.votes.binary_search(&(*voter, leader, round)).is_ok();
            *voter == place || told(Some(round)) || told(None)
        });
        let voters: Vec<Place> = voters.collect();
        if self.is_quorum_for(leader, &voters) || !self.model.has_votes() {
            return Ok(());
        }
        let (id, voters) = (server(place), voters.len());
        Err((
            Rule::Liveness,
            format!(
                "server {id} takes {leader} for elected in round {round}, where {voters} of {N} voted so"
            ),
        ))
    }

    /// What a leader needs to begin its epoch: a quorum of those who vote, and of those of whom its own log
    /// says that they shall.
    fn is_quorum_for(&self, leader: ServerId, voters: &[Place]) -> bool {
        let Some(first) = self.voters else { return voters.len() > N / 2 };
        let proposed =
            place_of(leader).and_then(|place| starts::changed(self.hosts.get(place)?.disk.durable.last()));
        let proposed = proposed.map(|proposed| proposed.voters());
        let mut memberships = std::iter::once(first.iter().copied().map(ServerId).collect()).chain(proposed);
        memberships.all(|membership: BTreeSet<ServerId>| {
            voters.iter().filter(|voter| membership.contains(&server(**voter))).count() > membership.len() / 2
        })
    }

    /// A member told of a transition.
    pub(super) fn check_event(&mut self, place: Place, event: &Event) -> Finding {
        match event {
            Event::Established { leader, epoch } => self.check_established(place, *leader, *epoch),
            Event::Elected { leader, round } => self.check_votes(place, *leader, *round),
            Event::Looking { .. }
            | Event::ReadOnly
            | Event::Synchronizing { .. }
            | Event::Diverged { .. } => Ok(()),
        }
    }

    /// At most one leader is established in an epoch.
    fn check_established(&mut self, place: Place, leader: ServerId, epoch: Epoch) -> Finding {
        match self.ghost.leaders.binary_search_by_key(&epoch, |(epoch, _)| *epoch) {
            Ok(found) if self.ghost.leaders[found].1 == leader => {}
            Ok(found) => {
                let other = self.ghost.leaders[found].1;
                return Err((
                    Rule::Leadership2,
                    format!("epoch {epoch} was established by leader {other} and by leader {leader}"),
                ));
            }
            Err(at) => self.ghost().leaders.insert(at, (epoch, leader)),
        }
        if server(place) == leader { self.check_history_of_leader(place, epoch) } else { Ok(()) }
    }

    /// Everything committed in earlier epochs is in the history of a leader that is established.
    fn check_history_of_leader(&self, place: Place, epoch: Epoch) -> Finding {
        let Some(member) = &self.hosts[place].member else { return Ok(()) };
        let (entries, _) = member.member().history();
        let base = self.hosts[place].disk.durable.image.zxid;
        let missing = self.ghost.committed.iter().map(|committed| committed.mark).find(|committed| {
            committed.0.epoch() < epoch
                && committed.0 > base
                && !entries.iter().any(|entry| mark(entry) == *committed)
        });
        match missing {
            None => Ok(()),
            Some((zxid, _)) => Err((
                Rule::Durability,
                format!(
                    "server {} leads epoch {epoch} without {zxid}, which was committed before",
                    place + 1
                ),
            )),
        }
    }

    /// After a step: what was applied by it continues the one sequence.
    pub(super) fn check_applied(&mut self, place: Place) -> Finding {
        let host = &self.hosts[place];
        let Some(member) = &host.member else { return Ok(()) };
        let status = member.member().status();
        let before = host.applied;
        // What a member holds before its epoch stands is served to nobody.
        if !status.established || status.last_applied == before {
            return Ok(());
        }
        let (entries, applied) = member.member().history();
        let id = server(place).0;
        if status.last_applied < before {
            let sentence = format!("server {id} went back from {before} to {}", status.last_applied);
            return Err((Rule::PrefixConsistency, sentence));
        }
        let first = entries.first().map_or(status.last_applied, node_wire::txn::Entry::zxid);
        // What lies before the journal is in the tree's snapshot, which ends at the place before its first
        // entry.
        let known = self.ghost.committed.partition_point(|committed| {
            if applied == 0 { committed.mark.0 <= status.last_applied } else { committed.mark.0 < first }
        });
        let applied: Vec<Mark> = entries.iter().take(applied).map(mark).collect();
        for (index, applied) in (known..).zip(applied) {
            match self.ghost.committed.get(index) {
                Some(committed) if committed.mark == applied => {}
                Some(committed) => {
                    let sentence = format!(
                        "server {id} applied {} where {} was applied before",
                        applied.0, committed.mark.0
                    );
                    return Err((Rule::PrefixConsistency, sentence));
                }
                None => {
                    self.ghost().committed.push(Committed { mark: applied, tree: None });
                    self.check_quorum(applied)?;
                }
            }
        }
        let last = status.last_applied;
        if self.ghost.committed.binary_search_by_key(&last, |committed| committed.mark.0).is_err() {
            let sentence = format!("server {id} stands at {last}, which was never committed");
            return Err((Rule::PrefixConsistency, sentence));
        }
        self.host(place).applied = status.last_applied;
        self.check_tree(place, status.last_applied, status.digest)
    }

    /// Equal zxids mean equal trees.
    fn check_tree(&mut self, place: Place, zxid: Zxid, digest: i64) -> Finding {
        let found = self.ghost.committed.binary_search_by_key(&zxid, |committed| committed.mark.0);
        let Ok(at) = found else { return Ok(()) };
        match self.ghost.committed[at].tree {
            Some(known) if known == digest => Ok(()),
            Some(_) => Err((
                Rule::SameTree,
                format!("server {}'s tree at {zxid} differs from that of another member", place + 1),
            )),
            None => {
                self.ghost().committed[at].tree = Some(digest);
                Ok(())
            }
        }
    }

    fn check_quorum(&self, committed: Mark) -> Finding {
        let holders = self.hosts.iter().filter(|host| host.disk.durable.holds(committed)).count();
        if holders > N / 2 {
            return Ok(());
        }
        Err((Rule::Durability, format!("{} is committed while {holders} of {N} disks hold it", committed.0)))
    }

    /// A disk changed: what is committed is still on the disks of a quorum.
    pub(super) fn check_disks(&self) -> Finding {
        self.ghost.committed.iter().try_for_each(|committed| self.check_quorum(committed.mark))
    }

    /// Who follows whom, when everybody follows one leader, which itself leads.
    pub(super) fn agreed(&self) -> Option<Place> {
        let leader = (0..N).find(|place| self.hosts[*place].role == Role::Leading)?;
        self.hosts
            .iter()
            .enumerate()
            .all(|(place, host)| {
                let follows = place == leader || host.role == Role::Following(server(leader));
                host.member.is_some() && follows && (host.established || !self.model.has_quorum_port())
            })
            .then_some(leader)
    }
}
