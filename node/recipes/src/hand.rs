//! An ensemble of one table, for tests that drive recipes by hand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use bytestring::ByteString;
use node_session::watches::Owner;
use node_session::{CreateMode, Failure, Moment, Request, Response, Watches};
use node_wire::client::{CREATE_EPHEMERAL, ErrorCode, EventType, MultiOp, MultiResult, Stat, WatcherEvent};
use node_wire::ephemeral::EphemeralType;
use node_wire::ids::{SessionId, Zxid};

use crate::recipe::{Ask, Effects, Input, Now, Recipe};

/// How long a session is certain after each answer.
pub(crate) const CERTAIN: Moment = Moment::from_secs(9);

/// The time-out of a session.
pub(crate) const TIMEOUT: Moment = Moment::from_secs(10);

#[derive(Clone, Default)]
pub(crate) struct Table {
    pub(crate) znodes: BTreeMap<String, (Bytes, Stat)>,
    sequences: BTreeMap<String, u32>,
    zxid: u64,
    /// The leader's clock.
    clock_ms: i64,
}

/// What goes with the session, by the flags of a creation that has no time to live.
fn owner_by_flags(flags: i32, session: SessionId) -> SessionId {
    if flags & CREATE_EPHEMERAL == 0 { SessionId::NONE } else { session }
}

fn owner_by_ttl(ttl_ms: i64) -> Result<SessionId, ErrorCode> {
    EphemeralType::Ttl { ttl_ms }.owner().ok_or(ErrorCode::BadArguments)
}

fn parent(path: &str) -> String {
    match path.rfind('/') {
        Some(0) | None => "/".into(),
        Some(at) => path[..at].into(),
    }
}

fn event(kind: EventType, path: &str) -> WatcherEvent {
    WatcherEvent { kind: kind.code(), state: 3, path: path.into() }
}

impl Table {
    pub(crate) fn data(&self, path: &str) -> Option<Bytes> {
        self.znodes.get(path).map(|(data, _)| data.clone())
    }

    pub(crate) fn children(&self, path: &str) -> Vec<ByteString> {
        let below = if path == "/" { "/".into() } else { format!("{path}/") };
        let names = self.znodes.keys().filter_map(|key| key.strip_prefix(&below));
        names.filter(|name| !name.is_empty() && !name.contains('/')).map(Into::into).collect()
    }

    fn stat(&self, path: &str) -> Result<Stat, ErrorCode> {
        let (data, mut stat) = self.znodes.get(path).cloned().ok_or(ErrorCode::NoNode)?;
        stat.num_children = i32::try_from(self.children(path).len()).unwrap();
        stat.data_length = i32::try_from(data.len()).unwrap();
        Ok(stat)
    }

    fn versioned(&self, path: &str, version: i32) -> Result<Stat, ErrorCode> {
        let stat = self.stat(path)?;
        if version == -1 || version == stat.version { Ok(stat) } else { Err(ErrorCode::BadVersion) }
    }

