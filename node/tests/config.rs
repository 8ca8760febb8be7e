//! Flags and file together: what they mean, and what is refused.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use node::NodeConfig;
use node::tls::Guard;
use node_wire::ids::ServerId;
use node_wire::logfile::Compression;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: node::cli::Args,
}

/// Flags as a shell would split them; the error as the operator reads it.
fn configured(flags: &str) -> Result<NodeConfig, String> {
    let words = std::iter::once("node").chain(flags.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    NodeConfig::from_args(&cli.args).map_err(|error| error.to_string())
}

const THREE: &str = "--server 1=127.0.0.1:2881:3881 --server 2=127.0.0.1:2882:3882 \
                     --server 3=127.0.0.1:2883:3883";

fn three(more: &str) -> Result<NodeConfig, String> {
    configured(&format!("--id 1 --data-dir d --client-addr 127.0.0.1:2181 {THREE} {more}"))
}

/// A file in a directory of its own.
fn file(dir: &Path, text: &str) -> String {
    let path = dir.join("zoo.cfg");
    fs::write(&path, text).expect("written");
    format!("--config {}", path.display())
}

#[test]
fn defaults_are_zookeepers_but_for_detection() {
    let config = three("").expect("possible");
    assert_eq!(config.peer_timeout, Duration::from_millis(250));
    assert_eq!(config.tick_time, Duration::from_secs(2));
    assert_eq!((config.init_limit, config.sync_limit), (10, 5));
    assert_eq!((config.snap_count, config.max_client_cnxns), (100_000, 60));
    assert_eq!(config.snap_retain_count, None, "nothing is deleted unless it is asked for");
    assert_eq!(config.voters(), [1, 2, 3].map(ServerId).into());
    assert_eq!(config.log_dir(), Path::new("d/version-2"));
}

#[test]
fn history_goes_only_where_an_interval_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let retained = |text: &str| {
        let cfg = file(dir.path(), text);
        configured(&format!("--data-dir d {cfg}")).expect("possible").snap_retain_count
    };
    assert_eq!(retained("autopurge.snapRetainCount=7\n"), None);
    assert_eq!(retained("autopurge.snapRetainCount=7\nautopurge.purgeInterval=0\n"), None);
    assert_eq!(retained("autopurge.snapRetainCount=7\nautopurge.purgeInterval=24\n"), Some(7));
    assert_eq!(retained("autopurge.purgeInterval=1\n"), Some(3));
}

#[test]
fn lists_may_name_the_schemes_that_have_a_provider() {
    let dir = tempfile::tempdir().expect("a directory");
    let providers = |text: &str| {
        let cfg = file(dir.path(), text);
        let rules = configured(&format!("--data-dir d {cfg}")).expect("possible").rules;
        rules.providers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(providers(""), "");
    let class = |name: &str| format!("authProvider.1=org.apache.zookeeper.server.auth.{name}\n");
    assert_eq!(providers(&class("X509AuthenticationProvider")), "x509");
    assert_eq!(providers(&class("DigestAuthenticationProvider")), "");
}

#[test]
fn the_log_may_lie_apart_and_snapshots_be_compressed() {
    let dir = tempfile::tempdir().expect("a directory");
    let flags = "--id 1 --data-dir d --client-addr a:1";
    let cfg = file(dir.path(), "dataLogDir=/fast\nsnapshot.compression.method=gz\njute.maxbuffer=4194304\n");
    let config = configured(&format!("{flags} {cfg}")).expect("possible");
    assert_eq!((config.version_dir(), config.log_dir()), ("d/version-2".into(), "/fast/version-2".into()));
    assert_eq!(config.compression, Some(Compression::Gz));
    assert_eq!((config.jute_max_buffer, config.rules.max_buffer), (4 << 20, 4 << 20));
    let config = configured(&format!("{flags} {}", file(dir.path(), "snapshot.compression.method=\n")));
    assert_eq!(config.expect("possible").compression, None);
}

#[test]
fn without_servers_a_member_is_an_ensemble_of_one() {
    let config = configured("--id 4 --data-dir d --client-addr [::1]:0").expect("possible");
    assert_eq!(config.voters(), [ServerId(4)].into());
    let config = configured("--data-dir d").expect("nobody else has to know its number and its port");
    assert_eq!((config.id, config.client_addr.to_string()), (ServerId(1), "0.0.0.0:2181".to_owned()));
}

#[test]
fn a_file_alone_is_enough_and_flags_win_over_it() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("myid"), "2\n").expect("written");
    let text = format!(
        "tickTime=100\ndataDir={}\nclientPort=2181\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n\
         peerTimeout=400ms\nautopurge.purgeInterval=0\nnonsense=1\n",
        dir.path().display()
    );
    let flag = file(dir.path(), &text);
    let config = configured(&flag).expect("possible");
    assert_eq!(config.id, ServerId(2));
    assert_eq!(config.client_addr.to_string(), "0.0.0.0:2181");
    assert_eq!(config.peer_timeout, Duration::from_millis(400));
    assert_eq!((config.tick_time, config.snap_retain_count), (Duration::from_millis(100), None));
    assert_eq!(config.warnings.len(), 1);

    let config = configured(&format!("{flag} --id 3 --peer-timeout-ms 90 {THREE}")).expect("possible");
    assert_eq!((config.id, config.peer_timeout), (ServerId(3), Duration::from_millis(90)));
    assert_eq!(config.servers[&ServerId(3)].election.port, 3883);
}

