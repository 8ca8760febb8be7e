//! One active process and others that stand by, with fencing: what Hadoop's `ActiveStandbyElector` does.
//!
//! Below a base znode, which must be there, are two: `ActiveStandbyElectorLock`, ephemeral, and
//! `ActiveBreadCrumb`, persistent. Names, data and order are Hadoop's, so that a process over this recipe can
//! stand beside one over Hadoop's.
//!
//! 1. Whoever creates the lock goes on. All others watch it and stand by; when it goes they create it.
//! 2. It reads the breadcrumb: the data of the process that was active last, unless that one left in order.
//!    If it is another's, the application must fence that process ([`Told::Fence`]): make sure that it does
//!    nothing any more.
//! 3. It writes its own data over the breadcrumb, at the version that it read.
//! 4. It has the application become active ([`Told::BecomeActive`]).
//!
//! **Why this is right.** Everyone wrote the breadcrumb before it acted, under its lock. The next one reads
//! after it created its own lock, hence after all that the one before wrote: a session's changes end with its
//! lock. So it fences whoever may still act. If somebody becomes active in between, because the lock was lost
//! meanwhile, the version has changed and the write is refused. Then the lock is given up, for what was
//! fenced may be the wrong one.
//!
//! **Lost answers.** After each reconnection the lock is looked at before anything else; behind a sync where
//! its creation is in doubt, so that it is not made after it was looked at. A lock whose `ephemeralOwner` is
//! this session is our own, whatever the answer to its creation would have been. A write of the breadcrumb
//! that is in doubt is read again, behind a sync. A deletion of the lock that is in doubt is looked at behind
//! a sync and not repeated blindly: the lock that is there may be the next one's.
//!
//! **Better than Hadoop.** A process that is cut off is told [`Told::Neutral`], as in Hadoop, and may go on.
//! Hadoop leaves it to the application how long. Here it is told [`Told::StandDown`] at the latest when its
//! session's certainty ends, before anybody else can have the lock. So two are active at a time only if one
//! of them does not obey; against that one there is fencing, and the token.
//!
//! **A term that lost its certainty is over for good**, also where the session turns out to live. The lock is
//! given up then, and created again after a pause if nobody else did. Else the process would become active a
//! second time with the same token, and what it sent in its first term could not be told from what it sends
//! in its second. The price is a failover where the ensemble was away for nearly a session's time-out. The
//! breadcrumb stays, so the next one fences.
//!
//! **Not promised.** That a lock which somebody deletes by hand ends only the term that it belonged to: the
//! lock has one name, so a process that gives its own up, and has not heard that it is gone, deletes the next
//! one's. Fencing and the token hold all the same. (Hadoop ends its session instead, which holds more here.)
//! Order: when the lock goes, all who stand by try to create it (Hadoop's herd, which is two or three). That
//! fencing worked: the application says so. Data must be different for processes that are different to
//! fencing, because a breadcrumb with the own data is not fenced (so it is in Hadoop).

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{CreateMode, Event, Failure, Moment, Request, Response};
use node_wire::client::{Acl, ErrorCode, EventType, Stat};
use node_wire::ids::Zxid;

use crate::line::{Left, Token};
use crate::names::child;
use crate::recipe::{Ask, Asks, Effects, Input, Now, Recipe};
use crate::rules::{Rules, Sound};
use crate::served::{Served, verdict};

mod release;

/// The name of the lock, as in Hadoop.
pub const LOCK: &str = "ActiveStandbyElectorLock";

/// The name of the breadcrumb, as in Hadoop.
pub const BREADCRUMB: &str = "ActiveBreadCrumb";

/// How a process behaves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// How long before the certainty ends the process must stand down, so that it can do so in time: at most
    /// half of the session's time-out as the ensemble grants it, as [`Left::NoticeTooLong`] says.
    pub notice: Moment,
    /// How long the application may take to fence.
    pub fence_within: Moment,
    /// How long the application may take to become active.
    pub activate_within: Moment,
    /// The wait before the lock is created again by a process that gave it up, so that others come before it.
    pub pause: Moment,
}

impl Default for Options {
    fn default() -> Self {
        let within = Moment::from_secs(30);
        let pause = Moment::from_secs(1);
        Self { notice: Moment::ZERO, fence_within: within, activate_within: within, pause }
    }
}

