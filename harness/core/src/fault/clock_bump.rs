//! One member's wall clock, shifted.

use std::time::Duration;

use crate::mechanism::clock::{CLOCK, Clock, show_offset};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use runs::clock::nanoseconds;

use super::Fault;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "clock-bump",
    about: "shifts one member's wall clock by 0.1 to 262 s either way; the leader's every other time",
    mechanism: &CLOCK,
    fewest_nodes: (1, ""),
    loses_unsynced: false,
    aim,
};

/// The shortest and the longest shift of a clock. Jepsen draws 2 to the power of 2 to 18 milliseconds; what
/// is below a tenth of a second is within what members forgive each other anyway.
const BUMP: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(262_144));

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    // The leader's clock is the one that stamps transactions; everybody's stamps its own sessions.
    let target = if draw.turn.is_multiple_of(2) { draw.leader.unwrap_or(draw.any) } else { draw.any };
    let (scene, offset_ns) = (draw.scene, draw_bump_ns(&mut draw.rng));
    let sentence = format!("bump the clock of {} by {}", scene.names(&[target]), show_offset(offset_ns));
    let shift = Clock { members: vec![target], offset_ns };
    Some(scene.resolved(vec![target], shift, Vec::new(), sentence))
}

/// A shift of the clock: as likely between 0.1 and 0.2 s as between 100 and 200 s, and as likely back as
/// forth.
pub(super) fn draw_bump_ns(rng: &mut ChaCha8Rng) -> i64 {
    let (shortest, longest) = (BUMP.0.as_secs_f64(), BUMP.1.as_secs_f64());
    let seconds = shortest * (longest / shortest).powf(rng.random::<f64>());
    let offset = i64::try_from(nanoseconds(Duration::from_secs_f64(seconds))).unwrap_or(i64::MAX);
    if rng.random::<bool>() { offset } else { -offset }
}
