//! Where the session is, and what is to be done about it.

use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::ids::{SessionId, Zxid};

use crate::Moment;
use crate::servers::Servers;

/// What makes a server believe that a session is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Its number.
    pub id: SessionId,
    /// Its password.
    pub password: Bytes,
    /// The newest state seen through it. A server that is behind this refuses the session, so that a client
    /// does not see time go back.
    pub seen: Zxid,
}

/// How a session is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// The time-out asked for. The server clamps it to 2 to 20 of its ticks.
    pub timeout: Duration,
    /// Whether a server that lost its quorum, and lets read what it has, will do until another one serves.
    pub read_only: bool,
    /// A session to go on with.
    pub resume: Option<Credentials>,
    /// Of the order of the servers and of the waits before they are tried again.
    pub seed: u64,
}

/// The state of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no session yet.
    Connecting,
    /// A server serves it.
    Connected {
        /// Its number.
        session: SessionId,
        /// Its time-out, as negotiated.
        timeout: Duration,
        /// True at a server without a quorum.
        read_only: bool,
    },
    /// No server serves it now. It may have ended, and nobody can tell before a server does.
    Suspended {
        /// Since when.
        since: Moment,
    },
    /// A server said that it is over: its ephemeral znodes and its watches are gone. A new one follows.
    Lost {
        /// The number of the one that is over.
        session: SessionId,
    },
    /// It was ended by this client, or given up.
    Closed,
}

impl State {
    /// True while requests can be sent and changes can be made.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self, Self::Connected { read_only: false, .. })
    }
}

/// What a server answered when a session was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The session's number.
    pub id: SessionId,
    /// Its password.
    pub password: Bytes,
    /// Its time-out.
    pub timeout: Duration,
    /// True at a server without a quorum.
    pub read_only: bool,
    /// When the request was sent.
    pub sent: Moment,
}

/// Why a server gave no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// The session that was to go on is over; the server said so.
    Expired,
    /// Nothing is known: nobody listens, it does not serve, it did not answer in time.
    Failed,
}

/// A fact for the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time passed.
    Time,
    /// What came of the last [`Effect::Dial`].
    Dialled(Result<Opened, Unopened>),
    /// The connection broke.
    Broken,
    /// A request was answered.
    Answered {
        /// When it was sent.
        sent: Moment,
        /// Whether the answer shows that the leader saw it.
        by_leader: bool,
        /// The newest zxid that it showed.
        seen: Zxid,
    },
    /// There is another list of servers.
    Servers(Vec<ByteString>),
    /// Use another server of the list.
    Move,
    /// The session is given up. To end it at the ensemble a request is sent before.
    Close,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Close the connection if there is one. No fact of it counts any more.
    Hangup,
    /// Connect to a server, and open a session there or go on with this one.
    Dial {
        /// `host:port`.
        server: ByteString,
        /// The session to go on with.
        resume: Option<Credentials>,
        /// The time-out to ask for.
        timeout: Duration,
        /// Whether a read-only server will do.
        read_only: bool,
        /// Dialling and the server's answer together may take so long.
        within: Duration,
    },
    /// The state changed. Behind [`State::Connected`] the watches are left again before anything else is
    /// sent. At [`State::Lost`] they are forgotten.
    Tell(State),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Waiting { until: Moment, server: ByteString },
    Dialling,
    Connected,
    Closed,
}

/// One session at a time, over as many connections as it takes.
#[derive(Clone, Debug)]
pub struct Session {
    options: Options,
    servers: Servers,
    credentials: Option<Credentials>,
    timeout: Duration,
    phase: Phase,
    state: State,
    /// When the last request that the leader saw was sent.
    proven: Option<Moment>,
}

impl Session {
    /// A session that wants to begin. The first [`Input::Time`] makes it dial.
    ///
    /// # Panics
    /// When there is no server.
    #[must_use]
    pub fn new(servers: Vec<ByteString>, options: Options) -> Self {
        let mut servers = Servers::new(servers, options.seed);
        let (server, _) = servers.next_server();
        Self {
            servers,
            credentials: options.resume.clone(),
            timeout: options.timeout,
            phase: Phase::Waiting { until: Moment::ZERO, server },
            state: State::Connecting,
            proven: None,
            options,
        }
    }

    /// The state as it was told last.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What another client would need to go on with the session.
    #[must_use]
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// The server in use, or the one that was tried last.
    #[must_use]
    pub fn server(&self) -> &ByteString {
        self.servers.current()
    }

