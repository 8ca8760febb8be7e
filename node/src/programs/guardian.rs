//! Guardians: processes that end a command in time, whatever becomes of the one that holds.
//!
//! `node` starts one with the command behind it and tells it through its standard input, a line each, until
//! when the command may run: `until TERM KILL`, two moments in milliseconds of the boot clock, which goes on
//! while the machine sleeps. At the first the command gets SIGTERM, at the second SIGKILL. `end KILL` asks
//! for the first at once, and says when the second follows. When the input ends, `node` is gone, so nobody
//! moves the moments any more: the command is killed at once.
//!
//! **The command is its process and all that descends from it**, also what moved to a group or a session of
//! its own: a guardian is the subreaper of what is below it (see `family`). It exits when all of that is
//! gone, as the command's process did.
//!
//! **Guardians stand two deep, and either alone ends the command.** The outer one runs the inner one, which
//! runs the command, and hands on what it is told.
//!
//! - The outer one dies: the inner one's input ends, so it kills the command.
//! - The inner one dies: the command's process gets SIGKILL (`PR_SET_PDEATHSIG`), the outer one inherits the
//!   rest and kills it, and then ends itself by a signal, so that its parent knows.
//! - One of them is stopped: the other one's clock goes on.
//! - Both die: the command's process gets SIGKILL, and `node` inherits the rest and kills it. Where `node`
//!   dies with both, nobody is left for the rest.
//!
//! A guardian is in a session of its own. So a terminal that stops `node` (Ctrl-Z) does not stop it, and
//! SIGKILL ends a command that is stopped too. It is called `guardian`, so that `killall node` does not hit
//! it; and SIGINT, SIGTERM and SIGHUP do nothing to it, for `node` decides what they mean.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, kill_process_group,
    set_parent_process_death_signal, setsid, wait,
};
use rustix::time::{ClockId, clock_gettime};

use super::signals::Signals;
use super::{family, say};

/// The clock is looked at so often, because a wait does not count the time in which the machine slept.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// While processes are being killed, what is left is looked at so often.
const SWEEP: Duration = Duration::from_millis(5);

/// After so many rounds of killing it is said who does not end.
const STUBBORN: u32 = 200;

/// The outer guardian kills so many milliseconds after the inner one should have.
const BEHIND_MS: u64 = 100;

/// Milliseconds of the boot clock.
#[must_use]
pub fn boot_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let ms = now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000);
    u64::try_from(ms).unwrap_or(0)
}

/// This program, also where its file was replaced meanwhile.
pub(super) fn own_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// A message to the guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Until {
        term: u64,
        kill: u64,
    },
    Gone,
    /// The process that it started ended: with this status, or by a signal.
    Ended(Exit),
    /// Nothing is left of all that it started.
    Childless,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Status(i32),
    Signal(i32),
}

