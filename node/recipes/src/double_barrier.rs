//! A double barrier: nobody begins before so many have come, and nobody goes before all have ended.
//!
//! ZooKeeper's recipe. Below a znode, which must be there, each member has an ephemeral znode, named by its
//! guid; a znode `ready` opens the barrier. The names are those of kazoo and of Curator, so members over
//! these libraries enter together with ours.
//!
//! **Entering.** A member makes its znode, looks for `ready` and leaves a watch there, and lists the members.
//! If so many have come it makes `ready`; else it waits for it. The watch is left before the listing. So if
//! this member did not count enough, one that came later does, and its `ready` is told.
//!
//! **Leaving.** The member with the lowest name waits for the highest to go, then for the highest that is
//! left, and goes last. Each other deletes its znode and waits for the lowest. So while members leave one at
//! a time only one of them is told; when the last one goes all are, which is what they wait for. A list that
//! is old shows too many members, never too few: whoever leaves has seen `ready`, and each of those who were
//! counted had come before it was made.
//!
//! **`ready` goes with the last member**, in one transaction. kazoo and Curator have the first that leaves
//! delete it. There a member that is cut off from before `ready` came until after it went never learns of it.
//! It waits for `ready`, and all others wait for it. Beside members that do so, ours may wait so too.
//!
//! **Lost answers.** A member's name is nobody else's, so its znode may be made and deleted again: "it is
//! there" and "it is not there" say that it is done. The same goes for `ready`. A sync goes ahead, so that
//! nothing that was asked before is done after.
//!
//! **A session that ends** takes the member out: it did not enter, or it counts as one that left. It is told,
//! because whoever enters again may find that the others have gone on without it.
//!
//! **Not promised:** that one znode does for one round after the other. Whoever enters while others leave
//! belongs to the round that ends. Take a znode for each round. And where all sessions end, nobody is left
//! who could delete `ready`.

use bytes::Bytes;
use bytestring::ByteString;
use node_session::request::delete;
use node_session::{CreateMode, Event, Failure, Moment, Request, Response};
use node_wire::client::{Acl, ErrorCode, EventType};

use crate::line::Left;
use crate::names::{Guid, child};
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::served::{Served, verdict};

/// The name of the znode that opens the barrier.
pub const READY: &str = "ready";

/// What a member may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Leave together with the others. Whoever has not entered yet withdraws, and waits for nobody.
    Leave,
}

/// What a member is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// So many have come.
    Entered,
    /// It is over. [`Left::Resigned`] says that all have left, or that the member withdrew;
    /// [`Left::SessionLost`] that it was taken out before it was done.
    Over(Left),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The znode must be made.
    Out,
    Making,
    /// `ready` must be looked for, and the members counted.
    Uncounted,
    /// That is asked.
    Looking,
    Counting,
    /// A watch stands at `ready`.
    Waiting,
    /// `ready` must be made.
    Enough,
    Opening,
    In,
    /// The members that have not left must be listed.
    Unlisted,
    Listing,
    /// The own znode must be deleted. `last` where it is the only one, and `ready` goes with it.
    Undeleted {
        last: bool,
    },
    Deleting,
    /// `ready` was left by a last member whose session ended.
    Closing,
    /// This member's end is waited for.
    Leaving {
        watched: ByteString,
        stands: bool,
    },
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Sync,
    Make,
    Look,
    Count,
    Open,
    /// The rule to delete `ready` first is followed; the answer is no news.
    CloseFirst,
    List,
    Delete {
        last: bool,
    },
    Close,
    Watch,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DoubleBarrier<R = Sound> {
    path: ByteString,
    size: usize,
    guid: Guid,
    data: Bytes,
    rules: R,
    asks: Asks<Purpose>,
    served: Served,
    stage: Stage,
    /// The own znode may be there.
    stands: bool,
    entered: bool,
    leaving: bool,
    /// Something that was asked over a connection that is gone may still be done.
    doubt: bool,
}

impl DoubleBarrier {
    /// Enters with so many members.
    #[must_use]
    pub fn enter(path: impl Into<ByteString>, size: usize, guid: Guid, data: Bytes) -> Self {
        Self::with_rules(path, size, guid, data, Sound)
    }
}

impl<R: Rules> DoubleBarrier<R> {
    /// One that decides by these rules.
    pub fn with_rules(path: impl Into<ByteString>, size: usize, guid: Guid, data: Bytes, rules: R) -> Self {
        Self {
            path: path.into(),
            size,
            guid,
            data,
            rules,
            asks: Asks::default(),
            served: Served::default(),
            stage: Stage::Out,
            stands: false,
            entered: false,
            leaving: false,
            doubt: false,
        }
    }

    /// True between entering and leaving, while the member's znode stands.
    pub fn is_in(&self) -> bool {
        self.stage == Stage::In
    }

