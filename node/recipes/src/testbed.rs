//! Clients over a [model](crate::model) of an ensemble, for tests that drive recipes by hand.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use bytestring::ByteString;
use node_session::watches::Owner;
use node_session::{CreateMode, Failure, Moment, Request, Response, Watches};
use node_wire::client::{ErrorCode, EventType, WatcherEvent};
use node_wire::ids::SessionId;

use crate::model::{Change, Tree};
use crate::recipe::{Ask, Effects, Input, Now, Recipe};

/// How long a session is certain after each answer.
pub(crate) const CERTAIN: Moment = Moment::from_secs(9);

/// The time-out of a session.
pub(crate) const TIMEOUT: Moment = Moment::from_secs(10);

/// A client with one recipe.
pub(crate) struct Client<R: Recipe> {
    pub(crate) recipe: R,
    pub(crate) open: VecDeque<(Ask, Request)>,
    told: Vec<R::Told>,
    watches: Watches,
    /// What changed while it was away.
    inbox: Vec<ByteString>,
    /// Requests of an earlier connection that may still be carried out, until a sync is.
    late: VecDeque<Request>,
    session: Option<SessionId>,
    connected: bool,
    expired: bool,
    pub(crate) certain_until: Option<Moment>,
}

impl<R: Recipe> Client<R> {
    /// True if it watches for a znode to come. Only `ready` is watched so.
    fn waits_for(&self, path: &str) -> bool {
        path.ends_with("/ready")
    }
}

pub(crate) struct World<R: Recipe> {
    pub(crate) tree: Tree,
    pub(crate) clients: Vec<Client<R>>,
    pub(crate) at: Moment,
    sessions: i64,
}

impl<R: Recipe> World<R> {
    /// A world with these persistent znodes, in which each recipe's client is connected.
    pub(crate) fn new(paths: &[&str], recipes: impl IntoIterator<Item = R>) -> Self {
        let mut world = World { tree: Tree::default(), clients: Vec::new(), at: Moment::ZERO, sessions: 0 };
        for path in paths {
            world.make(path, "", CreateMode::Persistent);
        }
        for recipe in recipes {
            world.add(recipe);
        }
        world
    }

    pub(crate) fn add(&mut self, recipe: R) {
        let client = Client {
            recipe,
            open: VecDeque::new(),
            told: Vec::new(),
            watches: Watches::default(),
            inbox: Vec::new(),
            late: VecDeque::new(),
            session: None,
            connected: false,
            expired: false,
            certain_until: None,
        };
        self.clients.push(client);
        self.connect(self.clients.len() - 1);
    }

    /// Somebody else asks.
    pub(crate) fn outside(&mut self, request: &Request) -> Result<Response, Failure> {
        let (answer, events) = self.tree.apply(SessionId(99), request);
        self.deliver(&events);
        answer
    }

    pub(crate) fn make(&mut self, path: &str, data: &str, mode: CreateMode) {
        let (path, data) = (path.into(), Bytes::copy_from_slice(data.as_bytes()));
        self.outside(&Request::Create { path, data, acl: Vec::new(), mode }).expect("made");
    }

    pub(crate) fn delete(&mut self, path: &str) {
        self.outside(&Request::Delete { path: path.into(), version: -1 }).expect("deleted");
    }

    fn give(&mut self, who: usize, input: Input<R::Call>) {
        let client = &mut self.clients[who];
        let mut effects = Effects::default();
        let now = Now { at: self.at, certain_until: client.certain_until, timeout: Some(TIMEOUT) };
        client.recipe.step(now, input, &mut effects);
        client.told.extend(effects.told);
        if client.connected {
            client.open.extend(effects.asks);
            return;
        }
        for (ask, _) in effects.asks {
            self.give(who, Input::Answered { ask, answer: Err(Failure::NotSent) });
        }
    }

    pub(crate) fn call(&mut self, who: usize, call: R::Call) {
        self.give(who, Input::Call(call));
    }

