//! A value and a counter that many processes change: one znode's data, by version.
//!
//! A change says which version it replaces, so nobody overwrites what he did not see. A process that is late
//! is told [`Told::Conflict`], and reads again. [`Call::Add`] does that by itself: it reads a decimal number
//! (kazoo's counter has the same), adds, and replaces; of several that try at a time one succeeds each time.
//!
//! **Lost answers.** A change that is in doubt is not repeated blindly, and it is not looked for in the value
//! either: others may have changed it since. It sets a mark in the same transaction ([`once`]), an ephemeral
//! child of the value's znode. So its outcome is known as long as the session lives. Only if that ends as
//! well the application is told [`Told::InDoubt`].
//!
//! The calls are carried out one after the other.

use std::collections::VecDeque;

use bytes::Bytes;
use bytestring::ByteString;
use node_session::request::set_data;
use node_session::{Failure, Moment, Request, Response};
use node_wire::client::{ErrorCode, MultiResult};

use crate::line::Left;
use crate::names::Guid;
use crate::once::{self, Once, Outcome};
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::served::{Served, verdict};

/// What a process may want of the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Read it, with all changes that were made before this call.
    Get,
    /// Replace it.
    Set {
        /// The new value.
        data: Bytes,
        /// The version that it replaces. A negative one conflicts with all.
        version: i32,
    },
    /// Take it for a decimal number, and add to it. Nothing at all stands for 0.
    Add(i64),
    /// Want nothing more. Calls that were not begun are dropped.
    Leave,
}

/// What became of a call, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The value.
    Value {
        /// Its data.
        data: Bytes,
        /// Its version.
        version: i32,
    },
    /// It is replaced.
    Set {
        /// The new version.
        version: i32,
    },
    /// It was added.
    Added {
        /// The number before.
        before: i64,
        /// The number after.
        after: i64,
    },
    /// Nothing was replaced: the value was at another version.
    Conflict,
    /// Nothing was added: the value is no number, or the sum is beyond 64 bits.
    NoNumber,
    /// It was replaced, or added, or not. The answer and the session were lost.
    InDoubt,
    /// Nothing follows.
    Over(Left),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The first call is to be begun.
    Ready,
    Reading,
    /// A number was read, which is to be replaced.
    Adding {
        before: i64,
        after: i64,
        version: i32,
    },
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Once(once::Purpose),
    Sync,
    Read,
}

impl From<once::Purpose> for Purpose {
    fn from(purpose: once::Purpose) -> Self {
        Self::Once(purpose)
    }
}

/// A process that shares a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared<R = Sound> {
    path: ByteString,
    asks: Asks<Purpose>,
    served: Served,
    once: Once<R>,
    stage: Stage,
    calls: VecDeque<Call>,
    leaving: bool,
}

impl Shared {
    /// Shares the value of this znode, which must be there.
    #[must_use]
    pub fn new(path: impl Into<ByteString>, guid: Guid) -> Self {
        Self::with_rules(path, guid, Sound)
    }
}

impl<R: Rules> Shared<R> {
    /// One that decides by these rules.
    pub fn with_rules(path: impl Into<ByteString>, guid: Guid, rules: R) -> Self {
        let path = path.into();
        Self {
            once: Once::new(&path, guid, rules),
            path,
            asks: Asks::default(),
            served: Served::default(),
            stage: Stage::Ready,
            calls: VecDeque::new(),
            leaving: false,
        }
    }

    /// The first call is done.
    fn done(&mut self, told: Told, effects: &mut Effects<Told>) {
        self.stage = Stage::Ready;
        self.calls.pop_front();
        effects.tell(told);
    }

    fn over(&mut self, why: Left, effects: &mut Effects<Told>) {
        self.stage = Stage::Gone;
        effects.tell(Told::Over(why));
    }

    fn called(&mut self, call: Call) {
        match call {
            Call::Leave => {
                self.leaving = true;
                let begun = self.once.is_open() || self.stage != Stage::Ready;
                self.calls.truncate(usize::from(begun));
            }
            _ if self.leaving => {}
            call => self.calls.push_back(call),
        }
    }

    fn lost(&mut self, effects: &mut Effects<Told>) {
        if let Some(outcome) = self.once.lost() {
            self.came_out(outcome, effects);
        }
        if self.leaving {
            self.over(Left::Resigned, effects);
        }
    }

    /// Nothing is left to be done but to take the mark along.
    fn retire(&mut self, effects: &mut Effects<Told>) {
        if self.once.retire(&mut self.asks, effects) {
            self.over(Left::Resigned, effects);
        }
    }

