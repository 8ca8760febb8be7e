//! A lease: something is held for a duration, and by nobody else before the duration is over.
//!
//! It is for "one machine does this once an hour". A lease ends neither with its holder's process nor with
//! its session. It ends with time, or when its holder gives it back.
//!
//! The lease is a TTL znode below the resource's. The ensemble deletes it when it was not changed for the
//! duration. Only the leader's clock counts for that. No contender looks at a wall clock, and none compares
//! its clock with another's. (kazoo's `NonBlockingLease` writes the wall clock's time of the end into a
//! znode, so it needs clocks that agree.)
//!
//! - **Taking** is one transaction: the lease is made, and the holder is written into the resource's znode.
//!   The version of that znode counts the grants. [`set_up`] gives the request that makes it.
//! - **Renewing** is one transaction: no other grant came since, and the lease is written again at its
//!   version. Its time begins anew.
//! - **Releasing** is one transaction: no other grant came since, and the lease is deleted. (A version of the
//!   lease alone would not do. Each lease begins at version 0, so a deletion that comes late could delete
//!   another one's.)
//!
//! **The holder is certain** until the duration minus a tenth has passed since it *sent* the request that
//! took or renewed the lease. The ensemble counts from later than that, and the tenth is for clocks that run
//! at different speeds. Then the lease is over for its holder ([`End::RanOut`]), and it does not come back,
//! whatever is answered later. The lease's token grows with every grant.
//!
//! **Lost answers.** A taking or a renewal in doubt is looked at behind a sync. Each taking has its own guid,
//! which stands in the lease's data. If the lease has it, the lease was taken, and its certainty counts from
//! when that taking was sent. If the certainty is over already, the lease is deleted and taken anew. The
//! lease's version says whether a renewal was carried out. A release in doubt is asked for again.
//!
//! **Not promised:**
//!
//! - That nobody else has the lease while the leader's wall clock is wrong. The time to live counts on it. A
//!   clock that is set forward, or a new leader whose clock is ahead, ends a lease early. Then the token is
//!   the proof: whoever owns what is protected refuses smaller ones.
//! - That the holder learns at once that somebody deleted its lease by hand. It learns so at its next
//!   renewal.
//! - That the lease can be taken at once when its duration is over. The ensemble looks for such znodes now
//!   and then (Apache ZooKeeper: once a minute). And a renewal that came to nothing for its holder may have
//!   been carried out; then nobody has the lease for another duration.
//! - That it works with every Apache ZooKeeper. It must be 3.5.3 or newer, and its servers must run with
//!   `zookeeper.extendedTypesEnabled=true`. Otherwise the taking is refused as `Unimplemented`.
//!
//! Nobody else may write into the resource's znode: to the holder that looks like another grant.

use bytes::Bytes;
use bytestring::ByteString;
use node_session::request::{check, create, delete, set_data};
use node_session::{CreateMode, Event, Failure, Moment, Request, Response};
use node_wire::client::{Acl, ErrorCode, MultiResult, Stat};
use node_wire::ephemeral::MAX_TTL_MS;
use node_wire::ids::Zxid;

use crate::line::Token;
use crate::names::{Guid, child};
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::served::{Served, verdict};

/// Hexadecimal digits of a guid.
const GUID_DIGITS: usize = 32;

/// The request that makes a resource of which a lease can be taken. It may be refused because it is there.
#[must_use]
pub fn set_up(resource: &str) -> Request {
    Request::Create {
        path: resource.into(),
        data: Bytes::new(),
        acl: vec![Acl::world_anyone()],
        mode: CreateMode::Persistent,
    }
}

/// How long a lease lasts, as the ensemble counts it: whole milliseconds, from one to almost 35 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lasts {
    ttl_ms: i64,
}

/// A lease can't last so long, or so short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BadDuration(Moment);

impl std::fmt::Display for BadDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a lease lasts from 1 to {MAX_TTL_MS} ms, not {} ms", self.0.as_millis())
    }
}

impl std::error::Error for BadDuration {}

impl Lasts {
    /// So long. What is less than a millisecond is dropped.
    pub fn new(duration: Moment) -> Result<Self, BadDuration> {
        let ttl_ms = i64::try_from(duration.as_millis()).map_err(|_| BadDuration(duration))?;
        (1..=MAX_TTL_MS).contains(&ttl_ms).then_some(Self { ttl_ms }).ok_or(BadDuration(duration))
    }

