//! Service discovery: which instances of a service there are, in the layout and the JSON of Curator.
//!
//! An instance is an ephemeral znode `<base>/<service>/<id>`. Its data says where the instance is reached
//! ([`Instance`]), in the JSON of Curator's `x-discovery` 5.4. So Java programs find ours, and ours find
//! theirs.
//!
//! - **To be found:** [`register`] gives a [`Standing`] znode. It is made again on a new session, and when
//!   somebody deletes it. Its `Call::Set` replaces what the instance says of itself. [`set_up`] gives the
//!   requests that make the znodes above it.
//! - **To find:** [`Instances`] tells who is there, and each change.
//! - **To choose:** a [`Provider`] takes what [`Instances`] tells, and chooses one of them. It leaves those
//!   out that are disabled, and those of which errors were noted.
//!
//! **Lost answers.** What is in doubt of a registration is looked at, behind a sync ([`Standing`]). Whoever
//! watches asks again for whatever was asked ([`cache`](crate::cache)).
//!
//! **Not promised:** that an instance that is told of is there: its session ends some time after its process.
//! That is what the noted errors are for. Nor that all comings and goings are told: an instance that went and
//! came back between two readings has changed, or is the same. The memory is that of all instances, twice:
//! as data and as what it means.
//!
//! **What differs from Curator.** An id that is registered already is waited for
//! (`standing::Told::Blocked`), where Curator deletes the znode, whoever's it is. So draw a new id for each
//! process. [`set_up`] makes persistent znodes where Curator makes containers. The ensemble deletes an empty
//! container some time after its last child went; a registration that is made again then has no place
//! (`standing::Told::Over` with [`Left::NoResource`](crate::line::Left)). Where a Java program made the
//! container, set up and register again after that.

mod instance;
mod instances;
mod provider;

pub use instance::{Instance, Part, ServiceType, Unreadable, UriSpec};
pub use instances::{Instances, Told};
pub use provider::{DownPolicy, Provider, Strategy};

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{CreateMode, Request};
use node_wire::client::Acl;

pub use crate::cache::Call;
use crate::names::child;
use crate::standing::Standing;

/// The requests that make a service's znode and all above it. Each may be refused because its znode is there.
#[must_use]
pub fn set_up(base: &str, service: &str) -> Vec<Request> {
    let path = child(base, service);
    let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0).chain([path.len()]);
    let create = |end: usize| Request::Create {
        path: path[..end].into(),
        data: Bytes::new(),
        acl: vec![Acl::world_anyone()],
        mode: CreateMode::Persistent,
    };
    ends.map(create).collect()
}

/// The znode of an instance. The service's name and the id are names of znodes, without a slash.
#[must_use]
pub fn path(base: &str, instance: &Instance) -> ByteString {
    child(&child(base, &instance.name), &instance.id)
}

/// Registers an instance of a service whose znode is there ([`set_up`]), as long as this process lives.
///
/// An instance of the type [`ServiceType::Static`] or [`ServiceType::Permanent`] stays when its process ends.
/// It needs no recipe: create a persistent znode at [`path`] with [`Instance::to_json`].
#[must_use]
pub fn register(base: &str, instance: &Instance) -> Standing {
    Standing::new(path(base, instance), instance.to_json())
}

#[cfg(test)]
mod tests;
