//! What is told of a world.

use std::collections::BTreeMap;

use crate::configuration::Step;
use crate::protocol::{Broken, Protocol};

/// What came of a world.
#[derive(Clone, Debug)]
pub struct Report<P: Protocol> {
    /// Its seed.
    pub seed: u64,
    /// How many members it had.
    pub members: u8,
    /// What was drawn, in words.
    pub drawn: String,
    /// What is broken.
    pub broken: Option<Broken>,
    /// Everything that happened, where it was kept.
    pub steps: Vec<Step<P>>,
    /// How many steps there were.
    pub count: u64,
    /// How long the world lived, in virtual microseconds.
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