/// What the application says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// What came of [`Told::Fence`].
    Fenced {
        /// Its token.
        token: Token,
        /// True if the other process certainly does nothing any more.
        ok: bool,
    },
    /// What came of [`Told::BecomeActive`].
    BecameActive {
        /// Its token.
        token: Token,
        /// True if the application is active.
        ok: bool,
    },
    /// Leave for good.
    Quit {
        /// True if the next one must fence this process. False says that it does nothing any more.
        need_fence: bool,
    },
}

/// Why a process must not be active any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It is not certain any more that nobody else has the lock.
    Uncertain,
    /// The session was lost.
    SessionLost,
    /// Somebody deleted the lock.
    Deleted,
    /// The application did not become active, or not in time.
    Failed,
    /// The application quits.
    Quit,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Uncertain => {
                "the ensemble was not reached, or this process did not run, for nearly the session's time-out"
            }
            Self::SessionLost => "the session was lost",
            Self::Deleted => "somebody deleted the lock",
            Self::Failed => "it did not become active",
            Self::Quit => "it leaves",
        })
    }
}

/// What the application is told.
///
/// After [`Told::BecomeActive`] comes one [`Told::StandDown`] before the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Another process may still be active. Fence it, and answer [`Call::Fenced`].
    Fence {
        /// The lock's token, which the answer repeats. Whatever is protected may refuse smaller ones from
        /// now.
        token: Token,
        /// The data of the process to be fenced.
        data: Bytes,
        /// The version of the breadcrumb that holds it.
        version: i32,
    },
    /// Become active, and answer [`Call::BecameActive`].
    BecomeActive(Token),
    /// The active process has the lock still, after [`Told::Neutral`]. No answer is waited for.
    Resumed(Token),
    /// Another process has the lock.
    Standby {
        /// Its data.
        active: Bytes,
    },
    /// Nothing is known of the lock now. An active process may go on until it is told to stand down.
    Neutral,
    /// Stop being active, at once.
    StandDown {
        /// Of which term.
        token: Token,
        /// Why.
        why: Reason,
    },
    /// Nothing follows.
    Over(Left),
}

/// How far a process came that has the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// The breadcrumb must be read; behind a sync, where a write of it is in doubt.
    Unread {
        doubt: bool,
    },
    Reading,
    /// Another's breadcrumb was read, and the application is not told yet.
    Unfenced {
        data: Bytes,
        version: i32,
    },
    Fencing {
        version: i32,
        until: Moment,
    },
    /// The breadcrumb must be written at this version, or created.
    Unwritten {
        version: Option<i32>,
    },
    Writing,
    /// It is written, and the application is not told yet.
    Written,
    Activating {
        until: Moment,
    },
    Active,
}

/// How far a process came that gives the lock up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Release {
    /// It is in doubt whether the lock is ours.
    Unsure,
    Looking,
    /// It is ours.
    Sure,
    ReadingCrumb,
    Deleting,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// The lock must be created. `doubt` if it may have been already.
    Out { doubt: bool },
    /// It is being created.
    Joining,
    /// Another has it.
    Standby,
    /// It is ours.
    Holder { token: Token, step: Step },
    /// It is being given up; with the breadcrumb, if that is ours and `crumb` is true.
    Releasing { crumb: bool, step: Release },
    /// Over.
    Gone,
}

/// Whether the lock must be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Look {
    Due,
    Open,
    /// Open, to leave a watch; nothing waits for it.
    Beside,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Join,
    Sync,
    Look,
    Read,
    Write,
    ReleaseLook,
    ReleaseRead,
    Release { crumb: bool },
}

/// What the application knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Known {
    Neutral,
    Active,
    /// That another has the lock which was created then.
    Standby(Zxid),
}

/// A process that is active or stands by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ActiveStandby<R = Sound> {
    base: ByteString,
    data: Bytes,
    options: Options,
    rules: R,
    asks: Asks<Purpose>,
    served: Served,
    role: Role,
    look: Look,
    known: Known,
    /// When the certainty ends, as known at the last step.
    until: Option<Moment>,
    /// The lock is not created before.
    not_before: Option<Moment>,
    leaving: Option<Left>,
}

