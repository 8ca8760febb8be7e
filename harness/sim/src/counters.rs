//! What happened in a world, counted: too little of it is no evidence.

use std::fmt;
use std::ops::AddAssign;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts of what happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Every count with its name, those that are zero too.
            pub fn rows(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }

        impl fmt::Display for Counters {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(if self.$name > 0 {
                    write!(f, "{}={} ", stringify!($name), self.$name)?;
                })*
                Ok(())
            }
        }
    };
}

counters! {
    /// Milliseconds of virtual time.
    virtual_ms,
    /// Inputs given to members.
    steps,
    /// Epochs that were established.
    elections,
    /// Entries that were committed.
    commits,
    /// Learners synchronized by DIFF.
    diff,
    /// Learners synchronized by TRUNC.
    trunc,
    /// Learners synchronized by SNAP.
    snap,
    /// Processes that ended.
    crashes,
    /// Crashes that lost what was not synced.
    power_losses,
    /// Crashes between two effects of one step.
    mid_step_crashes,
    /// Crashes in the middle of a store operation.
    mid_store_crashes,
    /// Crashes in the middle of writing a snapshot.
    mid_snapshot_crashes,
    /// Processes that recovered from their disk.
    restarts,
    /// Torn tails that recovery cut.
    torn_tails,
    /// Bad snapshots that recovery skipped.
    skipped_snapshots,
    /// Logs truncated.
    truncations,
    /// Trees installed.
    installs,
    /// Snapshots written.
    snapshots,
    /// Pauses.
    pauses,
    /// Partitions.
    partitions,
    /// Connections that were reset.
    resets,
    /// Disks made slow.
    slow_disks,
    /// Wall clocks set.
    wall_jumps,
    /// Connections taken from clients.
    client_cuts,
    /// Votes delivered.
    votes,
    /// Packets delivered.
    packets,
    /// Sessions that were opened.
    sessions,
    /// Sessions that went on at another member or connection.
    resumed,
    /// Sessions that were refused as expired.
    expired,
    /// Operations of the register workload that ended well.
    ok,
    /// Operations that did not happen.
    failed,
    /// Operations whose fate is unknown.
    unknown,
    /// Ephemeral and sequential nodes made.
    visits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up_and_print_what_is_not_zero() {
        let mut sum = Counters { commits: 2, ..Counters::default() };
        sum += Counters { commits: 3, diff: 1, ..Counters::default() };
        assert_eq!(sum.to_string(), "commits=5 diff=1 ");
    }
}
