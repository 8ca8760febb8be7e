//! The nemeses by name, and what each needs.

use serde::{Deserialize, Serialize};

use crate::text::suggest;
use runs::kinds::FaultKind;
use runs::mechanism::Mechanism;

/// A kind of fault. "None" is the empty list of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nemesis {
    /// Cuts the leader off from every other member.
    PartitionLeader,
    /// Cuts the ensemble into a majority and a minority.
    PartitionHalves,
    /// Cuts one member off, whatever its role.
    PartitionOne,
    /// Cuts one direction between the leader and all others.
    PartitionOneway,
    /// Leaves every member a majority that no other sees.
    PartitionRing,
    /// Cuts the ensemble into halves that one member connects.
    PartitionBridge,
    /// Resets every connection between the leader and the others.
    RejectLeader,
    /// Kills the leader's process.
    KillLeader,
    /// Kills one member's process, whatever its role.
    KillOne,
    /// Kills every process at once.
    KillAll,
    /// Stops the leader's process and lets it go on later.
    PauseLeader,
    /// Shifts one member's wall clock.
    ClockBump,
    /// Replaces one member after the other by the other kind of server, and back.
    ReplaceRolling,
}

impl Nemesis {
    /// Every nemesis, in the order of `list`.
    pub const ALL: [Self; 13] = [
        Self::PartitionLeader,
        Self::PartitionHalves,
        Self::PartitionOne,
        Self::PartitionOneway,
        Self::PartitionRing,
        Self::PartitionBridge,
        Self::RejectLeader,
        Self::KillLeader,
        Self::KillOne,
        Self::KillAll,
        Self::PauseLeader,
        Self::ClockBump,
        Self::ReplaceRolling,
    ];

    /// The name of doing nothing.
    pub const NONE: &'static str = "none";

    /// Its name on the command line and in every file.
    pub fn name(self) -> &'static str {
        match self {
            Self::PartitionLeader => "partition-leader",
            Self::PartitionHalves => "partition-halves",
            Self::PartitionOne => "partition-one",
            Self::PartitionOneway => "partition-oneway",
            Self::PartitionRing => "partition-ring",
            Self::PartitionBridge => "partition-bridge",
            Self::RejectLeader => "reject-leader",
            Self::KillLeader => "kill-leader",
            Self::KillOne => "kill-one",
            Self::KillAll => "kill-all",
            Self::PauseLeader => "pause-leader",
            Self::ClockBump => "clock-bump",
            Self::ReplaceRolling => "replace-rolling",
        }
    }

    /// What it does, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::PartitionLeader => "cuts the leader off from every other member",
            Self::PartitionHalves => "cuts the ensemble into a majority and a minority, drawn anew each time",
            Self::PartitionOne => "cuts one member off, whatever its role",
            Self::PartitionOneway => {
                "makes the leader deaf (it hears nobody) or mute (nobody hears it), in turn"
            }
            Self::PartitionRing => "leaves every member a majority of its own: no two see the same one",
            Self::PartitionBridge => "cuts the ensemble into two halves that only one member connects",
            Self::RejectLeader => "resets every connection between the leader and the others, old and new",
            Self::KillLeader => "SIGKILL to the leader, started again when the fault is healed",
            Self::KillOne => "SIGKILL to one member, started again when the fault is healed",
            Self::KillAll => "SIGKILL to all at once; their logs are cut back to what was synced",
            Self::PauseLeader => "SIGSTOP to the leader, SIGCONT when the fault is healed",
            Self::ClockBump => {
                "shifts one member's wall clock by 0.1 to 262 s either way; the leader's every other time"
            }
            Self::ReplaceRolling => {
                "ends one member and starts the other kind of server on its data, the leader last, and then back"
            }
        }
    }

    /// What a run's folder says of it.
    pub fn described(self) -> FaultKind {
        FaultKind { about: self.about().to_owned(), mechanism: self.needs() }
    }

    /// The smallest ensemble on which it means anything, and why.
    pub fn fewest_nodes(self) -> (u32, &'static str) {
        match self {
            Self::PartitionLeader | Self::PartitionOne | Self::PartitionOneway | Self::RejectLeader => {
                (2, "a member alone has nobody to be cut off from")
            }
            Self::PartitionHalves => (3, "of two members none is a minority: take partition-one"),
            Self::PartitionBridge => (3, "a bridge stands between two others"),
            Self::PartitionRing => (4, "with three a ring of majorities is a bridge: take partition-bridge"),
            Self::PauseLeader => (3, "with fewer nobody can take over from a paused leader"),
            Self::KillLeader | Self::KillOne | Self::KillAll | Self::ClockBump | Self::ReplaceRolling => {
                (1, "")
            }
        }
    }

    /// What the cluster must be able to do for it.
    pub fn needs(self) -> Mechanism {
        match self {
            Self::PartitionLeader
            | Self::PartitionHalves
            | Self::PartitionOne
            | Self::PartitionOneway
            | Self::PartitionRing
            | Self::PartitionBridge => Mechanism::Partition,
            Self::RejectLeader => Mechanism::Reject,
            Self::KillLeader | Self::KillOne | Self::KillAll => Mechanism::Kill,
            Self::PauseLeader => Mechanism::Pause,
            Self::ClockBump => Mechanism::Clock,
            Self::ReplaceRolling => Mechanism::Replace,
        }
    }

    /// Whether it kills processes.
    pub fn kills(self) -> bool {
        self.needs() == Mechanism::Kill
    }

    /// Every name that stands on the command line, and none.
    pub fn names() -> Vec<&'static str> {
        std::iter::once(Self::NONE).chain(Self::ALL.iter().map(|nemesis| nemesis.name())).collect()
    }

    /// The nemesis of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|nemesis| nemesis.name() == name)
    }

    /// Reads a list as typed: `kill-one,pause-leader`, or `none`.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Err("--nemesis is empty: write `none` for a run without faults".to_owned());
        }
        if names == [Self::NONE] {
            return Ok(Vec::new());
        }
        let mut list = Vec::new();
        for name in names {
            if name == Self::NONE {
                return Err("`none` stands alone: leave it out of a list of nemeses".to_owned());
            }
            let nemesis = Self::from_name(name).ok_or_else(|| unknown(name))?;
            if list.contains(&nemesis) {
                return Err(format!("`{name}` stands twice in --nemesis; they take turns evenly anyway"));
            }
            list.push(nemesis);
        }
        Ok(list)
    }
}

fn unknown(name: &str) -> String {
    suggest::unknown("nemesis", name, &Nemesis::names(), "`harness list nemeses` says what each does:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_its_order_and_none_is_the_empty_one() {
        assert_eq!(Nemesis::parse_list("none"), Ok(Vec::new()));
        assert_eq!(
            Nemesis::parse_list("kill-one, pause-leader"),
            Ok(vec![Nemesis::KillOne, Nemesis::PauseLeader])
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_advice() {
        let error = Nemesis::parse_list("partition-laeder").expect_err("a slip");
        assert!(error.contains("did you mean `partition-leader`?"), "{error}");
        assert!(Nemesis::parse_list("none,kill-one").expect_err("none alone").contains("stands alone"));
        assert!(Nemesis::parse_list("kill-one,kill-one").expect_err("twice").contains("twice"));
        assert!(Nemesis::parse_list(",").expect_err("empty").contains("empty"));
    }

    #[test]
    fn a_name_is_the_same_on_the_command_line_and_in_files() {
        for nemesis in Nemesis::ALL {
            let json = serde_json::to_string(&nemesis).expect("a name");
            assert_eq!(json, format!("\"{}\"", nemesis.name()));
        }
    }
}
