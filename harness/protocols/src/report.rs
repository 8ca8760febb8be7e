//! What is told of a world.

use std::collections::BTreeMap;

use crate::configuration::Step;
use crate::protocol::{Broken, Protocol};

/// What came of a world, whatever its protocol.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its seed.
    pub seed: u64,
    /// How many members it had.
    pub members: u8,
    /// What was drawn, in words.
    pub drawn: String,
    /// What is broken.
    pub broken: Option<Broken>,
    /// How many steps there were.
    pub steps: u64,
    /// How long it lived, in virtual microseconds.
    pub lived_us: u64,
    /// Operations that clients had acknowledged.
    pub acknowledged: u64,
    /// Faults that were injected, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Equal for equal worlds.
    pub hash: u64,
    /// A line for each step, where they were asked for.
    pub lines: Vec<String>,
}

/// The same, with everything that happened, where that was kept.
#[derive(Clone, Debug)]
pub struct Report<P: Protocol> {
    /// What came of it.
    pub summary: Summary,
    /// What happened.
    pub steps: Vec<Step<P>>,
}
