//! What a fault means: the few things that can come of it for members and clients, however it is brought.
//!
//! Whoever judges a run asks only these, and never by which mechanism a fault was brought. So a new mechanism
//! says which of them it has, and no check is opened for it. They are written with each fault in the run's
//! folder. What does not say otherwise speaks of the fault's targets.

use serde::{Deserialize, Serialize};

/// One thing that comes of a fault while it is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consequence {
    /// Nothing passes in some directions between members.
    Silences {
        /// Who speaks and who would hear.
        directions: Vec<(u64, u64)>,
        /// Whether who speaks is told so, by a reset.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        refuses: bool,
    },
    /// Processes stand still.
    Stops,
    /// Processes are ended, and started again when it is healed.
    Ends,
    /// What is started again is another kind of server.
    Replaces,
    /// What was not synced is lost.
    LosesUnsynced,
    /// What members and clients do may take longer.
    Slows {
        /// By how much a step that waits for something once takes longer at most, in ns.
        by_ns: u64,
    },
    /// Wall clocks are off.
    ShiftsTime,
    /// Disks refuse, or do not do, what they are asked for.
    FailsDisks,
    /// It hits an application, and no member.
    HitsApplications,
    /// Nobody knows.
    Unknown,
}

impl Consequence {
    /// Nothing passes in these directions, and nobody is told.
    pub fn silences(directions: Vec<(u64, u64)>) -> Self {
        Self::Silences { directions, refuses: false }
    }

    /// Nothing passes in these directions, and whoever speaks is told so.
    pub fn refuses(directions: Vec<(u64, u64)>) -> Self {
        Self::Silences { directions, refuses: true }
    }
}

/// What may be asked about all that comes of a fault.
pub trait Consequences {
    /// All of it.
    fn all(&self) -> &[Consequence];

    /// Whether this is among it.
    fn has(&self, one: &Consequence) -> bool {
        self.all().contains(one)
    }

    /// Whether processes of its targets are ended.
    fn ends(&self) -> bool {
        self.has(&Consequence::Ends)
    }

    /// Whether processes are ended, and started again as what they were.
    fn ends_only(&self) -> bool {
        self.ends() && !self.has(&Consequence::Replaces)
    }

    /// Whether processes of its targets stand still.
    fn stops(&self) -> bool {
        self.has(&Consequence::Stops)
    }

    /// Whether its targets are without clients.
    fn takes_away(&self) -> bool {
        self.ends() || self.stops()
    }

    /// Whether nobody knows what it does to its targets.
    fn is_unknown(&self) -> bool {
        self.has(&Consequence::Unknown)
    }

    /// Whether its targets may be without clients.
    fn may_take_away(&self) -> bool {
        self.takes_away() || self.is_unknown()
    }

    /// Whether it hits an application, and no member.
    fn hits_applications(&self) -> bool {
        self.has(&Consequence::HitsApplications)
    }

    /// Whether nothing passes in some directions.
    fn silences(&self) -> bool {
        self.all().iter().any(|one| matches!(one, Consequence::Silences { .. }))
    }

    /// Whether members that speak to each other are told by a reset that nothing passes.
    fn refuses(&self) -> bool {
        self.all().iter().any(|one| matches!(one, Consequence::Silences { refuses: true, .. }))
    }

    /// By how much a step that waits for something once takes longer at most, in ns.
    fn slows_ns(&self) -> u64 {
        let by = |one: &Consequence| match one {
            Consequence::Slows { by_ns } => *by_ns,
            _ => 0,
        };
        self.all().iter().map(by).max().unwrap_or(0)
    }
}

impl Consequences for [Consequence] {
    fn all(&self) -> &[Consequence] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consequence_is_a_word_or_a_word_with_figures() {
        let all = [Consequence::silences(vec![(1, 2)]), Consequence::Ends, Consequence::Slows { by_ns: 7 }];
        let text = serde_json::to_string(&all).expect("JSON");
        assert_eq!(text, r#"[{"silences":{"directions":[[1,2]]}},"ends",{"slows":{"by_ns":7}}]"#);
        assert_eq!(serde_json::from_str::<Vec<Consequence>>(&text).expect("read"), all);
        assert!(all.ends_only() && all.silences() && !all.refuses() && !all.stops());
        assert_eq!((all.slows_ns(), all[..1].slows_ns()), (7, 0));
    }
}