/// Arguments of the hidden command.
#[derive(Clone, Debug, clap::Args)]
pub struct GuardianArgs {
    /// Stand outside of another guardian
    #[arg(long)]
    outer: bool,
    /// SIGTERM comes then, in milliseconds of the boot clock
    term: u64,
    /// SIGKILL comes then
    kill: u64,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Arguments of the hidden command that becomes another.
#[derive(Clone, Debug, clap::Args)]
pub struct WardArgs {
    /// The process with which it dies
    guardian: i32,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Becomes the command, as a process that is killed when its guardian ends.
///
/// The guardian's main thread starts it and lives as long as the guardian: the signal comes when the *thread*
/// ends that made the process.
#[must_use]
pub fn become_ward(args: &WardArgs) -> ExitCode {
    // No valid signal is refused.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(args.guardian) {
        // It died before the signal was asked for.
        return ExitCode::from(137);
    }
    let Some((program, arguments)) = args.command.split_first() else { return ExitCode::from(127) };
    let error = Command::new(program).args(arguments).exec();
    say(format_args!("failed to run {program}: {error}"));
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Runs the command and ends it in time. Gives its exit status when nothing of it is left.
#[must_use]
pub fn run(args: &GuardianArgs) -> ExitCode {
    // It fails where the guardian leads a group already, and then it is apart from `node` as well.
    let _ = setsid();
    let _ = rustix::thread::set_name(c"guardian");
    let _signals = unmoved();
    if let Err(error) = family::adopt() {
        say(format_args!("failed to become the parent of what the command leaves behind: {error}"));
        return ExitCode::from(super::FAILED);
    }
    let mut child = match ward(args).spawn() {
        Ok(child) => child,
        Err(error) => {
            say(format_args!("failed to start the command's guardian: {error}"));
            return ExitCode::from(super::FAILED);
        }
    };
    let inner = child.stdin.take();
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (tell, told) = channel();
    let (pass, passed) = channel();
    let listening = tell.clone();
    std::thread::spawn(move || listen(&listening, &pass));
    std::thread::spawn(move || hand_on(&passed, inner));
    std::thread::spawn(move || reap(pid, &tell));
    let behind = if args.outer { BEHIND_MS } else { 0 };
    let mut ward = Ward { pid, is_guardian: args.outer, ended: None };
    guard(&told, behind, args.term, args.kill, &mut |act| ward.act(act));
    match ward.ended {
        Some(Exit::Status(status)) => ExitCode::from(u8::try_from(status).unwrap_or(super::FAILED)),
        // As a shell gives it.
        Some(Exit::Signal(signal)) if !args.outer => {
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(super::FAILED))
        }
        // The inner guardian did not end by itself, and neither does this one.
        Some(Exit::Signal(_)) | None => {
            let _ = kill_process(getpid(), Signal::KILL);
            ExitCode::from(super::FAILED)
        }
    }
}

/// SIGINT, SIGTERM and SIGHUP do nothing as long as this is held. What is started has them as usual.
fn unmoved() -> Option<(tokio::runtime::Runtime, Signals)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let signals = {
        let _within = runtime.enter();
        Signals::listen().ok()?
    };
    Some((runtime, signals))
}

/// What this guardian runs.
fn ward(args: &GuardianArgs) -> Command {
    let mut ward = Command::new(own_program());
    ward.arg0("node").process_group(0);
    if args.outer {
        ward.arg("guardian").args([args.term.to_string(), args.kill.to_string()]).stdin(Stdio::piped());
    } else {
        ward.arg("ward").arg(getpid().as_raw_nonzero().to_string()).stdin(Stdio::null());
    }
    ward.arg("--").args(&args.command);
    ward
}

fn listen(tell: &Sender<Message>, pass: &Sender<String>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Some(told) = parse(&line) {
            if tell.send(told).is_err() {
                return;
            }
            // Nobody reads it where there is no inner guardian.
            let _ = pass.send(line);
        }
    }
    let _ = tell.send(Message::Gone);
}

/// Tells the inner guardian. One that does not read holds up nothing but this thread.
fn hand_on(passed: &Receiver<String>, to: Option<std::process::ChildStdin>) {
    let Some(mut to) = to else { return };
    while let Ok(line) = passed.recv() {
        // Only the newest counts.
        let line = passed.try_iter().last().unwrap_or(line);
        if writeln!(to, "{line}").is_err() {
            return;
        }
    }
}

/// Takes the exit statuses of all whose parent this process is or becomes.
fn reap(first: Option<Pid>, tell: &Sender<Message>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == first => {
                if let Some(exit) = exit_of(status) {
                    let _ = tell.send(Message::Ended(exit));
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                let _ = tell.send(Message::Childless);
                return;
            }
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status.exit_status().map(Exit::Status).or_else(|| status.terminating_signal().map(Exit::Signal))
}

fn parse(line: &str) -> Option<Message> {
    let mut words = line.split(' ');
    match (words.next()?, words.next(), words.next()) {
        ("until", Some(term), Some(kill)) => {
            Some(Message::Until { term: term.parse().ok()?, kill: kill.parse().ok()? })
        }
        ("end", Some(kill), None) => Some(Message::Until { term: 0, kill: kill.parse().ok()? }),
        _ => None,
    }
}

/// What a guardian does, or learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// All must be asked to end.
    Ask,
    /// All must be killed, for this round.
    Kill(u32),
    /// The process that it started ended.
    Ended(Exit),
}

/// What a guardian started, and all that came of it.
#[derive(Debug)]
struct Ward {
    /// The process that it started, which leads a group.
    pid: Option<Pid>,
    /// That process is the inner guardian.
    is_guardian: bool,
    /// How it ended.
    ended: Option<Exit>,
}

impl Ward {
    fn act(&mut self, act: Act) {
        match act {
            // Below an outer guardian that is the inner one's task.
            Act::Ask if self.is_guardian => {}
            Act::Ask => self.ask(),
            Act::Kill(round) => self.kill(round),
            Act::Ended(exit) => self.ended = Some(exit),
        }
    }