    fn name(&self) -> String {
        format!("{:032x}", self.guid.0)
    }

    fn own(&self) -> ByteString {
        child(&self.path, &self.name())
    }

    fn ready(&self) -> ByteString {
        child(&self.path, READY)
    }

    fn over(&mut self, why: Left, effects: &mut Effects<Told>) {
        if self.stage != Stage::Gone {
            self.stage = Stage::Gone;
            effects.tell(Told::Over(why));
        }
    }

    fn enter_now(&mut self, effects: &mut Effects<Told>) {
        self.stage = Stage::In;
        self.entered = true;
        effects.tell(Told::Entered);
    }

    fn leave_now(&mut self, effects: &mut Effects<Told>) {
        if self.leaving || self.stage == Stage::Gone {
            return;
        }
        self.leaving = true;
        match self.stage {
            Stage::In => self.stage = Stage::Unlisted,
            Stage::Out if !self.stands => self.over(Left::Resigned, effects),
            Stage::Making => {}
            _ => self.stage = Stage::Undeleted { last: false },
        }
        if self.entered && !self.rules.ready_goes_last() && self.served.is_ready() {
            let request = Request::Delete { path: self.ready(), version: -1 };
            self.asks.send(request, Purpose::CloseFirst, effects);
        }
    }

    fn event(&mut self, event: &Event, effects: &mut Effects<Told>) {
        match &self.stage {
            Stage::Waiting | Stage::Counting if event.path == self.ready() => {
                if event.kind == EventType::NodeCreated {
                    self.enter_now(effects);
                } else {
                    self.stage = Stage::Uncounted;
                }
            }
            Stage::Leaving { watched, .. } if *watched == event.path => self.stage = Stage::Unlisted,
            _ => {}
        }
    }

    fn lost(&mut self, effects: &mut Effects<Told>) {
        let withdraws = self.leaving && !self.entered;
        match self.stage {
            Stage::Gone => {}
            _ if withdraws => self.over(Left::Resigned, effects),
            // The znode went with the session. Only the others' end is waited for.
            _ if self.leaving => {
                self.stands = false;
                self.stage = Stage::Unlisted;
            }
            _ if self.stands => self.over(Left::SessionLost, effects),
            _ => {}
        }
    }

    fn proceed(&mut self, effects: &mut Effects<Told>) {
        if !self.served.is_ready() {
            return;
        }
        let path = self.path.clone();
        if std::mem::take(&mut self.doubt) && self.rules.syncs_before_it_looks() {
            self.asks.send(Request::Sync { path: path.clone() }, Purpose::Sync, effects);
        }
        match &self.stage {
            Stage::Out => {
                self.stage = Stage::Making;
                self.stands = true;
                let request = self.creation(self.own(), self.data.clone(), CreateMode::Ephemeral);
                self.asks.send(request, Purpose::Make, effects);
            }
            Stage::Uncounted => {
                self.stage = Stage::Looking;
                let request = Request::Exists { path: self.ready(), watch: true };
                self.asks.send(request, Purpose::Look, effects);
                self.asks.send(Request::GetChildren { path, watch: false }, Purpose::Count, effects);
            }
            Stage::Enough => {
                self.stage = Stage::Opening;
                let request = self.creation(self.ready(), Bytes::new(), CreateMode::Persistent);
                self.asks.send(request, Purpose::Open, effects);
            }
            Stage::Unlisted => {
                self.stage = Stage::Listing;
                self.asks.send(Request::GetChildren { path, watch: false }, Purpose::List, effects);
            }
            Stage::Undeleted { last } => {
                let last = *last;
                self.stage = Stage::Deleting;
                let own = self.own();
                let request = match last {
                    true => Request::Multi(vec![delete(own, -1), delete(self.ready(), -1)]),
                    false => Request::Delete { path: own, version: -1 },
                };
                self.asks.send(request, Purpose::Delete { last }, effects);
            }
            Stage::Leaving { watched, stands: false } => {
                let watched = watched.clone();
                // A listing leaves no watch where the znode is gone.
                let request = Request::GetChildren { path: watched.clone(), watch: true };
                self.stage = Stage::Leaving { watched, stands: true };
                self.asks.send(request, Purpose::Watch, effects);
            }
            _ => {}
        }
    }

    fn creation(&self, path: ByteString, data: Bytes, mode: CreateMode) -> Request {
        Request::Create { path, data, acl: vec![Acl::world_anyone()], mode }
    }

