//! What the swarm of `harness sim` draws: nemeses of runs, and what only a virtual world can do.
//!
//! A swarm breaks whatever it comes upon, as often as it can, and is judged after every event, so it has a
//! hand of its own and no schedule, no proofs and no healing that is waited for. The kinds and their names
//! are the catalogue's.

use crate::condition::Quality;

use super::Nemesis;

/// Where a kind is from.
enum Entry {
    /// A nemesis of runs.
    Nemesis(Nemesis),
    /// One of the two things that a nemesis of runs does in turn.
    Half(Nemesis, &'static str, &'static str),
    /// Only a virtual world can do it.
    Virtual(&'static str, &'static str),
    /// Only a virtual world can do it, and it holds links and touches nothing else.
    VirtualCut(&'static str, &'static str),
}

macro_rules! swarm {
    ($($kind:ident = $entry:expr;)*) => {
        /// A kind of fault that the swarm of a virtual world draws.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each says what it is by `about`")]
        pub enum SwarmFault {
            $($kind,)*
        }

        impl SwarmFault {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($kind)),*].len()] = [$(Self::$kind),*];

            fn entry(self) -> Entry {
                match self {
                    $(Self::$kind => $entry,)*
                }
            }
        }
    };
}

use Entry::{Half, Virtual, VirtualCut};

// Worlds are drawn by the places of these: a new one comes last.
swarm! {
    KillOne = Entry::Nemesis(Nemesis::KILL_ONE);
    KillLeader = Entry::Nemesis(Nemesis::KILL_LEADER);
    KillMany = Virtual("kill-many", "several members end at once, often all");
    KillInPhase = Virtual("kill-in-phase", "a member ends at a chosen point of its way to an epoch");
    PauseOne = Entry::Nemesis(Nemesis::PAUSE_ONE);
    PauseLeader = Entry::Nemesis(Nemesis::PAUSE_LEADER);
    PartitionHalves = Entry::Nemesis(Nemesis::PARTITION_HALVES);
    PartitionLeader = Entry::Nemesis(Nemesis::PARTITION_LEADER);
    DeposeLeader = Virtual(
        "depose-leader",
        "the leader stands still and reaches nobody, and goes on while it still does: it does not know that \
            it was deposed"
    );
    PartitionOne = Entry::Nemesis(Nemesis::PARTITION_ONE);
    PartitionRing = Entry::Nemesis(Nemesis::PARTITION_RING);
    PartitionBridge = Entry::Nemesis(Nemesis::PARTITION_BRIDGE);
    PartitionOnewayDeaf = Half(
        Nemesis::PARTITION_ONEWAY,
        "partition-oneway-deaf",
        "the leader hears nobody, and everybody hears it"
    );
    PartitionOnewayMute = Half(
        Nemesis::PARTITION_ONEWAY,
        "partition-oneway-mute",
        "nobody hears the leader, and it hears everybody"
    );
    PartitionRandom = VirtualCut("partition-random", "a random set of directions between pairs carries \
        nothing");
    PartitionSwizzle = VirtualCut(
        "partition-swizzle",
        "pairs lose sight of each other one after the other, and find each other again in another order"
    );
    Reset = Virtual("reset", "connections of a random pair break, what was in flight is lost");
    SlowDisk = Virtual("slow-disk", "any member's disk becomes slow");
    FailSync = Virtual("fail-sync", "a synchronization of any member's disk fails; its process ends, as it \
        must");
    FillDisk = Virtual("fill-disk", "any member's disk is full for a while");
    RotDisk = Virtual(
        "rot-disk",
        "a bit of an old record or of a snapshot turns over while its member is down"
    );
    ClockBump = Entry::Nemesis(Nemesis::CLOCK_BUMP);
    ClockDrift = Virtual("clock-drift", "any member's wall clock runs fast or slow");
    Suspend = Virtual(
        "suspend",
        "any member's monotonic clock jumps ahead, as on a machine that was suspended"
    );
    CutClients = Virtual("cut-clients", "some clients lose their connections");
}

impl SwarmFault {
    /// Its name in traces and lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.entry() {
            Entry::Nemesis(nemesis) => nemesis.name(),
            Half(_, name, _) | Virtual(name, _) | VirtualCut(name, _) => name,
        }
    }

    /// What it does, in a line.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self.entry() {
            Entry::Nemesis(nemesis) => nemesis.about(),
            Half(_, _, about) | Virtual(_, about) | VirtualCut(_, about) => about,
        }
    }

    /// The nemesis that runs break members with in the same way; none where only a virtual world can.
    #[must_use]
    pub fn nemesis(self) -> Option<Nemesis> {
        match self.entry() {
            Entry::Nemesis(nemesis) | Half(nemesis, ..) => Some(nemesis),
            Virtual(..) | VirtualCut(..) => None,
        }
    }

    /// True when it holds links and touches nothing else.
    #[must_use]
    pub fn is_partition(self) -> bool {
        match self.entry() {
            Entry::Nemesis(nemesis) | Half(nemesis, ..) => {
                nemesis.needs().virtually.is_ok_and(|all| all == [Quality::Passage])
            }
            Virtual(..) => false,
            VirtualCut(..) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = SwarmFault::ALL.into_iter().map(SwarmFault::name).collect();
        assert_eq!(names.len(), SwarmFault::ALL.len());
        let runs: BTreeSet<&str> = Nemesis::ALL.iter().map(|nemesis| nemesis.name()).collect();
        let virtual_only = SwarmFault::ALL.into_iter().filter(|fault| fault.nemesis().is_none());
        assert!(virtual_only.clone().count() > 0);
        assert!(virtual_only.into_iter().all(|fault| !runs.contains(fault.name())));
    }
}
