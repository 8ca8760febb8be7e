//! The trace of a world: one line per transition, hashed always and kept when asked for.
//!
//! The hash is the proof of repetition: two runs of one seed have the same. It covers the fixed fields of
//! every line; the free text at the end of a line is only made when lines are kept.

use std::collections::VecDeque;
use std::fmt::Write as _;

use crate::time::Time;

/// Lines kept of one world. Older ones go first: what led to a violation stands at the end.
const MAX_LINES: usize = 400_000;

/// Mixes words into one number. Fast and fixed for ever; no defence against an adversary is needed here.
#[derive(Clone, Copy, Debug)]
pub struct Mixer(u64);

impl Default for Mixer {
    /// Nothing mixed in yet.
    fn default() -> Self {
        Self(Self::START)
    }
}

impl Mixer {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Mixes in a word.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(Self::PRIME);
    }

    /// Mixes in bytes and their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let chunk: [u8; 8] = chunk.try_into().expect("chunks of eight");
            self.word(u64::from_le_bytes(chunk));
        }
        let mut tail = [0; 8];
        tail[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
        self.word(u64::from_le_bytes(tail));
        self.word(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }

    /// The number.
    pub fn value(self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    /// The number of these bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut mixer = Self::default();
        mixer.bytes(bytes);
        mixer.value()
    }
}

/// The lines of a world.
#[derive(Clone, Debug)]
pub struct Trace {
    mixer: Mixer,
    lines: Option<VecDeque<String>>,
}

impl Trace {
    /// An empty trace that keeps its lines or does not.
    pub fn new(keep: bool) -> Self {
        Self { mixer: Mixer::default(), lines: keep.then(VecDeque::new) }
    }

    /// Writes a line: when, who (a member's number, or zero for the world), what, two figures and a free
    /// text.
    pub fn line(
        &mut self,
        at: Time,
        who: u64,
        verb: &'static str,
        figures: [u64; 2],
        text: impl FnOnce() -> String,
    ) {
        self.mixer.word(at.0);
        self.mixer.word(who);
        self.mixer.bytes(verb.as_bytes());
        self.mixer.word(figures[0]);
        self.mixer.word(figures[1]);
        if self.lines.is_some() {
            self.keep(at, who, verb, &text());
        }
    }

    /// Keeps a line. Apart from [`Self::line`], which is compiled for each text that is made.
    fn keep(&mut self, at: Time, who: u64, verb: &str, text: &str) {
        let Some(lines) = &mut self.lines else { return };
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        let mut line = format!("{at} ");
        let _ = if who == 0 { write!(line, "world {verb}") } else { write!(line, "s{who} {verb}") };
        if !text.is_empty() {
            let _ = write!(line, " {text}");
        }
        lines.push_back(line);
    }

    /// The hash of all lines so far.
    pub fn hash(&self) -> u64 {
        self.mixer.value()
    }

    /// The kept lines.
    pub fn into_lines(self) -> Vec<String> {
        self.lines.map(Vec::from).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_does_not_depend_on_whether_lines_are_kept() {
        let mut kept = Trace::new(true);
        let mut dropped = Trace::new(false);
        for trace in [&mut kept, &mut dropped] {
            trace.line(Time(3), 1, "tick", [1, 2], || "text".to_owned());
        }
        assert_eq!(kept.hash(), dropped.hash());
        assert_eq!(kept.into_lines(), ["0.000003 s1 tick text"]);
        assert!(dropped.into_lines().is_empty());
    }

    #[test]
    fn bytes_of_different_length_mix_differently() {
        assert_ne!(Mixer::of(b"a"), Mixer::of(b"a\0"));
        assert_ne!(Mixer::of(b""), Mixer::of(b"\0\0\0\0\0\0\0\0"));
    }
}