    fn proceed(&mut self, effects: &mut Effects<Told>) {
        if !self.served.is_ready() || self.stage == Stage::Gone {
            return;
        }
        let path = self.path.clone();
        match (self.stage, self.calls.front()) {
            (_, None) if self.leaving => self.retire(effects),
            (Stage::Ready, Some(Call::Get | Call::Add(_))) => {
                self.stage = Stage::Reading;
                if self.calls.front() == Some(&Call::Get) {
                    self.asks.send(Request::Sync { path: path.clone() }, Purpose::Sync, effects);
                }
                self.asks.send(Request::GetData { path, watch: false }, Purpose::Read, effects);
            }
            (Stage::Ready, Some(Call::Set { version, .. })) if *version < 0 => {
                self.done(Told::Conflict, effects);
                self.proceed(effects);
            }
            (Stage::Ready, Some(Call::Set { data, version })) => {
                let (data, version) = (data.clone(), *version);
                self.replace(data, version, effects);
            }
            (Stage::Adding { after, version, .. }, _) => {
                self.replace(after.to_string().into(), version, effects);
            }
            _ => {}
        }
    }

    fn replace(&mut self, data: Bytes, version: i32, effects: &mut Effects<Told>) {
        if self.once.prepare(&mut self.asks, effects) {
            let ops = vec![set_data(self.path.clone(), data, version)];
            self.once.submit(ops, &mut self.asks, effects);
        }
    }

    fn answered(
        &mut self,
        now: Now,
        ask: Ask,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        match (self.asks.answered(ask), answer) {
            (Some(Purpose::Once(purpose)), answer) => {
                if let Some(outcome) = self.once.answered(now, purpose, answer, &mut self.served) {
                    self.came_out(outcome, effects);
                }
            }
            (Some(Purpose::Read), Ok(Response::Data { data, stat })) => {
                self.read(data, stat.version, effects);
            }
            (Some(Purpose::Read), Err(failure)) => match verdict(failure) {
                Some(code) => self.refused(code, effects),
                None => {
                    self.stage = Stage::Ready;
                    self.served.pause(now);
                }
            },
            _ => {}
        }
    }

    fn refused(&mut self, code: ErrorCode, effects: &mut Effects<Told>) {
        let no_resource = code == ErrorCode::NoNode;
        self.over(if no_resource { Left::NoResource } else { Left::Refused(code) }, effects);
    }

    fn read(&mut self, data: Bytes, version: i32, effects: &mut Effects<Told>) {
        let Some(Call::Add(by)) = self.calls.front() else {
            return self.done(Told::Value { data, version }, effects);
        };
        let number = std::str::from_utf8(&data).map(str::trim);
        let before = number.ok().and_then(|text| if text.is_empty() { Some(0) } else { text.parse().ok() });
        let after = before.and_then(|before: i64| Some((before, before.checked_add(*by)?)));
        match after {
            Some((before, after)) => self.stage = Stage::Adding { before, after, version },
            None => self.done(Told::NoNumber, effects),
        }
    }

    fn came_out(&mut self, outcome: Outcome, effects: &mut Effects<Told>) {
        match (outcome, self.stage, self.calls.front()) {
            (Outcome::Undone, ..) => {}
            (Outcome::InDoubt, ..) => self.done(Told::InDoubt, effects),
            (Outcome::Done(_), Stage::Adding { before, after, .. }, _) => {
                self.done(Told::Added { before, after }, effects);
            }
            (Outcome::Done(results), _, Some(Call::Set { version, .. })) => {
                let version = match results.first() {
                    Some(MultiResult::SetData { stat }) => stat.version,
                    _ => version.wrapping_add(1),
                };
                self.done(Told::Set { version }, effects);
            }
            (Outcome::Done(_), ..) => {}
            (Outcome::Refused { code: ErrorCode::BadVersion, at: Some(_) }, stage, _) => {
                if matches!(stage, Stage::Adding { .. }) {
                    // Somebody else came before: read again.
                    self.stage = Stage::Ready;
                } else {
                    self.done(Told::Conflict, effects);
                }
            }
            (Outcome::Refused { code, .. }, ..) => self.refused(code, effects),
        }
    }
}

