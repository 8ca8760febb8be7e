//! A place in a line: what elections, locks and semaphores have in common.
//!
//! 1. A contender makes an ephemeral sequential znode below the resource, with its guid in the name.
//! 2. It lists the resource's children. If nobody stands ahead of it, it is first. The list may be old, and
//!    that is harmless: all who came earlier were made before its own znode, which the list has, so those
//!    that are missing are gone.
//! 3. Else it watches the one ahead, and when that goes it begins again at 2: the one that went may have been
//!    waiting itself.
//!
//! The watch is left by listing the children of the znode ahead, which has none. Such a watch is told of the
//! znode's end and of nothing else, so what a leader proclaims in its znode wakes nobody; and where the znode
//! is gone already no watch is left behind. An exists would do both.
//!
//! A contender watches its own znode too, so that it learns of its deletion by somebody else.
//!
//! **Lost answers.** Whatever is in doubt is looked at when the session is served again: a creation by its
//! guid, behind a sync, and only a znode of the same session counts; a deletion by deleting again. When the
//! session is lost its znode is gone, and so are all doubts.

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{CreateMode, Event, Failure, Moment, Request, Response};
use node_wire::client::{Acl, ErrorCode, EventType, Stat};
use node_wire::ids::{SessionId, Zxid};

use crate::names::{Contender, Guid, Intent, Layout, child, in_order};
use crate::recipe::{Ask, Asks, Effects, Now};
use crate::rules::Rules;
use crate::served::{Served, verdict};

/// What a contender wants, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The resource: the znode below which contenders stand. It must be there.
    pub resource: ByteString,
    /// Whose names are used.
    pub layout: Layout,
    /// What is wanted.
    pub intent: Intent,
    /// What tells this contender from others. [`Guid::next`] must be unused as well, and so on.
    pub guid: Guid,
    /// What others can read of this contender.
    pub data: Bytes,
    /// How many may be in front at a time.
    pub places: usize,
}

/// A znode of a contender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Its path.
    pub path: ByteString,
    /// Its place in the order of all changes. It grows from one contender of a line to the next, whoever they
    /// are, and is never given twice.
    pub token: Token,
    /// The session that it lives with.
    pub session: SessionId,
}

/// A fencing token: a number that grows with every holder (Kleppmann: "How to do distributed locking").
///
/// Whoever owns what is protected keeps the largest that it saw, and refuses smaller ones ([`Token::admit`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

impl Token {
    /// True if what carries this token may be done, now that `highest` is the largest token seen; which then
    /// is this one.
    pub fn admit(self, highest: &mut Token) -> bool {
        let admitted = self >= *highest;
        *highest = self.max(*highest);
        admitted
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a place in a line came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// The contender left, and its znode is gone.
    Resigned,
    /// Its session ended.
    SessionLost,
    /// Somebody deleted its znode.
    Deleted,
    /// There is no such resource: it was never made, or it was deleted.
    NoResource,
    /// The ensemble refused its znode for another reason.
    Refused(ErrorCode),
    /// The notice that was wanted does not fit the session's time-out as the ensemble granted it: see
    /// [`Now::grants`].
    NoticeTooLong,
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Resigned => f.write_str("it was given up"),
            Self::SessionLost => f.write_str("the session was lost"),
            Self::Deleted => f.write_str("its znode was deleted"),
            Self::NoResource => f.write_str("there is no such resource"),
            Self::Refused(code) => write!(f, "the ensemble refused it: {code:?}"),
            Self::NoticeTooLong => f.write_str(
                "the notice before its end is longer than half of the session's time-out as the ensemble \
                 granted it: shorten the notice, or lengthen the time-out",
            ),
        }
    }
}

impl std::error::Error for Left {}

/// News of a place in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It has a znode.
    Standing(Place),
    /// It waits for the end of this one, whose path is given.
    Behind(ByteString),
    /// Nobody is ahead of it.
    First(Place),
    /// It is over.
    Over(Left),
}

