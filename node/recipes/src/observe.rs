//! Who is first in a line: the leader of an election, the holder of a lock.
//!
//! An observer lists the line and watches the znode of the first, by listing its children: it has none, so
//! such a watch is told of its end alone. Only while the line is empty the line itself is watched. So whoever
//! comes to the line or leaves it behind the first wakes no observer. An observer that also wants to know
//! what the first proclaims watches its data too.
//!
//! Each change is told once, and tokens grow: the line is listed behind a sync whenever the session is served
//! again, so that another server's state is not older than what was told.
//!
//! **Lost answers** cost nothing: the line is listed again.
//!
//! **Not promised:** that all leaders are told, for one may come and go between two listings; nor that
//! whoever is told of leads. It may be over already; and whoever is first is not certain of it yet. Who must
//! be sure compares tokens.

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{Event, Failure, Moment, Request, Response};
use node_wire::client::{ErrorCode, EventType};

use crate::line::{Left, Token};
use crate::names::{child, in_order};
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::served::{Served, verdict};

/// What an observer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Observe no longer.
    Leave,
}

/// What an observer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Another one is first, or the first proclaims something else.
    First {
        /// The path of its znode.
        path: ByteString,
        /// Its token.
        token: Token,
        /// What it proclaims.
        data: Bytes,
    },
    /// Nobody is in the line.
    Nobody,
    /// Nothing follows.
    Over(Left),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Unlisted,
    Listing,
    /// The first is being watched and read.
    Reading(ByteString),
    Watching(ByteString),
    /// Its data must be read again.
    Unread(ByteString),
    /// The line is watched, for it is empty.
    Empty,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Sync,
    List { watch: bool },
    Watch,
    Read,
}

/// An observer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Observer<R = Sound> {
    resource: ByteString,
    follows_data: bool,
    rules: R,
    asks: Asks<Purpose>,
    served: Served,
    stage: Stage,
    /// The line must be listed behind a sync.
    unsynced: bool,
    /// The line was empty when it was listed, and must be listed with a watch.
    watches_line: bool,
    /// What was told last: nobody, or whose znode with which data.
    told: Option<Option<(Token, Bytes)>>,
}

impl Observer {
    /// Observes this line. With `follows_data` it is told each time the first proclaims something.
    #[must_use]
    pub fn new(resource: impl Into<ByteString>, follows_data: bool) -> Self {
        Self::with_rules(resource, follows_data, Sound)
    }
}

impl<R: Rules> Observer<R> {
    /// One that decides by these rules.
    pub fn with_rules(resource: impl Into<ByteString>, follows_data: bool, rules: R) -> Self {
        Self {
            resource: resource.into(),
            follows_data,
            rules,
            asks: Asks::default(),
            served: Served::default(),
            stage: Stage::Unlisted,
            unsynced: true,
            watches_line: false,
            told: None,
        }
    }

    fn over(&mut self, why: Left, effects: &mut Effects<Told>) {
        self.stage = Stage::Gone;
        effects.tell(Told::Over(why));
    }

    fn event(&mut self, event: &Event) {
        let proclaims = event.kind == EventType::NodeDataChanged;
        match &self.stage {
            Stage::Empty if event.path == self.resource => self.stage = Stage::Unlisted,
            Stage::Watching(first) | Stage::Reading(first) | Stage::Unread(first) if event.path == *first => {
                self.stage = if proclaims { Stage::Unread(first.clone()) } else { Stage::Unlisted };
            }
            _ => {}
        }
    }

