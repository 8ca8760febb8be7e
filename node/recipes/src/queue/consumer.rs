//! Whoever works on items.

use bytes::Bytes;
use bytestring::ByteString;
use node_session::request::{check, create, delete};
use node_session::{CreateMode, Event, Failure, Moment, Request, Response};
use node_wire::client::{ErrorCode, EventType, MultiResult};

use super::{claims, items};
use crate::line::{Left, Token};
use crate::names::{child, in_order};
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::served::{Served, verdict};

/// What a consumer may do. It has one item at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Have the first item that nobody has claimed, as soon as there is one.
    Claim,
    /// The item is done: it is to be deleted.
    Acknowledge,
    /// Somebody else is to have the item.
    GiveBack,
    /// Give back what is claimed, and claim nothing more.
    Leave,
}

/// Why a claim ended that was neither acknowledged nor given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It was not certain any more that nobody else can have the item.
    Uncertain,
    /// The session was lost.
    SessionLost,
    /// Somebody deleted the claim or the item.
    Deleted,
}

/// What a consumer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// An item.
    Item {
        /// Its name, which stays the same when it is handed out again.
        name: ByteString,
        /// Its data.
        data: Bytes,
        /// Of the claim. A later claim of the same item has a larger one.
        token: Token,
    },
    /// It is deleted, and nobody gets it again.
    Acknowledged(ByteString),
    /// It can be claimed by others, and by this consumer.
    GivenBack(ByteString),
    /// The claim is over, and somebody else may get the item. If it was being acknowledged, that may have
    /// succeeded.
    ClaimOver {
        /// Of which item.
        name: ByteString,
        /// Why.
        why: Ended,
    },
    /// Nothing follows.
    Over(Left),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Aim {
    Claim,
    Acknowledge,
    /// `told` if the application asked for it.
    GiveBack {
        told: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    Unlisted,
    Listing,
    /// There is nothing to claim. Watches stand.
    Waiting,
    /// The aim is to be sent.
    Due(Aim),
    Sent(Aim),
    /// It may have been done; the claim tells.
    Unsure(Aim),
    Looking(Aim),
    /// The item is claimed, and its data must be read.
    Unread,
    Reading,
    Held,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Sync,
    Items,
    Claims,
    Carry(Aim),
    Look,
    Read,
}

/// A consumer.
///
/// Its claim is over at the latest when its session's certainty ends. So no two consumers have an item at a
/// time, if they look at the clock before they act; whoever does not is stopped by the token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Consumer<R = Sound> {
    base: ByteString,
    rules: R,
    asks: Asks<Purpose>,
    served: Served,
    stage: Stage,
    /// The items of a listing that is not complete yet.
    listed: Vec<ByteString>,
    /// Something changed while they were listed.
    changed: bool,
    item: ByteString,
    token: Token,
    until: Option<Moment>,
    leaving: bool,
}

impl Consumer {
    /// One that works on the queue at `base`.
    #[must_use]
    pub fn new(base: impl Into<ByteString>) -> Self {
        Self::with_rules(base, Sound)
    }
}

impl<R: Rules> Consumer<R> {
    /// One that decides by these rules.
    pub fn with_rules(base: impl Into<ByteString>, rules: R) -> Self {
        Self {
            base: base.into(),
            rules,
            asks: Asks::default(),
            served: Served::default(),
            stage: Stage::Idle,
            listed: Vec::new(),
            changed: false,
            item: ByteString::new(),
            token: Token(0),
            until: None,
            leaving: false,
        }
    }

    /// The item that the consumer may work on at this moment, by what it knows.
    pub fn holds(&self, at: Moment) -> Option<&ByteString> {
        let certain = !self.rules.ends_with_certainty() || self.until.is_some_and(|until| at < until);
        (self.is_told() && certain).then_some(&self.item)
    }