    /// The duration.
    #[must_use]
    pub fn duration(self) -> Moment {
        Moment::from_millis(self.ttl_ms.unsigned_abs())
    }

    /// When the certainty ends that begins with a request.
    fn certain_from(self, sent: Moment) -> Moment {
        sent.saturating_add(self.duration() - self.duration() / 10)
    }
}

/// What somebody wants of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// The resource's znode, which must be there.
    pub resource: ByteString,
    /// How long the lease lasts.
    pub lasts: Lasts,
    /// What tells this contender from others. [`Guid::next`] must be unused as well, and so on.
    pub guid: Guid,
    /// What others can read of the holder.
    pub data: Bytes,
    /// Whether to wait while another one has the lease.
    pub wait: bool,
}

/// What a contender or a holder may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Let the duration begin anew. Nothing happens where the lease is not held. A renewal that is under way
    /// is not asked for twice.
    Renew,
    /// Give the lease back, or the wait for it up.
    Release,
    /// Want no news any more. A lease that is held stays until its duration is over.
    Leave,
}

/// Why nothing follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Another one has the lease.
    Taken,
    /// It was given back, or the wait for it was given up.
    Released,
    /// It is held for the rest of its duration, without news.
    Kept,
    /// It is not certain any more that nobody else has it.
    RanOut,
    /// Somebody deleted it or wrote into it, or wrote into the resource's znode.
    Deleted,
    /// There is no such resource.
    NoResource,
    /// The ensemble refused it for another reason.
    Refused(ErrorCode),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken => f.write_str("another one has the lease"),
            Self::Released => f.write_str("it was given back"),
            Self::Kept => f.write_str("it is kept until its duration is over"),
            Self::RanOut => f.write_str("its duration is over"),
            Self::Deleted => f.write_str("its znode was deleted or written by somebody else"),
            Self::NoResource => f.write_str("there is no such resource"),
            Self::Refused(code) => write!(f, "the ensemble refused it: {code:?}"),
        }
    }
}

impl std::error::Error for End {}

/// What a contender or a holder is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The lease is held.
    Held {
        /// It grows with every grant.
        token: Token,
        /// Nobody else has the lease before this moment.
        until: Moment,
    },
    /// The duration began anew.
    Renewed {
        /// Nobody else has the lease before this moment.
        until: Moment,
    },
    /// Another one has the lease. It is told once of each holder while it is waited for.
    Taken {
        /// The other one's data.
        data: Bytes,
        /// The other one's token.
        token: Token,
    },
    /// Nothing follows.
    Over(End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// It must be taken.
    Out,
    Taking,
    /// What became of a taking or a renewal must be looked at.
    Unsure,
    Looking,
    /// Another one has it: who must be read.
    Taken,
    Reading,
    /// It must be watched.
    Unwatched,
    Watching,
    Waiting,
    Held,
    Renewing,
    /// It is ours, and must be deleted.
    Unwanted,
    Deleting,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Take,
    Sync,
    LookForGrants,
    Look,
    Read,
    Watch,
    Renew,
    Delete,
}

/// A lease that is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Grant {
    /// The version of the resource's znode since this grant.
    number: i32,
    version: i32,
    until: Moment,
}

/// Somebody who wants a lease, or has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease<R = Sound> {
    wanted: Wanted,
    rules: R,
    asks: Asks<Purpose>,
    served: Served,
    stage: Stage,
    /// When the last taking or renewal was sent.
    sent: Moment,
    /// The version of the resource's znode, as read during a look.
    seen: Option<i32>,
    grant: Option<Grant>,
    /// The holder that was told of.
    other: Option<Token>,
    renew: bool,
    leaving: bool,
}

impl Lease {
    /// Takes the lease as soon as the session is served.
    #[must_use]
    pub fn new(wanted: Wanted) -> Self {
        Self::with_rules(wanted, Sound)
    }
}

impl<R: Rules> Lease<R> {
    /// One that decides by these rules.
    pub fn with_rules(wanted: Wanted, rules: R) -> Self {
        Self {
            wanted,
            rules,
            asks: Asks::default(),
            served: Served::default(),
            stage: Stage::Out,
            sent: Moment::ZERO,
            seen: None,
            grant: None,
            other: None,
            renew: false,
            leaving: false,
        }
    }

    /// True if the holder may act at this moment, by what it knows.
    pub fn may_act(&self, at: Moment) -> bool {
        self.certain_until().is_some_and(|until| at < until || !self.rules.ends_with_certainty())
    }

