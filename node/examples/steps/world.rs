//! Three members in memory, and how long each of their steps takes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use node_core::io::{ClientId, ConnId, Effect, Event, Input, Now, Recovered};
use node_core::{CONTAINER_CHECK, ClientRules, Config, Member, MemberView, Phase, Zab};
use node_wire::client::{ConnectRequest, OpCode, Request};
use node_wire::ids::{Epoch, ServerId, SessionId, Zxid};
use node_wire::snapshot::{Image, NodeRecord, OPEN_ACL, StatPersisted};
use node_wire::txn::Entry;

use crate::Longest;

/// The largest `jute.maxbuffer` that is tried.
pub(crate) const LARGE: usize = 16 << 20;

/// The default one.
pub(crate) const USUAL: usize = 0xf_ffff;

/// The end of a connection, at a member.
type End = (ServerId, ConnId);

pub(crate) struct World {
    pub(crate) members: BTreeMap<ServerId, Member>,
    now: Now,
    wires: BTreeMap<End, End>,
    last_conn: u64,
    last_client: u64,
    under_way: VecDeque<(ServerId, Input)>,
    /// Who was elected last.
    leader: Option<ServerId>,
    pub(crate) trees_sent: u32,
    longest: Longest,
}

impl World {
    /// Three members that have just started, each with what it has on its disk.
    pub(crate) fn starting(rules: &ClientRules, found: impl Fn(ServerId) -> Recovered) -> World {
        let now = Now { mono: Duration::ZERO, wall_ms: 1_700_000_000_000 };
        let ids: BTreeSet<ServerId> = (1..=3).map(ServerId).collect();
        let members =
            ids.iter().map(|id| (*id, Member::new(config(*id, ids.clone(), rules), found(*id), now, Zab)));
        let mut world = World {
            members: members.collect(),
            now,
            wires: BTreeMap::new(),
            last_conn: 0,
            last_client: 0,
            under_way: VecDeque::new(),
            leader: None,
            trees_sent: 0,
            longest: Longest::default(),
        };
        for (from, peer) in [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)] {
            world.step(ServerId(from), Input::ElectionConnected { peer: ServerId(peer) });
        }
        world
    }

    /// Three members with this tree, which serve. What is timed begins here.
    pub(crate) fn serving(image: &Image) -> World {
        Self::serving_by(&ClientRules::default(), image)
    }

    /// The same, where clients may do what these rules say.
    pub(crate) fn serving_by(rules: &ClientRules, image: &Image) -> World {
        let mut world = Self::starting(rules, |_| found(1, image, &[]));
        world.until(|world| world.members.values().all(|member| member.status().phase == Phase::Broadcast));
        world.forget();
        world
    }

    /// Lets time pass until it is so.
    pub(crate) fn until(&mut self, is_so: impl Fn(&World) -> bool) {
        for _ in 0..100_000 {
            if is_so(self) {
                return;
            }
            self.now.mono += Duration::from_millis(10);
            self.now.wall_ms += 10;
            for id in [1, 2, 3].map(ServerId) {
                self.step(id, Input::Tick);
            }
            self.deliver();
        }
        panic!("it does not come to that");
    }

    pub(crate) fn deliver(&mut self) {
        while let Some((id, input)) = self.under_way.pop_front() {
            self.step(id, input);
        }
    }

    /// What was timed so far does not count.
    pub(crate) fn forget(&mut self) {
        self.longest = Longest::default();
    }

    pub(crate) fn longest(self) -> Longest {
        self.longest
    }

    pub(crate) fn follower(&self) -> ServerId {
        let found = self.members.keys().find(|id| Some(**id) != self.leader);
        *found.expect("three members have followers")
    }

    /// A client with a new session.
    pub(crate) fn client(&mut self, at: ServerId, timeout_ms: i32) -> ClientId {
        self.last_client += 1;
        let client = ClientId(self.last_client);
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: Zxid::ZERO,
            timeout_ms,
            session: SessionId::NONE,
            password: Bytes::new(),
            read_only: Some(false),
        };
        self.step(at, Input::ClientConnect { client, request, who: Vec::new() });
        self.deliver();
        client
    }

    /// A request, until all is quiet.
    pub(crate) fn ask(&mut self, at: ServerId, client: ClientId, op: OpCode, body: Bytes) {
        let request = Request { xid: 1, op: op.code(), body };
        self.step(at, Input::ClientRequest { client, request });
        self.deliver();
    }

    /// A look of an operator, which takes a follower as long as a step would.
    pub(crate) fn look<T>(&mut self, id: ServerId, look: impl Fn(&Member) -> T) {
        let (seen, took) = timed(|| look(&self.members[&id]));
        drop(seen);
        self.took(id, took);
    }

    fn took(&mut self, id: ServerId, took: Duration) {
        let Longest { leader, follower } = &mut self.longest;
        let longest = if self.leader == Some(id) { leader } else { follower };
        *longest = took.max(*longest);
    }

    pub(crate) fn step(&mut self, id: ServerId, input: Input) {
        let mut effects = Vec::new();
        let Some(member) = self.members.get_mut(&id) else { return };
        let ((), took) = timed(|| member.step(self.now, input, &mut effects));
        for effect in &effects {
            if let Effect::Event(Event::Elected { leader, .. }) = effect {
                self.leader = Some(*leader);
            }
        }
        self.took(id, took);
        for effect in effects {
            self.carry_out(id, effect);
        }
    }

    fn carry_out(&mut self, id: ServerId, effect: Effect) {
        let other = |wires: &BTreeMap<End, End>, conn| wires.get(&(id, conn)).copied();
        match effect {
            Effect::Store { ticket, .. } => self.under_way.push_back((id, Input::Stored { ticket })),
            Effect::Notify { to, notification } => {
                self.under_way.push_back((to, Input::Notification { from: id, notification }));
            }
            Effect::Dial { leader } => {
                self.last_conn += 1;
                let conn = ConnId(self.last_conn);
                self.wires.insert((id, conn), (leader, conn));
                self.wires.insert((leader, conn), (id, conn));
                self.under_way.push_back((id, Input::Dialled { leader, conn }));
                self.under_way.push_back((leader, Input::Accepted { conn }));
            }
            Effect::Send { conn, packet } => {
                if let Some((to, conn)) = other(&self.wires, conn) {
                    self.under_way.push_back((to, Input::Packet { conn, packet }));
                }
            }
            Effect::SendImage { conn, snapshot } => {
                self.trees_sent += 1;
                if let Some((to, conn)) = other(&self.wires, conn) {
                    self.under_way.push_back((to, Input::Image { conn, image: snapshot.to_image() }));
                }
            }
            Effect::Close { conn } => {
                if let Some((to, end)) = self.wires.remove(&(id, conn)) {
                    self.wires.remove(&(to, end));
                    self.under_way.push_back((to, Input::PeerLost { conn: end }));
                }
            }
            Effect::Halt { reason } => panic!("a member of a sound ensemble halts: {reason}"),
            Effect::TakeSnapshot(_)
            | Effect::Reply { .. }
            | Effect::CloseClient { .. }
            | Effect::Ensemble { .. }
            | Effect::Event(_) => {}
        }
    }
}

