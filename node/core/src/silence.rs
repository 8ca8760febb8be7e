//! When a peer has been silent for too long.
//!
//! Four things must not be mistaken for a dead peer.
//!
//! - A peer that is slow today. The deadline follows the gaps between its messages, as TCP's retransmission
//!   timer follows round trips (RFC 6298: a smoothed mean and a smoothed deviation).
//! - Our own process that was not scheduled, or a step of ours that worked long. All deadlines run on the
//!   [`Attention`] clock, which stands still meanwhile, and what arrived in that time counts before anybody
//!   is judged ([`Input::Alive`](crate::io::Input::Alive)).
//! - A peer in the middle of something long. Bytes that arrive are life, whole packets or not.
//! - A peer in a step as long as its data. Its driver speaks for it meanwhile, with PINGs that confirm
//!   nothing, and falls silent when the step passes for stuck (`pulse` of the crate `node`).
//!
//! What is not told apart is a peer that gets no processor at all for longer than the time-out, and one that
//! is stopped or dead. So a machine that is busy enough still causes elections.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::config::TICK;

/// How many smoothed deviations above the mean a gap may lie.
const DEVIATIONS: u32 = 8;

/// The deadline never grows beyond this many configured time-outs.
const MAX_FACTOR: u32 = 4;

/// Monotonic time in which this process was awake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention {
    last: Duration,
    awake: Duration,
}

impl Attention {
    pub(crate) fn new(mono: Duration) -> Self {
        Self { last: mono, awake: Duration::ZERO }
    }

    /// Time passed to `mono`. A gap longer than some ticks was our own: only that much of it counts.
    pub(crate) fn advance(&mut self, mono: Duration) -> Duration {
        let gap = mono.saturating_sub(self.last);
        self.last = self.last.max(mono);
        self.awake += gap.min(TICK * 3);
        self.awake
    }
}

/// Listens to one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    heard_at: Duration,
    mean: Duration,
    deviation: Duration,
}

impl Silence {
    pub(crate) fn new(at: Duration) -> Self {
        Self { heard_at: at, mean: Duration::ZERO, deviation: Duration::ZERO }
    }

    /// The peer spoke in its regular rhythm.
    pub(crate) fn heard(&mut self, at: Duration) {
        let gap = at.saturating_sub(self.heard_at);
        self.heard_at = at;
        let distance = gap.abs_diff(self.mean);
        self.deviation = (self.deviation * 3 + distance) / 4;
        self.mean = (self.mean * 7 + gap) / 8;
    }

    /// The peer gave a sign of life that is no beat of its rhythm.
    pub(crate) fn alive(&mut self, at: Duration) {
        self.heard_at = at;
    }

    /// Mixes in the rhythm, and how long the peer has been silent.
    pub(crate) fn fingerprint(&self, at: Duration, state: &mut impl Hasher) {
        let Self { heard_at, mean, deviation } = self;
        (at.saturating_sub(*heard_at), mean, deviation).hash(state);
    }

    /// True when the peer has been silent beyond `timeout`, or beyond what its rhythm allows.
    pub(crate) fn is_over(&self, at: Duration, timeout: Duration) -> bool {
        let rhythm = self.mean + self.deviation * DEVIATIONS;
        at.saturating_sub(self.heard_at) > rhythm.clamp(timeout, timeout * MAX_FACTOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_peer_in_its_rhythm_is_not_silent() {
        let mut silence = Silence::new(ms(0));
        for beat in 1..20 {
            silence.heard(ms(50 * beat));
        }
        assert!(!silence.is_over(ms(950 + 250), ms(250)));
        assert!(silence.is_over(ms(950 + 251), ms(250)));
    }

    #[test]
    fn an_unsteady_peer_is_given_longer_but_not_for_ever() {
        let mut silence = Silence::new(ms(0));
        for beat in 1..20 {
            silence.heard(ms(200 * beat + if beat % 2 == 0 { 120 } else { 0 }));
        }
        let last = 200 * 19;
        assert!(!silence.is_over(ms(last + 400), ms(250)));
        assert!(silence.is_over(ms(last + 1001), ms(250)));
    }

    #[test]
    fn a_sign_of_life_postpones_the_end_and_leaves_the_rhythm_alone() {
        let mut silence = Silence::new(ms(0));
        for beat in 1..20 {
            silence.heard(ms(50 * beat));
        }
        let (mean, deviation) = (silence.mean, silence.deviation);
        silence.alive(ms(950 + 240));
        assert!(!silence.is_over(ms(950 + 240 + 250), ms(250)));
        assert!(silence.is_over(ms(950 + 240 + 251), ms(250)));
        assert_eq!((silence.mean, silence.deviation), (mean, deviation));
    }

    #[test]
    fn time_in_which_we_slept_is_not_held_against_anybody() {
        let mut attention = Attention::new(ms(1000));
        assert_eq!(attention.advance(ms(1010)), ms(10));
        assert_eq!(attention.advance(ms(9000)), ms(40));
        assert_eq!(attention.advance(ms(9005)), ms(45));
    }
}
