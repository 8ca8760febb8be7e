//! Time, chance, and what is written down of both: the one owner that every other one is handed.
//!
//! It says what time it is, what comes next, how far the world is in its course, and what the dice say within
//! the options that the seed drew. It knows no member and no client. Everybody plans events here, draws here,
//! counts here and leaves a line in the trace here, so it is given to whoever acts, and holds none of them.

pub(super) mod bounds;
mod codecs;
pub(super) mod delays;
mod lines;
pub(super) mod mover;
mod options;
pub(super) mod stage;

use self::mover::Mover;
use self::stage::Stage;

use crate::counters::Counters;
use crate::drawn::Drawn;
use crate::network::HostIndex;
use crate::outcome::Options;
use crate::script::Reduction;
use crate::world::Event;
use harness_world::dice::{Chance, Dice};
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

    pub(super) fn plan(&mut self, delay_us: u64, event: Event) {
        self.queue.plan(self.now + delay_us, event);
    }

    /// Drawn probabilities are those of chaos; a healed world is calm.
    pub(super) fn calm(&mut self) {
        self.drawn.spike = Chance::NEVER;
        self.drawn.stall = Chance::NEVER;
        self.drawn.refuse = Chance::NEVER;
        self.drawn.told_late = Chance::NEVER;
    }

    pub(super) fn line(
        &mut self,
        who: HostIndex,
        verb: &'static str,
        figures: [u64; 2],
        text: impl FnOnce() -> String,
    ) {
        let who = u64::try_from(who).expect("members are few") + 1;
        self.trace.line(self.now, who, verb, figures, text);
    }

    pub(super) fn world_line(
        &mut self,
        verb: &'static str,
        figures: [u64; 2],
        text: impl FnOnce() -> String,
    ) {
        self.trace.line(self.now, 0, verb, figures, text);
    }
}
