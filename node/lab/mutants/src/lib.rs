//! Mutants: members with a planted bug each. A bench that does not find every one of them is no bench
//! (`harness selftest`).
//!
//! Every mutant is a bug that an implementation of ZAB really had, or one that a careful reader would make.
//! Each has a file: where it comes from, what it does, and which run of real members shows it. The member
//! knows nothing of them. A mutant is made in one of two ways, or both:
//!
//! - it follows other [`Rules`] than the protocol's, where the protocol names the decision;
//! - it stands between a member and its driver (`wrapper`): it changes, drops, delays or adds inputs and
//!   effects, and remembers what it needs for that. What it remembers is part of the member's state.
//!
//! One is of its driver's making alone, and two show only under another driver ([`Driver`]).
//!
//! To add one, write its file and put its name into the list below.

mod frames;
mod machine;
mod queue;
mod rules;
mod wrapper;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use node_core::io::Recovered;
use node_core::{Rules, Zab};

pub use machine::Mutated;
use wrapper::Wrapper;

/// The list: a module each. The order is that of `harness list mutants` and of the table that `harness
/// selftest` makes.
macro_rules! mutants {
    ($($module:ident)*) => {
        $(mod $module;)*

        /// Every mutant, for lists.
        pub const ALL: &[Mutant] = &[$(Mutant(&$module::SPEC),)*];
    };
}

mutants! {
    // Elections and discovery.
    ignore_peer_epoch
    count_other_round
    half_quorum
    epoch_forgotten
    no_abdication

    // Synchronization.
    ack_newleader_early
    epoch_before_log
    stale_log_writer
    lost_commit_in_sync
    ack_overtakes_newleader
    serve_before_apply
    read_during_sync
    uncommitted_in_memory
    trunc_too_far
    trunc_not_at_all
    trust_interrupted_snap

    // Broadcast and the log.
    ack_before_fsync
    commit_alone
    log_hole
    refuses_own_log
    two_voices
    stalls_without_two
    zxid_reuse
    zxid_rollover
    snapshot_misses_change

    // Clients and sessions.
    sync_without_quorum
    double_apply
    early_cas_refusal
    sequential_twice
    ephemeral_survives
    ephemeral_dies_early
    follower_expires
    move_is_no_life

    // Watches, multi, and what goes by itself.
    watch_after_reply
    watch_forgets_past
    watch_not_spent
    watch_asks_no_list
    multi_in_part
    parent_under_way
    ttl_from_birth

    // The ensemble itself, and what it may hold.
    reconfig_by_old
    newcomer_counts
    old_voters_elect
    membership_forgotten
    lists_lost_in_snap
    quota_by_old_value
    quota_forgotten
}

/// What a file of this crate says of its mutant.
struct Spec {
    name: &'static str,
    origin: &'static str,
    summary: &'static str,
    rules: &'static dyn Rules,
    wrapper: fn(&Recovered) -> Option<Box<dyn Wrapper>>,
    driver: Driver,
    recipe: Result<Recipe, &'static str>,
}

/// What the usual mutant has: the protocol's rules, nothing between member and driver, a driver without
/// fault.
const USUAL: Spec = Spec {
    name: "",
    origin: "",
    summary: "",
    rules: &Zab,
    wrapper: |_| None,
    driver: Driver::Sound,
    recipe: Err("needs a run of its own"),
};

/// What the driver of a mutant does wrong, or does to let the bug show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Nothing.
    Sound,
    /// It lingers before each fsync. Who does not wait for the disk has no reason to hurry it; that is how
    /// such bugs come about (an "fsync every so often").
    LazyDisk,
    /// It hears its clients before its peers. A server with a thread for each connection knows no order
    /// between them, and only there can the bug be seen: else the member would hear first that it is deposed.
    ClientsFirst,
    /// It goes on after a write of the log that failed. The simulator's driver alone can.
    SkipsFailedWrites,
}

impl Driver {
    /// True when a member that is a process can be driven so.
    pub fn is_of_processes(self) -> bool {
        match self {
            Self::Sound | Self::LazyDisk | Self::ClientsFirst => true,
            Self::SkipsFailedWrites => false,
        }
    }
}

/// A run of real members that shows a mutant. A real cluster can't be told when to be in the middle of
/// something, so a bug that needs a moment is tried for several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// What is broken.
    pub nemesis: &'static str,
    /// What clients do.
    pub workload: &'static str,
    /// Further flags of `harness run`.
    pub flags: &'static str,
    /// Runs at most, each with a seed of its own.
    pub tries: u32,
}

/// Why a mutant needs a disk that tears, fails or forgets on command.
const VIRTUAL_DISK: &str = "needs a disk that loses or fails at a chosen write";
/// Why a mutant needs a crash or a delay at a chosen step.
const CHOSEN_STEP: &str = "needs a crash or a delay between two chosen steps";
/// Why a mutant needs operators.
const OPERATORS: &str = "needs operators that change the ensemble";

/// One of them.
#[derive(Clone, Copy)]
pub struct Mutant(&'static Spec);

impl Mutant {
    /// The mutant of that name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|mutant| mutant.name() == name)
    }

    /// Its name on the command line (`--mutant NAME`).
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Who had it: issues of Apache ZooKeeper, or what it is known by.
    pub fn origin(self) -> &'static str {
        self.0.origin
    }

    /// What it does, in a line.
    pub fn summary(self) -> &'static str {
        self.0.summary
    }

    /// What its driver does.
    pub fn driver(self) -> Driver {
        self.0.driver
    }

    /// The run of real members that shows it, or why there is none.
    ///
    /// # Errors
    ///
    /// What such a run would need.
    pub fn recipe(self) -> Result<Recipe, &'static str> {
        self.0.recipe
    }
}

impl PartialEq for Mutant {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Mutant {}

impl PartialOrd for Mutant {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Mutant {
    /// As they are listed.
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |mutant: &Self| ALL.iter().position(|listed| listed == mutant);
        place(self).cmp(&place(other))
    }
}

impl Hash for Mutant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Debug for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mutant({})", self.0.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_has_a_name_of_its_own_and_says_what_it_is() {
        for mutant in ALL {
            assert_eq!(Mutant::named(mutant.name()), Some(*mutant));
            assert!(!mutant.origin().is_empty() && !mutant.summary().is_empty(), "{mutant}");
            assert_eq!(ALL.iter().filter(|other| other.name() == mutant.name()).count(), 1, "{mutant}");
        }
    }

    #[test]
    fn whoever_has_no_run_says_what_it_would_need() {
        for mutant in ALL {
            match mutant.recipe() {
                Ok(recipe) => assert!(recipe.tries > 0, "{mutant}"),
                Err(reason) => assert!(reason.starts_with("needs "), "{mutant}: {reason}"),
            }
        }
    }
}
