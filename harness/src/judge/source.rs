//! Where a history comes from: a file or standard input, looked at before it is read.
//!
//! The first part is read ahead, so that a model can be guessed from the functions in it; nothing is lost for
//! whoever reads afterwards. Reading counts what passes and stops when the watch rings, so that a history
//! that does not fit ends as unknown with the number of records that were read.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use checker::Interrupt;
use checker::catalogue::ModelName;
use checker::history::{EventKind, Format, Function, LoadError, Loaded, Outcome, Record, records_until};
use reports::checked::{Counted, Ended};
use workloads::Kind;

use crate::exit::Failure;

/// How much is read ahead.
const AHEAD_BYTES: u64 = 1 << 20;
/// The buffer in front of a file.
const BUFFER_BYTES: usize = 1 << 18;
/// How much of a first line is shown.
const SHOWN_BYTES: usize = 60;
/// The name of standard input.
pub const STDIN: &str = "-";

/// A reader that starts at the beginning, whatever was looked at.
pub type Reader = std::io::Chain<Cursor<Vec<u8>>, Box<dyn BufRead + Send>>;

/// A history that was opened and looked at.
pub struct Source {
    /// How it was named.
    pub name: String,
    /// The functions of its first part, in the order of their names.
    pub functions: Vec<String>,
    /// The form of its records, if it has one that is known.
    pub format: Option<String>,
    /// Whether our own recorder wrote it.
    recorded: bool,
    is_plain_json: bool,
    /// Whether the records of its first part have stamps.
    pub timed: bool,
    /// The file, where it can be read twice and holds plain lines of JSON.
    pub lines: Option<PathBuf>,
    ahead: Vec<u8>,
    rest: Box<dyn BufRead + Send>,
}

impl Source {
    /// Opens a file, or standard input, and looks at its first part until the bell rings.
    pub fn open(path: &Path, interrupt: &Interrupt) -> Result<Self, Failure> {
        if path.as_os_str() == STDIN {
            let stdin = BufReader::with_capacity(BUFFER_BYTES, std::io::stdin());
            return Self::look("standard input", Box::new(stdin), interrupt);
        }
        let unreadable = |error: std::io::Error| {
            Failure::usage(format!(
                "{} can't be read: {error}. Name a run folder, a history file, or `-` for standard input",
                path.display()
            ))
        };
        let file = File::open(path).map_err(unreadable)?;
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, file));
        let mut source = Self::look(&path.display().to_string(), reader, interrupt)?;
        if is_file && source.is_plain_json {
            source.lines = Some(path.to_owned());
        }
        Ok(source)
    }

    fn look(name: &str, mut rest: Box<dyn BufRead + Send>, interrupt: &Interrupt) -> Result<Self, Failure> {
        let mut ahead = Vec::new();
        rest.by_ref()
            .take(AHEAD_BYTES)
            .read_to_end(&mut ahead)
            .map_err(|error| Failure::usage(format!("{name} can't be read: {error}")))?;
        let mut source = Self {
            name: name.to_owned(),
            functions: Vec::new(),
            format: None,
            recorded: false,
            is_plain_json: false,
            timed: true,
            lines: None,
            ahead,
            rest,
        };
        let mut functions = BTreeSet::new();
        // The first part may end in the middle of a record, and what is wrong is found when it is read.
        if let Ok(records) = records_until(source.ahead.as_slice(), interrupt) {
            source.format = Some(records.format().as_str().to_owned());
            source.is_plain_json = records.format() == Format::JsonLines && !records.is_compressed();
            for record in records.map_while(Result::ok) {
                source.timed &= record.time.is_some();
                source.recorded |=
                    record.node.is_some() || record.session.is_some() || record.version.is_some();
                if !functions.contains(&*record.f) {
                    functions.insert(record.f.to_string());
                }
            }
        }
        source.functions = functions.into_iter().collect();
        Ok(source)
    }

    /// The workload of ours that this is a history of: one that our own recorder wrote, or one of functions
    /// that only a workload has.
    pub fn workload(&self) -> Option<Kind> {
        let functions: Option<Vec<Function>> =
            self.functions.iter().map(|name| Function::read(name).ok()).collect();
        let known = workloads::workload::functions();
        let functions = functions.filter(|functions| functions.iter().all(|f| known.contains(f)));
        let functions = functions.filter(|functions| !functions.is_empty())?;
        let modelled = ModelName::guess(self.functions.iter().map(String::as_str)).is_some();
        (self.recorded || !modelled).then(|| Kind::of_functions(functions))
    }

    /// Why no operation was found in what was read ahead, and how it begins: for whoever wonders what it is.
    pub fn why_nothing(&self, interrupt: &Interrupt) -> String {
        let why = match records_until(self.ahead.as_slice(), interrupt).map(|mut records| records.next()) {
            Ok(Some(Err(error))) | Err(error) => error,
            Ok(None | Some(Ok(_))) => LoadError::Empty,
        };
        if self.ahead.is_empty() {
            return why.to_string();
        }
        let first = self.ahead.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let first = String::from_utf8_lossy(&first[..first.len().min(SHOWN_BYTES)]).into_owned();
        let part = if crate::num::wide(self.ahead.len()) < AHEAD_BYTES { "" } else { "in its first MiB, " };
        format!("{part}{why}; it begins with {first:?}")
    }

    /// The whole, from its beginning.
    pub fn into_reader(self) -> Reader {
        Cursor::new(self.ahead).chain(self.rest)
    }
}

