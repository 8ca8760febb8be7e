//! Members that stand: alone, and three together, made by letting them elect and serve in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use node_core::io::{ConnId, Effect, Input, Now, Recovered};
use node_core::{ClientRules, Config, Member, MemberView, Phase, Role, Zab};
use node_wire::ids::ServerId;

/// When all of them stand.
pub(crate) const LATER: Now = Now { mono: Duration::from_secs(60), wall_ms: 1_700_000_060_000 };

/// The members, each to be cloned.
pub(crate) struct Ready {
    pub(crate) alone: Member,
    pub(crate) looking: Member,
    pub(crate) following: (Member, BTreeSet<ConnId>),
    pub(crate) leading: (Member, BTreeSet<ConnId>),
}

pub(crate) fn ready() -> Ready {
    let mut alone = World::new(1);
    alone.settle();
    let mut three = World::new(3);
    three.settle();
    let role_of = |leads: bool| {
        let found = three.members.iter().find(|(_, member)| (member.status().role == Role::Leading) == leads);
        let (id, member) = found.expect("three members have a leader and followers");
        let conns = three.wires.iter().filter(|(end, _)| end.0 == *id).map(|(end, _)| end.1).collect();
        (member.clone(), conns)
    };
    Ready {
        alone: alone.members[&ServerId(1)].clone(),
        looking: World::new(3).members[&ServerId(2)].clone(),
        following: role_of(false),
        leading: role_of(true),
    }
}

/// The end of a connection, at a member.
type End = (ServerId, ConnId);

struct World {
    members: BTreeMap<ServerId, Member>,
    now: Now,
    wires: BTreeMap<End, End>,
    last_conn: u64,
    under_way: VecDeque<(ServerId, Input)>,
}

impl World {
    fn new(count: u64) -> Self {
        let now = Now { mono: Duration::ZERO, wall_ms: 1_700_000_000_000 };
        let ids: BTreeSet<ServerId> = (1..=count).map(ServerId).collect();
        let members = ids.iter().map(|id| {
            let config = config(*id, ids.clone());
            (*id, Member::new(config, Recovered::default(), now, Zab))
        });
        Self {
            members: members.collect(),
            now,
            wires: BTreeMap::new(),
            last_conn: 0,
            under_way: VecDeque::new(),
        }
    }

    /// Until everybody serves, and on to [`LATER`].
    fn settle(&mut self) {
        let ids: Vec<ServerId> = self.members.keys().copied().collect();
        for (from, peer) in ids.iter().flat_map(|from| ids.iter().map(move |peer| (*from, *peer))) {
            if from != peer {
                self.step(from, Input::ElectionConnected { peer });
            }
        }
        while self.now.mono < LATER.mono {
            self.now.mono += Duration::from_millis(10);
            self.now.wall_ms += 10;
            for id in &ids {
                self.step(*id, Input::Tick);
            }
            while let Some((id, input)) = self.under_way.pop_front() {
                self.step(id, input);
            }
        }
        for member in self.members.values() {
            assert_eq!(member.status().phase, Phase::Broadcast, "every member serves: {:?}", member.status());
        }
    }

    fn step(&mut self, id: ServerId, input: Input) {
        let mut effects = Vec::new();
        let Some(member) = self.members.get_mut(&id) else { return };
        member.step(self.now, input, &mut effects);
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

fn config(id: ServerId, voters: BTreeSet<ServerId>) -> Config {
    Config {
        snap_count: 100.into(),
        clients: ClientRules { container_check: Duration::from_secs(10), ..ClientRules::default() },
        ..Config::usual(id, voters)
    }
}
