//! The members: their machines and processes, the wires between them, and the driver that carries their
//! effects out.
//!
//! What a member asks for ends here: a message on a wire, an operation in a store's queue. It judges nothing
//! and breaks nothing. Who breaks something ([`chaos`](super::chaos)) and who judges
//! ([`oracle`](super::oracle)) come from outside.

mod election;
pub(super) mod files;
pub(super) mod machine;
pub(super) mod membership;
pub(super) mod statuses;
pub(super) mod wires;
pub(super) mod work;

use std::collections::BTreeSet;

use lab_mutants::{Driver, Mutant};
use node_core::io::Effect;
use node_core::{Factory, Zab};
use node_wire::ids::ServerId;

use crate::drawn::Drawn;
use crate::host::Host;
use crate::network::{Channels, Conn, HostIndex, Links};
use crate::world::Clockwork;
use harness_world::dice::Dice;

/// Machines, processes and the wires between them.
pub(super) struct Ensemble {
    pub(super) factory: Box<dyn Factory>,
    /// What the driver of its members does wrong.
    pub(super) driver: Driver,
    pub(super) hosts: Vec<Host>,
    pub(super) links: Links,
    pub(super) conns: Vec<Conn>,
    pub(super) conns_in_use: Vec<usize>,
    /// Ends on which somebody speaks for a member that works: see [`work`].
    pub(super) speaking: BTreeSet<(usize, usize)>,
    pub(super) channels: Channels,
    /// Room for the effects of one step.
    pub(super) effects: Vec<Effect>,
    /// The member that was stepped last.
    pub(super) stepping: Option<HostIndex>,
}

impl Ensemble {
    /// Machines on which nothing runs yet, and open links.
    pub(super) fn new(drawn: &Drawn, dice: &mut Dice, mutant: Option<Mutant>) -> Self {
        let links = Links::new(drawn.hosts(), || dice.between(drawn.link_us.0, drawn.link_us.1));
        let hosts = (0..drawn.hosts()).map(|index| machine::new_host(index, drawn, dice)).collect();
        let factory: Box<dyn Factory> = match mutant {
            None => Box::new(Zab),
            Some(mutant) => Box::new(mutant),
        };
        Self {
            factory,
            driver: mutant.map_or(Driver::Sound, Mutant::driver),
            hosts,
            links,
            conns: Vec::new(),
            conns_in_use: Vec::new(),
            speaking: BTreeSet::new(),
            channels: Channels::new(drawn.hosts()),
            effects: Vec::new(),
            stepping: None,
        }
    }

    pub(super) fn server(&self, host: HostIndex) -> ServerId {
        self.hosts[host].id
    }

    /// The place of a member; none for an id that is not in the ensemble.
    pub(super) fn index_of(&self, server: ServerId) -> Option<HostIndex> {
        self.hosts.iter().position(|host| host.id == server)
    }

    pub(super) fn runs(&self, host: HostIndex) -> bool {
        self.hosts.get(host).is_some_and(|host| host.process.is_some())
    }

    /// True while the process that an event was planned for still runs.
    pub(super) fn lives(&self, host: HostIndex, life: u64) -> bool {
        self.hosts[host].life == life && self.hosts[host].process.is_some()
    }

    /// The delay of a message on a link, as drawn for this one message.
    pub(super) fn link_delay(&self, clock: &mut Clockwork, from: HostIndex, to: HostIndex) -> u64 {
        let usual = self.links.usual_us(from, to) + clock.dice.between(0, clock.drawn.jitter_us);
        let delay = usual + self.links.added_us(from, to, &mut clock.dice);
        if clock.dice.chance(clock.drawn.spike) {
            delay + clock.dice.between(0, clock.drawn.spike_us)
        } else {
            delay
        }
    }
}
