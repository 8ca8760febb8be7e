//! Ways to break something, as far as they decide: what each occupies, what comes of it, and its words.
//!
//! A *mechanism* is a value, one file each, and a line in the list below; beside it stands what it does to
//! whom, an [`Act`]. Faults are made of acts by their aims, and share a mechanism. What carries one out and
//! proves it is the drivers'. Nothing else knows mechanisms one by one: faults that act at once keep out of
//! each other's way by the [`Resource`]s that they occupy, and whoever judges asks for the [`Consequence`]s
//! alone.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use runs::consequence::{Consequence, Consequences};
use runs::faults::FaultDetail;
use runs::member::MemberId;

use crate::condition::{Condition, Quality};
use crate::cut::Pair;
use crate::fault::server::Server;
use crate::parameter::Parameter;

/// A way to break something.
#[derive(Debug)]
pub struct Mechanism {
    /// Its name in every file and list.
    pub name: &'static str,
    /// What it does, and how and where that is done, in a line.
    pub about: &'static str,
    /// What it occupies of each member, or application, that it holds.
    pub occupies: &'static [(Part, Use)],
    /// What may be said of a fault of it.
    pub parameters: &'static [Parameter],
    /// Whether what was not synced may be lost with it.
    pub may_lose_unsynced: bool,
    /// What it changes in a virtual world; why it changes nothing there, where that is so.
    pub virtually: Result<&'static [Quality], &'static str>,
}

macro_rules! mechanisms {
    ($($file:ident = $name:ident,)*) => {
        $(pub mod $file;)*

        impl Mechanism {
            /// All of them, in the order of `list`.
            pub const ALL: &'static [&'static Self] = &[$(&$file::$name),*];
        }
    };
}

mechanisms! {
    partition = PARTITION,
    reject = REJECT,
    kill = KILL,
    pause = PAUSE,
    clock = CLOCK,
    replace = REPLACE,
    application = APPLICATION,
    application_clock = APPLICATION_CLOCK,
    own = OWN,
    latency = LATENCY,
}

impl Mechanism {
    /// Whether it hits applications, and no member.
    #[must_use]
    pub fn hits_applications(&self) -> bool {
        self.occupies.iter().any(|(part, _)| *part == Part::Application)
    }
}

impl PartialEq for Mechanism {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Mechanism {}

/// What may be occupied of a member, or of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Directions to other members.
    Directions,
    /// Its process.
    Process,
    /// Its wall clock.
    Clock,
    /// Its disk.
    Disk,
    /// Its place in the ensemble: what it runs as.
    Place,
    /// An application, which is no member.
    Application,
}

/// Something that a fault occupies while it is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// A direction between members.
    Direction(Pair),
    /// A part of a member.
    Of(MemberId, Part),
    /// An application, by the number of its process.
    Application(u64),
}

/// How something is occupied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Others may, too.
    Shared,
    /// Nobody else may.
    Alone,
}

impl Use {
    /// Whether two faults can't do so at once.
    #[must_use]
    pub fn collides(self, other: Self) -> bool {
        self == Self::Alone || other == Self::Alone
    }
}

/// Two values of one type that say the same.
pub trait Same {
    /// Whether the other one is of this type, and the same.
    fn is_same(&self, other: &dyn Any) -> bool;
}

impl<T: Any + PartialEq> Same for T {
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>().is_some_and(|other| self == other)
    }
}

/// What a fault does, and to whom.
pub trait Act: Any + Same + fmt::Debug + Send + Sync {
    /// How it is done.
    fn mechanism(&self) -> &'static Mechanism;

    /// The members that it holds while it is in force.
    fn members(&self) -> &[MemberId] {
        &[]
    }

    /// What it occupies while it is in force.
    fn occupies(&self) -> Vec<(Resource, Use)> {
        let of = |member: &MemberId| {
            let member = *member;
            let parts = self.mechanism().occupies.iter();
            parts.map(move |(part, how)| (Resource::Of(member, *part), *how))
        };
        self.members().iter().flat_map(of).collect()
    }

    /// What comes of it for members and clients.
    fn consequences(&self) -> Vec<Consequence>;

    /// What it changes in a virtual world.
    fn conditions(&self) -> Vec<Condition> {
        Vec::new()
    }

    /// What is worth telling of its end, where nobody saw more.
    fn how_it_ended(&self) -> Option<String> {
        None
    }

    /// What its members run as from now on, where it makes something else of them.
    fn replaced_by(&self) -> Option<Server> {
        None
    }

    /// Writes down what is to be known of it beside its sentence.
    fn describe(&self, detail: &mut FaultDetail) {
        let _ = detail;
    }
}

/// An act, whatever its mechanism.
#[derive(Clone, Debug)]
pub struct Action(Arc<dyn Act>);

impl Action {
    /// The act, if it is of this type.
    #[must_use]
    pub fn of<T: Act>(&self) -> Option<&T> {
        let act: &dyn Any = &*self.0;
        act.downcast_ref()
    }

    /// The directions in which nothing passes, and whether whoever speaks is told so; none where all pass.
    #[must_use]
    pub fn silences(&self) -> Option<(Vec<Pair>, bool)> {
        self.consequences().into_iter().find_map(|one| match one {
            Consequence::Silences { directions, refuses } => {
                Some((directions.into_iter().map(Pair::from).collect(), refuses))
            }
            _ => None,
        })
    }

    /// Whether its members neither speak nor listen.
    #[must_use]
    pub fn takes_away(&self) -> bool {
        self.consequences().takes_away()
    }
}

impl<T: Act> From<T> for Action {
    fn from(act: T) -> Self {
        Self(Arc::new(act))
    }
}

impl Deref for Action {
    type Target = dyn Act;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for Action {
    fn eq(&self, other: &Self) -> bool {
        let other: &dyn Any = &*other.0;
        self.0.is_same(other)
    }
}

impl Eq for Action {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_mechanism_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Mechanism::ALL.iter().map(|mechanism| mechanism.name).collect();
        assert_eq!(names.len(), Mechanism::ALL.len());
    }

    #[test]
    fn two_acts_are_the_same_by_what_they_do_to_whom() {
        let kill = |id| Action::from(kill::Kill { members: vec![MemberId(id)], loses_unsynced: false });
        let pause = Action::from(pause::Pause { members: vec![MemberId(1)] });
        assert!(kill(1) == kill(1) && kill(1) != kill(2) && kill(1) != pause);
        assert!(pause.of::<pause::Pause>().is_some() && pause.of::<kill::Kill>().is_none());
    }
}
