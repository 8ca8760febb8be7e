//! Wall clocks, as their owners read them.
//!
//! A member whose clock was shifted must read the wrong time by as much as was asked for, and every other
//! member the right one: that is the control, for a reading that is wrong everywhere would be the reader's
//! own error.

use std::time::{Duration, Instant};

use runs::member::MemberId;

use super::{LOOK_EVERY, PATIENCE, Proof};
use crate::cluster::{ClockReading, Cluster};
use harness_core::fault::in_force::InForce;
use harness_core::mechanism::clock::{offset_ns, show_offset};
use harness_core::mechanism::{Part, Resource, Use};

/// How far a reading may be off beyond its own error: both clocks are disciplined while they are read.
const TOLERANCE: Duration = Duration::from_millis(1);

/// Whether a reading is what is in force.
pub fn fits(reading: ClockReading, offset_ns: i64) -> bool {
    let tolerance = crate::clock::nanoseconds(TOLERANCE);
    reading.offset_ns.abs_diff(offset_ns) <= reading.error_ns.saturating_add(tolerance)
}

/// Whether the clocks of `members`, and beside them those of all others, are off by what is in force and by
/// nothing else. Whoever is dead or stopped is not asked; a process that is gone took its clock with it.
pub async fn are_as_asked(cluster: &dyn Cluster, members: &[MemberId], in_force: &InForce) -> Proof {
    let deadline = Instant::now() + PATIENCE;
    let mut holds = true;
    let mut words = Vec::new();
    let mut worst: Option<(usize, u64)> = None;
    for member in cluster.members() {
        let name = format!("n{}", member.0);
        let is_target = members.contains(member);
        if in_force.absent().contains(member) {
            words.extend(is_target.then(|| format!("{name} is down or stopped, its clock was not read")));
            // What was to be shifted and can't be read is not proven; what was to be restored is gone.
            holds &= !is_target || offset_ns(in_force, *member) == 0;
            continue;
        }
        let wanted_ns = offset_ns(in_force, *member);
        if !is_target && wanted_ns == 0 && in_force.collides(Resource::Of(*member, Part::Clock), Use::Alone) {
            // Another mechanism has it.
            continue;
        }
        let (fitting, seen) = read_until(cluster, *member, wanted_ns, deadline).await;
        holds &= fitting;
        match seen {
            Ok(reading) if is_target || !fitting || wanted_ns != 0 => words.push(format!(
                "{name} reads {} (error {} us)",
                show_offset(reading.offset_ns),
                reading.error_ns / 1000
            )),
            Ok(reading) => {
                let (count, off) = worst.unwrap_or((0, 0));
                worst = Some((count + 1, off.max(reading.offset_ns.unsigned_abs())));
            }
            Err(error) => words.push(format!("{name} can't be read: {error:#}")),
        }
    }
    if let Some((count, off_ns)) = worst {
        let who = if count == 1 { "the other".to_owned() } else { format!("the {count} others") };
        words.push(format!("{who} at most {} us off", off_ns / 1000));
    }
    Proof::new(holds, words.join("; "))
}

/// Reads a clock until it shows what it should; a thread that could not be borrowed at once may be a moment
/// later.
async fn read_until(
    cluster: &dyn Cluster,
    member: MemberId,
    offset_ns: i64,
    deadline: Instant,
) -> (bool, anyhow::Result<ClockReading>) {
    loop {
        let seen = cluster.read_clock(member).await;
        let fitting = seen.as_ref().is_ok_and(|reading| fits(*reading, offset_ns));
        if fitting || Instant::now() >= deadline {
            return (fitting, seen);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_fits_within_its_error_and_a_millisecond() {
        let reading = |offset_ns| ClockReading { offset_ns, error_ns: 5_000 };
        assert!(fits(reading(2_000_000_000), 2_000_000_000));
        assert!(fits(reading(2_001_004_000), 2_000_000_000));
        assert!(!fits(reading(2_001_006_000), 2_000_000_000));
        assert!(!fits(reading(0), 100_000_000));
        assert!(!fits(reading(i64::MIN), i64::MAX));
    }
}
