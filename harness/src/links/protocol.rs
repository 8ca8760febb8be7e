//! The lines between the harness and its links: one JSON object each way per line.
//!
//! Every command has a number and gets one answer with the same number, not always in order: a probe takes
//! its time and delays nothing. Any line renews the lease; [`Command::Renew`] does only that and is not
//! answered.

use std::net::SocketAddr;
use std::time::Duration;

use harness_core::condition::Delay;
pub use harness_core::cut::Pair;
use runs::member::MemberId;
use serde::{Deserialize, Serialize};

use super::rules::Rule;

/// A listener to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSpec {
    /// The pair whose first member dials here.
    pub pair: Pair,
    /// Where it dials.
    pub listen: SocketAddr,
    /// Where the second member listens.
    pub target: SocketAddr,
    /// What the first member's introduction names instead of its own address, where connections begin with
    /// one and are dialled back by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduces: Option<SocketAddr>,
}

/// A listener at which everybody dials one member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntranceSpec {
    /// Who may dial here.
    pub from: Vec<MemberId>,
    /// Whom they dial.
    pub to: MemberId,
    /// Where they dial.
    pub listen: SocketAddr,
    /// Where that member listens.
    pub target: SocketAddr,
}

impl EntranceSpec {
    /// The pairs whose first member may dial here.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.from.iter().map(|from| Pair::new(*from, self.to))
    }
}

/// What the harness asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "kebab-case")]
pub enum Command {
    /// Open the listeners. Asked once, first.
    Start {
        /// Those at which one member dials another.
        links: Vec<LinkSpec>,
        /// Those at which everybody dials a member.
        #[serde(default)]
        entrances: Vec<EntranceSpec>,
    },
    /// Put rules in force, all at the same moment.
    Set {
        /// Which.
        rules: Vec<(Pair, Rule)>,
    },
    /// Let everything through again.
    Heal,
    /// Tell who reaches whom.
    Probe {
        /// How long to wait for a probe once the control has arrived.
        patience_ms: u64,
    },
    /// Tell the counters.
    Counters,
    /// Tell how long what members said since the last such question was on its way, and by how much the rules
    /// hold it back.
    Delays,
    /// Nothing but the renewal of the lease; not answered.
    Renew,
    /// Heal and go.
    Stop,
}

/// A command with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its number.
    pub id: u64,
    /// What is asked.
    #[serde(flatten)]
    pub command: Command,
}

/// The counters of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Which direction.
    pub pair: Pair,
    /// Bytes handed on since the start.
    pub forwarded: u64,
    /// Bytes that wait.
    pub waiting: u64,
    /// Connections that wait to be made.
    pub dials_waiting: u64,
    /// Packets or connections that were refused since the start.
    #[serde(default)]
    pub refused: u64,
}

/// How late one direction is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delayed {
    /// Which direction.
    pub pair: Pair,
    /// How long the newest of what members said since the last question was on its way.
    pub took_us: Vec<u64>,
    /// By how much what carries it holds it back at this moment.
    pub latency_us: u64,
    /// By up to how much more.
    pub jitter_us: u64,
}

impl Delayed {
    /// By how much it is held back.
    pub fn by(&self) -> Delay {
        let [latency, jitter] = [self.latency_us, self.jitter_us].map(Duration::from_micros);
        Delay { latency, jitter }
    }
}

/// What became of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// The direction.
    pub pair: Pair,
    /// How long its token took; none when it did not arrive.
    pub took_us: Option<u64>,
}

/// What one round of probes showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeRound {
    /// One per direction.
    pub probes: Vec<Probed>,
    /// How long the control took; none when not even that arrived, and then the rest proves nothing.
    pub control_us: Option<u64>,
}

/// What a command led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Done; the counters of that moment.
    Done(Vec<Count>),
    /// The probes.
    Probed(ProbeRound),
    /// How long the newest of what members said was on its way, by direction.
    Delays(Vec<Delayed>),
    /// An address to listen on is taken.
    Busy(SocketAddr),
    /// Refused, with the reason.
    Refused(String),
}

/// A line from the links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the command.
    pub id: u64,
    /// What it led to.
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_flat_line_and_reads_back() {
        let request =
            Request { id: 7, command: Command::Set { rules: vec![(Pair::from((1, 2)), Rule::HOLD)] } };
        let line = serde_json::to_string(&request).expect("a line");
        assert_eq!(line, r#"{"id":7,"cmd":"set","rules":[[[1,2],{"mode":"hold","delay_ms":0}]]}"#);
        assert_eq!(serde_json::from_str::<Request>(&line).expect("reads"), request);
    }
}
