//! What a member of Apache ZooKeeper is told: its zoo.cfg, its flags for Java, where its log goes.
//!
//! The file lies in the member's folder and stays with the run. Everybody else's server line names a link and
//! not the member itself, so no two members have the same file; with dynamic reconfiguration off, as it is by
//! default, none takes over another's. Time-outs follow from one tick: a member gives another up after
//! [`SYNC_LIMIT`] of them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use runs::clock::whole_milliseconds;
use runs::member::MemberId;

/// Ticks after which a silent member is given up.
pub const SYNC_LIMIT: u32 = 2;
/// Ticks in which a learner must have taken over its leader's history.
pub const INIT_LIMIT: u32 = 20;
/// Memory for each member's objects: several share a machine.
pub const HEAP: &str = "-Xmx256m";

/// What a member is told of another, or of itself.
#[derive(Clone, Copy, Debug)]
pub struct ServerLine {
    /// Which.
    pub member: MemberId,
    /// Its port for learners.
    pub quorum: SocketAddr,
    /// Its port for votes.
    pub election: SocketAddr,
    /// Whether it observes.
    pub observes: bool,
}

/// A member's configuration.
#[derive(Clone, Copy, Debug)]
pub struct ZooCfg<'a> {
    /// Its data directory.
    pub data: &'a Path,
    /// Where clients connect.
    pub client: SocketAddr,
    /// Every member with the ports where it is dialled by this one; its own are those on which it listens.
    pub servers: &'a [ServerLine],
    /// Whether it observes.
    pub observes: bool,
    /// The tick.
    pub tick: Duration,
    /// The shortest and the longest session that is granted.
    pub sessions: (Duration, Duration),
}

impl ZooCfg<'_> {
    /// The file.
    pub fn text(&self) -> String {
        let (shortest, longest) = self.sessions;
        let mut text = format!(
            "dataDir={}\nclientPortAddress={}\nclientPort={}\ntickTime={}\ninitLimit={INIT_LIMIT}\n\
             syncLimit={SYNC_LIMIT}\nminSessionTimeout={}\nmaxSessionTimeout={}\n",
            self.data.display(),
            self.client.ip(),
            self.client.port(),
            whole_milliseconds(self.tick),
            whole_milliseconds(shortest),
            whole_milliseconds(longest),
        );
        // All clients of a run come from one address, and they crowd together when members are down.
        text.push_str("maxClientCnxns=0\n4lw.commands.whitelist=*\nadmin.enableServer=false\n");
        text.push_str("standaloneEnabled=false\n");
        if self.observes {
            text.push_str("peerType=observer\n");
        }
        for ServerLine { member, quorum, election, observes } in self.servers {
            let role = if *observes { "observer" } else { "participant" };
            // Writing to a string can't fail.
            let _ = writeln!(
                text,
                "server.{}={}:{}:{}:{role}",
                member.0,
                quorum.ip(),
                quorum.port(),
                election.port()
            );
        }
        text
    }
}

/// Java's flags. What it logs goes to standard output, where the harness stamps it; nothing is left in shared
/// folders.
pub fn java_flags(folder: &Path) -> Vec<String> {
    let logger = |key: &str, value: &str| format!("-Dorg.slf4j.simpleLogger.{key}={value}");
    vec![
        HEAP.to_owned(),
        "-XX:+ExitOnOutOfMemoryError".to_owned(),
        "-XX:-UsePerfData".to_owned(),
        format!("-XX:ErrorFile={}", folder.join("hs_err.log").display()),
        "-Dzookeeper.jmx.log4j.disable=true".to_owned(),
        logger("logFile", "System.out"),
        logger("showDateTime", "true"),
        logger("dateTimeFormat", "yyyy-MM-dd'T'HH:mm:ss.SSS"),
        // Every question of the harness would be a line.
        logger("log.org.apache.zookeeper.server.NIOServerCnxn", "warn"),
        format!("-Dlogback.configurationFile={}", folder.join(LOGBACK_FILE).display()),
    ]
}

/// The name of [`LOGBACK`] in the member's folder.
pub const LOGBACK_FILE: &str = "logback.xml";

/// The same for builds that log by logback, as Apache's own binaries do.
pub const LOGBACK: &str = "<configuration>
  <appender name=\"OUT\" class=\"ch.qos.logback.core.ConsoleAppender\">
    <encoder><pattern>%d{ISO8601} [%thread] %p %c - %m%n</pattern></encoder>
  </appender>
  <logger name=\"org.apache.zookeeper.server.NIOServerCnxn\" level=\"WARN\"/>
  <root level=\"INFO\"><appender-ref ref=\"OUT\"/></root>
</configuration>
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_listens_on_its_own_ports_and_dials_links() {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let line = |id, port| ServerLine {
            member: MemberId(id),
            quorum: at(port),
            election: at(port + 1),
            observes: id == 1,
        };
        let cfg = ZooCfg {
            data: Path::new("/run/nodes/1/data"),
            client: at(20_001),
            servers: &[line(1, 20_002), line(2, 20_010)],
            observes: true,
            tick: Duration::from_millis(500),
            sessions: (Duration::from_secs(4), Duration::from_secs(40)),
        };
        let text = cfg.text();
        for line in [
            "dataDir=/run/nodes/1/data",
            "clientPort=20001",
            "clientPortAddress=127.0.0.1",
            "tickTime=500",
            "initLimit=20",
            "syncLimit=2",
            "minSessionTimeout=4000",
            "maxSessionTimeout=40000",
            "peerType=observer",
            "server.1=127.0.0.1:20002:20003:observer",
            "server.2=127.0.0.1:20010:20011:participant",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
