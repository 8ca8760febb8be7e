//! Which changes of unknown fate a configuration has used: small multisets of classes, each kept once and
//! named by a number, so that a configuration stays small and comparing two is mostly comparing numbers.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::problem::index;

/// The number of a multiset.
pub(super) type SetId = u32;
/// The number of a class, see [`super::opens`].
pub(super) type ClassId = u32;

/// Nothing used.
pub(super) const EMPTY: SetId = 0;

pub(super) struct Sets {
    /// Each sorted; a class that was used twice stands twice.
    lists: Vec<Arc<[ClassId]>>,
    numbers: HashMap<Arc<[ClassId]>, SetId>,
    bytes: usize,
}

/// Beside its members: two pointers with lengths, two counts, the number and the table's share.
const SET_BYTES: usize = 96;

impl Sets {
    pub(super) fn new() -> Self {
        let mut sets = Self { lists: Vec::new(), numbers: HashMap::new(), bytes: 0 };
        sets.number_of(Vec::new());
        sets
    }

    fn number_of(&mut self, list: Vec<ClassId>) -> SetId {
        if let Some(&known) = self.numbers.get(list.as_slice()) {
            return known;
        }
        let number = SetId::try_from(self.lists.len()).unwrap_or(SetId::MAX);
        self.bytes += SET_BYTES + list.len() * size_of::<ClassId>();
        let list: Arc<[ClassId]> = list.into();
        self.lists.push(Arc::clone(&list));
        self.numbers.insert(list, number);
        number
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.lists.len()
    }

    pub(super) fn members(&self, set: SetId) -> &[ClassId] {
        &self.lists[index(set)]
    }

    /// How often `class` was used.
    pub(super) fn count(&self, set: SetId, class: ClassId) -> usize {
        if set == EMPTY {
            return 0;
        }
        self.members(set).iter().filter(|&&member| member == class).count()
    }

    pub(super) fn with(&mut self, set: SetId, class: ClassId) -> SetId {
        let mut list = self.members(set).to_vec();
        list.insert(list.partition_point(|&member| member < class), class);
        self.number_of(list)
    }

    /// The set without one use of each of `classes`, which is sorted and included in it.
    pub(super) fn remove(&mut self, set: SetId, classes: &[ClassId]) -> SetId {
        let mut left_out = classes.iter().peekable();
        let members = self.members(set).iter();
        let list =
            members.filter(|member| left_out.next_if(|class| class == member).is_none()).copied().collect();
        self.number_of(list)
    }

    /// Whether `larger` holds everything that `smaller` does.
    pub(super) fn includes(&self, larger: SetId, smaller: SetId) -> bool {
        if larger == smaller || smaller == EMPTY {
            return true;
        }
        let mut candidates = self.members(larger).iter();
        self.members(smaller).iter().all(|member| candidates.any(|candidate| candidate == member))
    }

    /// Forgets all sets but those in `live`, and gives those new numbers.
    pub(super) fn keep<'a>(&mut self, live: impl Iterator<Item = &'a mut SetId>) {
        let old = std::mem::replace(self, Self::new());
        for set in live {
            *set = self.number_of(old.members(*set).to_vec());
        }
    }
}
