//! What `/proc` tells about processes: their state, their start, their environment, the boot they are of.
//!
//! A process id alone names nobody: it is given again. Together with the start time (in clock ticks since
//! boot) and the boot's id it names one process for ever, in one namespace of process ids: what another
//! namespace calls by the same number is somebody else, and start times are told otherwise in another
//! namespace of times. So nobody is judged by an id who is not in this process's own [`Namespaces`].

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

/// One process, for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The boot.
    pub boot_id: String,
}

impl Identity {
    /// This process. None where `/proc` tells of another namespace of process ids, as a container's does that
    /// has mounted its host's.
    pub fn own() -> Option<Self> {
        let own = std::process::id();
        (seen_as()? == own).then(|| Self::of(own))?
    }

    /// The process that has this id now.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, start_ticks: stat(pid)?.start_ticks, boot_id: boot_id()? })
    }

    /// Whether it still lives. A zombie does not.
    pub fn lives(&self) -> bool {
        boot_id().as_deref() == Some(self.boot_id.as_str())
            && stat(self.pid).is_some_and(|stat| stat.start_ticks == self.start_ticks && !stat.is_dead())
    }
}

/// The id that `/proc` has for this process.
fn seen_as() -> Option<u32> {
    fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

/// The namespaces in which a process id and a start time mean something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespaces {
    /// Of process ids: `pid:[4026531836]`.
    pub pid: String,
    /// Of boot times; empty where the kernel has none.
    pub time: String,
}

impl Namespaces {
    /// Those of this process. None where `/proc` tells of other ones: then nothing can be said of any id.
    pub fn own() -> Option<Self> {
        (seen_as()? == std::process::id()).then(|| Self::of(std::process::id()))?
    }

    /// Those of another process; none when it is gone or may not be looked at.
    pub fn of(pid: u32) -> Option<Self> {
        let link = |name: &str| {
            fs::read_link(format!("/proc/{pid}/ns/{name}")).ok().map(|link| link.display().to_string())
        };
        Some(Self { pid: link("pid")?, time: link("time").unwrap_or_default() })
    }
}

/// The user that a process runs as.
pub fn user(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|metadata| metadata.uid())
}

/// How many threads a process has; a dead one whose end nobody has noted has one.
pub fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, |tasks| tasks.flatten().count())
}

/// The parts of `/proc/<pid>/stat` that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// `R`, `S`, `D`, `T`, `Z`, ...
    pub state: char,
    /// Its parent.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// Whether nothing of it runs any more.
    pub fn is_dead(self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Whether a signal stopped it.
    pub fn is_stopped(self) -> bool {
        self.state == 'T'
    }
}

/// Looks a process up.
pub fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in parentheses may itself hold parentheses and spaces, so fields count from the last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, after) = text.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // The state is field 3 of the manual's count, the parent 4, the group 5, the start time field 22.
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let start_ticks = fields.nth(16)?.parse().ok()?;
    Some(Stat { state, parent, group, start_ticks })
}

/// The id of this boot.
pub fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// The value of a variable in a process's environment, as it was when the process started.
pub fn environment(pid: u32, name: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let prefix = format!("{name}=");
    bytes
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(prefix.as_bytes()))
        .map(|value| String::from_utf8_lossy(value).into_owned())
}

/// A handle on a process that no other process can have.
pub fn handle(pid: u32) -> anyhow::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| anyhow!("process id {pid}"))?;
    pidfd_open(pid, PidfdFlags::empty()).context("opening a process file descriptor")
}

/// Waits until a process has ended, and no longer than that. A signal may end the wait early.
pub fn wait_for_the_end(process: &OwnedFd, within: Option<Duration>) {
    let within = within.map(|within| Timespec::try_from(within).unwrap_or_default());
    let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], within.as_ref());
}

/// Whether a process has ended.
pub fn has_ended(process: &OwnedFd) -> bool {
    let at_once = Timespec::try_from(Duration::ZERO).unwrap_or_default();
    matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)), Ok(1..))
}

/// The children of a process, those included that have ended and wait for it.
pub fn children(parent: u32) -> Vec<u32> {
    let is_one = |pid: &u32| stat(*pid).is_some_and(|stat| stat.parent == parent);
    pids().into_iter().filter(is_one).collect()
}

/// The living processes of a group, with their states.
pub fn of_group(group: u32) -> Vec<(u32, Stat)> {
    let alive = |pid| Some((pid, stat(pid).filter(|stat| stat.group == group && !stat.is_dead())?));
    pids().into_iter().filter_map(alive).collect()
}

/// Every process id there is.
pub fn pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir(Path::new("/proc")) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = "77 (a) b (c) T 1 77 77 0 -1 4194560 95 0 0 0 0 0 0 0 20 0 1 0 12345 2400 170 1844";
        assert_eq!(parse_stat(text), Some(Stat { state: 'T', parent: 1, group: 77, start_ticks: 12345 }));
    }

    #[test]
    fn this_process_lives_and_one_that_started_at_another_time_does_not() {
        let own = Identity::own().expect("this process");
        assert!(own.lives());
        assert!(!Identity { start_ticks: own.start_ticks + 1, ..own.clone() }.lives());
        assert!(!Identity { boot_id: "another".to_owned(), ..own }.lives());
    }

    #[test]
    fn the_environment_of_a_process_is_read_by_name() {
        let pid = std::process::id();
        assert_eq!(environment(pid, "PATH"), std::env::var("PATH").ok());
        assert_eq!(environment(pid, "NO_SUCH_VARIABLE_OF_OURS"), None);
    }
}
