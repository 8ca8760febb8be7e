//! Who may do what, as the documentation has it: identities, lists, permissions.
//!
//! Probers prove names with passwords and have no other identity, so that three schemes are enough here:
//! `world`, `digest` and `auth`, which stands for whatever the client has proven.

use bytestring::ByteString;
use node_wire::client::{Acl, ErrorCode, Id, PERM_ADMIN};

const WORLD: &str = "world";
const ANYONE: &str = "anyone";
const AUTH: &str = "auth";
const DIGEST: &str = "digest";

/// True when somebody with these names is allowed one of these permissions.
pub(super) fn permits(list: &[Acl], permissions: i32, who: &[Id]) -> bool {
    list.iter().any(|entry| {
        let meant = match &*entry.scheme {
            WORLD => entry.id == ANYONE,
            DIGEST => who.iter().any(|id| id.scheme == DIGEST && id.id == entry.id),
            _ => false,
        };
        meant && entry.perms & permissions != 0
    })
}

/// The list as it is stored: without doubles, and with names in the place of `auth`.
pub(super) fn stored(list: &[Acl], who: &[Id]) -> Result<Vec<Acl>, ErrorCode> {
    let mut stored = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        if list[..index].contains(entry) {
            continue;
        }
        match &*entry.scheme {
            WORLD if entry.id == ANYONE => stored.push(entry.clone()),
            DIGEST if entry.id.matches(':').count() == 1 => stored.push(entry.clone()),
            AUTH if !who.is_empty() => {
                let named =
                    |id: &Id| Acl { perms: entry.perms, scheme: id.scheme.clone(), id: id.id.clone() };
                stored.extend(who.iter().map(named));
            }
            _ => return Err(ErrorCode::InvalidAcl),
        }
    }
    if stored.is_empty() { Err(ErrorCode::InvalidAcl) } else { Ok(stored) }
}

/// The list as somebody is shown it: who may not change it does not see digests.
pub(super) fn shown(list: &[Acl], who: &[Id]) -> Vec<Acl> {
    if permits(list, PERM_ADMIN, who) {
        return list.to_vec();
    }
    let hidden = |entry: &Acl| match entry.id.split_once(':') {
        Some((name, _)) if entry.scheme == DIGEST => {
            Acl { id: ByteString::from(format!("{name}:x")), ..entry.clone() }
        }
        _ => entry.clone(),
    };
    list.iter().map(hidden).collect()
}