#[test]
fn the_client_port_may_stand_in_the_servers_line() {
    let config = configured("--id 1 --data-dir d --server 1=h:1:2;10.0.0.1:2181").expect("possible");
    assert_eq!(config.client_addr.to_string(), "10.0.0.1:2181");
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let table = [
        ("--id 1", "find a data directory: give --data-dir, the variable ZOO_DATA_DIR or the key dataDir"),
        (
            "--data-dir /nonexistent --server 1=a:1:2",
            "find this member's number: give --id, the variable ZOO_MY_ID, or write it to the file myid in \
             the data directory",
        ),
        (
            "--id 1 --data-dir d --server 1=a:1:2",
            "find an address for clients: give --client-addr, the key clientPort, or a port behind `;` in \
             the server's line",
        ),
    ];
    for (flags, message) in table {
        assert_eq!(configured(flags).expect_err(flags), message, "{flags}");
    }
}

#[test]
fn what_can_not_be_is_refused_with_what_to_do() {
    let table = [
        ("--id 9", "the argument '--id <ID>' cannot be used multiple times"),
        ("--server 1=a:5:6", "accept two lines for server 1: remove one"),
        (
            "--server 4=127.0.0.1:2881:9",
            "accept 127.0.0.1:2881 twice, for server 1 and for server 4: give each port its own",
        ),
        ("--server 4=a:0:9", "accept port 0 for server 4: its peers must know the port"),
        (
            "--dial 1=a:1,a:2",
            "accept a place to dial server 1, which is not a peer of this member: remove it",
        ),
        (
            "--dial 7=a:1,a:2",
            "accept a place to dial server 7, which is not a peer of this member: remove it",
        ),
        ("--peer-timeout-ms 10", "accept peerTimeout of 10 ms: choose one from 50 ms to 60000 ms"),
        ("--tick-time-ms 0", "accept tickTime of 0 ms: choose one from 10 ms to 60000 ms"),
        ("--snap-count 1", "accept snapCount of 1: choose one from 2 to 18446744073709551615"),
    ];
    for (flags, message) in table {
        let error = three(flags).expect_err(flags);
        assert!(error.contains(message), "{flags}: {error}");
    }
}

#[test]
fn a_member_must_be_in_its_ensemble_and_keep_its_ports_apart() {
    let error = configured(&format!("--id 9 --data-dir d --client-addr a:2181 {THREE}")).expect_err("no 9");
    assert!(error.contains("add a line for server 9 or correct the id"), "{error}");
    let error = configured(&format!("--id 1 --data-dir d --client-addr a:2881 {THREE}")).expect_err("same");
    assert!(error.contains("port 2881 for clients and for peers"), "{error}");
}

