//! The format of a zoo.cfg: Java's properties, as `java.util.Properties.load(InputStream)` reads them.
//!
//! ```text
//! # a comment, and ! begins one too
//! key=value        key: value        key value        the same thrice
//! key = a value that \
//!       goes on      \u00e9 is a letter, \t a tab, \= is =, \q is q
//! ```
//!
//! A byte is a character (ISO-8859-1); others are written as `\uXXXX`. Blanks are spaces, tabs and form
//! feeds. They count neither before a key, nor around what parts it from its value, nor where a line goes on.
//! What the documentation of `Properties` leaves open is as in OpenJDK 17; a table of its answers is in the
//! tests.

/// A line and those on which it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Counted from 1: where it begins.
    pub(crate) number: usize,
    /// As it stands, with the end of the last line.
    pub(crate) raw: &'a [u8],
    /// What it says; nothing of a comment and an empty line.
    pub(crate) pair: Option<Pair>,
}

/// A key and its value, without blanks around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// An escape that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Counted from 1: where its line begins.
    pub(crate) number: usize,
    /// The line.
    pub(crate) line: String,
}

/// Reads all lines of a file.
///
/// # Errors
/// When `\u` is not followed by four hexadecimal digits, as in Java; and when an escape is half of a
/// character, which Java keeps and no path or name can hold.
pub(crate) fn read(text: &[u8]) -> Result<Vec<Line<'_>>, Malformed> {
    let mut lines = Vec::new();
    let (mut at, mut number) = (0, 1);
    while at < text.len() {
        let (end, logical) = logical_line(text, at);
        let raw = &text[at..end];
        let pair = logical.map(|line| pair_of(&line)).transpose();
        let pair =
            pair.map_err(|()| Malformed { number, line: String::from_utf8_lossy(raw).trim().to_owned() })?;
        lines.push(Line { number, raw, pair });
        number += ends_in(raw);
        at = end;
    }
    Ok(lines)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0c')
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// How many ends of lines there are; `\r\n` is one.
fn ends_in(raw: &[u8]) -> usize {
    let ends = raw.iter().filter(|byte| is_end(**byte)).count();
    ends - raw.windows(2).filter(|pair| pair == b"\r\n").count()
}

/// Behind the end of a line that begins here.
fn behind_end(text: &[u8], at: usize) -> usize {
    match (text.get(at), text.get(at + 1)) {
        (Some(b'\r'), Some(b'\n')) => at + 2,
        (Some(_), _) => at + 1,
        (None, _) => at,
    }
}

/// Behind which byte the line ends that begins at one; and what it says with those on which it goes on,
/// escapes and all. Nothing for a comment and an empty line.
fn logical_line(text: &[u8], mut at: usize) -> (usize, Option<Vec<u8>>) {
    let mut line = Vec::new();
    loop {
        at += text[at..].iter().take_while(|byte| is_blank(**byte)).count();
        // Also where a line goes on that has said nothing yet.
        let is_comment = line.is_empty() && matches!(text.get(at), Some(b'#' | b'!'));
        let len = text[at..].iter().take_while(|byte| !is_end(**byte)).count();
        let part = &text[at..at + len];
        at = behind_end(text, at + len);
        if is_comment {
            return (at, None);
        }
        let backslashes = part.iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 0 {
            line.extend_from_slice(part);
            return (at, (!line.is_empty()).then_some(line));
        }
        line.extend_from_slice(&part[..len - 1]);
        if at == text.len() {
            // As in Java also when nothing is left: an empty key, unless the file ends in both.
            let is_nothing = line.is_empty() && text.ends_with(b"\r\n");
            return (at, (!is_nothing).then_some(line));
        }
    }
}

/// Parts a key from its value at the first `=`, `:` or blank that no backslash stands before.
fn pair_of(line: &[u8]) -> Result<Pair, ()> {
    let mut escaped = false;
    let parts = |byte: u8| matches!(byte, b'=' | b':') || is_blank(byte);
    let key = line.iter().position(|&byte| {
        let is_end = !escaped && parts(byte);
        escaped = byte == b'\\' && !escaped;
        is_end
    });
    let (key, rest) = line.split_at(key.unwrap_or(line.len()));
    let skip = |from: usize| from + rest[from..].iter().take_while(|byte| is_blank(**byte)).count();
    let mut value = skip(0);
    if matches!(rest.get(value), Some(b'=' | b':')) {
        value = skip(value + 1);
    }
    // ZooKeeper trims both.
    let trimmed = |text: String| text.trim_matches(|letter| letter <= ' ').to_owned();
    Ok(Pair { key: trimmed(unescape(key)?), value: trimmed(unescape(&rest[value..])?) })
}

/// What stands there, each escape replaced by what it stands for.
fn unescape(text: &[u8]) -> Result<String, ()> {
    let mut units = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        let unit = match (byte, byte == b'\\') {
            (_, false) => u16::from(byte),
            (_, true) => match bytes.next() {
                None => break,
                Some(b'u') => {
                    let digits: Option<Vec<u16>> = (0..4).map(|_| hex(bytes.next()?)).collect();
                    digits.ok_or(())?.into_iter().fold(0, |unit, digit| unit << 4 | digit)
                }
                Some(b't') => u16::from(b'\t'),
                Some(b'n') => u16::from(b'\n'),
                Some(b'r') => u16::from(b'\r'),
                Some(b'f') => 0x0c,
                Some(other) => u16::from(other),
            },
        };
        units.push(unit);
    }
    String::from_utf16(&units).map_err(|_| ())
}

