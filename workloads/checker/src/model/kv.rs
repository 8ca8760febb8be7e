//! A text with `get`, `put` and `append`, the empty one at first. A map of texts has one under each key
//! ([`super::keyed::Keyed`]).
//!
//! A search makes a text of every order of appends that it tries, and nearly all of them are a known text
//! with one more piece. So a text is a flat beginning that many share, and a chain of the pieces behind it
//! ([`Text`]).
//!
//! Appends that run at once can stand in any order. But a text that is no beginning of anything that is ever
//! read has one future only: more is appended to it, which makes no such beginning of it, until a put takes
//! its place. No answer tells one of these texts from another, so all of them are one (`Text::any`). What
//! is left are the beginnings of what is read (`Beginnings`), and there the answers say in which order the
//! appends stand.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{Call, Model};
use crate::hash::Fingerprints;
use crate::history::{Datum, EventKind, Record};

/// One text.
#[derive(Debug, Default)]
pub struct Kv {
    /// What somebody reads, if all other texts are to be one.
    read: Option<Beginnings>,
}

/// What can be done with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KvOp {
    /// This is what it was.
    Get(Text),
    /// It is this from here on.
    Put(Text),
    /// This comes at its end.
    Append(Arc<str>),
}

/// A text in pieces. Its hash is a polynomial over the bytes, which an appended piece continues; texts of
/// one hash and one length are taken for the same, as configurations are by their fingerprints
/// ([`crate::search::depth_first`]).
#[derive(Clone, Debug)]
pub struct Text {
    hash: u128,
    bytes: usize,
    start: Arc<str>,
    end: Option<Arc<Piece>>,
}

/// A piece behind others.
#[derive(Debug)]
struct Piece {
    before: Option<Arc<Piece>>,
    text: Arc<str>,
    /// Its place in the chain, from 1.
    nth: u8,
}

/// A chain that is longer is made flat, so that neither looking through it nor dropping it takes long.
const MOST_PIECES: u8 = 64;

impl Text {
    /// A flat text.
    fn new(text: Arc<str>) -> Self {
        Self { hash: text.bytes().fold(0, extend_by), bytes: text.len(), start: text, end: None }
    }

    /// The same with `end` behind it.
    fn append(&self, end: &Arc<str>) -> Self {
        if end.is_empty() {
            return self.clone();
        }
        let nth = self.end.as_ref().map_or(0, |last| last.nth);
        let (hash, bytes) = (end.bytes().fold(self.hash, extend_by), self.bytes + end.len());
        if nth == MOST_PIECES {
            let mut flat = self.flat();
            flat.push_str(end);
            return Self { hash, bytes, start: flat.into(), end: None };
        }
        let piece = Piece { before: self.end.clone(), text: Arc::clone(end), nth: nth + 1 };
        Self { hash, bytes, start: Arc::clone(&self.start), end: Some(Arc::new(piece)) }
    }

    /// Some text of which it does not matter what it is: it equals itself and no other, and is not to be
    /// appended to.
    fn any() -> Self {
        Self { hash: 0, bytes: usize::MAX, start: "…".into(), end: None }
    }

    fn is_any(&self) -> bool {
        self.bytes == usize::MAX
    }

    /// The whole in one piece.
    fn flat(&self) -> String {
        let chain = std::iter::successors(self.end.as_deref(), |piece| piece.before.as_deref());
        let mut pieces: Vec<&str> = chain.map(|piece| &*piece.text).chain([&*self.start]).collect();
        pieces.reverse();
        pieces.concat()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        (self.hash, self.bytes) == (other.hash, other.bytes)
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.hash);
    }
}

/// The hash of a text with one more byte, from that of the text; that of the empty one is 0.
fn extend_by(hash: u128, byte: u8) -> u128 {
    const FACTOR: u128 = 0x2d35_8dcc_aa6c_78a5_8bb8_4b93_962e_acc9;
    (hash ^ (hash >> 71)).wrapping_mul(FACTOR).wrapping_add(u128::from(byte) + 1)
}

/// The texts from which what is read can come about, by their hashes: two of one hash would be one text too
/// many that is kept, and never one too few. A text comes about from a put, or from nothing, by appends, so
/// only those beginnings count that are put together from what was written.
#[derive(Debug, Default)]
struct Beginnings(Fingerprints);