/// What was learnt while records passed.
#[derive(Debug, Default)]
pub struct Passed {
    /// Records and operations.
    pub counted: Counted,
    /// Whether every record had a stamp.
    pub timed: bool,
    /// Whether the watch rang while they were read.
    pub stopped: bool,
    ended: Option<Instant>,
    processes: HashSet<u64>,
    /// The records so far, for whoever can't wait until they have passed.
    read: Arc<AtomicU64>,
}

/// Records as they are read, counted, until the watch rings.
pub struct Passing<'a, I> {
    records: I,
    interrupt: Interrupt,
    passed: &'a mut Passed,
}

impl<'a, I> Passing<'a, I> {
    /// Counts `records` into `passed`.
    pub fn new(records: I, interrupt: Interrupt, passed: &'a mut Passed) -> Self {
        Self { records, interrupt, passed }
    }
}

impl<I: Iterator<Item = Result<Record, LoadError>>> Iterator for Passing<'_, I> {
    type Item = Result<Record, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.interrupt.rung().is_some() {
            self.passed.stopped = true;
            // Whoever reads must not take the part for the whole.
            return Some(Err(LoadError::Io(std::io::Error::other("reading was stopped"))));
        }
        let Some(record) = self.records.next() else {
            self.passed.ended = Some(Instant::now());
            return None;
        };
        if let Ok(record) = &record {
            self.passed.count(record);
        }
        Some(record)
    }
}

impl Passed {
    /// Nothing yet; `read` is told of each record.
    pub fn new(read: Arc<AtomicU64>) -> Self {
        Self { timed: true, read, ..Self::default() }
    }

    /// How long reading took, in milliseconds, if it came to its end.
    pub fn read_ms(&self, begun: Instant) -> Option<f64> {
        self.ended.map(|ended| ended.duration_since(begun).as_secs_f64() * 1e3)
    }

    fn count(&mut self, record: &Record) {
        let counted = &mut self.counted;
        let ended = counted.ended.get_or_insert_default();
        counted.records += 1;
        self.read.store(counted.records, Ordering::Relaxed);
        self.timed &= record.time.is_some();
        match record.kind {
            EventKind::Invoke => {
                counted.operations += 1;
                counted.unknown += 1;
                if self.processes.insert(record.process) {
                    ended.processes += 1;
                }
            }
            EventKind::Ok => ended.ok += 1,
            EventKind::Fail => ended.fail += 1,
            EventKind::Info => {}
        }
        if matches!(record.kind, EventKind::Ok | EventKind::Fail) {
            // What is answered without having been asked is refused by whoever pairs.
            counted.unknown = counted.unknown.saturating_sub(1);
        }
    }
}

/// What a loaded history holds.
pub fn counted(loaded: &Loaded) -> Counted {
    let ops = loaded.history.ops();
    let ended = |outcome| crate::num::wide(ops.iter().filter(|op| op.outcome == outcome).count());
    let processes: HashSet<u64> = ops.iter().map(|op| op.process).collect();
    Counted {
        records: loaded.events,
        left_out: loaded.skipped,
        operations: crate::num::wide(ops.len()),
        unknown: ended(Outcome::Info),
        ended: Some(Ended {
            ok: ended(Outcome::Ok),
            fail: ended(Outcome::Fail),
            processes: crate::num::wide(processes.len()),
        }),
    }
}

/// A reader that fails when the watch rings, and counts lines until then.
pub struct Stopping<R> {
    reader: R,
    interrupt: Interrupt,
    lines: Arc<AtomicU64>,
}

impl<R: BufRead> Stopping<R> {
    /// Reads from `reader`; `lines` is told of each line.
    pub fn new(reader: R, interrupt: Interrupt, lines: Arc<AtomicU64>) -> Self {
        Self { reader, interrupt, lines }
    }

    fn listen(&self) -> std::io::Result<()> {
        if self.interrupt.rung().is_some() {
            return Err(std::io::Error::other("reading was stopped"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Stopping<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let available = self.fill_buf()?;
        let taken = available.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&available[..taken]);
        self.consume(taken);
        Ok(taken)
    }
}

impl<R: BufRead> BufRead for Stopping<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.listen()?;
        self.reader.fill_buf()
    }

    fn consume(&mut self, taken: usize) {
        // What is consumed was just looked at; a reader that fails now fails again at the next look.
        let lines = self
            .reader
            .fill_buf()
            .map_or(0, |bytes| bytes[..taken.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count());
        self.lines.fetch_add(crate::num::wide(lines), Ordering::Relaxed);
        self.reader.consume(taken);
    }
}
