//! What is done to the bytes that go from one member to another.

use std::time::Duration;

use harness_core::condition::{Delay, LinkCondition};
use harness_core::cut::Severing;
use serde::{Deserialize, Serialize};

use crate::clock::whole_milliseconds;

/// What happens to a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Bytes go through.
    #[default]
    Pass,
    /// Bytes and FINs wait.
    Hold,
    /// Connections that carry this direction, and so the other one too, are reset, new ones as soon as they
    /// are made.
    Reset,
    /// Connections are reset and new ones are refused.
    Refuse,
}

/// A rule for one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What happens.
    pub mode: Mode,
    /// Added to the way of every byte that goes through.
    #[serde(default)]
    pub delay_ms: u64,
    /// Added to it beside that, anew for each piece: up to so much.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Rule {
    /// A rule that lets nothing through and loses nothing.
    pub const HOLD: Self = Self { mode: Mode::Hold, delay_ms: 0, jitter_ms: 0 };

    /// A rule that breaks connections.
    pub const RESET: Self = Self { mode: Mode::Reset, delay_ms: 0, jitter_ms: 0 };

    /// What holds in a direction under a condition.
    pub fn of(condition: LinkCondition) -> Self {
        let mode = match condition.severed {
            None => Mode::Pass,
            Some(Severing::Silence) => Mode::Hold,
            Some(Severing::Reject) => Mode::Reset,
        };
        let Delay { latency, jitter } = condition.delay;
        Self { mode, delay_ms: whole_milliseconds(latency), jitter_ms: whole_milliseconds(jitter) }
    }

    /// The added delay of one piece.
    pub fn delay(self) -> Duration {
        let jitter = Duration::from_millis(self.jitter_ms).mul_f64(rand::random());
        Duration::from_millis(self.delay_ms) + jitter
    }

    /// Whether bytes wait.
    pub fn holds(self) -> bool {
        self.mode == Mode::Hold
    }

    /// Whether connections are broken.
    pub fn breaks(self) -> bool {
        matches!(self.mode, Mode::Reset | Mode::Refuse)
    }
}
