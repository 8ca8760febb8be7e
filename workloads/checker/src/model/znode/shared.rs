//! An ordered map that shares structure: a clone costs nothing, a change copies one path.
//!
//! A search keeps thousands of states that differ in a few znodes. This is a treap (Seidel and Aragon, 1996)
//! whose priorities are hashes of the keys, so its shape follows from what it holds and not from the order in
//! which that came. Two maps that came about differently still share every subtree that both left alone, and
//! [`Map::eq`] walks only where they may differ.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

type Link<K, V> = Option<Arc<Node<K, V>>>;

/// The map.
#[derive(Clone, Debug)]
pub(super) struct Map<K, V>(Link<K, V>);

#[derive(Clone, Debug)]
struct Node<K, V> {
    key: K,
    value: V,
    priority: u64,
    left: Link<K, V>,
    right: Link<K, V>,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K: Ord + Hash + Clone, V: Clone> Map<K, V> {
    /// What stands under the key for which `place` says equal. `place` compares a key of the map with the one
    /// wanted.
    pub(super) fn find(&self, place: impl Fn(&K) -> Ordering) -> Option<&V> {
        let mut link = &self.0;
        while let Some(node) = link {
            link = match place(&node.key) {
                Ordering::Equal => return Some(&node.value),
                Ordering::Less => &node.right,
                Ordering::Greater => &node.left,
            };
        }
        None
    }

    /// The same, to change it. What is shared on the way is copied, so look before whether it is there.
    pub(super) fn find_mut(&mut self, place: impl Fn(&K) -> Ordering) -> Option<&mut V> {
        let mut link = &mut self.0;
        while let Some(arc) = link {
            let node = Arc::make_mut(arc);
            link = match place(&node.key) {
                Ordering::Equal => return Some(&mut node.value),
                Ordering::Less => &mut node.right,
                Ordering::Greater => &mut node.left,
            };
        }
        None
    }

    /// Puts a value under a key that is not there.
    pub(super) fn insert(&mut self, key: K, value: V) {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let priority = hasher.finish();
        let mut link = &mut self.0;
        while link.as_ref().is_some_and(|node| (node.priority, &node.key) > (priority, &key)) {
            let Some(arc) = link else { break };
            let node = Arc::make_mut(arc);
            link = if node.key < key { &mut node.right } else { &mut node.left };
        }
        let (left, right) = split(link.take(), &key);
        *link = Some(Arc::new(Node { key, value, priority, left, right }));
    }

    /// Takes out what stands under a key.
    pub(super) fn remove(&mut self, place: impl Fn(&K) -> Ordering) -> Option<V> {
        self.find(&place)?;
        let mut link = &mut self.0;
        while let Some(order) = link.as_ref().map(|node| place(&node.key)) {
            if order == Ordering::Equal {
                break;
            }
            let node = Arc::make_mut(link.as_mut()?);
            link = if order == Ordering::Less { &mut node.right } else { &mut node.left };
        }
        let node = Arc::unwrap_or_clone(link.take()?);
        *link = merge(node.left, node.right);
        Some(node.value)
    }

    /// Visits, in their order, the keys for which `band` says equal. They must be neighbours.
    pub(super) fn visit<'a>(
        &'a self,
        band: &impl Fn(&K) -> Ordering,
        visitor: &mut impl FnMut(&'a K, &'a V),
    ) {
        walk(&self.0, band, visitor);
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

fn walk<'a, K, V>(
    link: &'a Link<K, V>,
    band: &impl Fn(&K) -> Ordering,
    visitor: &mut impl FnMut(&'a K, &'a V),
) {
    let Some(node) = link else { return };
    let order = band(&node.key);
    if order != Ordering::Less {
        walk(&node.left, band, visitor);
    }
    if order == Ordering::Equal {
        visitor(&node.key, &node.value);
    }
    if order != Ordering::Greater {
        walk(&node.right, band, visitor);
    }
}

fn same<K: PartialEq, V: PartialEq>(one: &Link<K, V>, other: &Link<K, V>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            Arc::ptr_eq(one, other)
                || (one.priority == other.priority
                    && one.key == other.key
                    && one.value == other.value
                    && same(&one.left, &other.left)
                    && same(&one.right, &other.right))
        }
        _ => false,
    }
}

/// Parts what is below a key from what is above it.
fn split<K: Ord + Clone, V: Clone>(link: Link<K, V>, key: &K) -> (Link<K, V>, Link<K, V>) {
    let Some(mut arc) = link else { return (None, None) };
    let node = Arc::make_mut(&mut arc);
    if node.key < *key {
        let (left, right) = split(node.right.take(), key);
        node.right = left;
        (Some(arc), right)
    } else {
        let (left, right) = split(node.left.take(), key);
        node.left = right;
        (left, Some(arc))
    }
}

/// Joins two maps of which the first lies below the second.
fn merge<K: Ord + Clone, V: Clone>(left: Link<K, V>, right: Link<K, V>) -> Link<K, V> {
    let (mut below, mut above) = match (left, right) {
        (Some(below), Some(above)) => (below, above),
        (one, other) => return one.or(other),
    };
    if (below.priority, &below.key) > (above.priority, &above.key) {
        let node = Arc::make_mut(&mut below);
        node.right = merge(node.right.take(), Some(above));
        Some(below)
    } else {
        let node = Arc::make_mut(&mut above);
        node.left = merge(Some(below), node.left.take());
        Some(above)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn contents(map: &Map<u8, u16>) -> Vec<(u8, u16)> {
        let mut found = Vec::new();
        map.visit(&|_| Ordering::Equal, &mut |key, value| found.push((*key, *value)));
        found
    }

    proptest! {
        #[test]
        fn it_holds_what_a_sorted_map_holds_and_old_clones_keep_theirs(
            steps in prop::collection::vec((any::<u8>(), any::<Option<u16>>()), 0..200),
        ) {
            let mut map = Map::default();
            let mut plain: BTreeMap<u8, u16> = BTreeMap::new();
            let mut kept = Vec::new();
            for (key, value) in steps {
                let place = |other: &u8| other.cmp(&key);
                prop_assert_eq!(map.find(place), plain.get(&key));
                match (value, plain.contains_key(&key)) {
                    (Some(value), false) => {
                        map.insert(key, value);
                        plain.insert(key, value);
                    }
                    (Some(value), true) => {
                        *map.find_mut(place).unwrap() = value;
                        plain.insert(key, value);
                    }
                    (None, _) => prop_assert_eq!(map.remove(place), plain.remove(&key)),
                }
                kept.push((map.clone(), plain.clone()));
            }
            for (map, plain) in kept {
                prop_assert_eq!(contents(&map), plain.clone().into_iter().collect::<Vec<_>>());
                // The shape follows from the contents: built anew, and backwards, it is equal.
                let mut anew = Map::default();
                for (key, value) in plain.into_iter().rev() {
                    anew.insert(key, value);
                }
                prop_assert!(anew == map);
            }
        }
    }
}
