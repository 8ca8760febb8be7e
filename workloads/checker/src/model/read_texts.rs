//! Which texts somebody reads, now or later.
//!
//! Appends that run at once can stand in any order, and a search that tries them all makes as many texts. But
//! a text that is no beginning of anything that is ever read under its key has one future only: more is
//! appended to it, which makes no such beginning of it, until a put takes its place. No answer tells one of
//! these texts from another, so all of them are one ([`Text::any`]). What is left are the beginnings of what
//! is read, and there the answers say in which order the appends stand.
//!
//! A text comes about from a put, or from nothing, by appends, so only those beginnings count that are put
//! together from what was written. They are known by their hashes: two of one hash would be one text too many
//! that is kept, and never one too few.

use std::collections::{HashMap, HashSet};

use super::kv_op::{KvAction, KvOp};
use super::text::{Text, extend_by};
use crate::hash::{FastMap, Fingerprints};

/// The texts of all keys from which what is read can come about.
#[derive(Debug)]
pub(super) struct ReadTexts {
    beginnings: FastMap<u32, Fingerprints>,
    any: Text,
}

/// What was done with a key.
#[derive(Default)]
struct Written<'a> {
    puts: HashSet<u128>,
    ends: HashSet<&'a str>,
    /// By which bytes the ends end.
    last_bytes: HashSet<u8>,
    read: HashSet<&'a Text>,
}

/// Bytes looked at, for each that was read, and beyond that: with ends of very many lengths this is not worth
/// its while.
const MOST_LOOKS: usize = 64;
const FREE_LOOKS: usize = 1 << 20;

impl ReadTexts {
    /// Those of these operations; none if it would take long to find them.
    pub(super) fn of<'a>(ops: impl Iterator<Item = &'a KvOp>) -> Option<Self> {
        let mut keys: HashMap<u32, Written<'a>> = HashMap::new();
        for op in ops {
            let written = keys.entry(op.key).or_default();
            match &op.action {
                KvAction::Get(answer) => {
                    written.read.insert(answer);
                }
                KvAction::Put(text) => {
                    written.puts.insert(text.hash());
                }
                KvAction::Append(end) => {
                    written.ends.insert(end);
                    written.last_bytes.extend(end.as_bytes().last());
                }
            }
        }
        let mut beginnings: FastMap<u32, Fingerprints> = FastMap::default();
        let mut looks_left = FREE_LOOKS;
        for (key, written) in &keys {
            let mut lengths: Vec<usize> = written.ends.iter().map(|end| end.len()).collect();
            lengths.sort_unstable();
            lengths.dedup();
            lengths.retain(|&length| length > 0);
            let found = beginnings.entry(*key).or_default();
            for text in &written.read {
                let text = text.flat();
                looks_left = looks_left.saturating_add(MOST_LOOKS.saturating_mul(text.len()));
                each_beginning(&text, written, &lengths, &mut looks_left, |hash| {
                    found.insert(hash);
                })?;
            }
        }
        Some(Self { beginnings, any: Text::any() })
    }

    /// The text, or any if nobody can tell.
    pub(super) fn as_read(&self, key: u32, text: Text) -> Text {
        if text.is_empty() || self.beginnings.get(&key).is_some_and(|of_key| of_key.contains(&text.hash())) {
            text
        } else {
            self.any.clone()
        }
    }
}

/// The beginnings of what was read that are put together from what was written; none when that takes long.
fn each_beginning(
    text: &str,
    written: &Written<'_>,
    lengths: &[usize],
    looks_left: &mut usize,
    mut found: impl FnMut(u128),
) -> Option<()> {
    let mut is_last = [false; 256];
    written.last_bytes.iter().for_each(|last| is_last[usize::from(*last)] = true);
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
        found(hash);
        for &length in lengths {
            *looks_left = looks_left.checked_sub(1)?;
            if !text.as_bytes().get(at + length - 1).is_some_and(|last| is_last[usize::from(*last)]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn op(action: KvAction) -> KvOp {
        KvOp { key: 0, action }
    }

    fn text(text: &str) -> Text {
        Text::new(text.into())
    }

    #[test]
    fn what_is_no_beginning_of_anything_that_is_read_is_one_text() {
        let ends = ["é", "b", "bc", ""].map(|end| op(KvAction::Append(end.into())));
        let others =
            [op(KvAction::Put(text("x"))), op(KvAction::Get(text("xébbc"))), op(KvAction::Get(text("")))];
        let read = ReadTexts::of(ends.iter().chain(&others)).unwrap();
        let kept = |beginning: &str| !read.as_read(0, text(beginning)).is_any();
        for beginning in ["", "x", "xé", "xéb", "xébb", "xébbc"] {
            assert!(kept(beginning), "{beginning:?}");
        }
        for other in ["b", "xb", "xébbcb", "y"] {
            assert!(!kept(other), "{other:?}");
        }
        assert_eq!(read.as_read(0, text("b")), read.as_read(0, text("bb")));
        assert_ne!(read.as_read(0, text("b")), text("…"));
        assert!(read.as_read(1, text("x")).is_any(), "under another key nobody reads");
    }

    #[test]
    fn ends_of_very_many_lengths_are_left_to_the_search() {
        let ends: Vec<KvOp> =
            (1..3000).map(|length| op(KvAction::Append("a".repeat(length).into()))).collect();
        let read = op(KvAction::Get(text(&"a".repeat(4000))));
        assert!(ReadTexts::of(ends.iter().chain([&read])).is_none());
    }
}
