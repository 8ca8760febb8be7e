//! The rules of inference by name, so that a test can break each and see that the fuzzer notices.

/// A rule that makes verdicts what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// An element follows the one before it in the list.
    WriteAfterWrite,
    /// A read comes after the append of what it saw last.
    ReadAfterWrite,
    /// A read comes before the append of what follows.
    WriteAfterRead,
    /// An element that nobody saw comes after all that were seen.
    UnseenAfterSeen,
    /// Who read all that was ever seen comes before what nobody saw.
    UnseenAfterReaders,
    /// As above, for a reader that itself appended what nobody saw.
    UnseenAfterReaderThatAppends,
    /// Nothing comes before itself: such a reader does not come before its own append.
    ReaderThatAppendsIsNotBeforeItself,
    /// A process does one thing after another.
    ProcessOrder,
    /// What had returned came before what was invoked later.
    RealtimeOrder,
    /// What never returned comes before nothing by time.
    OpenEndsNever,
    /// A transaction of unknown fate took effect if an element of it was read.
    SeenMeansHappened,
    /// A read sees the transaction's own appends.
    OwnAppendsAreSeen,
    /// Two reads without appends in between see the same.
    ReadsRepeat,
    /// Two transactions that read the same list do not both append to it.
    NoUpdateIsLost,
    /// A list ends with the last append of a transaction.
    NoIntermediateRead,
    /// A failed transaction's elements are not read.
    NoAbortedRead,
    /// What nobody appended is not read.
    NoGarbage,
    /// A list holds nothing twice.
    NoDuplicates,
    /// All lists are beginnings of one.
    OneOrder,
}

#[cfg(not(test))]
pub(super) const fn broken(_: Rule) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static BROKEN: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
pub(super) fn broken(rule: Rule) -> bool {
    BROKEN.get() == Some(rule)
}

/// Breaks a rule while `action` runs.
#[cfg(test)]
pub(super) fn with_broken<T>(rule: Rule, action: impl FnOnce() -> T) -> T {
    BROKEN.set(Some(rule));
    let result = action();
    BROKEN.set(None);
    result
}
