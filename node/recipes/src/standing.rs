//! A znode that stands as long as a process lives: ephemeral, and made again whenever it is gone.
//!
//! Its name is fixed. Where there is one already, and where an answer was lost, it is looked at, behind a
//! sync so that nothing that was asked before comes after. `ephemeralOwner` says whose it is. If it is
//! another session's, mostly that of a process before, this one watches it and waits for its end
//! ([`Told::Blocked`]).
//!
//! It is made again on a new session, and if somebody deletes it. To be rid of it, end the process or have it
//! [leave](Call::Leave). A deletion in doubt is looked at behind a sync, so that nobody else's znode is
//! deleted.
//!
//! **Not promised:** that the znode is there all the time, or that it is gone when the process is: it stays
//! until the ensemble ends the session.

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{CreateMode, Event, Failure, Moment, Request, Response};
use node_wire::client::{Acl, ErrorCode, EventType, Stat};

use crate::line::{Left, Token};
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::served::{Served, verdict};

/// What a process may want of its znode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Replace its data, now and whenever it is made again.
    Set(Bytes),
    /// Delete it.
    Leave,
}

/// Why a znode is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gone {
    /// Its session ended.
    SessionLost,
    /// Somebody deleted it.
    Deleted,
}

/// What a process is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The znode stands.
    Up(Token),
    /// It does not stand any more. It is made again.
    Down(Gone),
    /// Another session's znode stands in its place.
    Blocked,
    /// Nothing follows.
    Over(Left),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// It must be made.
    Out,
    Making,
    /// Whose it is must be looked at.
    Unsure,
    Looking,
    /// Another's stands, and is watched.
    Blocked,
    Up,
    Deleting,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Make,
    Sync,
    Look,
    Watch,
    Set,
    Delete,
}

/// A znode that stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Standing<R = Sound> {
    path: ByteString,
    data: Bytes,
    rules: R,
    asks: Asks<Purpose>,
    served: Served,
    stage: Stage,
    /// Told of, while it stands.
    token: Option<Token>,
    watched: bool,
    saved: bool,
    blocked: bool,
    leaving: bool,
}

impl Standing {
    /// A znode at this path, whose parent must be there.
    #[must_use]
    pub fn new(path: impl Into<ByteString>, data: impl Into<Bytes>) -> Self {
        Self::with_rules(path, data, Sound)
    }
}

impl<R: Rules> Standing<R> {
    /// One that decides by these rules.
    pub fn with_rules(path: impl Into<ByteString>, data: impl Into<Bytes>, rules: R) -> Self {
        Self {
            path: path.into(),
            data: data.into(),
            rules,
            asks: Asks::default(),
            served: Served::default(),
            stage: Stage::Out,
            token: None,
            watched: false,
            saved: true,
            blocked: false,
            leaving: false,
        }
    }

    fn over(&mut self, why: Left, effects: &mut Effects<Told>) {
        self.down(Gone::Deleted, effects);
        self.stage = Stage::Over;
        effects.tell(Told::Over(why));
    }

    fn up(&mut self, stat: &Stat, effects: &mut Effects<Told>) {
        let token = Token(stat.czxid.0);
        self.stage = Stage::Up;
        self.blocked = false;
        self.watched = false;
        if self.token != Some(token) && !self.leaving {
            self.down(Gone::Deleted, effects);
            self.token = Some(token);
            effects.tell(Told::Up(token));
        }
    }

    fn down(&mut self, why: Gone, effects: &mut Effects<Told>) {
        if self.token.take().is_some() && !self.leaving {
            effects.tell(Told::Down(why));
        }
    }

    /// The znode is not ours, or not there.
    fn out(&mut self, effects: &mut Effects<Told>) {
        self.stage = Stage::Out;
        if self.leaving {
            self.over(Left::Resigned, effects);
        } else {
            self.down(Gone::Deleted, effects);
        }
    }

    fn called(&mut self, call: Call, effects: &mut Effects<Told>) {
        match call {
            Call::Set(data) => {
                self.data = data;
                self.saved = false;
            }
            Call::Leave if !self.leaving => {
                self.token = None;
                self.leaving = true;
                if matches!(self.stage, Stage::Out | Stage::Blocked) {
                    self.over(Left::Resigned, effects);
                }
            }
            Call::Leave => {}
        }
    }

