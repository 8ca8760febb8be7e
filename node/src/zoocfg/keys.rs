//! Every key of ZooKeeper 3.8's configuration, and what becomes of it here.
//!
//! ZooKeeper reads some keys from zoo.cfg and turns all others into system properties with `zookeeper.`
//! before their name; what was written for the command line (`-Dzookeeper.snapCount=...`) therefore works in
//! the file without the prefix. Here one name stands for all spellings, and each has one of three fates: it
//! is obeyed, it is accepted without effect and the reason is told, or the start is refused because whoever
//! wrote it counts on something that this member would not do. `node keys` prints these tables.

use std::fmt::Write;

/// What a key does here, or why it does nothing.
type About = (&'static str, &'static str);

/// Keys for places. A member that takes one for something else starts empty, without its data.
pub(crate) const PLACES: &[&str] = &["dataDir", "dataLogDir", "dynamicConfigFile"];

/// Keys that are obeyed.
pub(crate) const OBEYED: &[About] = &[
    (
        "4lw.commands.whitelist",
        "the four-letter words that are answered; without it ruok, srvr, stat, mntr and isro",
    ),
    ("DigestAuthenticationProvider.superDigest", "NAME:DIGEST of who may do everything"),
    ("SASLAuthenticationProvider.superPassword", "the password of the user super, instead of the file's"),
    (
        "X509AuthenticationProvider.superUser",
        "the subject of the certificate that makes a client the superuser",
    ),
    ("admin.commandURL", "where the admin server's commands begin"),
    ("admin.enableServer", "the admin server; off unless this or another admin key asks for it"),
    ("admin.idleTimeout", "milliseconds after which a silent connection to the admin server is closed"),
    ("admin.serverAddress", "where the admin server listens"),
    ("admin.serverPort", "its port"),
    ("allowSaslFailedClients", "clients that fail to authenticate by SASL may stay"),
    (
        "authProvider.N",
        "SASLAuthenticationProvider lets clients authenticate by SASL, and lists name them; digest and ip \
            are always there, x509 where clients have TLS",
    ),
    (
        "autopurge.purgeInterval",
        "0, or without it: every snapshot and log is kept, as by ZooKeeper; otherwise old ones go behind \
            each new snapshot",
    ),
    ("autopurge.snapRetainCount", "how many snapshots are kept then, with the log behind the oldest"),
    ("client.portUnification", "clients with TLS and without come to the same port"),
    ("clientPort", "where clients connect"),
    ("clientPortAddress", "the interface for them"),
    ("clientPortListenBacklog", "clients that may wait to be accepted"),
    ("clientTcpKeepAlive", "the kernel probes silent clients"),
    ("commitLogCount", "committed transactions kept in memory for members that are behind"),
    (
        "connection_throttle_decrease_ratio",
        "free tokens, as a part of all, at which fewer clients are turned away",
    ),
    ("connection_throttle_drop_decrease", "how much fewer at a time"),
    ("connection_throttle_drop_increase", "how many more are turned away at a time when no token is left"),
    ("connection_throttle_fill_count", "tokens that come back at a time"),
    ("connection_throttle_fill_time", "milliseconds until they do"),
    (
        "connection_throttle_freeze_time",
        "milliseconds between changes of that probability; -1 turns nobody away by chance",
    ),
    ("connection_throttle_global_session_weight", "tokens that a new session costs"),
    ("connection_throttle_local_session_weight", "counts for the size of the bucket, as in ZooKeeper"),
    ("connection_throttle_renew_session_weight", "tokens that a session costs which comes back"),
    ("connection_throttle_tokens", "tokens for connect requests; 0 for no limit"),
    ("connection_throttle_weight_enabled", "sessions cost their weights instead of 1"),
    ("dataDir", "where snapshots and epoch files are, and the log"),
    ("dataLogDir", "where the log is instead"),
    ("dynamicConfigFile", "a file with the server lines; written anew when the ensemble changes"),
    ("enforce.auth.enabled", "clients must have an identity of one of enforce.auth.schemes"),
    ("enforce.auth.schemes", "digest, ip, sasl, x509"),
    ("enforceQuota", "writes beyond a hard limit are refused"),
    ("extendedTypesEnabled", "nodes with a time to live can be made; on unless it is switched off"),
    ("fsync.warningthresholdms", "an fsync that takes longer is logged"),
    ("globalOutstandingLimit", "requests under way beyond which busy clients are left unread"),
    ("initLimit", "ticks in which a learner must have taken over its leader's history"),
    ("java.security.auth.login.config", "the JAAS file with the users for SASL (DIGEST-MD5)"),
    ("jute.maxbuffer", "the longest request, up to 67108864 bytes; a transaction may be twice as long"),
    ("localSessionsEnabled", "in an ensemble new sessions live on their member alone"),
    ("localSessionsUpgradingEnabled", "and become the ensemble's when they create an ephemeral"),
    ("maxClientCnxns", "connections of one host, 0 for any number"),
    ("maxCnxns", "connections of all hosts, 0 for any number"),
    ("maxSessionTimeout", "the longest session time-out in milliseconds"),
    (
        "metricsProvider.className",
        "Prometheus' opens its port; with the default and the null provider none is open",
    ),
    ("metricsProvider.httpHost", "where metrics are served"),
    ("metricsProvider.httpPort", "their port"),
    ("minSessionTimeout", "the shortest session time-out in milliseconds"),
    (
        "netty.server.outstandingHandshake.limit",
        "handshakes of clients that may be under way, -1 for any number",
    ),
    ("nio.sessionlessCnxnTimeout", "milliseconds in which a connection must say what it wants"),
    ("peerTimeout", "our own: silence between members after which one gives up on another"),
    ("peerType", "must agree with the own server line"),
    ("portUnification", "members take connections with TLS and without"),
    ("preAllocSize", "kilobytes by which a log file grows at a time"),
    ("quorumListenOnAllIPs", "peers are listened to on every interface"),
    (
        "readonlymode.enabled",
        "without a leader for 2 s, or a tick if that is longer, reads are served to clients that are \
            content with that",
    ),
    ("reconfigEnabled", "the ensemble may change while it serves, by the request reconfig"),
    ("request_throttle_max_requests", "requests under way beyond which no client is read, 0 for no limit"),
    ("sasl.serverconfig", "the section of it with the users, Server without it"),
    ("secureClientPort", "where clients with TLS connect; without clientPort no others do"),
    ("secureClientPortAddress", "the interface for them"),
    ("server.N", "a member: its addresses and its role"),
    ("sessionRequireClientSASLAuth", "clients must authenticate by SASL"),
    ("skipACL", "nobody is asked for permission"),
    (
        "snapCount",
        "transactions between two snapshots; without it 100,000, or as many as there are znodes where these \
            are more",
    ),
    (
        "snapshot.compression.method",
        "gz or snappy; without it snapshots are written as they are. All are read",
    ),
    ("ssl.ciphersuites", "the suites that are offered, in this order; those that are not there are left out"),
    ("ssl.clientAuth", "need, want or none: whether a client must show a certificate"),
    ("ssl.enabledProtocols", "TLSv1.3, TLSv1.2 or both"),
    ("ssl.handshakeDetectionTimeoutMillis", "how long a handshake may take"),
    ("ssl.hostnameVerification", "has nothing to verify: no client must name its host"),
    ("ssl.keyStore.location", "the store with the member's key and certificate: JKS, PKCS12 or PEM"),
    ("ssl.keyStore.password", "its password"),
    ("ssl.keyStore.passwordPath", "a file with its password"),
    ("ssl.keyStore.type", "JKS, PKCS12 or PEM; without it the file tells"),
    ("ssl.protocol", "TLSv1.2 or TLSv1.3 allows that version alone, TLS both"),
    (
        "ssl.quorum.ciphersuites",
        "the suites that are offered, in this order; those that are not there are left out",
    ),
    ("ssl.quorum.clientAuth", "need, want or none: whether a member that dials must show a certificate"),
    ("ssl.quorum.enabledProtocols", "TLSv1.3, TLSv1.2 or both"),
    ("ssl.quorum.handshakeDetectionTimeoutMillis", "how long a handshake may take"),
    ("ssl.quorum.hostnameVerification", "whether members' certificates must name their hosts"),
    ("ssl.quorum.keyStore.location", "the store with the member's key and certificate: JKS, PKCS12 or PEM"),
    ("ssl.quorum.keyStore.password", "its password"),
    ("ssl.quorum.keyStore.passwordPath", "a file with its password"),
    ("ssl.quorum.keyStore.type", "JKS, PKCS12 or PEM; without it the file tells"),
    ("ssl.quorum.protocol", "TLSv1.2 or TLSv1.3 allows that version alone, TLS both"),
    ("ssl.quorum.trustStore.location", "the store with the certificates that are trusted"),
    ("ssl.quorum.trustStore.password", "its password"),
    ("ssl.quorum.trustStore.passwordPath", "a file with its password"),
    ("ssl.quorum.trustStore.type", "JKS, PKCS12 or PEM; without it the file tells"),
    ("ssl.trustStore.location", "the store with the certificates that are trusted"),
    ("ssl.trustStore.password", "its password"),
    ("ssl.trustStore.passwordPath", "a file with its password"),
    ("ssl.trustStore.type", "JKS, PKCS12 or PEM; without it the file tells"),
    ("sslQuorum", "members dial each other with TLS, and without portUnification take nothing else"),
    ("sslQuorumReloadCertFiles", "the stores for members are read again when they change"),
    ("standaloneEnabled", "on, a reconfiguration must leave two voters at least"),
    ("superUser", "the user of SASL who may do everything; superUser.N for more"),
    ("syncLimit", "towards Apache ZooKeeper's members; between ours peerTimeout rules"),
    ("tickTime", "the unit of initLimit, syncLimit and session time-outs, in milliseconds"),
    ("txnLogSizeLimitInKb", "a log file of this size is followed by a new one"),
    (
        "znode.container.checkIntervalMs",
        "milliseconds between two looks for empty containers and expired nodes",
    ),
    (
        "znode.container.maxNeverUsedIntervalMs",
        "milliseconds after which a container goes that never had a child; 0, or without it: never",
    ),
];