    pub(crate) fn told(&mut self, who: usize) -> Vec<R::Told> {
        std::mem::take(&mut self.clients[who].told)
    }

    fn deliver(&mut self, changes: &[Change]) {
        for who in 0..self.clients.len() {
            for change in changes {
                if self.clients[who].connected {
                    self.tell(who, &change.event());
                } else {
                    self.clients[who].inbox.push(change.path.clone());
                }
            }
        }
    }

    fn tell(&mut self, who: usize, event: &WatcherEvent) {
        if let Some((event, owners)) = self.clients[who].watches.saw(event)
            && !owners.is_empty()
        {
            self.give(who, Input::Event(event));
        }
    }

    /// Answers the oldest open request.
    pub(crate) fn serve(&mut self, who: usize) {
        let Some((ask, request)) = self.clients[who].open.pop_front() else { return };
        let session = self.clients[who].session.unwrap();
        if matches!(request, Request::Sync { .. }) {
            self.clients[who].late.clear();
        }
        let (answer, events) = self.tree.apply(session, &request);
        self.deliver(&events);
        let client = &mut self.clients[who];
        client.certain_until = Some(self.at + CERTAIN);
        if let Some((kind, path)) = request.watch() {
            let refused = match &answer {
                Ok(Response::Exists(None)) => Some(ErrorCode::NoNode),
                Ok(_) => None,
                Err(failure) => failure.refusal(),
            };
            client.watches.answered(kind, path, Owner(0), refused);
        }
        self.give(who, Input::Answered { ask, answer });
    }

    /// Carries a request of an earlier connection out. Nobody hears of it but by its events.
    fn serve_late(&mut self, who: usize) {
        let session = self.clients[who].session.unwrap();
        if let Some(request) = self.clients[who].late.pop_front() {
            let (_, events) = self.tree.apply(session, &request);
            self.deliver(&events);
        }
    }

