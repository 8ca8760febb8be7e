//! A barrier: a znode. While it is there all wait; when it goes all go on.
//!
//! To put it up is to create the znode ([`raise`]), to take it down is to delete it ([`lift`]). Both may be
//! repeated after a lost answer: "it is there" and "it is not there" say that it is done.
//!
//! Whoever waits syncs first, so that a barrier that was put up before it began to wait holds it, whichever
//! server it asks. Then it reads the znode and leaves a watch. When the znode goes, all who wait are told:
//! that is what a barrier is for, and no herd that could be avoided.
//!
//! **Not promised:** that the barrier is down still when somebody who passed acts. It may be up again.

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{CreateMode, Failure, Moment, Request, Response};
use node_wire::client::{Acl, ErrorCode};

use crate::line::Left;
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::served::{Served, verdict};

/// Puts a barrier up. It stays until it is taken down, whoever put it up.
#[must_use]
pub fn raise(path: ByteString) -> Request {
    let acl = vec![Acl::world_anyone()];
    Request::Create { path, data: Bytes::new(), acl, mode: CreateMode::Persistent }
}

/// Takes a barrier down.
#[must_use]
pub fn lift(path: ByteString) -> Request {
    Request::Delete { path, version: -1 }
}

/// What somebody who waits may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Wait no longer.
    Leave,
}

/// What somebody who waits is told. Nothing follows either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The barrier was down at a moment after the wait began.
    Passed,
    /// The wait is over, and nothing is known.
    Over(Left),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Unread,
    Reading,
    Watching,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Sync,
    Read,
}

/// Somebody who waits at a barrier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    path: ByteString,
    asks: Asks<Purpose>,
    served: Served,
    stage: Stage,
}

impl Barrier {
    /// Waits until this znode is not there.
    #[must_use]
    pub fn wait(path: impl Into<ByteString>) -> Self {
        Self { path: path.into(), asks: Asks::default(), served: Served::default(), stage: Stage::Unread }
    }

    fn over(&mut self, told: Told, effects: &mut Effects<Told>) {
        if self.stage != Stage::Gone {
            self.stage = Stage::Gone;
            effects.tell(told);
        }
    }

    fn answered(
        &mut self,
        now: Now,
        ask: Ask,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        if self.asks.answered(ask) != Some(Purpose::Read) || self.stage != Stage::Reading {
            return;
        }
        match answer.map_err(verdict) {
            Ok(_) => self.stage = Stage::Watching,
            Err(Some(ErrorCode::NoNode)) => self.over(Told::Passed, effects),
            Err(Some(code)) => self.over(Told::Over(Left::Refused(code)), effects),
            Err(None) => {
                self.stage = Stage::Unread;
                self.served.pause(now);
            }
        }
    }

    fn proceed(&mut self, effects: &mut Effects<Told>) {
        if self.stage == Stage::Unread && self.served.is_ready() {
            self.stage = Stage::Reading;
            self.asks.send(Request::Sync { path: self.path.clone() }, Purpose::Sync, effects);
            let request = Request::GetData { path: self.path.clone(), watch: true };
            self.asks.send(request, Purpose::Read, effects);
        }
    }
}

impl Recipe for Barrier {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        self.served.follow(now, &input);
        match input {
            Input::Call(Call::Leave) => self.over(Told::Over(Left::Resigned), effects),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            // What the event says is read: the barrier may be up again.
            Input::Event(event) if self.stage == Stage::Watching && event.path == self.path => {
                self.stage = Stage::Unread;
            }
            Input::Lost if self.stage == Stage::Watching => self.stage = Stage::Unread,
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
    use crate::testbed::World;

    #[test]
    fn all_wait_while_the_barrier_is_up_and_pass_when_it_goes() {
        let mut world = World::new(&["/barrier"], [Barrier::wait("/barrier"), Barrier::wait("/barrier")]);
        world.settle();
        assert_eq!(world.told(0), []);
        world.outside(&lift("/barrier".into())).unwrap();
        world.settle();
        assert_eq!((world.told(0), world.told(1)), (vec![Told::Passed], vec![Told::Passed]));
        assert!(world.clients[0].recipe.is_over());
    }

    #[test]
    fn a_barrier_that_was_never_up_holds_nobody() {
        let mut world = World::new(&[], [Barrier::wait("/barrier")]);
        world.settle();
        assert_eq!(world.told(0), [Told::Passed]);
    }

    #[test]
    fn a_barrier_that_goes_while_the_connection_or_the_session_is_lost_is_passed() {
        for lost in [false, true] {
            for early in [false, true] {
                let mut world = World::new(&["/barrier"], [Barrier::wait("/barrier")]);
                if !early {
                    world.settle();
                }
                world.cut(0, 2);
                world.outside(&lift("/barrier".into())).unwrap();
                if lost {
                    world.lose(0);
                }
                world.connect(0);
                world.settle();
                assert_eq!(world.told(0), [Told::Passed]);
            }
        }
    }
}
