//! Whoever puts items.

use std::collections::VecDeque;

use bytes::Bytes;
use bytestring::ByteString;
use node_session::request::create;
use node_session::{CreateMode, Failure, Moment, Request, Response};
use node_wire::client::ErrorCode;

use super::{items, marks};
use crate::line::Left;
use crate::names::{Guid, Intent, Layout, child, in_order};
use crate::once::{self, Once, Outcome};
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::served::{Served, verdict};

/// What a producer may do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Put an item, behind those that were put before.
    Put(Bytes),
    /// Put nothing more. What was not sent yet is dropped and told.
    Leave,
}

/// What a producer is told of its items, which are numbered from 0 as they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The item is in the queue, or was.
    Put(u64),
    /// The item may have been put, or not: the answer and the session were lost.
    InDoubt(u64),
    /// The item was not put, and will not be.
    NotPut(u64),
    /// Nothing follows.
    Over(Left),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The first item that waits is to be put, or is being put.
    Ready,
    /// It may have been put, and the mark went with its session.
    Lost,
    Searching,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Once(once::Purpose),
    Sync,
    Search,
}

impl From<once::Purpose> for Purpose {
    fn from(purpose: once::Purpose) -> Self {
        Self::Once(purpose)
    }
}

/// A producer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Producer<R = Sound> {
    base: ByteString,
    guid: Guid,
    asks: Asks<Purpose>,
    served: Served,
    once: Once<R>,
    stage: Stage,
    /// Of the first that waits.
    number: u64,
    waiting: VecDeque<Bytes>,
    leaving: bool,
}

impl Producer {
    /// One that puts into the queue at `base`. As many guids from this on as there are items must be unused.
    #[must_use]
    pub fn new(base: impl Into<ByteString>, guid: Guid) -> Self {
        Self::with_rules(base, guid, Sound)
    }
}

impl<R: Rules> Producer<R> {
    /// One that decides by these rules.
    pub fn with_rules(base: impl Into<ByteString>, guid: Guid, rules: R) -> Self {
        let base = base.into();
        Self {
            once: Once::new(&marks(&base), guid, rules),
            base,
            guid,
            asks: Asks::default(),
            served: Served::default(),
            stage: Stage::Ready,
            number: 0,
            waiting: VecDeque::new(),
            leaving: false,
        }
    }

    fn item_guid(&self) -> Guid {
        Guid(self.guid.0.wrapping_add(self.number.into()))
    }

    /// What became of the first item that waited is known.
    fn settled(&mut self, told: fn(u64) -> Told, effects: &mut Effects<Told>) {
        effects.tell(told(self.number));
        self.waiting.pop_front();
        self.number += 1;
        self.stage = Stage::Ready;
    }

    fn over(&mut self, why: Left, effects: &mut Effects<Told>) {
        if self.stage == Stage::Gone {
            return;
        }
        while !self.waiting.is_empty() {
            self.settled(Told::NotPut, effects);
        }
        self.stage = Stage::Gone;
        effects.tell(Told::Over(why));
    }

    fn leave_now(&mut self, effects: &mut Effects<Told>) {
        self.leaving = true;
        let open = usize::from(self.stage != Stage::Ready || self.once.is_open());
        let dropped = self.waiting.len().saturating_sub(open);
        self.waiting.truncate(open);
        let first = self.number + u64::try_from(open).unwrap_or_default();
        for number in (first..).take(dropped) {
            effects.tell(Told::NotPut(number));
        }
    }

    fn lost(&mut self, effects: &mut Effects<Told>) {
        if let Some(outcome) = self.once.lost() {
            self.came_out(outcome, effects);
        }
        if self.leaving && self.waiting.is_empty() {
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
        match self.waiting.front() {
            None if self.leaving => self.retire(effects),
            None => {}
            Some(_) if self.stage == Stage::Lost => self.search(effects),
            Some(data) if self.stage == Stage::Ready => {
                let data = data.clone();
                if self.once.prepare(&mut self.asks, effects) {
                    let name = Layout::Own.prefix(Intent::Write, self.item_guid());
                    let item = child(&items(&self.base), &name);
                    let ops = vec![create(item, data, CreateMode::PersistentSequential)];
                    self.once.submit(ops, &mut self.asks, effects);
                }
            }
            Some(_) => {}
        }
    }

    fn search(&mut self, effects: &mut Effects<Told>) {
        self.stage = Stage::Searching;
        let path = items(&self.base);
        self.asks.send(Request::Sync { path: path.clone() }, Purpose::Sync, effects);
        self.asks.send(Request::GetChildren { path, watch: false }, Purpose::Search, effects);
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
            (Some(Purpose::Search), Ok(Response::Children { names, .. })) => {
                let guid = self.item_guid();
                let put = in_order(&names).iter().any(|item| item.is_of(Layout::Own, Intent::Write, guid));
                self.settled(if put { Told::Put } else { Told::InDoubt }, effects);
            }
            (Some(Purpose::Search), Err(failure)) => match verdict(failure) {
                Some(_) => self.settled(Told::InDoubt, effects),
                None => {
                    self.stage = Stage::Lost;
                    self.served.pause(now);
                }
            },
            _ => {}
        }
    }

    fn came_out(&mut self, outcome: Outcome, effects: &mut Effects<Told>) {
        match outcome {
            Outcome::Done(_) => self.settled(Told::Put, effects),
            // It is put again by and by.
            Outcome::Undone => {}
            Outcome::InDoubt => self.stage = Stage::Lost,
            Outcome::Refused { code: ErrorCode::NoNode, .. } => self.over(Left::NoResource, effects),
            Outcome::Refused { code, .. } => self.over(Left::Refused(code), effects),
        }
    }
}

impl<R: Rules> Recipe for Producer<R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        if self.stage == Stage::Gone {
            return;
        }
        self.served.follow(now, &input);
        match input {
            Input::Call(Call::Put(data)) if !self.leaving => self.waiting.push_back(data),
            Input::Call(Call::Leave) if !self.leaving => self.leave_now(effects),
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
