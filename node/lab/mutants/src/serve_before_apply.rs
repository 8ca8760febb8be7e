//! A member serves before it applied what it was synchronized with: that is done by and by, in the
//! background.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use node_core::MemberView;
use node_core::io::{ConnId, Effect, Input, Now};
use node_wire::quorum::{PacketType, QuorumPacket};

use crate::wrapper::{Inner, Wrapper, left_role};
use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "serve-before-apply",
    origin: "ZOOKEEPER-3023",
    summary: "a member serves before it applied what it was synchronized with",
    wrapper: |_| Some(Box::new(Background::default())),
    recipe: Ok(Recipe {
        nemesis: "kill-one,kill-leader",
        workload: "register",
        flags: "--interval 2s --rate 2000",
        tries: 5,
    }),
    ..USUAL
};

/// What is committed and not applied yet.
#[derive(Clone, Debug, Default)]
struct Background {
    /// The leader, once it began to send its history.
    leader: Option<ConnId>,
    /// UPTODATE came, and not all that was committed then is applied.
    behind: bool,
    /// Everything up to here is committed.
    committed: i64,
    /// What the leader said of it.
    said: VecDeque<QuorumPacket>,
}

impl Hash for Background {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { leader, behind, committed, said } = self;
        (leader, behind, committed).hash(state);
        for packet in said {
            (packet.kind.code(), packet.zxid, &packet.data).hash(state);
        }
    }
}

impl Background {
    /// What is given to the member instead of a packet. None if it has to wait.
    fn instead(&mut self, inner: &Inner, conn: ConnId, mut packet: QuorumPacket) -> Option<QuorumPacket> {
        match packet.kind {
            PacketType::Diff | PacketType::Trunc | PacketType::Snap => {
                *self = Self { leader: Some(conn), ..Self::default() };
            }
            PacketType::Commit | PacketType::CommitAndActivate
                if self.leader.is_some() && (self.behind || !inner.member.status().established) =>
            {
                self.committed = self.committed.max(packet.zxid);
                self.said.push_back(packet);
                return None;
            }
            PacketType::UpToDate if self.leader.is_some() => {
                self.committed = self.committed.max(packet.zxid);
                self.behind = true;
                packet.zxid = inner.member.last_applied().to_wire();
            }
            _ => {}
        }
        Some(packet)
    }

    /// The next of it is applied.
    fn apply_one(&mut self, inner: &mut Inner, now: Now, out: &mut Vec<Effect>) {
        let (entries, applied) = inner.member.history();
        let next = entries.get(applied).map(|entry| entry.zxid().to_wire());
        let (Some(conn), Some(next)) = (self.leader, next.filter(|next| *next <= self.committed)) else {
            self.behind = false;
            self.said.clear();
            return;
        };
        while self.said.front().is_some_and(|packet| packet.zxid < next) {
            self.said.pop_front();
        }
        let packet = match self.said.front() {
            Some(packet) if packet.zxid == next => self.said.pop_front().expect("just looked at"),
            _ => QuorumPacket::new(PacketType::Commit, next, None),
        };
        inner.step(now, Input::Packet { conn, packet }, out);
    }
}

impl Wrapper for Background {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let before = out.len();
        let tick = matches!(input, Input::Tick);
        match input {
            Input::Packet { conn, packet } => {
                if let Some(packet) = self.instead(inner, conn, packet) {
                    inner.step(now, Input::Packet { conn, packet }, out);
                }
            }
            other => inner.step(now, other, out),
        }
        if tick && self.behind {
            self.apply_one(inner, now, out);
        }
        if left_role(&out[before..]) {
            *self = Self::default();
        }
    }
}
