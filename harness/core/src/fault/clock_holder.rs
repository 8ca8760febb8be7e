//! The wall clock of the application that holds, shifted. Nothing that it may do depends on it.

use crate::mechanism::application_clock::APPLICATION_CLOCK;
use crate::mechanism::clock::show_offset;

use super::Fault;
use super::application::Harm;
use super::clock_bump::draw_bump_ns;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "clock-holder",
    about: "shifts the wall clock of the application that holds by 0.1 to 262 s either way",
    mechanism: &APPLICATION_CLOCK,
    fewest_nodes: (1, ""),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let holder = draw.holder?;
    let offset_ns = draw_bump_ns(&mut draw.rng);
    let sentence = format!("bump the clock of {holder}, by {}", show_offset(offset_ns));
    Some(draw.scene.harm(holder, Harm::Clock { offset_ns }, sentence))
}
