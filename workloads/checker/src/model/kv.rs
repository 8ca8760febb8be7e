//! Texts under keys, with `get`, `put` and `append`; a key that nobody wrote holds the empty text.
//!
//! Each key is a part of its own ([`Kv::default`]). The whole map as one object ([`Kv::whole`]) has the same verdicts
//! and costs more: it is there to test the searches, and for conditions that are not local.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Model;
use super::names::Names;
use crate::history::{Datum, EventKind, Record};

/// A map from keys to texts.
#[derive(Debug, Default)]
pub struct Kv {
    keys: Names,
    whole: bool,
}

/// What can be done with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvOp {
    /// The number of the key.
    pub key: u32,
    /// What is done with it.
    pub action: KvAction,
}

/// What can be done with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KvAction {
    /// This is what it was.
    Get(Text),
    /// It is this from here on.
    Put(Text),
    /// This comes at its end.
    Append(Arc<str>),
}

/// A text that is cheap to clone, and mostly to compare: its hash is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    hash: u128,
    text: Arc<str>,
}

impl Text {
    fn new(text: Arc<str>) -> Self {
        Self { hash: extend(0, &text), text }
    }

    fn append(&self, end: &str) -> Self {
        Self { hash: extend(self.hash, end), text: [&*self.text, end].concat().into() }
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.hash);
    }
}

/// A polynomial over the bytes, so that the hash of an appended text does not look at what was there.
fn extend(hash: u128, text: &str) -> u128 {
    const FACTOR: u128 = 0x2d35_8dcc_aa6c_78a5_8bb8_4b93_962e_acc9;
    text.bytes().fold(hash, |hash, byte| {
        (hash ^ (hash >> 71)).wrapping_mul(FACTOR).wrapping_add(u128::from(byte) + 1)
    })
}

/// The texts of the keys that were written.
pub type KvState = BTreeMap<u32, Text>;

impl Kv {
    /// The whole map as one object.
    #[must_use]
    pub fn whole() -> Self {
        Self { whole: true, ..Self::default() }
    }
}

fn text(value: &Datum) -> Option<Arc<str>> {
    match value {
        Datum::Text(text) => Some(Arc::clone(text)),
        Datum::Int(number) => Some(number.to_string().into()),
        Datum::Nil => Some(Arc::from("")),
        _ => None,
    }
}

impl Model for Kv {
    type Op = KvOp;
    type State = KvState;

    fn name(&self) -> &'static str {
        if self.whole { "kv-whole" } else { "kv" }
    }

    fn initial(&self) -> KvState {
        KvState::new()
    }

    fn apply(&self, state: &KvState, op: &KvOp) -> Option<KvState> {
        let text = match &op.action {
            KvAction::Get(answer) => {
                let held = state.get(&op.key);
                let right = held.map_or(answer.text.is_empty(), |held| held == answer);
                return right.then(|| state.clone());
            }
            KvAction::Put(text) => text.clone(),
            KvAction::Append(end) => match state.get(&op.key) {
                Some(held) => held.append(end),
                None => Text::new(Arc::clone(end)),
            },
        };
        let mut state = state.clone();
        // A key that holds nothing and one that was never written are the same.
        if text.text.is_empty() {
            state.remove(&op.key)
        } else {
            state.insert(op.key, text)
        };
        Some(state)
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<KvOp>, String> {
        let happened = completed.filter(|completed| completed.kind == EventKind::Ok);
        let failed = completed.is_some() && happened.is_none();
        let text = |value: &Datum| text(value).ok_or_else(|| format!("{value} is no text"));
        let action = match (&*invoked.f, happened) {
            ("get", None) => return Ok(None),
            ("get", Some(happened)) => KvAction::Get(Text::new(text(&happened.value)?)),
            ("put" | "append", _) if failed => return Ok(None),
            ("put", _) => KvAction::Put(Text::new(text(&invoked.value)?)),
            ("append", _) => KvAction::Append(text(&invoked.value)?),
            (other, _) => return Err(format!("a map of texts has no {other}")),
        };
        Ok(Some(KvOp { key: self.keys.number(&invoked.key)?, action }))
    }

    fn part(&self, op: &KvOp) -> Option<u64> {
        (!self.whole).then_some(op.key.into())
    }

    fn changes(&self, op: &KvOp) -> bool {
        !matches!(op.action, KvAction::Get(_))
    }

    fn same(&self, one: &KvOp, other: &KvOp) -> bool {
        one == other
    }

    fn elements(&self, op: &KvOp) -> Vec<u64> {
        // Within one key nothing can be left out: every append is in all that comes after it.
        vec![op.key.into()]
    }

    fn without(&self, op: &KvOp, gone: &dyn Fn(u64) -> bool) -> Option<KvOp> {
        (!gone(op.key.into())).then(|| op.clone())
    }

    fn describe(&self, op: &KvOp) -> String {
        let key = self.keys.name(op.key);
        match &op.action {
            KvAction::Get(answer) => format!("get {key} → {:?}", end_of(&answer.text)),
            KvAction::Put(text) => format!("put {key} {:?}", end_of(&text.text)),
            KvAction::Append(end) => format!("append {key} {:?}", end_of(end)),
        }
    }

    fn show(&self, state: &KvState) -> Option<String> {
        if !self.whole {
            return Some(format!("{:?}", state.values().next().map_or("".into(), |text| end_of(&text.text))));
        }
        let shown =
            state.iter().map(|(&key, text)| format!("{}: {:?}", self.keys.name(key), end_of(&text.text)));
        Some(super::names::few(shown, ["{", "}"]))
    }

    fn part_name(&self, part: u64) -> Datum {
        u32::try_from(part).map_or(Datum::Nil, |part| self.keys.name(part))
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