/// What a member has on its disk that is in this epoch.
pub(crate) fn found(epoch: u32, image: &Image, entries: &[Entry]) -> Recovered {
    let (image, entries, epoch) = (image.clone(), entries.to_vec(), Epoch(epoch));
    Recovered { accepted_epoch: epoch, current_epoch: epoch, image, entries }
}

/// What comes of it, and what it takes of this thread's processor time: what others do on the machine does
/// not count.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let worked = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(now).unwrap_or_default()
    };
    let begun = worked();
    let came = work();
    (came, worked() - begun)
}

fn config(id: ServerId, voters: BTreeSet<ServerId>, rules: &ClientRules) -> Config {
    Config {
        clients: ClientRules { max_buffer: LARGE, container_check: CONTAINER_CHECK, ..rules.clone() },
        ..Config::usual(id, voters)
    }
}

/// A session that nobody comes for.
pub(crate) const ABANDONED: SessionId = SessionId(0x0900_0000_0000_0001);

/// A tree of the root and of these nodes, each with its data and its session.
pub(crate) fn image(nodes: impl IntoIterator<Item = (String, Bytes, SessionId)>) -> Image {
    let zxid = Zxid::new(Epoch(1), 1);
    let built_in = ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"];
    let built_in = built_in.map(|path| (path.to_owned(), Bytes::new(), SessionId::NONE));
    let mut nodes: Vec<NodeRecord> = built_in
        .into_iter()
        .chain(nodes)
        .map(|(path, data, ephemeral_owner)| NodeRecord {
            path: ByteString::from(path),
            data: Some(data),
            acl: OPEN_ACL,
            stat: StatPersisted {
                czxid: zxid,
                mzxid: zxid,
                pzxid: zxid,
                ephemeral_owner,
                ..Default::default()
            },
        })
        .collect();
    nodes.sort_by(|one, other| one.path.cmp(&other.path));
    let owners: BTreeSet<SessionId> = nodes.iter().map(|node| node.stat.ephemeral_owner).collect();
    let sessions = owners.into_iter().filter(|owner| *owner != SessionId::NONE);
    Image { zxid, sessions: sessions.map(|session| (session, 4000)).collect(), acls: Vec::new(), nodes }
}

/// `/many`, and so many nodes below it.
pub(crate) fn many(count: u64, owner: impl Fn(u64) -> SessionId) -> Image {
    let parent = ("/many".to_owned(), Bytes::new(), SessionId::NONE);
    let nodes = (0..count).map(|number| (child(number), Bytes::new(), owner(number)));
    image(std::iter::once(parent).chain(nodes))
}

/// The path of one of them.
pub(crate) fn child(number: u64) -> String {
    format!("/many/n{number:07}")
}
