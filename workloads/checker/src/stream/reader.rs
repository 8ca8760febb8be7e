//! A history from a file, read in one thread and checked in another.

use std::io::{BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::{Alarm, Answer, Checker, KeyAnswer};
use crate::budget::{Budget, Exhausted};
use crate::history::{
    Completeness, Event, EventKind, EventLines, Function, LoadError, MAX_LINE_BYTES, Value,
};

/// Events that are handed over at once, and how many such chunks may wait.
const CHUNK_EVENTS: usize = 1 << 12;
const WAITING_CHUNKS: usize = 4;
/// Bytes read at once.
const BLOCK_BYTES: usize = 1 << 18;

/// What was found out about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Each key's answer, keys ascending.
    pub keys: Vec<KeyAnswer>,
    /// The first violation.
    pub alarm: Option<Alarm>,
    /// Whether the file is complete; none when it was not read to its end.
    pub seal: Option<Completeness>,
    /// Records that were checked.
    pub records: u64,
    /// Why it was not read to its end.
    pub gave_up: Option<Exhausted>,
    /// Whether an answer says what a register held: without one nothing was tested.
    pub observed: bool,
    /// Whether a read was asked or answered with more than one value, which no register has.
    pub several_values: bool,
}

impl Checked {
    /// The keys that a search has to decide.
    pub fn undecided(&self) -> impl Iterator<Item = &KeyAnswer> {
        self.keys.iter().filter(|key| matches!(key.answer, Answer::NeedsSearch(_)))
    }
}

/// Checks a history of our own line form while it is read. With `threads` above 1 one reads and one checks.
///
/// # Errors
/// [`LoadError`] names the line.
pub fn check_reader<R: Read + Send>(
    reader: R,
    budget: &Budget,
    threads: usize,
) -> Result<Checked, LoadError> {
    let checker = Checker::new();
    let mut checking =
        Checking { checker, alarm: None, gave_up: None, budget, observed: false, several_values: false };
    let read = if threads > 1 {
        in_two_threads(reader, &mut checking)
    } else {
        let mut reading = Reading::new(reader);
        let mut chunk = Vec::with_capacity(CHUNK_EVENTS);
        loop {
            let more = reading.fill(&mut chunk)?;
            checking.take(&chunk)?;
            if !more || checking.gave_up.is_some() {
                break Ok(reading.lines);
            }
        }
    };
    let Checking { checker, alarm, gave_up, observed, several_values, .. } = checking;
    let seal = if gave_up.is_none() { Some(read?.finish()?) } else { None };
    let records = checker.records();
    let keys = checker.finish();
    let alarm = alarm.or_else(|| {
        let alarms = keys.iter().filter_map(|key| match &key.answer {
            Answer::Violation(alarm) => Some(alarm.clone()),
            _ => None,
        });
        alarms.min_by_key(|alarm| alarm.at_record)
    });
    Ok(Checked { keys, alarm, seal, records, gave_up, observed, several_values })
}

type Chunk = Result<Vec<Event>, LoadError>;

fn in_two_threads<R: Read + Send>(reader: R, checking: &mut Checking<'_>) -> Result<EventLines, LoadError> {
    let (full, to_check): (SyncSender<Chunk>, Receiver<Chunk>) = sync_channel(WAITING_CHUNKS);
    let (empty, to_fill) = sync_channel::<Vec<Event>>(WAITING_CHUNKS + 2);
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let mut reading = Reading::new(reader);
            loop {
                let mut chunk = to_fill.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK_EVENTS));
                let more = match reading.fill(&mut chunk) {
                    Ok(more) => more,
                    Err(error) => {
                        // What stands before the line that is wrong is checked first.
                        let _ = full.send(Ok(chunk));
                        let _ = full.send(Err(error));
                        return reading.lines;
                    }
                };
                // Nobody listens when the other thread has given up.
                if full.send(Ok(chunk)).is_err() || !more {
                    return reading.lines;
                }
            }
        });
        let mut outcome = Ok(());
        for chunk in to_check {
            outcome = chunk.and_then(|chunk| {
                checking.take(&chunk)?;
                let _ = empty.try_send(chunk);
                Ok(())
            });
            if outcome.is_err() || checking.gave_up.is_some() {
                break;
            }
        }
        let lines = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        outcome.map(|()| lines)
    })
}

struct Checking<'a> {
    checker: Checker,
    alarm: Option<Alarm>,
    gave_up: Option<Exhausted>,
    budget: &'a Budget,
    observed: bool,
    several_values: bool,
}

impl Checking<'_> {
    fn take(&mut self, chunk: &[Event]) -> Result<(), LoadError> {
        for event in chunk {
            let is_asked = event.kind == EventKind::Invoke;
            self.observed |= match event.f {
                Function::READ | Function::CAS => event.kind == EventKind::Ok,
                _ => event.version.is_some(),
            };
            self.observed |= event.f == Function::CAS && event.kind == EventKind::Fail;
            self.several_values |= event.f == Function::READ
                && (event.kind == EventKind::Ok || is_asked)
                && matches!(event.value, Value::Pair(..) | Value::List(_) | Value::Txn(_));
            let alarm = self.checker.push(event);
            let alarm = alarm.map_err(|source| LoadError::Pair { line: event.line, source })?;
            if self.alarm.is_none() {
                self.alarm = alarm;
            }
        }
        self.gave_up = self.budget.interrupt.rung();
        if self.gave_up.is_none() && self.checker.memory_bytes() > self.budget.memory_bytes {
            self.gave_up = Some(Exhausted::Memory);
        }
        Ok(())
    }
}

/// Blocks of bytes to chunks of events.
struct Reading<R> {
    reader: std::io::BufReader<R>,
    lines: EventLines,
    /// A line that began in an earlier block.
    begun: Vec<u8>,
}

impl<R: Read> Reading<R> {
    fn new(reader: R) -> Self {
        let reader = std::io::BufReader::with_capacity(BLOCK_BYTES, reader);
        Self { reader, lines: EventLines::default(), begun: Vec::new() }
    }

    /// Replaces the events in `chunk` by the next ones; false at the end.
    fn fill(&mut self, chunk: &mut Vec<Event>) -> Result<bool, LoadError> {
        chunk.clear();
        while chunk.len() < CHUNK_EVENTS {
            let available = self.reader.fill_buf()?;
            if available.is_empty() {
                if !self.begun.is_empty() {
                    let last = std::mem::take(&mut self.begun);
                    chunk.extend(self.lines.line(&last)?);
                }
                return Ok(false);
            }
            let mut taken = 0;
            while chunk.len() < CHUNK_EVENTS && taken < available.len() {
                let rest = &available[taken..];
                let newline = rest.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
                let bytes = &rest[..newline.unwrap_or(rest.len())];
                taken += bytes.len();
                if self.begun.len() + bytes.len() > MAX_LINE_BYTES {
                    let reason = format!("longer than {MAX_LINE_BYTES} bytes");
                    return Err(LoadError::Malformed { line: self.lines.number() + 1, reason });
                }
                match newline {
                    Some(_) if self.begun.is_empty() => chunk.extend(self.lines.line(bytes)?),
                    Some(_) => {
                        self.begun.extend_from_slice(bytes);
                        chunk.extend(self.lines.line(&self.begun)?);
                        self.begun.clear();
                    }
                    None => self.begun.extend_from_slice(bytes),
                }
            }
            self.reader.consume(taken);
        }
        Ok(true)
    }
}
