//! What programs in the containers assert, as the Antithesis SDKs write it: a JSON object a line.
//!
//! | line | what becomes of it |
//! |---|---|
//! | `{"antithesis_assert": {...}}` | a property, told apart by its `id` (the message, where there is none) |
//! | `{"antithesis_setup": {"status": "complete"}}` | the commands may begin |
//! | any other object: `antithesis_sdk`, `antithesis_guidance`, events of the user's own | nothing |
//!
//! A program registers each of its assertions when it begins (`hit` is false), so what was never reached is
//! known. It then writes the first time that an assertion held and the first time that it did not. So counts
//! here are of lines, and not of evaluations.
//!
//! Whoever writes the lines is tested software that is being killed. So no line is fatal. What can't be read
//! is counted, and the first of it is kept, because a violation may stand there. A line without an end at the
//! end of its file is a program that was killed while it wrote: it is left out, and nothing is concluded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Bytes of a line that are read; a longer one is not.
pub const MOST_OF_A_LINE: usize = 1 << 20;
/// Properties that are told apart.
const MOST_PROPERTIES: usize = 2_000;
/// Bytes of details that are kept of an example.
const MOST_DETAILS: usize = 4_096;
/// Characters of a message, a place, or a line that could not be read, that are kept.
const MOST_WORDS: usize = 400;

/// What is asserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AssertionKind {
    /// Whenever it is reached it holds, and it is reached.
    Always,
    /// Whenever it is reached it holds.
    AlwaysOrUnreachable,
    /// It holds at least once.
    Sometimes,
    /// It is reached at least once.
    Reachable,
    /// It is never reached.
    Unreachable,
}

impl AssertionKind {
    /// From the words of a line.
    fn of(kind: &str, must_hit: bool) -> Option<Self> {
        Some(match (kind, must_hit) {
            ("always", true) => Self::Always,
            ("always", false) => Self::AlwaysOrUnreachable,
            ("sometimes", _) => Self::Sometimes,
            ("reachability", true) => Self::Reachable,
            ("reachability", false) => Self::Unreachable,
            _ => return None,
        })
    }

    /// As in checks' names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::AlwaysOrUnreachable => "always-or-unreachable",
            Self::Sometimes => "sometimes",
            Self::Reachable => "reachable",
            Self::Unreachable => "unreachable",
        }
    }

    /// Whether being reached with this condition breaks it.
    fn is_broken_by(self, condition: bool) -> bool {
        match self {
            Self::Always | Self::AlwaysOrUnreachable => !condition,
            Self::Unreachable => true,
            Self::Sometimes | Self::Reachable => false,
        }
    }

    /// Whether being reached with this condition is what it asks for.
    fn is_shown_by(self, condition: bool) -> bool {
        match self {
            Self::Always | Self::AlwaysOrUnreachable | Self::Sometimes => condition,
            Self::Reachable => true,
            Self::Unreachable => false,
        }
    }
}

/// One time that an assertion was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// In which container.
    pub container: String,
    /// In which of its files the line stands: that of an execution has its number.
    pub file: String,
    /// What the program told beside it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// What is asserted at one place, and what was seen of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// What tells it apart.
    pub id: String,
    /// What is asserted.
    pub kind: AssertionKind,
    /// In the program's words.
    pub message: String,
    /// Where in the program: file, line and function.
    pub place: String,
    /// Lines that show it.
    pub held: u64,
    /// Lines that break it, or of `sometimes`, where it did not hold.
    pub did_not: u64,
    /// The first line that breaks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Example>,
}

/// What can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// How many lines.
    pub lines: u64,
    /// What is wrong with the first, and its beginning.
    pub first: String,
}

/// What was asserted in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asserted {
    /// By where it is asserted.
    pub properties: Vec<Property>,
    /// Lines that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<Unread>,
    /// Why not everything was read, where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// What a line is.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// An assertion was reached, or is told of for the first time: it is worth keeping.
    Noted,
    /// An assertion that is known already, and was not reached.
    Known,
    /// The system is set up.
    SetUp,
    /// Something that is not judged.
    Other,
    /// It can't be read.
    Unread,
}

/// Reads lines one after the other.
#[derive(Debug, Default)]
pub struct Assertions {
    properties: BTreeMap<String, Property>,
    unread: Option<Unread>,
}

