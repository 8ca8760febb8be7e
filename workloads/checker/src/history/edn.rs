//! EDN, the notation of Clojure's data, as far as histories use it.
//!
//! A parser of one form in memory; [`super::elements`] cuts a file into forms. A [`Datum`] has no floats,
//! ratios, big numbers, characters, instants or identifiers, and no check computes with them, so such a form
//! is kept as its text, which no model takes for a number. Of a tagged form (`#inst "2015"`,
//! `#jepsen.history.Op{...}`) the tag is dropped. How deep forms may be nested is bounded, because reading
//! them is recursive.

use std::sync::Arc;

use super::Datum;
use super::fields::{Fields, Words};

/// Deepest nesting of forms.
pub(super) const MAX_DEPTH: u32 = 64;

/// What is wrong with a text, and where.
#[derive(Debug)]
pub(super) struct Fault {
    /// Bytes before it.
    pub(super) at: usize,
    pub(super) reason: String,
}

/// What an operation's map says. Its value may be a word, which then stands for an error, see
/// [`super::records`].
pub(super) struct Operation {
    pub(super) fields: Fields,
    pub(super) value_is_keyword: bool,
}

/// A text that is read form by form.
pub(super) struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
    words: &'a mut Words,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a [u8], words: &'a mut Words) -> Self {
        Self { text, at: 0, depth: 0, words }
    }

    /// The next form, or none at the end of the text.
    pub(super) fn next_form(&mut self) -> Result<Option<Datum>, Fault> {
        self.blanks()?;
        if self.at == self.text.len() { Ok(None) } else { self.form().map(Some) }
    }

    /// The only operation of the text, or none if there is nothing but discarded forms.
    pub(super) fn operation(&mut self) -> Result<Option<Operation>, Fault> {
        self.blanks()?;
        if self.at == self.text.len() {
            return Ok(None);
        }
        while self.peek() == Some(b'#') && self.text.get(self.at + 1).is_some_and(|&byte| is_token(byte)) {
            self.token();
            self.blanks()?;
        }
        if self.peek() != Some(b'{') {
            return self.fault("an operation is a map");
        }
        self.at += 1;
        self.depth += 1;
        let mut operation = Operation { fields: Fields::default(), value_is_keyword: false };
        while !self.closes(b'}')? {
            let at = self.at;
            let Datum::Text(name) = self.form()? else {
                return Err(Fault { at, reason: "a field's name is a keyword".to_owned() });
            };
            self.blanks()?;
            if &*name == "value" {
                operation.value_is_keyword = self.peek() == Some(b':');
            }
            let at = self.at;
            let datum = self.form()?;
            operation.fields.set(&name, datum).map_err(|reason| Fault { at, reason })?;
        }
        self.blanks()?;
        if self.at < self.text.len() {
            return self.fault("something follows the operation");
        }
        Ok(Some(operation))
    }

    /// The text that was not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn fault<T>(&self, reason: &str) -> Result<T, Fault> {
        Err(Fault { at: self.at.min(self.text.len()), reason: reason.to_owned() })
    }

    /// Passes what stands between forms: blanks, commas, comments, discarded forms, metadata.
    fn blanks(&mut self) -> Result<(), Fault> {
        while let Some(byte) = self.peek() {
            match byte {
                b';' => {
                    let rest = &self.text[self.at..];
                    self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                }
                b'#' if self.text.get(self.at + 1) == Some(&b'_') => {
                    self.at += 2;
                    self.inner_form()?;
                }
                b'^' => {
                    self.at += 1;
                    self.inner_form()?;
                }
                _ if is_blank(byte) => self.at += 1,
                _ => break,
            }
        }
        Ok(())
    }

    /// A form that is part of another.
    fn inner_form(&mut self) -> Result<Datum, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fault(&format!("nested deeper than {MAX_DEPTH}"));
        }
        self.blanks()?;
        let datum = self.form()?;
        self.depth -= 1;
        Ok(datum)
    }

    /// Whether the collection ends here.
    fn closes(&mut self, end: u8) -> Result<bool, Fault> {
        self.blanks()?;
        match self.peek() {
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => self.fault(&format!("the end comes before the {}", char::from(end))),
        }
    }

    /// The form that begins here, after blanks.
    fn form(&mut self) -> Result<Datum, Fault> {
        let Some(byte) = self.peek() else { return self.fault("a form is missing") };
        match byte {
            b'[' => self.list(b']'),
            b'(' => self.list(b')'),
            b'{' => self.map(),
            b'"' => self.string(),
            b':' => {
                self.at += 1;
                let at = self.at;
                let name = self.token();
                if name.is_empty() {
                    return Err(Fault { at, reason: "a keyword has no name".to_owned() });
                }
                Ok(Datum::Text(self.word(name, at)?))
            }
            b'\\' => self.character(),
            b'#' => self.dispatch(),
            _ if is_token(byte) => {
                let at = self.at;
                let token = self.token();
                self.atom(token, at)
            }
            _ => self.fault(&format!("a form can't begin with {:?}", char::from(byte))),
        }
    }

    fn list(&mut self, end: u8) -> Result<Datum, Fault> {
        self.at += 1;
        let mut elements = Vec::new();
        while !self.closes(end)? {
            elements.push(self.inner_form()?);
        }
        Ok(Datum::List(elements))
    }

    fn map(&mut self) -> Result<Datum, Fault> {
        self.at += 1;
        let mut entries = Vec::new();
        while !self.closes(b'}')? {
            let key = self.inner_form()?;
            entries.push((key, self.inner_form()?));
        }
        super::datum::no_key_twice(&entries).map_err(|reason| Fault { at: self.at, reason })?;
        Ok(Datum::Map(entries))
    }

    /// What begins with `#`.
    fn dispatch(&mut self) -> Result<Datum, Fault> {
        match self.text.get(self.at + 1) {
            Some(b'{') => {
                self.at += 1;
                // A set in a value is the same in any order; one that is the whole value is left as it is.
                let mut set = self.list(b'}')?;
                if let (Datum::List(elements), 2..) = (&mut set, self.depth) {
                    elements.sort_unstable();
                }
                Ok(set)
            }
            Some(b'"') => {
                self.at += 1;
                self.string()
            }
            // `##NaN` and `#'a-var` are words of their own.
            Some(b'#' | b'\'') => {
                let at = self.at;
                let token = self.token();
                Ok(Datum::Text(self.word(token, at)?))
            }
            Some(&byte) if is_token(byte) => {
                self.token();
                self.inner_form()
            }
            _ => self.fault("a tag has no name"),
        }
    }

    fn token(&mut self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|&byte| !is_token(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// A word, a number or one of the three names.
    fn atom(&mut self, token: &[u8], at: usize) -> Result<Datum, Fault> {
        match token {
            b"nil" => return Ok(Datum::Nil),
            b"true" => return Ok(Datum::Bool(true)),
            b"false" => return Ok(Datum::Bool(false)),
            [b'0'..=b'9', ..] | [b'+' | b'-', b'0'..=b'9', ..] => {
                let digits = token.strip_suffix(b"N").unwrap_or(token);
                if let Some(value) = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()) {
                    return Ok(Datum::Int(value));
                }
            }
            _ => {}
        }
        Ok(Datum::Text(self.word(token, at)?))
    }

    fn word(&mut self, token: &[u8], at: usize) -> Result<Arc<str>, Fault> {
        match std::str::from_utf8(token) {
            Ok(word) => Ok(self.words.word(word)),
            Err(_) => Err(Fault { at, reason: "the text is not UTF-8".to_owned() }),
        }
    }

    /// `\a`, `\newline`, `\u0041`, `\{`.
    fn character(&mut self) -> Result<Datum, Fault> {
        let at = self.at;
        self.at += 1;
        if self.peek().is_some_and(|byte| !is_token(byte)) {
            self.at += 1;
        } else {
            self.token();
        }
        let name = std::str::from_utf8(&self.text[at + 1..self.at]).unwrap_or_default();
        let mut chars = name.chars();
        let character = match (name, chars.next(), chars.as_str()) {
            (_, Some(only), "") => only,
            ("newline", ..) => '\n',
            ("return", ..) => '\r',
            ("space", ..) => ' ',
            ("tab", ..) => '\t',
            ("backspace", ..) => '\u{8}',
            ("formfeed", ..) => '\u{c}',
            (_, Some('u'), code) if code.len() == 4 => {
                let code = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
                code.unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(Fault { at, reason: "this is no character".to_owned() }),
        };
        Ok(Datum::Text(Arc::from(character.encode_utf8(&mut [0; 4]) as &str)))
    }

    fn string(&mut self) -> Result<Datum, Fault> {
        let begin = self.at;
        let unended = || Fault { at: begin, reason: "the string has no end".to_owned() };
        self.at += 1;
        let mut content = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let special = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or_else(unended)?;
            content.extend_from_slice(&rest[..special]);
            self.at += special + 1;
            if rest[special] == b'"' {
                break;
            }
            let escape = self.peek().ok_or_else(unended)?;
            self.at += 1;
            let plain = match escape {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'b' => 8,
                b'f' => 12,
                b'u' => {
                    let character = self.escaped_code(begin)?;
                    content.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                // A quote, a backslash, or, in a regular expression, what only that understands.
                other => other,
            };
            content.push(plain);
        }
        match String::from_utf8(content) {
            Ok(content) => Ok(Datum::Text(Arc::from(content))),
            Err(_) => Err(Fault { at: begin, reason: "the text is not UTF-8".to_owned() }),
        }
    }

    /// What `\u` escapes; a character beyond the first 65,536 is two of them.
    fn escaped_code(&mut self, begin: usize) -> Result<char, Fault> {
        let first = self.four_digits(begin)?;
        if !(0xd800..0xdc00).contains(&first) || !self.rest().starts_with(b"\\u") {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let before = self.at;
        self.at += 2;
        let second = self.four_digits(begin)?;
        if !(0xdc00..0xe000).contains(&second) {
            self.at = before;
            return Ok(char::REPLACEMENT_CHARACTER);
        }
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_digits(&mut self, begin: usize) -> Result<u32, Fault> {
        let digits = self.text.get(self.at..self.at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.ok_or_else(|| Fault { at: begin, reason: "an escape needs four hex digits".to_owned() })
    }
}

/// Between forms: a comma is one as good as a space.
pub(super) fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b',' || byte == 0x0b
}

/// Part of a word or number.
fn is_token(byte: u8) -> bool {
    !is_blank(byte) && !matches!(byte, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'"' | b';' | b'\\' | b'^')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::history::fixtures::{datum, print};

    fn read(text: &str) -> Result<Datum, String> {
        let mut words = Words::default();
        let mut parser = Parser::new(text.as_bytes(), &mut words);
        match parser.next_form() {
            Ok(Some(datum)) => Ok(datum),
            Ok(None) => Err("nothing".to_owned()),
            Err(fault) => Err(format!("{}: {}", fault.at, fault.reason)),
        }
    }

    fn list(elements: impl IntoIterator<Item = Datum>) -> Datum {
        Datum::List(elements.into_iter().collect())
    }

    #[test]
    fn every_form_that_a_history_has_is_read() {
        let text =
            r#"[nil true -7 +3 :a/b sym "s\t\"\\\u0041\ud83d\ude00" \x \newline \{ #{1 2} (), {:k [9N]}]"#;
        let expected = list([
            Datum::Nil,
            Datum::Bool(true),
            Datum::Int(-7),
            Datum::Int(3),
            Datum::text("a/b"),
            Datum::text("sym"),
            Datum::text("s\t\"\\A\u{1f600}"),
            Datum::text("x"),
            Datum::text("\n"),
            Datum::text("{"),
            list([Datum::Int(1), Datum::Int(2)]),
            list([]),
            Datum::Map(vec![(Datum::text("k"), list([Datum::Int(9)]))]),
        ]);
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn what_no_check_computes_with_is_text() {
        for text in ["1.5", "1/2", "1e9", "99999999999999999999", "0x1f", "##NaN", "#'a/var", "-1.0M"] {
            assert_eq!(read(text).unwrap(), Datum::text(text));
        }
        assert_eq!(read("#inst \"2015-01-01\"").unwrap(), Datum::text("2015-01-01"));
        assert_eq!(read("#object[a.B 0x1f \"b\"]").unwrap().as_list().unwrap().len(), 3);
        assert_eq!(read("^{:line 1} [1]").unwrap(), list([Datum::Int(1)]));
    }

    #[test]
    fn comments_and_discarded_forms_are_nothing() {
        assert_eq!(
            read("; a\n [1 #_ {:a [2]} #_#_ 3 4 5 ; c\n]").unwrap(),
            list([Datum::Int(1), Datum::Int(5)])
        );
        assert_eq!(read("#_ 1 ; nothing").unwrap_err(), "nothing");
    }

    #[test]
    fn what_is_no_form_is_named_with_its_place() {
        for (text, error) in [
            ("[1 2", "4: the end comes before the ]"),
            ("[1 }", "3: a form can't begin with '}'"),
            ("{:a}", "3: a form can't begin with '}'"),
            ("\"abc", "0: the string has no end"),
            ("[:]", "2: a keyword has no name"),
            ("\\nonsense", "0: this is no character"),
            ("\"\\u00\"", "0: an escape needs four hex digits"),
            ("#", "0: a tag has no name"),
            ("#inst", "5: a form is missing"),
        ] {
            assert_eq!(read(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn forms_may_be_nested_so_deep_and_no_deeper() {
        let depth = usize::try_from(MAX_DEPTH).unwrap();
        for (open, close) in [("[", "]"), ("#a ", ""), ("{:a ", "}"), ("#_ ", " 1"), ("^x ", "")] {
            let fits = format!("{}1{} 1", open.repeat(depth), close.repeat(depth));
            assert!(read(&fits).is_ok(), "{fits}");
            for beyond in [depth + 1, 100_000] {
                let text = format!("{}1{} 1", open.repeat(beyond), close.repeat(beyond));
                // Metadata stand one after another, not within one another.
                assert_eq!(read(&text).is_ok(), open == "^x ", "{open}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_datum_survives_being_printed_and_read(datum in datum()) {
            prop_assert_eq!(read(&print(&datum)).unwrap(), datum);
        }

        #[test]
        fn any_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            ascii in "[\\[\\](){}#_^\"\\\\:; a1u]{0,60}"
        ) {
            for text in [&bytes[..], ascii.as_bytes()] {
                let mut words = Words::default();
                let _ = Parser::new(text, &mut words).next_form();
                let _ = Parser::new(text, &mut words).operation();
            }
        }
    }
}