impl ActiveStandby {
    /// A process that joins as soon as the session is served. `data` tells others whom to fence.
    #[must_use]
    pub fn join(base: impl Into<ByteString>, data: impl Into<Bytes>, options: Options) -> Self {
        Self::with_rules(base, data, options, Sound)
    }
}

impl<R: Rules> ActiveStandby<R> {
    /// One that decides by these rules.
    pub fn with_rules(
        base: impl Into<ByteString>,
        data: impl Into<Bytes>,
        options: Options,
        rules: R,
    ) -> Self {
        Self {
            base: base.into(),
            data: data.into(),
            options,
            rules,
            asks: Asks::default(),
            served: Served::default(),
            role: Role::Out { doubt: false },
            look: Look::Done,
            known: Known::Neutral,
            until: None,
            not_before: None,
            leaving: None,
        }
    }

    /// The term's token, from [`Told::BecomeActive`] to [`Told::StandDown`].
    pub fn term(&self) -> Option<Token> {
        match &self.role {
            Role::Holder { token, step: Step::Activating { .. } | Step::Active } => Some(*token),
            _ => None,
        }
    }

    /// True if the process may act as the active one at this moment, by what it knows.
    pub fn may_act(&self, at: Moment) -> bool {
        let certain = !self.rules.ends_with_certainty() || self.until.is_some_and(|until| at < until);
        self.term().is_some() && certain
    }

    /// True once the application quits, or the ensemble refuses what must be done.
    pub fn quits(&self) -> bool {
        self.leaving.is_some()
    }

    fn lock(&self) -> ByteString {
        child(&self.base, LOCK)
    }

    fn breadcrumb(&self) -> ByteString {
        child(&self.base, BREADCRUMB)
    }

    fn is_own(&self, stat: &Stat) -> bool {
        self.rules.knows_its_lock() && Some(stat.ephemeral_owner) == self.served.session()
    }

    fn is_certain(&self, now: Now) -> bool {
        !self.rules.ends_with_certainty() || self.until.is_some_and(|until| now.at < until)
    }

    fn called(&mut self, now: Now, call: Call, effects: &mut Effects<Told>) {
        match (call, &mut self.role) {
            (Call::Fenced { token, ok }, Role::Holder { token: own, step: step @ Step::Fencing { .. } })
                if token == *own =>
            {
                match (ok, &*step) {
                    (true, Step::Fencing { version, .. }) => {
                        *step = Step::Unwritten { version: Some(*version) }
                    }
                    _ => self.give_up(now),
                }
            }
            (
                Call::BecameActive { token, ok },
                Role::Holder { token: own, step: step @ Step::Activating { .. } },
            ) if token == *own => {
                if ok {
                    *step = Step::Active;
                } else {
                    self.stand_down(Reason::Failed, effects);
                    self.give_up(now);
                }
            }
            (Call::Quit { need_fence }, _) if self.leaving.is_none() => {
                self.quit(Left::Resigned, need_fence, effects);
            }
            _ => {}
        }
    }

    fn quit(&mut self, why: Left, need_fence: bool, effects: &mut Effects<Told>) {
        self.leaving = Some(why);
        match &self.role {
            Role::Holder { .. } => {
                self.stand_down(Reason::Quit, effects);
                self.role = Role::Releasing { crumb: !need_fence, step: Release::Sure };
            }
            Role::Out { doubt: true } => {
                self.role = Role::Releasing { crumb: false, step: Release::Unsure };
            }
            Role::Out { .. } | Role::Standby => self.over(why, effects),
            Role::Joining | Role::Releasing { .. } | Role::Gone => {}
        }
    }

    /// The lock is given up, to be created again after a pause. The breadcrumb stays.
    fn give_up(&mut self, now: Now) {
        self.not_before = Some(now.at + self.options.pause);
        self.role = Role::Releasing { crumb: false, step: Release::Sure };
    }

    fn stand_down(&mut self, why: Reason, effects: &mut Effects<Told>) {
        if let Some(token) = self.term() {
            self.known = Known::Neutral;
            effects.tell(Told::StandDown { token, why });
        }
    }

    fn neutral(&mut self, effects: &mut Effects<Told>) {
        if self.known != Known::Neutral {
            self.known = Known::Neutral;
            effects.tell(Told::Neutral);
        }
    }