    /// No ensemble of ours has ended the session before this moment, whatever happens to the network.
    /// Nothing is certain where it is `None`.
    #[must_use]
    pub fn certain_until(&self) -> Option<Moment> {
        self.proven.map(|sent| sent + self.timeout * 9 / 10)
    }

    /// The session's time-out as a server granted it; the one asked for before any did.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// When time itself is news.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Moment> {
        match &self.phase {
            Phase::Waiting { until, .. } => Some(*until),
            Phase::Dialling | Phase::Connected | Phase::Closed => None,
        }
    }

    /// Takes a fact and says what is to be done, in this order.
    pub fn step(&mut self, now: Moment, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.phase == Phase::Closed {
            return effects;
        }
        match input {
            Input::Time => {
                if let Phase::Waiting { until, server } = &self.phase
                    && *until <= now
                {
                    let server = server.clone();
                    self.dial(server, &mut effects);
                }
            }
            Input::Dialled(Ok(opened)) if self.phase == Phase::Dialling => self.opened(opened, &mut effects),
            Input::Dialled(Err(Unopened::Expired)) if self.phase == Phase::Dialling => {
                self.expired(&mut effects);
                self.next(now, &mut effects);
            }
            Input::Dialled(Err(Unopened::Failed)) if self.phase == Phase::Dialling => {
                self.next(now, &mut effects);
            }
            Input::Broken if self.phase == Phase::Connected => {
                self.tell(State::Suspended { since: now }, &mut effects);
                self.next(now, &mut effects);
            }
            Input::Answered { sent, by_leader, seen } => self.answered(sent, by_leader, seen),
            Input::Dialled(_) | Input::Broken => {}
            Input::Servers(list) => self.replace(now, list, &mut effects),
            Input::Move => self.leave(now, &mut effects),
            Input::Close => {
                effects.push(Effect::Hangup);
                self.phase = Phase::Closed;
                self.proven = None;
                self.tell(State::Closed, &mut effects);
            }
        }
        effects
    }

    fn replace(&mut self, now: Moment, list: Vec<ByteString>, effects: &mut Vec<Effect>) {
        if list.is_empty() {
            return;
        }
        let knows = self.servers.replace(list);
        if !knows || self.phase != Phase::Connected {
            self.leave(now, effects);
        }
    }

    /// Goes to another server.
    fn leave(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Connected {
            self.tell(State::Suspended { since: now }, effects);
        }
        effects.push(Effect::Hangup);
        self.next(now, effects);
    }

    fn answered(&mut self, sent: Moment, by_leader: bool, seen: Zxid) {
        if let Some(credentials) = &mut self.credentials {
            credentials.seen = credentials.seen.max(seen);
        }
        if by_leader {
            self.proven = self.proven.max(Some(sent));
        }
    }

    fn opened(&mut self, opened: Opened, effects: &mut Vec<Effect>) {
        let Opened { id, password, timeout, read_only, sent } = opened;
        let begins = self.credentials.as_ref().is_none_or(|known| known.id != id);
        let seen = self.credentials.as_ref().map_or(Zxid::ZERO, |credentials| credentials.seen);
        self.credentials = Some(Credentials { id, password, seen });
        self.timeout = timeout;
        // A session begins with a transaction. That one goes on may be said by a leader that was deposed and
        // does not know it, while its successor counts the time-out down.
        if begins && !read_only {
            self.proven = Some(sent);
        }
        self.servers.served();
        self.phase = Phase::Connected;
        self.tell(State::Connected { session: id, timeout, read_only }, effects);
    }

    /// A new session is as good as a new client: only the newest state seen goes over to it.
    fn expired(&mut self, effects: &mut Vec<Effect>) {
        self.proven = None;
        self.timeout = self.options.timeout;
        if let Some(credentials) = self.credentials.take() {
            self.tell(State::Lost { session: credentials.id }, effects);
        }
    }

    fn next(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        let (server, wait) = self.servers.next_server();
        if wait.is_zero() {
            self.dial(server, effects);
        } else {
            self.phase = Phase::Waiting { until: now + wait, server };
        }
    }

    fn dial(&mut self, server: ByteString, effects: &mut Vec<Effect>) {
        self.phase = Phase::Dialling;
        let servers = u32::try_from(self.servers.count()).unwrap_or(u32::MAX);
        effects.push(Effect::Dial {
            server,
            resume: self.credentials.clone(),
            timeout: self.options.timeout,
            read_only: self.options.read_only,
            within: self.timeout / servers.clamp(2, 5),
        });
    }

    fn tell(&mut self, state: State, effects: &mut Vec<Effect>) {
        self.state = state.clone();
        effects.push(Effect::Tell(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Moment {
        Moment::from_millis(ms)
    }

    fn options() -> Options {
        Options { timeout: ms(1000), read_only: false, resume: None, seed: 1 }
    }

    fn opened(sent: u64) -> Input {
        Input::Dialled(Ok(Opened {
            id: SessionId(7),
            password: Bytes::from_static(b"secret"),
            timeout: ms(1000),
            read_only: false,
            sent: ms(sent),
        }))
    }

    fn connected() -> Session {
        let mut session = Session::new(vec!["a".into(), "b".into()], options());
        assert!(matches!(session.step(ms(0), Input::Time)[..], [Effect::Dial { resume: None, .. }]));
        assert!(matches!(session.step(ms(5), opened(1))[..], [Effect::Tell(State::Connected { .. })]));
        session
    }

    #[test]
    fn a_session_that_loses_its_server_goes_on_at_the_next_one() {
        let mut session = connected();
        let first = session.server().clone();
        session.step(ms(10), Input::Answered { sent: ms(6), by_leader: false, seen: Zxid::from_wire(9) });
        let effects = session.step(ms(20), Input::Broken);
        let [Effect::Tell(State::Suspended { .. }), Effect::Dial { server, resume: Some(resume), .. }] =
            &effects[..]
        else {
            panic!("{effects:?}")
        };
        assert_ne!(*server, first);
        assert_eq!((resume.id, resume.seen), (SessionId(7), Zxid::from_wire(9)));
    }

    #[test]
    fn only_what_the_leader_saw_makes_the_session_certain_and_from_when_it_was_sent() {
        let mut session = connected();
        assert_eq!(session.certain_until(), Some(ms(901)));
        session.step(ms(500), Input::Answered { sent: ms(400), by_leader: false, seen: Zxid::ZERO });
        assert_eq!(session.certain_until(), Some(ms(901)));
        session.step(ms(500), Input::Answered { sent: ms(300), by_leader: true, seen: Zxid::ZERO });
        assert_eq!(session.certain_until(), Some(ms(1200)));
        session.step(ms(510), Input::Answered { sent: ms(200), by_leader: true, seen: Zxid::ZERO });
        assert_eq!(session.certain_until(), Some(ms(1200)), "an older one takes nothing back");
        session.step(ms(600), Input::Broken);
        assert_eq!(session.certain_until(), Some(ms(1200)), "nor does a broken connection");
    }

    #[test]
    fn that_a_session_goes_on_elsewhere_makes_nothing_certain() {
        let mut session = connected();
        session.step(ms(600), Input::Broken);
        session.step(ms(650), opened(640));
        assert!(matches!(session.state(), State::Connected { .. }));
        assert_eq!(session.certain_until(), Some(ms(901)), "as before: it began with a request sent at 1");
    }

    #[test]
    fn only_a_server_ends_a_session_and_a_new_one_follows() {
        let mut session = connected();
        session.step(ms(20), Input::Broken);
        for at in 1..20 {
            session.step(ms(1000 * at), Input::Dialled(Err(Unopened::Failed)));
            session.step(ms(1000 * at + 999), Input::Time);
            assert!(matches!(session.state(), State::Suspended { .. }));
        }
        let effects = session.step(ms(30_000), Input::Dialled(Err(Unopened::Expired)));
        assert_eq!(effects[0], Effect::Tell(State::Lost { session: SessionId(7) }));
        assert_eq!(session.certain_until(), None);
        let dials = effects
            .iter()
            .chain(&session.step(ms(32_000), Input::Time))
            .any(|effect| matches!(effect, Effect::Dial { resume: None, .. }));
        assert!(dials, "a session of its own");
    }

    #[test]
    fn facts_of_a_connection_that_is_over_count_for_nothing() {
        let mut session = connected();
        session.step(ms(20), Input::Move);
        assert!(session.step(ms(21), Input::Broken).is_empty());
        session.step(ms(22), Input::Close);
        assert!(session.step(ms(23), opened(20)).is_empty());
        assert_eq!(session.state(), &State::Closed);
    }

    #[test]
    fn a_list_without_the_server_in_use_makes_it_move() {
        let mut session = connected();
        let current = session.server().clone();
        assert!(session.step(ms(5), Input::Servers(vec![current.clone(), "c".into()])).is_empty());
        let effects = session.step(ms(6), Input::Servers(vec!["d".into()]));
        assert!(effects.contains(&Effect::Hangup), "{effects:?}");
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Dial { server, .. } if server == "d")));
        assert!(session.step(ms(7), Input::Servers(Vec::new())).is_empty(), "an empty list is none");
    }
}