/// What was done with a text.
struct Written<'a> {
    puts: HashSet<u128>,
    ends: HashSet<&'a str>,
    /// How long they are.
    lengths: Vec<usize>,
    /// By which bytes they end.
    ends_by: [bool; 256],
}

/// Bytes looked at, for each that was read, and beyond that: with ends of very many lengths this is not worth
/// its while.
const MOST_LOOKS: usize = 64;
const FREE_LOOKS: usize = 1 << 20;

impl Beginnings {
    /// Those of what these operations read; none if it would take long to find them.
    fn of<'a>(ops: impl Iterator<Item = &'a KvOp>) -> Option<Self> {
        let mut written = Written {
            puts: HashSet::new(),
            ends: HashSet::new(),
            lengths: Vec::new(),
            ends_by: [false; 256],
        };
        let mut read = HashSet::new();
        for op in ops {
            match op {
                KvOp::Get(answer) => {
                    read.insert(answer);
                }
                KvOp::Put(text) => {
                    written.puts.insert(text.hash);
                }
                KvOp::Append(end) => {
                    written.ends.insert(end);
                    end.as_bytes().last().iter().for_each(|&&last| written.ends_by[usize::from(last)] = true);
                }
            }
        }
        written.lengths = written.ends.iter().map(|end| end.len()).filter(|&length| length > 0).collect();
        written.lengths.sort_unstable();
        written.lengths.dedup();
        let mut beginnings = Self::default();
        let mut looks_left = FREE_LOOKS;
        for text in read {
            let text = text.flat();
            looks_left = looks_left.saturating_add(MOST_LOOKS.saturating_mul(text.len()));
            beginnings.add(&text, &written, &mut looks_left)?;
        }
        Some(beginnings)
    }

    /// Adds those of a text that was read; none when that takes long.
    fn add(&mut self, text: &str, written: &Written<'_>, looks_left: &mut usize) -> Option<()> {
        let mut is_beginning = vec![false; text.len() + 1];
        is_beginning[0] = true;
        let mut hash = 0;
        for at in 0..=text.len() {
            if at > 0 {
                hash = extend_by(hash, text.as_bytes()[at - 1]);
            }
            if !is_beginning[at] && !written.puts.contains(&hash) {
                continue;
            }
            self.0.insert(hash);
            for &length in &written.lengths {
                *looks_left = looks_left.checked_sub(1)?;
                let last = text.as_bytes().get(at + length - 1);
                if !last.is_some_and(|&last| written.ends_by[usize::from(last)]) {
                    continue;
                }
                *looks_left = looks_left.checked_sub(length)?;
                if text.get(at..at + length).is_some_and(|end| written.ends.contains(end)) {
                    is_beginning[at + length] = true;
                }
            }
        }
        Some(())
    }

    /// The text, or any if nobody can tell.
    fn as_read(&self, text: Text) -> Text {
        if text.bytes == 0 || self.0.contains(&text.hash) { text } else { Text::any() }
    }
}

fn text(value: &Datum) -> Result<Arc<str>, String> {
    match value {
        Datum::Text(text) => Ok(Arc::clone(text)),
        Datum::Int(number) => Ok(number.to_string().into()),
        Datum::Nil => Ok(Arc::from("")),
        other => Err(format!("{other} is no text")),
    }
}

impl Model for Kv {
    type Op = KvOp;
    type State = Text;