/// What an open request is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Make,
    SyncFirst,
    Search,
    Recognize(ByteString),
    WatchOwn,
    List,
    Watch(ByteString),
    Delete,
    /// A znode of ours that is not our place: one that was made twice.
    DeleteOther,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// No znode is known.
    Out,
    /// A request about the znode is open: its making, or a search for it.
    Busy,
    /// The znode stands, and who is ahead must be asked.
    Unsure,
    /// That is being asked.
    Asking,
    /// A watch stands: of the znode ahead, or of the line.
    Waiting { watched: ByteString },
    /// Nobody is ahead.
    First,
    /// The znode is being deleted, or must be.
    Leaving { open: bool },
    /// Over.
    Gone,
}

/// A contender's place in a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line<R> {
    ticket: Ticket,
    rules: R,
    asks: Asks<Purpose>,
    stage: Stage,
    place: Option<Place>,
    served: Served,
    /// The answer to the znode's making was lost.
    doubt: bool,
    leaving: Option<Left>,
    watches_own: bool,
    /// The guid of the first znode; all between it and the ticket's may be on znodes of ours.
    first_guid: Guid,
}

impl<R: Rules> Line<R> {
    /// A place to be taken as soon as the session is served.
    pub fn new(ticket: Ticket, rules: R) -> Self {
        Self {
            rules,
            asks: Asks::default(),
            stage: Stage::Out,
            place: None,
            served: Served::default(),
            doubt: false,
            leaving: None,
            watches_own: false,
            first_guid: ticket.guid,
            ticket,
        }
    }

    /// The znode, while it is known.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// True while nobody is ahead.
    pub fn is_first(&self) -> bool {
        self.stage == Stage::First
    }

