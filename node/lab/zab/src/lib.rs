//! The members' own protocol, for scripts that one reads aloud and pictures: fast leader election and ZAB,
//! message by message.
//!
//! What runs is the member itself ([`node_core::Member`]), or one with a planted bug. This crate is its
//! driver in a world of [`harness_protocols`]: messages are votes and packets of the quorum port
//! ([`message`]), a disk is the list of the member's store operations ([`record`]), and the judge knows what
//! ZAB promises ([`judge`]). What a driver owes a member ([`node_core::io`]) is kept as plainly as that world
//! allows:
//!
//! - **There is no time.** A member's clock stands, until a script says that it waits no longer. Then its
//!   time passes until something comes of it. So PINGs are left out: whoever waits has heard nobody.
//! - **A connection is a queue.** The world delivers in any order; what comes too early is held back. Nobody
//!   is told that a connection broke, but when the other end closes it: silence tells as well.
//! - **Whatever a member sends in one step on one connection travels together,** so that a synchronization is
//!   one arrow.
//! - **A mutant can be planted**, any of [`lab_mutants`] whose member is wrong, and not its driver.
//! - **Clients have local sessions,** which cost no transaction. There are ten znodes, `/0` to `/9`, from the
//!   beginning; `write 3 7` sets the data of `/3`.
//!
//! The worlds of `harness sim` without a script are another matter: `lab-sim` has time, clients with
//! sessions and watches, real logs and changing ensembles.

pub mod judge;
mod member;
pub mod message;
pub mod record;
pub mod scenarios;
mod words;

pub use member::{Members, Process, Wait};

use harness_protocols::entry::{Entry, Playable};
use lab_mutants::Mutant;
use node_core::Zab;

/// The members' own protocol.
pub const ZAB: Entry = Entry {
    name: NAME,
    about: "the members' own: fast leader election and ZAB",
    make: |bug| {
        let Some(name) = bug else { return Some(Box::new(Members(Zab))) };
        Mutant::named(name).map(|mutant| Box::new(Members(mutant)) as Box<dyn Playable>)
    },
    // The bench has a deeper world of the same members.
    serves: None,
    // Those of `lab-mutants`, which have a list of their own.
    mutants: &[],
    scenarios: scenarios::ALL,
};

/// Its name on the command line.
pub const NAME: &str = "zab";
