//! Who a client is and what it may do: access control lists as ZooKeeper reads them.
//!
//! A client has several identities at once: its address (scheme `ip`) from the start, what its certificate
//! says (`x509`, given by the driver), and every name that it proves with a password (`digest`). A list names
//! who may do what; one entry that fits is enough. Permissions are not inherited: creating and deleting are
//! the parent's, everything else is the node's own.
//!
//! `super` is an identity that no list stops. It comes with a password whose digest stands in the
//! configuration.

use std::net::IpAddr;

use bytestring::ByteString;
use node_wire::client::{Acl, ErrorCode, Id, PERM_ADMIN};
use node_wire::credentials::digest_identity;
use node_wire::jute::Jute;

/// Identities of one client. More would only make its requests longer: each carries them to the leader.
const MAX_IDENTITIES: usize = 64;

/// The longest identity; what a packet's reader allows on its way to the leader.
const MAX_IDENTITY: usize = node_wire::quorum::MAX_AUTH_STRING;

const WORLD: &str = "world";
const ANYONE: &str = "anyone";
const AUTH: &str = "auth";
const DIGEST: &str = "digest";
const IP: &str = "ip";
const X509: &str = "x509";
const SASL: &str = "sasl";
const SUPER: &str = "super";

/// True when one of these identities has one of these permissions. A list without entries hides nothing.
pub(crate) fn permits(acl: &[Acl], permissions: i32, who: &[Id]) -> bool {
    acl.is_empty()
        || who.iter().any(|id| id.scheme == SUPER)
        || acl
            .iter()
            .filter(|entry| entry.perms & permissions != 0)
            .any(|entry| is_anyone(entry) || who.iter().any(|id| is_meant(entry, id)))
}

fn is_anyone(entry: &Acl) -> bool {
    entry.scheme == WORLD && entry.id == ANYONE
}

fn is_meant(entry: &Acl, id: &Id) -> bool {
    entry.scheme == id.scheme
        && match &*entry.scheme {
            IP => is_in_network(&id.id, &entry.id),
            DIGEST | X509 => entry.id == id.id,
            // Whoever proves to be `super` is meant by every entry of this scheme, as in ZooKeeper.
            SASL => entry.id == id.id || id.id == SUPER,
            _ => false,
        }
}

/// The list that a client sets, made fit to be stored: doubles are left out, and the scheme `auth` becomes
/// every identity that the client has proven. It takes `room` bytes at most, and of the schemes that need a
/// provider names those that have one.
pub(crate) fn fix_up(
    acl: Vec<Acl>,
    who: &[Id],
    room: usize,
    providers: &[ByteString],
) -> Result<Vec<Acl>, ErrorCode> {
    if let [entry] = acl.as_slice()
        && is_anyone(entry)
    {
        // Almost every list.
        return Ok(acl);
    }
    let mut fixed: Vec<Acl> = Vec::with_capacity(acl.len());
    let mut room = room;
    let mut seen = std::collections::BTreeSet::new();
    for entry in acl.into_iter().filter(|entry| seen.insert(entry.clone())) {
        if entry.scheme == AUTH {
            let before = fixed.len();
            for id in who.iter().filter(|id| is_proven(id)) {
                let entry = Acl { perms: entry.perms, scheme: id.scheme.clone(), id: id.id.clone() };
                take_room(&mut room, &entry)?;
                fixed.push(entry);
            }
            if fixed.len() == before {
                return Err(ErrorCode::InvalidAcl);
            }
        } else if is_anyone(&entry) || is_sound(&entry, providers) {
            take_room(&mut room, &entry)?;
            fixed.push(entry);
        } else {
            return Err(ErrorCode::InvalidAcl);
        }
    }
    if fixed.is_empty() { Err(ErrorCode::InvalidAcl) } else { Ok(fixed) }
}

fn take_room(room: &mut usize, entry: &Acl) -> Result<(), ErrorCode> {
    let len = Acl::MIN_LEN + entry.scheme.len() + entry.id.len();
    *room = room.checked_sub(len).ok_or(ErrorCode::InvalidAcl)?;
    Ok(())
}

