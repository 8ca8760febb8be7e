//! What a workload's operations are as ZooKeeper's requests, and what its answers mean.
//!
//! The one question that matters after a failure is whether the operation may have happened. It is answered
//! in `outcome` and nowhere else. An error that came as a reply from a member is definite when that member
//! refuses before anything is proposed, or when the refusal itself was ordered; everything else that is not a
//! success may have happened. Looks have no effect, so a failed look is simply over.
//!
//! - `action`: requests and answers; [`request`]: which request an operation is.
//! - [`outcome`]: what an answer means; `values`: how values stand in nodes' data and names.
//!
//! Pure: members over TCP and members in a virtual world are asked by the same mapping. What it must never
//! know: sockets, sessions' establishment, retries (there are none), and how a fault was made.

mod action;
mod outcome;
mod request;
mod values;

pub use action::{Action, Answer, CreateMode};
pub use outcome::{error_name, is_definite, outcome};
pub use request::{letter, path, request};
pub use values::encode_name;
