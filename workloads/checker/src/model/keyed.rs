//! The same object under many keys, each independent of the others: what tests of many small objects are of.

use std::sync::Arc;

use super::names::Names;
use super::{Call, Model};
use crate::history::{Datum, Rank, Record};

/// An object for each key.
#[derive(Debug, Default)]
pub struct Keyed<M> {
    object: M,
    keys: Arc<Names>,
    /// A key, and a part of its object where it has parts.
    parts: Arc<Names>,
    whole: bool,
}

/// What the objects hold that do not hold what they held at first, by the number of their key. A part of a
/// history is about one key nearly always, so one stands here itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum States<S> {
    /// All hold what they held at first.
    None,
    /// One does not.
    One(u32, S),
    /// These do not, which are two at least, in the order of their numbers.
    Several(Vec<(u32, S)>),
}

impl<S: Clone + PartialEq> States<S> {
    fn get(&self, key: u32) -> Option<&S> {
        match self {
            Self::None => None,
            Self::One(one, held) => (*one == key).then_some(held),
            Self::Several(all) => {
                let place = all.binary_search_by_key(&key, |(key, _)| *key).ok()?;
                Some(&all[place].1)
            }
        }
    }

    /// The same with another state under a key; none where that is the first one.
    fn with(&self, key: u32, held: Option<S>) -> Self {
        match (self, held) {
            (Self::None, None) => Self::None,
            (Self::None, Some(held)) => Self::One(key, held),
            (Self::One(one, _), held) if *one == key => held.map_or(Self::None, |held| Self::One(key, held)),
            (_, held) => {
                let others = self.iter().filter(|(other, _)| *other != key);
                let mut all: Vec<(u32, S)> = others.map(|(key, held)| (key, held.clone())).collect();
                all.extend(held.map(|held| (key, held)));
                all.sort_by_key(|(key, _)| *key);
                match all.len() {
                    1 => all.pop().map_or(Self::None, |(key, held)| Self::One(key, held)),
                    _ => Self::Several(all),
                }
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &S)> {
        let (one, several) = match self {
            Self::None => (None, None),
            Self::One(key, held) => (Some((*key, held)), None),
            Self::Several(all) => (None, Some(all)),
        };
        one.into_iter().chain(several.into_iter().flatten().map(|(key, held)| (*key, held)))
    }
}

impl<M: Model> Keyed<M> {
    /// Objects as this one.
    #[must_use]
    pub fn new(object: M) -> Self {
        Self { object, keys: Arc::default(), parts: Arc::default(), whole: false }
    }

    /// The same, all keys as one object: it has the same verdicts and costs more. It is there to test the
    /// searches.
    #[must_use]
    pub fn whole(object: M) -> Self {
        Self { whole: true, ..Self::new(object) }
    }

    /// The object that is under each key.
    #[cfg(test)]
    pub(crate) fn object(&self) -> &M {
        &self.object
    }

    /// An operation on the object under `key`.
    ///
    /// # Errors
    /// When there are more keys than numbers.
    pub(crate) fn under(&self, key: &Datum, op: M::Op) -> Result<(u32, M::Op), String> {
        Ok((self.keys.number(key)?, op))
    }

    fn inner(call: &Call<(u32, M::Op)>) -> Call<M::Op> {
        let Call { op: (_, op), call, ret, process, index, invoke_ns, complete_ns } = call.clone();
        Call { op, call, ret, process, index, invoke_ns, complete_ns }
    }
}

/// An element of the object under a key.
fn tagged(key: u32, element: u64) -> u64 {
    u64::from(key) << 32 ^ element
}

impl<M: Model> Model for Keyed<M> {
    /// The number of the key, and what is done with its object.
    type Op = (u32, M::Op);
    type State = States<M::State>;

    fn name(&self) -> &'static str {
        self.object.name()
    }

    fn initial(&self) -> Self::State {
        States::None
    }

    fn apply(&self, state: &Self::State, (key, op): &Self::Op) -> Option<Self::State> {
        let first = self.object.initial();
        let next = self.object.apply(state.get(*key).unwrap_or(&first), op)?;
        Some(state.with(*key, Some(next).filter(|next| *next != first)))
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<Self::Op>, String> {
        let Some(op) = self.object.decode(invoked, completed)? else { return Ok(None) };
        self.under(&invoked.key, op).map(Some)
    }

    fn as_seen_by(&self, calls: &[&Call<Self::Op>]) -> Option<Self> {
        let inner: Vec<Call<M::Op>> = calls.iter().map(|call| Self::inner(call)).collect();
        let object = self.object.as_seen_by(&inner.iter().collect::<Vec<_>>())?;
        Some(Self { object, keys: Arc::clone(&self.keys), parts: Arc::clone(&self.parts), whole: self.whole })
    }

    fn part(&self, (key, op): &Self::Op) -> Option<u64> {
        if self.whole {
            return None;
        }
        let name = self.keys.name(*key);
        let part = match self.object.part(op) {
            None => name,
            Some(part) => Datum::List(vec![name, self.object.part_name(part)]),
        };
        // There are no more parts than operations, of which there are fewer than numbers.
        self.parts.number(&part).ok().map(u64::from)
    }

    fn part_name(&self, part: u64) -> Datum {
        u32::try_from(part).map_or(Datum::Nil, |part| self.parts.name(part))
    }

    fn changes(&self, (_, op): &Self::Op) -> bool {
        self.object.changes(op)
    }

    fn observes(&self, (_, op): &Self::Op) -> bool {
        self.object.observes(op)
    }

    fn tells(&self, (_, op): &Self::Op) -> bool {
        self.object.tells(op)
    }

    fn same(&self, (key, op): &Self::Op, (other_key, other): &Self::Op) -> bool {
        key == other_key && self.object.same(op, other)
    }

    /// Each under its key; elements of an object are fewer than 2^32.
    fn elements(&self, (key, op): &Self::Op) -> Vec<u64> {
        self.object.elements(op).into_iter().map(|element| tagged(*key, element)).collect()
    }

    fn without(&self, (key, op): &Self::Op, gone: &dyn Fn(u64) -> bool) -> Option<Self::Op> {
        self.object.without(op, &|element| gone(tagged(*key, element))).map(|op| (*key, op))
    }

    fn held_bytes(&self, states: &Self::State) -> usize {
        let held = states.iter().map(|(_, state)| self.object.held_bytes(state)).sum::<usize>();
        match states {
            States::Several(all) => held + all.len() * size_of::<(u32, M::State)>(),
            _ => held,
        }
    }

    fn describe(&self, (key, op): &Self::Op) -> String {
        format!("{} of key {}", self.object.describe(op), self.keys.name(*key))
    }

    fn describe_left(&self, (key, op): &Self::Op, (_, left): &Self::Op) -> String {
        format!("{} of key {}", self.object.describe_left(op, left), self.keys.name(*key))
    }

    fn show(&self, states: &Self::State) -> Option<String> {
        match states {
            States::None => self.object.show(&self.object.initial()),
            States::One(_, only) => self.object.show(only),
            States::Several(_) => {
                let shown: Option<Vec<String>> = states
                    .iter()
                    .map(|(key, state)| {
                        Some(format!("{}: {}", self.keys.name(key), self.object.show(state)?))
                    })
                    .collect();
                Some(super::names::few(shown?.into_iter(), ["{", "}"]))
            }
        }
    }

    fn since(&self, calls: &[&Call<Self::Op>], moment: Rank) -> Option<super::Since<Self::Op>> {
        let key = calls.first()?.op.0;
        if calls.iter().any(|call| call.op.0 != key) {
            return None;
        }
        let inner: Vec<Call<M::Op>> = calls.iter().map(|call| Self::inner(call)).collect();
        let super::Since { past, rest } = self.object.since(&inner.iter().collect::<Vec<_>>(), moment)?;
        let outer = |call: Call<M::Op>| {
            let Call { op, call, ret, process, index, invoke_ns, complete_ns } = call;
            Call { op: (key, op), call, ret, process, index, invoke_ns, complete_ns }
        };
        Some(super::Since { past, rest: rest.into_iter().map(|(at, call)| (at, outer(call))).collect() })
    }

    fn shortcut(&self, calls: &[&Call<Self::Op>]) -> super::Shortcut {
        let one_key = calls.windows(2).all(|pair| pair[0].op.0 == pair[1].op.0);
        if !one_key {
            return super::Shortcut::None;
        }
        let inner: Vec<Call<M::Op>> = calls.iter().map(|call| Self::inner(call)).collect();
        let mut known = self.object.shortcut(&inner.iter().collect::<Vec<_>>());
        if let super::Shortcut::Refuted { elements, .. } = &mut known {
            elements.iter_mut().for_each(|element| *element = tagged(calls[0].op.0, *element));
        }
        known
    }
}
