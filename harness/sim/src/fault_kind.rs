//! The kinds of faults that the nemesis chooses from.
//!
//! What a nemesis of a run does as well has that one's name here; the others are for a virtual world alone.

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $network:literal;)*) => {
        /// The kinds of faults that the nemesis chooses from.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultKind {
            $($(#[$doc])* $kind,)*
        }

        impl FaultKind {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// Its name in traces and lists.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// True when it holds links and touches nothing else.
            pub fn is_partition(self) -> bool {
                match self {
                    $(Self::$kind => $network,)*
                }
            }
        }
    };
}

kinds! {
    /// Any member's process ends and starts again later.
    KillOne = "kill-one", false;
    /// The leader's process ends and starts again later.
    KillLeader = "kill-leader", false;
    /// Several members end at once, often all.
    KillMany = "kill-many", false;
    /// A member ends at a chosen point of its way to an epoch.
    KillInPhase = "kill-in-phase", false;
    /// Any member stands still for a while.
    PauseOne = "pause-one", false;
    /// The leader stands still for a while.
    PauseLeader = "pause-leader", false;
    /// Two random sides do not reach each other.
    PartitionHalves = "partition-halves", true;
    /// The leader reaches nobody.
    PartitionLeader = "partition-leader", true;
    /// The leader stands still and reaches nobody, and goes on while it still reaches nobody: it does not know
    /// that it was deposed.
    DeposeLeader = "depose-leader", false;
    /// Any member reaches nobody.
    PartitionOne = "partition-one", true;
    /// Each member hears a majority, no two the same one.
    PartitionRing = "partition-ring", true;
    /// Two halves that reach each other through one member alone.
    PartitionBridge = "partition-bridge", true;
    /// The leader hears nobody, and everybody hears it.
    PartitionOnewayDeaf = "partition-oneway-deaf", true;
    /// Nobody hears the leader, and it hears everybody.
    PartitionOnewayMute = "partition-oneway-mute", true;
    /// A random set of directions between pairs carries nothing.
    PartitionRandom = "partition-random", true;
    /// Pairs lose sight of each other one after the other, and find each other again in another order.
    PartitionSwizzle = "partition-swizzle", true;
    /// Connections of a random pair break, what was in flight is lost.
    Reset = "reset", false;
    /// Any member's disk becomes slow.
    SlowDisk = "slow-disk", false;
    /// A synchronization of any member's disk fails; its process ends, as it must.
    FailSync = "fail-sync", false;
    /// Any member's disk is full for a while.
    FillDisk = "fill-disk", false;
    /// A bit of an old record or of a snapshot turns over while its member is down.
    RotDisk = "rot-disk", false;
    /// Any member's wall clock jumps.
    ClockBump = "clock-bump", false;
    /// Any member's wall clock runs fast or slow.
    ClockDrift = "clock-drift", false;
    /// Any member's monotonic clock jumps ahead, as on a machine that was suspended.
    Suspend = "suspend", false;
    /// Some clients lose their connections.
    CutClients = "cut-clients", false;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = FaultKind::ALL.into_iter().map(FaultKind::name).collect();
        assert_eq!(names.len(), FaultKind::ALL.len());
    }
}
