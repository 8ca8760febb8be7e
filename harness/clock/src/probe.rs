//! Whether clocks can be shifted here: tried, on a process that is there for it.

use std::process::{Child, Command, Stdio};

use crate::{Shifter, Unavailable};

/// What the clock is shifted by for the trial: an hour.
const TRIAL_NS: i64 = 3_600_000_000_000;
/// How far a reading may be off beside its own width: the host's clock may be adjusted just then.
const TOLERANCE_NS: u64 = 50_000_000;
/// The hidden argument with which the caller's executable waits until its standard input is closed.
const WAITING: &str = "clock-target";

/// Tries on a child made of the running executable, which has to wait until its standard input is closed when
/// its only argument is `clock-target`.
///
/// # Errors
///
/// Why not, and what to do.
pub fn available() -> Result<(), Unavailable> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(WAITING);
    available_with(command)
}

/// Tries on a child of another making, which should wait until its standard input is closed. It is ended
/// afterwards.
///
/// # Errors
///
/// Why not, and what to do.
pub fn available_with(mut command: Command) -> Result<(), Unavailable> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command
        .spawn()
        .map_err(|error| Unavailable(format!("no child to try on could be started: {error}")))?;
    let outcome = available_on(child.id());
    end(child);
    outcome
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    // It may be gone, or somebody else may have waited for it.
    let _ = child.kill();
    let _ = child.wait();
}

/// Tries on a child that the caller has: shifts its clock by an hour, lets it read, restores it, lets it read
/// again.
///
/// # Errors
///
/// Why not, and what to do.
pub fn available_on(child_pid: u32) -> Result<(), Unavailable> {
    let mut shifter = Shifter::new();
    for offset_ns in [TRIAL_NS, 0] {
        shifter.shift(child_pid, offset_ns)?;
        let reading = shifter.read(child_pid)?;
        if reading.offset_ns.abs_diff(offset_ns) > reading.error_ns.saturating_add(TOLERANCE_NS) {
            return Err(Unavailable(format!(
                "a child's clock was shifted by {offset_ns} ns and reads {} ns: this machine's vDSO does \
                    not follow",
                reading.offset_ns
            )));
        }
    }
    Ok(())
}
