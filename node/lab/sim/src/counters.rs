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
    /// Steps that took time.
    long_steps,
    /// PINGs that somebody said for a member at such a step.
    spoken_for,
    /// Epochs that were established.
    elections,
    /// What watchers asked and were answered.
    asks,
    /// Events of watches that clients were told.
    events,
    /// Changes of several nodes at once, those that were refused too.
    multis,
    /// Requests of probers that were answered.
    probes,
    /// Those of them that were refused.
    refused_probes,
    /// Times that probers asked something, often several at once.
    batches,
    /// Times that probers were rude: wrong passwords, requests before a session, hanging up on what is under
    /// way.
    rude,
    /// Writes of sessions that live on their member alone.
    local_writes,
    /// Answers of members without a leader.
    lone_answers,
    /// Times that clients read what was counted below a path.
    usages,
    /// Writes that were refused for want of room.
    beyond_limits,
    /// Changes of the ensemble that clients asked for and were told to be done.
    reconfigurations,
    /// The same, refused.
    unreconfigured,
    /// Minorities that came back early: a change was made after their death that the others can't decide
    /// alone.
    dead_needed,
    /// Memberships that were committed.
    memberships,
    /// Entries that were committed.
    commits,
    /// Learners synchronized by DIFF.
    diff,
    /// Learners synchronized by TRUNC.
    trunc,
    /// Learners synchronized by SNAP.
    snap,
    /// Learners whose log was cut and then continued.
    trunc_then_diff,
    /// Epochs that ended because their counter did.
    full_epochs,
    /// Processes that ended.
    crashes,
    /// Crashes of members that looked for a leader.
    crash_looking,
    /// Crashes during discovery.
    crash_discovery,
    /// Crashes during synchronization.
    crash_synchronization,
    /// Crashes of members whose epoch was established.
    crash_broadcast,
    /// Crashes of leaders, in any phase.
    crash_leader,
    /// Crashes at a chosen point of the way to an epoch: in discovery.
    trap_discovery,
    /// While a tree is being installed.
    trap_installing,
    /// Between a tree's installation and what follows it.
    trap_installed,
    /// Between synchronized entries and currentEpoch.
    trap_appended,
    /// Between currentEpoch and the acknowledgement of NEWLEADER.
    trap_epoch_stored,
    /// Right behind UPTODATE.
    trap_up_to_date,
    /// In the middle of a truncation.
    trap_truncating,
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
    /// Partitions in which each member hears another majority.
    rings,
    /// Partitions that one member bridges.
    bridges,
    /// Leaders that heard nobody.
    deaf_leaders,
    /// Leaders that nobody heard.
    mute_leaders,
    /// Partitions that came and went pair by pair.
    swizzles,
    /// Connections that were reset.
    resets,
    /// Connections that broke for one of their ends alone.
    half_open,
    /// Members that died again while they recovered, or right behind it.
    relapses,
    /// Ends of a disk that were tried and did not happen.
    hypothetical_crashes,
    /// Files that disappeared.
    lost_files,
    /// Clients that came back when their session was nearly over.
    latecomers,
    /// Disks made slow.
    slow_disks,
    /// Processes that ended because a synchronization failed.
    failed_syncs,
    /// Disks that were full for a while.
    full_disks,
    /// Processes that ended because their disk was full.
    full_disk_ends,
    /// Snapshots that could not be written.
    failed_snapshots,
    /// Bits that turned over.
    rots,
    /// Rotten disks that recovery refused.
    rot_refused,
    /// Rotten disks from which recovery took nothing wrong.
    rot_harmless,
    /// Processes that met rot while they ran, and ended.
    rot_ends,
    /// Wall clocks set.
    wall_jumps,
    /// Wall clocks made fast or slow.
    wall_drifts,
    /// Monotonic clocks that jumped ahead.
    suspensions,
    /// Spans of a siege in which a quorum could speak and so had to be led.
    sieges_led,
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
    /// Operations that ended well.
    ok,
    /// Operations that did not happen.
    failed,
    /// Operations whose fate is unknown.
    unknown,
    /// Changes of the workloads `sequential` and `ephemeral` that ended well.
    visits,
    /// Changes of the workload `set` that ended well.
    adds,
    /// Changes of the workload `append` that ended well.
    appends,
    /// Znodes with which applications stood in line.
    candidacies,
    /// Terms of applications that led.
    terms,
    /// Terms that ended.
    terms_over,
    /// What applications did beside their recipes, and what befell them.
    actions,
    /// Times that an application asked for the end of what others stood with.
    robberies,
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