    /// Nobody else has the lease before this moment, while it is held.
    pub fn certain_until(&self) -> Option<Moment> {
        let held = !self.leaving && !matches!(self.stage, Stage::Unwanted | Stage::Deleting | Stage::Over);
        self.grant.filter(|_| held).map(|grant| grant.until)
    }

    fn path(&self) -> ByteString {
        child(&self.wanted.resource, "lease")
    }

    fn text(&self) -> Bytes {
        let mut text = format!("{:032x}:", self.wanted.guid.0).into_bytes();
        text.extend_from_slice(&self.wanted.data);
        text.into()
    }

    fn is_ours(&self, data: &Bytes) -> bool {
        guid_and_data(data).0 == Some(self.wanted.guid)
    }

    fn over(&mut self, why: End, effects: &mut Effects<Told>) {
        self.stage = Stage::Over;
        effects.tell(Told::Over(why));
    }

    /// There is no lease of ours.
    fn out(&mut self, effects: &mut Effects<Told>) {
        self.grant = None;
        if self.leaving {
            self.over(End::Released, effects);
        } else {
            self.stage = Stage::Out;
            self.wanted.guid = self.wanted.guid.next();
        }
    }

    fn called(&mut self, call: Call, effects: &mut Effects<Told>) {
        match call {
            Call::Renew => self.renew |= self.certain_until().is_some(),
            Call::Leave if self.certain_until().is_some() => self.over(End::Kept, effects),
            Call::Release | Call::Leave => {
                self.leaving = true;
                match (self.stage, self.grant) {
                    // In doubt is at most a renewal, and it does not matter any more.
                    (Stage::Held | Stage::Unsure, Some(_)) => self.stage = Stage::Unwanted,
                    (Stage::Out | Stage::Taken | Stage::Reading, _) => self.out(effects),
                    (Stage::Unwatched | Stage::Watching | Stage::Waiting, _) => self.out(effects),
                    _ => {}
                }
            }
        }
    }

    /// Ends the lease if it is not certain any more.
    fn mind_certainty(&mut self, now: Now, effects: &mut Effects<Told>) {
        if self.certain_until().is_some() && !self.may_act(now.at) {
            self.over(End::RanOut, effects);
        }
    }

    fn proceed(&mut self, now: Now, effects: &mut Effects<Told>) {
        if !self.served.is_ready() {
            return;
        }
        let (path, resource) = (self.path(), self.wanted.resource.clone());
        match (self.stage, self.grant) {
            (Stage::Out, _) => {
                self.sent = now.at;
                let mode = CreateMode::Ttl(self.wanted.lasts.ttl_ms);
                let ops = vec![create(path, self.text(), mode), set_data(resource, self.text(), -1)];
                self.ask(Stage::Taking, Request::Multi(ops), Purpose::Take, effects);
            }
            (Stage::Unsure, _) => self.look(effects),
            (Stage::Taken, _) => {
                self.ask(Stage::Reading, Request::GetData { path, watch: false }, Purpose::Read, effects);
            }
            (Stage::Unwatched, _) => {
                // Told of its end alone, and not of renewals.
                let request = Request::GetChildren { path, watch: true };
                self.ask(Stage::Watching, request, Purpose::Watch, effects);
            }
            (Stage::Held, Some(grant)) if self.renew => {
                self.sent = now.at;
                let ops = vec![check(resource, grant.number), set_data(path, self.text(), grant.version)];
                self.ask(Stage::Renewing, Request::Multi(ops), Purpose::Renew, effects);
            }
            (Stage::Unwanted, Some(grant)) => {
                let ops = vec![check(resource, grant.number), delete(path, -1)];
                self.ask(Stage::Deleting, Request::Multi(ops), Purpose::Delete, effects);
            }
            _ => {}
        }
    }

    fn ask(&mut self, stage: Stage, request: Request, purpose: Purpose, effects: &mut Effects<Told>) {
        self.stage = stage;
        self.asks.send(request, purpose, effects);
    }

