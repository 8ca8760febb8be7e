//! A process seen from outside, through `/proc`: who it is, its threads, where its vDSO is.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use crate::vdso::Vdso;

/// Largest vDSO image that is believed.
const MAX_IMAGE: u64 = 64 * 1024;

/// Field `index` of a `stat` line, counted from the state, which is the first behind the name in brackets.
fn stat_field(stat: &str, index: usize) -> Option<&str> {
    // The name may hold anything, brackets and spaces too.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(index)
}

/// When the process started, in clock ticks since boot: with its id, it names one process for ever. None when
/// it is gone, or dead and not yet waited for.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let is_dead = |state: Option<char>| matches!(state, None | Some('Z' | 'X' | 'x'));
    // A main thread that has ended looks dead while other threads may live on.
    if is_dead(stat_field(&stat, 0)?.chars().next())
        && threads(pid).ok()?.into_iter().all(|tid| is_dead(thread_state(pid, tid)))
    {
        return None;
    }
    stat_field(&stat, 19)?.parse().ok()
}

/// Whose child a process is.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    stat_field(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, 1)?.parse().ok()
}

/// The threads, by id.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        found.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(found)
}

/// The threads, those first that wait in a system call: they lose least by being held for a moment, and stop
/// at once.
pub(crate) fn threads_at_rest_first(pid: u32) -> io::Result<Vec<i32>> {
    let mut threads = threads(pid)?;
    threads.sort_by_cached_key(|tid| match thread_state(pid, *tid) {
        Some('S' | 'T' | 't') => 0,
        Some('R') => 1,
        _ => 2,
    });
    Ok(threads)
}

/// A thread's state, as the letter of `/proc`.
pub(crate) fn thread_state(pid: u32, tid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    stat_field(&stat, 0)?.chars().next()
}

/// Where in user space a thread will go on that is blocked in the kernel; none when it runs.
pub(crate) fn blocked_at(pid: u32, tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    let last = text.split_ascii_whitespace().last()?;
    u64::from_str_radix(last.strip_prefix("0x")?, 16).ok()
}

/// A line of `/proc/<who>/status`.
fn status(who: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{who}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// What forbids tracing, as far as it can be told from outside, and what to do about it.
pub(crate) fn advice(pid: u32) -> String {
    if let Some(tracer) = status(&pid.to_string(), "TracerPid").filter(|tracer| tracer != "0") {
        return format!("process {tracer} traces it already; end that debugger first");
    }
    let may_trace = status("self", "CapEff")
        .and_then(|set| u64::from_str_radix(&set, 16).ok())
        .is_some_and(|set| set & (1 << 19) != 0);
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if yama.trim() == "3" {
        return "kernel.yama.ptrace_scope is 3, which forbids it to everybody until the next boot".to_owned();
    }
    if !may_trace {
        let mut advice =
            "this program lacks CAP_SYS_PTRACE; run it as root, or its container with --cap-add SYS_PTRACE"
                .to_owned();
        if matches!(yama.trim(), "1" | "2") {
            advice += &format!(
                " (kernel.yama.ptrace_scope is {}; 0 permits it for one's own processes)",
                yama.trim()
            );
        }
        return advice;
    }
    if status("self", "Seccomp").is_some_and(|mode| mode == "2") {
        return "a seccomp filter or a security module refuses it although CAP_SYS_PTRACE is there; for a \
                container, --security-opt seccomp=unconfined or apparmor=unconfined"
            .to_owned();
    }
    "a security module or a user namespace forbids it although CAP_SYS_PTRACE is there".to_owned()
}

/// Whether the `/proc` that is mounted here counts processes as this process does.
pub(crate) fn proc_is_ours() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own.to_str() == Some(std::process::id().to_string().as_str()))
}

/// Where `[vdso]` is mapped, in a text of maps.
pub(crate) fn find_vdso(maps: &str) -> Option<(u64, u64)> {
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let length = end.checked_sub(start).filter(|length| (1..=MAX_IMAGE).contains(length))?;
    Some((start, length))
}

/// Our own vDSO image.
pub(crate) fn own_image() -> Option<Vec<u8>> {
    let (base, length) = find_vdso(&fs::read_to_string("/proc/self/maps").ok()?)?;
    let mut image = vec![0; usize::try_from(length).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut image, base).ok()?;
    Some(image)
}

/// This machine's vDSO, as every 64-bit process has it.
pub(crate) fn vdso() -> Result<&'static Vdso, &'static str> {
    static OWN: OnceLock<Result<Vdso, &'static str>> = OnceLock::new();
    OWN.get_or_init(|| {
        Vdso::parse(own_image().ok_or("there is no vDSO (a kernel started with vdso=0, or a sandbox)")?)
    })
    .as_ref()
    .map_err(|reason| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_confuse() {
        let stat = "7 (a) b) R) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        assert_eq!(stat_field(stat, 0), Some("S"));
        assert_eq!(stat_field(stat, 19), Some("4711"));
        assert_eq!(stat_field("7 (a", 0), None);
    }

    #[test]
    fn strange_mappings_are_no_vdso() {
        assert_eq!(find_vdso("7ff0-8ff0 r-xp 0 0:0 0   [vdso]"), Some((0x7ff0, 0x1000)));
        for maps in ["", "[vdso]", "x-y [vdso]", "8-7 [vdso]", "0-ffffffffffffffff r-xp [vdso]"] {
            assert_eq!(find_vdso(maps), None);
        }
    }
}
