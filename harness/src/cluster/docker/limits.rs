//! What a container of a run may take of the machine.

/// What a container may hold in memory. The official image of Apache ZooKeeper takes half of it.
pub(super) const MEMORY_BYTES: i64 = 2 << 30;
/// Processes and threads that a container may have.
pub(super) const MOST_PROCESSES: i64 = 4_096;