    /// True while the application was handed an item.
    fn is_told(&self) -> bool {
        match self.stage {
            Stage::Held => true,
            Stage::Due(aim) | Stage::Sent(aim) | Stage::Unsure(aim) | Stage::Looking(aim) => {
                aim == Aim::Acknowledge
            }
            _ => false,
        }
    }

    fn claim_path(&self) -> ByteString {
        child(&claims(&self.base), &self.item)
    }

    fn item_path(&self) -> ByteString {
        child(&items(&self.base), &self.item)
    }

    fn over(&mut self, why: Left, effects: &mut Effects<Told>) {
        self.stage = Stage::Gone;
        effects.tell(Told::Over(why));
    }

    /// The claim is over, or there was none.
    fn idle(&mut self, effects: &mut Effects<Told>) {
        if self.leaving {
            self.over(Left::Resigned, effects);
        } else {
            self.stage = Stage::Idle;
        }
    }

    fn end_claim(&mut self, why: Ended, effects: &mut Effects<Told>) {
        if self.is_told() {
            effects.tell(Told::ClaimOver { name: self.item.clone(), why });
        }
    }

    fn called(&mut self, call: Call, effects: &mut Effects<Told>) {
        match (call, self.stage) {
            (Call::Claim, Stage::Idle) => self.stage = Stage::Unlisted,
            (Call::Acknowledge, Stage::Held) => self.stage = Stage::Due(Aim::Acknowledge),
            (Call::GiveBack, Stage::Held) => self.stage = Stage::Due(Aim::GiveBack { told: true }),
            (Call::Leave, _) => {
                self.leaving = true;
                match self.stage {
                    Stage::Idle | Stage::Unlisted | Stage::Listing | Stage::Waiting => {
                        self.over(Left::Resigned, effects);
                    }
                    Stage::Due(Aim::Claim) => self.over(Left::Resigned, effects),
                    Stage::Held => self.stage = Stage::Due(Aim::GiveBack { told: true }),
                    Stage::Unread | Stage::Reading => {
                        self.stage = Stage::Due(Aim::GiveBack { told: false });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &Event, effects: &mut Effects<Told>) {
        let listed = event.path == items(&self.base) || event.path == claims(&self.base);
        match self.stage {
            Stage::Listing if listed => self.changed = true,
            Stage::Waiting if listed => self.stage = Stage::Unlisted,
            Stage::Held if event.path == self.item_path() && event.kind == EventType::NodeDeleted => {
                self.end_claim(Ended::Deleted, effects);
                self.stage = Stage::Due(Aim::GiveBack { told: false });
            }
            _ => {}
        }
    }

    fn lost(&mut self, effects: &mut Effects<Told>) {
        self.end_claim(Ended::SessionLost, effects);
        match self.stage {
            Stage::Idle | Stage::Unlisted | Stage::Gone => {}
            // The application waits for an item still.
            Stage::Listing | Stage::Waiting | Stage::Unread | Stage::Reading if !self.leaving => {
                self.stage = Stage::Unlisted;
            }
            Stage::Due(Aim::Claim) | Stage::Sent(Aim::Claim) | Stage::Unsure(Aim::Claim) if !self.leaving => {
                self.stage = Stage::Unlisted;
            }
            Stage::Due(aim) | Stage::Unsure(aim) if aim == Aim::GiveBack { told: true } => {
                self.done(aim, effects);
            }
            _ => self.idle(effects),
        }
    }

    fn mind_certainty(&mut self, now: Now, effects: &mut Effects<Told>) {
        let uncertain = self.until.is_none_or(|until| until <= now.at);
        if self.is_told() && uncertain && self.rules.ends_with_certainty() {
            self.end_claim(Ended::Uncertain, effects);
            // What was being done may be done already: the claim tells.
            let aim = Aim::GiveBack { told: false };
            self.stage = if self.stage == Stage::Held { Stage::Due(aim) } else { Stage::Unsure(aim) };
        }
    }

    fn proceed(&mut self, effects: &mut Effects<Told>) {
        if !self.served.is_ready() {
            return;
        }
        match self.stage {
            Stage::Unlisted => {
                self.stage = Stage::Listing;
                self.changed = false;
                let (items, claims) = (items(&self.base), claims(&self.base));
                let list = |path| Request::GetChildren { path, watch: true };
                self.asks.send(list(items), Purpose::Items, effects);
                self.asks.send(list(claims), Purpose::Claims, effects);
            }
            Stage::Due(aim) => {
                self.stage = Stage::Sent(aim);
                let (item, claim) = (self.item_path(), self.claim_path());
                let ops = match aim {
                    Aim::Claim => vec![check(item, -1), create(claim, "", CreateMode::Ephemeral)],
                    Aim::Acknowledge => vec![delete(claim, -1), delete(item, -1)],
                    Aim::GiveBack { .. } => vec![delete(claim, -1)],
                };
                self.asks.send(Request::Multi(ops), Purpose::Carry(aim), effects);
            }
            Stage::Unsure(aim) => {
                self.stage = Stage::Looking(aim);
                let path = self.claim_path();
                if self.rules.syncs_before_it_looks() {
                    self.asks.send(Request::Sync { path: path.clone() }, Purpose::Sync, effects);
                }
                self.asks.send(Request::Exists { path, watch: false }, Purpose::Look, effects);
            }
            Stage::Unread => {
                self.stage = Stage::Reading;
                let request = Request::GetData { path: self.item_path(), watch: true };
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
        match (purpose, self.stage) {
            (Purpose::Items, Stage::Listing) => match answer {
                Ok(Response::Children { names, .. }) => self.listed = names,
                Ok(_) => {}
                Err(failure) => self.unlisted(now, failure, effects),
            },
            (Purpose::Claims, Stage::Listing) => match answer {
                Ok(Response::Children { names, .. }) => self.choose(&names),
                Ok(_) => {}
                Err(failure) => self.unlisted(now, failure, effects),
            },
            (Purpose::Carry(aim), Stage::Sent(sent)) if aim == sent => {
                self.carried(now, aim, answer, effects);
            }
            (Purpose::Look, Stage::Looking(aim)) => self.looked(now, aim, answer, effects),
            (Purpose::Read, Stage::Reading) => self.read(now, answer, effects),
            _ => {}
        }
    }

    fn unlisted(&mut self, now: Now, failure: Failure, effects: &mut Effects<Told>) {
        match verdict(failure) {
            None => {
                self.stage = Stage::Unlisted;
                self.served.pause(now);
            }
            Some(ErrorCode::NoNode) => self.over(Left::NoResource, effects),
            Some(code) => self.over(Left::Refused(code), effects),
        }
    }

    /// Chooses the first item without a claim.
    fn choose(&mut self, claims: &[ByteString]) {
        let items = in_order(&std::mem::take(&mut self.listed));
        self.stage = match items.into_iter().find(|item| !claims.contains(&item.name)) {
            Some(item) => {
                self.item = item.name;
                Stage::Due(Aim::Claim)
            }
            // A watch of the listing may be spent.
            None if self.changed => Stage::Unlisted,
            None => Stage::Waiting,
        };
    }

    /// What was to be done is done, or not.
    fn carried(
        &mut self,
        now: Now,
        aim: Aim,
        answer: Result<Response, Failure>,
        effects: &mut Effects<Told>,
    ) {
        match answer.map_err(|failure| (verdict(failure), failure)) {
            Ok(Response::Multi(results)) if aim == Aim::Claim => self.claimed(&results),
            Ok(_) => self.done(aim, effects),
            Err((None, failure)) => {
                self.served.pause(now);
                let unsure = failure == Failure::Unknown && self.rules.looks_for_its_own();
                self.stage = if unsure { Stage::Unsure(aim) } else { Stage::Due(aim) };
            }
            Err((Some(ErrorCode::NodeExists | ErrorCode::NoNode), _)) if aim == Aim::Claim => {
                self.unclaimed(effects);
            }
            Err((Some(ErrorCode::NoNode), Failure::Refused { at, .. })) if aim == Aim::Acknowledge => {
                self.end_claim(Ended::Deleted, effects);
                if at == Some(1) {
                    self.stage = Stage::Due(Aim::GiveBack { told: false });
                } else {
                    self.idle(effects);
                }
            }
            Err((Some(ErrorCode::NoNode), _)) => self.done(aim, effects),
            Err((Some(code), _)) => {
                self.end_claim(Ended::Deleted, effects);
                self.over(Left::Refused(code), effects);
            }
        }
    }

    fn claimed(&mut self, results: &[MultiResult]) {
        self.stage = match results {
            [_, MultiResult::Create2 { stat, .. }] if !self.leaving => {
                self.token = Token(stat.czxid.0);
                Stage::Unread
            }
            _ => Stage::Unsure(Aim::Claim),
        };
    }

    fn done(&mut self, aim: Aim, effects: &mut Effects<Told>) {
        let name = self.item.clone();
        match aim {
            Aim::Claim | Aim::GiveBack { told: false } => {}
            Aim::Acknowledge => effects.tell(Told::Acknowledged(name)),
            Aim::GiveBack { told: true } => effects.tell(Told::GivenBack(name)),
        }
        self.idle(effects);
    }

    /// The item went to somebody else, or is gone.
    fn unclaimed(&mut self, effects: &mut Effects<Told>) {
        if self.leaving {
            self.over(Left::Resigned, effects);
        } else {
            self.stage = Stage::Unlisted;
        }
    }

    fn looked(&mut self, now: Now, aim: Aim, answer: Result<Response, Failure>, effects: &mut Effects<Told>) {
        let ours = match answer {
            Ok(Response::Exists(stat)) => {
                stat.filter(|stat| Some(stat.ephemeral_owner) == self.served.session())
            }
            Ok(_) => None,
            Err(_) => {
                self.served.pause(now);
                self.stage = Stage::Unsure(aim);
                return;
            }
        };
        match (aim, ours) {
            (Aim::Claim, Some(_)) if self.leaving => {
                self.stage = Stage::Due(Aim::GiveBack { told: false });
            }
            (Aim::Claim, Some(stat)) => {
                self.token = Token(stat.czxid.0);
                self.stage = Stage::Unread;
            }
            (Aim::Claim, None) => self.unclaimed(effects),
            (_, Some(_)) => self.stage = Stage::Due(aim),
            (_, None) => self.done(aim, effects),
        }
    }

    fn read(&mut self, now: Now, answer: Result<Response, Failure>, effects: &mut Effects<Told>) {
        match answer {
            Ok(Response::Data { data, .. }) => {
                self.stage = Stage::Held;
                effects.tell(Told::Item { name: self.item.clone(), data, token: self.token });
            }
            Ok(_) => {}
            Err(failure) if verdict(failure).is_none() => {
                self.served.pause(now);
                self.stage = Stage::Unread;
            }
            Err(_) => self.stage = Stage::Due(Aim::GiveBack { told: false }),
        }
    }
}

impl<R: Rules> Recipe for Consumer<R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        if self.stage == Stage::Gone {
            return;
        }
        self.until = now.certain_until;
        self.served.follow(now, &input);
        match input {
            Input::Call(call) => self.called(call, effects),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            Input::Event(event) => self.event(&event, effects),
            Input::Lost => self.lost(effects),
            _ => {}
        }
        self.mind_certainty(now, effects);
        self.proceed(effects);
    }

    fn leave() -> Call {
        Call::Leave
    }

    fn wakes_at(&self) -> Option<Moment> {
        let ends = self.until.filter(|_| self.is_told());
        ends.into_iter().chain(self.served.wakes_at()).min()
    }

    fn wants_certainty(&self) -> bool {
        !matches!(self.stage, Stage::Idle | Stage::Unlisted | Stage::Listing | Stage::Waiting | Stage::Gone)
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Gone
    }
}
