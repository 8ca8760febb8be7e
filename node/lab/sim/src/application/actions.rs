//! What an application does beside its recipe, and what befalls it: by dice of its own.

use node_session::Moment;

use harness_world::dice::{Dice, HALF};

/// What an application does, or what befalls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It gives up what it leads or waits for.
    Resign,
    /// It uses another member.
    Move,
    /// Its connection breaks, and what is on its way is lost.
    Break,
    /// It loses its connection; what it sent before still arrives.
    Lose,
    /// For so long nothing arrives on its connection, either way.
    Hold(Moment),
    /// Its process stands still for so long: it hears nothing and looks at no clock.
    Stop(Moment),
    /// Its process ends, and another one begins after so long. The member may not be told.
    Die(Moment, bool),
    /// It deletes the znode of whoever is first in line.
    Rob,
    /// It deletes the resource with all that is below, and makes it again.
    Remove,
}

/// Pauses last from a part of a session's time-out to more than two of them.
fn pause(dice: &mut Dice, timeout: Moment) -> Moment {
    let timeout_us = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
    Moment::from_micros(dice.scale(timeout_us / 16, timeout_us * 9 / 4))
}

impl Action {
    /// The next one.
    pub(super) fn drawn(dice: &mut Dice, timeout: Moment) -> Self {
        match dice.between(0, 23) {
            0..=4 => Self::Resign,
            5..=7 => Self::Move,
            8 | 9 => Self::Break,
            10 | 11 => Self::Lose,
            12..=14 => Self::Hold(pause(dice, timeout)),
            15..=18 => Self::Stop(pause(dice, timeout)),
            19 | 20 => {
                let pause = pause(dice, timeout);
                Self::Die(pause, dice.chance(HALF))
            }
            21 | 22 => Self::Rob,
            _ => Self::Remove,
        }
    }

    /// A number for the trace.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Resign => 0,
            Self::Move => 1,
            Self::Break => 2,
            Self::Hold(_) => 3,
            Self::Stop(_) => 4,
            Self::Die(..) => 5,
            Self::Rob => 6,
            Self::Remove => 7,
            Self::Lose => 8,
        }
    }
}
