//! The calm of a planned run: quick wires, a quick disk, and nothing that is not asked for.
//!
//! Every field is named, so that a new one of [`Drawn`] asks to be thought of here.

use crate::drawn::Drawn;
use harness_core::fault::SwarmFault;
use harness_core::virtual_ensemble::Setting;
use harness_world::dice::Chance;

/// A direction's usual delay, in microseconds.
const LINK_US: (u64, u64) = (100, 400);
/// What is added to it for each message, at most.
const JITTER_US: u64 = 100;
/// What an fsync usually takes.
const FSYNC_US: (u64, u64) = (1_000, 2_000);
/// The timer's lateness, at most.
const TICK_JITTER_US: u64 = 1_000;
/// The bundled node's own: tickTime, initLimit and snapCount.
const TICK_TIME_MS: u64 = 2_000;
const INIT_LIMIT: u32 = 10;
const SNAP_COUNT: u64 = 100_000;
/// The log in files that are small enough to be copied at a crash.
const PREALLOCATE_BYTES: u64 = 16 << 10;
const ROLL_BYTES: u64 = 1 << 20;

const REAPING_MS: u64 = 60_000;

/// The calm options of a setting.
pub(super) fn of(setting: &Setting) -> Drawn {
    Drawn {
        seed: setting.seed,
        members: setting.members,
        observers: setting.observers,
        peer_timeout_ms: setting.peer_timeout_ms,
        tick_time_ms: TICK_TIME_MS,
        init_limit: INIT_LIMIT,
        snap_count: SNAP_COUNT,
        journal_entries: node_core::JOURNAL_ENTRIES,
        last_counter: node_wire::ids::Zxid::LAST_COUNTER,
        pace_ppm: 0,
        siege: false,
        preallocate_bytes: PREALLOCATE_BYTES,
        roll_bytes: ROLL_BYTES,
        link_us: LINK_US,
        jitter_us: JITTER_US,
        spike: Chance::NEVER,
        spike_us: 0,
        fsync_us: FSYNC_US,
        stall: Chance::NEVER,
        stall_us: 0,
        tick_jitter_us: TICK_JITTER_US,
        codec: Chance::NEVER,
        told_late: Chance::NEVER,
        late_us: 0,
        abrupt: Chance::NEVER,
        power: Chance::NEVER,
        mid_step: Chance::NEVER,
        refuse: Chance::NEVER,
        fault_every_us: u64::MAX / 4,
        fault_us: 0,
        weights: [0; SwarmFault::ALL.len()],
        warmup_us: 0,
        chaos_us: 0,
        clients: 0,
        keys: 1,
        read_percent: 40,
        cas_percent: 30,
        think_us: 0,
        patient_us: 0,
        op_timeout_us: setting.operation_timeout_us,
        session_timeout_ms: setting.session_timeout_ms,
        visitors: 0,
        watchers: 0,
        local: false,
        read_only: false,
        limits: false,
        changes: false,
        operators: 0,
        strangers: false,
        alone: false,
        turnover_us: 0,
        probers: 0,
        probing_us: 0,
        reaping_ms: REAPING_MS,
        mortal_ms: 0,
        rare: crate::rare::Rare::default(),
        applications: 0,
        application_timeout_ms: 0,
        action_us: 0,
        locks: false,
        unit_us: 0,
    }
}