/// Keys that are accepted and do nothing, and why.
pub(crate) const IDLE: &[About] = &[
    ("DigestAuthenticationProvider.digestAlg", "passwords are digested by SHA-1"),
    ("DigestAuthenticationProvider.enabled", "digests are always taken"),
    ("admin.httpVersion", "HTTP/1.1 is all there is"),
    ("audit.enable", "there is no audit log"),
    ("audit.impl.class", "there is no audit log"),
    ("bitHashCacheSize", WATCHES),
    ("closeSessionTxn.enabled", "the paths are always in the transaction"),
    ("cnxTimeout", "peerTimeout rules"),
    ("commitProcessor.maxCommitBatchSize", NO_THREADS),
    ("commitProcessor.maxReadBatchSize", NO_THREADS),
    ("commitProcessor.numWorkerThreads", NO_THREADS),
    ("commitProcessor.shutdownTimeout", NO_THREADS),
    ("connectToLearnerMasterLimit", "a learner dials until a leader takes it in or steps back"),
    ("datadir.autocreate", "the data directory is created"),
    ("db.autocreate", "an empty directory is a new member"),
    ("digest.enabled", "the tree's digest is always kept"),
    (
        "electionPortBindRetry",
        "a port that is taken stops the start; a name without an address is waited for",
    ),
    ("emulate353TTLNodes", "TTL nodes have the form of 3.5.4 and later"),
    ("enableEagerACLCheck", "the leader judges every write"),
    ("ensembleAuthName", "the scheme ensemble is not there"),
    ("fastleader.maxNotificationInterval", ELECTION),
    ("fastleader.minNotificationInterval", ELECTION),
    ("flushDelay", "what waits for the disk together is written together"),
    ("follower.skipLearnerRequestToNextProcessor", NO_THREADS),
    ("forceSnapshotSync", "a testing aid of ZooKeeper's"),
    ("forceSync", "everything is on disk before it is acknowledged, always"),
    ("forward_learner_requests_to_commit_processor_disabled", NO_THREADS),
    ("intBufferStartingSizeBytes", NO_CACHES),
    ("jute.maxbuffer.extrasize", "transactions may be twice as long as a request"),
    ("jvm.pause.info-threshold.ms", NO_JVM),
    ("jvm.pause.monitor", NO_JVM),
    ("jvm.pause.sleep.time.ms", NO_JVM),
    ("jvm.pause.warn-threshold.ms", NO_JVM),
    ("kerberos.canonicalizeHostNames", NO_KERBEROS),
    ("kerberos.removeHostFromPrincipal", NO_KERBEROS),
    ("kerberos.removeRealmFromPrincipal", NO_KERBEROS),
    ("kinit", NO_KERBEROS),
    ("largeRequestMaxBytes", "the window of each client and jute.maxbuffer bound its memory"),
    ("largeRequestThreshold", "the window of each client and jute.maxbuffer bound its memory"),
    ("leader.ackLoggingFrequency", "acknowledgements are not logged"),
    ("leader.closeSocketAsync", NO_THREADS),
    ("leader.maxConcurrentDiffSyncs", "learners are synchronized as they come"),
    ("leader.maxConcurrentSnapSyncs", "learners are synchronized as they come"),
    ("leader.maxTimeToWaitForEpoch", "discovery has a deadline of its own"),
    ("leaderConnectDelayDuringRetryMs", "a learner dials at every tick of its core"),
    ("leaderServes", "the leader serves clients"),
    ("learner.asyncSending", "no send blocks"),
    ("learner.closeSocketAsync", NO_THREADS),
    ("letAnySaslUserDoX", "a list means whom it names"),
    ("maxBatchSize", "what waits for the disk together is written together"),
    ("maxGetChildrenResponseCacheSize", NO_CACHES),
    ("maxInProcessingDeadWatchers", WATCHES),
    ("maxResponseCacheSize", NO_CACHES),
    ("maxWriteQueuePollTime", "what waits for the disk together is written together"),
    ("messageTracker.BufferSize", "messages are not kept"),
    ("messageTracker.Enabled", "messages are not kept"),
    ("metricsProvider.exportJvmInfo", NO_JVM),
    ("metricsProvider.maxQueueSize", NO_THREADS),
    ("metricsProvider.numWorkerThreads", NO_THREADS),
    ("metricsProvider.workerShutdownTimeoutMs", NO_THREADS),
    ("multiAddress.enabled", "each member has one address"),
    ("multiAddress.reachabilityCheckEnabled", "each member has one address"),
    ("multiAddress.reachabilityCheckTimeoutMs", "each member has one address"),
    ("netty.advancedFlowControl.enabled", "a client that does not read is not read"),
    ("netty.server.earlyDropSecureConnectionHandshakes", "connections are taken in when the log is open"),
    ("nio.directBufferBytes", NO_JVM),
    ("nio.numSelectorThreads", NO_THREADS),
    ("nio.numWorkerThreads", NO_THREADS),
    ("nio.shutdownTimeout", NO_THREADS),
    ("observer.election.DelayMs", ELECTION),
    ("observer.reconnectDelayMs", ELECTION),
    ("observer.syncEnabled", SYNC_ENABLED),
    ("observerMaster.sizeLimit", "observers follow the leader"),
    ("pathStats.delay", PATH_STATS),
    ("pathStats.enabled", PATH_STATS),
    ("pathStats.initialDelay", PATH_STATS),
    ("pathStats.maxDepth", PATH_STATS),
    ("pathStats.sampleRate", PATH_STATS),
    ("pathStats.slotCapacity", PATH_STATS),
    ("pathStats.slotDuration", PATH_STATS),
    ("pathStats.topPathMax", PATH_STATS),
    ("quorum.auth.kerberos.servicePrincipal", NO_KERBEROS),
    ("quorum.auth.learner.saslLoginContext", NO_KERBEROS),
    ("quorum.auth.server.saslLoginContext", NO_KERBEROS),
    ("quorum.cnxn.threads.size", NO_THREADS),
    ("quorumCnxnTimeoutMs", "peerTimeout rules"),
    ("request_stale_connection_check", NO_STALE),
    ("request_stale_latency_check", NO_STALE),
    ("request_throttle_drop_stale", NO_STALE),
    ("request_throttle_stall_time", "a client is read again as soon as there is room"),
    ("request_throttler.shutdownTimeout", "a stopping member drains in bounded time"),
    (
        "requireClientAuthScheme",
        "ZooKeeper does not read it either: sessionRequireClientSASLAuth=true makes clients authenticate",
    ),
    ("requireKerberosConfig", NO_KERBEROS),
    ("security.auth_to_local", NO_KERBEROS),
    ("serverCnxnFactory", "there is one kind of client port"),
    ("snapSizeLimitInKb", "snapCount alone says when"),
    (
        "snapshot.trust.empty",
        "a log without a snapshot starts from the empty tree; beside damaged ones it must begin with the \
         first transaction of all",
    ),
    ("snapshotSizeFactor", "a learner gets the transactions that are in memory, or the tree"),
    ("syncEnabled", SYNC_ENABLED),
    ("tcpKeepAlive", "connections between members are always probed"),
    ("throttled_op_wait_time", NO_STALE),
    ("watchManagerName", WATCHES),
    ("watcherCleanIntervalInSeconds", WATCHES),
    ("watcherCleanThreadsNum", WATCHES),
    ("watcherCleanThreshold", WATCHES),
    ("znode.container.maxPerMinute", "up to 10000 go at each look"),
];

