//! What stands between a member and its driver.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

use node_core::io::{ConnId, Effect, Event, Input, Now, Recovered, StoreOp};
use node_core::{Config, Member, MemberView, Phase, Role};
use node_wire::ids::ServerId;
use node_wire::quorum::{PacketType, QuorumPacket};

use crate::queue::Queue;
use crate::rules::Followed;

/// The member behind a wrapper.
#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) member: Member<Followed>,
    pub(crate) queue: Queue,
    pub(crate) config: Config,
    /// Peers with an election connection.
    connected: BTreeSet<ServerId>,
}

impl Inner {
    pub(crate) fn new(config: Config, member: Member<Followed>) -> Self {
        Self { member, queue: Queue::default(), config, connected: BTreeSet::new() }
    }

    /// One fact in, its effects out.
    pub(crate) fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        match &input {
            Input::ElectionConnected { peer } => {
                self.connected.insert(*peer);
            }
            Input::ElectionLost { peer } => {
                self.connected.remove(peer);
            }
            _ => {}
        }
        let before = out.len();
        self.member.step(now, input, out);
        for effect in &out[before..] {
            if let Effect::Store { ticket, .. } = effect {
                self.queue.numbered(*ticket);
            }
        }
    }

    /// True while it follows and is in this phase.
    pub(crate) fn follows_in(&self, phase: Phase) -> bool {
        let status = self.member.status();
        matches!(status.role, Role::Following(_)) && status.phase == phase
    }

    /// Goes on in the same process as a member that found something else when it started. Its connections to
    /// peers that look stand.
    pub(crate) fn become_another(&mut self, found: Recovered, now: Now, out: &mut Vec<Effect>) {
        // What the member before had to store in this step is none of the new one's.
        for effect in out.iter_mut() {
            if let Effect::Store { ticket, .. } = effect {
                *ticket = 0;
            }
        }
        let rules = self.member.rules();
        self.member = Member::new(self.config.clone(), found, now, rules);
        self.queue.begin_anew();
        for peer in std::mem::take(&mut self.connected) {
            self.step(now, Input::ElectionConnected { peer }, out);
        }
        self.step(now, Input::Tick, out);
    }
}

/// What a mutant does with inputs and effects, and what it remembers for it.
pub(crate) trait Wrapper: Memory + Debug {
    /// One fact in, its effects out, appended in order. An operation of the store bears the member's number,
    /// or 0 when it is none of the member's; [`Input::Stored`] does as well.
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>);
}

/// State that can be copied and compared by a number.
pub(crate) trait Memory: Send {
    fn copied(&self) -> Box<dyn Wrapper>;
    fn mixed_in(&self, state: &mut dyn Hasher);
}

impl<W: Wrapper + Clone + Hash + Send + 'static> Memory for W {
    fn copied(&self) -> Box<dyn Wrapper> {
        Box::new(self.clone())
    }

    fn mixed_in(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}

impl Clone for Box<dyn Wrapper> {
    fn clone(&self) -> Self {
        self.as_ref().copied()
    }
}

/// The packet of an input, and where it came from.
pub(crate) fn packet(input: &Input) -> Option<(ConnId, &QuorumPacket)> {
    match input {
        Input::Packet { conn, packet } => Some((*conn, packet)),
        _ => None,
    }
}

/// The packet of an input, if it is of this kind.
pub(crate) fn packet_of(input: &Input, kind: PacketType) -> Option<(ConnId, &QuorumPacket)> {
    packet(input).filter(|(_, packet)| packet.kind == kind)
}

/// True when a role ended among these.
pub(crate) fn left_role(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Event(Event::Looking { .. })))
}

/// An operation of the store that is none of the member's.
pub(crate) fn added(op: StoreOp) -> Effect {
    Effect::Store { ticket: 0, op }
}