    fn event(&mut self, event: &Event, effects: &mut Effects<Told>) {
        if event.path != self.path {
            return;
        }
        match self.stage {
            Stage::Up if event.kind == EventType::NodeDeleted => self.out(effects),
            // It may have been deleted and made by another while there was no connection.
            Stage::Up => self.stage = Stage::Unsure,
            Stage::Blocked => self.stage = Stage::Out,
            _ => {}
        }
    }

    fn lost(&mut self, effects: &mut Effects<Told>) {
        self.down(Gone::SessionLost, effects);
        self.stage = Stage::Out;
        if self.leaving {
            self.over(Left::Resigned, effects);
        }
    }

    fn proceed(&mut self, effects: &mut Effects<Told>) {
        if !self.served.is_ready() {
            return;
        }
        let path = self.path.clone();
        match self.stage {
            Stage::Out => {
                self.stage = Stage::Making;
                self.saved = true;
                let (acl, mode) = (vec![Acl::world_anyone()], CreateMode::Ephemeral);
                let request = Request::Create { path, data: self.data.clone(), acl, mode };
                self.asks.send(request, Purpose::Make, effects);
            }
            Stage::Unsure => {
                self.stage = Stage::Looking;
                if self.rules.syncs_before_it_looks() {
                    self.asks.send(Request::Sync { path: path.clone() }, Purpose::Sync, effects);
                }
                self.asks.send(Request::GetData { path, watch: true }, Purpose::Look, effects);
            }
            Stage::Up if self.leaving => {
                self.stage = Stage::Deleting;
                self.asks.send(Request::Delete { path, version: -1 }, Purpose::Delete, effects);
            }
            Stage::Up => {
                if !self.watched {
                    self.watched = true;
                    // Told of its end alone, and not of what is written into it.
                    let request = Request::GetChildren { path: path.clone(), watch: true };
                    self.asks.send(request, Purpose::Watch, effects);
                }
                if !self.saved {
                    self.saved = true;
                    let request = Request::SetData { path, data: self.data.clone(), version: -1 };
                    self.asks.send(request, Purpose::Set, effects);
                }
            }
            _ => {}
        }
    }

    fn answered(
        &mut self,
        now: Now,
        ask: Ask,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        let Some(purpose) = self.asks.answered(ask) else { return };
        match (purpose, self.stage, answer) {
            (Purpose::Make, Stage::Making, Ok(Response::Created { stat, .. })) => self.up(&stat, effects),
            (Purpose::Look, Stage::Looking, Ok(Response::Data { data, stat })) => {
                if Some(stat.ephemeral_owner) == self.served.session() {
                    self.saved &= data == self.data;
                    self.up(&stat, effects);
                } else {
                    self.blocked_by_another(effects);
                }
            }
            (Purpose::Delete, Stage::Deleting, Ok(_)) => self.out(effects),
            (_, _, Ok(_)) | (Purpose::Sync, ..) => {}
            (purpose, _, Err(failure)) => self.failed(now, purpose, failure, effects),
        }
    }

    fn blocked_by_another(&mut self, effects: &mut Effects<Told>) {
        self.out(effects);
        if self.stage == Stage::Out {
            self.stage = Stage::Blocked;
            if !std::mem::replace(&mut self.blocked, true) {
                effects.tell(Told::Blocked);
            }
        }
    }

    fn failed(&mut self, now: Now, purpose: Purpose, failure: Failure, effects: &mut Effects<Told>) {
        let code = verdict(failure);
        if code.is_none() {
            self.served.pause(now);
        }
        match (purpose, code) {
            (Purpose::Make, None) => {
                let doubt = failure == Failure::Unknown;
                self.stage = if doubt { Stage::Unsure } else { Stage::Out };
                if self.leaving && !doubt {
                    self.over(Left::Resigned, effects);
                }
            }
            (Purpose::Make, Some(ErrorCode::NodeExists)) => self.stage = Stage::Unsure,
            (Purpose::Make | Purpose::Set, Some(ErrorCode::NoNode)) if self.stage == Stage::Making => {
                self.over(Left::NoResource, effects);
            }
            (Purpose::Make, Some(code)) => self.over(Left::Refused(code), effects),
            (Purpose::Look, None) | (Purpose::Delete, None) => self.stage = Stage::Unsure,
            (Purpose::Look, Some(_)) if self.stage == Stage::Looking => self.out(effects),
            (Purpose::Delete, Some(_)) => self.out(effects),
            (Purpose::Watch, Some(ErrorCode::NoNode)) if self.stage == Stage::Up => self.out(effects),
            (Purpose::Watch, _) => self.watched = false,
            // It may still be written, and over what is written next.
            (Purpose::Set, None) => {
                self.saved = false;
                if self.stage == Stage::Up {
                    self.stage = Stage::Unsure;
                }
            }
            (Purpose::Set | Purpose::Look | Purpose::Sync, _) => {}
        }
    }
}