    fn over(&mut self, why: Left, effects: &mut Effects<Told>) {
        self.role = Role::Gone;
        effects.tell(Told::Over(why));
    }

    fn event(&mut self, event: &Event, effects: &mut Effects<Told>) {
        if event.path != self.lock() {
            return;
        }
        let deleted = event.kind == EventType::NodeDeleted;
        match self.role {
            Role::Holder { .. } if deleted && !self.rules.minds_its_own() => {}
            Role::Holder { .. } if deleted => {
                self.stand_down(Reason::Deleted, effects);
                self.role = Role::Out { doubt: false };
            }
            Role::Standby if deleted => self.role = Role::Out { doubt: false },
            // The watch is spent.
            Role::Holder { .. } | Role::Standby if self.look == Look::Done => self.look = Look::Due,
            _ => {}
        }
    }

    fn suspended(&mut self, effects: &mut Effects<Told>) {
        self.neutral(effects);
        if matches!(self.role, Role::Holder { .. } | Role::Standby) {
            self.look = Look::Due;
        }
    }

    fn lost(&mut self, effects: &mut Effects<Told>) {
        self.look = Look::Done;
        if !self.rules.ends_with_the_session() && self.term().is_some() {
            return;
        }
        self.stand_down(Reason::SessionLost, effects);
        self.neutral(effects);
        match self.leaving {
            _ if self.role == Role::Gone => {}
            Some(why) => self.over(why, effects),
            None => self.role = Role::Out { doubt: false },
        }
    }

    /// What time brings: deadlines of the application, and the end of certainty.
    fn mind_time(&mut self, now: Now, effects: &mut Effects<Told>) {
        self.not_before = self.not_before.filter(|at| now.at < *at);
        let Role::Holder { step, .. } = &self.role else { return };
        let why = match step {
            Step::Activating { .. } | Step::Active if !self.is_certain(now) => Reason::Uncertain,
            Step::Fencing { until, .. } | Step::Activating { until } if *until <= now.at => Reason::Failed,
            _ => return,
        };
        self.stand_down(why, effects);
        self.give_up(now);
    }

    /// Does what can be done.
    fn proceed(&mut self, now: Now, effects: &mut Effects<Told>) {
        if !self.served.is_ready() {
            return;
        }
        match &self.role {
            Role::Releasing { .. } => self.release(effects),
            Role::Gone | Role::Joining => {}
            Role::Out { .. } if self.not_before.is_some() && self.look != Look::Due => {}
            _ if self.look == Look::Due => {
                self.look = Look::Open;
                self.send_look(effects);
            }
            _ if self.look == Look::Open => {}
            Role::Out { .. } if self.look == Look::Done => self.create(effects),
            Role::Out { .. } | Role::Standby => {}
            Role::Holder { .. } => self.go_on(now, effects),
        }
    }

    fn create(&mut self, effects: &mut Effects<Told>) {
        let request = Request::Create {
            path: self.lock(),
            data: self.data.clone(),
            acl: vec![Acl::world_anyone()],
            mode: CreateMode::Ephemeral,
        };
        self.role = Role::Joining;
        self.asks.send(request, Purpose::Join, effects);
    }

    fn send_look(&mut self, effects: &mut Effects<Told>) {
        let doubt = self.role == Role::Out { doubt: true };
        if doubt && self.rules.syncs_before_it_looks() {
            self.asks.send(Request::Sync { path: self.lock() }, Purpose::Sync, effects);
        }
        // Where there is no lock this leaves no watch, which an exists would.
        let request = Request::GetData { path: self.lock(), watch: true };
        self.asks.send(request, Purpose::Look, effects);
    }

