//! Texts under keys, with `get`, `put` and `append`; a key that nobody wrote holds the empty text.
//!
//! Each key is a part of its own ([`Kv::default`]). The whole map as one object ([`Kv::whole`]) has the same
//! verdicts and costs more: it is there to test the searches, and for conditions that are not local. Searches
//! take all texts that nobody reads, nor anything that begins with them, for one.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use super::kv_op::{KvAction, KvOp};
use super::names::Names;
use super::read_texts::ReadTexts;
pub use super::text::Text;
use super::{Call, Model};
use crate::history::{Datum, EventKind, Record};

/// A map from keys to texts.
#[derive(Debug, Default)]
pub struct Kv {
    keys: Arc<Names>,
    whole: bool,
    /// What somebody reads, if all other texts are to be one.
    read: Option<ReadTexts>,
}

/// The texts of the keys that hold one; empty ones are left out. Within one key nothing but its text is
/// copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum KvState {
    /// None.
    #[default]
    Nothing,
    /// One key does.
    One(u32, Text),
    /// At least two do.
    Several(BTreeMap<u32, Text>),
}

impl KvState {
    fn get(&self, key: u32) -> Option<&Text> {
        match self {
            Self::Nothing => None,
            Self::One(only, text) => (*only == key).then_some(text),
            Self::Several(texts) => texts.get(&key),
        }
    }

    fn all(&self) -> Vec<(u32, &Text)> {
        match self {
            Self::Nothing => Vec::new(),
            Self::One(key, text) => vec![(*key, text)],
            Self::Several(texts) => texts.iter().map(|(key, text)| (*key, text)).collect(),
        }
    }

    fn with(&self, key: u32, text: Text) -> Self {
        match self {
            Self::Nothing if text.is_empty() => Self::Nothing,
            Self::Nothing => Self::One(key, text),
            Self::One(only, _) if *only == key => Self::Nothing.with(key, text),
            Self::One(..) if text.is_empty() => self.clone(),
            Self::One(other, held) => Self::Several([(*other, held.clone()), (key, text)].into()),
            Self::Several(texts) => {
                let mut texts = texts.clone();
                if text.is_empty() {
                    texts.remove(&key)
                } else {
                    texts.insert(key, text)
                };
                match texts.pop_first() {
                    Some((only, text)) if texts.is_empty() => Self::One(only, text),
                    Some((first, text)) => {
                        texts.insert(first, text);
                        Self::Several(texts)
                    }
                    None => Self::Nothing,
                }
            }
        }
    }
}

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
        KvState::default()
    }

    fn apply(&self, state: &KvState, op: &KvOp) -> Option<KvState> {
        let held = state.get(op.key);
        let text = match &op.action {
            KvAction::Append(_) if held.is_some_and(Text::is_any) => return Some(state.clone()),
            KvAction::Get(answer) => {
                return match held {
                    None => answer.is_empty().then(|| state.clone()),
                    Some(held) if held != answer => None,
                    // The same text in one piece is cheaper for whoever goes on from here.
                    Some(held) if !held.is_flat() => Some(state.with(op.key, answer.clone())),
                    Some(_) => Some(state.clone()),
                };
            }
            KvAction::Put(text) => text.clone(),
            KvAction::Append(end) => match held {
                Some(held) => held.append(end),
                None => Text::new(Arc::clone(end)),
            },
        };
        let text = match &self.read {
            Some(read) => read.as_read(op.key, text),
            None => text,
        };
        Some(state.with(op.key, text))
    }

    fn as_seen_by(&self, calls: &[&Call<KvOp>]) -> Option<Self> {
        let read = ReadTexts::of(calls.iter().map(|call| &call.op))?;
        Some(Self { keys: Arc::clone(&self.keys), whole: self.whole, read: Some(read) })
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

    fn tells(&self, op: &KvOp) -> bool {
        matches!(op.action, KvAction::Get(_))
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

    fn held_bytes(&self, state: &KvState) -> usize {
        match state {
            KvState::Nothing => 0,
            KvState::One(_, text) => text.own_bytes(),
            KvState::Several(texts) => {
                texts.values().map(|text| text.own_bytes() + 2 * size_of::<(u32, Text)>()).sum()
            }
        }
    }

    fn describe(&self, op: &KvOp) -> String {
        let key = self.keys.name(op.key);
        match &op.action {
            KvAction::Get(answer) => format!("get {key} → {:?}", end_of(&answer.flat())),
            KvAction::Put(text) => format!("put {key} {:?}", end_of(&text.flat())),
            KvAction::Append(end) => format!("append {key} {:?}", end_of(end)),
        }
    }

    fn show(&self, state: &KvState) -> Option<String> {
        let all = state.all();
        if !self.whole {
            let text = all.first().map(|(_, text)| text.flat()).unwrap_or_default();
            return Some(format!("{:?}", end_of(&text)));
        }
        let shown =
            all.into_iter().map(|(key, text)| format!("{}: {:?}", self.keys.name(key), end_of(&text.flat())));
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