const NO_KERBEROS: &str = "there is no Kerberos";
const NO_CACHES: &str = "answers are made anew and buffers are pooled by need";
const NO_JVM: &str = "there is no Java";
const NO_STALE: &str = "no request is ever dropped: a client is left unread instead";
const NO_THREADS: &str = "there are no such threads";
const WATCHES: &str = "watches are kept in one way";
const ELECTION: &str = "elections have rules of their own";
const PATH_STATS: &str = "paths are not counted";
const SYNC_ENABLED: &str = "observers log and take snapshots";

/// Keys that ask for what is not there, unless their value says that they don't; the value and the reason.
pub(crate) const REFUSED: &[(&str, &str, &str)] = &[
    ("admin.forceHttps", "false", NO_TLS),
    ("admin.portUnification", "false", NO_TLS),
    ("electionAlg", "3", "fast leader election (3) is the only one: remove the key"),
    ("group.N", "", MAJORITY),
    ("metricsProvider.httpsPort", "", NO_TLS),
    ("observerMasterPort", "0", "observers follow the leader and no other member: remove the key"),
    ("oraclePath", "", "no oracle is asked, a majority decides: remove the key"),
    ("quorum.auth.enableSasl", "false", NO_PEER_AUTH),
    ("quorum.auth.learnerRequireSasl", "false", NO_PEER_AUTH),
    ("quorum.auth.serverRequireSasl", "false", NO_PEER_AUTH),
    ("ssl.authProvider", "x509", "x509 is the only one: remove the key"),
    ("ssl.context.supplier.class", "", "there are no Java classes: name key stores instead"),
    ("ssl.crl", "false", NO_REVOCATION),
    ("ssl.ocsp", "false", NO_REVOCATION),
    ("ssl.quorum.context.supplier.class", "", "there are no Java classes: name key stores instead"),
    ("ssl.quorum.crl", "false", NO_REVOCATION),
    ("ssl.quorum.ocsp", "false", NO_REVOCATION),
    ("weight.N", "1", MAJORITY),
];

