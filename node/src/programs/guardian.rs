//! The guardian: a process that ends a command in time, whatever becomes of the one that holds.
//!
//! `node` starts it with the command behind it and tells it through its standard input, a line each, until
//! when the command may run: `until TERM KILL`, two moments in milliseconds of the boot clock, which goes on
//! while the machine sleeps. At the first the command's process group gets SIGTERM, at the second SIGKILL.
//! `end` asks for the first at once, and `end KILL` says when the second follows. When the input ends, `node`
//! is gone, so nobody moves the moments any more: the command is killed at once.
//!
//! The guardian is in a session of its own. So a terminal that stops `node` (Ctrl-Z) does not stop it, and
//! SIGKILL ends a command that is stopped too. It exits as the command did.

use std::io::BufRead;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, setsid};
use rustix::time::{ClockId, clock_gettime};

/// The clock is looked at so often, because a wait does not count the time in which the machine slept.
const LOOK: Duration = Duration::from_millis(50);

/// Milliseconds of the boot clock.
#[must_use]
pub fn boot_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let ms = now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000);
    u64::try_from(ms).unwrap_or(0)
}

/// What the guardian is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Until { term: u64, kill: u64 },
    Gone,
    Exited(i32),
}

/// Arguments of the hidden command.
#[derive(Clone, Debug, clap::Args)]
pub struct GuardianArgs {
    /// SIGTERM comes then, in milliseconds of the boot clock
    term: u64,
    /// SIGKILL comes then
    kill: u64,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the command and ends it in time. Gives its exit status.
#[must_use]
pub fn run(args: &GuardianArgs) -> ExitCode {
    // It fails where the guardian leads a group already, and then it is apart from `node` as well.
    let _ = setsid();
    let Some((program, arguments)) = args.command.split_first() else { return ExitCode::from(127) };
    let spawned = Command::new(program).args(arguments).stdin(Stdio::null()).process_group(0).spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            eprintln!("node: failed to run {program}: {error}");
            let absent = error.kind() == std::io::ErrorKind::NotFound;
            return ExitCode::from(if absent { 127 } else { 126 });
        }
    };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (tell, told) = channel();
    let listening = tell.clone();
    std::thread::spawn(move || listen(&listening));
    std::thread::spawn(move || {
        let status = child.wait().map_or(125, code);
        let _ = tell.send(Told::Exited(status));
    });
    let status = guard(&told, group, args.term, args.kill);
    // What the command started and left behind in its group must not go on either.
    signal(group, Signal::KILL);
    ExitCode::from(u8::try_from(status).unwrap_or(125))
}

fn listen(tell: &Sender<Told>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Some(told) = parse(&line)
            && tell.send(told).is_err()
        {
            return;
        }
    }
    let _ = tell.send(Told::Gone);
}

fn parse(line: &str) -> Option<Told> {
    let mut words = line.split(' ');
    match (words.next()?, words.next(), words.next()) {
        ("until", Some(term), Some(kill)) => {
            Some(Told::Until { term: term.parse().ok()?, kill: kill.parse().ok()? })
        }
        ("end", Some(kill), None) => Some(Told::Until { term: 0, kill: kill.parse().ok()? }),
        _ => None,
    }
}

fn guard(told: &Receiver<Told>, group: Option<Pid>, mut term: u64, mut kill: u64) -> i32 {
    let mut asked = false;
    loop {
        let now = boot_ms();
        if now >= kill {
            signal(group, Signal::KILL);
        } else if now >= term && !std::mem::replace(&mut asked, true) {
            signal(group, Signal::TERM);
            // A command that is stopped hears it when it goes on.
            signal(group, Signal::CONT);
        }
        let next = if asked { kill } else { term.min(kill) };
        let wait = Duration::from_millis(next.saturating_sub(now)).clamp(Duration::from_millis(1), LOOK);
        match told.recv_timeout(wait) {
            // Once asked to end, nothing gives it more time.
            Ok(Told::Until { term: later, kill: latest }) if !asked => (term, kill) = (later, latest),
            Ok(Told::Until { kill: latest, .. }) => kill = kill.min(latest),
            Ok(Told::Gone) => kill = 0,
            Ok(Told::Exited(status)) => return status,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return 125,
        }
    }
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // A group that is gone needs none.
        let _ = kill_process_group(group, signal);
    }
}

/// As a shell gives it.
fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(125)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_until_when_or_that_it_ends() {
        assert_eq!(parse("until 5 9"), Some(Told::Until { term: 5, kill: 9 }));
        assert_eq!(parse("end 9"), Some(Told::Until { term: 0, kill: 9 }));
        for bad in ["", "until", "until 5", "until a b", "end", "end x", "go"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_asked_to_end_gets_no_more_time() {
        let (tell, told) = channel();
        let now = boot_ms();
        for message in [
            Told::Until { term: now + 100_000, kill: now + 200_000 },
            Told::Until { term: 0, kill: now + 100_000 },
            Told::Until { term: now + 100_000, kill: now + 200_000 },
            Told::Exited(3),
        ] {
            tell.send(message).expect("the guardian listens");
        }
        assert_eq!(guard(&told, None, now + 100_000, now + 200_000), 3);
    }
}
