//! Where the members run, as an interface: the same faults and the same workload on every kind.
//!
//! A cluster starts members, stops, pauses and kills them, cuts their network and tells what it sees. It does
//! not choose targets, keep time or judge. It says which faults it can do and why not the others, because a
//! fault that can't be done is refused before anything starts and never skipped in silence.
//!
//! There is the cluster of child processes and, behind a feature, the one of containers. Everything that the
//! run, the nemesis and the load know of a cluster is in [`Cluster`].

pub mod containers;
#[cfg(feature = "docker")]
pub mod docker;
mod every;
pub mod ports;
pub mod process;
pub mod settings;
pub mod sweep;

pub(crate) mod member;
mod observer;
pub(crate) mod process_clock;
mod voice;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use harness_core::condition::LinkCondition;
pub use harness_core::cut::{Cut, Severing};
use harness_core::fault::Server;
pub use harness_systems::PortState;
use harness_systems::{Alongside, Order, Ran};
use runs::member::MemberId;
use runs::results::Reach;
use serde_json::Value;

use self::containers::Containers;
pub use self::every::every;
use crate::events::EventLog;
use crate::links::protocol::{Count, Delayed, Pair, ProbeRound};

/// What a cluster's methods give: boxed, so that a cluster can be chosen while running.
pub type Async<'a, T> = Pin<Box<dyn Future<Output = anyhow::Result<T>> + Send + 'a>>;

/// A member's wall clock, read by the member itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// How far it is off, in nanoseconds, against an unpatched reading of the same moment.
    pub offset_ns: i64,
    /// The width of that moment.
    pub error_ns: u64,
}

/// The state of a member's process as its operating system tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs or waits for something.
    Running,
    /// It is stopped by a signal.
    Stopped,
    /// Everything in its cgroup is frozen; what says so.
    Frozen(String),
    /// It was killed and is on its way out: its threads and sockets may still be there.
    Dying,
    /// It is gone; how it ended.
    Gone(String),
}

impl fmt::Display for ProcessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Stopped => f.write_str("stopped (state T)"),
            Self::Frozen(seen) => write!(f, "frozen ({seen})"),
            Self::Dying => f.write_str("dying"),
            Self::Gone(how) => write!(f, "gone ({how})"),
        }
    }
}

/// Bytes between members, by direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// One per ordered pair.
    pub counts: Vec<Count>,
}

impl Traffic {
    /// Bytes that got through in these directions since the start.
    pub fn forwarded(&self, cut: &Cut) -> u64 {
        self.of(cut).map(|count| count.forwarded).sum()
    }

    /// Bytes and connections that wait in these directions.
    pub fn waiting(&self, cut: &Cut) -> (u64, u64) {
        self.of(cut)
            .fold((0, 0), |(bytes, dials), count| (bytes + count.waiting, dials + count.dials_waiting))
    }

    /// Packets that were not let through in these directions since the start, where packets are counted, and
    /// otherwise connections that were reset.
    pub fn refused(&self, cut: &Cut) -> u64 {
        self.of(cut).map(|count| count.refused).sum()
    }

    /// The same beginning, with what got through counted up to a later moment: what was under way when a cut
    /// came got through before it.
    pub fn settled_by(mut self, later: Self) -> Self {
        for count in later.counts {
            match self.counts.iter_mut().find(|known| known.pair == count.pair) {
                Some(known) => known.forwarded = count.forwarded,
                None => self.counts.push(count),
            }
        }
        self
    }

    fn of<'a>(&'a self, cut: &'a Cut) -> impl Iterator<Item = &'a Count> {
        self.counts.iter().filter(|count| cut.severs(count.pair))
    }
}

/// A probe that takes longer than this came late; calm ones take well under a millisecond.
const LATE_US: u64 = 50_000;

