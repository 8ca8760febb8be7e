//! The cluster of containers: real network namespaces, a real packet filter, nothing left.
//!
//! Per member a *sandbox* runs our agent as process 1 and owns the member's network and processes; the
//! member's own container joins both. So a restarted member keeps its address and its partitions (a plain
//! restart would get a fresh namespace: its rules would vanish, and addresses swap), the member needs no
//! tools and no rights, and a fault takes effect milliseconds after it is asked for, without a call to the
//! engine.
//!
//! A member whose program must be process 1 joins the network alone: the engine kills and pauses it.
//!
//! A silence between harness and agents is a lease run out: the agents heal everything, end, and take the
//! members with them by the kernel's hand. What does not end so (networks, volumes, images, members that are
//! process 1) carries the run's
//! label and is swept by the next start or by `harness clean`. A sandbox that ends, or an engine that goes
//! away, is a failure of the harness and never a fault.
//!
//! - [`place`], [`engine`]: where an engine is, and asking it for things, never without a time-out.
//! - [`elf`], `image`: this executable as an image of its own; [`pull`]: images of others, where that was
//!   asked for.
//! - `labels`, [`inventory`], `belongings`, [`sweep`]: what is ours, and that it goes.
//! - `container`, `agent`, `sandbox`, `member`, `bodies`: the parts of a member; `process_1`: one whose
//!   program must be process 1; `auxiliary`: what stands beside them.
//! - `keep`: their data; `limits`: what they may take of the machine; `trouble`: what broke.
//! - `insider`, `within`, `home`: commands in containers, of the bench's questions, of the user's tests, and
//!   processes of the user's client.
//! - [`ensemble`]: all of it put together; `faults`: what the run does with it.

pub mod elf;
pub mod engine;
pub mod ensemble;
pub mod inventory;
pub mod place;
pub mod pull;
pub mod sweep;

mod agent;
mod auxiliary;
mod belongings;
mod bodies;
mod container;
mod faults;
mod home;
mod image;
mod insider;
mod keep;
mod labels;
mod limits;
mod member;
mod process_1;
mod sandbox;
mod trouble;
mod within;

pub use engine::{Engine, NoEngine};
pub use ensemble::{DockerCluster, DockerSettings};

/// Whether this executable can be a member in a container of that engine; if not, why, and what to do.
pub fn fits(engine: &Engine) -> Result<(), String> {
    image::check(engine.architecture()).map_err(|error| format!("{error:#}"))
}
