//! What a client asked for, as a word.
//!
//! A word means what the workload says that uses it, so the vocabulary is open: any word may stand in a
//! history. What the checks of this crate understand has a constant here. Of every other word the pairing has
//! to know one thing, which a [`Vocabulary`] says: whether it asks for a change. Only then may an operation
//! of unknown fate still take effect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest word, in bytes.
pub const MAX_FUNCTION_BYTES: usize = 64;

/// Words that are read from outside, at most: a program keeps each of them for as long as it runs.
const MOST_WORDS: usize = 4096;

/// What a client asked for: `read`, `enqueue`, `send`. As cheap to copy and to compare as a short text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(&'static str);

impl Function {
    /// Read a register, a set or a list.
    pub const READ: Self = Self("read");
    /// Write a register.
    pub const WRITE: Self = Self("write");
    /// Write it if it holds an expected value.
    pub const CAS: Self = Self("cas");
    /// Put a unique element into a set.
    pub const ADD: Self = Self("add");
    /// Put a unique element at the end of a list.
    pub const APPEND: Self = Self("append");
    /// Make a named node; without a value, the place that others are made in.
    pub const CREATE: Self = Self("create");
    /// Delete a named node.
    pub const DELETE: Self = Self("delete");
    /// Ask whether a named node is there.
    pub const EXISTS: Self = Self("exists");
    /// Open a session.
    pub const OPEN: Self = Self("open");
    /// Close the session.
    pub const CLOSE: Self = Self("close");
    /// Leave the session to expire. Nothing is sent.
    pub const ABANDON: Self = Self("abandon");
    /// Wait for a lock, or to be elected.
    pub const ACQUIRE: Self = Self("acquire");
    /// Write to a store that a token guards.
    pub const STORE: Self = Self("store");
    /// Give up what was acquired.
    pub const RELEASE: Self = Self("release");
    /// Put a unique element at the end of a queue.
    pub const ENQUEUE: Self = Self("enqueue");
    /// Be handed the first element of a queue.
    pub const DEQUEUE: Self = Self("dequeue");
    /// Say that an element that was handed out is done, so that nobody is handed it again.
    pub const ACKNOWLEDGE: Self = Self("acknowledge");
    /// Wait at a barrier until so many have come.
    pub const ENTER: Self = Self("enter");
    /// Wait until all who entered are ready to go.
    pub const LEAVE: Self = Self("leave");
    /// Append to lists and read lists, all of it at once.
    pub const TXN: Self = Self("txn");
    /// Be told how a register changed, from a position on.
    pub const WATCH: Self = Self("watch");

    /// Those that the checks of this crate, and the workloads over them, understand.
    pub const KNOWN: [Self; 21] = [
        Self::READ,
        Self::WRITE,
        Self::CAS,
        Self::ADD,
        Self::APPEND,
        Self::CREATE,
        Self::DELETE,
        Self::EXISTS,
        Self::OPEN,
        Self::CLOSE,
        Self::ABANDON,
        Self::ACQUIRE,
        Self::STORE,
        Self::RELEASE,
        Self::ENQUEUE,
        Self::DEQUEUE,
        Self::ACKNOWLEDGE,
        Self::ENTER,
        Self::LEAVE,
        Self::TXN,
        Self::WATCH,
    ];

    /// Those of a register.
    pub const REGISTER: [Self; 3] = [Self::READ, Self::WRITE, Self::CAS];

    /// The word of a workload, as its file defines it.
    #[must_use]
    pub const fn named(word: &'static str) -> Self {
        assert!(!word.is_empty() && word.len() <= MAX_FUNCTION_BYTES);
        Self(word)
    }