    /// Reads the number of grants first, and then the lease. If the lease is ours by then, no other grant
    /// came since the number was read.
    fn look(&mut self, effects: &mut Effects<Told>) {
        let (path, resource) = (self.path(), self.wanted.resource.clone());
        self.seen = None;
        if self.rules.syncs_before_it_looks() {
            self.asks.send(Request::Sync { path: path.clone() }, Purpose::Sync, effects);
        }
        let request = Request::GetData { path: resource, watch: false };
        self.asks.send(request, Purpose::LookForGrants, effects);
        self.ask(Stage::Looking, Request::GetData { path, watch: false }, Purpose::Look, effects);
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
            (Purpose::Take, Stage::Taking, Ok(Response::Multi(results))) => match results[..] {
                [MultiResult::Create2 { stat, .. }, MultiResult::SetData { stat: resource }] => {
                    self.granted(now, stat.czxid, stat.version, resource.version, effects);
                }
                // An answer without Stats: the lease tells.
                _ => self.stage = Stage::Unsure,
            },
            (Purpose::Renew, Stage::Renewing, Ok(_)) => self.renewed(effects),
            (Purpose::Delete, Stage::Deleting, Ok(_)) => self.out(effects),
            (Purpose::LookForGrants, Stage::Looking, Ok(Response::Data { stat, .. })) => {
                self.seen = Some(stat.version);
            }
            (Purpose::Look, Stage::Looking, Ok(Response::Data { data, stat })) => match self.seen {
                Some(number) => self.looked(now, number, Some((&data, &stat)), effects),
                None => self.stage = Stage::Unsure,
            },
            (Purpose::Read, Stage::Reading, Ok(Response::Data { data, stat })) => {
                self.taken_by(&data, &stat, effects);
            }
            (Purpose::Watch, Stage::Watching, Ok(_)) => self.stage = Stage::Waiting,
            (_, _, Ok(_)) => {}
            (purpose, _, Err(failure)) => self.failed(now, purpose, failure, effects),
        }
    }

    fn failed(&mut self, now: Now, purpose: Purpose, failure: Failure, effects: &mut Effects<Told>) {
        match verdict(failure) {
            None => self.unanswered(now, purpose, failure, effects),
            Some(code) => self.refused(now, purpose, code, effects),
        }
    }

    fn unanswered(&mut self, now: Now, purpose: Purpose, failure: Failure, effects: &mut Effects<Told>) {
        self.served.pause(now);
        let doubt = failure == Failure::Unknown && self.rules.looks_for_its_own();
        match (purpose, self.stage) {
            (Purpose::Take, Stage::Taking) if doubt => self.stage = Stage::Unsure,
            (Purpose::Take, Stage::Taking) => self.out(effects),
            (Purpose::Look, Stage::Looking) => self.stage = Stage::Unsure,
            (Purpose::Read, Stage::Reading) => self.stage = Stage::Taken,
            (Purpose::Watch, Stage::Watching) => self.stage = Stage::Unwatched,
            (Purpose::Renew, Stage::Renewing) if self.leaving => self.stage = Stage::Unwanted,
            (Purpose::Renew, Stage::Renewing) if doubt => self.stage = Stage::Unsure,
            (Purpose::Renew, Stage::Renewing) => self.stage = Stage::Held,
            (Purpose::Delete, Stage::Deleting) => self.stage = Stage::Unwanted,
            _ => {}
        }
    }

    fn refused(&mut self, now: Now, purpose: Purpose, code: ErrorCode, effects: &mut Effects<Told>) {
        match (purpose, self.stage, code) {
            (Purpose::Take, Stage::Taking, ErrorCode::NodeExists) if self.leaving => self.out(effects),
            (Purpose::Take, Stage::Taking, ErrorCode::NodeExists) => self.stage = Stage::Taken,
            // It went meanwhile.
            (Purpose::Read, Stage::Reading, ErrorCode::NoNode) => self.out(effects),
            (Purpose::Watch, Stage::Watching, ErrorCode::NoNode) => self.out(effects),
            (Purpose::Look, Stage::Looking, ErrorCode::NoNode) => {
                self.looked(now, self.seen.unwrap_or_default(), None, effects);
            }
            (Purpose::Delete, Stage::Deleting, ErrorCode::NoNode | ErrorCode::BadVersion) => {
                self.out(effects);
            }
            (Purpose::Renew, Stage::Renewing, ErrorCode::NoNode | ErrorCode::BadVersion) => {
                self.not_ours(effects);
            }
            (Purpose::Take, Stage::Taking, ErrorCode::NoNode)
            | (Purpose::LookForGrants, Stage::Looking, ErrorCode::NoNode) => {
                self.over(if self.leaving { End::Released } else { End::NoResource }, effects);
            }
            (Purpose::Sync, ..) | (_, Stage::Over, _) => {}
            (_, _, code) => self.over(End::Refused(code), effects),
        }
    }

    /// A taking of ours was carried out.
    fn granted(&mut self, now: Now, czxid: Zxid, version: i32, number: i32, effects: &mut Effects<Told>) {
        let counts_from = if self.rules.counts_from_the_sending() { self.sent } else { now.at };
        let until = self.wanted.lasts.certain_from(counts_from);
        self.grant = Some(Grant { number, version, until });
        if self.leaving || until <= now.at {
            self.stage = Stage::Unwanted;
        } else {
            self.stage = Stage::Held;
            effects.tell(Told::Held { token: Token(czxid.0), until });
        }
    }

    /// A renewal was carried out.
    fn renewed(&mut self, effects: &mut Effects<Told>) {
        self.stage = if self.leaving { Stage::Unwanted } else { Stage::Held };
        self.renew = false;
        if let Some(grant) = &mut self.grant {
            grant.version = grant.version.wrapping_add(1);
            grant.until = self.wanted.lasts.certain_from(self.sent);
            if !self.leaving {
                effects.tell(Told::Renewed { until: grant.until });
            }
        }
    }

    /// What was ours is not any more.
    fn not_ours(&mut self, effects: &mut Effects<Told>) {
        if self.leaving {
            self.out(effects);
        } else {
            self.over(End::Deleted, effects);
        }
    }

    /// What was in doubt is known: the lease is like this.
    fn looked(&mut self, now: Now, number: i32, lease: Option<(&Bytes, &Stat)>, effects: &mut Effects<Told>) {
        let ours = lease.filter(|(data, _)| self.is_ours(data)).map(|(_, stat)| stat);
        match (self.grant, ours) {
            (None, Some(stat)) => self.granted(now, stat.czxid, stat.version, number, effects),
            (None, None) => self.out(effects),
            (Some(_), _) if self.leaving => self.stage = Stage::Unwanted,
            (Some(grant), Some(stat)) if stat.version == grant.version.wrapping_add(1) => {
                self.renewed(effects);
            }
            (Some(_), Some(_)) => self.stage = Stage::Held,
            (Some(_), None) => self.not_ours(effects),
        }
    }

    fn taken_by(&mut self, data: &Bytes, stat: &Stat, effects: &mut Effects<Told>) {
        let token = Token(stat.czxid.0);
        if self.other.replace(token) != Some(token) {
            effects.tell(Told::Taken { data: guid_and_data(data).1, token });
        }
        if self.wanted.wait {
            self.stage = Stage::Unwatched;
        } else {
            self.over(End::Taken, effects);
        }
    }

    fn event(&mut self, event: &Event, effects: &mut Effects<Told>) {
        // It may have been deleted and made by another while there was no connection.
        if event.path == self.path() && self.stage == Stage::Waiting {
            self.out(effects);
        }
    }

    fn lost(&mut self, effects: &mut Effects<Told>) {
        self.served.suspended();
        if self.stage == Stage::Waiting {
            self.out(effects);
        }
    }
}

