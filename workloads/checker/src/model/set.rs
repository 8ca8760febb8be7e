//! A set of elements: `add`, `remove`, `contains`, and a `read` of all.
//!
//! Without a `read` of all every element is an object of its own, and is judged as one. `contains` is
//! answered by true or false, or by `[element, true]`; so is, where it says so, an `add` that found its
//! element there already or a `remove` that did not (false: nothing changed).

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Model;
use super::names::{Names, few};
use crate::history::{Datum, EventKind, Record};

/// A set that is empty at first.
#[derive(Debug, Default)]
pub struct Set {
    names: Names,
    /// Whether somebody read all of it.
    read_whole: AtomicBool,
}

/// What can be done with a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetOp {
    /// The element is in it from here on; where known, whether it was not before.
    Add(u32, Option<bool>),
    /// The element is not in it from here on; where known, whether it was before.
    Remove(u32, Option<bool>),
    /// Whether the element was in it.
    Contains(u32, bool),
    /// These were in it, and no others.
    Read(Elements),
}

/// A set of small numbers, as bits in blocks that states share.
#[derive(Clone, Debug, Default)]
pub struct Elements {
    blocks: Arc<Vec<Arc<Block>>>,
    count: u32,
    /// The exclusive or of a number for each element, so that it can be kept up to date.
    hash: u128,
}

const WORDS: usize = 16;
const BITS: usize = 64 * WORDS;
type Block = [u64; WORDS];

fn place(element: u32) -> (usize, usize, u64) {
    let at = usize::try_from(element).unwrap_or(usize::MAX);
    (at / BITS, at % BITS / 64, 1 << (at % 64))
}

fn number_of(element: u32) -> u128 {
    let number = (u128::from(element) + 1).wrapping_mul(0x2d35_8dcc_aa6c_78a5_8bb8_4b93_962e_acc9);
    (number ^ (number >> 59)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) ^ (number >> 67)
}

impl Elements {
    /// Whether the element is there.
    #[must_use]
    pub fn contains(&self, element: u32) -> bool {
        let (block, word, bit) = place(element);
        self.blocks.get(block).is_some_and(|block| block[word] & bit != 0)
    }

    /// Puts it there or takes it away.
    fn toggle(&mut self, element: u32) {
        let (block, word, bit) = place(element);
        let blocks = Arc::make_mut(&mut self.blocks);
        if blocks.len() <= block {
            blocks.resize_with(block + 1, Arc::default);
        }
        let word = &mut Arc::make_mut(&mut blocks[block])[word];
        *word ^= bit;
        if *word & bit == 0 {
            self.count -= 1
        } else {
            self.count += 1
        }
        self.hash ^= number_of(element);
    }

    fn with(&self, element: u32, there: bool) -> Self {
        let mut changed = self.clone();
        if self.contains(element) != there {
            changed.toggle(element);
        }
        changed
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let bits = self
            .blocks
            .iter()
            .flat_map(|block| block.iter())
            .flat_map(|&word| (0..64).map(move |bit| word >> bit & 1));
        bits.zip(0..).filter(|&(bit, _)| bit == 1).map(|(_, element)| element)
    }
}

impl FromIterator<u32> for Elements {
    fn from_iter<I: IntoIterator<Item = u32>>(elements: I) -> Self {
        let mut set = Self::default();
        for element in elements {
            if !set.contains(element) {
                set.toggle(element);
            }
        }
        set
    }
}

impl PartialEq for Elements {
    fn eq(&self, other: &Self) -> bool {
        if (self.count, self.hash) != (other.count, other.hash) {
            return false;
        }
        let same = |(one, other): (&Arc<Block>, &Arc<Block>)| Arc::ptr_eq(one, other) || one == other;
        // The counts are equal: if all common blocks are, then what one has beyond them is empty.
        Arc::ptr_eq(&self.blocks, &other.blocks) || self.blocks.iter().zip(&*other.blocks).all(same)
    }
}

impl Eq for Elements {}

impl Hash for Elements {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.hash);
    }
}

impl Set {
    /// A set that is judged as one object even when nobody reads all of it.
    #[must_use]
    pub fn whole() -> Self {
        Self { read_whole: AtomicBool::new(true), ..Self::default() }
    }