fn hex(digit: u8) -> Option<u16> {
    char::from(digit).to_digit(16).and_then(|digit| u16::try_from(digit).ok())
}

/// A value as a file must have it to be read back.
pub(crate) fn escape(value: &str) -> String {
    let mut escaped = String::new();
    for letter in value.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            ' ' if escaped.is_empty() => escaped.push_str("\\ "),
            ' '..='~' => escaped.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    escaped
}

/// What is wrong with a value that [`was_utf8`], and what to do.
pub(crate) const ENCODING: &str = "in UTF-8, and the file is read as ISO-8859-1, as Java reads it: write \
    characters beyond ASCII as \\uXXXX";

/// True for what was UTF-8 in a file and was read byte by byte.
pub(crate) fn was_utf8(text: &str) -> bool {
    let bytes: Option<Vec<u8>> = text.chars().map(|letter| u8::try_from(letter).ok()).collect();
    !text.is_ascii() && bytes.is_some_and(|bytes| std::str::from_utf8(&bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &[u8]) -> Vec<(String, String)> {
        let lines = read(text).expect("sound");
        let pairs = lines.into_iter().filter_map(|line| line.pair);
        pairs.map(|Pair { key, value }| (key, value)).collect()
    }

    /// What `java.util.Properties` of OpenJDK 17 says of each, with ZooKeeper's trimming.
    #[test]
    fn files_say_what_java_reads_in_them() {
        type Row<'a> = (&'a [u8], &'a [(&'a str, &'a str)]);
        let table: &[Row<'_>] = &[
            (b"a=b", &[("a", "b")]),
            (b"a:b\rc b\r\nd\tb\ne\x0cb", &[("a", "b"), ("c", "b"), ("d", "b"), ("e", "b")]),
            (b" \t a \t= \x0c b ", &[("a", "b")]),
            (b"a = = b", &[("a", "= b")]),
            (b"a : = b", &[("a", "= b")]),
            (b"a==b", &[("a", "=b")]),
            (b"=b", &[("", "b")]),
            (b"a", &[("a", "")]),
            (b"a=", &[("a", "")]),
            (b"a\\=b=c", &[("a=b", "c")]),
            (b"a\\ b\\:c d", &[("a b:c", "d")]),
            (b"a\\\\=b", &[("a\\", "b")]),
            (b"# c\n ! d\n\n \t\n\\# e=f", &[("#", "e=f")]),
            (b"a=b # no comment", &[("a", "b # no comment")]),
            (b"a=b\\\n   c\\\r\n\td", &[("a", "bcd")]),
            (b"a=b\\\\\nc=d", &[("a", "b\\"), ("c", "d")]),
            (b"a=b\\\n\nc=d", &[("a", "b"), ("c", "d")]),
            (b"a=b\\\n# c\nd=e", &[("a", "b# c"), ("d", "e")]),
            (b"a\\\n=b", &[("a", "b")]),
            (b"# c\\\na=b", &[("a", "b")]),
            (b"\\\n# c\na=b", &[("a", "b")]),
            (b"a=b\\", &[("a", "b")]),
            (b"a=b\\\n", &[("a", "b")]),
            (b"\\", &[("", "")]),
            (b"\\\n ", &[]),
            (b"\\\r\n", &[]),
            (b"a=\\u0041\\u00e9\\t\\q\\ud83d\\ude00.", &[("a", "A\u{e9}\tq\u{1f600}.")]),
            (b"\\u0061\\u003d=b", &[("a=", "b")]),
            (b"a=\\\\u0041", &[("a", "\\u0041")]),
            (b"a=C:\\zk\\data", &[("a", "C:zkdata")]),
            (b"a=\xe9\xff", &[("a", "\u{e9}\u{ff}")]),
            (b"a=\\ b\\n", &[("a", "b")]),
            (b"server.1=[::1]:1:2;3", &[("server.1", "[::1]:1:2;3")]),
            (b"a\x0bb=c", &[("a\x0bb", "c")]),
        ];
        for (text, pairs) in table {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            assert_eq!(said(text), pairs, "{}", text.escape_ascii());
        }
        for text in [&b"a=\\u12"[..], b"\n\na=\\u12g4", b"a=\\uuuu", b"\\u=b", b"a=\\ud83d."] {
            assert!(read(text).is_err(), "{}", text.escape_ascii());
        }
        assert_eq!(read(b"\r\n#\n\\u=").map_err(|malformed| malformed.number), Err(3));
    }

    #[test]
    fn a_line_is_all_that_it_goes_on_on() {
        let text = b"# c\r\na=b\\\n  c\n\nd=e";
        let lines = read(text).expect("sound");
        assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2, 4, 5]);
        assert_eq!(lines.iter().map(|line| line.raw).collect::<Vec<_>>().concat(), text);
        assert_eq!(lines[1].raw, b"a=b\\\n  c\n");
    }

    #[test]
    fn what_is_escaped_is_read_back() {
        for value in ["/data", " a\\b ", "\u{e9}\u{1f600}\t", "a=b:c # d", ""] {
            assert_eq!(
                said(format!("k={}.", escape(value)).as_bytes()),
                [("k".into(), {
                    let all = format!("{value}.");
                    all.trim().to_owned()
                })]
            );
        }
        assert!(was_utf8("\u{c3}\u{a9}") && !was_utf8("\u{e9}") && !was_utf8("e"));
    }
}
