//! What a driver drives: a member, or something around one that answers inputs with effects as a member does.
//!
//! A process and a simulator owe either the same (see [`crate::io`]), so they drive a [`Machine`], whatever
//! its rules, and are given a [`Factory`] that makes one whenever a member starts. A step costs a microsecond
//! and more; that it is called by way of a table costs nothing that could be measured, and the driver is
//! compiled once. Whoever keeps many states of one machine is written over a [`Maker`] instead.

use std::hash::Hasher;

use node_wire::snapshot::ZxidDigest;

use crate::config::Config;
use crate::io::{Effect, Input, Now, Recovered};
use crate::member::{Member, MemberView};
use crate::zab::{Protocol, Zab};

/// Facts in, effects out.
pub trait Machine: 'static {
    /// One fact in, its effects out, appended in order.
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>);

    /// The member, to look at.
    fn member(&self) -> &dyn MemberView;

    /// What the writer of the recovered snapshot had as its digest. Given before the first step, if at all.
    fn expect_digest(&mut self, written: ZxidDigest);

    /// Mixes in everything that can decide what happens next.
    fn fingerprint(&self, state: &mut impl Hasher)
    where
        Self: Sized;

    /// The ticket that is waited for, if any: durability of what is before it changes nothing that could be
    /// seen.
    fn awaited_ticket(&self) -> Option<u64>;
}

impl<P: Protocol> Machine for Member<P> {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        Self::step(self, now, input, out);
    }

    fn member(&self) -> &dyn MemberView {
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

/// Makes the machines of an ensemble, of one type each.
pub trait Maker: Factory + Copy {
    /// What it makes.
    type Machine: Machine + Clone;

    /// A machine that just started. It does nothing before its first step.
    fn make(self, config: Config, recovered: Recovered, now: Now) -> Self::Machine;
}

/// Makes the machines of an ensemble.
///
/// What is made is compiled where this is implemented, and not once more by each driver.
pub trait Factory: 'static {
    /// A machine that just started. It does nothing before its first step.
    fn start(&self, config: Config, recovered: Recovered, now: Now) -> Box<dyn Machine>;
}

impl Maker for Zab {
    type Machine = Member;

    fn make(self, config: Config, recovered: Recovered, now: Now) -> Member {
        Member::new(config, recovered, now, self)
    }
}

impl Factory for Zab {
    fn start(&self, config: Config, recovered: Recovered, now: Now) -> Box<dyn Machine> {
        Box::new(self.make(config, recovered, now))
    }
}
