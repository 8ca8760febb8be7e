//! Targets in C: what the patch answers, line by line, and what signals do to it.

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{HOUR, Target, agrees, assert_reads, possible};
use harness_clock::{ClockError, MAX_OFFSET_NS, Shifter};

/// Compiles a target; none, with the reason printed, where there is no compiler.
fn compiled(name: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/targets/{name}.c"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let outcome =
        Command::new("cc").args(["-O2", "-pthread", "-o"]).args([&program, &source]).arg("-ldl").status();
    match outcome {
        Ok(status) if status.success() => Some(program),
        other => {
            println!("skipped: no target could be compiled with cc ({other:?})");
            None
        }
    }
}

fn started(name: &str, arguments: &[String]) -> Option<Target> {
    let program = compiled(name)?;
    let mut command = Command::new(&program);
    command.args(arguments);
    let mut target = Target::of(command);
    assert_eq!(target.line(), "ready");
    // It runs: its file is no longer needed.
    let _ = std::fs::remove_file(program);
    Some(target)
}

#[test]
fn every_clock_answers_as_the_kernel_would_at_that_time() {
    if !possible() {
        return;
    }
    let Some(mut target) = started("listing", &[]) else { return };
    let mut shifter = Shifter::new();
    let offsets = [0, HOUR, -HOUR, 1, -1, 0, 999_999_999, -1_999_999_999, MAX_OFFSET_NS, -MAX_OFFSET_NS, 0];
    for offset_ns in offsets {
        shifter.shift(target.pid(), offset_ns).expect("a shift");
        assert_reads(&mut shifter, target.pid(), offset_ns);
        let input = target.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{offset_ns} {}", i32::from(offset_ns != 0)).expect("a question");
        assert_eq!(target.line(), "same", "with {offset_ns}");
    }
}

#[test]
fn no_signal_is_lost_or_changed() {
    if !possible() {
        return;
    }
    let seconds = HOUR / 1_000_000_000;
    let Some(target) = started("signals", &[seconds.to_string(), (-2 * seconds).to_string()]) else { return };
    let mut shifter = Shifter::new();
    let (mut shifts, mut readings) = (0, 0);
    for _ in 0..150 {
        for offset_ns in [HOUR, -2 * HOUR, 0] {
            // Under so many signals there may be no good moment; but it must be said, and nothing may break.
            match shifter.shift(target.pid(), offset_ns) {
                Ok(_) => {}
                Err(ClockError::Busy { .. }) => continue,
                Err(error) => panic!("{error}"),
            }
            shifts += 1;
            match shifter.read(target.pid()) {
                Ok(reading) => {
                    readings += 1;
                    assert!(agrees(reading, offset_ns), "{reading:?} instead of {offset_ns}");
                }
                Err(ClockError::Busy { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    println!("{shifts} of 450 shifts, {readings} readings");
    assert!(shifts > 200 && readings > 200, "most of the time there is a moment");
    target.finish_well();
}
