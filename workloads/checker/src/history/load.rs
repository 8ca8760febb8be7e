//! Reads a history from lines, as a stream, and says whether it is complete.
//!
//! A history that this project recorded ends with a trailer. Without it (the run was killed, the file was cut or
//! changed) the history still shows violations, but can't show their absence: [`Loaded::limit`] turns valid into
//! unknown. A history from elsewhere, in the same line form but without any field of ours, has no trailer and is
//! taken as it is.

use std::io::BufRead;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Event, History, PairError, Pairing};
use crate::verdict::Verdict;

/// Longest line that is read.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Why a history could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The reader failed.
    #[error("read the history: {0}")]
    Io(#[from] std::io::Error),
    /// A line is not an event.
    #[error("line {line}: {reason}")]
    Malformed {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A line contradicts those before it.
    #[error("line {line}: {source}")]
    Pair {
        /// The line's number, from 1.
        line: u64,
        /// The contradiction.
        source: PairError,
    },
    /// No line at all.
    #[error("the history is empty")]
    Empty,
}

/// A history and what is known about its completeness.
#[derive(Debug)]
pub struct Loaded {
    /// The operations.
    pub history: History,
    /// Whether nothing is missing: the trailer is there and fits, or none was to be expected.
    pub complete: bool,
    /// What is missing or wrong, when it is not complete.
    pub problem: Option<String>,
    /// Whether this is a history from elsewhere, without trailer and without fields of ours.
    pub plain: bool,
    /// Lines read, without the trailer.
    pub events: u64,
}

impl Loaded {
    /// What may be claimed from a verdict on this history: without completeness never valid.
    #[must_use]
    pub fn limit(&self, verdict: Verdict) -> Verdict {
        if self.complete { verdict } else { verdict.merge(Verdict::Unknown) }
    }
}

#[derive(Deserialize)]
struct Trailer {
    trailer: bool,
    count: u64,
    sha256: String,
}

#[derive(Default)]
struct Loading {
    pairing: Pairing,
    hash: Sha256,
    events: u64,
    recorded: bool,
    trailer: Option<Trailer>,
    problem: Option<String>,
}

/// Reads a whole history.
///
/// # Errors
/// [`LoadError`] names the line. A last line that is cut short is no error but a missing trailer.
pub fn load<R: BufRead>(mut reader: R) -> Result<Loaded, LoadError> {
    let mut loading = Loading::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        if read_line(&mut reader, &mut line, number)? == 0 {
            break;
        }
        loading.line(&line, number)?;
    }
    loading.finish()
}

/// `read_until` with a limit, so that a file without newlines is refused before it fills the memory.
fn read_line<R: BufRead>(reader: &mut R, line: &mut Vec<u8>, number: u64) -> Result<usize, LoadError> {
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(line.len());
        }
        let newline = available.iter().position(|&byte| byte == b'\n');
        let taken = newline.map_or(available.len(), |at| at + 1);
        if line.len() + taken > MAX_LINE_BYTES {
            let reason = format!("longer than {MAX_LINE_BYTES} bytes");
            return Err(LoadError::Malformed { line: number, reason });
        }
        line.extend_from_slice(&available[..taken]);
        reader.consume(taken);
        if newline.is_some() {
            return Ok(line.len());
        }
    }
}

impl Loading {
    fn line(&mut self, bytes: &[u8], number: u64) -> Result<(), LoadError> {
        let text = bytes.trim_ascii();
        if text.is_empty() {
            self.hash.update(bytes);
            return Ok(());
        }
        if self.trailer.is_some() {
            let reason = "nothing may follow the trailer".to_owned();
            return Err(LoadError::Malformed { line: number, reason });
        }
        let malformed = |error: serde_json::Error| {
            // The position inside one line is the column; the line that serde counts is always 1.
            let reason = error.to_string().replace(" at line 1 column", " at column");
            LoadError::Malformed { line: number, reason }
        };
        if text.starts_with(b"{\"trailer\"") {
            self.trailer = match serde_json::from_slice::<Trailer>(text) {
                Ok(trailer) if trailer.trailer => Some(trailer),
                Err(_) if !bytes.ends_with(b"\n") => {
                    self.cut_short(number);
                    return Ok(());
                }
                Ok(_) => {
                    let reason = "the trailer does not say that it is one".to_owned();
                    return Err(LoadError::Malformed { line: number, reason });
                }
                Err(error) => return Err(malformed(error)),
            };
            return Ok(());
        }
        let mut event: Event = match serde_json::from_slice(text) {
            Ok(event) => event,
            Err(_) if !bytes.ends_with(b"\n") => {
                self.cut_short(number);
                return Ok(());
            }
            Err(error) => return Err(malformed(error)),
        };
        self.hash.update(bytes);
        event.index = self.events;
        self.events += 1;
        self.recorded |= event.is_recorded();
        self.pairing.push(event).map_err(|source| LoadError::Pair { line: number, source })
    }

    fn cut_short(&mut self, number: u64) {
        self.problem = Some(format!("line {number}, the last, is cut short"));
    }