    /// Answers all requests until there is none.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1000 {
            let Some(who) = self.clients.iter().position(|client| !client.open.is_empty()) else { return };
            self.serve(who);
        }
        panic!("it does not come to rest");
    }

    /// Serves this client until its oldest open request is one of these.
    pub(crate) fn until(&mut self, who: usize, wanted: impl Fn(&Request) -> bool) {
        for _ in 0..1000 {
            let open = self.clients[who].open.front().expect("a request");
            if wanted(&open.1) {
                return;
            }
            self.serve(who);
        }
        panic!("it was never asked for");
    }

    /// Cuts the connection. So many of the open requests still take effect, and all answers are lost.
    pub(crate) fn cut(&mut self, who: usize, taken: usize) {
        self.clients[who].connected = false;
        let open = std::mem::take(&mut self.clients[who].open);
        let session = self.clients[who].session.unwrap();
        for (_, request) in open.iter().take(taken) {
            let (_, events) = self.tree.apply(session, request);
            self.deliver(&events);
        }
        let late = open.iter().skip(taken).map(|(_, request)| request.clone());
        self.clients[who].late = late.collect();
        for (ask, _) in open {
            self.give(who, Input::Answered { ask, answer: Err(Failure::Unknown) });
        }
        self.give(who, Input::Suspended);
    }

    /// Connects, with the same session if there is one, and with a new one if it is over.
    pub(crate) fn connect(&mut self, who: usize) {
        if self.clients[who].session.is_none() {
            self.sessions += 1;
            self.clients[who].session = Some(SessionId(self.sessions));
        }
        let session = self.clients[who].session.unwrap();
        self.clients[who].connected = true;
        self.clients[who].certain_until = Some(self.at + CERTAIN);
        self.give(who, Input::Connected { session });
        let changed: BTreeSet<ByteString> =
            std::mem::take(&mut self.clients[who].inbox).into_iter().collect();
        for path in changed {
            self.catch_up(who, &path);
        }
    }

    /// Tells one-time watches of a path what a server tells when they are left again: how it is now.
    fn catch_up(&mut self, who: usize, path: &ByteString) {
        let there = self.tree.data(path).is_some();
        let kinds: &[EventType] = match there {
            true => &[EventType::NodeDataChanged, EventType::NodeChildrenChanged],
            false => &[EventType::NodeDeleted],
        };
        for kind in kinds {
            let mut once = self.clients[who].watches.clone();
            let event = Change { kind: *kind, path: path.clone() }.event();
            let before = once.len();
            let told = once.saw(&event);
            // A watch for a znode to come stays where there is none.
            let stays = !there && self.clients[who].waits_for(path);
            if let Some((mut event, _)) = told
                && once.len() < before
                && !stays
            {
                if self.clients[who].waits_for(path) {
                    event.kind = EventType::NodeCreated;
                }
                self.clients[who].watches = once;
                self.give(who, Input::Event(event));
            }
        }
    }

    /// The ensemble ends the session. The client hears of it when it is told.
    pub(crate) fn expire(&mut self, who: usize) {
        if self.clients[who].connected {
            self.cut(who, 0);
        }
        let session = self.clients[who].session.unwrap();
        let changes = self.tree.end(session);
        self.deliver(&changes);
        self.clients[who].expired = true;
        self.clients[who].late.clear();
    }

    /// The client hears that its session is over.
    pub(crate) fn lose(&mut self, who: usize) {
        self.expire(who);
        let client = &mut self.clients[who];
        client.session = None;
        client.expired = false;
        client.watches.clear();
        client.inbox.clear();
        client.certain_until = None;
        self.give(who, Input::Lost);
    }

    /// Time passes, and everybody hears of it.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.at += Moment::from_millis(ms);
        for who in 0..self.clients.len() {
            self.give(who, Input::Time);
        }
    }

    /// Connects, and hears that the session is over if it is.
    fn reconnect(&mut self, who: usize) {
        if self.clients[who].expired {
            self.lose(who);
        }
        self.connect(who);
    }

    /// Takes one of the things that may happen to a client, as chance has it.
    pub(crate) fn chance(&mut self, dice: &mut Dice, losses: bool) {
        let who = dice.below(self.clients.len());
        match dice.below(20) {
            0 if losses && self.clients[who].connected => {
                let taken = dice.below(3);
                self.cut(who, taken);
            }
            1 if losses && !self.clients[who].connected && !self.clients[who].expired => {
                let until = self.clients[who].certain_until.unwrap_or_default();
                self.at = self.at.max(until);
                self.expire(who);
                for other in self.clients.iter_mut().filter(|other| other.connected) {
                    other.certain_until = Some(self.at + CERTAIN);
                }
            }
            2 | 3 if !self.clients[who].connected => self.reconnect(who),
            5 if !self.clients[who].late.is_empty() => self.serve_late(who),
            4 => self.pass(u64::try_from(dice.below(1500)).unwrap()),
            _ => self.serve(who),
        }
    }

    /// Everybody is connected again, and what can be done is done.
    pub(crate) fn heal(&mut self) {
        for who in 0..self.clients.len() {
            if !self.clients[who].connected {
                self.reconnect(who);
            }
        }
        self.come_to_rest();
    }

    /// What can be done by those who are connected is done, and time passes.
    pub(crate) fn come_to_rest(&mut self) {
        for _ in 0..5 {
            self.settle();
            self.pass(2000);
            for client in self.clients.iter_mut().filter(|client| client.connected) {
                client.certain_until = Some(self.at + CERTAIN);
            }
        }
        self.settle();
    }
}

/// Numbers that look drawn (xorshift), the same for the same seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// Rules of which some are broken.
macro_rules! broken {
    ($name:ident, $($rule:ident),+) => {
        #[derive(Clone)]
        struct $name;

        impl $crate::rules::Rules for $name {
            $(fn $rule(&self) -> bool {
                false
            })+
        }
    };
}
pub(crate) use broken;