const NO_TLS: &str = "operators' ports have no TLS: remove the key, and keep them from whom they are not for";
const NO_REVOCATION: &str =
    "no lists of revoked certificates are asked: remove the key, and trust only who is";
const NO_PEER_AUTH: &str = "members do not authenticate to each other yet: remove the key";
const MAJORITY: &str = "every voter has the same weight and a majority decides: remove the key";

/// Other spellings, by the documentation of 3.8 or by habit, and the one that stands for them.
const ALIASES: &[(&str, &str)] = &[
    ("connectionDecreaseRatio", "connection_throttle_decrease_ratio"),
    ("connectionDropDecrease", "connection_throttle_drop_decrease"),
    ("connectionDropIncrease", "connection_throttle_drop_increase"),
    ("connectionFreezeTime", "connection_throttle_freeze_time"),
    ("connectionMaxTokens", "connection_throttle_tokens"),
    ("connectionTokenFillCount", "connection_throttle_fill_count"),
    ("connectionTokenFillTime", "connection_throttle_fill_time"),
    ("maxConcurrentDiffSyncs", "leader.maxConcurrentDiffSyncs"),
    ("maxConcurrentSnapSyncs", "leader.maxConcurrentSnapSyncs"),
    ("maxTimeToWaitForEpoch", "leader.maxTimeToWaitForEpoch"),
    ("outstandingHandshake.limit", "netty.server.outstandingHandshake.limit"),
    ("advancedFlowControlEnabled", "netty.advancedFlowControl.enabled"),
    ("requestStaleConnectionCheck", "request_stale_connection_check"),
    ("requestStaleLatencyCheck", "request_stale_latency_check"),
    ("requestThrottleDropStale", "request_throttle_drop_stale"),
    ("requestThrottleLimit", "request_throttle_max_requests"),
    ("requestThrottleStallTime", "request_throttle_stall_time"),
    ("throttledOpWaitTime", "throttled_op_wait_time"),
];

