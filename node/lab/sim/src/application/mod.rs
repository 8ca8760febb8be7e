//! Applications: clients that lead, or wait for it, by the recipe that the async client runs.
//!
//! An application is a recipe ([`node_recipes::election`]), a session ([`node_session::Session`]) and watches
//! ([`node_session::Watches`]), and this is their driver: it owes the recipe what
//! [`node_recipes::recipe`] says. Like the machines that it drives it owns no socket and no clock. It is told
//! what arrives and when, and says in [`Out`] what is to be done. Everything travels as frames of the client
//! port, through the real members.
//!
//! - [`connection`]: what was asked over a connection, and what answers are for.
//! - [`actions`]: what an application does beside its recipe, and what befalls it.
//! - [`rules`]: the rules of the recipe, with a planted bug or without.

mod actions;
mod connection;
mod rules;

use std::collections::VecDeque;

use bytes::Bytes;
use bytestring::ByteString;
use lab_apps::elections::{RESOURCE, ticket};
use lab_apps::mutants::Mutant;
use node_recipes::election::{Call, Election, Options, Status};
use node_recipes::line::{Place, Ticket};
use node_recipes::names::{Guid, Intent};
use node_recipes::recipe::{Ask, Effects, Input, Now, Recipe};
use node_session::session::{self, Credentials, Opened, Session, Unopened};
use node_session::watches::Owner;
use node_session::{CreateMode, Effect, Failure, Moment, Request, Response, State, Watches};
use node_wire::client::{Acl, ErrorCode, EventType, OpCode, ReplyHeader, WatcherEvent, XID_PING, XID_WATCH};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::Reader;

use crate::client;
use crate::network::HostIndex;
use crate::outcome::Rule;
pub(crate) use actions::Action;
use connection::{Connection, Dial, Purpose};
use harness_world::dice::{Chance, Dice};
use rules::RecipeRules;

/// Heartbeats within a time-out, and pings.
const BEATS: u32 = 4;
const PINGS: u32 = 3;

/// Before a request comes again that was refused or lost.
const PAUSE: Moment = Moment::from_millis(20);

/// Between two times that a recipe is told that time passed.
const INSISTS: Moment = Moment::from_millis(5);

/// How often an application stands still right behind the news that it is connected.
const FALTERS: Chance = Chance(600);

/// How often a connection is lost behind what a recipe asked, and often before the answer.
const FORSAKEN: Chance = Chance(400);

/// How often an application does not stand any more when the world is healed.
const GOES: Chance = Chance(2_500);

/// What the applications of a world have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Members that they may use.
    pub(crate) members: usize,
    /// The time-out that they ask for.
    pub(crate) timeout: Moment,
    /// What usually lies between two actions.
    pub(crate) actions: Moment,
    /// The longest way to a member.
    pub(crate) way: Moment,
    /// They lock, and do not stand for election.
    pub(crate) locks: bool,
    /// The bug of their recipe.
    pub(crate) mutant: Option<Mutant>,
}

/// Something that is to be done, or that somebody wants to know.
#[derive(Clone, Debug)]
pub(crate) enum Out {
    /// Connect to this member.
    Dial(HostIndex),
    /// Send a frame on this connection.
    Send(usize, Bytes),
    /// Close this connection; or leave it, and nobody is told.
    HangUp(usize, bool),
    /// The recipe told this.
    Told(Status),
    /// A watch of one that stands saw something that is not its own. Where the watch is of the line it was
    /// left behind this state.
    Saw(EventType, ByteString, Option<Zxid>),
    /// A change was acknowledged.
    Acknowledged(Zxid),
    /// It got what it must not get.
    Wrong(Rule, String),
}

/// What an application stands with.
#[derive(Clone, Debug)]
struct Candidacy {
    number: u64,
    recipe: Election<RecipeRules>,
}

/// An application.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    number: usize,
    manner: Manner,
    session: Session,
    watches: Watches,
    candidacy: Option<Candidacy>,
    /// Candidacies so far.
    candidacies: u64,
    dial: Option<Dial>,
    line: Option<Connection>,
    xid: i32,
    /// When the next heartbeat is sent, while any is wanted.
    beat_at: Option<Moment>,
    /// When it stands again.
    stand_at: Option<Moment>,
    /// When it does something; never when the world is healed.
    action_at: Option<Moment>,
    /// What it does then, if that was chosen before.
    next_action: Option<Action>,
    /// Not before this moment its recipe is told again that time passed.
    told_time: Moment,
    /// Behind which state the line is watched.
    line_seen: Option<Zxid>,
    /// It stands no more, and ends its session.
    leaving: bool,
    dice: Dice,
    out: VecDeque<Out>,
}