    fn proceed(&mut self, effects: &mut Effects<Told>) {
        if !self.served.is_ready() {
            return;
        }
        match &self.stage {
            Stage::Unlisted => {
                self.stage = Stage::Listing;
                let path = self.resource.clone();
                if std::mem::take(&mut self.unsynced) && self.rules.syncs_before_it_looks() {
                    self.asks.send(Request::Sync { path: path.clone() }, Purpose::Sync, effects);
                }
                let watch = std::mem::take(&mut self.watches_line) || !self.rules.watches_one_ahead();
                self.asks.send(Request::GetChildren { path, watch }, Purpose::List { watch }, effects);
            }
            Stage::Unread(first) => {
                let path = first.clone();
                self.stage = Stage::Reading(path.clone());
                let request = Request::GetData { path, watch: self.follows_data };
                self.asks.send(request, Purpose::Read, effects);
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
        match (purpose, &self.stage, answer.map_err(verdict)) {
            (Purpose::List { watch }, Stage::Listing, Ok(Response::Children { names, .. })) => {
                self.listed(watch, &names, effects);
            }
            (Purpose::Read, Stage::Reading(first), Ok(Response::Data { data, stat })) => {
                let (path, token) = (first.clone(), Token(stat.czxid.0));
                self.stage = Stage::Watching(path.clone());
                if self.told.as_ref() != Some(&Some((token, data.clone()))) {
                    self.told = Some(Some((token, data.clone())));
                    effects.tell(Told::First { path, token, data });
                }
            }
            (Purpose::Sync, _, _) | (_, _, Ok(_)) => {}
            (Purpose::List { .. }, _, Err(Some(ErrorCode::NoNode))) => self.over(Left::NoResource, effects),
            // The first is gone.
            (Purpose::Watch | Purpose::Read, stage, Err(Some(ErrorCode::NoNode))) => {
                if stage.is_of_the_first() {
                    self.stage = Stage::Unlisted;
                }
            }
            (_, _, Err(Some(code))) => self.over(Left::Refused(code), effects),
            (_, _, Err(None)) => {
                self.stage = Stage::Unlisted;
                self.served.pause(now);
            }
        }
    }

    fn listed(&mut self, watched: bool, names: &[ByteString], effects: &mut Effects<Told>) {
        match in_order(names).first() {
            Some(first) => {
                let path = child(&self.resource, &first.name);
                let request = Request::GetChildren { path: path.clone(), watch: true };
                self.asks.send(request, Purpose::Watch, effects);
                self.stage = Stage::Unread(path);
            }
            None if watched => {
                self.stage = Stage::Empty;
                if self.told != Some(None) {
                    self.told = Some(None);
                    effects.tell(Told::Nobody);
                }
            }
            None => {
                self.watches_line = true;
                self.stage = Stage::Unlisted;
            }
        }
    }
}

impl Stage {
    fn is_of_the_first(&self) -> bool {
        matches!(self, Self::Reading(_) | Self::Watching(_) | Self::Unread(_))
    }
}

impl<R: Rules> Recipe for Observer<R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        if self.stage == Stage::Gone {
            return;
        }
        self.served.follow(now, &input);
        match input {
            Input::Call(Call::Leave) => self.over(Left::Resigned, effects),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            Input::Event(event) => self.event(&event),
            Input::Connected { .. } => self.unsynced = true,
            Input::Lost => self.stage = Stage::Unlisted,
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
    use node_session::CreateMode;

    use super::*;
    use crate::testbed::{Dice, World};

    const PATH: &str = "/election";

    fn stand(world: &mut World<Observer>, name: &str) {
        world.make(&format!("{PATH}/{name}-n_"), name, CreateMode::Ephemeral);
    }

    fn contender(number: usize) -> String {
        format!("{PATH}/g-n_{number:010}")
    }

    fn firsts(told: Vec<Told>) -> Vec<Option<Bytes>> {
        let first = |told| match told {
            Told::First { data, .. } => Some(data),
            Told::Nobody => None,
            Told::Over(why) => panic!("{why:?}"),
        };
        told.into_iter().map(first).collect()
    }

    #[test]
    fn each_change_of_the_first_is_told_once_and_others_wake_nobody() {
        let mut world = World::new(&[PATH], [Observer::new(PATH, false)]);
        world.settle();
        assert_eq!(world.told(0), [Told::Nobody]);
        for number in 1..4 {
            world.make(&contender(number), &number.to_string(), CreateMode::Ephemeral);
            world.settle();
        }
        assert_eq!(firsts(world.told(0)), [Some("1".into())]);
        world.delete(&contender(2));
        assert!(world.clients[0].open.is_empty(), "who goes behind the first wakes nobody");
        world.delete(&contender(1));
        world.settle();
        assert_eq!(firsts(world.told(0)), [Some("3".into())]);
        world.delete(&contender(3));
        world.settle();
        assert_eq!(world.told(0), [Told::Nobody]);
    }

    #[test]
    fn what_the_first_proclaims_is_told_to_those_who_want_it() {
        for follows in [false, true] {
            let mut world = World::new(&[PATH], [Observer::new(PATH, follows)]);
            world.make(&contender(1), "a", CreateMode::Ephemeral);
            world.settle();
            let path = contender(1).as_str().into();
            world.outside(&Request::SetData { path, data: "b".into(), version: -1 }).unwrap();
            world.settle();
            let proclaimed =
                if follows { vec![Some("a".into()), Some("b".into())] } else { vec![Some("a".into())] };
            assert_eq!(firsts(world.told(0)), proclaimed);
        }
    }

    #[test]
    fn a_znode_that_is_no_contender_is_nobody() {
        let mut world = World::new(&[PATH], [Observer::new(PATH, false)]);
        stand(&mut world, "x");
        world.settle();
        assert_eq!(world.told(0), [Told::Nobody]);
    }

    #[test]
    fn drawn_losses_leave_the_observer_right_and_its_tokens_grow() {
        for seed in 1..300 {
            let mut dice = Dice(seed * 0x9e37_79b9);
            let mut world = World::new(&[PATH], [Observer::new(PATH, true)]);
            let (mut next, mut line, mut last) = (0, Vec::new(), Token(0));
            let mut now = None;
            for step in 0..300 {
                match dice.below(10) {
                    0 if step < 280 => {
                        next += 1;
                        world.make(&contender(next), &next.to_string(), CreateMode::Ephemeral);
                        line.push(next);
                    }
                    1 if !line.is_empty() => {
                        let gone = line.remove(dice.below(line.len()));
                        world.delete(&contender(gone));
                    }
                    _ => {}
                }
                world.chance(&mut dice, true);
                if step == 299 {
                    world.heal();
                }
                for told in world.told(0) {
                    if let Told::First { token, .. } = told {
                        assert!(token > last, "seed {seed}");
                        last = token;
                    }
                    now = firsts(vec![told]).remove(0);
                }
            }
            let first = line.first().map(|first: &usize| Bytes::from(first.to_string()));
            assert_eq!(now, first, "seed {seed}");
        }
    }
}
