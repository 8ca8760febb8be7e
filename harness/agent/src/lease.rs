//! The lease: how long the agent may go on without a word from the harness.
//!
//! Silence is measured in looks at the input, not by subtracting two times: each look counts the time since
//! the look before, but at most [`LOOK_NS`] of it. An agent that was not scheduled for ten seconds has not
//! heard ten seconds of silence; it has not listened. So it never heals because of its own absence, and after
//! one it judges only when it has looked at the input again, for as long as the lease demands. Looks happen
//! several times a second, hence the bound is late by at most one look.

use crate::protocol::{END_MS, LEASE_MS};
use crate::time::MS;

/// At least so often the input is looked at; a longer gap counts as one of this length.
pub(crate) const LOOK_NS: u64 = 250 * MS;

/// What the silence asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing yet.
    Nothing,
    /// Heal everything, now; said once for each silence.
    Heal,
    /// Go.
    End,
}

/// Silence so far.
#[derive(Debug)]
pub(crate) struct Lease {
    looked_ns: u64,
    silent_ns: u64,
    expired: bool,
}

impl Lease {
    /// A lease that begins now.
    pub(crate) fn new(now_ns: u64) -> Self {
        Self { looked_ns: now_ns, silent_ns: 0, expired: false }
    }

    /// The input was looked at: was there a line?
    pub(crate) fn look(&mut self, now_ns: u64, heard: bool) -> Due {
        let gap = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        if heard {
            self.silent_ns = 0;
            self.expired = false;
            return Due::Nothing;
        }
        self.silent_ns = self.silent_ns.saturating_add(gap.min(LOOK_NS));
        if self.silent_ns >= END_MS * MS {
            Due::End
        } else if self.silent_ns >= LEASE_MS * MS && !self.expired {
            self.expired = true;
            Due::Heal
        } else {
            Due::Nothing
        }
    }

    /// How long the next look may wait.
    pub(crate) fn patience_ns(&self) -> u64 {
        let next = if self.expired { END_MS } else { LEASE_MS };
        (next * MS).saturating_sub(self.silent_ns).clamp(MS, LOOK_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every `step` nanoseconds until something is due: when, and what.
    fn until_due(lease: &mut Lease, from_ns: u64, step: u64) -> (u64, Due) {
        let mut now = from_ns;
        loop {
            now += step;
            match lease.look(now, false) {
                Due::Nothing => {}
                due => return (now - from_ns, due),
            }
        }
    }

    #[test]
    fn silence_heals_once_and_then_ends() {
        let mut lease = Lease::new(0);
        let (healed, due) = until_due(&mut lease, 0, 10 * MS);
        assert_eq!((healed, due), (LEASE_MS * MS, Due::Heal));
        let (ended, due) = until_due(&mut lease, healed, 10 * MS);
        assert_eq!((healed + ended, due), (END_MS * MS, Due::End));
    }

    #[test]
    fn any_line_renews_even_an_expired_lease() {
        let mut lease = Lease::new(0);
        let (healed, _) = until_due(&mut lease, 0, LOOK_NS);
        assert_eq!(lease.look(healed + MS, true), Due::Nothing);
        assert_eq!(until_due(&mut lease, healed + MS, 10 * MS), (LEASE_MS * MS, Due::Heal));
    }

    #[test]
    fn an_agent_that_was_not_scheduled_listens_before_it_judges() {
        let mut lease = Lease::new(0);
        assert_eq!(lease.look(600_000 * MS, false), Due::Nothing, "ten minutes away");
        assert_eq!(lease.look(600_001 * MS, true), Due::Nothing);
        let mut lease = Lease::new(0);
        lease.look(600_000 * MS, false);
        assert_eq!(until_due(&mut lease, 600_000 * MS, LOOK_NS), (LEASE_MS * MS - LOOK_NS, Due::Heal));
    }

    #[test]
    fn the_next_look_comes_when_something_may_be_due() {
        let mut lease = Lease::new(0);
        assert_eq!(lease.patience_ns(), LOOK_NS);
        for look in 1..=11 {
            lease.look(look * LOOK_NS, false);
        }
        lease.look(11 * LOOK_NS + 200 * MS, false);
        assert_eq!(lease.patience_ns(), 50 * MS);
    }

    #[test]
    fn a_clock_that_stands_still_is_no_endless_busy_loop() {
        let mut lease = Lease::new(5);
        assert_eq!(lease.look(5, false), Due::Nothing);
        assert_eq!(lease.look(0, false), Due::Nothing);
        assert!(lease.patience_ns() >= MS);
    }
}
