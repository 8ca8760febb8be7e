//! Reads a history of registers, sets or lists, in any format, and says whether it is complete.
//!
//! A history that is cut short still shows violations, but can't show their absence, and one with lines
//! missing in the middle shows nothing: see [`Extent`]. Lines of JSON are read straight into events, because
//! ours are long; other formats become records first ([`super::records`]) and events from those, as far as a
//! register, a set or a list can be in them.

use std::io::BufRead;

use super::completeness::Completeness;
use super::convert::event_of;
use super::limits::read_line;
use super::records::{Format, Input, Records, recognise};
use super::tuples::Tuples;
use super::{EventLines, Extent, History, LoadError, Pairing, Vocabulary};
use crate::budget::Interrupt;

/// A history and what is known about its completeness.
#[derive(Debug)]
pub struct Loaded {
    /// The operations.
    pub history: History,
    /// How much of it is there.
    pub extent: Extent,
    /// What is missing or wrong, when it is not complete.
    pub problem: Option<String>,
    /// Whether this is a history from elsewhere, without trailer and without fields of ours.
    pub plain: bool,
    /// Lines read, without the trailer.
    pub events: u64,
    /// Lines or elements that are no client's operation.
    pub skipped: u64,
    /// Clients that are known here by a number that is not in the file, see [`Completeness::renamed`].
    pub renamed: Vec<(String, u64)>,
}

/// Reads a whole history.
///
/// # Errors
/// [`LoadError`] names the line. A last line that is cut short is no error but a missing trailer, and so is a
/// frame of zstd behind whole ones.
pub fn load<R: BufRead + Send>(reader: R) -> Result<Loaded, LoadError> {
    load_until(reader, &Vocabulary::default(), &Interrupt::never())
}

/// The same with words of a workload's own, until the bell rings: then the reader fails.
///
/// # Errors
/// As [`load`].
pub fn load_until<R: BufRead + Send>(
    reader: R,
    vocabulary: &Vocabulary,
    interrupt: &Interrupt,
) -> Result<Loaded, LoadError> {
    let recognised = recognise(reader, interrupt)?;
    let pairing = Pairing::of(vocabulary.clone());
    match recognised.format {
        Format::JsonLines => load_lines(recognised.input, pairing),
        Format::Edn | Format::TextLog => load_records(Records::of(recognised), pairing),
    }
}

fn load_lines(mut reader: Input<'_>, mut pairing: Pairing) -> Result<Loaded, LoadError> {
    let mut lines = EventLines::default();
    let mut line = Vec::new();
    loop {
        match read_line(&mut reader, &mut line, lines.number() + 1) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                lines.breaks_off(error)?;
                break;
            }
        }
        if let Some(event) = lines.line(&line)? {
            pairing.push(event).map_err(|source| LoadError::Pair { line: lines.number(), source })?;
        }
        line.clear();
    }
    Ok(loaded(pairing, lines.finish()?))
}

fn load_records(mut records: Records<'_>, mut pairing: Pairing) -> Result<Loaded, LoadError> {
    let mut tuples = Tuples::default();
    for record in records.by_ref() {
        let mut record = record?;
        tuples.take_key_out(&mut record);
        let line = record.line;
        let event = event_of(record).map_err(|reason| LoadError::Malformed { line, reason })?;
        pairing.push(event).map_err(|source| LoadError::Pair { line, source })?;
    }
    Ok(loaded(pairing, records.completeness()))
}

/// The history whose events were all paired, with what its reader knows of it.
fn loaded(pairing: Pairing, known: Completeness) -> Loaded {
    let Completeness { extent, problem, plain, events, skipped, renamed } = known;
    Loaded { history: pairing.finish(), extent, problem, plain, events, skipped, renamed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Event, EventKind, Function, HistoryWriter, OpKind, Value};
    use crate::verdict::Verdict;

    fn recorded() -> Vec<u8> {
        let mut writer = HistoryWriter::new(Vec::new());
        let mut invoke = Event::new(0, EventKind::Invoke, Function::WRITE, 2, Value::One(7), 10);
        invoke.due = Some(9);
        invoke.node = Some(3);
        let mut ok = Event::new(0, EventKind::Ok, Function::WRITE, 2, Value::One(7), 20);
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
        assert!(loaded.extent.is_whole() && !loaded.plain);
        let op = &loaded.history.ops()[0];
        assert_eq!((op.kind(), op.key), (OpKind::Write { value: 7 }, 2));
        assert_eq!((op.zxid, op.session), (Some(0x1_0000_0002), Some(u64::MAX)));
        assert_eq!((op.node, op.due_ns, op.version), (Some(3), Some(9), Some(1)));
    }

    #[test]
    fn a_history_cut_anywhere_is_never_complete() {
        let whole = recorded();
        for cut in 1..whole.len() - 1 {
            match load(&whole[..cut]) {
                Ok(loaded) => {
                    assert_eq!(loaded.extent, Extent::Beginning, "cut at {cut}");
                    assert_eq!(loaded.extent.limit(Verdict::Valid), Verdict::Unknown);
                    assert_eq!(loaded.extent.limit(Verdict::Invalid), Verdict::Invalid);
                }
                Err(error) => assert!(matches!(error, LoadError::NoOperation(_)), "cut at {cut}: {error}"),
            }
        }
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let text = String::from_utf8(recorded()).unwrap().replace("\"time\":20", "\"time\":21");
        let loaded = load(text.as_bytes()).unwrap();
        assert!(loaded.problem.unwrap().contains("not those"));
        assert_eq!(loaded.extent, Extent::Parts);
        assert_eq!(loaded.extent.limit(Verdict::Invalid), Verdict::Unknown);
    }

    #[test]
    fn a_removed_line_is_noticed() {
        let text = String::from_utf8(recorded()).unwrap();
        let without: String =
            text.lines().enumerate().filter(|(i, _)| *i != 1).map(|(_, l)| format!("{l}\n")).collect();
        let loaded = load(without.as_bytes()).unwrap();
        assert!(loaded.problem.unwrap().contains("counts 2"));
        assert_eq!(loaded.extent, Extent::Parts);
    }

    #[test]
    fn a_line_that_is_missing_in_the_middle_is_noticed_without_a_trailer_too() {
        let mut writer = HistoryWriter::new(Vec::new());
        for process in 0..3 {
            let mut invoke = Event::new(process, EventKind::Invoke, Function::READ, 2, Value::Null, 10);
            invoke.node = Some(3);
            writer.write(&mut invoke).unwrap();
        }
        let text = String::from_utf8(writer.finish().unwrap().into_inner).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let extent = |lines: &[&str]| load((lines.join("\n") + "\n").as_bytes()).unwrap().extent;
        assert_eq!(extent(&lines), Extent::Whole);
        assert_eq!(extent(&lines[..3]), Extent::Beginning);
        assert_eq!(extent(&lines[1..3]), Extent::Parts);
        assert_eq!(extent(&[lines[0], lines[2]]), Extent::Parts);
    }

    #[test]
    fn a_plain_history_needs_no_trailer() {
        let text = r#"{"index":0,"process":3,"type":"invoke","f":"cas","key":0,"value":[1,2],"time":1}
{"index":1,"process":3,"type":"fail","f":"cas","key":0,"value":[1,2],"time":2}
"#;
        let loaded = load(text.as_bytes()).unwrap();
        assert!(loaded.extent.is_whole() && loaded.plain);
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
