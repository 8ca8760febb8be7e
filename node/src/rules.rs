//! What the configuration says about clients: ZooKeeper's keys become the core's rules.
//!
//! ZooKeeper reads most of these as system properties, which a zoo.cfg sets by naming them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytestring::ByteString;
use node_core::{ClientRules, Reconfiguration};
use node_wire::ids::{ServerId, Zxid};
use node_wire::membership::Membership;

use crate::address::ServerLine;
use crate::config::ConfigError;

const SUPER_DIGEST: &str = "DigestAuthenticationProvider.superDigest";
const SKIP_ACL: &str = "skipACL";
const ENFORCE_QUOTA: &str = "enforceQuota";
const EXTENDED_TYPES: &str = "extendedTypesEnabled";
const LOCAL_SESSIONS: &str = "localSessionsEnabled";
const LOCAL_UPGRADING: &str = "localSessionsUpgradingEnabled";
const READ_ONLY_MODE: &str = "readonlymode.enabled";
const CONTAINER_CHECK: &str = "znode.container.checkIntervalMs";
const NEVER_USED: &str = "znode.container.maxNeverUsedIntervalMs";

const RECONFIG: &str = "reconfigEnabled";
pub(crate) const STANDALONE: &str = "standaloneEnabled";

/// The keys that are read here.
#[cfg(test)]
pub(crate) const KEYS: &[&str] = &[
    SUPER_DIGEST,
    SKIP_ACL,
    ENFORCE_QUOTA,
    EXTENDED_TYPES,
    LOCAL_SESSIONS,
    LOCAL_UPGRADING,
    READ_ONLY_MODE,
    CONTAINER_CHECK,
    NEVER_USED,
    RECONFIG,
    STANDALONE,
];

/// The rules that some keys and the ensemble's servers make.
pub(crate) fn client_rules(
    said: &BTreeMap<String, String>,
    servers: &BTreeMap<ServerId, ServerLine>,
    max_buffer: usize,
    version: Zxid,
) -> Result<ClientRules, ConfigError> {
    let usual = ClientRules::default();
    let local_sessions = flag(said, LOCAL_SESSIONS, "true")?.unwrap_or(usual.local_sessions);
    Ok(ClientRules {
        super_digest: said.get(SUPER_DIGEST).map(|digest| ByteString::from(digest.as_str())),
        skip_acl: flag(said, SKIP_ACL, "yes")?.unwrap_or(usual.skip_acl),
        enforce_quota: flag(said, ENFORCE_QUOTA, "true")?.unwrap_or(usual.enforce_quota),
        extended_types: flag(said, EXTENDED_TYPES, "true")?.unwrap_or(usual.extended_types),
        local_sessions: local_sessions && is_ensemble(said, servers)?,
        local_upgrading: flag(said, LOCAL_UPGRADING, "true")?.unwrap_or(usual.local_upgrading),
        read_only_mode: flag(said, READ_ONLY_MODE, "true")?.unwrap_or(usual.read_only_mode),
        container_check: interval(said, CONTAINER_CHECK)?.unwrap_or(usual.container_check),
        // 0 is ZooKeeper's word for no limit.
        never_used: match said.get(NEVER_USED).map(String::as_str) {
            Some("0") => None,
            _ => interval(said, NEVER_USED)?,
        },
        max_buffer,
        membership: membership(servers, version),
        reconfig: reconfiguration(said, servers)?,
        ..usual
    })
}

/// Local sessions are an ensemble's, as in ZooKeeper: who stands alone has nobody to spare them for.
fn is_ensemble(
    said: &BTreeMap<String, String>,
    servers: &BTreeMap<ServerId, ServerLine>,
) -> Result<bool, ConfigError> {
    let standalone = flag(said, STANDALONE, "true")?.unwrap_or(true);
    Ok(servers.len() > 1 || servers.len() == 1 && !standalone)
}

fn flag(said: &BTreeMap<String, String>, key: &str, yes: &str) -> Result<Option<bool>, ConfigError> {
    let Some(value) = said.get(key) else { return Ok(None) };
    match value.as_str() {
        "false" | "no" => Ok(Some(false)),
        "true" => Ok(Some(true)),
        other if other == yes => Ok(Some(true)),
        _ => Err(wrong(key, value, "true or false")),
    }
}

fn interval(said: &BTreeMap<String, String>, key: &str) -> Result<Option<Duration>, ConfigError> {
    let Some(value) = said.get(key) else { return Ok(None) };
    let ms = value.parse().ok().filter(|ms: &u64| *ms > 0);
    let ms = ms.ok_or_else(|| wrong(key, value, "a number of milliseconds"))?;
    Ok(Some(Duration::from_millis(ms)))
}

