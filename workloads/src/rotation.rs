//! Places that are full make room for new ones.
//!
//! A set or a list that grows for ever makes each read longer than the last, and a run of minutes quadratic.
//! So a workload keeps a few places hot, fills each up to a number of elements, and goes on with a new one.
//! New places are made while the load runs, by whoever comes by, before the old ones are full.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::op::{Body, Object, Op};

/// A hot place.
#[derive(Clone, Copy, Debug)]
struct Hot {
    key: u64,
    used: u64,
}

/// The places of a workload.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    object: Object,
    capacity: u64,
    hot: Vec<Hot>,
    /// A place that is made and not yet used.
    spare: Option<u64>,
    /// A place that somebody makes right now.
    making: bool,
    /// All places below are made, but for the one that may be in the making.
    made: u64,
}

impl Rotation {
    /// So many hot places of a kind at a time, each for so many elements.
    pub(crate) fn new(object: Object, width: u64, capacity: u64) -> Self {
        let hot = (0..width).map(|key| Hot { key, used: 0 }).collect();
        Self { object, capacity, hot, spare: None, making: false, made: width }
    }

    /// What makes a place.
    fn creation(&self, key: u64) -> Op {
        Op::new(self.object, key, Body::MakePlace)
    }

    /// What makes those to begin with.
    pub(crate) fn setup(&self) -> Vec<Op> {
        self.hot.iter().map(|hot| self.creation(hot.key)).collect()
    }

    /// Every place that there ever was.
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> + use<> {
        0..self.made
    }

    /// A hot place.
    pub(crate) fn any(&self, rng: &mut ChaCha8Rng) -> u64 {
        self.hot[rng.random_range(0..self.hot.len())].key
    }

    /// What makes the next place, when it is time and nobody does it yet.
    pub(crate) fn creation_due(&mut self) -> Option<Op> {
        let due = self.hot.iter().any(|hot| hot.used * 2 >= self.capacity);
        if self.spare.is_some() || self.making || !due {
            return None;
        }
        self.making = true;
        Some(self.creation(self.made))
    }

    /// A creation ended, and the place is certainly there or not. After an unknown fate it is tried again,
    /// and found.
    pub(crate) fn creation_ended(&mut self, key: u64, there: bool) {
        if key != self.made {
            return;
        }
        self.making = false;
        if there {
            self.made += 1;
            self.spare = Some(key);
        }
    }

    /// An element goes into this place. True when the place was full, is no longer hot, and takes no more.
    pub(crate) fn fill(&mut self, key: u64) -> Fill {
        let Some(hot) = self.hot.iter_mut().find(|hot| hot.key == key) else { return Fill::Full };
        if hot.used < self.capacity {
            hot.used += 1;
            return Fill::Taken;
        }
        match self.spare.take() {
            Some(spare) => {
                *hot = Hot { key: spare, used: 1 };
                Fill::Moved(spare)
            }
            None => Fill::Full,
        }
    }
}

/// Whether a place takes one more element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// It does.
    Taken,
    /// It is full; this one does, in its place.
    Moved(u64),
    /// It is full, and there is no other yet.
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_place_is_followed_by_one_that_was_made_in_time() {
        let mut rotation = Rotation::new(Object::SET, 1, 4);
        assert!(rotation.creation_due().is_none());
        assert_eq!((rotation.fill(0), rotation.fill(0)), (Fill::Taken, Fill::Taken));
        let due = rotation.creation_due().expect("half full");
        assert_eq!((due.key, rotation.creation_due()), (1, None));
        rotation.creation_ended(1, false);
        assert_eq!(
            rotation.creation_due().map(|due| due.key),
            Some(1),
            "after an unknown fate it is tried again"
        );
        assert_eq!(
            (rotation.fill(0), rotation.fill(0), rotation.fill(0)),
            (Fill::Taken, Fill::Taken, Fill::Full)
        );
        rotation.creation_ended(1, true);
        assert_eq!(rotation.fill(0), Fill::Moved(1));
        assert_eq!(rotation.all().collect::<Vec<_>>(), [0, 1]);
    }
}
