//! Shifts and reads clocks by hand.
//!
//! `shift-clock try COMMAND [ARGUMENT ...]`; `shift-clock PID OFFSET_NS` shifts, reads and leaves it so, as a
//! killed program would; `shift-clock PID` reads; `shift-clock PID measure TIMES` shifts by an hour, reads
//! and restores so often, and tells how long the process was held; `shift-clock PID strobe TIMES` shifts by
//! an hour and restores so often, without a pause.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use harness_clock::{Shifter, available_with};

fn summary(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (median, most) = (times.get(times.len() / 2).copied(), times.last().copied());
    println!("{what}: median {:?}, most {:?}", median.unwrap_or_default(), most.unwrap_or_default());
}

fn measure(shifter: &mut Shifter, pid: u32, times: usize) -> Result<(), Box<dyn std::error::Error>> {
    let (mut held, mut widths, mut took) = (Vec::new(), Vec::new(), Vec::new());
    let (mut changes, mut readings) = (Vec::new(), Vec::new());
    for _ in 0..times {
        for offset_ns in [3_600_000_000_000, 0] {
            let begun = Instant::now();
            held.push(shifter.shift(pid, offset_ns)?.stopped);
            took.push(begun.elapsed());
            let begun = Instant::now();
            let reading = shifter.read(pid)?;
            readings.push(begun.elapsed());
            widths.push(Duration::from_nanos(reading.error_ns));
            if reading.offset_ns.abs_diff(offset_ns) > reading.error_ns {
                println!("read {} ns instead of {offset_ns} ns", reading.offset_ns);
            }
            if offset_ns != 0 {
                let begun = Instant::now();
                shifter.shift(pid, 1_000_000_000)?;
                changes.push(begun.elapsed());
            }
        }
    }
    summary("held", held);
    summary("a shift or a restoring took", took);
    summary("a change of the offset took", changes);
    summary("a reading took", readings);
    summary("width of a reading", widths);
    Ok(())
}

fn run(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    if let [word, program, rest @ ..] = arguments
        && word == "try"
    {
        let mut command = Command::new(program);
        command.args(rest);
        available_with(command)?;
        println!("clocks can be shifted here");
        return Ok(());
    }
    let pid = arguments.first().ok_or("which process?")?.parse()?;
    let mut shifter = Shifter::new();
    match arguments {
        [_, word, times] if word == "measure" => return measure(&mut shifter, pid, times.parse()?),
        [_, word, times] if word == "strobe" => {
            for _ in 0..times.parse()? {
                shifter.shift(pid, 3_600_000_000_000)?;
                shifter.shift(pid, 0)?;
            }
            return Ok(());
        }
        [_, offset, ..] => println!("held {:?}", shifter.shift(pid, offset.parse()?)?.stopped),
        _ => {}
    }
    let reading = shifter.read(pid)?;
    println!("off by {} ns, read within {} ns", reading.offset_ns, reading.error_ns);
    // Not dropped: that would restore.
    std::mem::forget(shifter);
    Ok(())
}

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shift-clock: {error}");
            ExitCode::FAILURE
        }
    }
}
