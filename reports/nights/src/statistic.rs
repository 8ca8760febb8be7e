//! What of many samples counts, and how it is written.

use runs::numbers::duration;
use runs::span;

/// What of many samples counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// A percentile, from 0 to 100, by the nearest rank.
    Percentile(f64),
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// Their mean.
    Mean,
    /// How many there are.
    Count,
}

/// Samples below which nothing has a percentile.
const LEAST: u64 = 3;

impl Statistic {
    /// Reads it as k6 writes it: `p(99)`, `p99`, `med`, `max`.
    pub fn parse(text: &str) -> Option<Self> {
        let rank = text.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
        match text {
            "max" => Some(Self::Max),
            "min" => Some(Self::Min),
            "med" | "median" => Some(Self::Percentile(50.0)),
            "avg" | "mean" => Some(Self::Mean),
            "count" => Some(Self::Count),
            _ => {
                let rank: f64 = rank.or_else(|| text.strip_prefix('p'))?.parse().ok()?;
                (rank > 0.0 && rank < 100.0).then_some(Self::Percentile(rank))
            }
        }
    }

    /// How many samples it needs to mean something: a percentile as many that one lies beyond it.
    pub fn needs(self) -> u64 {
        match self {
            Self::Percentile(rank) => {
                let tail = (100.0 - rank) / 100.0;
                // The largest rank that can be written leaves far fewer than 2^53.
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "positive, and bounded on the line before"
                )]
                let beyond = (1.0 / tail - 1e-9).ceil().clamp(1.0, 1e12) as u64;
                beyond.max(LEAST)
            }
            Self::Max | Self::Min | Self::Mean => 1,
            Self::Count => 0,
        }
    }
}

/// How a metric's numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// A number in a second.
    PerSecond,
    /// From 0 to 1.
    Share,
    /// A number.
    Number,
}

impl Unit {
    /// A number of this unit for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Ms => duration(value),
            Self::PerSecond => format!("{} a second", trimmed(value)),
            Self::Share => format!("{} %", trimmed(value * 100.0)),
            Self::Number => trimmed(value),
        }
    }

    /// Reads a limit in this unit.
    ///
    /// # Errors
    ///
    /// What to write instead.
    pub fn parse(self, text: &str) -> Result<f64, String> {
        let number = |text: &str, what: &str| {
            text.trim()
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite() && *number >= 0.0)
                .ok_or_else(|| format!("`{text}` is no {what}"))
        };
        match self {
            Self::Ms => span::parse(text).map(|span| span.as_secs_f64() * 1e3),
            Self::PerSecond => number(
                text.strip_suffix("/s").unwrap_or(text),
                "number of operations a second: write `900/s`",
            ),
            Self::Share => match text.strip_suffix('%') {
                Some(percent) => number(percent, "share: write `5%`").map(|percent| percent / 100.0),
                None => Err(format!("`{text}` is no share: write `5%`")),
            },
            Self::Number => number(text, "number"),
        }
    }
}

fn trimmed(value: f64) -> String {
    let text = if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}
