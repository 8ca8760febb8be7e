//! What replies have shown of keys, for whoever asks for it again.
//!
//! A compare-and-set names what some answer has shown. What the newest answer to any process has shown is
//! mostly still there; what a process saw last by itself is mostly replaced where keys are hot. Workloads
//! want both: a success chains two states, a refusal is an observation.

use std::collections::BTreeMap;

/// What a reply has shown of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen<T> {
    /// How often it had been changed, where the system tells.
    pub(crate) version: Option<i64>,
    pub(crate) value: T,
}

/// What all replies have shown, as far as it is not replaced by what later ones showed.
#[derive(Clone, Debug)]
pub(crate) struct Shown<T> {
    newest: BTreeMap<u64, Seen<T>>,
    own: BTreeMap<(u64, u64), Seen<T>>,
}

impl<T: Clone> Shown<T> {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { newest: BTreeMap::new(), own: BTreeMap::new() }
    }

    /// The newest state of a key that any process has seen.
    pub(crate) fn newest(&self, key: u64) -> Option<Seen<T>> {
        self.newest.get(&key).cloned()
    }

    /// The state of a key that this process saw last.
    pub(crate) fn own(&self, process: u64, key: u64) -> Option<Seen<T>> {
        self.own.get(&(process, key)).cloned()
    }

    /// A reply to `process` has shown this.
    pub(crate) fn remember(&mut self, process: u64, key: u64, seen: &Seen<T>) {
        let newest = self.newest.entry(key).or_insert_with(|| seen.clone());
        // Where no version is told, what was told last is the newest.
        if newest.version < seen.version || seen.version.is_none() {
            *newest = seen.clone();
        }
        self.own.insert((process, key), seen.clone());
    }

    /// What `process` saw last of a key was refused, and so is out of date.
    pub(crate) fn refused(&mut self, process: u64, key: u64) {
        self.own.remove(&(process, key));
    }

    /// `process` is never used again.
    pub(crate) fn retire(&mut self, process: u64) {
        self.own.retain(|&(owner, _), _| owner != process);
    }

    /// Nobody asks for this key any more.
    pub(crate) fn forget(&mut self, key: u64) {
        self.newest.remove(&key);
        self.own.retain(|&(_, of), _| of != key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(version: i64) -> Seen<i64> {
        Seen { version: Some(version), value: version * 10 }
    }

    #[test]
    fn the_newest_is_of_all_processes_and_the_last_is_of_each() {
        let mut shown = Shown::new();
        shown.remember(1, 0, &seen(4));
        shown.remember(2, 0, &seen(3));
        assert_eq!(
            (shown.newest(0), shown.own(1, 0), shown.own(2, 0)),
            (Some(seen(4)), Some(seen(4)), Some(seen(3)))
        );
        shown.refused(2, 0);
        assert_eq!((shown.newest(0), shown.own(2, 0), shown.own(3, 0)), (Some(seen(4)), None, None));
        shown.retire(1);
        assert_eq!((shown.newest(0), shown.own(1, 0)), (Some(seen(4)), None));
        shown.forget(0);
        assert_eq!(shown.newest(0), None);
    }
}