/// What ZooKeeper puts before the name of a key when it makes a system property of it.
const PROPERTY_PREFIX: &str = "zookeeper.";

/// Names that end in anything.
const FAMILIES: &[(&str, &str)] = &[
    ("server.", "server.N"),
    ("group.", "group.N"),
    ("weight.", "weight.N"),
    ("authProvider.", "authProvider.N"),
    ("superUser.", "superUser"),
];

/// The one name that stands for all spellings of a key.
pub(crate) fn canonical(spelling: &str) -> &str {
    let name = spelling.strip_prefix(PROPERTY_PREFIX).unwrap_or(spelling);
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, stands_for)| stands_for)
}

/// The family that a key belongs to, or the key itself.
pub(crate) fn family(key: &str) -> &str {
    let found = FAMILIES.iter().find(|(prefix, _)| key.starts_with(prefix));
    found.map_or(key, |(_, family)| family)
}

/// Why a key does nothing, if it is one of those.
pub(crate) fn idle(key: &str) -> Option<&'static str> {
    let key = family(key);
    IDLE.iter().find(|(name, _)| *name == key).map(|(_, why)| *why)
}

/// Why a key with this value is refused, if it is.
pub(crate) fn refused(key: &str, value: &str) -> Option<&'static str> {
    let key = family(key);
    let (_, harmless, why) = REFUSED.iter().find(|(name, _, _)| *name == key)?;
    let harmless = value.is_empty() || (!harmless.is_empty() && value.eq_ignore_ascii_case(harmless));
    (!harmless).then_some(why)
}

