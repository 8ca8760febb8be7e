//! What a driver drives: a member, or something around one that answers inputs with effects as a member does.
//!
//! A process and a simulator owe either the same (see [`crate::io`]), so they are written over [`Machine`],
//! and are given a [`Factory`] that makes one whenever a member starts.

use std::hash::Hasher;

use node_wire::snapshot::ZxidDigest;

use crate::config::Config;
use crate::io::{Effect, Input, Now, Recovered};
use crate::member::Member;
use crate::zab::{Protocol, Zab};

/// Facts in, effects out.
pub trait Machine: Clone + 'static {
    /// The rules of the member inside.
    type Rules: Protocol;

    /// One fact in, its effects out, appended in order.
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>);

    /// The member, to look at.
    fn member(&self) -> &Member<Self::Rules>;

    /// What the writer of the recovered snapshot had as its digest. Given before the first step, if at all.
    fn expect_digest(&mut self, written: ZxidDigest);

    /// Mixes in everything that can decide what happens next.
    fn fingerprint(&self, state: &mut impl Hasher);

    /// The ticket that is waited for, if any: durability of what is before it changes nothing that could be
    /// seen.
    fn awaited_ticket(&self) -> Option<u64>;
}

impl<P: Protocol> Machine for Member<P> {
    type Rules = P;

    #[inline]
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        Self::step(self, now, input, out);
    }

    fn member(&self) -> &Member<P> {
        self
    }

    fn expect_digest(&mut self, written: ZxidDigest) {
        Self::expect_digest(self, written);
    }

    fn fingerprint(&self, state: &mut impl Hasher) {
        Self::fingerprint(self, state);
    }

    fn awaited_ticket(&self) -> Option<u64> {
        Self::awaited_ticket(self)
    }
}

/// Makes the machines of an ensemble.
pub trait Factory: Copy + 'static {
    /// What it makes.
    type Machine: Machine;

    /// A machine that just started. It does nothing before its first step.
    fn start(self, config: Config, recovered: Recovered, now: Now) -> Self::Machine;
}

impl Factory for Zab {
    type Machine = Member;

    fn start(self, config: Config, recovered: Recovered, now: Now) -> Member {
        Member::new(config, recovered, now, self)
    }
}