/// The parts of a lease's data. What was not written by this recipe has no guid.
fn guid_and_data(text: &Bytes) -> (Option<Guid>, Bytes) {
    let digits = text.get(..GUID_DIGITS).filter(|_| text.get(GUID_DIGITS) == Some(&b':'));
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    match digits.and_then(|digits| u128::from_str_radix(digits, 16).ok()) {
        Some(guid) => (Some(Guid(guid)), text.slice(GUID_DIGITS + 1..)),
        None => (None, text.clone()),
    }
}

impl<R: Rules> Recipe for Lease<R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        // First of all: what is over does not come back, whatever is answered.
        self.mind_certainty(now, effects);
        if self.stage == Stage::Over {
            return;
        }
        match input {
            Input::Call(call) => self.called(call, effects),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            Input::Event(event) => self.event(&event, effects),
            Input::Connected { session } => self.served.connected(session),
            Input::Suspended => self.served.suspended(),
            Input::Lost => self.lost(effects),
            Input::Time => self.served.time(now),
        }
        self.proceed(now, effects);
    }

    fn leave() -> Call {
        Call::Leave
    }

    fn wakes_at(&self) -> Option<Moment> {
        let ends = self.certain_until().filter(|_| self.rules.ends_with_certainty());
        ends.into_iter().chain(self.served.wakes_at()).min()
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }
}

#[cfg(test)]
mod tests;
