//! Files as operators write them: what is read, warned of and refused.

use super::*;

#[test]
fn zookeepers_keys_are_read() {
    let cfg: ZooCfg = "\
        # a comment\n\
        tickTime = 2000\n\
        initLimit=10\r\n\
        syncLimit=5\n\
        dataDir=/var/lib/zookeeper\n\
        clientPort=2181\n\
        clientPortAddress=127.0.0.1\n\
        server.1=zoo1:2888:3888\n\
        server.2=zoo2:2888:3888:participant;2181\n\
        maxClientCnxns=0\n\
        snapCount=1000\n\
        4lw.commands.whitelist=ruok, srvr,\n\
        autopurge.snapRetainCount=3\n\
        autopurge.purgeInterval=1\n\
        \n\
        peerTimeout=1s\n"
        .parse()
        .expect("a sound file");
    assert_eq!(cfg.tick_time, Some(Duration::from_secs(2)));
    assert_eq!((cfg.init_limit, cfg.sync_limit), (Some(10), Some(5)));
    assert_eq!(cfg.client_port_address.as_deref(), Some("127.0.0.1"));
    assert_eq!(cfg.servers.len(), 2);
    assert_eq!(cfg.words, Some(vec!["ruok".to_owned(), "srvr".to_owned()]));
    assert_eq!(cfg.peer_timeout, Some(Duration::from_secs(1)));
    assert_eq!(cfg.warnings, Vec::<String>::new());
}

#[test]
fn unknown_keys_are_warned_about_with_what_may_be_meant_and_idle_ones_with_the_reason() {
    let cfg: ZooCfg = "tickTimes=1\nforceSync=no\nelectionAlg=3\nwhat.ever=1".parse().expect("warnings only");
    assert_eq!(
        cfg.warnings,
        [
            "the key tickTimes is not known and was skipped: is tickTime meant?",
            "the key forceSync has no effect here: everything is on disk before it is acknowledged, always",
            "the key what.ever is not known and was skipped: check its spelling",
        ]
    );
}

#[test]
fn wrong_values_are_refused_with_what_was_wanted() {
    let table = [
        ("tickTime=fast", "read tickTime=fast: a number of milliseconds is wanted"),
        ("clientPort=70000", "read clientPort=70000: a port number is wanted"),
        ("maxSessionTimeout=x", "read maxSessionTimeout=x: a number of milliseconds is wanted"),
        ("admin.enableServer=maybe", "read admin.enableServer=maybe: true or false is wanted"),
        (
            "connection_throttle_drop_increase=7",
            "read connection_throttle_drop_increase=7: a number from 0 to 1 is wanted",
        ),
        ("peerTimeout=5m", "read peerTimeout=5m: a duration such as 250, 250ms or 1s is wanted"),
        ("peerTimeout", "read peerTimeout=: a duration such as 250, 250ms or 1s is wanted"),
        ("server.zero=a:1:2", "read the key server.zero: a number must follow the dot, 0 or more"),
        ("server.1=a:1:2\nserver.01=a:1:2", "accept two lines for server 1: remove one"),
        (
            "tickTime=\\u20",
            "read line 1, `tickTime=\\u20`: four hexadecimal digits are wanted behind \\u, and a backslash \
             is written \\\\",
        ),
        ("dataDir=", "read dataDir=: a path is wanted"),
    ];
    for (text, message) in table {
        let error = text.parse::<ZooCfg>().expect_err(text);
        assert_eq!(plain(&error), message, "{text}");
    }
}

/// Without the quotes that mark values in messages.
fn plain(error: &ConfigError) -> String {
    error.to_string()
}

#[test]
fn what_stands_there_twice_counts_as_it_stands_there_last() {
    let cfg: ZooCfg = "tickTime=1\nserver.0=a:1:2\ntickTime 2\nserver.0: b:1:2".parse().expect("sound");
    assert_eq!(cfg.tick_time, Some(Duration::from_millis(2)));
    assert_eq!(cfg.servers[&ServerId(0)].quorum.host, "b");
    assert_eq!(cfg.warnings.len(), 2, "{:?}", cfg.warnings);
}

#[test]
fn no_key_that_is_misread_lets_an_empty_member_start_elsewhere() {
    let cfg: ZooCfg = "\\u0064ata\\\n  Dir: /d\\u00e9".parse().expect("sound");
    assert_eq!(cfg.data_dir.as_deref(), Some(std::path::Path::new("/d\u{e9}")));
    for text in ["data.dir=/d", "dataLogdir2=/d", "dynamicConfFile=/d", "dataDir=/d\u{e9}", "dataLogDir"] {
        assert!(text.parse::<ZooCfg>().is_err(), "{text}");
    }
}

#[test]
fn a_key_is_the_same_in_every_spelling() {
    for text in ["snapCount=7", "zookeeper.snapCount=7"] {
        assert_eq!(text.parse::<ZooCfg>().expect(text).snap_count, Some(7), "{text}");
    }
    for text in
        ["connectionMaxTokens=7", "connection_throttle_tokens=7", "zookeeper.connection_throttle_tokens=7"]
    {
        assert_eq!(text.parse::<ZooCfg>().expect(text).throttle_tokens, Some(7), "{text}");
    }
}

#[test]
fn what_is_not_there_is_refused_with_the_reason() {
    let table = [
        ("admin.forceHttps=true", "accept admin.forceHttps=true: operators' ports have no TLS"),
        ("ssl.crl=true", "no lists of revoked certificates"),
        ("zookeeper.ssl.context.supplier.class=a.B", "there are no Java classes"),
        ("electionAlg=0", "fast leader election (3) is the only one"),
        ("group.1=1:2", "every voter has the same weight"),
        ("quorum.auth.enableSasl=true", "members do not authenticate"),
    ];
    for (text, message) in table {
        let error = text.parse::<ZooCfg>().expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn each_key_that_is_read_is_told_to_be_obeyed() {
    let told: Vec<&str> =
        keys::OBEYED.iter().map(|(name, _)| *name).filter(|name| !name.ends_with(".N")).collect();
    let (stores, others) = crate::tls::KEYS;
    let keys: Vec<&str> =
        [ZooCfg::KEYS, crate::rules::KEYS, crate::config::SECURITY_KEYS, crate::sasl::KEYS, others].concat();
    let mut read: Vec<String> = keys.into_iter().map(str::to_owned).collect();
    read.extend(stores.iter().flat_map(|name| [format!("ssl.{name}"), format!("ssl.quorum.{name}")]));
    read.sort_unstable();
    assert_eq!(told, read);
}

#[test]
fn of_javas_flags_only_zookeepers_mean_anything() {
    let mut cfg = ZooCfg::default();
    let flags = [
        ("zookeeper.maxCnxns", "5"),
        ("jute.maxbuffer", "2048"),
        ("java.awt.headless", "true"),
        ("zookeeper.log.dir", "/tmp"),
        ("zookeeper.root.logger", "INFO,CONSOLE"),
    ];
    for (name, value) in flags {
        cfg.set_property(name, value).expect(name);
    }
    assert_eq!((cfg.max_cnxns, cfg.jute_max_buffer), (Some(5), Some(2048)));
    assert_eq!(cfg.warnings, Vec::<String>::new());
}