impl Assertions {
    /// Reads a line, without its end, of this file of a container.
    pub fn take(&mut self, container: &str, file: &str, line: &[u8]) -> Line {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Line::Other;
        }
        match read(line) {
            Ok(Meaning::Assertion(assertion)) => self.add(*assertion, container, file, line),
            Ok(Meaning::SetUp) => Line::SetUp,
            Ok(Meaning::Other) => Line::Other,
            Err(why) => self.cannot_read(container, file, line, why),
        }
    }

    /// Counts a line that can't be read, and keeps the beginning of the first.
    fn cannot_read(&mut self, container: &str, file: &str, line: &[u8], why: &str) -> Line {
        let unread = self.unread.get_or_insert_with(|| {
            let beginning = String::from_utf8_lossy(&line[..line.len().min(MOST_WORDS)]).into_owned();
            Unread { lines: 0, first: format!("{why} ({container}, {file}): {}", cut(&beginning)) }
        });
        unread.lines += 1;
        Line::Unread
    }

    /// Counts what a line says of an assertion, and keeps the first example that breaks it. `line` stands in
    /// the message where there are too many assertions.
    fn add(&mut self, assertion: Assertion, container: &str, file: &str, line: &[u8]) -> Line {
        let is_new = !self.properties.contains_key(&assertion.id);
        if is_new && self.properties.len() == MOST_PROPERTIES {
            return self.cannot_read(container, file, line, "one property more than are told apart");
        }
        let property = self.properties.entry(assertion.id.clone()).or_insert_with(|| Property {
            id: assertion.id,
            kind: assertion.kind,
            message: assertion.message,
            place: assertion.place,
            held: 0,
            did_not: 0,
            broken: None,
        });
        if !assertion.hit {
            return if is_new { Line::Noted } else { Line::Known };
        }
        if property.kind.is_shown_by(assertion.condition) {
            property.held += 1;
        } else {
            property.did_not += 1;
        }
        if property.kind.is_broken_by(assertion.condition) && property.broken.is_none() {
            let (container, file) = (container.to_owned(), file.to_owned());
            property.broken = Some(Example { container, file, details: assertion.details });
        }
        Line::Noted
    }

    /// What came of it, when all lines were read; or why they were not.
    #[must_use]
    pub fn finish(self, incomplete: Option<String>) -> Asserted {
        Asserted { properties: self.properties.into_values().collect(), unread: self.unread, incomplete }
    }
}

/// An assertion as a line says it.
struct Assertion {
    id: String,
    kind: AssertionKind,
    message: String,
    place: String,
    hit: bool,
    condition: bool,
    details: Value,
}

/// What a line says.
enum Meaning {
    Assertion(Box<Assertion>),
    SetUp,
    Other,
}

/// What a line says, or why it can't be read.
fn read(line: &[u8]) -> Result<Meaning, &'static str> {
    if line.len() > MOST_OF_A_LINE {
        return Err("a line is longer than what is read of one");
    }
    let value: Value = serde_json::from_slice(line).map_err(|_| "a line is no JSON")?;
    let Value::Object(fields) = value else { return Err("a line is no JSON object") };
    if fields.get("antithesis_setup").and_then(|setup| setup.get("status")?.as_str()) == Some("complete") {
        return Ok(Meaning::SetUp);
    }
    match fields.get("antithesis_assert") {
        Some(Value::Object(fields)) => assertion(fields).map(|one| Meaning::Assertion(Box::new(one))),
        Some(_) => Err("an assertion is no JSON object"),
        None => Ok(Meaning::Other),
    }
}

fn assertion(fields: &Map<String, Value>) -> Result<Assertion, &'static str> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool);
    let id = text("id").or_else(|| text("message")).ok_or("an assertion has neither id nor message")?;
    let kind = text("assert_type").ok_or("an assertion has no assert_type")?;
    let hit = flag("hit").ok_or("an assertion does not say `hit`")?;
    let must_hit = flag("must_hit").ok_or("an assertion does not say `must_hit`")?;
    let kind = AssertionKind::of(kind, must_hit).ok_or("an assertion has an unknown assert_type")?;
    // What was not reached has none.
    let condition = match flag("condition") {
        Some(condition) => condition,
        None if !hit => false,
        None => return Err("an assertion does not say `condition`"),
    };
    Ok(Assertion {
        id: cut(id),
        kind,
        message: cut(text("message").unwrap_or(id)),
        place: fields.get("location").map(place).unwrap_or_default(),
        hit,
        condition,
        details: bounded(fields.get("details").cloned().unwrap_or_default()),
    })
}

/// `file:line, function`, as far as it is assertion.
fn place(location: &Value) -> String {
    let text = |name: &str| location.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let line = location.get("begin_line").and_then(Value::as_u64);
    let file = text("file").map(|file| match line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    });
    let parts: Vec<String> = file.into_iter().chain(text("function").map(str::to_owned)).collect();
    cut(&parts.join(", "))
}

