//! Paths, and how a znode shows itself to clients.

use node_wire::client::Stat;
use node_wire::ephemeral::EphemeralType;
use node_wire::ids::SessionId;

use super::Znode;

impl Znode {
    /// The Stat that clients see.
    ///
    /// ZooKeeper stores the number of creates below a znode as `cversion` and shows the number of changes:
    /// every child that is gone was one more change.
    pub fn to_stat(&self) -> Stat {
        let children = i32::try_from(self.children.len()).unwrap_or(i32::MAX);
        Stat {
            czxid: self.stat.czxid,
            mzxid: self.stat.mzxid,
            ctime: self.stat.ctime,
            mtime: self.stat.mtime,
            version: self.stat.version,
            cversion: self.stat.cversion.wrapping_mul(2).wrapping_sub(children),
            aversion: self.stat.aversion,
            ephemeral_owner: shown_owner(self.stat.ephemeral_owner),
            data_length: self.data.as_ref().map_or(0, |data| i32::try_from(data.len()).unwrap_or(i32::MAX)),
            num_children: children,
            pzxid: self.stat.pzxid,
        }
    }
}

/// Clients are told of sessions, and of nothing else that an owner can say.
fn shown_owner(owner: SessionId) -> SessionId {
    match EphemeralType::of(owner) {
        EphemeralType::Normal(session) => session,
        EphemeralType::Void | EphemeralType::Container | EphemeralType::Ttl { .. } => SessionId::NONE,
    }
}

/// Splits `/a/b` into `/a` and `b`; `None` for the root and for what is no absolute path.
pub(crate) fn parent_of(path: &str) -> Option<(&str, &str)> {
    let slash = path.rfind('/')?;
    let name = &path[slash + 1..];
    if name.is_empty() {
        return None;
    }
    // The root's own slash is its name.
    Some((&path[..slash.max(1)], name))
}

/// The first part of what [`parent_of`] gives.
pub(crate) fn parent_path(path: &str) -> Option<&str> {
    parent_of(path).map(|(parent, _)| parent)
}

/// The path at which a read looks. ZooKeeper keeps its root under the empty path as well, and judges no path
/// that is only read: whatever else is malformed is the path of no node.
pub(crate) fn looked_up(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_parent_unless_it_is_the_root() {
        assert_eq!(parent_of("/a"), Some(("/", "a")));
        assert_eq!(parent_of("/a/b"), Some(("/a", "b")));
        assert_eq!(parent_of("/"), None);
        assert_eq!(parent_of("a"), None);
    }
}