    /// True when nothing will come of it any more.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Gone
    }

    /// When a request is tried again that could not be sent.
    pub fn wakes_at(&self) -> Option<Moment> {
        self.served.wakes_at()
    }

    /// Another place of the same contender, to be taken by [`Line::proceed`]. Its requests have numbers of
    /// their own.
    #[must_use]
    pub fn another(&self) -> Self {
        let ticket = Ticket { guid: self.ticket.guid.next(), ..self.ticket.clone() };
        let (asks, served) = (self.asks.emptied(), self.served.clone());
        Self { asks, served, ..Self::new(ticket, self.rules.clone()) }
    }

    /// The session is served.
    pub fn connected<T>(&mut self, session: SessionId, effects: &mut Effects<T>) -> Vec<News> {
        self.served.connected(session);
        self.proceed(effects)
    }

    /// The session is not served now. Everything that was open was answered before.
    pub fn suspended(&mut self) {
        self.served.suspended();
    }

    /// The session is over, with everything that it held.
    pub fn lost(&mut self) -> Vec<News> {
        self.served.suspended();
        if self.stage == Stage::Gone {
            return Vec::new();
        }
        let was_in = self.place.take().is_some() || self.doubt;
        if let Some(why) = self.leaving {
            self.over(why)
        } else if was_in {
            self.over(Left::SessionLost)
        } else {
            Vec::new()
        }
    }

    /// Gives the place up.
    pub fn leave<T>(&mut self, effects: &mut Effects<T>) -> Vec<News> {
        self.leave_for(Left::Resigned, effects)
    }

    /// Gives the place up, for this reason.
    pub(crate) fn leave_for<T>(&mut self, why: Left, effects: &mut Effects<T>) -> Vec<News> {
        if self.leaving.is_some() || self.stage == Stage::Gone {
            return Vec::new();
        }
        self.leaving = Some(why);
        match self.stage {
            Stage::Busy => Vec::new(),
            Stage::Out if !self.doubt => self.over(why),
            Stage::Out => self.proceed(effects),
            _ => {
                self.stage = Stage::Leaving { open: false };
                self.proceed(effects)
            }
        }
    }

    /// Time passed.
    pub fn time<T>(&mut self, now: Now, effects: &mut Effects<T>) -> Vec<News> {
        let waited = self.served.wakes_at().is_some();
        self.served.time(now);
        if waited { self.proceed(effects) } else { Vec::new() }
    }

    /// A watch saw something.
    pub fn event<T>(&mut self, event: &Event, effects: &mut Effects<T>) -> Vec<News> {
        let deleted = event.kind == EventType::NodeDeleted;
        let own = self.place.as_ref().is_some_and(|place| place.path == event.path);
        if own && deleted && !matches!(self.stage, Stage::Leaving { .. }) {
            self.watches_own = false;
            return if self.rules.minds_its_own() { self.deleted() } else { Vec::new() };
        }
        if matches!(&self.stage, Stage::Waiting { watched } if *watched == event.path) {
            if !self.rules.looks_again()
                && let Some(place) = self.place.clone()
            {
                self.stage = Stage::First;
                return vec![News::First(place)];
            }
            self.stage = Stage::Unsure;
            return self.proceed(effects);
        }
        Vec::new()
    }

    /// A request was answered.
    pub fn answered<T>(
        &mut self,
        now: Now,
        ask: Ask,
        answer: Result<Response, Failure>,
        effects: &mut Effects<T>,
    ) -> Vec<News> {
        let Some(purpose) = self.asks.answered(ask) else { return Vec::new() };
        if self.stage == Stage::Gone {
            return Vec::new();
        }
        match (purpose, answer) {
            (Purpose::DeleteOther, _) => Vec::new(),
            (Purpose::Make, Ok(Response::Created { path, stat })) => self.made(path, &stat, effects),
            (Purpose::Make, Err(Failure::Unknown)) => {
                self.doubt = self.rules.looks_for_its_own();
                self.set_back(now, Stage::Out)
            }
            (Purpose::Make, Err(failure)) => self.refused(now, failure, Stage::Out, effects),
            (Purpose::SyncFirst, Ok(_)) => Vec::new(),
            (Purpose::Search, Ok(Response::Children { names, .. })) => self.found(&names, effects),
            (Purpose::Recognize(path), Ok(Response::Exists(stat))) => {
                self.recognized(path, stat.as_ref(), effects)
            }
            (Purpose::SyncFirst | Purpose::Search | Purpose::Recognize(_), Err(failure)) => {
                self.refused(now, failure, Stage::Out, effects)
            }
            (Purpose::WatchOwn, Ok(_)) => {
                self.watches_own = true;
                Vec::new()
            }
            (Purpose::WatchOwn, Err(failure)) => self.own_unwatched(failure),
            (Purpose::List, Ok(Response::Children { names, .. })) => self.listed(&names, effects),
            (Purpose::Watch(ahead), answer) => self.watching(now, ahead, &answer, effects),
            (Purpose::List, Err(failure)) => self.refused(now, failure, Stage::Unsure, effects),
            (Purpose::Delete, answer) => self.deletion(now, &answer),
            // An answer to another question than was asked: the driver's mistake, and no news.
            (_, Ok(_)) => Vec::new(),
        }
    }

    /// Does what can be done where no request of the place is open.
    pub fn proceed<T>(&mut self, effects: &mut Effects<T>) -> Vec<News> {
        if !self.served.is_ready() {
            return Vec::new();
        }
        if self.place.is_some() && !self.watches_own && self.leaving.is_none() {
            self.watch_own(effects);
        }
        match self.stage {
            Stage::Out if self.doubt => self.search(effects),
            Stage::Out => match self.leaving {
                Some(why) => return self.over(why),
                None => self.make(effects),
            },
            Stage::Unsure => self.list(effects),
            Stage::Leaving { open: false } => self.delete(effects),
            _ => {}
        }
        Vec::new()
    }

    fn make<T>(&mut self, effects: &mut Effects<T>) {
        let Ticket { resource, layout, intent, guid, data, .. } = &self.ticket;
        let request = Request::Create {
            path: child(resource, &layout.prefix(*intent, *guid)),
            data: data.clone(),
            acl: vec![Acl::world_anyone()],
            mode: CreateMode::EphemeralSequential,
        };
        self.stage = Stage::Busy;
        self.asks.send(request, Purpose::Make, effects);
    }

    fn search<T>(&mut self, effects: &mut Effects<T>) {
        self.stage = Stage::Busy;
        let path = self.ticket.resource.clone();
        if self.rules.syncs_before_it_looks() {
            self.asks.send(Request::Sync { path: path.clone() }, Purpose::SyncFirst, effects);
        }
        self.asks.send(Request::GetChildren { path, watch: false }, Purpose::Search, effects);
    }

    fn found<T>(&mut self, names: &[ByteString], effects: &mut Effects<T>) -> Vec<News> {
        let Ticket { resource, layout, intent, guid, .. } = &self.ticket;
        let own = in_order(names).into_iter().find(|contender| contender.is_of(*layout, *intent, *guid));
        match own {
            Some(own) => {
                let path = child(resource, &own.name);
                let request = Request::Exists { path: path.clone(), watch: false };
                self.asks.send(request, Purpose::Recognize(path), effects);
                Vec::new()
            }
            None => self.unmade(effects),
        }
    }

    /// The znode in doubt was not made. One that is made from now on has another guid.
    fn unmade<T>(&mut self, effects: &mut Effects<T>) -> Vec<News> {
        self.doubt = false;
        self.ticket.guid = self.ticket.guid.next();
        self.stage = Stage::Out;
        self.proceed(effects)
    }

    fn recognized<T>(
        &mut self,
        path: ByteString,
        stat: Option<&Stat>,
        effects: &mut Effects<T>,
    ) -> Vec<News> {
        match stat {
            Some(stat) if Some(stat.ephemeral_owner) == self.served.session() => {
                self.made(path, stat, effects)
            }
            _ => self.unmade(effects),
        }
    }

    fn made<T>(&mut self, path: ByteString, stat: &Stat, effects: &mut Effects<T>) -> Vec<News> {
        self.doubt = false;
        let place = Place { token: self.token(&path, stat.czxid), path, session: stat.ephemeral_owner };
        self.place = Some(place.clone());
        if let Some(why) = self.leaving {
            if !self.rules.deletes_what_was_made_after_it_left() {
                return self.over(why);
            }
            self.stage = Stage::Leaving { open: false };
            return self.proceed(effects);
        }
        self.stage = Stage::Unsure;
        let mut news = vec![News::Standing(place)];
        news.append(&mut self.proceed(effects));
        news
    }

    fn token(&self, path: &str, czxid: Zxid) -> Token {
        if self.rules.token_is_a_place() {
            return Token(czxid.0);
        }
        let name: ByteString = path.into();
        Token(Contender::of(&name).map_or(0, |own| u64::from(own.sequence.unsigned_abs())))
    }

    fn watch_own<T>(&mut self, effects: &mut Effects<T>) {
        if let Some(place) = &self.place {
            // Until the answer says otherwise, so that it is not asked for twice.
            self.watches_own = true;
            let request = Request::GetChildren { path: place.path.clone(), watch: true };
            self.asks.send(request, Purpose::WatchOwn, effects);
        }
    }

    fn own_unwatched(&mut self, failure: Failure) -> Vec<News> {
        self.watches_own = false;
        let leaves = matches!(self.stage, Stage::Leaving { .. });
        if failure.refusal() == Some(ErrorCode::NoNode) && !leaves { self.deleted() } else { Vec::new() }
    }

    fn list<T>(&mut self, effects: &mut Effects<T>) {
        self.stage = Stage::Asking;
        let path = self.ticket.resource.clone();
        let request = Request::GetChildren { path, watch: self.watches_line() };
        self.asks.send(request, Purpose::List, effects);
    }

    /// Whether the whole line is watched, because any of several ahead may make room.
    fn watches_line(&self) -> bool {
        self.ticket.places > 1 || !self.rules.watches_one_ahead()
    }

    fn listed<T>(&mut self, names: &[ByteString], effects: &mut Effects<T>) -> Vec<News> {
        let Some(place) = self.place.clone().filter(|_| self.stage == Stage::Asking) else {
            return Vec::new();
        };
        let order = in_order(names);
        let at =
            order.iter().position(|contender| place.path == child(&self.ticket.resource, &contender.name));
        let Some(at) = at else { return self.deleted() };
        self.delete_twins(&order[..at], effects);
        match self.ahead(&order[..at]) {
            None => {
                self.stage = Stage::First;
                vec![News::First(place)]
            }
            Some(ahead) => {
                let path = child(&self.ticket.resource, &ahead.name);
                if self.watches_line() {
                    self.stage = Stage::Waiting { watched: self.ticket.resource.clone() };
                } else {
                    let request = Request::GetChildren { path: path.clone(), watch: true };
                    self.asks.send(request, Purpose::Watch(path.clone()), effects);
                }
                vec![News::Behind(path)]
            }
        }
    }

    /// Whose end is waited for, of those who came before.
    fn ahead<'a>(&self, before: &'a [Contender]) -> Option<&'a Contender> {
        match self.ticket.intent {
            Intent::Read => before.iter().rev().find(|contender| !contender.reads),
            Intent::Lead | Intent::Write if before.len() < self.ticket.places => None,
            Intent::Lead | Intent::Write => before.last(),
        }
    }

    /// Deletes znodes of ours ahead of our place. There is none unless a server makes a znode after it lost
    /// sight of the connection that asked for it, and against the order that it promises.
    fn delete_twins<T>(&mut self, before: &[Contender], effects: &mut Effects<T>) {
        let Ticket { resource, layout, intent, guid, .. } = &self.ticket;
        if !self.rules.looks_for_its_own() {
            return;
        }
        let mut ours = vec![self.first_guid];
        while let Some(last) = ours.last().copied().filter(|last| last != guid) {
            ours.push(last.next());
        }
        let is_ours =
            |contender: &&Contender| ours.iter().any(|guid| contender.is_of(*layout, *intent, *guid));
        for twin in before.iter().filter(is_ours) {
            let request = Request::Delete { path: child(resource, &twin.name), version: -1 };
            self.asks.send(request, Purpose::DeleteOther, effects);
        }
    }

    fn watching<T>(
        &mut self,
        now: Now,
        ahead: ByteString,
        answer: &Result<Response, Failure>,
        effects: &mut Effects<T>,
    ) -> Vec<News> {
        if self.stage != Stage::Asking {
            return Vec::new();
        }
        let gone = answer.as_ref().err().copied().and_then(Failure::refusal) == Some(ErrorCode::NoNode);
        match answer {
            Err(_) if gone && self.rules.minds_a_missing_predecessor() => {
                self.stage = Stage::Unsure;
                self.proceed(effects)
            }
            Err(failure) if !gone && self.rules.watches_anew() => {
                self.refused(now, *failure, Stage::Unsure, effects)
            }
            _ => {
                self.stage = Stage::Waiting { watched: ahead };
                Vec::new()
            }
        }
    }

    fn delete<T>(&mut self, effects: &mut Effects<T>) {
        if let Some(place) = &self.place {
            let request = Request::Delete { path: place.path.clone(), version: -1 };
            self.stage = Stage::Leaving { open: true };
            self.asks.send(request, Purpose::Delete, effects);
        }
    }

    fn deletion(&mut self, now: Now, answer: &Result<Response, Failure>) -> Vec<News> {
        match answer {
            Err(failure)
                if failure.refusal() != Some(ErrorCode::NoNode) && self.rules.resigns_until_it_is_known() =>
            {
                self.set_back(now, Stage::Leaving { open: false })
            }
            _ => self.over(self.leaving.unwrap_or(Left::Resigned)),
        }
    }

    /// A request was not answered with what was asked for: the stage before it comes again, unless there is
    /// no sense in it.
    fn refused<T>(
        &mut self,
        now: Now,
        failure: Failure,
        stage: Stage,
        effects: &mut Effects<T>,
    ) -> Vec<News> {
        match verdict(failure) {
            None => self.set_back(now, stage),
            Some(ErrorCode::NoNode) => self.over(self.leaving.unwrap_or(Left::NoResource)),
            Some(code) if self.place.is_some() => self.leave_for(Left::Refused(code), effects),
            Some(code) => self.over(self.leaving.unwrap_or(Left::Refused(code))),
        }
    }

    /// Back to a stage, to go on from it when the session is served again; or soon, where it is served.
    fn set_back(&mut self, now: Now, stage: Stage) -> Vec<News> {
        self.served.pause(now);
        match self.leaving {
            Some(why) if self.place.is_none() && !self.doubt => return self.over(why),
            Some(_) if self.place.is_some() => self.stage = Stage::Leaving { open: false },
            _ => self.stage = stage,
        }
        Vec::new()
    }

    fn deleted(&mut self) -> Vec<News> {
        self.over(self.leaving.unwrap_or(Left::Deleted))
    }

    fn over(&mut self, why: Left) -> Vec<News> {
        self.stage = Stage::Gone;
        self.place = None;
        self.doubt = false;
        vec![News::Over(why)]
    }
}