    fn answered(
        &mut self,
        now: Now,
        ask: Ask,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        let Some(purpose) = self.asks.answered(ask) else { return };
        let answer = match answer.map_err(|failure| (failure, verdict(failure))) {
            Ok(response) => Ok(response),
            Err((Failure::Refused { at, .. }, Some(code))) => Err((code, at)),
            Err(_) => return self.unanswered(now, purpose),
        };
        match (purpose, &self.stage, answer) {
            (Purpose::Sync, ..) => {}
            (Purpose::Make, Stage::Making, Ok(_) | Err((ErrorCode::NodeExists, _))) => {
                self.stage = if self.leaving { Stage::Undeleted { last: false } } else { Stage::Uncounted };
            }
            (Purpose::Make, Stage::Making, Err((code, _))) => self.refused(code, effects),
            (Purpose::Look, Stage::Looking, Ok(Response::Exists(Some(_)))) => self.enter_now(effects),
            (Purpose::Look, Stage::Looking, Ok(_)) => self.stage = Stage::Counting,
            (Purpose::Count, Stage::Counting, Ok(Response::Children { names, .. })) => {
                if names.iter().any(|name| *name == READY) {
                    return self.enter_now(effects);
                }
                let come = names.len();
                self.stage = if come < self.size { Stage::Waiting } else { Stage::Enough };
            }
            (Purpose::Open, Stage::Opening, Ok(_) | Err((ErrorCode::NodeExists, _))) => {
                self.enter_now(effects);
            }
            (Purpose::List, Stage::Listing, Ok(Response::Children { names, .. })) => {
                self.listed(&names, effects);
            }
            (Purpose::Delete { last }, Stage::Deleting, answer) => self.deleted(last, answer.err(), effects),
            (Purpose::Close, Stage::Closing, _) => self.over(Left::Resigned, effects),
            (Purpose::Watch, Stage::Leaving { .. }, Err((ErrorCode::NoNode, _))) => {
                self.stage = Stage::Unlisted;
            }
            (Purpose::CloseFirst | Purpose::Close, _, _) | (_, _, Ok(_)) => {}
            (Purpose::Look | Purpose::Count | Purpose::Open, Stage::In | Stage::Undeleted { .. }, _) => {}
            (_, _, Err((code, _))) => self.refused(code, effects),
        }
    }

    /// The request came to nothing: the stage that sent it comes again.
    fn unanswered(&mut self, now: Now, purpose: Purpose) {
        self.served.pause(now);
        self.doubt = true;
        self.stage = match (purpose, &self.stage) {
            (Purpose::Make, Stage::Making) if self.leaving => Stage::Undeleted { last: false },
            (Purpose::Make, Stage::Making) => Stage::Out,
            (Purpose::Look | Purpose::Count, Stage::Looking | Stage::Counting) => Stage::Uncounted,
            (Purpose::Open, Stage::Opening) => Stage::Enough,
            (Purpose::Delete { .. }, Stage::Deleting) if !self.entered => Stage::Undeleted { last: false },
            (Purpose::List | Purpose::Delete { .. } | Purpose::Close, stage) if stage.lists() => {
                Stage::Unlisted
            }
            (Purpose::Watch, Stage::Leaving { watched, .. }) => {
                Stage::Leaving { watched: watched.clone(), stands: false }
            }
            _ => return,
        };
    }

    fn refused(&mut self, code: ErrorCode, effects: &mut Effects<Told>) {
        let why = if code == ErrorCode::NoNode { Left::NoResource } else { Left::Refused(code) };
        self.over(why, effects);
    }

    fn listed(&mut self, names: &[ByteString], effects: &mut Effects<Told>) {
        let own = self.name();
        let mut members: Vec<&ByteString> = names.iter().filter(|name| *name != READY).collect();
        members.sort();
        let watched = |name: &ByteString| Stage::Leaving { watched: child(&self.path, name), stands: false };
        self.stage = match members[..] {
            [] if names.is_empty() => return self.over(Left::Resigned, effects),
            [] => {
                let request = Request::Delete { path: self.ready(), version: -1 };
                self.asks.send(request, Purpose::Close, effects);
                Stage::Closing
            }
            [only] if *only == own => Stage::Undeleted { last: names.len() > 1 },
            [lowest, .., highest] if *lowest == own => watched(highest),
            _ if members.iter().any(|name| **name == own) => Stage::Undeleted { last: false },
            [lowest, ..] => watched(lowest),
        };
    }

    fn deleted(
        &mut self,
        last: bool,
        refusal: Option<(ErrorCode, Option<usize>)>,
        effects: &mut Effects<Told>,
    ) {
        match refusal {
            // `ready` is gone already.
            Some((ErrorCode::NoNode, Some(1))) if last => self.stage = Stage::Undeleted { last: false },
            Some((code, _)) if code != ErrorCode::NoNode => self.refused(code, effects),
            _ if !self.entered => self.over(Left::Resigned, effects),
            _ => {
                self.stands = false;
                self.stage = Stage::Unlisted;
            }
        }
    }
}