fn new_session(manner: Manner, dice: &mut Dice) -> Session {
    let servers = (0..manner.members).map(|host| host.to_string().into()).collect();
    let options =
        session::Options { timeout: manner.timeout, read_only: false, resume: None, seed: dice.seed() };
    Session::new(servers, options)
}

impl Application {
    /// One that was never connected, and does something for the first time in a while.
    pub(crate) fn new(number: usize, manner: Manner, mut dice: Dice) -> Self {
        Self {
            number,
            manner,
            session: new_session(manner, &mut dice),
            watches: Watches::default(),
            candidacy: None,
            candidacies: 0,
            dial: None,
            line: None,
            xid: 0,
            beat_at: None,
            stand_at: Some(Moment::ZERO),
            action_at: Some(around(&mut dice, manner.actions * 2)),
            next_action: None,
            told_time: Moment::ZERO,
            line_seen: None,
            leaving: false,
            dice,
            out: VecDeque::new(),
        }
    }

    /// The next thing that is to be done.
    pub(crate) fn out(&mut self) -> Option<Out> {
        self.out.pop_front()
    }

    /// Its own chance.
    pub(crate) fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    /// What makes a member believe that a session is its own.
    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.session.credentials()
    }

    /// The session that it has not ended itself, and before which moment nobody can have.
    pub(crate) fn certain(&self) -> Option<(SessionId, Moment)> {
        let until = self.session.certain_until().filter(|_| !self.leaving)?;
        Some((self.credentials()?.id, until))
    }

    /// Its connection, or that of its attempt to get one.
    pub(crate) fn conn(&self) -> Option<usize> {
        let dialled = self.dial.as_ref().and_then(|dial| dial.conn);
        self.line.as_ref().map(|line| line.conn).or(dialled)
    }

    /// The znode that it stands with.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.candidacy.as_ref()?.recipe.place()
    }

    /// True if it may act as the one that leads, by what it knows at this moment.
    pub(crate) fn may_act(&self, at: Moment) -> bool {
        self.candidacy.as_ref().is_some_and(|candidacy| candidacy.recipe.may_act(at))
    }

    /// True while it wants to lead.
    pub(crate) fn stands(&self) -> bool {
        !self.leaving
    }

    /// True when its session was ended as it should.
    pub(crate) fn is_gone(&self) -> bool {
        *self.session.state() == State::Closed
    }

    /// The time-out of its session.
    fn timeout(&self) -> Moment {
        match self.session.state() {
            State::Connected { timeout, .. } => *timeout,
            _ => self.manner.timeout,
        }
    }

    fn is_beating(&self) -> bool {
        self.line.is_some()
            && self.candidacy.as_ref().is_some_and(|candidacy| candidacy.recipe.wants_certainty())
    }

    /// When it looks at the clock.
    pub(crate) fn alarm(&self) -> Option<Moment> {
        if self.is_gone() {
            return None;
        }
        let dial = self.dial.as_ref().map(|dial| dial.until);
        let recipe = self.candidacy.as_ref().and_then(|candidacy| candidacy.recipe.wakes_at());
        let recipe = recipe.map(|at| at.max(self.told_time));
        let of_line = self.line.as_ref().map(|line| {
            let quiet = (line.pinged + self.timeout() / PINGS).min(line.heard + self.timeout() * 2 / PINGS);
            quiet.min(self.stand_at.unwrap_or(Moment::MAX)).min(self.beat_at.unwrap_or(Moment::MAX))
        });
        [dial, recipe, of_line, self.session.wakes_at(), self.action_at].into_iter().flatten().min()
    }

    // What the world tells.

    /// A member takes its connection.
    pub(crate) fn is_taken(&mut self, now: Moment, conn: usize) {
        let Some(dial) = &mut self.dial else { return };
        (dial.conn, dial.sent) = (Some(conn), now);
        self.out.push_back(Out::Send(conn, dial.frame()));
    }

    /// Nobody takes it; it hears so at this moment.
    pub(crate) fn is_refused(&mut self, at: Moment) {
        if let Some(dial) = &mut self.dial {
            dial.until = dial.until.min(at);
        }
    }

    /// A frame arrived.
    pub(crate) fn hears(&mut self, now: Moment, conn: usize, frame: Bytes) {
        if self.dial.as_ref().is_some_and(|dial| dial.conn == Some(conn)) {
            self.is_greeted(now, conn, frame);
        } else if let Some(line) = self.line.as_mut().filter(|line| line.conn == conn) {
            line.heard = now;
            let (header, body) = client::reply(frame);
            match header.xid {
                XID_WATCH => self.is_told(now, body),
                XID_PING => {}
                _ => self.is_answered(now, header, body),
            }
        }
        self.goes_on(now);
    }

    /// A connection is gone.
    pub(crate) fn is_cut(&mut self, now: Moment, conn: usize) {
        if self.dial.as_ref().is_some_and(|dial| dial.conn == Some(conn)) {
            self.dial = None;
            self.step(now, session::Input::Dialled(Err(Unopened::Failed)));
        } else if self.line.as_ref().is_some_and(|line| line.conn == conn) {
            self.answer_open(now);
            self.step(now, session::Input::Broken);
        }
        self.goes_on(now);
    }

    /// It looks at the clock. What it does then beside its recipe, if anything.
    pub(crate) fn wake(&mut self, now: Moment) -> Option<Action> {
        if self.dial.take_if(|dial| dial.until <= now).is_some_and(|dial| self.lets_go(&dial)) {
            self.step(now, session::Input::Dialled(Err(Unopened::Failed)));
        }
        self.minds_silence(now);
        if self.session.wakes_at().is_some_and(|at| at <= now) {
            self.step(now, session::Input::Time);
        }
        let due = |candidacy: &Candidacy| candidacy.recipe.wakes_at().is_some_and(|at| at <= now);
        if self.told_time <= now && self.candidacy.as_ref().is_some_and(due) {
            // One with a bug may not mind it, and asks for the same moment for ever.
            self.told_time = now + INSISTS;
            self.give(now, Input::Time);
        }
        if self.line.is_some() && self.stand_at.take_if(|at| *at <= now).is_some() {
            let (data, acl) = (Bytes::new(), vec![Acl::world_anyone()]);
            let mode = CreateMode::Persistent;
            self.ask(now, Purpose::Ground, Request::Create { path: RESOURCE.into(), data, acl, mode });
        }
        if self.is_beating() && self.beat_at.is_some_and(|at| at <= now) {
            self.beat_at = Some(now + self.timeout() / BEATS);
            self.ask(now, Purpose::Heartbeat, Request::heartbeat());
        }
        let action = self.action_at.take_if(|at| *at <= now).map(|_| {
            self.action_at = Some(now + around(&mut self.dice, self.manner.actions));
            self.next_action.take().unwrap_or_else(|| Action::drawn(&mut self.dice, self.manner.timeout))
        });
        self.goes_on(now);
        action
    }

    /// An attempt to connect has failed.
    fn lets_go(&mut self, dial: &Dial) -> bool {
        self.out.extend(dial.conn.map(|conn| Out::HangUp(conn, true)));
        true
    }

    /// Sends a ping in time, and gives a connection up on which nothing is heard.
    fn minds_silence(&mut self, now: Moment) {
        let (ping_every, timeout) = (self.timeout() / PINGS, self.timeout());
        let Some(line) = &mut self.line else { return };
        if line.heard + timeout * 2 / PINGS <= now {
            self.hang_up(now);
            self.step(now, session::Input::Broken);
        } else if line.pinged + ping_every <= now {
            line.pinged = now;
            self.out.push_back(Out::Send(line.conn, client::ping()));
        }
    }

    // What it does beside its recipe.

    /// It gives up what it has.
    pub(crate) fn resigns(&mut self, now: Moment) {
        self.give(now, Input::Call(Call::Resign));
        self.goes_on(now);
    }

    /// It uses another member.
    pub(crate) fn moves(&mut self, now: Moment) {
        self.step(now, session::Input::Move);
        self.goes_on(now);
    }

    /// It loses its connection.
    pub(crate) fn loses(&mut self, now: Moment) {
        if self.line.is_some() {
            self.hang_up(now);
            self.step(now, session::Input::Broken);
        }
        self.goes_on(now);
    }

    /// It asks for something that its recipe knows nothing of. False when it can't.
    pub(crate) fn outrages(&mut self, now: Moment, request: Request) -> bool {
        self.ask(now, Purpose::Outrage, request);
        self.line.is_some()
    }

    /// Its process ended, and here begins another one, which knows nothing of the first.
    pub(crate) fn is_born_again(&mut self, now: Moment, tells: bool) {
        self.out.extend(self.conn().map(|conn| Out::HangUp(conn, tells)));
        self.session = new_session(self.manner, &mut self.dice);
        self.watches.clear();
        (self.candidacy, self.dial, self.line, self.beat_at, self.line_seen) = (None, None, None, None, None);
        self.stand_at = (!self.leaving).then_some(now);
    }

    /// The world is healed: it does nothing more than its recipe, and may go.
    pub(crate) fn settles(&mut self, now: Moment) {
        (self.action_at, self.next_action) = (None, None);
        self.stand_at = self.stand_at.map(|at| at.min(now + PAUSE));
        if self.number > 0 && self.dice.chance(GOES) {
            self.leaves(now);
        }
    }

    /// It stands no more.
    pub(crate) fn leaves(&mut self, now: Moment) {
        self.leaving = true;
        self.stand_at = None;
        self.resigns(now);
    }

    // The session.

    /// Tells the session's machine, and does what it wants done. A connection ends, and all that was asked
    /// over it is answered, before the recipe hears of a new state.
    fn step(&mut self, now: Moment, input: session::Input) {
        let effects = self.session.step(now, input);
        if effects.contains(&Effect::Hangup) {
            self.hang_up(now);
        }
        for effect in effects {
            match effect {
                Effect::Hangup => {}
                Effect::Dial { server, resume, timeout, within, read_only: _ } => {
                    let host = server.parse().unwrap_or(0);
                    self.dial = Some(Dial { resume, timeout, until: now + within, sent: now, conn: None });
                    self.out.push_back(Out::Dial(host));
                }
                Effect::Tell(state) => self.is_in(now, &state),
            }
        }
    }

    fn is_in(&mut self, now: Moment, state: &State) {
        match state {
            State::Connected { session, .. } => {
                let seen = self.credentials().map_or(Zxid::ZERO, |credentials| credentials.seen);
                for piece in self.watches.leave_again(seen) {
                    self.xid += 1;
                    let Some(line) = &mut self.line else { return };
                    let what = (self.xid, OpCode::SetWatches2);
                    let frame = line.ask(what, Purpose::Watches, None, now, |w| piece.encode(w));
                    self.out.push_back(Out::Send(line.conn, frame));
                }
                self.beat_at = None;
                self.may_falter(now);
                self.give(now, Input::Connected { session: *session });
            }
            State::Suspended { .. } => self.give(now, Input::Suspended),
            State::Lost { .. } => {
                self.watches.clear();
                self.line_seen = None;
                self.give(now, Input::Lost);
            }
            State::Connecting | State::Closed => {}
        }
    }

    /// Some stand still right behind the news that they are connected: what they know grows old from here.
    fn may_falter(&mut self, now: Moment) {
        if self.action_at.is_some() && self.dice.chance(FALTERS) {
            self.action_at = Some(now);
            let usual = self.timeout() * 9 / 10;
            self.next_action = Some(Action::Stop(around(&mut self.dice, usual)));
        }
    }

    /// Closes its connection, or gives up the attempt to get one.
    fn hang_up(&mut self, now: Moment) {
        self.out.extend(self.conn().map(|conn| Out::HangUp(conn, true)));
        self.dial = None;
        self.answer_open(now);
    }

    /// Its connection is gone: nobody knows what became of all that was asked over it.
    fn answer_open(&mut self, now: Moment) {
        let Some(line) = self.line.take() else { return };
        for sent in line.into_open() {
            match sent.purpose {
                Purpose::Recipe(candidacy, ask) => {
                    self.answer(now, candidacy, ask, Err(Failure::Unknown));
                }
                Purpose::Ground => self.stand_at = Some(now + PAUSE),
                Purpose::Heartbeat | Purpose::Watches | Purpose::Outrage | Purpose::Close => {}
            }
        }
    }

    fn is_greeted(&mut self, now: Moment, conn: usize, frame: Bytes) {
        let Some(dial) = self.dial.take() else { return };
        let Some(response) = client::connect_response(frame) else {
            self.wrong(Rule::Answer, "was answered before it was told of its session".to_owned());
            return;
        };
        let Some(timeout) = u64::try_from(response.timeout_ms).ok().filter(|timeout_ms| *timeout_ms > 0)
        else {
            self.out.push_back(Out::HangUp(conn, true));
            self.step(now, session::Input::Dialled(Err(Unopened::Expired)));
            return;
        };
        let asked = dial.resume.as_ref().map(|resume| resume.id);
        if asked.is_some_and(|asked| asked != response.session) {
            self.wrong(Rule::Answer, format!("asked for {asked:?} and got session {}", response.session));
        }
        self.line = Some(Connection::new(conn, now));
        let opened = Opened {
            id: response.session,
            password: response.password,
            timeout: Moment::from_millis(timeout),
            read_only: response.read_only == Some(true),
            sent: dial.sent,
        };
        self.step(now, session::Input::Dialled(Ok(opened)));
    }

    fn wrong(&mut self, rule: Rule, sentence: String) {
        let number = self.number;
        self.out.push_back(Out::Wrong(rule, format!("application {number} {sentence}")));
    }

    /// What becomes possible with what was just heard.
    fn goes_on(&mut self, now: Moment) {
        match self.beat_at {
            None if self.is_beating() => self.beat_at = Some(now),
            Some(_) if !self.is_beating() => self.beat_at = None,
            _ => {}
        }
        if !self.leaving || self.candidacy.is_some() || self.is_gone() {
            return;
        }
        if self.session.credentials().is_none() {
            self.step(now, session::Input::Close);
        } else if self.line.as_ref().is_some_and(|line| !line.awaits(Purpose::Close)) {
            self.ask(now, Purpose::Close, Request::CloseSession);
        }
    }

    // The recipe.

    /// Gives the recipe a fact, and sends what it asks for.
    fn give(&mut self, now: Moment, input: Input<Call>) {
        let timeout = Some(self.session.timeout());
        let at = Now { at: now, certain_until: self.session.certain_until(), timeout };
        let Some(candidacy) = &mut self.candidacy else { return };
        let number = candidacy.number;
        let mut effects = Effects::default();
        candidacy.recipe.step(at, input, &mut effects);
        self.out.extend(effects.told.into_iter().map(Out::Told));
        for (ask, request) in effects.asks {
            if self.line.is_some() {
                self.ask(now, Purpose::Recipe(number, ask), request);
            } else {
                self.answer(now, number, ask, Err(Failure::NotSent));
            }
        }
        if self.candidacy.take_if(|candidacy| candidacy.recipe.is_over()).is_some() {
            self.watches.forget(Owner(number));
            let pause = if self.action_at.is_some() {
                around(&mut self.dice, self.manner.actions / 2)
            } else {
                PAUSE
            };
            self.stand_at = (!self.leaving).then_some(now + pause);
        }
    }

    fn answer(&mut self, now: Moment, candidacy: u64, ask: Ask, answer: Result<Response, Failure>) {
        if self.candidacy.as_ref().is_some_and(|present| present.number == candidacy) {
            self.give(now, Input::Answered { ask, answer });
        }
    }

    fn ask(&mut self, now: Moment, purpose: Purpose, request: Request) {
        let Some(line) = &mut self.line else { return };
        self.xid += 1;
        let what = (self.xid, request.op());
        let frame = line.ask(what, purpose, Some(request.clone()), now, |w| request.encode(w));
        self.out.push_back(Out::Send(line.conn, frame));
        if matches!(purpose, Purpose::Recipe(..)) && self.action_at.is_some() && self.dice.chance(FORSAKEN) {
            let way_us = u64::try_from(self.manner.way.as_micros()).unwrap_or(0);
            self.action_at = Some(now + Moment::from_micros(self.dice.between(0, 3 * way_us)));
            self.next_action = Some(Action::Lose);
        }
    }

    fn begins_candidacy(&mut self, now: Moment) {
        let State::Connected { session, .. } = *self.session.state() else { return };
        self.candidacies += 1;
        let intent = if self.manner.locks { Intent::Write } else { Intent::Lead };
        let ticket = ticket(self.number, intent, 1);
        let guid = Guid(ticket.guid.0 | u128::from(self.candidacies) << 64);
        let options = Options { again: !self.manner.locks, ..Options::default() };
        let rules = RecipeRules(self.manner.mutant);
        let recipe = Election::with_rules(Ticket { guid, ..ticket }, options, rules);
        self.candidacy = Some(Candidacy { number: self.candidacies, recipe });
        self.give(now, Input::Connected { session });
    }

    /// An event came.
    fn is_told(&mut self, now: Moment, mut body: Reader) {
        let Ok(event) = WatcherEvent::decode(&mut body) else {
            self.wrong(Rule::Answer, "got a malformed event".to_owned());
            return;
        };
        let Some((event, owners)) = self.watches.saw(&event) else { return };
        let Some(candidacy) = self.candidacy.as_ref().filter(|it| owners.contains(&Owner(it.number))) else {
            return;
        };
        let seen = self.line_seen.take_if(|_| *event.path == *RESOURCE);
        if !candidacy.recipe.resigns() && !self.is_own(&event.path) {
            self.out.push_back(Out::Saw(event.kind, event.path.clone(), seen));
        }
        self.give(now, Input::Event(event));
    }

    /// Znodes of one application are named by its guid, which begins with its number.
    fn is_own(&self, path: &str) -> bool {
        path.contains(&format!("/{:08x}", self.number + 1))
    }

    fn is_answered(&mut self, now: Moment, header: ReplyHeader, mut body: Reader) {
        let Some(line) = &mut self.line else { return };
        let sent = match line.answered(header) {
            Ok(sent) => sent,
            Err(sentence) => return self.wrong(Rule::Answer, sentence),
        };
        if let Some(seen) = self.credentials().map(|known| known.seen).filter(|seen| header.zxid < *seen) {
            return self.wrong(Rule::SessionOrder, format!("saw {seen} and then only {}", header.zxid));
        }
        let Some(request) = &sent.request else { return };
        let answer = match ErrorCode::from_code(header.err) {
            _ if header.err == 0 => request.decode(&mut body),
            Some(code) => Ok(request.refused(code)),
            None => Ok(Err(Failure::Unknown)),
        };
        let Ok(answer) = answer else {
            return self.wrong(Rule::Answer, format!("got a malformed answer to {request:?}"));
        };
        self.keeps_watch(&sent.purpose, request, header.zxid, &answer);
        let certain = self.session.certain_until();
        let by_leader = request.is_transaction() && shows_the_leader(&answer);
        if by_leader && answer.is_ok() {
            self.out.push_back(Out::Acknowledged(header.zxid));
        }
        let seen = if header.zxid.to_wire() > 0 { header.zxid } else { Zxid::ZERO };
        self.session.step(now, session::Input::Answered { sent: sent.at, by_leader, seen });
        match sent.purpose {
            Purpose::Recipe(candidacy, ask) => self.answer(now, candidacy, ask, answer),
            Purpose::Ground if self.candidacy.is_none() && !self.leaving => match answer {
                Ok(_) | Err(Failure::Refused { code: ErrorCode::NodeExists, .. }) => {
                    self.begins_candidacy(now);
                }
                Err(_) => self.stand_at = Some(now + PAUSE),
            },
            Purpose::Close => self.step(now, session::Input::Close),
            Purpose::Ground | Purpose::Heartbeat | Purpose::Watches | Purpose::Outrage => {}
        }
        if self.session.certain_until() != certain {
            self.give(now, Input::Time);
        }
    }

    /// What an answer leaves to be told of.
    fn keeps_watch(
        &mut self,
        purpose: &Purpose,
        request: &Request,
        zxid: Zxid,
        answer: &Result<Response, Failure>,
    ) {
        let (Purpose::Recipe(candidacy, _), Some((kind, path))) = (purpose, request.watch()) else { return };
        let absent = matches!(answer, Ok(Response::Exists(None))).then_some(ErrorCode::NoNode);
        let refused = match answer {
            Ok(_) => absent,
            Err(failure) => match failure.refusal() {
                Some(code) => Some(code),
                None => return,
            },
        };
        self.watches.answered(kind, path, Owner(*candidacy), refused);
        if **path == *RESOURCE && refused.is_none() {
            self.line_seen = Some(zxid);
        }
        // One whose candidacy is over waits for nothing.
        if self.candidacy.as_ref().is_none_or(|present| present.number != *candidacy) {
            self.watches.forget(Owner(*candidacy));
        }
    }
}

/// Only the leader judges so: its answer shows that it saw the request.
fn shows_the_leader(answer: &Result<Response, Failure>) -> bool {
    let judged = [
        ErrorCode::NoNode,
        ErrorCode::NodeExists,
        ErrorCode::BadVersion,
        ErrorCode::NotEmpty,
        ErrorCode::NoChildrenForEphemerals,
    ];
    match answer {
        Ok(_) => true,
        Err(failure) => failure.refusal().is_some_and(|code| judged.contains(&code)),
    }
}

/// Between a quarter and seven quarters of a mean.
fn around(dice: &mut Dice, mean: Moment) -> Moment {
    Moment::from_micros(dice.around(u64::try_from(mean.as_micros()).unwrap_or(u64::MAX)))
}