/// An address is only where somebody speaks from, not who.
fn is_proven(id: &Id) -> bool {
    matches!(&*id.scheme, DIGEST | X509 | SASL)
}

fn is_sound(entry: &Acl, providers: &[ByteString]) -> bool {
    match &*entry.scheme {
        IP => network(&entry.id).is_some(),
        // A name and a digest, nothing more. Colons at the end count for nothing, as where Java splits.
        DIGEST => entry.id.trim_end_matches(':').split(':').count() == 2,
        SASL => providers.contains(&entry.scheme) && is_principal(&entry.id),
        X509 => providers.contains(&entry.scheme) && !entry.id.is_empty(),
        _ => false,
    }
}

/// Kerberos' syntax, by which ZooKeeper judges the names of SASL: whatever has no realm, or
/// `user/host@REALM`.
fn is_principal(id: &str) -> bool {
    !id.is_empty()
        && id
            .split_once('@')
            .is_none_or(|(name, realm)| name.matches('/').count() <= 1 && !realm.contains(['/', '@']))
}

/// Adds what a client proves to its identities. The error is that it proves nothing.
pub(crate) fn authenticate(
    who: &mut Vec<Id>,
    scheme: &str,
    proof: &[u8],
    super_digest: Option<&ByteString>,
) -> Result<(), ErrorCode> {
    match scheme {
        DIGEST => {
            let id = digest_identity(proof);
            if super_digest.is_some_and(|digest| *digest == id) {
                add(who, Id::superuser())?;
            }
            add(who, Id { scheme: ByteString::from_static(DIGEST), id })
        }
        // Known from the connection already, or not to be had on it.
        IP | X509 if who.iter().any(|id| id.scheme == scheme) => Ok(()),
        _ => Err(ErrorCode::AuthFailed),
    }
}

/// Adds what the driver found a client to be.
pub(crate) fn accept(who: &mut Vec<Id>, shown: Vec<Id>) -> Result<(), ErrorCode> {
    shown.into_iter().try_for_each(|id| add(who, id))
}

/// True when a client may ask for something: it has an identity of one of these schemes, or none is required.
pub(crate) fn is_let_in(required: &[ByteString], who: &[Id]) -> bool {
    required.is_empty() || who.iter().any(|id| required.contains(&id.scheme))
}

/// What a client hears whose SASL exchange failed.
pub(crate) fn failed_sasl(required: &[ByteString]) -> ErrorCode {
    if required.iter().any(|scheme| scheme == SASL) {
        ErrorCode::SessionClosedRequireSaslAuth
    } else {
        ErrorCode::AuthFailed
    }
}

fn add(who: &mut Vec<Id>, id: Id) -> Result<(), ErrorCode> {
    if who.contains(&id) {
        return Ok(());
    }
    if who.len() >= MAX_IDENTITIES || id.id.len() > MAX_IDENTITY {
        return Err(ErrorCode::AuthFailed);
    }
    who.push(id);
    Ok(())
}

/// What an identity is called where it is shown: of a digest the name alone.
pub(crate) fn user_of(id: &Id) -> ByteString {
    match &*id.scheme {
        DIGEST => id.id.split_once(':').map_or_else(|| id.id.clone(), |(name, _)| ByteString::from(name)),
        IP | X509 | SASL => id.id.clone(),
        _ => ByteString::new(),
    }
}

/// The list as somebody may see it. Digests can be guessed from, so that only who may change the list sees
/// them.
pub(crate) fn shown_to(acl: &[Acl], who: &[Id]) -> Vec<Acl> {
    let hides = !permits(acl, PERM_ADMIN, who);
    acl.iter()
        .map(|entry| match entry.id.split_once(':') {
            Some((name, _)) if hides && entry.scheme == DIGEST => {
                Acl { id: ByteString::from(format!("{name}:x")), ..entry.clone() }
            }
            _ => entry.clone(),
        })
        .collect()
}

/// An address and the number of its leading bits that count.
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(width), |bits| bits.parse().ok().filter(|bits| *bits <= width))?;
    Some((address, bits))
}