fn bounded(details: Value) -> Value {
    let text = details.to_string();
    if text.len() <= MOST_DETAILS {
        return details;
    }
    let end = (0..=MOST_DETAILS).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    Value::String(format!("{}…", &text[..end]))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_WORDS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(kind: &str, must_hit: bool, hit: bool, condition: bool) -> Vec<u8> {
        let location = json!({ "file": "a.go", "function": "check", "begin_line": 7, "class": "" });
        let fields = json!({
            "assert_type": kind, "display_type": "x", "must_hit": must_hit, "hit": hit,
            "condition": condition, "id": "m", "message": "m", "location": location, "details": { "k": 1 },
        });
        json!({ "antithesis_assert": fields }).to_string().into_bytes()
    }

    fn of(lines: &[Vec<u8>]) -> Asserted {
        let mut assertions = Assertions::default();
        for line in lines {
            assertions.take("client", "execution-3.jsonl", line);
        }
        assertions.finish(None)
    }

    #[test]
    fn what_is_registered_is_known_and_what_is_reached_is_counted() {
        let asserted = of(&[line("always", true, false, false), line("always", true, true, true)]);
        let [property] = asserted.properties.as_slice() else { panic!("{asserted:?}") };
        assert_eq!((property.kind, property.held, property.did_not), (AssertionKind::Always, 1, 0));
        assert_eq!(property.place, "a.go:7, check");
        let asserted = of(&[line("always", false, true, false)]);
        assert_eq!(asserted.properties[0].kind, AssertionKind::AlwaysOrUnreachable);
        let broken = asserted.properties[0].broken.as_ref().expect("it was broken");
        assert_eq!((broken.container.as_str(), &broken.details), ("client", &json!({ "k": 1 })));
    }

    #[test]
    fn sometimes_and_reachability_are_told_apart_by_what_shows_and_what_breaks_them() {
        for (kind, must_hit, condition, held, breaks) in [
            ("sometimes", true, false, 0, false),
            ("sometimes", true, true, 1, false),
            ("reachability", true, true, 1, false),
            ("reachability", false, false, 0, true),
        ] {
            let asserted = of(&[line(kind, must_hit, true, condition)]);
            let property = &asserted.properties[0];
            assert_eq!((property.held, property.broken.is_some()), (held, breaks), "{kind} {must_hit}");
        }
    }

    #[test]
    fn whatever_stands_in_a_line_it_is_told_and_the_next_one_is_read() {
        let mut assertions = Assertions::default();
        let huge = vec![b'x'; MOST_OF_A_LINE + 1];
        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        let hostile: [&[u8]; 9] = [
            b"no json",
            b"\xff\xfe",
            b"[]",
            b"{\"antithesis_assert\": 3}",
            b"{\"antithesis_assert\": {}}",
            b"{\"antithesis_assert\": {\"id\": \"x\", \"assert_type\": \"never\", \"hit\": true, \
              \"must_hit\": true, \"condition\": true}}",
            b"{\"antithesis_assert\": {\"id\": \"x\", \"assert_type\": \"always\", \"hit\": true, \
              \"must_hit\": true}}",
            &huge,
            &deep,
        ];
        for line in hostile {
            assert_eq!(assertions.take("c", "f", line), Line::Unread, "{:?}", &line[..line.len().min(40)]);
        }
        let others = ["", "{}", "{\"antithesis_sdk\": {}}", "{\"antithesis_guidance\": {\"hit\": true}}"];
        for line in others {
            assert_eq!(assertions.take("c", "f", line.as_bytes()), Line::Other);
        }
        let set_up = b"{\"antithesis_setup\": {\"status\": \"complete\", \"details\": null}}";
        assert_eq!(assertions.take("c", "f", set_up), Line::SetUp);
        assert_eq!(assertions.take("c", "f", &line("always", true, true, true)), Line::Noted);
        let asserted = assertions.finish(None);
        let unread = asserted.unread.expect("some");
        assert_eq!((unread.lines, asserted.properties.len()), (9, 1));
        assert!(unread.first.contains("no JSON") && unread.first.contains("no json"), "{}", unread.first);
    }

    #[test]
    fn what_is_kept_of_a_line_is_bounded() {
        let long = "ä".repeat(10_000);
        let fields = json!({
            "assert_type": "always", "must_hit": true, "hit": true, "condition": false,
            "message": long, "location": { "file": long }, "details": { "k": long },
        });
        let asserted = of(&[json!({ "antithesis_assert": fields }).to_string().into_bytes()]);
        assert!(serde_json::to_string(&asserted).expect("JSON").len() < 10_000);
        let mut assertions = Assertions::default();
        for number in 0..MOST_PROPERTIES + 5 {
            let id = number.to_string();
            let fields = json!({ "assert_type": "always", "must_hit": true, "hit": false, "id": id });
            assertions.take("c", "f", json!({ "antithesis_assert": fields }).to_string().as_bytes());
        }
        let asserted = assertions.finish(None);
        assert_eq!(
            (asserted.properties.len(), asserted.unread.map(|unread| unread.lines)),
            (MOST_PROPERTIES, Some(5))
        );
    }
}