    fn finish(self) -> Result<Loaded, LoadError> {
        if self.events == 0 {
            return Err(LoadError::Empty);
        }
        let plain = self.trailer.is_none() && !self.recorded;
        let problem = self.problem.or_else(|| match self.trailer {
            None if plain => None,
            None => Some("the trailer is missing: the end of the history may be lost".to_owned()),
            Some(trailer) if trailer.count != self.events => {
                Some(format!("the trailer counts {} lines but there are {}", trailer.count, self.events))
            }
            Some(trailer) => {
                let hash = super::writer::hex(&self.hash.finalize());
                (hash != trailer.sha256)
                    .then(|| "the lines are not those that the trailer was made for".into())
            }
        });
        let history =
            self.pairing.finish().map_err(|source| LoadError::Pair { line: self.events, source })?;
        Ok(Loaded { history, complete: problem.is_none(), problem, plain, events: self.events })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{EventKind, Function, HistoryWriter, OpKind, Value};

    fn recorded() -> Vec<u8> {
        let mut writer = HistoryWriter::new(Vec::new());
        let mut invoke = Event::new(0, EventKind::Invoke, Function::Write, 2, Value::One(7), 10);
        invoke.due = Some(9);
        invoke.node = Some(3);
        let mut ok = Event::new(0, EventKind::Ok, Function::Write, 2, Value::One(7), 20);
        ok.version = Some(1);
        ok.zxid = Some(0x1_0000_0002);
        ok.session = Some(u64::MAX);
        writer.write(&mut invoke).unwrap();
        writer.write(&mut ok).unwrap();
        writer.finish().unwrap().into_inner
    }

    #[test]
    fn what_was_written_is_read_back_and_complete() {
        let loaded = load(recorded().as_slice()).unwrap();
        assert!(loaded.complete && !loaded.plain);
        let op = &loaded.history.ops()[0];
        assert_eq!((op.kind, op.key), (OpKind::Write { value: 7 }, 2));
        assert_eq!((op.zxid, op.session), (Some(0x1_0000_0002), Some(u64::MAX)));
        assert_eq!((op.node, op.due_ns, op.version), (Some(3), Some(9), Some(1)));
    }

    #[test]
    fn a_history_cut_anywhere_is_never_complete() {
        let whole = recorded();
        for cut in 1..whole.len() - 1 {
            match load(&whole[..cut]) {
                Ok(loaded) => {
                    assert!(!loaded.complete, "cut at {cut}");
                    assert_eq!(loaded.limit(Verdict::Valid), Verdict::Unknown);
                    assert_eq!(loaded.limit(Verdict::Invalid), Verdict::Invalid);
                }
                Err(error) => assert!(matches!(error, LoadError::Empty), "cut at {cut}: {error}"),
            }
        }
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let text = String::from_utf8(recorded()).unwrap().replace("\"time\":20", "\"time\":21");
        let loaded = load(text.as_bytes()).unwrap();
        assert!(loaded.problem.unwrap().contains("not those"));
    }

    #[test]
    fn a_removed_line_is_noticed() {
        let text = String::from_utf8(recorded()).unwrap();
        let without: String =
            text.lines().enumerate().filter(|(i, _)| *i != 1).map(|(_, l)| format!("{l}\n")).collect();
        assert!(load(without.as_bytes()).unwrap().problem.unwrap().contains("counts 2"));
    }

    #[test]
    fn a_plain_history_needs_no_trailer() {
        let text = r#"{"index":0,"process":3,"type":"invoke","f":"cas","key":0,"value":[1,2],"time":1}
{"index":1,"process":3,"type":"fail","f":"cas","key":0,"value":[1,2],"time":2}
"#;
        let loaded = load(text.as_bytes()).unwrap();
        assert!(loaded.complete && loaded.plain);
        assert!(loaded.history.ops()[0].is_refused_cas());
    }

    #[test]
    fn a_malformed_line_is_named_by_its_number() {
        let good = r#"{"process":3,"type":"invoke","f":"read","value":null}"#;
        for bad in ["{", "17", r#"{"process":3,"type":"maybe","f":"read","value":null}"#, r#"{"process":-1}"#]
        {
            let text = format!("{good}\n{bad}\n{good}\n");
            let error = load(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("line 2: "), "{error}");
        }
        let twice = format!("{good}\n{good}\n");
        assert_eq!(
            load(twice.as_bytes()).unwrap_err().to_string(),
            "line 2: process 3 invokes while its previous operation is still outstanding"
        );
    }

    #[test]
    fn nothing_at_all_is_an_error() {
        assert!(matches!(load(&b""[..]), Err(LoadError::Empty)));
        assert!(matches!(load(&b"\n\n"[..]), Err(LoadError::Empty)));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let endless = std::io::BufReader::new(std::io::Read::take(std::io::repeat(b'x'), 1 << 30));
        assert!(matches!(load(endless), Err(LoadError::Malformed { line: 1, .. })));
    }
}
