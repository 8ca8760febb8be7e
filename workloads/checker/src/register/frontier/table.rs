//! Configurations, and the table that keeps each once.
//!
//! A configuration says which of the operations in the window are placed, what the register holds, and which
//! changes of unknown fate were used to get there. Of two that differ only in the last, the one that used
//! less can do whatever the other can: an operation of unknown fate need not happen. So the table keeps, for
//! each set of placed operations and value, those of which none used less than another.
//!
//! The table is emptied by counting up a number and grows only, so that a search that has found its width
//! allocates no more.

use super::super::problem::{Val, index};
use super::sets::{SetId, Sets};
use crate::budget::{Exhausted, Meter};
use crate::register::mutant::{self, Mutant};

/// Which slots of the window.
pub(super) type Mask<const N: usize> = [u64; N];

pub(super) fn has<const N: usize>(mask: &Mask<N>, slot: usize) -> bool {
    mask[slot / 64] >> (slot % 64) & 1 == 1
}

pub(super) fn set<const N: usize>(mask: &mut Mask<N>, slot: usize) {
    mask[slot / 64] |= 1 << (slot % 64);
}

pub(super) fn clear<const N: usize>(mask: &mut Mask<N>, slot: usize) {
    mask[slot / 64] &= !(1 << (slot % 64));
}

/// The slots of `mask` that are not in `but`.
pub(super) fn without<const N: usize>(mask: &Mask<N>, but: &Mask<N>) -> Mask<N> {
    std::array::from_fn(|word| mask[word] & !but[word])
}

pub(super) fn is_empty<const N: usize>(mask: &Mask<N>) -> bool {
    mask.iter().all(|&word| word == 0)
}

pub(super) fn slots<const N: usize>(mask: Mask<N>) -> impl Iterator<Item = usize> {
    mask.into_iter().enumerate().flat_map(|(word, mut bits)| {
        std::iter::from_fn(move || {
            let lowest = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(word * 64 + index(lowest))
        })
    })
}

/// One way to explain everything so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config<const N: usize> {
    pub(super) placed: Mask<N>,
    pub(super) state: Val,
    pub(super) used: SetId,
    /// How it came about, see [`super::trail`].
    pub(super) node: u32,
}

pub(super) struct Item<const N: usize> {
    pub(super) config: Config<N>,
    /// Another one that used less has come.
    pub(super) is_beaten: bool,
    next: u32,
}

#[derive(Clone, Copy, Default)]
struct Head {
    generation: u32,
    first: u32,
}

const NONE: u32 = u32::MAX;

pub(super) struct Table<const N: usize> {
    heads: Vec<Head>,
    generation: u32,
    pub(super) items: Vec<Item<N>>,
}

const FIRST_HEADS: usize = 64;

impl<const N: usize> Table<N> {
    pub(super) fn new() -> Self {
        Self { heads: vec![Head::default(); FIRST_HEADS], generation: 0, items: Vec::new() }
    }

    pub(super) fn empty(&mut self) {
        self.items.clear();
        self.generation = self.generation.checked_add(1).unwrap_or_else(|| {
            self.heads.fill(Head::default());
            1
        });
    }

    pub(super) fn bytes(&self) -> usize {
        self.heads.capacity() * size_of::<Head>() + self.items.capacity() * size_of::<Item<N>>()
    }

    /// Takes a configuration in, unless one that used no more is there. `elsewhere` is what the search holds
    /// besides.
    pub(super) fn insert(
        &mut self,
        config: Config<N>,
        sets: &Sets,
        elsewhere: usize,
        meter: &mut Meter,
    ) -> Result<(), Exhausted> {
        let mut bucket = self.bucket(&config);
        let head = self.heads[bucket];
        let mut at = if head.generation == self.generation { head.first } else { NONE };
        while let Some(item) = self.items.get_mut(index(at)) {
            at = item.next;
            if item.config.placed != config.placed || item.config.state != config.state || item.is_beaten {
                continue;
            }
            meter.step()?;
            if sets.includes(config.used, item.config.used) || mutant::is(Mutant::AnySetBeats) {
                return Ok(());
            }
            item.is_beaten = sets.includes(item.config.used, config.used);
        }
        if self.items.len() == self.items.capacity() {
            meter.hold(elsewhere + 2 * self.bytes(), 1)?;
        }
        if self.items.len() == self.heads.len() {
            self.grow();
            bucket = self.bucket(&config);
        }
        self.push(bucket, config);
        Ok(())
    }

    fn push(&mut self, bucket: usize, config: Config<N>) {
        let head = &mut self.heads[bucket];
        let next = if head.generation == self.generation { head.first } else { NONE };
        let first = u32::try_from(self.items.len()).unwrap_or(NONE);
        *head = Head { generation: self.generation, first };
        self.items.push(Item { config, is_beaten: false, next });
    }

    fn grow(&mut self) {
        self.heads = vec![Head::default(); self.heads.len() * 2];
        self.generation = 1;
        for at in 0..self.items.len() {
            let bucket = self.bucket(&self.items[at].config);
            let head = &mut self.heads[bucket];
            self.items[at].next = if head.generation == 1 { head.first } else { NONE };
            *head = Head { generation: 1, first: u32::try_from(at).unwrap_or(NONE) };
        }
    }

    /// A multiplicative hash; keys are not chosen by anyone hostile. Fixed, so that runs repeat exactly.
    fn bucket(&self, config: &Config<N>) -> usize {
        let mut hash = u64::from(config.state).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for word in config.placed {
            hash = (hash.rotate_left(26) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
        }
        let folded = (hash ^ (hash >> 32)) & u64::from(u32::MAX);
        usize::try_from(folded).unwrap_or(0) & (self.heads.len() - 1)
    }
}
