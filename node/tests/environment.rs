//! The variables of ZooKeeper's official image: what they mean, and how a wrong one is refused.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use clap::Parser;
use node::NodeConfig;
use node::environment::Environment;
use node_wire::ids::ServerId;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: node::cli::Args,
}

fn environment(variables: &[(&str, &str)]) -> Result<Environment, String> {
    let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Environment::read(variables).map_err(|error| error.to_string())
}

/// What a member makes of flags and variables; the error as the operator reads it.
fn configured(flags: &str, variables: &[(&str, &str)]) -> Result<NodeConfig, String> {
    let words = std::iter::once("node").chain(flags.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    NodeConfig::from_args_in(&cli.args, environment(variables)?).map_err(|error| error.to_string())
}

const DIR: (&str, &str) = ("ZOO_DATA_DIR", "/nonexistent");
const ID: (&str, &str) = ("ZOO_MY_ID", "2");
const SERVERS: (&str, &str) = (
    "ZOO_SERVERS",
    "server.1=zoo1:2888:3888;2181 server.2=zoo2:2888:3888;2182\n server.3=zoo3:2888:3888;2181",
);

#[test]
fn three_variables_are_an_ensemble() {
    let config = configured("", &[DIR, ID, SERVERS]).expect("possible");
    assert_eq!(config.id, ServerId(2));
    assert_eq!(config.voters(), [1, 2, 3].map(ServerId).into());
    assert_eq!(config.client_addr.to_string(), "0.0.0.0:2182");
    assert_eq!(config.servers[&ServerId(3)].election.to_string(), "zoo3:3888");
    assert!(config.warnings.is_empty());
}

#[test]
fn servers_without_a_client_port_take_zookeepers() {
    let servers = ("ZOO_SERVERS", "server.1=zoo1:2888:3888 server.2=zoo2:2888:3888");
    let config = configured("", &[DIR, ID, servers]).expect("possible");
    assert_eq!(config.client_addr.to_string(), "0.0.0.0:2181");
    let config = configured("", &[DIR, ID, servers, ("ZOO_PORT", "2190")]).expect("possible");
    assert_eq!(config.client_addr.to_string(), "0.0.0.0:2190");
}

#[test]
fn a_data_directory_alone_is_an_ensemble_of_one() {
    let config = configured("", &[DIR]).expect("possible");
    assert_eq!((config.id, config.client_addr.to_string()), (ServerId(1), "0.0.0.0:2181".to_owned()));
}

#[test]
fn each_variable_means_its_key() {
    let more = [
        DIR,
        ID,
        SERVERS,
        ("ZOO_DATA_LOG_DIR", "/nonexistent"),
        ("ZOO_TICK_TIME", "100"),
        ("ZOO_INIT_LIMIT", "7"),
        ("ZOO_SYNC_LIMIT", "3"),
        ("ZOO_MAX_CLIENT_CNXNS", "0"),
        ("ZOO_AUTOPURGE_PURGEINTERVAL", "0"),
        ("ZOO_4LW_COMMANDS_WHITELIST", "srvr, ruok"),
        ("ZOO_CFG_EXTRA", "snapCount=50 peerTimeout=90ms"),
        ("ZOO_STANDALONE_ENABLED", "true"),
        ("ZOO_SERVER", "server.1=zoo1:2888:3888"),
        ("ZOOKEEPER_TICK_TIME", "nobody's"),
    ];
    let config = configured("", &more).expect("possible");
    assert_eq!(config.tick_time, Duration::from_millis(100));
    assert_eq!((config.init_limit, config.sync_limit), (7, 3));
    assert_eq!((config.max_client_cnxns, config.snap_retain_count), (0, None));
    assert_eq!((config.snap_count, config.peer_timeout), (50, Duration::from_millis(90)));
    assert_eq!(
        config.warnings,
        [
            "the variable ZOO_STANDALONE_ENABLED has no effect here",
            "the variable ZOO_SERVER is not known and was skipped: check its spelling",
        ]
    );
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("zoo.cfg");
    let text = "tickTime=100\ninitLimit=4\nsyncLimit=3\ndataDir=/elsewhere\nclientPort=9\nserver.8=h:1:2\n";
    fs::write(&path, text).expect("written");
    let flags = format!("--config {} --tick-time-ms 300", path.display());
    let variables = [DIR, ID, SERVERS, ("ZOO_TICK_TIME", "200"), ("ZOO_INIT_LIMIT", "5")];
    let config = configured(&flags, &variables).expect("possible");
    assert_eq!((config.tick_time, config.init_limit, config.sync_limit), (Duration::from_millis(300), 5, 3));
    assert_eq!(config.data_dir.to_str(), Some("/nonexistent"));
    assert_eq!(config.client_addr.to_string(), "0.0.0.0:2182");
    assert_eq!(config.voters().len(), 3);
    let flags = "--id 5 --server 5=h:1:2 --client-addr [::1]:7 --data-dir d";
    let config = configured(flags, &variables).expect("possible");
    assert_eq!(
        (config.voters(), config.client_addr.to_string()),
        ([ServerId(5)].into(), "[::1]:7".to_owned())
    );
}

#[test]
fn an_empty_variable_says_nothing_and_a_link_to_a_service_neither() {
    let empty = ["ZOO_MY_ID", "ZOO_SERVERS", "ZOO_TICK_TIME", "ZOO_CFG_EXTRA"].map(|name| (name, " "));
    let config = configured("", &[&[DIR, ("ZOO_PORT", "tcp://10.0.0.1:2181")], &empty[..]].concat());
    assert_eq!(config.expect("possible").client_addr.port, 2181);
}

#[test]
fn a_wrong_variable_is_named_with_what_to_do() {
    let table = [
        (("ZOO_MY_ID", "zoo1"), "read the variable ZOO_MY_ID: `zoo1` is not a number, 0 or more"),
        (("ZOO_MY_ID", "-1"), "read the variable ZOO_MY_ID: `-1` is not a number, 0 or more"),
        (
            ("ZOO_TICK_TIME", "2s"),
            "read the variable ZOO_TICK_TIME: `2s`: a number of milliseconds is wanted",
        ),
        (("ZOO_TICK_TIME", "1"), "accept ZOO_TICK_TIME of 1 ms: choose one from 10 ms to 60000 ms"),
        (("ZOO_CFG_EXTRA", "snapCount=1"), "accept ZOO_CFG_EXTRA's snapCount of 1: choose one from 2 "),
        (("ZOO_CFG_EXTRA", "snapCount"), "read the variable ZOO_CFG_EXTRA: `snapCount`: key=value is wanted"),
        (("ZOO_4LW_COMMANDS_WHITELIST", "all"), "`all` in ZOO_4LW_COMMANDS_WHITELIST: list words of four"),
        (
            ("ZOO_SERVERS", "zoo1:2888:3888"),
            "read the variable ZOO_SERVERS: `zoo1:2888:3888` is not server.N=HOST:QUORUMPORT:ELECTIONPORT",
        ),
        (
            ("ZOO_SERVERS", "server.2=zoo2:2888"),
            "read the variable ZOO_SERVERS: `zoo2:2888` is not HOST:QUORUMPORT:ELECTIONPORT",
        ),
        (
            ("ZOO_SERVERS", "server.2=a:1:2 server.2=b:1:2"),
            "read the variable ZOO_SERVERS: two lines for server 2: remove one",
        ),
        (
            ("ZOO_SERVERS", "server.1=a:1:2 server.3=b:1:2"),
            "accept member 2 in an ensemble without it: add a line for server 2 or correct the id (the \
             environment sets ZOO_MY_ID, ZOO_SERVERS)",
        ),
    ];
    for (wrong, message) in table {
        let mut variables = vec![DIR, ID, SERVERS];
        variables.retain(|(name, _)| *name != wrong.0);
        variables.push(wrong);
        let error = configured("", &variables).expect_err(message);
        assert!(error.contains(message), "{wrong:?}: {error}");
    }
    let error = configured("", &[DIR, SERVERS]).expect_err("no number");
    assert!(error.contains("the variable ZOO_MY_ID"), "{error}");
}

#[test]
fn a_variable_that_is_no_text_is_named() {
    let value = OsStr::from_bytes(b"\xff").to_owned();
    let error = Environment::read([("ZOO_SERVERS".into(), value)]).expect_err("no text");
    assert_eq!(error.to_string(), "read the variable ZOO_SERVERS: text in UTF-8 is wanted");
}

#[test]
fn the_data_of_another_member_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("myid"), "1\n").expect("written");
    let dir = ("ZOO_DATA_DIR", dir.path().to_str().expect("text"));
    let error = configured("", &[dir, ID, SERVERS]).expect_err("two numbers");
    assert!(error.starts_with("accept ZOO_MY_ID=2 for the data of member 1 (see "), "{error}");
    assert_eq!(configured("", &[dir, SERVERS]).expect("possible").id, ServerId(1));
    assert_eq!(configured("", &[dir, SERVERS, ("ZOO_MY_ID", "1")]).expect("possible").id, ServerId(1));
}