fn is_in_network(address: &str, text: &str) -> bool {
    let (Ok(address), Some((network, bits))) = (address.parse::<IpAddr>(), network(text)) else {
        return false;
    };
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let beyond = u32::MAX.checked_shr(bits).unwrap_or(0);
            address.to_bits() | beyond == network.to_bits() | beyond
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let beyond = u128::MAX.checked_shr(bits).unwrap_or(0);
            address.to_bits() | beyond == network.to_bits() | beyond
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use node_wire::client::{PERM_ALL, PERM_READ, PERM_WRITE};

    use super::*;

    fn id(scheme: &str, id: &str) -> Id {
        Id { scheme: ByteString::from(scheme), id: ByteString::from(id) }
    }

    fn entry(perms: i32, scheme: &str, id: &str) -> Acl {
        Acl { perms, scheme: ByteString::from(scheme), id: ByteString::from(id) }
    }

    #[test]
    fn one_entry_that_fits_is_enough() {
        let acl = [entry(PERM_READ, WORLD, ANYONE), entry(PERM_WRITE, DIGEST, "ann:digest")];
        assert!(permits(&acl, PERM_READ, &[]));
        assert!(!permits(&acl, PERM_WRITE, &[id(IP, "10.0.0.1")]));
        assert!(permits(&acl, PERM_WRITE, &[id(IP, "10.0.0.1"), id(DIGEST, "ann:digest")]));
        assert!(permits(&acl, PERM_ADMIN, &[Id::superuser()]));
        assert!(permits(&[], PERM_ALL, &[]));
    }

    #[test]
    fn a_network_holds_its_addresses() {
        for (network, address, holds) in [
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("10.1.0.0/16", "10.1.200.4", true),
            ("10.1.0.0/16", "10.2.0.0", false),
            ("0.0.0.0/0", "192.168.0.1", true),
            ("::1", "::1", true),
            ("fe80::/10", "fe80::1", true),
            ("10.0.0.0/8", "::1", false),
        ] {
            let acl = [entry(PERM_READ, IP, network)];
            assert_eq!(permits(&acl, PERM_READ, &[id(IP, address)]), holds, "{address} in {network}");
        }
    }

    #[test]
    fn a_list_that_means_nobody_is_refused() {
        for bad in [
            vec![],
            vec![entry(PERM_ALL, WORLD, "someone")],
            vec![entry(PERM_ALL, DIGEST, "no-colon")],
            vec![entry(PERM_ALL, DIGEST, "one:two:three")],
            vec![entry(PERM_ALL, IP, "10.0.0.0/33")],
            vec![entry(PERM_ALL, "unknown", "id")],
            vec![entry(PERM_ALL, X509, "CN=ann")],
            vec![entry(PERM_ALL, SASL, "ann@REALM@REALM")],
            vec![entry(PERM_ALL, SASL, "ann/host/more@REALM")],
            vec![entry(PERM_ALL, SUPER, "")],
            vec![entry(PERM_ALL, AUTH, "")],
            vec![entry(PERM_ALL, "", "")],
        ] {
            assert_eq!(
                fix_up(bad.clone(), &[id(IP, "10.0.0.1")], 1000, &[SASL.into()]),
                Err(ErrorCode::InvalidAcl),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_digest_has_two_parts_as_java_splits() {
        for (id, sound) in
            [("a:b", true), ("a:b:", true), (":b", true), ("a:", false), (":", false), ("a::b", false)]
        {
            assert_eq!(is_sound(&entry(PERM_ALL, DIGEST, id), &[]), sound, "{id}");
        }
    }

    #[test]
    fn a_list_names_schemes_that_have_a_provider() {
        let lists =
            [entry(PERM_ALL, SASL, "ann"), entry(PERM_ALL, SASL, "ann/host@REALM"), entry(1, X509, "CN=ann")];
        for entry in lists {
            let fixed = |providers: &[&'static str]| {
                let providers: Vec<ByteString> = providers.iter().map(|name| (*name).into()).collect();
                fix_up(vec![entry.clone()], &[], 1000, &providers)
            };
            assert_eq!(fixed(&[SASL, X509]), Ok(vec![entry.clone()]));
            assert_eq!(fixed(&[]), Err(ErrorCode::InvalidAcl), "{entry:?}");
        }
    }

    #[test]
    fn who_proves_to_be_super_by_sasl_is_meant_by_every_entry_of_sasl() {
        let acl = [entry(PERM_READ, SASL, "ann")];
        assert!(
            permits(&acl, PERM_READ, &[id(SASL, "ann")]) && permits(&acl, PERM_READ, &[id(SASL, "super")])
        );
        assert!(!permits(&acl, PERM_READ, &[id(SASL, "bob")]));
        assert!(!permits(&[entry(PERM_READ, DIGEST, "ann")], PERM_READ, &[id(SASL, "super")]));
    }

    #[test]
    fn auth_becomes_what_the_client_has_proven() {
        let who = [id(IP, "10.0.0.1"), id(DIGEST, "ann:digest"), id(X509, "CN=ann"), Id::superuser()];
        let acl = vec![entry(PERM_READ, AUTH, "ignored"), entry(PERM_READ, AUTH, "ignored")];
        let fixed = vec![entry(PERM_READ, DIGEST, "ann:digest"), entry(PERM_READ, X509, "CN=ann")];
        assert_eq!(fix_up(acl, &who, 1000, &[]), Ok(fixed));
    }

    #[test]
    fn a_short_list_does_not_become_a_long_one() {
        let who: Vec<Id> = (0..MAX_IDENTITIES).map(|number| id(DIGEST, &format!("{number:060}:x"))).collect();
        let acl: Vec<Acl> = (0..60_000).map(|perms| entry(perms, AUTH, "")).collect();
        assert_eq!(fix_up(acl.clone(), &who, 1 << 20, &[]), Err(ErrorCode::InvalidAcl));
        assert_eq!(
            fix_up(acl[..9].to_vec(), &who, 1 << 20, &[]).map(|fixed| fixed.len()),
            Ok(9 * MAX_IDENTITIES)
        );
    }

    #[test]
    fn the_password_of_the_superuser_makes_one() {
        let digest = digest_identity(b"super:test");
        let mut who = Vec::new();
        assert_eq!(authenticate(&mut who, DIGEST, b"super:test", Some(&digest)), Ok(()));
        assert!(who.contains(&Id::superuser()));
        let mut who = Vec::new();
        assert_eq!(authenticate(&mut who, DIGEST, b"super:guess", Some(&digest)), Ok(()));
        assert!(!who.contains(&Id::superuser()));
        for scheme in [SUPER, WORLD, AUTH, X509, "unknown"] {
            assert_eq!(authenticate(&mut who, scheme, b"x", None), Err(ErrorCode::AuthFailed), "{scheme}");
        }
    }

    #[test]
    fn identities_are_counted_and_measured() {
        let mut who = Vec::new();
        for number in 0..MAX_IDENTITIES {
            assert_eq!(authenticate(&mut who, DIGEST, format!("{number}:x").as_bytes(), None), Ok(()));
        }
        assert_eq!(authenticate(&mut who, DIGEST, b"more:x", None), Err(ErrorCode::AuthFailed));
        assert_eq!(authenticate(&mut who, DIGEST, b"7:x", None), Ok(()), "again is not one more");
        let long = vec![b'x'; MAX_IDENTITY];
        assert_eq!(authenticate(&mut Vec::new(), DIGEST, &long, None), Err(ErrorCode::AuthFailed));
    }

    #[test]
    fn digests_are_shown_to_who_may_change_the_list() {
        let acl = [entry(PERM_ALL, DIGEST, "ann:secret"), entry(PERM_READ, WORLD, ANYONE)];
        assert_eq!(shown_to(&acl, &[id(DIGEST, "ann:secret")])[0].id, "ann:secret");
        assert_eq!(shown_to(&acl, &[])[0].id, "ann:x");
    }
}
