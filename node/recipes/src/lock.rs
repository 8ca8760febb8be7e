//! Locks, read/write locks and semaphores: an [`Election`] by another name.
//!
//! To hold a lock is to lead, so all that is said of terms holds for holding it: it has a token, it ends at
//! the latest when the session's certainty ends, and it never comes back. [`Status::Elected`] says that it is
//! held, [`Status::TermOver`] that it is not held any more, and [`Call::Resign`](crate::election::Call) gives
//! it up, whether it is held or waited for. A lock is not taken again by itself: whoever lost it must see
//! what it did under it.
//!
//! - [`lock`]: one holds it. Whoever came first is served first.
//! - [`read_write`]: those who read hold it together, one that writes holds it alone. A reader waits only for
//!   writers that came before it, and watches the last of them. So readers do not starve writers: those that
//!   come after a writer wait for it.
//! - [`semaphore`]: a number of contenders hold it. Whoever is among the first so many holds a place. Any of
//!   those ahead may make room, and not the one right ahead alone. So each that waits watches the whole line,
//!   and each end of a place is told to all who wait. (To watch the one right ahead is wrong: it may wait
//!   still when another one's place is free. kazoo and Curator hold a lock over the wait instead; then a
//!   place that is free stays free while the one with that lock is cut off.) All must say the same number of
//!   places; it is kept nowhere.
//!
//! **What they are not.** They are not re-entrant: the same holder that asks again waits behind itself. They
//! are not a guard of anything outside of the ensemble, unless whoever is guarded looks at the token
//! ([`Token::admit`](crate::line::Token::admit)). The token of a reader or of a place in a semaphore orders
//! holders, and shuts nobody out: others hold it with smaller and with larger ones. And a reader can't become
//! a writer: it gives up what it has and asks anew.
//!
//! **Lost answers** are the [line](crate::line)'s.

use bytes::Bytes;
use bytestring::ByteString;

use crate::election::{Election, Options, Status};
use crate::line::Ticket;
use crate::names::{Guid, Intent, Layout};
use crate::rules::{Rules, Sound};

/// A contender for a lock that one holds.
#[must_use]
pub fn lock(resource: ByteString, layout: Layout, guid: Guid, data: Bytes) -> Election {
    contender(Ticket { resource, layout, intent: Intent::Write, guid, data, places: 1 }, Sound)
}

/// How a read/write lock is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// With others that read.
    Shared,
    /// Alone.
    Exclusive,
}

/// A contender for a read/write lock.
#[must_use]
pub fn read_write(resource: ByteString, layout: Layout, mode: Mode, guid: Guid, data: Bytes) -> Election {
    let intent = match mode {
        Mode::Shared => Intent::Read,
        Mode::Exclusive => Intent::Write,
    };
    contender(Ticket { resource, layout, intent, guid, data, places: 1 }, Sound)
}

/// A contender for one of these places.
#[must_use]
pub fn semaphore(resource: ByteString, layout: Layout, places: usize, guid: Guid, data: Bytes) -> Election {
    contender(Ticket { resource, layout, intent: Intent::Write, guid, data, places }, Sound)
}

/// A contender by these rules.
pub fn contender<R: Rules>(ticket: Ticket, rules: R) -> Election<R> {
    Election::with_rules(ticket, Options { again: false, ..Options::default() }, rules)
}

/// True if this news says that the lock is held from now.
#[must_use]
pub fn is_held(status: &Status) -> bool {
    matches!(status, Status::Elected(_))
}

#[cfg(test)]
mod tests {
    use node_session::Moment;

    use super::*;
    use crate::election::{Call, TermEnd};
    use crate::line::Left;
    use crate::testbed::{Dice, TIMEOUT, World};

    const PATH: &str = "/lock";

    fn holders(world: &World<Election>) -> Vec<usize> {
        let may = |who: &usize| world.clients[*who].recipe.may_act(world.at);
        (0..world.clients.len()).filter(may).collect()
    }

    fn modes(modes: &[Mode]) -> World<Election> {
        let contender = |(number, mode): (usize, &Mode)| {
            let guid = Guid(u128::try_from(number).unwrap() << 64);
            read_write(PATH.into(), Layout::Own, *mode, guid, Bytes::new())
        };
        World::new(&[PATH], modes.iter().enumerate().map(contender))
    }

    fn places(contenders: u128, places: usize) -> World<Election> {
        let contender =
            |number| semaphore(PATH.into(), Layout::Own, places, Guid(number << 64), Bytes::new());
        World::new(&[PATH], (0..contenders).map(contender))
    }

