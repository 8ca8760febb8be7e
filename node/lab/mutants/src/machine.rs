//! A mutant as a driver sees it.

use std::hash::Hasher;

use node_core::io::{Effect, Input, Now, Recovered};
use node_core::{Config, Factory, Machine, Maker, Member, MemberView};
use node_wire::snapshot::ZxidDigest;

use crate::Mutant;
use crate::rules::Followed;
use crate::wrapper::{Inner, Wrapper};

/// A member that is a mutant.
#[derive(Clone)]
pub struct Mutated {
    inner: Inner,
    wrapper: Option<Box<dyn Wrapper>>,
    /// Effects of a step, before they are numbered for the driver.
    effects: Vec<Effect>,
}

impl Machine for Mutated {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        let Self { inner, wrapper, effects } = self;
        let Some(wrapper) = wrapper else {
            // The member's own numbers are the driver's.
            inner.member.step(now, input, out);
            return;
        };
        match input {
            Input::Stored { ticket } => inner.queue.durable(ticket),
            other => wrapper.step(inner, now, other, effects),
        }
        while let Some(ticket) = inner.queue.news() {
            wrapper.step(inner, now, Input::Stored { ticket }, effects);
        }
        for mut effect in effects.drain(..) {
            if let Effect::Store { ticket, .. } = &mut effect {
                *ticket = inner.queue.give(*ticket);
            }
            out.push(effect);
        }
    }

    fn member(&self) -> &dyn MemberView {
        &self.inner.member
    }

    fn expect_digest(&mut self, written: ZxidDigest) {
        self.inner.member.expect_digest(written);
    }

    fn fingerprint(&self, state: &mut impl Hasher) {
        self.inner.member.fingerprint(state);
        if let Some(wrapper) = &self.wrapper {
            self.inner.queue.fingerprint(state);
            wrapper.mixed_in(state);
        }
    }

    fn awaited_ticket(&self) -> Option<u64> {
        let awaited = self.inner.member.awaited_ticket()?;
        Some(if self.wrapper.is_some() { self.inner.queue.awaited(awaited) } else { awaited })
    }
}

impl Maker for Mutant {
    type Machine = Mutated;

    fn make(self, config: Config, recovered: Recovered, now: Now) -> Mutated {
        let wrapper = (self.0.wrapper)(&recovered);
        let member = Member::new(config.clone(), recovered, now, Followed::new(self.0.rules));
        Mutated { inner: Inner::new(config, member), wrapper, effects: Vec::new() }
    }
}

impl Factory for Mutant {
    fn start(&self, config: Config, recovered: Recovered, now: Now) -> Box<dyn Machine> {
        Box::new(self.make(config, recovered, now))
    }
}