fn wrong(key: &str, value: &str, want: &'static str) -> ConfigError {
    ConfigError::Value { key: key.to_owned(), value: value.to_owned(), want }
}

/// What `/zookeeper/config` holds at first: the servers as clients read them, and a version that only a
/// reconfiguration changes. A member that stands alone has nothing to show.
fn membership(servers: &BTreeMap<ServerId, ServerLine>, version: Zxid) -> ByteString {
    if servers.is_empty() {
        return ByteString::new();
    }
    ByteString::from(Membership { servers: servers.clone(), version }.to_string())
}

/// Whether the ensemble may change while it serves.
fn reconfiguration(
    said: &BTreeMap<String, String>,
    servers: &BTreeMap<ServerId, ServerLine>,
) -> Result<Reconfiguration, ConfigError> {
    let enabled = flag(said, RECONFIG, "true")?.unwrap_or(false);
    let standalone = flag(said, STANDALONE, "true")?.unwrap_or(true);
    Ok(match (enabled, servers.is_empty()) {
        (false, _) => Reconfiguration::Off,
        (true, true) => Reconfiguration::Alone,
        (true, false) => Reconfiguration::On { standalone },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(pairs: &[(&str, &str)], servers: &[(u64, &str)]) -> Result<ClientRules, ConfigError> {
        let said = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let servers =
            servers.iter().map(|(id, line)| (ServerId(*id), line.parse().expect("a line"))).collect();
        client_rules(&said, &servers, node_wire::jute::limits::MAX_FRAME, Zxid::ZERO)
    }

    #[test]
    fn keys_become_rules() {
        let rules = rules(
            &[
                (SUPER_DIGEST, "super:D/InIHSb7yEEbrWz8b9l71RjZJU="),
                (SKIP_ACL, "yes"),
                (ENFORCE_QUOTA, "true"),
                (EXTENDED_TYPES, "false"),
                (LOCAL_SESSIONS, "true"),
                (LOCAL_UPGRADING, "true"),
                (READ_ONLY_MODE, "true"),
                (CONTAINER_CHECK, "500"),
                (NEVER_USED, "700"),
            ],
            &[(1, "a:1:2"), (2, "b:1:2")],
        )
        .expect("sound rules");
        assert_eq!(rules.super_digest.as_deref(), Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU="));
        assert!(rules.skip_acl && rules.enforce_quota && !rules.extended_types);
        assert!(rules.local_sessions && rules.local_upgrading && rules.read_only_mode);
        assert_eq!(rules.container_check, Duration::from_millis(500));
        assert_eq!(rules.never_used, Some(Duration::from_millis(700)));
    }

    #[test]
    fn a_member_that_stands_alone_has_no_local_sessions() {
        let local = |pairs: &[(&str, &str)], servers: &[(u64, &str)]| {
            rules(pairs, servers).expect("sound rules").local_sessions
        };
        let one = [(1, "a:1:2")];
        assert!(!local(&[(LOCAL_SESSIONS, "true")], &[]));
        assert!(!local(&[(LOCAL_SESSIONS, "true")], &one));
        assert!(local(&[(LOCAL_SESSIONS, "true"), (STANDALONE, "false")], &one));
        assert!(rules(&[(NEVER_USED, "0")], &[]).expect("sound rules").never_used.is_none());
    }

    #[test]
    fn what_is_not_said_is_usual() {
        assert_eq!(rules(&[], &[]).expect("sound rules"), ClientRules::default());
    }

    #[test]
    fn a_wrong_value_stops_the_start() {
        for (key, value) in [(SKIP_ACL, "maybe"), (ENFORCE_QUOTA, ""), (CONTAINER_CHECK, "0")] {
            assert!(rules(&[(key, value)], &[]).is_err(), "{key}={value}");
        }
    }

    #[test]
    fn the_membership_is_written_as_clients_read_it() {
        let servers =
            [(1, "zoo1:2888:3888"), (2, "[::1]:2888:3888:participant;2181"), (3, "zoo3:2888:3888:observer")];
        let text = "server.1=zoo1:2888:3888:participant\n\
                    server.2=[::1]:2888:3888:participant;0.0.0.0:2181\n\
                    server.3=zoo3:2888:3888:observer\n\
                    version=0";
        assert_eq!(rules(&[], &servers).expect("sound rules").membership, text);
    }
}
