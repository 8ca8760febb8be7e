//! Small numbers for keys and elements.
//!
//! A history of a million transactions names few keys, and elements that are nearly always integers. Both
//! become numbers of four bytes once; what they were called is only needed again for a sentence.

use crate::hash::FastMap;
use crate::history::Datum;

/// Nothing has this number.
pub(super) const NONE: u32 = u32::MAX;

/// Values of any shape, numbered in the order of their appearance.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: FastMap<Datum, u32>,
    names: Vec<Datum>,
}

impl Names {
    pub(super) fn number(&mut self, name: &Datum) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = to_u32(self.names.len());
        self.numbers.insert(name.clone(), number);
        self.names.push(name.clone());
        number
    }

    pub(super) fn name(&self, number: u32) -> &Datum {
        &self.names[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}

/// An element as it is compared: an integer, or the number of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    Int(i64),
    Other(u32),
}

/// A count that was bounded before.
pub(super) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).expect("a history is refused before it has so many parts")
}