    /// The next step of a process that has the lock.
    fn go_on(&mut self, now: Now, effects: &mut Effects<Told>) {
        let certain = self.is_certain(now);
        let (lock_data, breadcrumb) = (self.data.clone(), self.breadcrumb());
        let Role::Holder { token, step } = &mut self.role else { return };
        match step {
            Step::Unread { doubt } => {
                if *doubt && self.rules.syncs_before_it_looks() {
                    self.asks.send(Request::Sync { path: breadcrumb.clone() }, Purpose::Sync, effects);
                }
                *step = Step::Reading;
                let request = Request::GetData { path: breadcrumb, watch: false };
                self.asks.send(request, Purpose::Read, effects);
            }
            Step::Unfenced { data, version } if certain => {
                effects.tell(Told::Fence { token: *token, data: data.clone(), version: *version });
                let until = now.at + self.options.fence_within;
                *step = Step::Fencing { version: *version, until };
            }
            Step::Unwritten { version } => {
                let by_version = self.rules.breadcrumb_by_version();
                let request = match *version {
                    Some(version) => Request::SetData {
                        path: breadcrumb,
                        data: lock_data,
                        version: if by_version { version } else { -1 },
                    },
                    None => Request::Create {
                        path: breadcrumb,
                        data: lock_data,
                        acl: vec![Acl::world_anyone()],
                        mode: CreateMode::Persistent,
                    },
                };
                *step = Step::Writing;
                self.asks.send(request, Purpose::Write, effects);
            }
            Step::Written if certain => {
                self.known = Known::Active;
                effects.tell(Told::BecomeActive(*token));
                *step = Step::Activating { until: now.at + self.options.activate_within };
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
        match purpose {
            Purpose::Sync => {}
            Purpose::Join => self.joined(now, answer, effects),
            Purpose::Look => self.looked(now, answer, effects),
            Purpose::Read => self.read(now, answer, effects),
            Purpose::Write => self.written(now, answer, effects),
            Purpose::ReleaseLook => self.release_looked(now, answer, effects),
            Purpose::ReleaseRead => self.release_read(now, answer, effects),
            Purpose::Release { crumb } => self.released(now, crumb, answer, effects),
        }
    }

    fn joined(&mut self, now: Now, answer: Result<Response, Failure>, effects: &mut Effects<Told>) {
        if self.role != Role::Joining {
            return;
        }
        let refusal = answer.as_ref().err().copied().and_then(verdict);
        match answer {
            Ok(Response::Created { stat, .. }) => self.made(&stat, effects),
            Err(Failure::Unknown) if self.leaving.is_some() => {
                self.role = Role::Releasing { crumb: false, step: Release::Unsure };
            }
            Err(Failure::Unknown) => {
                self.role = Role::Out { doubt: true };
                self.look = Look::Due;
                self.served.pause(now);
            }
            _ if self.leaving.is_some() => self.over(self.leaving.unwrap_or(Left::Resigned), effects),
            _ if refusal == Some(ErrorCode::NodeExists) => {
                self.role = Role::Out { doubt: false };
                self.look = Look::Due;
            }
            _ if refusal == Some(ErrorCode::NoNode) => self.over(Left::NoResource, effects),
            _ => match refusal {
                Some(code) => self.over(Left::Refused(code), effects),
                None => {
                    self.role = Role::Out { doubt: false };
                    self.served.pause(now);
                }
            },
        }
    }

    fn made(&mut self, stat: &Stat, effects: &mut Effects<Told>) {
        match self.leaving {
            Some(why) if !self.rules.deletes_what_was_made_after_it_left() => self.over(why, effects),
            Some(_) => self.role = Role::Releasing { crumb: false, step: Release::Sure },
            None => {
                self.hold(stat);
                self.look = Look::Beside;
                self.send_look(effects);
            }
        }
    }

    fn hold(&mut self, stat: &Stat) {
        self.role = Role::Holder { token: Token(stat.czxid.0), step: Step::Unread { doubt: false } };
    }

    fn looked(&mut self, now: Now, answer: Result<Response, Failure>, effects: &mut Effects<Told>) {
        self.look = Look::Done;
        if !matches!(self.role, Role::Out { .. } | Role::Standby | Role::Holder { .. }) {
            return;
        }
        match answer {
            Ok(Response::Data { stat, .. }) if self.is_own(&stat) => self.recognized(&stat, effects),
            Ok(Response::Data { data, stat }) => {
                self.stand_down(Reason::Deleted, effects);
                self.role = Role::Standby;
                if self.known != Known::Standby(stat.czxid) {
                    self.known = Known::Standby(stat.czxid);
                    effects.tell(Told::Standby { active: data });
                }
            }
            Ok(_) => {}
            Err(failure) => match verdict(failure) {
                None => {
                    self.look = Look::Due;
                    self.served.pause(now);
                }
                Some(ErrorCode::NoNode) => {
                    self.stand_down(Reason::Deleted, effects);
                    self.role = Role::Out { doubt: false };
                }
                Some(code) => self.refused(code, effects),
            },
        }
    }

    fn recognized(&mut self, stat: &Stat, effects: &mut Effects<Told>) {
        match self.role {
            Role::Holder { token, .. } if token == Token(stat.czxid.0) => {
                if self.term().is_some() && self.known == Known::Neutral {
                    self.known = Known::Active;
                    effects.tell(Told::Resumed(token));
                }
            }
            _ => {
                self.stand_down(Reason::Deleted, effects);
                self.hold(stat);
            }
        }
    }

    /// The ensemble refuses what must be done: there is no sense in going on.
    fn refused(&mut self, code: ErrorCode, effects: &mut Effects<Told>) {
        let why = *self.leaving.get_or_insert(Left::Refused(code));
        match self.role {
            Role::Holder { .. } => {
                self.stand_down(Reason::Failed, effects);
                self.role = Role::Releasing { crumb: false, step: Release::Sure };
            }
            _ => self.over(why, effects),
        }
    }

    fn read(&mut self, now: Now, answer: Result<Response, Failure>, effects: &mut Effects<Told>) {
        let Role::Holder { step: step @ Step::Reading, .. } = &mut self.role else { return };
        match answer {
            Ok(Response::Data { data, stat }) => {
                *step = if data == self.data || !self.rules.fences() {
                    Step::Unwritten { version: Some(stat.version) }
                } else {
                    Step::Unfenced { data, version: stat.version }
                };
            }
            Ok(_) => {}
            Err(failure) => match verdict(failure) {
                None => {
                    *step = Step::Unread { doubt: true };
                    self.served.pause(now);
                }
                Some(ErrorCode::NoNode) => *step = Step::Unwritten { version: None },
                Some(code) => self.refused(code, effects),
            },
        }
    }

    fn written(&mut self, now: Now, answer: Result<Response, Failure>, effects: &mut Effects<Told>) {
        let Role::Holder { step: step @ Step::Writing, .. } = &mut self.role else { return };
        match answer {
            Ok(_) => *step = Step::Written,
            Err(failure) => match verdict(failure) {
                None => {
                    *step = Step::Unread { doubt: true };
                    self.served.pause(now);
                }
                // Somebody else was active meanwhile.
                Some(ErrorCode::BadVersion | ErrorCode::NodeExists | ErrorCode::NoNode) => self.give_up(now),
                Some(code) => self.refused(code, effects),
            },
        }
    }
}

impl<R: Rules> Recipe for ActiveStandby<R> {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        self.until = now.certain_until.map(|until| until.saturating_sub(self.options.notice));
        self.served.follow(now, &input);
        match input {
            Input::Call(call) => self.called(now, call, effects),
            Input::Answered { ask, answer } => self.answered(now, ask, answer, effects),
            Input::Event(event) => self.event(&event, effects),
            Input::Connected { .. } => {
                if !now.grants(self.options.notice) && self.leaving.is_none() {
                    self.quit(Left::NoticeTooLong, true, effects);
                }
                if let Role::Releasing { step: step @ Release::Sure, .. } = &mut self.role {
                    *step = Release::Unsure;
                }
            }
            Input::Suspended => self.suspended(effects),
            Input::Lost => self.lost(effects),
            Input::Time => {}
        }
        self.mind_time(now, effects);
        self.proceed(now, effects);
    }

    fn leave() -> Call {
        Call::Quit { need_fence: true }
    }

    fn wakes_at(&self) -> Option<Moment> {
        let deadlines = match &self.role {
            Role::Holder { step: Step::Fencing { until, .. }, .. } => [Some(*until), None],
            Role::Holder { step: Step::Activating { until }, .. } => [Some(*until), self.until],
            Role::Holder { step: Step::Active, .. } => [self.until, None],
            Role::Out { .. } => [self.not_before, None],
            _ => [None, None],
        };
        deadlines.into_iter().flatten().chain(self.served.wakes_at()).min()
    }

    fn wants_certainty(&self) -> bool {
        matches!(self.role, Role::Holder { .. })
    }

    fn is_over(&self) -> bool {
        self.role == Role::Gone
    }
}

#[cfg(test)]
mod tests;
