//! Recipes: what services build on a coordination ensemble.
//!
//! Each is a pure state machine ([`recipe::Recipe`]) over a session's requests and events. The async client
//! drives them for applications, and the simulator drives the same code through losses and expiries by the
//! thousand.
//!
//! Znodes are open to anyone as recipes ask for them, and anyone who may delete a lead may end it. A driver
//! closes them on their way ([`Request::with_acl`](node_session::Request::with_acl)): the client does so
//! where its `Keeper` has an access list.
//!
//! - [`barrier`]: a znode; all wait until it is gone.
//! - [`cache`]: a copy of a tree, kept up to date by one watch.
//! - [`delete`]: removal of a resource with all its contenders.
//! - [`discovery`]: which instances of a service there are, as Curator has it, and which one to ask.
//! - [`double_barrier`]: nobody begins before all have come, and nobody goes before all have ended.
//! - [`election`]: one leads, in terms with a token that grows and an end that comes in time.
//! - [`group`]: who is a member.
//! - [`line`](mod@line): a place in a line, under elections, locks and semaphores.
//! - [`lock`](mod@lock): locks, read/write locks and semaphores.
//! - [`model`]: an ensemble's tree in memory, for tests of recipes.
//! - [`names`]: how contenders name their znodes, as other libraries do.
//! - [`observe`]: who is first in a line.
//! - [`once`](mod@once): a transaction whose outcome is known although its answer was lost.
//! - [`queue`]: items are put, claimed one at a time, and acknowledged.
//! - [`rules`]: the decisions that are one rule each.
//! - [`served`]: what every recipe keeps of its connection.
//! - [`shared`]: a value and a counter that many processes change.
//! - [`standby`]: one active process and others that stand by, with fencing, as Hadoop has it.
//! - [`standing`]: a znode that stands as long as a process lives.

pub mod barrier;
pub mod cache;
pub mod delete;
pub mod discovery;
pub mod double_barrier;
pub mod election;
pub mod group;
pub mod line;
pub mod lock;
pub mod model;
pub mod names;
pub mod observe;
pub mod once;
pub mod queue;
pub mod recipe;
pub mod rules;
pub mod served;
pub mod shared;
pub mod standby;
pub mod standing;
#[cfg(test)]
pub(crate) mod testbed;
