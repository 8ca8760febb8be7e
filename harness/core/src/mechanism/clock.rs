//! Shifting the wall clocks of members.

use std::time::Duration;

use runs::consequence::Consequence;
use runs::faults::FaultDetail;
use runs::member::MemberId;

use super::{Act, Mechanism, Part, Use};
use crate::condition::{Condition, Quality};
use crate::fault::in_force::InForce;

/// The mechanism.
pub static CLOCK: Mechanism = Mechanism {
    name: "clock",
    about: "the wall clock of one process is shifted, again after a restart; monotonic time and waits are \
            not; process, docker: x86-64 and the right to ptrace",
    occupies: &[(Part::Clock, Use::Alone)],
    parameters: &[],
    may_lose_unsynced: false,
    virtually: Ok(&[Quality::Clock]),
};

/// A shift of wall clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Whose.
    pub members: Vec<MemberId>,
    /// By how much, against the true one.
    pub offset_ns: i64,
}

impl Act for Clock {
    fn mechanism(&self) -> &'static Mechanism {
        &CLOCK
    }

    fn members(&self) -> &[MemberId] {
        &self.members
    }

    fn consequences(&self) -> Vec<Consequence> {
        vec![Consequence::ShiftsTime]
    }

    fn conditions(&self) -> Vec<Condition> {
        let off = |member: &MemberId| Condition::Clock { member: *member, offset_ns: self.offset_ns };
        self.members.iter().map(off).collect()
    }

    fn describe(&self, detail: &mut FaultDetail) {
        detail.clock_offset_ns = Some(self.offset_ns);
    }
}

/// How far a member's wall clock is to be off. Of several shifts the last by name holds, because each is
/// against the true clock.
#[must_use]
pub fn offset_ns(in_force: &InForce, member: MemberId) -> i64 {
    let own = in_force.acts::<Clock>().filter(|shift| shift.members.contains(&member));
    own.last().map_or(0, |shift| shift.offset_ns)
}

/// A shift for people, with its sign: `+1.250 s`.
#[must_use]
pub fn show_offset(offset_ns: i64) -> String {
    let sign = if offset_ns < 0 { '-' } else { '+' };
    format!("{sign}{:.3} s", Duration::from_nanos(offset_ns.unsigned_abs()).as_secs_f64())
}
