//! Watchers: clients that look and are told.
//!
//! The workloads ask what operations did. A watcher asks for what nobody's history shows: it leaves watches
//! of every kind, leaves them again on another member, sends several changes as one, and makes nodes that are
//! to go by themselves. Their nodes are below `/w`, away from those of the workloads. An operator is a
//! watcher that changes the ensemble.
//!
//! [`Ask`] is what a watcher asks for, [`Watching`] what it must be told. Watchers are drawn by dice of their
//! own: worlds without them are what they were.

mod ask;
mod watching;

use std::collections::VecDeque;

pub(crate) use ask::{Ask, LIMITED, LIMITS, ROOT, TWINS, USAGE, below, server_line};
pub(crate) use watching::{Change, List, Reads, Standing, Stands, Watching};

use harness_world::dice::{Chance, Dice};

/// What a client is as a watcher. Clients of workloads have it too, and leave it empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watcher {
    /// It does nothing else.
    pub(crate) only: bool,
    /// It sets limits and tries them.
    limits: bool,
    /// It is an operator, who changes the ensemble, which has so many members.
    operates: Option<usize>,
    /// The member that it asks for next, without rolling dice: one that could not be spared.
    insists: Option<u64>,
    /// Asked and not answered, in order.
    pub(crate) open: VecDeque<Ask>,
    pub(crate) watching: Watching,
    /// What is still to be made before it begins.
    prepared: usize,
    next: i64,
}

/// The nodes that every watcher makes sure of first.
const GROUND: [&str; 6] = ["", "a", "b", "d", "m0", "m1"];

/// Nodes that asks are about: those that are there, and those that come and go.
const PLACES: [&str; 7] = ["a", "b", "d/0", "d/1", "d/2", "k0", "t0"];

const LISTED: [&str; 4] = ["", "d", "k0", "k1"];

/// How often one thing is not limited.
const SELDOM: Chance = Chance(2_000);

/// How often a ask leaves a watch.
const WATCHES: Chance = Chance(5_000);

/// How often a ask is about limits, where a watcher tries them.
const LIMITING: Chance = Chance(4_000);

/// Nodes and bytes that limits allow at most.
const MOST: (u64, u64) = (4, 60);

impl Watcher {
    /// One that begins, and tries limits or does not.
    pub(crate) fn new(limits: bool) -> Self {
        Self { only: true, limits, ..Self::default() }
    }

    /// One that changes the ensemble, in which there can be so many members.
    pub(crate) fn operator(members: usize) -> Self {
        Self { only: true, operates: Some(members), ..Self::default() }
    }

    pub(crate) fn operates(&self) -> bool {
        self.operates.is_some()
    }

    /// An operator was refused what no ensemble can do. What it asks for next, every healed one can: that a
    /// member which could not be spared is a member.
    pub(crate) fn insist(&mut self, refused: &Ask) {
        if let Ask::Remove(member) | Ask::Observe(member) = refused {
            self.insists = Some(*member);
        }
    }

    /// It got what it insisted on.
    pub(crate) fn relent(&mut self) {
        self.insists = None;
    }

    /// What it asks for next.
    pub(crate) fn ask(&mut self, dice: &mut Dice, client: usize, ttl_ms: u64) -> Ask {
        if let Some(members) = self.operates {
            return self.insists.map_or_else(|| reconfiguration(dice, members), Ask::Join);
        }
        if let Some(place) = GROUND.get(self.prepared) {
            self.prepared += 1;
            return Ask::Make((*place).to_owned());
        }
        if self.limits && dice.chance(LIMITING) {
            return limit(dice);
        }
        if dice.chance(WATCHES) {
            return watch(dice);
        }
        self.next += 1;
        // No value is written twice.
        let value = self.next * 64 + i64::try_from(client).unwrap_or(0);
        change(dice, value, ttl_ms)
    }
}

/// Whoever it falls upon comes or goes. Many of these change nothing, and are memberships all the same.
fn reconfiguration(dice: &mut Dice, members: usize) -> Ask {
    let member = u64::try_from(dice.index(members) + 1).unwrap_or(1);
    match dice.between(0, 19) {
        0..=9 => Ask::Join(member),
        10..=16 => Ask::Remove(member),
        _ => Ask::Observe(member),
    }
}

/// Limits that come, go and change, what they count, and what they are in the way of.
fn limit(dice: &mut Dice) -> Ask {
    let place = format!("q/{}", dice.index(4));
    let mut most =
        |most| if dice.chance(SELDOM) { -1 } else { i64::try_from(dice.between(0, most)).unwrap_or(0) };
    let (nodes, bytes) = (most(MOST.0), most(MOST.1));
    match dice.between(0, 23) {
        0 | 1 => Ask::Make("q".to_owned()),
        2..=6 => Ask::Make(place),
        7 | 8 => Ask::Drop(place),
        9..=14 => Ask::Fill(place, dice.index(30)),
        15 => Ask::Fill("q".to_owned(), dice.index(30)),
        16 | 17 => Ask::Limit(nodes, bytes),
        18 => Ask::Relimit(nodes, bytes),
        19 => Ask::Unlimit,
        _ => Ask::Usage,
    }
}

fn watch(dice: &mut Dice) -> Ask {
    let place = PLACES[dice.index(PLACES.len())].to_owned();
    match dice.between(0, 11) {
        0..=4 => Ask::Look(place),
        5..=7 => Ask::Exists(place),
        8 | 9 => Ask::List(LISTED[dice.index(LISTED.len())].to_owned()),
        10 => Ask::Follow(place),
        _ => Ask::FollowAll("d".to_owned()),
    }
}

fn change(dice: &mut Dice, value: i64, ttl_ms: u64) -> Ask {
    let child = format!("d/{}", dice.index(3));
    let number = dice.index(2);
    match dice.between(0, 19) {
        0..=3 => Ask::Put((if number == 0 { "a" } else { "b" }).to_owned(), value),
        4..=6 => Ask::Make(child),
        7 | 8 => Ask::Drop(child),
        9 => Ask::Put(child, value),
        10 | 11 => Ask::Both(value),
        12 | 13 => Ask::Break(value),
        14 | 15 => Ask::Pair,
        16 => Ask::Contain(format!("k{number}")),
        17 => match dice.index(3) {
            0 => Ask::Drop(format!("k{number}/x")),
            _ => Ask::Make(format!("k{number}/x")),
        },
        18 => Ask::Mortal(format!("t{number}"), ttl_ms),
        _ => Ask::Put(format!("t{number}"), value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part;
    use harness_world::dice::Dice;

    #[test]
    fn an_operator_that_was_refused_what_cannot_be_asks_for_what_can_until_it_gets_it() {
        let mut dice = Dice::part(1, Part::Minority);
        let mut operator = Watcher::operator(3);
        operator.insist(&Ask::Join(1));
        assert_eq!(operator.insists, None, "who joins is not spared");
        operator.insist(&Ask::Remove(2));
        for _ in 0..3 {
            assert_eq!(operator.ask(&mut dice, 0, 0), Ask::Join(2));
        }
        operator.relent();
        let rolled: Vec<Ask> = (0..20).map(|_| operator.ask(&mut dice, 0, 0)).collect();
        assert!(rolled.iter().any(|ask| *ask != Ask::Join(2)));
    }
}