/// Who reaches whom, as the report draws it: rows speak, columns hear, in the order of `members`.
pub fn matrix(round: &ProbeRound, members: &[MemberId]) -> Vec<Vec<Reach>> {
    let reach = |from: &MemberId, to: &MemberId| {
        if from == to {
            return Reach::Reached;
        }
        let pair = Pair::new(*from, *to);
        match round.probes.iter().find(|probe| probe.pair == pair).map(|probe| probe.took_us) {
            Some(Some(took)) if took > LATE_US => Reach::Late,
            Some(Some(_)) => Reach::Reached,
            Some(None) if round.control_us.is_some() => Reach::NotReached,
            Some(None) | None => Reach::Unknown,
        }
    };
    members.iter().map(|from| members.iter().map(|to| reach(from, to)).collect()).collect()
}

/// A place where members run.
pub trait Cluster: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Whether processes of members can be stopped and go on; if not, why.
    fn can_pause(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether wall clocks of members can be shifted; if not, why.
    fn can_shift_clocks(&self) -> Result<(), String>;

    /// Whether another kind of server can take a member's place; if not, why.
    fn can_replace(&self) -> Result<(), String> {
        Err("its members are of one kind".to_owned())
    }

    /// The members, ascending: voters first, observers behind them.
    fn members(&self) -> &[MemberId];

    /// Those of them that vote.
    fn voters(&self) -> &[MemberId];

    /// Where clients find a member.
    fn client_address(&self, member: MemberId) -> SocketAddr;

    /// What the members say, and what became of their processes.
    fn events(&self) -> &EventLog;

    /// Starts the network and every member, and waits until all serve.
    fn start(&self) -> Async<'_, ()>;

    /// Kills these at once. Done when the signals are sent, as with all signals: whether they work is to be
    /// proven, not assumed.
    fn kill<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()>;

    /// Starts these again, first losing what was not synced if asked to.
    fn restart<'a>(&'a self, members: &'a [MemberId], lose_unsynced: bool) -> Async<'a, ()>;

    /// Asks these to end, as an operator does. Done when they are asked.
    fn retire<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()> {
        let _ = members;
        Box::pin(async { anyhow::bail!("the {} cluster has one kind of server", self.name()) })
    }

    /// Starts these again, when they have ended, as this kind of server on the data that they left.
    fn restart_as<'a>(&'a self, members: &'a [MemberId], server: Server) -> Async<'a, ()> {
        let _ = (members, server);
        Box::pin(async { anyhow::bail!("the {} cluster has one kind of server", self.name()) })
    }

    /// What each member begins as; nobody is named where all are of one kind that nothing replaces.
    fn servers(&self) -> BTreeMap<MemberId, Server> {
        BTreeMap::new()
    }

    /// Who answers at a member's client port by its own word, and its version; none when nobody serves there.
    fn who_answers(&self, member: MemberId) -> Async<'_, Option<(Server, String)>> {
        let _ = member;
        Box::pin(async { anyhow::bail!("the {} cluster has one kind of server", self.name()) })
    }

    /// Stops the processes of these.
    fn pause<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()>;

    /// Lets the processes of these go on.
    fn resume<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()>;

    /// Whether what members say can be held back for a while; if not, why.
    fn can_delay(&self) -> Result<(), String> {
        Err("what members say is let through or dropped, and not held back".to_owned())
    }

    /// Makes directions between members what is said of each, in the name of a fault. Done when it is in
    /// force everywhere; gives the traffic of the moment after.
    fn link<'a>(&'a self, fault: &'a str, links: &'a [(Pair, LinkCondition)]) -> Async<'a, Traffic>;

    /// Takes away what one fault did to directions; what others did stays. Gives the traffic of the moment
    /// before.
    fn heal<'a>(&'a self, fault: &'a str) -> Async<'a, Traffic>;

    /// The traffic up to now; what was under way when the last cut came is counted by then.
    fn traffic(&self) -> Async<'_, Traffic>;

    /// How members talk past what carries their words in these directions, where that is not all that joins
    /// them: in words for a person. None where no such way was found.
    fn way_round<'a>(&'a self, pairs: &'a [Pair]) -> Async<'a, Option<String>> {
        let _ = pairs;
        Box::pin(async { Ok(None) })
    }

    /// How long the newest of what members said since the last question was on its way, and by how much it is
    /// held back, by direction.
    fn delays(&self) -> Async<'_, Vec<Delayed>> {
        Box::pin(async { anyhow::bail!("the {} cluster does not measure that", self.name()) })
    }

    /// Who reaches whom, one way at a time. What members say may take so much longer than usual.
    fn probe(&self, slower: Duration) -> Async<'_, ProbeRound>;

    /// Whether agents beside the members have this device, and it works; if not, why.
    fn can_use(&self, device: &str) -> Result<(), String> {
        Err(format!("members have no agent beside them, and so no {device}"))
    }

    /// Has the device of a member's agent do something, in the device's own words.
    fn device<'a>(&'a self, member: MemberId, device: &'a str, order: Value) -> Async<'a, Value> {
        let _ = (member, order);
        Box::pin(async move { anyhow::bail!("the {} cluster has no {device}", self.name()) })
    }

    /// The state of a member's process.
    fn process_state(&self, member: MemberId) -> Async<'_, ProcessState>;

    /// Shifts the wall clocks of these by `offset_ns` against the true one; zero restores them. A member that
    /// is started again while it is shifted is shifted again as soon as it runs; the gap is noted as
    /// [`Event::Clock`](runs::events::Event::Clock).
    fn shift_clock<'a>(&'a self, members: &'a [MemberId], offset_ns: i64) -> Async<'a, ()>;

    /// Lets a member read its own wall clock.
    fn read_clock(&self, member: MemberId) -> Async<'_, ClockReading>;

    /// Runs a command of a fault of the user's own for a member.
    fn run_own(&self, member: MemberId, order: Order) -> Async<'_, Ran>;

    /// Asks a member's client port whether it is well.
    fn ask(&self, member: MemberId) -> Async<'_, PortState>;

    /// The containers in which test commands run; none where members are no containers, or no test commands
    /// were asked for.
    fn containers(&self) -> Option<Arc<dyn Containers>> {
        None
    }

    /// What starts processes of a client in a container beside the members; none where there is none for it.
    fn alongside(&self) -> Option<Arc<dyn Alongside>> {
        None
    }

    /// Completes when the cluster's own machinery broke, with the reason. That is a failure of the harness
    /// and never a fault.
    fn broken(&self) -> Async<'_, String>;

    /// Ends everything that was started.
    fn stop(&self) -> Async<'_, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::protocol::Probed;

    fn probed(from: u64, to: u64, took_us: Option<u64>) -> Probed {
        Probed { pair: Pair::from((from, to)), took_us }
    }

    #[test]
    fn a_probe_that_did_not_arrive_counts_only_beside_a_control_that_did() {
        let members = [MemberId(1), MemberId(2)];
        let probes = vec![probed(1, 2, None), probed(2, 1, Some(90))];
        let with = ProbeRound { probes: probes.clone(), control_us: Some(80) };
        assert_eq!(
            matrix(&with, &members),
            [[Reach::Reached, Reach::NotReached], [Reach::Reached, Reach::Reached]]
        );
        let without = ProbeRound { probes, control_us: None };
        assert_eq!(matrix(&without, &members)[0][1], Reach::Unknown);
    }

    #[test]
    fn only_traffic_in_severed_directions_counts() {
        let groups = vec![vec![MemberId(1)], vec![MemberId(2), MemberId(3)]];
        let cut = Cut::between(&groups, Severing::Silence);
        assert_eq!(cut.pairs, [(1, 2), (1, 3), (2, 1), (3, 1)].map(Pair::from));
        let count = |from, to| Count {
            pair: Pair::from((from, to)),
            forwarded: 5,
            waiting: 2,
            dials_waiting: 1,
            refused: 3,
        };
        let traffic = Traffic { counts: vec![count(1, 2), count(2, 1), count(2, 3)] };
        assert_eq!(traffic.forwarded(&cut), 10);
        assert_eq!(traffic.waiting(&cut), (4, 2));
        assert_eq!(traffic.refused(&cut), 6);
    }
}
