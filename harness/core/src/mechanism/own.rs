//! Commands of the user's own, which a system's file names.

use runs::consequence::Consequence;
use runs::member::MemberId;

use super::{Act, Mechanism, Part, Use};
use crate::fault::own::Own;

/// The mechanism. Its commands run beside the member's process, so nothing else may end or stop that.
pub static OWN: Mechanism = Mechanism {
    name: "own",
    about: "commands of your own are run for members, by the file that describes the system; process, docker",
    occupies: &[(Part::Process, Use::Shared)],
    parameters: &[],
    may_lose_unsynced: false,
    virtually: Err("commands find no member of a virtual world"),
};

/// The commands of a kind are run for some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The kind of fault that the commands are of.
    pub own: Own,
    /// Whom it is aimed at.
    pub members: Vec<MemberId>,
}

impl Act for Owned {
    fn mechanism(&self) -> &'static Mechanism {
        &OWN
    }

    fn members(&self) -> &[MemberId] {
        &self.members
    }

    fn consequences(&self) -> Vec<Consequence> {
        vec![Consequence::Unknown]
    }

    fn how_it_ended(&self) -> Option<String> {
        (!self.own.lasts()).then(|| "nothing to be undone".to_owned())
    }
}
