//! The four-letter words: questions in plain text on the client port.
//!
//! The formats are ZooKeeper's, because monitoring reads them. `mntr` has keys of our own at its end: the last
//! applied zxid and the digest of the tree, by which an outsider can see whether members agree.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use node_core::{Role, Status};

/// What the member says when it has no leader.
const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

/// The protocol's version that is spoken, then our own. Clients parse the first part.
pub(crate) const VERSION: &str = concat!("3.8.0-node-", env!("CARGO_PKG_VERSION"));

/// Every word that has an answer here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// Whether the process lives.
    Ruok,
    /// A summary of the server.
    Srvr,
    /// The same, as ZooKeeper has two of it.
    Stat,
    /// Numbers for monitoring.
    Mntr,
    /// Whether it serves only reads.
    Isro,
}

impl Word {
    const ALL: [Self; 5] = [Self::Ruok, Self::Srvr, Self::Stat, Self::Mntr, Self::Isro];

    fn name(self) -> &'static str {
        match self {
            Self::Ruok => "ruok",
            Self::Srvr => "srvr",
            Self::Stat => "stat",
            Self::Mntr => "mntr",
            Self::Isro => "isro",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.name() == name)
    }
}

/// The words that the operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whitelist {
    allowed: BTreeSet<Word>,
}

impl Whitelist {
    /// From the key `4lw.commands.whitelist`, or whatever its name is to the operator; without it everything that only reads cheaply is allowed, which
    /// is more than ZooKeeper's `srvr`.
    ///
    /// # Errors
    /// When something in the list is not four letters long. A word that has no answer here is let pass: the
    /// list may be shared with members that know it.
    pub fn new(listed: Option<&[String]>, name_of_list: &str) -> Result<Self, String> {
        let Some(listed) = listed else { return Ok(Self { allowed: Word::ALL.into_iter().collect() }) };
        let mut allowed = BTreeSet::new();
        for name in listed {
            if name == "*" {
                allowed.extend(Word::ALL);
            } else if name.len() != 4 || !name.bytes().all(|byte| byte.is_ascii_lowercase()) {
                return Err(format!("`{name}` in {name_of_list}: list words of four letters"));
            } else {
                allowed.extend(Word::from_name(name));
            }
        }
        Ok(Self { allowed })
    }

    /// What the first four bytes of a connection ask, when they are letters.
    pub(crate) fn question(&self, first: [u8; 4]) -> Question {
        if !first.iter().all(u8::is_ascii_lowercase) {
            return Question::NotAWord;
        }
        let name = String::from_utf8_lossy(&first).into_owned();
        match Word::from_name(&name) {
            Some(word) if self.allowed.contains(&word) => Question::Ask(word),
            _ => Question::Refuse(format!("{name} is not executed because it is not in the whitelist.\n")),
        }
    }
}

/// What a connection begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The length of a frame, most likely.
    NotAWord,
    /// A word to answer.
    Ask(Word),
    /// A word with the reason why not.
    Refuse(String),
}

/// What the client port counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) connections: usize,
    pub(crate) answered: u64,
    pub(crate) latency_sum: Duration,
    pub(crate) latency_min: Option<Duration>,
    pub(crate) latency_max: Duration,
}

impl Traffic {
    pub(crate) fn answered_in(&mut self, latency: Duration) {
        self.answered += 1;
        self.latency_sum += latency;
        self.latency_min = Some(self.latency_min.map_or(latency, |min| min.min(latency)));
        self.latency_max = self.latency_max.max(latency);
    }

    fn latency_avg_ms(&self) -> f64 {
        if self.answered == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "an average for people")]
        let answered = self.answered as f64;
        self.latency_sum.as_secs_f64() * 1000.0 / answered
    }

    fn latency_min_ms(&self) -> u128 {
        self.latency_min.unwrap_or_default().as_millis()
    }
}

/// The answer to one word.
pub(crate) fn answer(word: Word, status: &Status, voters: usize, traffic: &Traffic) -> String {
    match word {
        Word::Ruok => "imok".to_owned(),
        Word::Srvr | Word::Stat | Word::Mntr if !status.established => NOT_SERVING.to_owned(),
        Word::Isro if !status.established => "null".to_owned(),
        Word::Isro => "rw".to_owned(),
        Word::Srvr | Word::Stat => srvr(status, voters, traffic),
        Word::Mntr => mntr(status, voters, traffic),
    }
}

fn mode(status: &Status, voters: usize) -> &'static str {
    match status.role {
        _ if voters == 1 => "standalone",
        Role::Leading => "leader",
        Role::Following(_) if status.observes => "observer",
        Role::Following(_) => "follower",
        Role::Looking => "looking",
    }
}

