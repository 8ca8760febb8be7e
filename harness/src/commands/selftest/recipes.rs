//! Which run brings a bug to light in real members, and why some need the simulator.
//!
//! A recipe is a nemesis, a workload and a few flags, with how many tries are worth it: a real cluster can't be told
//! when to be in the middle of something, so a bug that needs a moment is tried for several times.

use node_core::Bug;

/// A run that should convict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    /// What is broken.
    pub(super) nemesis: &'static str,
    /// What clients do.
    pub(super) workload: &'static str,
    /// Further flags of `harness run`.
    pub(super) flags: &'static str,
    /// Runs at most, each with a seed of its own.
    pub(super) tries: u32,
}

const fn recipe(
    nemesis: &'static str,
    workload: &'static str,
    flags: &'static str,
    tries: u32,
) -> Result<Recipe, &'static str> {
    Ok(Recipe { nemesis, workload, flags, tries })
}

/// Why a bug needs a disk that tears, fails or forgets on command.
const VIRTUAL_DISK: &str = "needs a disk that loses or fails at a chosen write";
/// Why a bug needs a crash or a delay at a chosen step.
const CHOSEN_STEP: &str = "needs a crash or a delay between two chosen steps";

/// The run that finds a bug in real members, or why there is none.
pub(super) fn of(bug: Bug) -> Result<Recipe, &'static str> {
    match bug {
        Bug::AckBeforeFsync => recipe("kill-all", "register", "", 3),
        Bug::CommitAlone => recipe("partition-leader", "register", "", 3),
        Bug::SyncWithoutQuorum => recipe("pause-leader", "register", "", 3),
        // With four members two are half, and pass for a quorum on either side of the cut.
        Bug::HalfQuorum => {
            recipe("partition-halves,partition-leader", "register", "--nodes 4 --lose-unsynced never", 5)
        }
        // Three members go on without the other two.
        Bug::StallsWithoutTwo => recipe("partition-halves", "register", "--interval 24s --time-limit 50s", 3),
        Bug::NoAbdication => recipe("partition-leader,partition-oneway", "register", "", 5),
        Bug::DoubleApply => recipe("pause-leader,partition-oneway", "append", "", 5),
        Bug::EarlyCasRefusal => {
            recipe("partition-leader,pause-leader", "register", "--keys 2 --rate 2000", 5)
        }
        Bug::SequentialTwice => recipe("none", "sequential", "--time-limit 10s", 3),
        Bug::EphemeralSurvives => recipe("kill-one", "ephemeral", "--session-timeout 4s", 3),
        Bug::EphemeralDiesEarly => recipe("kill-one,partition-one", "ephemeral", "", 3),
        Bug::FollowerExpires => recipe("pause-leader,kill-one", "ephemeral", "--session-timeout 4s", 5),
        Bug::ServeBeforeApply => recipe("kill-one,kill-leader", "register", "--interval 2s --rate 2000", 5),
        Bug::ReadDuringSync => recipe("kill-one,partition-one", "register", "--interval 2s --rate 2000", 5),
        Bug::UncommittedInMemory => recipe("partition-leader,pause-leader", "set", "--interval 2s", 5),
        Bug::RefusesOwnLog => recipe("kill-one", "register", "", 2),
        Bug::IgnorePeerEpoch | Bug::CountOtherRound => Err("needs votes that are late by a chosen time"),
        Bug::EpochForgotten
        | Bug::AckNewLeaderEarly
        | Bug::EpochBeforeLog
        | Bug::TrustInterruptedSnap
        | Bug::LogHole => Err(VIRTUAL_DISK),
        Bug::StaleLogWriter
        | Bug::LostCommitInSync
        | Bug::AckOvertakesNewLeader
        | Bug::TruncTooFar
        | Bug::TruncNotAtAll
        | Bug::ZxidReuse
        | Bug::SnapshotMissesChange => Err(CHOSEN_STEP),
        Bug::WatchAfterReply | Bug::WatchForgetsPast | Bug::WatchNotSpent => {
            Err("needs clients that watch, and what they must be told")
        }
        Bug::TwoVoices => Err("needs a member that comes back while its old connection is half open"),
        Bug::MoveIsNoLife => {
            Err("needs a session that goes from member to member just before it would expire")
        }
        Bug::ParentUnderWay => Err("needs clients that make nodes below what others delete"),
        Bug::ListsLostInSnap => Err("needs clients that are not let in everywhere"),
        Bug::MultiInPart => Err("needs clients that change several nodes at once"),
        Bug::TtlFromBirth => Err("needs nodes with a time to live, and the leader's clock"),
        Bug::ReconfigByOld | Bug::NewcomerCounts | Bug::OldVotersElect | Bug::MembershipForgotten => {
            Err("needs operators that change the ensemble")
        }
        Bug::QuotaByOldValue | Bug::QuotaForgotten => Err("needs clients that set limits"),
        Bug::ZxidRollover => Err("needs four thousand million transactions, or a counter that ends early"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::catalogue;

    #[test]
    fn every_recipe_is_a_run_and_whoever_has_none_has_a_reason() {
        for bug in Bug::ALL {
            match of(*bug) {
                Ok(recipe) => {
                    assert!(catalogue::parse_list(recipe.nemesis).is_ok(), "{bug}");
                    assert!(recipe.tries > 0);
                }
                Err(reason) => assert!(reason.starts_with("needs "), "{bug}: {reason}"),
            }
        }
    }
}
