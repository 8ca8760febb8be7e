//! What of a simulated ensemble has dice of its own.

use harness_world::dice::Stream;

/// A part of a world that has dice of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A turn of the nemesis.
    Turn(u64),
    /// A client.
    Client(u64),
    /// Who stays dead at first when a world is healed.
    Minority,
    /// The length of epochs.
    Epochs,
    /// Members without a vote.
    Observers,
    /// Which workloads the clients do.
    Traffic,
    /// Watchers, and what goes by itself.
    Watchers,
    /// Whether the ensemble changes.
    Changes,
    /// Sessions of one member, and reads without a leader.
    Lone,
    /// What is rare.
    Rare,
    /// Probers.
    Probers,
    /// Ends that do not happen.
    Hypothetical,
    /// Where a prober pauses within a batch.
    Pauses,
    /// A workload's generator.
    Load(u64),
    /// What applications have in common.
    Applications,
    /// Steps that take time.
    Work,
    /// An application.
    Application(u64),
}

/// Streams above this one belong to workloads; turns and clients never count so far.
const WORKLOADS: u64 = 1 << 62;

/// Streams from this one on belong to applications.
const APPLICATIONS: u64 = 1 << 61;

impl Stream for Part {
    fn number(&self) -> u64 {
        match *self {
            Part::Turn(turn) => turn << 1 | 1,
            Part::Client(client) => (client + 1) << 1,
            Part::Minority => u64::MAX - 1,
            Part::Epochs => u64::MAX - 3,
            Part::Observers => u64::MAX - 5,
            Part::Watchers => u64::MAX - 7,
            Part::Changes => u64::MAX - 9,
            Part::Lone => u64::MAX - 11,
            Part::Rare => u64::MAX - 1001,
            Part::Probers => u64::MAX - 101,
            Part::Hypothetical => u64::MAX - 1003,
            Part::Pauses => u64::MAX - 1005,
            Part::Applications => u64::MAX - 1007,
            Part::Work => u64::MAX - 1009,
            Part::Application(number) => APPLICATIONS + number,
            Part::Traffic => WORKLOADS,
            Part::Load(load) => WORKLOADS + 1 + load,
        }
    }
}

#[cfg(test)]
mod tests {
    use harness_world::dice::Dice;

    use super::*;

    #[test]
    fn parts_draw_for_themselves() {
        let drawn = |part| Dice::part(7, part).between(0, u64::MAX);
        assert_eq!(drawn(Part::Turn(1)), drawn(Part::Turn(1)));
        assert_ne!(drawn(Part::Turn(1)), drawn(Part::Turn(2)));
        assert_ne!(drawn(Part::Turn(1)), drawn(Part::Client(0)));
        assert_ne!(drawn(Part::Client(0)), Dice::new(7).between(0, u64::MAX));
    }
}
