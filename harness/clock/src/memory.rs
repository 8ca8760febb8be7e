//! The memory of a target: read by its process id, written through a file or through a thread that is held.
//!
//! `/proc/<pid>/mem` takes writes into code, at any time. But it is a file, and belongs to the target's user:
//! with CAP_SYS_PTRACE and nothing else, root may trace another user's process and yet not open it; and a
//! kernel may be told to refuse such writes. Then memory is written word by word through a held thread
//! (`PTRACE_POKEDATA`), and read with `process_vm_readv`.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::error::ClockError;
use crate::target::{advice, find_vdso, start_ticks};

/// How often it is looked for a vDSO.
const OPENINGS: u32 = 100;
/// How long is waited in between.
const OPENING_PAUSE: Duration = Duration::from_millis(1);
/// What a thread is written through at a time, in bytes.
const WORD: usize = 8;

/// The memory of a process, and where its vDSO is in it.
#[derive(Debug)]
pub(crate) struct Memory {
    pid: u32,
    /// None where it may not be opened. Belongs to one program: when the process executes another one, reads
    /// and writes fail.
    file: Option<File>,
    /// A thread of the process that is held.
    through: Cell<Option<i32>>,
    /// The address of the vDSO.
    pub(crate) base: u64,
}

impl Memory {
    /// Opens it. Needs the same rights as tracing. A process that is just executing its program is waited
    /// for.
    pub(crate) fn open(pid: u32) -> Result<Self, ClockError> {
        for _ in 0..OPENINGS {
            if let Some(memory) = Self::try_open(pid)? {
                return Ok(memory);
            }
            std::thread::sleep(OPENING_PAUSE);
        }
        match start_ticks(pid) {
            Some(_) => Err(ClockError::Unsupported {
                pid,
                reason: "it has no vDSO, or a strange one, or its main thread has ended",
            }),
            None => Err(ClockError::Gone { pid }),
        }
    }

    /// None when no vDSO is mapped: the kernel does that late in an `execve`.
    fn try_open(pid: u32) -> Result<Option<Self>, ClockError> {
        // First the memory, then the maps: should another program be executed in between, they don't fit, and
        // that memory is gone.
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem")).ok();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))
            .map_err(|source| fail(pid, "read the mappings", source))?;
        Ok(find_vdso(&maps).map(|(base, _)| Self { pid, file, through: Cell::new(None), base }))
    }

    /// Whether it can be written while nobody is held.
    pub(crate) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// From now on this thread is held.
    pub(crate) fn set_through(&self, tid: i32) {
        self.through.set(Some(tid));
    }

    /// Reads at an address.
    pub(crate) fn read(&self, bytes: &mut [u8], address: u64) -> Result<(), ClockError> {
        let wanted = bytes.len();
        match self.try_read(bytes, address) {
            Ok(length) if length == wanted => Ok(()),
            // A read of nothing is how the kernel tells that this memory is no more.
            Ok(_) => Err(ClockError::Gone { pid: self.pid }),
            Err(source) => Err(fail(self.pid, "read the memory", source)),
        }
    }

    /// Reads at an address as much as there is.
    pub(crate) fn read_some(&self, bytes: &mut [u8], address: u64) -> usize {
        self.try_read(bytes, address).unwrap_or_default()
    }

    fn try_read(&self, bytes: &mut [u8], address: u64) -> io::Result<usize> {
        if let Some(file) = &self.file {
            return file.read_at(bytes, address);
        }
        let there = RemoteIoVec { base: usize::try_from(address).unwrap_or_default(), len: bytes.len() };
        let process = Pid::from_raw(self.pid.cast_signed());
        Ok(process_vm_readv(process, &mut [IoSliceMut::new(bytes)], &[there])?)
    }

    /// Writes at an address, into code too, and looks whether it is there.
    pub(crate) fn write(&self, bytes: &[u8], address: u64) -> Result<(), ClockError> {
        let written = self.file.as_ref().is_some_and(|file| file.write_all_at(bytes, address).is_ok());
        if !written {
            self.write_words(bytes, address)?;
        }
        let mut found = vec![0; bytes.len()];
        self.read(&mut found, address)?;
        if found == bytes { Ok(()) } else { Err(ClockError::Foreign { pid: self.pid }) }
    }

    /// Writes whole words; what a word has beside `bytes` is written back as it was.
    fn write_words(&self, bytes: &[u8], address: u64) -> Result<(), ClockError> {
        let error = |source| fail(self.pid, "write the memory", source);
        let thread = self.through.get().ok_or_else(|| error(io::ErrorKind::PermissionDenied.into()))?;
        let before = usize::try_from(address % WORD as u64).unwrap_or_default();
        let mut words = vec![0; (before + bytes.len()).next_multiple_of(WORD)];
        let first = address - before as u64;
        self.read(&mut words, first)?;
        words[before..before + bytes.len()].copy_from_slice(bytes);
        for (word, at) in words.chunks_exact(WORD).zip((first..).step_by(WORD)) {
            let value = i64::from_le_bytes(word.try_into().unwrap_or_default());
            let at = std::ptr::without_provenance_mut(usize::try_from(at).unwrap_or_default());
            ptrace::write(Pid::from_raw(thread), at, value).map_err(|errno| error(errno.into()))?;
        }
        Ok(())
    }
}

fn fail(pid: u32, action: &'static str, source: io::Error) -> ClockError {
    match source.kind() {
        io::ErrorKind::NotFound => ClockError::Gone { pid },
        io::ErrorKind::PermissionDenied => ClockError::Denied { pid, advice: advice(pid) },
        _ if source.raw_os_error() == Some(nix::libc::ESRCH) => ClockError::Gone { pid },
        _ => ClockError::Io { pid, action, source },
    }
}