    /// The group, as long as its number can't be another one's.
    fn group(&self) -> Option<Pid> {
        self.pid.filter(|_| self.ended.is_none())
    }

    fn ask(&self) {
        // What is gone needs no signal. What is stopped hears it when it goes on.
        let group = self.group();
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::TERM);
            let _ = kill_process_group(group, Signal::CONT);
        }
        let group = group.map(|group| group.as_raw_nonzero().get());
        for other in family::descendants().unwrap_or_default() {
            if Some(other.group) != group {
                let _ = kill_process(other.pid, Signal::TERM);
                let _ = kill_process(other.pid, Signal::CONT);
            }
        }
    }

    fn kill(&self, round: u32) {
        if let Some(group) = self.group() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let left = family::descendants().unwrap_or_default();
        for process in &left {
            let _ = kill_process(process.pid, Signal::KILL);
        }
        if round == STUBBORN
            && !self.is_guardian
            && let Some(process) = left.first()
        {
            let pid = process.pid.as_raw_nonzero();
            say(format_args!(
                "process {pid}, which the command started, is not ended by SIGKILL: waiting for it"
            ));
        }
    }
}

/// Goes on until nothing is left of what was started.
fn guard(told: &Receiver<Message>, behind: u64, mut term: u64, kill: u64, act: &mut dyn FnMut(Act)) {
    let mut kill = kill.saturating_add(behind);
    let mut asked = false;
    let mut rounds = 0;
    loop {
        let now = boot_ms();
        if now >= kill {
            rounds += 1;
            act(Act::Kill(rounds));
        } else if now >= term && !std::mem::replace(&mut asked, true) {
            act(Act::Ask);
        }
        let next = if asked { kill } else { term.min(kill) };
        let wait = match now >= kill {
            true if rounds < STUBBORN => SWEEP,
            true => LOOK_EVERY,
            false => {
                Duration::from_millis(next.saturating_sub(now)).clamp(Duration::from_millis(1), LOOK_EVERY)
            }
        };
        match told.recv_timeout(wait) {
            Ok(Message::Until { term: later, kill: latest }) => {
                let latest = latest.saturating_add(behind);
                // Once asked to end, nothing gives it more time.
                (term, kill) = if asked { (term, kill.min(latest)) } else { (later, latest) };
            }
            Ok(Message::Ended(exit)) => {
                act(Act::Ended(exit));
                // What the command left behind must not go on either.
                (asked, kill) = (true, 0);
            }
            Ok(Message::Gone) => (asked, kill) = (true, 0),
            Ok(Message::Childless) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_until_when_or_that_it_ends() {
        assert_eq!(parse("until 5 9"), Some(Message::Until { term: 5, kill: 9 }));
        assert_eq!(parse("end 9"), Some(Message::Until { term: 0, kill: 9 }));
        for bad in ["", "until", "until 5", "until a b", "end", "end x", "go"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_asked_to_end_gets_no_more_time() {
        let (tell, told) = channel();
        let now = boot_ms();
        for message in [
            Message::Until { term: now + 100_000, kill: now + 200_000 },
            Message::Until { term: 0, kill: now + 100_000 },
            Message::Until { term: now + 100_000, kill: now + 200_000 },
            Message::Ended(Exit::Status(3)),
            Message::Childless,
        ] {
            tell.send(message).expect("the guardian listens");
        }
        let mut acts = Vec::new();
        guard(&told, 0, now + 100_000, now + 200_000, &mut |act| acts.push(act));
        assert_eq!(acts, [Act::Ask, Act::Ended(Exit::Status(3)), Act::Kill(1)]);
    }

    #[test]
    fn a_guardian_kills_until_nothing_is_left_when_its_ward_or_its_parent_is_gone() {
        for first in [Message::Ended(Exit::Signal(9)), Message::Gone] {
            let (tell, told) = channel();
            tell.send(first).expect("the guardian listens");
            let mut kills = 0;
            guard(&told, BEHIND_MS, u64::MAX, u64::MAX, &mut |act| {
                if let Act::Kill(round) = act {
                    kills = round;
                    if round == 3 {
                        tell.send(Message::Childless).expect("the guardian listens");
                    }
                }
            });
            assert_eq!(kills, 3);
        }
    }
}