    fn name(&self) -> &'static str {
        "kv"
    }

    fn initial(&self) -> Text {
        Text::new("".into())
    }

    fn apply(&self, held: &Text, op: &KvOp) -> Option<Text> {
        let text = match op {
            // The same text in one piece is cheaper for whoever goes on from here.
            KvOp::Get(answer) => return (held == answer).then(|| answer.clone()),
            KvOp::Append(_) if held.is_any() => return Some(held.clone()),
            KvOp::Put(text) => text.clone(),
            KvOp::Append(end) => held.append(end),
        };
        Some(match &self.read {
            Some(read) => read.as_read(text),
            None => text,
        })
    }

    fn as_seen_by(&self, calls: &[&Call<KvOp>]) -> Option<Self> {
        Some(Self { read: Some(Beginnings::of(calls.iter().map(|call| &call.op))?) })
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<KvOp>, String> {
        let happened = completed.filter(|completed| completed.kind == EventKind::Ok);
        let failed = completed.is_some() && happened.is_none();
        Ok(Some(match (&*invoked.f, happened) {
            ("get", None) => return Ok(None),
            ("get", Some(happened)) => KvOp::Get(Text::new(text(&happened.value)?)),
            ("put" | "append", _) if failed => return Ok(None),
            ("put", _) => KvOp::Put(Text::new(text(&invoked.value)?)),
            ("append", _) => KvOp::Append(text(&invoked.value)?),
            (other, _) => return Err(format!("a map of texts has no {other}")),
        }))
    }

    fn changes(&self, op: &KvOp) -> bool {
        !matches!(op, KvOp::Get(_))
    }

    fn tells(&self, op: &KvOp) -> bool {
        matches!(op, KvOp::Get(_))
    }

    fn same(&self, one: &KvOp, other: &KvOp) -> bool {
        one == other
    }

    /// The text is one element, and all or nothing of it can be left out: every append is in all that comes
    /// after it.
    fn elements(&self, _: &KvOp) -> Vec<u64> {
        vec![0]
    }

    fn without(&self, op: &KvOp, gone: &dyn Fn(u64) -> bool) -> Option<KvOp> {
        (!gone(0)).then(|| op.clone())
    }

    fn held_bytes(&self, text: &Text) -> usize {
        text.end.as_ref().map_or(0, |_| size_of::<Piece>() + 2 * size_of::<usize>())
    }

    fn describe(&self, op: &KvOp) -> String {
        match op {
            KvOp::Get(answer) => format!("get → {:?}", end_of(&answer.flat())),
            KvOp::Put(text) => format!("put {:?}", end_of(&text.flat())),
            KvOp::Append(end) => format!("append {:?}", end_of(end)),
        }
    }

    fn show(&self, text: &Text) -> Option<String> {
        Some(format!("{:?}", end_of(&text.flat())))
    }
}

/// Texts grow at their end, and differ there.
const MOST_CHARACTERS: usize = 40;

fn end_of(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().rev().nth(MOST_CHARACTERS) {
        None => text.into(),
        Some((at, _)) => format!("…{}", &text[at..]).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str) -> Text {
        Text::new(text.into())
    }

    #[test]
    fn however_a_text_came_about_it_equals_the_flat_one() {
        let (mut pieces, mut whole) = (flat(""), String::new());
        for n in 0..200 {
            let piece: Arc<str> = format!("{n}{}", "é".repeat(n % 3)).into();
            pieces = pieces.append(&piece);
            whole.push_str(&piece);
            assert_eq!((&pieces, pieces.flat()), (&flat(&whole), whole.clone()), "{n}");
        }
    }

    #[test]
    fn what_is_no_beginning_of_anything_that_is_read_is_one_text() {
        let ends = ["é", "b", "bc", ""].map(|end| KvOp::Append(end.into()));
        let others = [KvOp::Put(flat("x")), KvOp::Get(flat("xébbc")), KvOp::Get(flat(""))];
        let read = Beginnings::of(ends.iter().chain(&others)).unwrap();
        let kept = |beginning: &str| !read.as_read(flat(beginning)).is_any();
        for beginning in ["", "x", "xé", "xéb", "xébb", "xébbc"] {
            assert!(kept(beginning), "{beginning:?}");
        }
        for other in ["b", "xb", "xébbcb", "y"] {
            assert!(!kept(other), "{other:?}");
        }
        assert_eq!(read.as_read(flat("b")), read.as_read(flat("bb")));
        assert_ne!(read.as_read(flat("b")), flat("…"));
    }

    #[test]
    fn ends_of_very_many_lengths_are_left_to_the_search() {
        let ends: Vec<KvOp> = (1..3000).map(|length| KvOp::Append("a".repeat(length).into())).collect();
        let read = KvOp::Get(flat(&"a".repeat(4000)));
        assert!(Beginnings::of(ends.iter().chain([&read])).is_none());
    }
}
