//! A fast scanner for the lines that our own recorder and generator write.
//!
//! serde_json reads any JSON at a third of a microsecond per line and more. Nearly all lines have one plain
//! form: known names, short integers, values of one or two integers, text without escapes. This scanner reads
//! that form, in any order of the names, and gives up at the first byte that it does not expect; then
//! serde_json decides, also about what is wrong. So the result is serde_json's for every input; only the time
//! differs.

use std::sync::Arc;

use super::{Event, EventKind, Function, Value};

/// Reads one line, without the white space around it.
///
/// # Errors
/// What serde_json says of it.
pub fn event(line: &[u8]) -> serde_json::Result<Event> {
    match plain(line) {
        Some(event) => Ok(event),
        None => serde_json::from_slice(line),
    }
}

/// The line, if it has the plain form.
fn plain(line: &[u8]) -> Option<Event> {
    let mut rest = Scanner { rest: line };
    rest.expect(b'{')?;
    let mut event = Event::new(0, EventKind::Info, Function::READ, 0, Value::Null, 0);
    event.time = None;
    let mut seen = 0_u32;
    loop {
        let name = rest.text()?;
        rest.expect(b':')?;
        let field = rest.field(name, &mut event)?;
        // A name that comes twice is an error, and serde_json has the words for it.
        if seen >> field & 1 == 1 {
            return None;
        }
        seen |= 1 << field;
        match rest.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    const NEEDED: u32 = 0b1110;
    (rest.rest.is_empty() && seen & NEEDED == NEEDED).then_some(event)
}

/// Puts a value where it belongs, and gives the number of its field.
#[inline]
fn fill<T>(place: &mut T, value: T, field: u32) -> u32 {
    *place = value;
    field
}

/// Digits of an integer that is read here; all such fit 63 bits.
const MOST_DIGITS: usize = 18;

struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    /// Reads the value of the field of that name, and gives the field's number.
    #[inline]
    fn field(&mut self, name: &[u8], event: &mut Event) -> Option<u32> {
        Some(match name {
            b"index" => fill(&mut event.index, self.unsigned()?, 0),
            b"process" => fill(&mut event.process, self.unsigned()?, 1),
            b"type" => fill(&mut event.kind, self.kind()?, 2),
            b"f" => fill(&mut event.f, self.function()?, 3),
            b"key" => fill(&mut event.key, self.unsigned()?, 4),
            b"value" => fill(&mut event.value, self.value()?, 5),
            b"time" => fill(&mut event.time, Some(self.unsigned()?), 6),
            b"due" => fill(&mut event.due, Some(self.unsigned()?), 7),
            b"node" => fill(&mut event.node, Some(self.unsigned()?), 8),
            b"session" => fill(&mut event.session, Some(self.hexadecimal()?), 9),
            b"zxid" => fill(&mut event.zxid, Some(self.hexadecimal()?), 10),
            b"version" => fill(&mut event.version, Some(self.signed()?), 11),
            b"mzxid" => fill(&mut event.mzxid, Some(self.hexadecimal()?), 12),
            b"expect" => fill(&mut event.expect, Some(self.signed()?), 13),
            b"error" => {
                let error = std::str::from_utf8(self.text()?).ok()?;
                fill(&mut event.error, Some(Arc::from(error)), 14)
            }
            b"by" => fill(&mut event.by, Some(self.unsigned()?), 15),
            _ => return None,
        })
    }

    #[inline]
    fn kind(&mut self) -> Option<EventKind> {
        Some(match self.text()? {
            b"invoke" => EventKind::Invoke,
            b"ok" => EventKind::Ok,
            b"fail" => EventKind::Fail,
            b"info" => EventKind::Info,
            _ => return None,
        })
    }

    #[inline]
    fn function(&mut self) -> Option<Function> {
        Function::read(std::str::from_utf8(self.text()?).ok()?).ok()
    }

    #[inline]
    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// Text in quotes, of printable ASCII without escapes.
    #[inline]
    fn text(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let end =
            self.rest.iter().position(|byte| !matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~'))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.expect(b'"')?;
        Some(text)
    }

    #[inline]
    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        let mut digits = 0;
        while let Some(digit) =
            self.rest.get(digits).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10)
        {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        // JSON knows no leading zeros. More digits may not fit, and a fraction or an exponent may follow: the
        // caller then finds neither a comma nor an end.
        if digits == 0 || digits > MOST_DIGITS || (digits > 1 && self.rest[0] == b'0') {
            return None;
        }
        self.rest = &self.rest[digits..];
        Some(value)
    }

    fn signed(&mut self) -> Option<i64> {
        let negative = self.rest.first() == Some(&b'-');
        if negative {
            self.rest = &self.rest[1..];
        }
        let value = i64::try_from(self.unsigned()?).ok()?;
        // Serde reads a minus before a zero as a fraction's.
        if negative && value == 0 {
            return None;
        }
        Some(if negative { -value } else { value })
    }

    fn hexadecimal(&mut self) -> Option<u64> {
        let text = self.text()?.strip_prefix(b"0x")?;
        if text.is_empty() || text.len() > 16 {
            return None;
        }
        text.iter().try_fold(0_u64, |value, &byte| {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            Some(value << 4 | u64::from(digit))
        })
    }

    fn null(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix(b"null")?;
        Some(())
    }

    fn value(&mut self) -> Option<Value> {
        match self.rest.first()? {
            b'n' => {
                self.null()?;
                Some(Value::Null)
            }
            b'[' => {
                self.rest = &self.rest[1..];
                let from = if self.rest.first() == Some(&b'n') {
                    self.null()?;
                    None
                } else {
                    Some(self.signed()?)
                };
                self.expect(b',')?;
                let to = self.signed()?;
                self.expect(b']')?;
                Some(Value::Pair(from, to))
            }
            _ => self.signed().map(Value::One),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agrees(line: &[u8]) -> Option<Event> {
        let serde = serde_json::from_slice::<Event>(line);
        match (event(line), &serde) {
            (Ok(ours), Ok(theirs)) => assert_eq!(ours, *theirs),
            (Err(ours), Err(theirs)) => assert_eq!(ours.to_string(), theirs.to_string()),
            (ours, theirs) => panic!("{ours:?} but {theirs:?}: {}", String::from_utf8_lossy(line)),
        }
        let scanned = plain(line);
        assert!(scanned.is_none() || serde.is_ok(), "{}", String::from_utf8_lossy(line));
        scanned
    }

    #[test]
    fn the_lines_that_are_written_are_read_without_serde() {
        let generated =
            r#"{"index":0,"process":3,"type":"invoke","f":"cas","key":1,"value":[4,5],"time":1000}"#;
        let recorded = concat!(
            r#"{"index":1,"process":3,"type":"fail","f":"cas","key":1,"value":[null,5],"time":2000,"due":9,"#,
            r#""node":2,"session":"0x1f","zxid":"0x100000001","version":-3,"mzxid":"0xffffffffffffffff","#,
            r#""expect":7,"error":"bad-version"}"#
        );
        let other_order = r#"{"time":7,"value":-17,"f":"write","type":"ok","process":0}"#;
        let missing = r#"{"type":"info","f":"read","process":12,"value":null}"#;
        for line in [generated, recorded, other_order, missing] {
            assert!(agrees(line.as_bytes()).is_some(), "{line}");
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_serde_and_read_alike() {
        for line in [
            r#"{"process": 3,"type":"ok","f":"read","value":1}"#,
            r#"{"process":03,"type":"ok","f":"read","value":1}"#,
            r#"{"process":3,"type":"ok","f":"read","value":1.0}"#,
            r#"{"process":3,"type":"ok","f":"read","value":1e3}"#,
            r#"{"process":3,"type":"ok","f":"read","value":-0}"#,
            r#"{"process":3,"type":"ok","f":"read","value":[1,2,3]}"#,
            r#"{"process":3,"type":"ok","f":"read","value":[]}"#,
            r#"{"process":3,"process":3,"type":"ok","f":"read","value":1}"#,
            r#"{"process":3,"type":"ok","f":"read","value":1,"extra":{"a":[1]}}"#,
            r#"{"process":3,"type":"ok","f":"read","value":1}x"#,
            r#"{"process":18446744073709551615,"type":"ok","f":"read","value":9223372036854775807}"#,
            r#"{"process":3,"type":"ok","f":"read","value":-9223372036854775808,"time":null}"#,
            r#"{"process":3,"type":"ok","f":"read","error":"a\nb"}"#,
            r#"{"process":3,"type":"ok","f":"read","error":"ü"}"#,
            r#"{"process":3,"type":"ok","f":"read","session":"0x"}"#,
            r#"{"process":3,"type":"ok","f":"read","session":"0xAB"}"#,
            r#"{"process":3,"type":"ok","f":"read","session":"0x11111111111111111"}"#,
            r#"{"type":"ok","f":"read"}"#,
            r#"{}"#,
            "",
        ] {
            assert!(agrees(line.as_bytes()).is_none(), "{line}");
        }
    }

    fn written() -> impl Strategy<Value = Event> {
        let kind = prop_oneof![
            Just(EventKind::Invoke),
            Just(EventKind::Ok),
            Just(EventKind::Fail),
            Just(EventKind::Info)
        ];
        let value = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::One),
            (any::<Option<i32>>(), any::<i64>()).prop_map(|(from, to)| Value::Pair(from.map(i64::from), to)),
            prop::collection::vec(any::<i64>(), 0..5).prop_map(|list| Value::List(list.into())),
        ];
        let some = (any::<Option<u64>>(), any::<Option<u32>>(), any::<Option<u64>>(), any::<Option<i64>>());
        let f = (0..Function::KNOWN.len()).prop_map(|at| Function::KNOWN[at]);
        (any::<u64>(), kind, f, any::<u32>(), value, some, proptest::option::of("[ -~é\n]{0,9}")).prop_map(
            |(process, kind, f, key, value, (session, node, zxid, version), error)| {
                let mut event = Event::new(process, kind, f, u64::from(key), value, 5);
                event.time = node.map(u64::from);
                (event.session, event.zxid, event.version) = (session, zxid, version);
                (event.node, event.expect, event.error) =
                    (node.map(u64::from), version, error.map(Arc::from));
                event
            },
        )
    }

    proptest! {
        #[test]
        fn a_written_line_is_read_as_serde_reads_it(event in written()) {
            agrees(&serde_json::to_vec(&event).unwrap());
        }

        #[test]
        fn a_damaged_line_is_read_as_serde_reads_it(
            event in written(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()
        ) {
            let mut line = serde_json::to_vec(&event).unwrap();
            let at = at.index(line.len());
            if cut { line.truncate(at); } else { line[at] = byte; }
            agrees(&line);
        }

        #[test]
        fn anything_is_read_as_serde_reads_it(line in "[{}\\[\\]\",:a-z0-9 .-]{0,40}") {
            agrees(line.as_bytes());
        }
    }
}