impl<R: Rules> Recipe for Shared<R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        if self.stage == Stage::Gone {
            return;
        }
        self.served.follow(now, &input);
        match input {
            Input::Call(call) => self.called(call),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            Input::Lost => self.lost(effects),
            _ => {}
        }
        self.proceed(effects);
    }

    fn leave() -> Call {
        Call::Leave
    }

    fn wakes_at(&self) -> Option<Moment> {
        self.served.wakes_at()
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{Dice, World, broken};

    const PATH: &str = "/value";

    fn world(processes: u128) -> World<Shared> {
        World::new(&[PATH], (1..=processes).map(|number| Shared::new(PATH, Guid(number))))
    }

    fn set(data: &'static str, version: i32) -> Call {
        Call::Set { data: data.into(), version }
    }

    #[test]
    fn whoever_replaces_an_old_version_is_told_and_replaces_nothing() {
        let mut world = world(2);
        world.call(0, set("a", 0));
        world.settle();
        world.call(1, set("b", 0));
        world.call(1, Call::Get);
        world.settle();
        assert_eq!(world.told(0), [Told::Set { version: 1 }]);
        assert_eq!(world.told(1), [Told::Conflict, Told::Value { data: "a".into(), version: 1 }]);
    }

    #[test]
    fn a_change_whose_answer_was_lost_is_known_although_another_one_overwrote_it() {
        for taken in [0, 1] {
            let mut world = world(2);
            world.call(0, set("a", 0));
            world.until(0, |request| matches!(request, Request::Multi(_)));
            world.cut(0, taken);
            world.call(1, set("b", i32::try_from(taken).unwrap()));
            world.settle();
            assert_eq!(world.tree.data(PATH).unwrap(), "b");
            world.connect(0);
            world.settle();
            let told = if taken == 1 { Told::Set { version: 1 } } else { Told::Conflict };
            assert_eq!(world.told(0), [told]);
            assert_eq!(world.tree.data(PATH).unwrap(), "b");
        }
    }

    #[test]
    fn a_change_stays_in_doubt_if_its_session_is_lost_too() {
        let mut world = world(1);
        world.call(0, Call::Add(1));
        world.until(0, |request| matches!(request, Request::Multi(_)));
        world.cut(0, 1);
        world.lose(0);
        assert_eq!(world.told(0), [Told::InDoubt]);
    }

    #[test]
    fn what_is_no_number_is_not_added_to() {
        let mut world = world(1);
        world.call(0, set("many", 0));
        world.call(0, Call::Add(1));
        world.settle();
        assert_eq!(world.told(0), [Told::Set { version: 1 }, Told::NoNumber]);
    }

    #[test]
    fn whoever_leaves_takes_its_mark_along() {
        let mut world = world(1);
        world.call(0, Call::Add(1));
        world.settle();
        assert_eq!(world.tree.children(PATH).len(), 1);
        world.call(0, Call::Leave);
        world.settle();
        assert!(world.tree.children(PATH).is_empty());
        assert_eq!(world.told(0), [Told::Added { before: 0, after: 1 }, Told::Over(Left::Resigned)]);
    }

    /// A drawn world, in which each addition is 1.
    fn walk<R: Rules>(rules: &R, seed: u64) -> Result<(), String> {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let shares = |number| Shared::with_rules(PATH, Guid(number), rules.clone());
        let mut world = World::new(&[PATH], (1..4).map(shares));
        let (mut added, mut doubtful, mut called) = (0, 0, 0);
        for step in 0..400 {
            if step < 200 && dice.below(10) == 0 {
                world.call(dice.below(3), Call::Add(1));
                called += 1;
            }
            world.chance(&mut dice, true);
            if step == 399 {
                world.heal();
            }
            for who in 0..3 {
                let told = world.told(who);
                added += told.iter().filter(|told| matches!(told, Told::Added { .. })).count();
                doubtful += told.iter().filter(|told| **told == Told::InDoubt).count();
            }
        }
        let text = world.tree.data(PATH).unwrap();
        let value: usize = std::str::from_utf8(&text).unwrap().parse().unwrap();
        let fits = added + doubtful == called && (added..=called).contains(&value);
        fits.then_some(()).ok_or(format!("{called} called, {added} added, {doubtful} in doubt: {value}"))
    }

    broken!(RepeatsBlindly, looks_for_its_own);
    broken!(LooksTooEarly, syncs_before_it_looks);

    #[test]
    fn drawn_losses_make_no_addition_happen_twice_or_not_at_all() {
        for seed in 1..300 {
            assert_eq!(walk(&Sound, seed), Ok(()), "seed {seed}");
        }
        assert!((1..300).any(|seed| walk(&RepeatsBlindly, seed).is_err()));
        // The mark's version alone forbids that two attempts are carried out. The sync saves attempts.
        assert!((1..300).all(|seed| walk(&LooksTooEarly, seed).is_ok()));
    }
}
