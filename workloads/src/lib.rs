//! What clients do, and what must then be true.
//!
//! A workload is a generator of operations and the promises that the history is then judged by. All of it is
//! pure: operations ([`Op`]) are in terms that no system owns, what came of them ([`Outcome`]) comes in as
//! data, chance comes from a generator that the caller seeds. A system's mapping turns operations into its
//! requests, and says which of its answers are definite and what stays open. So the same workload drives
//! members over TCP and members in a simulated world, of any system that has such objects.
//!
//! A workload is a value, one file each, and a line in the list below: its name, its sentence, its generator,
//! and its checks.
//!
//! - [`op`]: what is asked for; [`outcome`]: what came of it.
//! - [`workload`]: what a workload is; [`params`]: what its user decides.
//! - [`promise`]: what a system promises of one.
//! - [`terms`]: who held what, as a history tells.
//! - [`text`]: how values stand in stores of bytes, for mappings.
//! - [`case`]: what a check is given; [`beside`]: what it knows besides the history.
//! - [`judge`]: everything that is decided after a run, as a function of its history and of what was seen
//!   beside it.
//!
//! What it must never know: a system, its requests and its errors; sockets, sessions' establishment, retries
//! (there are none), and how a fault was made.

pub mod beside;
pub mod case;
pub mod judge;
pub mod op;
pub mod outcome;
pub mod params;
pub mod promise;
pub mod terms;
pub mod text;
pub mod workload;

mod command;
mod holding;
mod rotation;
mod shown;

pub use op::Op;
pub use outcome::{Claims, NOT_NEEDED, Outcome, Refusal, SESSION_EXPIRED, STALE_TOKEN, UNREADABLE};
pub use params::{Params, RegisterParams};
pub use promise::Promise;
pub use workload::{Applications, Kind, Workload};

macro_rules! workloads {
    ($($file:ident = $name:ident,)*) => {
        $(pub mod $file;)*

        impl Kind {
            $(#[doc = concat!("See `", stringify!($file), ".rs`.")]
            pub const $name: Self = Self(&$file::WORKLOAD);)*

            /// No workload of the bench's: a command of the user's own works on the members.
            pub const COMMAND: Self = Self(&command::WORKLOAD);

            /// Every workload, in the order of `list`.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

workloads! {
    register = REGISTER,
    set = SET,
    append = APPEND,
    sequential = SEQUENTIAL,
    ephemeral = EPHEMERAL,
    counter = COUNTER,
    lock = LOCK,
    election = ELECTION,
    standby = STANDBY,
    queue = QUEUE,
    barrier = BARRIER,
    txn = TXN,
    watch = WATCH,
    log = LOG,
    bank = BANK,
}