    fn create(
        &mut self,
        owner: SessionId,
        path: &str,
        data: Bytes,
        flags: i32,
        events: &mut Vec<WatcherEvent>,
    ) -> Result<(ByteString, Stat), ErrorCode> {
        let above = parent(path);
        if above != "/"
            && matches!(EphemeralType::of(self.stat(&above)?.ephemeral_owner), EphemeralType::Normal(_))
        {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        let mut path = path.to_owned();
        if flags & 2 != 0 {
            let next = self.sequences.entry(above.clone()).or_default();
            path = format!("{path}{next:010}");
            *next += 1;
        }
        if self.znodes.contains_key(&path) {
            return Err(ErrorCode::NodeExists);
        }
        let czxid = Zxid::from_wire(i64::try_from(self.zxid).unwrap());
        let (ctime, mtime) = (self.clock_ms, self.clock_ms);
        let stat = Stat { czxid, mzxid: czxid, ctime, mtime, ephemeral_owner: owner, ..Stat::default() };
        self.znodes.insert(path.clone(), (data, stat));
        events.extend([event(EventType::NodeCreated, &path), event(EventType::NodeChildrenChanged, &above)]);
        Ok((path.into(), stat))
    }

    fn remove(
        &mut self,
        path: &str,
        version: i32,
        events: &mut Vec<WatcherEvent>,
    ) -> Result<Stat, ErrorCode> {
        let stat = self.versioned(path, version)?;
        if !self.children(path).is_empty() {
            return Err(ErrorCode::NotEmpty);
        }
        self.znodes.remove(path);
        let above = parent(path);
        events.extend([event(EventType::NodeDeleted, path), event(EventType::NodeChildrenChanged, &above)]);
        Ok(stat)
    }

    fn set(
        &mut self,
        path: &str,
        data: Bytes,
        version: i32,
        events: &mut Vec<WatcherEvent>,
    ) -> Result<Stat, ErrorCode> {
        let mut stat = self.versioned(path, version)?;
        stat.version += 1;
        stat.mtime = self.clock_ms;
        stat.mzxid = Zxid::from_wire(i64::try_from(self.zxid).unwrap());
        self.znodes.insert(path.into(), (data, stat));
        events.push(event(EventType::NodeDataChanged, path));
        Ok(stat)
    }

    fn one(
        &mut self,
        owner: SessionId,
        op: &MultiOp,
        events: &mut Vec<WatcherEvent>,
    ) -> Result<MultiResult, ErrorCode> {
        Ok(match op {
            MultiOp::Create(body) | MultiOp::Create2(body) | MultiOp::CreateContainer(body) => {
                let data = body.data.clone().unwrap_or_default();
                let owner = owner_by_flags(body.flags, owner);
                let (path, stat) = self.create(owner, &body.path, data, body.flags, events)?;
                MultiResult::Create2 { path, stat }
            }
            MultiOp::CreateTtl(body) => {
                let data = body.data.clone().unwrap_or_default();
                let owner = owner_by_ttl(body.ttl_ms)?;
                let (path, stat) = self.create(owner, &body.path, data, body.flags, events)?;
                MultiResult::Create2 { path, stat }
            }
            MultiOp::Delete(body) => {
                self.remove(&body.path, body.version, events)?;
                MultiResult::Delete
            }
            MultiOp::SetData(body) => {
                let data = body.data.clone().unwrap_or_default();
                MultiResult::SetData { stat: self.set(&body.path, data, body.version, events)? }
            }
            MultiOp::Check(body) => {
                self.versioned(&body.path, body.version)?;
                MultiResult::Check
            }
            MultiOp::GetData(body) => {
                let stat = self.stat(&body.path)?;
                MultiResult::GetData { data: self.data(&body.path), stat }
            }
            MultiOp::GetChildren(body) => {
                self.stat(&body.path)?;
                MultiResult::GetChildren { children: self.children(&body.path) }
            }
        })
    }

    fn multi(
        &mut self,
        owner: SessionId,
        ops: &[MultiOp],
        events: &mut Vec<WatcherEvent>,
    ) -> Result<Response, Failure> {
        let before = self.clone();
        let mut results = Vec::new();
        for (at, op) in ops.iter().enumerate() {
            match self.one(owner, op, events) {
                Ok(result) => results.push(result),
                Err(code) => {
                    *self = before;
                    events.clear();
                    return Err(Failure::Refused { code, at: Some(at) });
                }
            }
        }
        Ok(Response::Multi(results))
    }

    /// The znodes whose time to live is over.
    fn ran_out(&self) -> Vec<String> {
        let is_over = |(path, (_, stat)): &(&String, &(Bytes, Stat))| {
            matches!(EphemeralType::of(stat.ephemeral_owner), EphemeralType::Ttl { ttl_ms }
                if self.clock_ms - stat.mtime > ttl_ms && self.children(path).is_empty())
        };
        self.znodes.iter().filter(is_over).map(|(path, _)| path.clone()).collect()
    }

    pub(crate) fn apply(
        &mut self,
        owner: SessionId,
        request: &Request,
    ) -> (Result<Response, Failure>, Vec<WatcherEvent>) {
        self.zxid += 1;
        let mut events = Vec::new();
        let result = match request {
            Request::Multi(ops) => return (self.multi(owner, ops, &mut events), events),
            Request::MultiRead(ops) => {
                let results = ops.iter().map(|op| {
                    let failed = |code: ErrorCode| MultiResult::Error { err: code.code() };
                    self.one(owner, op, &mut Vec::new()).unwrap_or_else(failed)
                });
                Ok(Response::Multi(results.collect()))
            }
            Request::Create { path, data, mode, .. } => match mode {
                CreateMode::Ttl(ttl_ms) | CreateMode::TtlSequential(ttl_ms) => owner_by_ttl(*ttl_ms),
                _ => Ok(owner_by_flags(mode.flags(), owner)),
            }
            .and_then(|owner| self.create(owner, path, data.clone(), mode.flags(), &mut events))
            .map(|(path, stat)| Response::Created { path, stat }),
            Request::Delete { path, version } => {
                self.remove(path, *version, &mut events).map(|_| Response::Done)
            }
            Request::SetData { path, data, version } => {
                self.set(path, data.clone(), *version, &mut events).map(Response::Stat)
            }
            Request::Exists { path, .. } => Ok(Response::Exists(self.stat(path).ok())),
            Request::GetData { path, .. } => {
                self.stat(path).map(|stat| Response::Data { data: self.data(path).unwrap_or_default(), stat })
            }
            Request::GetChildren { path, .. } => {
                self.stat(path).map(|stat| Response::Children { names: self.children(path), stat })
            }
            Request::Sync { .. } | Request::AddWatch { .. } | Request::RemoveWatches { .. } => {
                Ok(Response::Done)
            }
            other => panic!("{other:?}"),
        };
        (result.map_err(Failure::refused), events)
    }
}

/// A client with one recipe.
pub(crate) struct Client<R: Recipe> {
    pub(crate) recipe: R,
    pub(crate) open: VecDeque<(Ask, Request)>,
    told: Vec<R::Told>,
    watches: Watches,
    inbox: Vec<WatcherEvent>,
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
    pub(crate) table: Table,
    pub(crate) clients: Vec<Client<R>>,
    pub(crate) at: Moment,
    sessions: i64,
}

impl<R: Recipe> World<R> {
    /// A world with these persistent znodes, in which each recipe's client is connected.
    pub(crate) fn new(paths: &[&str], recipes: impl IntoIterator<Item = R>) -> Self {
        let mut world = World { table: Table::default(), clients: Vec::new(), at: Moment::ZERO, sessions: 0 };
        world.table.znodes.insert("/".into(), (Bytes::new(), Stat::default()));
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

    /// Another process takes the place of this one, over the same session. What the one before asked for may
    /// still be carried out.
    pub(crate) fn replace(&mut self, who: usize, recipe: R) {
        let client = &mut self.clients[who];
        client.recipe = recipe;
        client.told.clear();
        let open = std::mem::take(&mut client.open);
        client.late.extend(open.into_iter().map(|(_, request)| request));
        if client.connected {
            let session = client.session.unwrap();
            self.give(who, Input::Connected { session });
        }
    }

    /// Somebody else asks.
    pub(crate) fn outside(&mut self, request: &Request) -> Result<Response, Failure> {
        let (answer, events) = self.table.apply(SessionId(99), request);
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

    fn deliver(&mut self, events: &[WatcherEvent]) {
        for who in 0..self.clients.len() {
            for event in events {
                if self.clients[who].connected {
                    self.tell(who, event);
                } else {
                    self.clients[who].inbox.push(event.clone());
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
        let (answer, events) = self.table.apply(session, &request);
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
            let (_, events) = self.table.apply(session, &request);
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
            let (_, events) = self.table.apply(session, request);
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
            std::mem::take(&mut self.clients[who].inbox).into_iter().map(|event| event.path).collect();
        for path in changed {
            self.catch_up(who, &path);
        }
    }

    /// Tells one-time watches of a path what a server tells when they are left again: how it is now.
    fn catch_up(&mut self, who: usize, path: &ByteString) {
        let there = self.table.znodes.contains_key(&**path);
        let kinds: &[EventType] = match there {
            true => &[EventType::NodeDataChanged, EventType::NodeChildrenChanged],
            false => &[EventType::NodeDeleted],
        };
        for kind in kinds {
            let mut once = self.clients[who].watches.clone();
            let event = event(*kind, path);
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
        let of_session = |(path, (_, stat)): (&String, &(Bytes, Stat))| {
            (stat.ephemeral_owner == session).then(|| path.clone())
        };
        let gone: Vec<String> = self.table.znodes.iter().filter_map(of_session).collect();
        for path in gone {
            self.delete(&path);
        }
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

    /// Puts the clocks forward. The leader's runs faster than the clients' by a twentieth, and the leader
    /// deletes at once what lived for its time.
    fn advance(&mut self, at: Moment) {
        self.at = at;
        let clock_ms = i64::try_from(at.as_millis()).unwrap();
        self.table.clock_ms = clock_ms + clock_ms / 20;
        for path in self.table.ran_out() {
            self.delete(&path);
        }
    }

    /// Time passes, and everybody hears of it.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.advance(self.at + Moment::from_millis(ms));
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
                self.advance(self.at.max(until));
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