#[test]
fn files_that_can_not_be_followed_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let base = "--id 1 --data-dir d --client-addr a:1";
    let table = [
        (
            "snapshot.compression.method=zip",
            "read snapshot.compression.method=zip: gz, snappy, or nothing is wanted",
        ),
        ("jute.maxbuffer=67108865", "accept jute.maxbuffer of 67108865: choose one from 1024 to 67108864"),
        ("server.1=a:1:2:learner", "`learner` is not a role of a server"),
        ("initLimit=0", "accept initLimit of 0: choose one from 1"),
        ("autopurge.snapRetainCount=1", "accept autopurge.snapRetainCount of 1: choose one from 3"),
        ("4lw.commands.whitelist=everything", "list words of four letters"),
        ("jute.maxbuffer=5", "accept jute.maxbuffer of 5"),
        ("peerType=observer", "the server line of this member says participant"),
        (
            "peerType=participant\nserver.1=a:1:2:observer\nserver.2=b:1:2",
            "the server line of this member says observer",
        ),
        (
            "minSessionTimeout=9\nmaxSessionTimeout=8",
            "minSessionTimeout of 9 ms above maxSessionTimeout of 8 ms",
        ),
        ("txnLogSizeLimitInKb=1", "accept txnLogSizeLimitInKb of 1: choose one from 4096"),
        ("preAllocSize=4194304", "accept preAllocSize of 4194304: choose one from 0 to 1048576"),
        ("admin.serverPort=1\nadmin.idleTimeout=0", "accept admin.idleTimeout of 0 ms: choose one from 1 ms"),
        ("admin.serverPort=1\nadmin.commandURL=x", "admin.commandURL=x: it must begin with /"),
    ];
    for (text, message) in table {
        let error = configured(&format!("{base} {}", file(dir.path(), text))).expect_err(text);
        assert!(error.contains(message), "{text}: {error}");
    }
    let error = configured("--id 1 --config /nonexistent/zoo.cfg").expect_err("no file");
    assert!(error.starts_with("read /nonexistent/zoo.cfg: "), "{error}");
    let flag = file(dir.path(), "clientPort=1");
    fs::write(dir.path().join("myid"), "one").expect("written");
    let error = configured(&format!("--data-dir {} {flag}", dir.path().display())).expect_err("no number");
    assert!(error.ends_with("it must hold this member's number and nothing else"), "{error}");
}

/// What kazoo 2.11's own test harness writes, without the keys of TLS.
fn kazoos(dir: &Path, more: &str) -> String {
    let data = dir.join("data");
    fs::create_dir_all(&data).expect("a directory");
    fs::write(data.join("myid"), "2").expect("written");
    let servers: String =
        (1..=3).map(|id| format!("server.{id}=localhost:2{id}001:2{id}002:participant\n")).collect();
    format!(
        "\ntickTime=2000\ndataDir={}\nclientPort=20010\n{more}maxClientCnxns=0\nadmin.serverPort=20013\n\
         serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
         authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n\
         4lw.commands.whitelist=*\nreconfigEnabled=true\nlocalSessionsEnabled=true\n\
         localSessionsUpgradingEnabled=true\n{servers}\ninitLimit=4\nsyncLimit=2\npeerType=participant\n",
        data.display()
    )
}

#[test]
fn the_files_of_kazoos_test_harness_are_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    let flag = file(dir.path(), &kazoos(dir.path(), "")).replace("--config", "--zoo-cfg");
    let config = configured(&format!(
        "{flag} -Dreadonlymode.enabled=true -Dzookeeper.log.dir=/tmp -Dfile.encoding=UTF-8 \
         -Dzookeeper.extendedTypesEnabled=true"
    ))
    .expect("possible");
    assert_eq!((config.id, config.voters().len(), config.max_client_cnxns), (ServerId(2), 3, 0));
    let admin = config.monitoring.admin.expect("a port was given");
    assert_eq!(
        (admin.address.to_string(), admin.command_url.as_str()),
        ("0.0.0.0:20013".into(), "/commands")
    );
    let idle: Vec<_> = config.warnings.iter().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let expected = ["serverCnxnFactory"];
    assert_eq!(idle, expected, "{:?}", config.warnings);
}

#[test]
fn what_clients_may_do_is_read_in_every_spelling() {
    let dir = tempfile::tempdir().expect("a directory");
    let flag = file(
        dir.path(),
        "dataDir=d\nclientPort=1\nzookeeper.skipACL=no\nznode.container.checkIntervalMs=500\n",
    );
    let config = configured(&format!(
        "{flag} -Dzookeeper.skipACL=yes -Dzookeeper.extendedTypesEnabled=false \
         -Dzookeeper.DigestAuthenticationProvider.superDigest=super:digest"
    ))
    .expect("possible");
    let rules = config.rules;
    assert!(rules.skip_acl && !rules.extended_types && !rules.enforce_quota);
    assert_eq!(rules.super_digest.as_deref(), Some("super:digest"));
    assert_eq!(rules.container_check, Duration::from_millis(500));
    assert_eq!(config.warnings, Vec::<String>::new());
}

