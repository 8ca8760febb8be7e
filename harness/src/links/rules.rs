//! What is done to the bytes that go from one member to another.

use std::time::Duration;

use serde::{Deserialize, Serialize};

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
}

impl Rule {
    /// A rule that lets nothing through and loses nothing.
    pub const HOLD: Self = Self { mode: Mode::Hold, delay_ms: 0 };

    /// A rule that breaks connections.
    pub const RESET: Self = Self { mode: Mode::Reset, delay_ms: 0 };

    /// The added delay.
    pub fn delay(self) -> Duration {
        Duration::from_millis(self.delay_ms)
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
