//! A program that waits for any child at all, as process 1 of a container has to. In a file of its own: it
//! would take the children of other tests.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use common::{HOUR, Target, assert_reads, possible};
use harness_clock::Shifter;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// One test at a time: the reaper takes whatever child there is.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn somebody_who_takes_the_notices_away_does_not_disturb() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !possible() {
        return;
    }
    let target = Target::example(&["loops", "3", &HOUR.to_string()]);
    let (over, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let reaper = {
        let (over, taken) = (Arc::clone(&over), Arc::clone(&taken));
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let flags = WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
                if let Ok(WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..)) =
                    waitpid(Pid::from_raw(-1), Some(flags))
                {
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    };
    let mut shifter = Shifter::new();
    for _ in 0..20 {
        for offset_ns in [HOUR, 0] {
            shifter.shift(target.pid(), offset_ns).expect("a shift");
            assert_reads(&mut shifter, target.pid(), offset_ns);
        }
    }
    over.store(true, Ordering::Relaxed);
    reaper.join().expect("a reaper");
    println!("{} notices were taken away", taken.load(Ordering::Relaxed));
    target.finish_well();
}

#[test]
fn a_pidfd_tells_of_the_end_and_of_no_stop() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !possible() {
        return;
    }
    let target = Target::example(&["loops", "3", &HOUR.to_string()]);
    let pidfd = Pid::from_raw(target.pid().cast_signed()).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let pidfd = pidfd.expect("a process id").expect("a pidfd");
    let ended =
        || poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&Timespec::default())).expect("a poll") != 0;
    let mut shifter = Shifter::new();
    for _ in 0..50 {
        shifter.shift(target.pid(), HOUR).expect("a shift");
        assert!(!ended());
        shifter.shift(target.pid(), 0).expect("a shift");
        assert!(!ended());
    }
    target.finish_well();
    assert!(ended());
}
