//! Numbers for each key: a namespace, which is the first name of a path, or a member.
//!
//! Whoever counts keeps the numbers that it has met by their keys and looks there first, so that a number
//! costs a lookup at most, and an addition. The list that others read is locked only when a key is new.
//!
//! Keys are whatever clients create, so there are [`MAX_KEYS`] of them at most; what comes later counts
//! together as [`OTHERS`].

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Counter, Summary, Tally};

/// Keys of one family.
pub(crate) const MAX_KEYS: usize = 1000;

/// The key of all others.
const OTHERS: &str = "(others)";

/// The numbers of all keys, for whoever reads.
#[derive(Debug)]
pub(crate) struct Family<T>(Mutex<BTreeMap<Arc<str>, Arc<T>>>);

impl<T> Default for Family<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Family<T> {
    /// Every key with its number.
    pub(crate) fn all(&self) -> Vec<(Arc<str>, Arc<T>)> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().map(|(key, number)| (Arc::clone(key), Arc::clone(number))).collect()
    }

    fn of(&self, key: &str, make: fn() -> T) -> Arc<T> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = if made.len() < MAX_KEYS || made.contains_key(key) { key } else { OTHERS };
        if let Some(number) = made.get(key) {
            return Arc::clone(number);
        }
        let number = Arc::new(make());
        made.insert(key.into(), Arc::clone(&number));
        number
    }
}

/// Where the one who counts finds the numbers of a family. The last key is looked at first: requests come in
/// runs.
#[derive(Debug)]
pub(crate) struct Known<T> {
    numbers: HashMap<Arc<str>, Arc<T>>,
    last: Option<(Arc<str>, Arc<T>)>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), last: None }
    }
}

impl<T: Made> Known<T> {
    /// The number of a key.
    pub(crate) fn of(&mut self, family: &Family<T>, key: &str) -> &T {
        let last = match self.last.take() {
            Some(last) if *last.0 == *key => last,
            Some(_) | None => self.look_up(family, key),
        };
        &self.last.insert(last).1
    }

    fn look_up(&mut self, family: &Family<T>, key: &str) -> (Arc<str>, Arc<T>) {
        if let Some((key, number)) = self.numbers.get_key_value(key) {
            return (Arc::clone(key), Arc::clone(number));
        }
        // Beyond the bound keys come and go: only those of the first ones are worth a place.
        let key = if self.numbers.len() < MAX_KEYS { key } else { OTHERS };
        let (key, number): (Arc<str>, _) = (key.into(), family.of(key, T::make));
        self.numbers.insert(Arc::clone(&key), Arc::clone(&number));
        (key, number)
    }
}

/// What a family is made of.
pub(crate) trait Made {
    /// A new one.
    fn make() -> Self;
}

impl Made for Tally {
    fn make() -> Self {
        Self::default()
    }
}

impl Made for Counter {
    fn make() -> Self {
        Self::default()
    }
}

impl Made for Summary {
    fn make() -> Self {
        Self::of_times()
    }
}

/// The first name of a path; none of the root.
pub(crate) fn namespace(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.split('/').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_the_first_name_of_a_path() {
        for (path, name) in
            [("/a", Some("a")), ("/a/b/c", Some("a")), ("/", None), ("", None), ("a", None), ("//a", None)]
        {
            assert_eq!(namespace(path), name, "{path:?}");
        }
    }

    #[test]
    fn keys_are_told_apart_up_to_a_bound() {
        let family = Family::default();
        let mut known: Known<Tally> = Known::default();
        for number in 0..2 * MAX_KEYS as u64 {
            known.of(&family, &number.to_string()).record(number);
            known.of(&family, "0").record(7);
        }
        let all = family.all();
        assert!(all.len() <= MAX_KEYS + 1, "{}", all.len());
        let sum: u64 = all.iter().map(|(_, tally)| tally.get()[0]).sum();
        assert_eq!(sum, 4 * MAX_KEYS as u64, "nothing is lost");
        let of = |key: &str| all.iter().find(|(known, _)| &**known == key).map(|(_, tally)| tally.get());
        assert_eq!(of("0"), Some([2 * MAX_KEYS as u64 + 1, 14 * MAX_KEYS as u64, 0, 7]));
        assert_eq!(of("5"), Some([1, 5, 5, 5]));
        assert!(of(OTHERS).is_some_and(|[count, ..]| count >= MAX_KEYS as u64));
    }
}
