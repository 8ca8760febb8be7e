//! Shifting, changing and restoring: what a target sees, and what it must never see.

mod common;

use std::process::Command;

use common::{HOUR, Target, assert_reads, possible, state, until};
use harness_clock::{ClockError, MAX_OFFSET_NS, Shifter, available_on};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).expect("a living target");
}

#[test]
fn a_shifted_clock_is_read_shifted_and_restored_it_is_true() {
    if !possible() {
        return;
    }
    let target = Target::example(&["idle", "3"]);
    let mut shifter = Shifter::new();
    assert_reads(&mut shifter, target.pid(), 0);
    for offset_ns in [HOUR, -HOUR, 1, -1_999_999_999, MAX_OFFSET_NS, -40 * 8760 * HOUR, 0, 5 * HOUR, 0] {
        shifter.shift(target.pid(), offset_ns).expect("a shift");
        assert_reads(&mut shifter, target.pid(), offset_ns);
    }
    available_on(target.pid()).expect("what was done by hand is done again");
    target.finish();
}

#[test]
fn a_change_from_one_offset_to_another_stops_nobody() {
    if !possible() {
        return;
    }
    let target = Target::example(&["idle", "3"]);
    let mut shifter = Shifter::new();
    assert!(!shifter.shift(target.pid(), HOUR).expect("a shift").stopped.is_zero());
    for offset_ns in 1..100 {
        assert!(shifter.shift(target.pid(), offset_ns * HOUR).expect("a change").stopped.is_zero());
        assert_reads(&mut shifter, target.pid(), offset_ns * HOUR);
    }
    assert!(!shifter.shift(target.pid(), 0).expect("a restoring").stopped.is_zero());
    assert!(shifter.shift(target.pid(), 0).expect("nothing to do").stopped.is_zero());
}

#[test]
fn threads_that_ask_without_pause_see_one_of_two_times_and_nothing_else() {
    if !possible() {
        return;
    }
    let other = 7 * HOUR + 123_456_789;
    let target = Target::example(&["loops", "6", &HOUR.to_string(), &(-other).to_string()]);
    let mut shifter = Shifter::new();
    for round in 0..300 {
        for offset_ns in [HOUR, -other, HOUR, 0] {
            shifter.shift(target.pid(), offset_ns).expect("a shift");
            if round % 50 == 0 {
                assert_reads(&mut shifter, target.pid(), offset_ns);
            }
        }
    }
    target.finish_well();
}

#[test]
fn sleeps_and_the_monotonic_clock_are_as_ever() {
    if !possible() {
        return;
    }
    let target = Target::example(&["sleeps", "6"]);
    let mut shifter = Shifter::new();
    for round in 0..200 {
        shifter.shift(target.pid(), if round % 2 == 0 { HOUR } else { -HOUR }).expect("a shift");
        assert_reads(&mut shifter, target.pid(), if round % 2 == 0 { HOUR } else { -HOUR });
        shifter.shift(target.pid(), 0).expect("a restoring");
    }
    target.finish_well();
}

#[test]
fn a_stopped_process_is_shifted_and_read_and_stays_stopped() {
    if !possible() {
        return;
    }
    let target = Target::example(&["loops", "4", &HOUR.to_string()]);
    let mut shifter = Shifter::new();
    for _ in 0..20 {
        signal(target.pid(), Signal::SIGSTOP);
        until("it is stopped", || state(target.pid()) == 'T');
        for offset_ns in [HOUR, 0] {
            shifter.shift(target.pid(), offset_ns).expect("a shift");
            assert_reads(&mut shifter, target.pid(), offset_ns);
            until("it is stopped again", || state(target.pid()) == 'T');
        }
        signal(target.pid(), Signal::SIGCONT);
        until("it goes on", || state(target.pid()) != 'T');
    }
    target.finish_well();
}

#[test]
fn a_process_that_ends_in_the_middle_is_gone_and_nothing_worse() {
    if !possible() {
        return;
    }
    let mut shifter = Shifter::new();
    for round in 0..40_u32 {
        let mut target = Target::example(&["loops", "4", &HOUR.to_string()]);
        let pid = target.pid();
        let killer = std::thread::spawn(move || {
            for _ in 0..round * 2_000 {
                std::hint::spin_loop();
            }
            signal(pid, Signal::SIGKILL);
        });
        let outcome = loop {
            let outcome =
                shifter.shift(pid, HOUR).and_then(|_| shifter.read(pid)).and_then(|_| shifter.shift(pid, 0));
            if outcome.is_err() {
                break outcome;
            }
        };
        killer.join().expect("a killer");
        assert!(matches!(outcome, Err(ClockError::Gone { .. })), "{outcome:?}");
        // Nobody keeps its threads from being waited for.
        target.child.wait().expect("it ends");
    }
}

#[test]
fn a_shifter_that_is_dropped_leaves_nothing_shifted() {
    if !possible() {
        return;
    }
    let (first, second) = (Target::example(&["idle"]), Target::example(&["idle", "2"]));
    let mut shifter = Shifter::new();
    shifter.shift(first.pid(), HOUR).expect("a shift");
    shifter.shift(second.pid(), -HOUR).expect("a shift");
    drop(shifter);
    let mut other = Shifter::new();
    assert_reads(&mut other, first.pid(), 0);
    assert_reads(&mut other, second.pid(), 0);
}

#[test]
fn what_a_killed_program_left_is_taken_over() {
    if !possible() {
        return;
    }
    let target = Target::example(&["loops", "2", &HOUR.to_string(), &(2 * HOUR).to_string()]);
    let mut lost = Shifter::new();
    lost.shift(target.pid(), HOUR).expect("a shift");
    std::mem::forget(lost);
    let mut shifter = Shifter::new();
    assert_reads(&mut shifter, target.pid(), HOUR);
    shifter.shift(target.pid(), 2 * HOUR).expect("a change");
    assert_reads(&mut shifter, target.pid(), 2 * HOUR);
    shifter.shift(target.pid(), 0).expect("a restoring");
    assert_reads(&mut shifter, target.pid(), 0);
    target.finish_well();
}

#[test]
fn what_can_not_be_is_refused_with_a_reason() {
    let mut shifter = Shifter::new();
    let own = std::process::id();
    assert!(matches!(shifter.shift(own, HOUR), Err(ClockError::Unsupported { .. })));
    assert!(matches!(shifter.shift(u32::MAX, HOUR), Err(ClockError::Gone { .. })));
    assert!(matches!(shifter.read(0), Err(ClockError::Gone { .. })));
    assert!(matches!(shifter.shift(1, i64::MIN), Err(ClockError::TooFar { .. })));
    let missing =
        harness_clock::available_with(Command::new("/nowhere/at/all")).expect_err("no such program");
    assert!(missing.to_string().contains("no child"), "{missing}");
}

#[test]
fn a_process_that_is_traced_by_somebody_else_is_refused() {
    if !possible() {
        return;
    }
    let target = Target::example(&["idle"]);
    let thread = Pid::from_raw(target.pid().cast_signed());
    nix::sys::ptrace::seize(thread, nix::sys::ptrace::Options::empty()).expect("seized");
    let refused = Shifter::new().shift(target.pid(), HOUR).expect_err("it is taken");
    assert!(refused.to_string().contains("traces it already"), "{refused}");
}
