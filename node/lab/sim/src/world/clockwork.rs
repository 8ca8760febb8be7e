//! Time, chance, and what is written down of both: the one owner that every other one is handed.
//!
//! It says what time it is, what comes next, how far the world is in its course, and what the dice say within
//! the options that the seed drew. It knows no member and no client. Everybody plans events here, draws here,
//! counts here and leaves a line in the trace here, so it is given to whoever acts, and holds none of them.

use super::Event;
use super::mover::Mover;
use super::stages::Stage;
use crate::counters::Counters;
use crate::drawn::Drawn;
use crate::outcome::Options;
use crate::script::Reduction;
use harness_world::dice::Dice;
use harness_world::time::{Queue, Time};
use harness_world::trace::Trace;

/// Time, order, chance, and the trace of them.
pub(super) struct Clockwork {
    pub(super) now: Time,
    pub(super) queue: Queue<Event>,
    pub(super) dice: Dice,
    /// What the seed drew before anything happened; calmer after the faults.
    pub(super) drawn: Drawn,
    pub(super) options: Options,
    /// How far the world is in its course.
    pub(super) stage: Stage,
    pub(super) healed_at: Time,
    /// The present stage was not through in time, and gets a second one without what was in its way.
    pub(super) hurries: bool,
    /// Who moves the world: its queue and dice, or a script.
    pub(super) mover: Mover,
    /// Its faults and operations come from outside, and nothing is drawn about its crashes.
    pub(super) is_planned: bool,
    /// What is left out of it.
    pub(super) reduction: Reduction,
    pub(super) counters: Counters,
    pub(super) trace: Trace,
}

impl Clockwork {
    /// Before anything happened.
    pub(super) fn new(drawn: Drawn, dice: Dice, options: Options) -> Self {
        Self {
            now: Time::default(),
            queue: Queue::default(),
            dice,
            drawn,
            stage: Stage::Chaos,
            healed_at: Time::default(),
            hurries: false,
            mover: Mover::None,
            is_planned: false,
            reduction: Reduction::default(),
            counters: Counters::default(),
            trace: Trace::new(options.trace),
            options,
        }
    }
}