    fn answer(answered: &Record) -> Option<bool> {
        match &answered.value {
            Datum::Bool(answer) => Some(*answer),
            Datum::List(pair) => match pair.as_slice() {
                [_, Datum::Bool(answer)] => Some(*answer),
                [_, Datum::Int(answer)] => Some(*answer != 0),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Model for Set {
    type Op = SetOp;
    type State = Elements;

    fn name(&self) -> &'static str {
        "set"
    }

    fn initial(&self) -> Elements {
        Elements::default()
    }

    fn apply(&self, state: &Elements, op: &SetOp) -> Option<Elements> {
        match *op {
            SetOp::Add(element, new) => {
                let right = new.is_none_or(|new| new != state.contains(element));
                right.then(|| state.with(element, true))
            }
            SetOp::Remove(element, found) => {
                let right = found.is_none_or(|found| found == state.contains(element));
                right.then(|| state.with(element, false))
            }
            SetOp::Contains(element, there) => (state.contains(element) == there).then(|| state.clone()),
            SetOp::Read(ref all) => (state == all).then(|| state.clone()),
        }
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<SetOp>, String> {
        let happened = completed.filter(|completed| completed.kind == EventKind::Ok);
        let failed = completed.is_some() && happened.is_none();
        let element = || match &invoked.value {
            Datum::List(pair) if invoked.f.starts_with("contains") && !pair.is_empty() => {
                self.names.number(&pair[0])
            }
            element => self.names.number(element),
        };
        Ok(match (&*invoked.f, happened) {
            ("contains" | "exists" | "read", None) => None,
            ("contains" | "exists", Some(happened)) => {
                let there = Self::answer(happened).ok_or("contains is answered by true or false")?;
                Some(SetOp::Contains(element()?, there))
            }
            ("read", Some(happened)) => {
                let all = happened.value.as_list().ok_or("a read of a set is answered by a list")?;
                self.read_whole.store(true, Ordering::Relaxed);
                let numbers: Result<Elements, String> =
                    all.iter().map(|name| self.names.number(name)).collect();
                Some(SetOp::Read(numbers?))
            }
            ("add" | "remove" | "delete", _) if failed => None,
            ("add", _) => Some(SetOp::Add(element()?, happened.and_then(Self::answer))),
            ("remove" | "delete", _) => Some(SetOp::Remove(element()?, happened.and_then(Self::answer))),
            (other, _) => return Err(format!("a set has no {other}")),
        })
    }

    fn part(&self, op: &SetOp) -> Option<u64> {
        if self.read_whole.load(Ordering::Relaxed) {
            return None;
        }
        match *op {
            SetOp::Add(element, _) | SetOp::Remove(element, _) | SetOp::Contains(element, _) => {
                Some(element.into())
            }
            SetOp::Read(_) => None,
        }
    }

    fn changes(&self, op: &SetOp) -> bool {
        matches!(op, SetOp::Add(..) | SetOp::Remove(..))
    }

    fn observes(&self, op: &SetOp) -> bool {
        !matches!(op, SetOp::Add(_, None | Some(true)) | SetOp::Remove(_, None | Some(true)))
    }

    fn tells(&self, op: &SetOp) -> bool {
        !matches!(op, SetOp::Add(_, None) | SetOp::Remove(_, None))
    }

    fn same(&self, one: &SetOp, other: &SetOp) -> bool {
        one == other
    }

    fn elements(&self, op: &SetOp) -> Vec<u64> {
        match op {
            SetOp::Add(element, _) | SetOp::Remove(element, _) | SetOp::Contains(element, _) => {
                vec![(*element).into()]
            }
            SetOp::Read(all) => all.iter().map(u64::from).collect(),
        }
    }

    /// Elements do not know of each other: an order of all of them, with one taken out of everything, is an
    /// order of the others.
    fn without(&self, op: &SetOp, gone: &dyn Fn(u64) -> bool) -> Option<SetOp> {
        match op {
            SetOp::Add(element, _) | SetOp::Remove(element, _) | SetOp::Contains(element, _) => {
                (!gone((*element).into())).then(|| op.clone())
            }
            SetOp::Read(all) => {
                Some(SetOp::Read(all.iter().filter(|&element| !gone(element.into())).collect()))
            }
        }
    }

    fn describe(&self, op: &SetOp) -> String {
        let name = |element: u32| self.names.name(element);
        match op {
            SetOp::Add(element, None | Some(true)) => format!("add {}", name(*element)),
            SetOp::Add(element, Some(false)) => format!("add {} → was there", name(*element)),
            SetOp::Remove(element, None | Some(true)) => format!("remove {}", name(*element)),
            SetOp::Remove(element, Some(false)) => format!("remove {} → was not there", name(*element)),
            SetOp::Contains(element, there) => {
                format!("contains {} → {}", name(*element), if *there { "yes" } else { "no" })
            }
            SetOp::Read(all) => format!("read → {}", self.show(all).unwrap_or_default()),
        }
    }

    /// What is left first: it is what the others are about.
    fn describe_left(&self, op: &SetOp, left: &SetOp) -> String {
        let (SetOp::Read(all), SetOp::Read(kept)) = (op, left) else { return self.describe(left) };
        let others = all.iter().filter(|element| !kept.contains(*element));
        let names: Vec<String> =
            kept.iter().chain(others).map(|element| self.names.name(element).to_string()).collect();
        format!("read → {}", few(names.into_iter(), ["{", "}"]))
    }

    fn show(&self, state: &Elements) -> Option<String> {
        let names: Vec<String> = state.iter().map(|element| self.names.name(element).to_string()).collect();
        Some(few(names.into_iter(), ["{", "}"]))
    }

    fn part_name(&self, part: u64) -> Datum {
        u32::try_from(part).map_or(Datum::Nil, |part| self.names.name(part))
    }
}