/// True for a key with a value that asks for nothing.
pub(crate) fn is_known(key: &str) -> bool {
    let key = family(key);
    let known = |table: &[About]| table.iter().any(|(name, _)| *name == key);
    known(OBEYED) || known(IDLE) || REFUSED.iter().any(|(name, _, _)| *name == key)
}

/// The known name that is nearest to a misspelt one, when it is near enough to be meant.
pub(crate) fn nearest(key: &str) -> Option<&'static str> {
    let about = OBEYED.iter().chain(IDLE).map(|(name, _)| *name);
    let all =
        about.chain(REFUSED.iter().map(|(name, _, _)| *name)).chain(ALIASES.iter().map(|(name, _)| *name));
    let (distance, name) = all.map(|name| (distance(key, name), name)).min()?;
    (distance <= MAX_DISTANCE.min(key.len() / 2)).then_some(name)
}

/// Letters that may be wrong in a name that is still recognized.
const MAX_DISTANCE: usize = 4;

/// Names that are longer are not compared.
const MAX_NAME: usize = 80;

/// Letters to insert, delete or replace, capitals for free.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > MAX_NAME {
        return usize::MAX;
    }
    let a: Vec<u8> = a.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (i, b) in b.bytes().map(|byte| byte.to_ascii_lowercase()).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, a) in a.iter().enumerate() {
            let replaced = diagonal + usize::from(*a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// All of it, for people.
pub fn describe() -> String {
    let mut text = String::from(
        "Keys of zoo.cfg. Each may also be spelt with `zookeeper.` before it, be given as -Dkey=value, and \
         stand in the variables JVMFLAGS and SERVER_JVMFLAGS as -Dzookeeper.key=value.\n",
    );
    section(&mut text, "Obeyed", OBEYED.iter().map(|(name, what)| (*name, what.to_string())));
    section(&mut text, "Accepted without effect", IDLE.iter().map(|(name, why)| (*name, why.to_string())));
    let refused = REFUSED.iter().map(|(name, harmless, why)| match *harmless {
        "" => (*name, (*why).to_owned()),
        harmless => (*name, format!("unless it is {harmless}: {why}")),
    });
    section(&mut text, "Refused", refused);
    text
}

fn section<'a>(text: &mut String, title: &str, lines: impl Iterator<Item = (&'a str, String)>) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "\n{title}:");
    for (name, about) in lines {
        let _ = writeln!(text, "  {name}\n      {about}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_key_stands_in_one_table_and_once() {
        let about = OBEYED.iter().chain(IDLE).map(|(name, _)| *name);
        let mut seen = BTreeSet::new();
        for name in about.chain(REFUSED.iter().map(|(name, _, _)| *name)) {
            assert!(seen.insert(name), "{name} twice");
        }
        for (alias, stands_for) in ALIASES {
            assert!(!seen.contains(alias) && seen.contains(stands_for), "{alias}");
        }
    }

    #[test]
    fn every_spelling_has_one_name() {
        let table = [
            ("snapCount", "snapCount"),
            ("zookeeper.snapCount", "snapCount"),
            ("connectionMaxTokens", "connection_throttle_tokens"),
            ("zookeeper.connection_throttle_tokens", "connection_throttle_tokens"),
            ("jute.maxbuffer", "jute.maxbuffer"),
        ];
        for (spelling, name) in table {
            assert_eq!(canonical(spelling), name, "{spelling}");
        }
    }

    #[test]
    fn a_misspelt_key_finds_the_one_that_is_meant_and_nonsense_none() {
        let table = [
            ("tickTimes", Some("tickTime")),
            ("maxclientcnxn", Some("maxClientCnxns")),
            ("autopurge.purgeIntervall", Some("autopurge.purgeInterval")),
            ("4lw.command.whitelist", Some("4lw.commands.whitelist")),
            ("x", None),
            ("nothing.like.it", None),
        ];
        for (key, expected) in table {
            assert_eq!(nearest(key), expected, "{key}");
        }
    }

    #[test]
    fn what_asks_for_nothing_is_not_refused() {
        assert!(refused("admin.forceHttps", "true").is_some_and(|why| why.contains("TLS")));
        assert_eq!(refused("admin.forceHttps", "false"), None);
        assert!(refused("ssl.crl", "true").is_some() && refused("ssl.keyStore.location", "/a.jks").is_none());
        assert!(refused("group.1", "1:2:3").is_some() && refused("weight.2", "1").is_none());
        assert_eq!(refused("snapCount", "5"), None);
    }
}