impl<R: Rules> Recipe for Standing<R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        if self.stage == Stage::Over {
            return;
        }
        self.served.follow(now, &input);
        match input {
            Input::Call(call) => self.called(call, effects),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            Input::Event(event) => self.event(&event, effects),
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
        self.stage == Stage::Over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{Dice, World};

    const PATH: &str = "/members/a";

    fn world(processes: usize) -> World<Standing> {
        World::new(&["/members"], (0..processes).map(|_| Standing::new(PATH, "x")))
    }

    fn ups(told: &[Told]) -> usize {
        told.iter().filter(|told| matches!(told, Told::Up(_))).count()
    }

    #[test]
    fn it_is_made_again_on_a_new_session_and_when_somebody_deletes_it() {
        let mut world = world(1);
        world.settle();
        assert!(matches!(world.told(0)[..], [Told::Up(_)]));
        world.lose(0);
        world.connect(0);
        world.settle();
        assert!(matches!(world.told(0)[..], [Told::Down(Gone::SessionLost), Told::Up(_)]));
        world.delete(PATH);
        world.settle();
        assert!(matches!(world.told(0)[..], [Told::Down(Gone::Deleted), Told::Up(_)]));
    }

    #[test]
    fn what_is_written_into_it_stays_with_it() {
        let mut world = world(1);
        world.settle();
        world.call(0, Call::Set("y".into()));
        world.settle();
        assert_eq!(world.tree.data(PATH).unwrap(), "y");
        world.lose(0);
        world.connect(0);
        world.settle();
        assert_eq!(world.tree.data(PATH).unwrap(), "y");
    }

    #[test]
    fn another_sessions_is_waited_for_and_never_deleted() {
        let mut world = world(2);
        world.serve(0);
        world.settle();
        assert_eq!(world.told(1), [Told::Blocked]);
        world.call(1, Call::Leave);
        world.settle();
        assert!(world.tree.data(PATH).is_some());
    }

    #[test]
    fn a_creation_or_deletion_whose_answer_was_lost_is_looked_at() {
        for taken in [0, 1] {
            let mut world = world(1);
            world.cut(0, taken);
            world.connect(0);
            world.settle();
            assert!(matches!(world.told(0)[..], [Told::Up(_)]));
            world.call(0, Call::Leave);
            world.cut(0, taken);
            if taken == 1 {
                world.make(PATH, "another's", CreateMode::Ephemeral);
            }
            world.connect(0);
            world.settle();
            assert_eq!(world.told(0), [Told::Over(Left::Resigned)]);
            assert_eq!(world.tree.data(PATH).is_some(), taken == 1);
        }
    }

    #[test]
    fn drawn_losses_leave_one_in_the_end_and_none_after_all_left() {
        for seed in 1..300 {
            let mut dice = Dice(seed * 0x9e37_79b9);
            let mut world = world(2);
            let mut up = [0; 2];
            for _ in 0..200 {
                world.chance(&mut dice, true);
                for (who, up) in up.iter_mut().enumerate() {
                    let told = world.told(who);
                    *up += ups(&told);
                    *up -= told.iter().filter(|told| matches!(told, Told::Down(_))).count();
                    assert!(*up <= 1);
                }
            }
            world.heal();
            assert!(world.tree.data(PATH).is_some(), "seed {seed}");
            for who in 0..2 {
                world.call(who, Call::Leave);
                for _ in 0..dice.below(3) {
                    world.chance(&mut dice, true);
                }
            }
            world.heal();
            assert!(world.tree.data(PATH).is_none(), "seed {seed}");
        }
    }
}