#[test]
fn clients_with_tls_have_a_place_of_their_own_and_no_password_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let stores = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stores");
    let keys = format!(
        "secureClientPort=20014\nssl.keyStore.location={stores}/member.jks\nssl.keyStore.password=secret\n\
         ssl.trustStore.location={stores}/trust.jks\nssl.trustStore.password=secret\n"
    );
    let config = configured(&file(dir.path(), &kazoos(dir.path(), &keys))).expect("possible");
    assert_eq!((config.client_addr.port, config.security.guard), (20_010, Guard::Plain));
    assert_eq!(config.security.secure_addr.as_ref().expect("another place").port, 20_014);
    assert!(!format!("{:?}", config.security).contains("\"secret\""));
    let wrong = keys.replace("keyStore.password=secret", "keyStore.password=apassword");
    let error = configured(&file(dir.path(), &kazoos(dir.path(), &wrong))).expect_err("another password");
    assert!(error.contains("the password does not open it") && !error.contains("apassword"), "{error}");
}

#[test]
fn limits_are_zookeepers_keys() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "maxCnxns=0\nglobalOutstandingLimit=500\nrequestThrottleLimit=900\nclientPortListenBacklog=7\n\
                nio.sessionlessCnxnTimeout=1500\nminSessionTimeout=1000\nmaxSessionTimeout=90000\n\
                preAllocSize=1024\ntxnLogSizeLimitInKb=8192\ncommitLogCount=300\n\
                fsync.warningthresholdms=20\n\
                connection_throttle_tokens=10\nconnection_throttle_weight_enabled=true\n\
                connection_throttle_freeze_time=-1\nquorumListenOnAllIPs=true\n";
    let flags = format!("--id 1 --data-dir d --client-addr a:1 {}", file(dir.path(), text));
    let config = configured(&flags).expect("possible");
    let limits = &config.limits;
    assert_eq!((limits.connections, limits.outstanding, limits.requests), (usize::MAX, 500, 900));
    assert_eq!((limits.backlog, limits.first_words), (7, Duration::from_millis(1500)));
    assert_eq!(config.session_timeouts_ms, (1000, 90_000));
    assert_eq!((config.log.preallocate_bytes, config.log.roll_bytes), (1 << 20, 8 << 20));
    assert_eq!((config.commit_log_count, config.listen_on_all), (300, true));
    let throttling = limits.throttling.as_ref().expect("tokens were given");
    assert_eq!((throttling.tokens, throttling.new_session, throttling.renewed_session), (30, 3, 2));
    assert_eq!(throttling.freeze, None);
}

#[test]
fn properties_on_the_command_line_win_over_the_file_and_flags_over_both() {
    let dir = tempfile::tempdir().expect("a directory");
    let flags =
        format!("--id 1 --data-dir d --client-addr a:1 {}", file(dir.path(), "snapCount=50\ntickTime=100"));
    let config =
        configured(&format!("{flags} -Dzookeeper.snapCount=70 -Dzookeeper.tickTime=200")).expect("possible");
    assert_eq!((config.snap_count, config.tick_time), (70, Duration::from_millis(200)));
    assert_eq!(config.properties["snapCount"], "70");
    let config = configured(&format!("{flags} -DsnapCount=70 --snap-count 80")).expect("possible");
    assert_eq!(config.snap_count, 80);
}

#[test]
fn the_servers_may_stand_in_a_file_of_their_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let dynamic = dir.path().join("zoo.cfg.dynamic");
    fs::write(&dynamic, "server.1=a:1:2;3\nserver.2=b:1:2;3\nversion=100000000\n").expect("written");
    let text = format!("dynamicConfigFile={}\n", dynamic.display());
    let config = configured(&format!("--id 2 --data-dir d {}", file(dir.path(), &text))).expect("possible");
    assert_eq!((config.voters().len(), config.client_addr.port), (2, 3));
}

#[test]
fn ports_to_look_at_the_member_are_opened_only_when_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let monitoring = |text: &str| {
        let flags = format!("--id 1 --data-dir d --client-addr a:1 {}", file(dir.path(), text));
        configured(&flags).map(|config| config.monitoring)
    };
    assert_eq!(monitoring("").expect("possible"), node::config::Monitoring::default());
    assert!(monitoring("admin.enableServer=true").expect("possible").admin.is_some());
    assert!(monitoring("admin.enableServer=false\nadmin.serverPort=1").expect("possible").admin.is_none());
    let prometheus =
        "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";
    let metrics = monitoring(&format!("{prometheus}\nmetricsProvider.httpHost=127.0.0.1")).expect("possible");
    assert_eq!(metrics.metrics.map(|address| address.to_string()).as_deref(), Some("127.0.0.1:7000"));
    let error = monitoring("metricsProvider.className=Mine").expect_err("not known");
    assert!(error.contains("metrics are Prometheus'"), "{error}");
}