    /// A word that is read from outside.
    ///
    /// # Errors
    /// Why it can't be one.
    pub fn read(word: &str) -> Result<Self, String> {
        if let Some(known) = Self::KNOWN.into_iter().find(|known| known.0 == word) {
            return Ok(known);
        }
        if word.is_empty() || word.len() > MAX_FUNCTION_BYTES {
            return Err(format!("the name of a function has 1 to {MAX_FUNCTION_BYTES} bytes"));
        }
        let known = WORDS.read().unwrap_or_else(PoisonError::into_inner).get(word).copied();
        if let Some(known) = known {
            return Ok(Self(known));
        }
        let mut words = WORDS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = words.get(word) {
            return Ok(Self(known));
        }
        if words.len() >= MOST_WORDS {
            return Err(format!("{word} is one function more than the {MOST_WORDS} that are kept apart"));
        }
        let kept: &'static str = String::leak(word.to_owned());
        words.insert(kept);
        Ok(Self(kept))
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// Words that were read from outside.
static WORDS: RwLock<BTreeSet<&'static str>> = RwLock::new(BTreeSet::new());

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for Function {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Function {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl de::Visitor<'_> for Word {
            type Value = Function;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a function")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Function, E> {
                Function::read(word).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Word)
    }
}

/// What an operation asks for, as far as its unknown fate is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// To be told something: without an answer it is over, and nothing came of it.
    Look,
    /// A change: without an answer it may still take effect at any later moment.
    Change,
}

/// Which words ask for changes. A word that is not in it does: whoever does not know cannot say that an
/// operation has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Vocabulary(BTreeMap<Function, Effect>);

impl Vocabulary {
    /// The words of this crate, and beside them these. They can be read from outside from now on, however
    /// many others were before.
    #[must_use]
    pub fn new(words: impl IntoIterator<Item = (Function, Effect)>) -> Self {
        let words: BTreeMap<Function, Effect> =
            words.into_iter().filter(|(word, _)| !Function::KNOWN.contains(word)).collect();
        WORDS.write().unwrap_or_else(PoisonError::into_inner).extend(words.keys().map(|word| word.0));
        Self(words)
    }

    /// What a word asks for. Of a transaction its micro-operations say it.
    #[must_use]
    pub fn effect(&self, word: Function) -> Effect {
        match word {
            Function::READ | Function::EXISTS | Function::ABANDON | Function::WATCH => Effect::Look,
            _ => self.0.get(&word).copied().unwrap_or(Effect::Change),
        }
    }

    /// The words that this crate does not know itself.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_same_whoever_says_it() {
        const SEND: Function = Function::named("send");
        assert_eq!(Function::read("send"), Ok(SEND));
        assert_eq!(Function::read("read"), Ok(Function::READ));
        let json: Function = serde_json::from_str("\"send\"").expect("a word");
        assert!(matches!(json, SEND));
    }

    #[test]
    fn words_from_outside_are_bounded() {
        for word in ["", &"x".repeat(MAX_FUNCTION_BYTES + 1)] {
            assert!(Function::read(word).is_err());
        }
        let refused = (0..2 * MOST_WORDS).find_map(|at| Function::read(&format!("w{at}")).err());
        assert!(refused.expect("a bound").contains("more than"));
        assert_eq!(Function::read("w0").map(Function::as_str), Ok("w0"), "what was read stays");
        let defined = Function::named("defined-by-a-workload");
        assert!(Function::read(defined.as_str()).is_err());
        let _ = Vocabulary::new([(defined, Effect::Look)]);
        assert_eq!(Function::read(defined.as_str()), Ok(defined), "a workload's own word is always one");
    }

    #[test]
    fn whoever_does_not_know_a_word_takes_it_for_a_change() {
        let (poll, send) = (Function::named("poll"), Function::named("send"));
        let vocabulary = Vocabulary::new([(poll, Effect::Look), (Function::WRITE, Effect::Look)]);
        assert_eq!((vocabulary.effect(poll), vocabulary.effect(send)), (Effect::Look, Effect::Change));
        assert_eq!(vocabulary.effect(Function::WRITE), Effect::Change, "what is known is not overruled");
        let text = serde_json::to_string(&vocabulary).expect("JSON");
        assert_eq!(text, r#"{"poll":"look"}"#);
        assert_eq!(serde_json::from_str::<Vocabulary>(&text).expect("the same"), vocabulary);
    }
}
