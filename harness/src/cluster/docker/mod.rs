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
//! members with them, because the kernel ends every process of a namespace with its first. What does not end
//! so (networks, volumes, images, members that are process 1) carries the run's label. The next start or
//! `harness clean` sweeps it. A sandbox that ends, or an engine that goes away, is a failure of the harness
//! and never a fault.
//!
//! - [`place`], [`engine`]: where an engine is, and asking it for things, never without a time-out.
//! - [`elf`], `image`: this executable as an image of its own; [`pull`]: images of others, where that was
//!   asked for.
//! - `labels`, [`inventory`], `resources`, [`sweep`]: what a run owns on the engine, and its removal.
//! - `container`, `agent`, `sandbox`, `member`, `specs`: the parts of a member; `process_1`: one whose
//!   program must be process 1; `auxiliary`: services that are no members.
//! - `collect`: members' data; `limits`: what they may take of the machine; `failure`: what broke first.
//! - `member_exec`: commands that ask members; `within`: the user's test commands; `client_container`:
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
mod client_container;
mod collect;
mod container;
mod failure;
mod faults;
mod image;
mod labels;
mod limits;
mod member;
mod member_exec;
mod process_1;
mod resources;
mod sandbox;
mod specs;
mod within;

pub use engine::{Engine, NoEngine};
pub use ensemble::{DockerCluster, DockerSettings};

/// Whether this executable can be a member in a container of that engine; if not, why, and what to do.
pub fn fits(engine: &Engine) -> Result<(), String> {
    image::check(engine.architecture()).map_err(|error| format!("{error:#}"))
}
