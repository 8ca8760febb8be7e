//! Which request an operation is.
//!
//! A register is a node whose data is its value, a list one whose data is the list, and both are compared by
//! their version. A set is a node whose children are named by the elements. Numbers are sequential children;
//! names are ephemeral ones. A lock's children are who stands in its line. A queue's items are children of
//! its child `items`, where the recipe of queues has them. A barrier's children are its rounds. Whatever is
//! read as it is now is read behind a sync on the same connection.

use bytes::Bytes;
use workloads::op::{Body, Object, Op};
use workloads::text;

use crate::action::{Action, CreateMode};
use crate::values::{encode_name, number_text};

/// The letter with which the names of such nodes begin. Nobody asks for that of a session, which has no node.
#[must_use]
pub fn letter(object: Object) -> char {
    match object {
        Object::REGISTER => 'r',
        Object::SET => 's',
        Object::LIST => 'l',
        Object::NUMBERS => 'q',
        Object::NAMES => 'e',
        Object::LOCK => 'k',
        Object::QUEUE => 'u',
        Object::BARRIER => 'b',
        _ => '-',
    }
}

/// The node that stands for a key.
#[must_use]
pub fn path(object: Object, key: u64) -> String {
    format!("/{}{key}", letter(object))
}

/// Whether what an object holds is its node's data; else the node's children are.
pub(crate) fn is_in_data(object: Object) -> bool {
    matches!(object, Object::REGISTER | Object::LIST)
}

/// A version that no node has: what can't be a version was never shown.
const NO_VERSION: i32 = i32::MAX;

/// The request that does this.
#[must_use]
pub fn request(op: &Op) -> Action {
    let path = path(op.object, op.key);
    let child = |name: i64| format!("{path}/{}", encode_name(name));
    let create = |path: String, data: Bytes, mode| Action::Create { path, data, mode };
    let of_value = |value: i64| Bytes::from(text::of_value(value));
    let version =
        |basis: Option<i64>| basis.and_then(|basis| i32::try_from(basis).ok()).unwrap_or(NO_VERSION);
    match &op.body {
        Body::MakeRegister { value } => create(path, of_value(*value), CreateMode::Persistent),
        Body::MakePlace => create(path, Bytes::new(), CreateMode::Persistent),
        Body::Read if is_in_data(op.object) => Action::SyncRead { path },
        Body::Read if op.object == Object::QUEUE => Action::SyncChildren { path: format!("{path}/items") },
        Body::Read => Action::SyncChildren { path },
        Body::Write { value } => Action::Write { path, data: of_value(*value) },
        Body::Cas { to, basis, .. } => {
            Action::CasWrite { path, data: of_value(*to), expect: version(*basis) }
        }
        Body::Add { element } => create(child(*element), Bytes::new(), CreateMode::Persistent),
        Body::Append { element, onto, basis } => {
            let data = text::of_list(onto.iter().copied().chain([*element])).into();
            Action::CasWrite { path, data, expect: version(*basis) }
        }
        Body::Next { name, lasts } => {
            let mode = if *lasts { CreateMode::Sequential } else { CreateMode::EphemeralSequential };
            create(format!("{}-", child(*name)), Bytes::new(), mode)
        }
        Body::Delete { name, number } => {
            Action::Delete { path: format!("{}-{}", child(*name), number_text(*number)) }
        }
        Body::Create { name } => create(child(*name), Bytes::new(), CreateMode::Ephemeral),
        Body::Exists { name } => Action::SyncExists { path: child(*name) },
        Body::Open | Body::Close => Action::Close,
        // An application does these, by many requests; and nobody asks for a transaction here.
        Body::Abandon
        | Body::Acquire
        | Body::Store { .. }
        | Body::Release { .. }
        | Body::Enqueue { .. }
        | Body::Dequeue
        | Body::Acknowledge { .. }
        | Body::Enter { .. }
        | Body::Leave { .. }
        | Body::Txn { .. }
        | Body::Watch { .. }
        | Body::Said { .. } => Action::Abandon,
    }
}
