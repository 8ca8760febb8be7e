//! Faults: who is hit, what is done, and what follows from it.
//!
//! A kind of fault is a value, one file each, and a line in the list below: its name, its sentence, the
//! mechanism that a cluster needs for it, the smallest ensemble on which it means anything, and its aim. The
//! aim decides at the moment of injection whom it hits ([`scene`]), and makes of a shape of [`topology`]
//! what a [`mechanism`](crate::mechanism) carries out. Several faults may act at once: [`in_force`] is what
//! follows from all of them together. The swarm of `harness sim` draws from the same catalogue, and what
//! only a virtual world can do beside it ([`SwarmFault`]). Beside the catalogue there are the faults of the
//! user's own ([`own`]), which a system's file describes.

pub mod application;
pub mod in_force;
pub mod own;
pub mod scene;
pub mod server;
pub mod topology;

mod lose_unsynced;
mod own_aim;
mod swarm;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::mechanism::Mechanism;
use crate::mechanism::own::OWN;
use crate::parameter::Parameters;
use runs::kinds::FaultKind;
use runs::member::MemberId;
use serde::{Serialize, Serializer};

use in_force::InForce;
pub use lose_unsynced::LoseUnsynced;
use own::Own;
use scene::{Draw, Resolved, Scene};
pub use server::Server;
pub use swarm::SwarmFault;