    #[test]
    fn readers_hold_together_and_wait_for_the_writer_that_came_before() {
        let [shared, exclusive] = [Mode::Shared, Mode::Exclusive];
        let mut world = modes(&[shared, shared, exclusive, shared, shared]);
        world.settle();
        assert_eq!(holders(&world), [0, 1]);
        world.call(0, Call::Resign);
        world.settle();
        assert_eq!(holders(&world), [1]);
        world.call(1, Call::Resign);
        world.settle();
        assert_eq!(holders(&world), [2]);
        world.call(2, Call::Resign);
        world.settle();
        assert_eq!(holders(&world), [3, 4]);
    }

    #[test]
    fn a_place_that_is_free_goes_to_the_one_that_waited_longest_whoever_left() {
        for leaves in 0..2 {
            let mut world = places(4, 2);
            world.settle();
            assert_eq!(holders(&world), [0, 1]);
            world.call(leaves, Call::Resign);
            world.settle();
            assert_eq!(holders(&world), [1 - leaves, 2]);
        }
    }

    #[test]
    fn who_waits_is_told_behind_whom() {
        let mut world = places(4, 2);
        world.settle();
        let paths: Vec<ByteString> =
            (0..3).map(|who| world.clients[who].recipe.place().expect("it stands").path.clone()).collect();
        let ahead = |told: Vec<Status>| match told.last() {
            Some(Status::Waiting(ahead)) => Some(ahead.clone()),
            _ => None,
        };
        assert_eq!(ahead(world.told(1)), None, "it holds");
        assert_eq!(ahead(world.told(2)), Some(paths[1].clone()));
        assert_eq!(ahead(world.told(3)), Some(paths[2].clone()));
        world.call(2, Call::Resign);
        world.settle();
        assert_eq!(ahead(world.told(3)), Some(paths[1].clone()), "and when that changes");
        // A reader waits for the last writer.
        let mut world = modes(&[Mode::Exclusive, Mode::Shared, Mode::Shared]);
        world.settle();
        let writer = world.clients[0].recipe.place().expect("it stands").path.clone();
        assert_eq!(ahead(world.told(2)), Some(writer));
    }

    #[test]
    fn a_notice_that_does_not_fit_the_time_out_is_refused_before_it_stands_in_anybody_s_way() {
        let contender = |notice| {
            let options = Options { again: true, notice };
            lock(PATH.into(), Layout::Own, Guid(7), Bytes::new()).with_options(options)
        };
        let half = TIMEOUT / 2;
        let mut world = World::new(&[PATH], [contender(half)]);
        world.settle();
        assert!(world.told(0).iter().any(is_held));
        let longer = [half + Moment::from_millis(1), TIMEOUT * 9 / 10, TIMEOUT, Moment::MAX];
        let mut world = World::new(&[PATH], longer.map(contender));
        world.settle();
        for (who, notice) in longer.iter().enumerate() {
            assert_eq!(world.told(who), [Status::Over(Left::NoticeTooLong)], "{notice:?}");
        }
        assert!(world.tree.children(PATH).is_empty());
    }

    #[test]
    fn a_lock_that_was_lost_is_not_taken_again() {
        let mut world = places(1, 1);
        world.settle();
        world.told(0);
        world.cut(0, 0);
        world.pass(10_000);
        assert_eq!(world.told(0), [Status::TermOver(TermEnd::Uncertain)]);
        world.connect(0);
        world.settle();
        assert_eq!(world.told(0), [Status::Over(Left::Resigned)]);
        assert!(world.tree.children(PATH).is_empty());
    }

    #[test]
    fn drawn_losses_never_let_more_hold_than_may() {
        for seed in 1..200 {
            let mut dice = Dice(seed * 0x9e37_79b9);
            let mut world = places(4, 2);
            let mut at = Moment::ZERO;
            for _ in 0..200 {
                world.chance(&mut dice, true);
                assert!(world.at >= at);
                at = world.at;
                assert!(holders(&world).len() <= 2, "seed {seed}");
            }
            let [shared, exclusive] = [Mode::Shared, Mode::Exclusive];
            let mut world = modes(&[exclusive, shared, exclusive, shared]);
            for _ in 0..200 {
                world.chance(&mut dice, true);
                let holders = holders(&world);
                assert!(holders.len() <= 1 || holders == [1, 3], "seed {seed}");
            }
        }
    }
}