impl Stage {
    fn lists(&self) -> bool {
        matches!(self, Self::Listing | Self::Deleting | Self::Closing)
    }
}

impl<R: Rules> Recipe for DoubleBarrier<R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        self.served.follow(now, &input);
        match input {
            Input::Call(Call::Leave) => self.leave_now(effects),
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
        self.stage == Stage::Gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{Dice, World, broken};

    const PATH: &str = "/rendezvous";

    fn world(members: u32, size: usize) -> World<DoubleBarrier> {
        let member = |number| DoubleBarrier::enter(PATH, size, Guid(u128::from(number)), Bytes::new());
        World::new(&[PATH], (0..members).map(member))
    }

    fn entered(members: u32) -> World<DoubleBarrier> {
        let mut world = world(members, members as usize);
        world.settle();
        for who in 0..members as usize {
            assert_eq!(world.told(who), [Told::Entered]);
        }
        world
    }

    #[test]
    fn nobody_enters_before_the_last_has_come_and_then_all_do() {
        let mut world = world(2, 3);
        world.settle();
        assert_eq!((world.told(0), world.told(1)), (vec![], vec![]));
        world.add(DoubleBarrier::enter(PATH, 3, Guid(9), Bytes::new()));
        world.settle();
        for who in 0..3 {
            assert_eq!(world.told(who), [Told::Entered]);
        }
    }

    #[test]
    fn nobody_has_left_before_all_leave_and_nothing_stays() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut world = entered(3);
            for who in order {
                assert!((0..3).all(|who| world.told(who).is_empty()));
                world.call(who, Call::Leave);
                world.settle();
            }
            for who in 0..3 {
                assert_eq!(world.told(who), [Told::Over(Left::Resigned)]);
            }
            assert!(world.tree.children(PATH).is_empty());
        }
    }

    /// One waits and is cut off, another one opens the barrier and leaves, and the first is back.
    fn comes_back<R: Rules>(rules: &R) -> Vec<Told> {
        let member = |number| DoubleBarrier::with_rules(PATH, 2, Guid(number), Bytes::new(), rules.clone());
        let mut world = World::new(&[PATH], [member(1)]);
        world.settle();
        world.cut(0, 0);
        world.add(member(2));
        world.settle();
        world.call(1, Call::Leave);
        world.settle();
        assert_eq!(world.told(1), [Told::Entered], "it waits for the one that is cut off");
        world.connect(0);
        world.settle();
        world.told(0)
    }

    broken!(FirstDeletesReady, ready_goes_last);

    #[test]
    fn whoever_is_cut_off_while_the_barrier_opens_enters_when_it_is_back() {
        assert_eq!(comes_back(&Sound), [Told::Entered]);
    }

    #[test]
    fn where_the_first_that_leaves_deletes_ready_whoever_was_cut_off_waits_for_ever() {
        assert_eq!(comes_back(&FirstDeletesReady), []);
    }

    #[test]
    fn whoever_withdraws_before_it_entered_is_not_counted() {
        for taken in [0, 1] {
            let mut world = world(1, 2);
            world.call(0, Call::Leave);
            world.cut(0, taken);
            world.connect(0);
            world.settle();
            assert_eq!(world.told(0), [Told::Over(Left::Resigned)]);
            assert!(world.tree.children(PATH).is_empty());
        }
    }

    #[test]
    fn a_session_that_ends_takes_its_member_out_and_the_others_do_not_wait_for_it() {
        let mut world = entered(3);
        world.lose(0);
        assert_eq!(world.told(0), [Told::Over(Left::SessionLost)]);
        world.call(1, Call::Leave);
        world.call(2, Call::Leave);
        world.settle();
        assert_eq!(world.told(2), [Told::Over(Left::Resigned)]);
        assert!(world.tree.children(PATH).is_empty());
    }

    #[test]
    fn drawn_losses_let_nobody_go_before_the_others_and_all_in_the_end() {
        for seed in 1..300 {
            let mut dice = Dice(seed * 0x9e37_79b9);
            let mut world = world(3, 3);
            let mut lost = 0;
            for step in 0..400 {
                world.chance(&mut dice, true);
                for who in 0..3 {
                    if step > 100 && world.clients[who].recipe.is_in() && dice.below(10) == 0 {
                        world.call(who, Call::Leave);
                    }
                    let over = world.told(who).contains(&Told::Over(Left::SessionLost));
                    lost += usize::from(over);
                }
            }
            world.heal();
            for who in 0..3 {
                if !world.clients[who].recipe.is_over() {
                    world.call(who, Call::Leave);
                }
            }
            world.heal();
            assert!(world.clients.iter().all(|client| client.recipe.is_over()), "seed {seed}");
            let left = world.tree.children(PATH);
            assert!(left.is_empty() || lost == 3 && left == [READY], "seed {seed}: {left:?}");
        }
    }
}