fn srvr(status: &Status, voters: usize, traffic: &Traffic) -> String {
    format!(
        "Zookeeper version: {VERSION}, built on unknown\n\
         Latency min/avg/max: {}/{:.4}/{}\n\
         Received: {}\n\
         Sent: {}\n\
         Connections: {}\n\
         Outstanding: {}\n\
         Zxid: {}\n\
         Mode: {}\n\
         Node count: {}\n",
        traffic.latency_min_ms(),
        traffic.latency_avg_ms(),
        traffic.latency_max.as_millis(),
        traffic.received,
        traffic.sent,
        traffic.connections,
        status.outstanding,
        status.last_applied,
        mode(status, voters),
        status.znodes,
    )
}

fn mntr(status: &Status, voters: usize, traffic: &Traffic) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &dyn std::fmt::Display| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "zk_{key}\t{value}");
    };
    line("version", &format_args!("{VERSION}, built on unknown"));
    line("server_state", &mode(status, voters));
    line("avg_latency", &format_args!("{:.4}", traffic.latency_avg_ms()));
    line("max_latency", &traffic.latency_max.as_millis());
    line("min_latency", &traffic.latency_min_ms());
    line("packets_received", &traffic.received);
    line("packets_sent", &traffic.sent);
    line("num_alive_connections", &traffic.connections);
    line("outstanding_requests", &status.outstanding);
    line("znode_count", &status.znodes);
    line("ephemerals_count", &status.ephemerals);
    line("global_sessions", &status.sessions);
    line("approximate_data_size", &status.data_size);
    line("quorum_size", &voters);
    if status.role == Role::Leading {
        line("learners", &status.synced_followers);
        line("synced_followers", &status.synced_followers);
    }
    line("current_epoch", &status.current_epoch);
    line("last_logged_zxid", &status.last_logged);
    line("last_applied_zxid", &status.last_applied);
    line("tree_digest", &format_args!("{:#018x}", status.digest));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::Phase;
    use node_wire::ids::{Epoch, ServerId, Zxid};

    fn status() -> Status {
        Status {
            role: Role::Following(ServerId(3)),
            observes: false,
            phase: Phase::Broadcast,
            established: true,
            current_epoch: Epoch(2),
            accepted_epoch: Epoch(2),
            last_logged: Zxid(0x2_0000_0005),
            last_applied: Zxid(0x2_0000_0004),
            digest: -1,
            znodes: 7,
            sessions: 2,
            ephemerals: 1,
            clients: 2,
            outstanding: 1,
            synced_followers: 0,
            data_size: 100,
            watches: 0,
        }
    }

    #[test]
    fn only_lower_case_letters_are_a_word() {
        let words = Whitelist::new(None, "the list").expect("the default");
        assert_eq!(words.question(*b"ruok"), Question::Ask(Word::Ruok));
        assert_eq!(words.question([0, 0, 0, 45]), Question::NotAWord);
        assert_eq!(words.question(*b"GET "), Question::NotAWord);
        assert!(matches!(words.question(*b"kill"), Question::Refuse(_)));
    }

    #[test]
    fn the_whitelist_decides() {
        let listed = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            Whitelist::new(Some(&names), "the list")
        };
        let words = listed(&["srvr", "dump"]).expect("words");
        assert_eq!(words.question(*b"srvr"), Question::Ask(Word::Srvr));
        assert!(matches!(words.question(*b"ruok"), Question::Refuse(_)));
        assert_eq!(listed(&["*"]), Whitelist::new(None, "the list"));
        assert!(listed(&["server"]).is_err());
    }

    #[test]
    fn srvr_reads_as_zookeepers() {
        let mut traffic = Traffic { received: 3, sent: 2, connections: 1, ..Traffic::default() };
        traffic.answered_in(Duration::from_millis(2));
        traffic.answered_in(Duration::from_millis(5));
        assert_eq!(
            answer(Word::Srvr, &status(), 3, &traffic),
            format!(
                "Zookeeper version: {VERSION}, built on unknown\nLatency min/avg/max: 2/3.5000/5\nReceived: 3\n\
                 Sent: 2\nConnections: 1\nOutstanding: 1\nZxid: 0x200000004\nMode: follower\nNode count: 7\n"
            )
        );
    }

    #[test]
    fn mntr_has_a_tab_in_every_line() {
        let text = answer(Word::Mntr, &status(), 3, &Traffic::default());
        assert!(
            text.lines().all(|line| line.starts_with("zk_") && line.matches('\t').count() == 1),
            "{text}"
        );
        assert!(text.contains("zk_last_applied_zxid\t0x200000004\n"), "{text}");
        assert!(text.contains("zk_tree_digest\t0xffffffffffffffff\n"), "{text}");
    }

    #[test]
    fn a_member_without_a_leader_says_so() {
        let looking = Status { established: false, role: Role::Looking, ..status() };
        for word in [Word::Srvr, Word::Stat, Word::Mntr] {
            assert_eq!(answer(word, &looking, 3, &Traffic::default()), NOT_SERVING);
        }
        assert_eq!(answer(Word::Ruok, &looking, 3, &Traffic::default()), "imok");
    }
}
