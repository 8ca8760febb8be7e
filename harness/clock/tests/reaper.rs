//! A program that waits for any child at all, as process 1 of a container has to. In a file of its own: it would
//! take the children of other tests.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use common::{HOUR, Target, assert_reads, possible};
use harness_clock::Shifter;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

#[test]
fn somebody_who_takes_the_notices_away_does_not_disturb() {
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