/// A kind of fault.
#[derive(Debug)]
struct Fault {
    /// Its name on the command line and in every file.
    name: &'static str,
    /// What it does, in a line.
    about: &'static str,
    /// What a cluster must be able to do for it.
    mechanism: &'static Mechanism,
    /// The smallest ensemble on which it means anything, and why.
    fewest_nodes: (u32, &'static str),
    /// Whether what was not synced is lost with it, unless somebody says otherwise.
    loses_unsynced: bool,
    /// Decides whom it hits. None when nobody fits.
    aim: fn(&mut Draw<'_>) -> Option<Resolved>,
}

macro_rules! faults {
    ($($file:ident = $name:ident,)*) => {
        $(mod $file;)*

        impl Nemesis {
            $(#[doc = concat!("See `fault/", stringify!($file), ".rs`.")]
            pub const $name: Self = Self(Kind::BuiltIn(&$file::FAULT));)*

            /// Every nemesis, in the order of `list`.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

faults! {
    partition_leader = PARTITION_LEADER,
    partition_halves = PARTITION_HALVES,
    partition_one = PARTITION_ONE,
    partition_oneway = PARTITION_ONEWAY,
    partition_ring = PARTITION_RING,
    partition_bridge = PARTITION_BRIDGE,
    reject_leader = REJECT_LEADER,
    kill_leader = KILL_LEADER,
    kill_one = KILL_ONE,
    kill_follower = KILL_FOLLOWER,
    kill_all = KILL_ALL,
    pause_leader = PAUSE_LEADER,
    pause_one = PAUSE_ONE,
    clock_bump = CLOCK_BUMP,
    replace_rolling = REPLACE_ROLLING,
    slow_leader = SLOW_LEADER,
    slow_one = SLOW_ONE,
    pause_holder = PAUSE_HOLDER,
    cut_holder = CUT_HOLDER,
    kill_holder = KILL_HOLDER,
    clock_holder = CLOCK_HOLDER,
}

/// A kind of fault, as nemeses are named. "None" is the empty list of these.
#[derive(Clone, Copy)]
pub struct Nemesis(Kind);

#[derive(Clone, Copy)]
enum Kind {
    /// Of the catalogue.
    BuiltIn(&'static Fault),
    /// Of the catalogue, with parameters that are not all as usual.
    Given(&'static Given),
    /// Of the user's own.
    Own(Own),
}

/// A kind of fault with parameters.
struct Given {
    fault: &'static Fault,
    parameters: Parameters,
    /// Its name with them.
    name: String,
}

impl From<Own> for Nemesis {
    fn from(own: Own) -> Self {
        Self(Kind::Own(own))
    }
}

impl Nemesis {
    /// The name of doing nothing.
    pub const NONE: &'static str = "none";

    /// Its name on the command line and in every file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::BuiltIn(fault) => fault.name,
            Kind::Given(given) => &given.name,
            Kind::Own(own) => own.name(),
        }
    }

    /// What the catalogue has of it; nothing of one of the user's own.
    fn fault(self) -> Option<&'static Fault> {
        match self.0 {
            Kind::BuiltIn(fault) => Some(fault),
            Kind::Given(given) => Some(given.fault),
            Kind::Own(_) => None,
        }
    }

    /// What it does, in a line.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self.0 {
            Kind::BuiltIn(fault) => fault.about,
            Kind::Given(given) => given.fault.about,
            Kind::Own(own) => own.about(),
        }
    }

    /// What the user gave, else the usual parameters of its mechanism.
    #[must_use]
    pub fn parameters(self) -> Parameters {
        match self.0 {
            Kind::Given(given) => given.parameters,
            Kind::BuiltIn(_) | Kind::Own(_) => Parameters::usual(self.needs().parameters),
        }
    }

    /// The same with parameters, as they are written: `latency=200ms,jitter=20ms`. It is kept for as long as
    /// the program runs.
    ///
    /// # Errors
    /// What is wrong, and what may stand there.
    pub fn with(self, parameters: &str) -> Result<Self, String> {
        let parameters = Parameters::read(self.needs().parameters, parameters)?;
        match (parameters.spelled(), self.fault()) {
            (spelled, Some(fault)) if !spelled.is_empty() => {
                let name = format!("{}{spelled}", fault.name);
                Ok(Self(Kind::Given(Box::leak(Box::new(Given { fault, parameters, name })))))
            }
            (_, Some(fault)) => Ok(Self(Kind::BuiltIn(fault))),
            (_, None) => Ok(self),
        }
    }

    /// What a run's folder says of it.
    #[must_use]
    pub fn described(self) -> FaultKind {
        FaultKind {
            about: self.about().to_owned(),
            mechanism: self.needs().name.to_owned(),
            parameters: self.parameters().described(),
        }
    }

    /// The smallest ensemble on which it means anything, and why.
    #[must_use]
    pub fn fewest_nodes(self) -> (u32, &'static str) {
        match self.0 {
            Kind::BuiltIn(fault) => fault.fewest_nodes,
            Kind::Given(given) => given.fault.fewest_nodes,
            Kind::Own(own) => own.fewest_nodes(),
        }
    }

    /// What the cluster must be able to do for it.
    #[must_use]
    pub fn needs(self) -> &'static Mechanism {
        self.fault().map_or(&OWN, |fault| fault.mechanism)
    }

    /// Whether it is one of the user's own.
    #[must_use]
    pub fn is_own(self) -> bool {
        matches!(self.0, Kind::Own(_))
    }

    /// Whether it hits an application, and no member.
    #[must_use]
    pub fn hits_applications(self) -> bool {
        self.needs().hits_applications()
    }

    /// Whether it hits nobody while nobody is known to lead.
    #[must_use]
    pub fn needs_leader(self) -> bool {
        let members: Vec<MemberId> = (1..=5).map(MemberId).collect();
        let scene = Scene {
            members: &members,
            voters: &members,
            leader: None,
            in_force: &InForce::default(),
            servers: &BTreeMap::new(),
            replaced: &BTreeSet::new(),
            holder: None,
            loses_unsynced: false,
        };
        !self.hits_applications() && self.resolve(0, 0, &scene).is_none()
    }

    /// Whether what was not synced may be lost with it.
    #[must_use]
    pub fn may_lose_unsynced(self) -> bool {
        self.needs().may_lose_unsynced
    }

    /// Whether what was not synced is lost with it, unless somebody says otherwise.
    #[must_use]
    pub fn loses_unsynced(self) -> bool {
        self.fault().is_some_and(|fault| fault.loses_unsynced)
    }

    /// Decides whom a fault of this kind hits. `draw` decides what is left to chance, `turn` counts the
    /// faults of this kind. None when nobody fits: it needs a leader and there is none, or nobody is left.
    #[must_use]
    pub fn resolve(self, draw: u64, turn: u64, scene: &Scene<'_>) -> Option<Resolved> {
        let mut draw = Draw::of(draw, turn, scene, (self.needs(), self.parameters()))?;
        match self.0 {
            Kind::BuiltIn(fault) => (fault.aim)(&mut draw),
            Kind::Given(given) => (given.fault.aim)(&mut draw),
            Kind::Own(own) => own_aim::aim(own, &mut draw),
        }
    }

    /// Every name of the catalogue, and none.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        std::iter::once(Self::NONE).chain(Self::ALL.iter().map(|nemesis| nemesis.name())).collect()
    }

    /// The nemesis of that name in the catalogue.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|nemesis| nemesis.name() == name)
    }

    /// Its place in the list, which those of the user's own are behind, by their names.
    fn place(self) -> (usize, &'static str) {
        let fault = self.fault().map(|fault| fault.name);
        let place = Self::ALL.iter().position(|other| Some(other.name()) == fault);
        (place.unwrap_or(Self::ALL.len()), self.name())
    }
}

impl fmt::Debug for Nemesis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Nemesis {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Nemesis {}

impl Hash for Nemesis {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl PartialOrd for Nemesis {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Nemesis {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}

impl Serialize for Nemesis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
