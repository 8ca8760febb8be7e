//! Shifting the wall clock of an application. Its act is [`Harmed`](super::application::Harmed).

use super::{Mechanism, Part, Use};

/// The mechanism.
pub static APPLICATION_CLOCK: Mechanism = Mechanism {
    name: "application-clock",
    about: "the wall clock of an application that holds is shifted; process, docker: x86-64 and the right \
            to ptrace",
    occupies: &[(Part::Application, Use::Alone)],
    parameters: &[],
    may_lose_unsynced: false,
    virtually: Err("applications are processes"),
};
