//! Rules that can be broken on purpose, to show that the fuzz would notice.
//!
//! Outside of tests nothing is ever broken and the compiler removes the question.

/// A rule, broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]

pub(super) enum Mutation {
    /// Real time among updates binds reads too.
    TimeBindsReads,
    /// Groups have no order of their own.
    NoProgramOrder,
    /// Changes are placed without alternative, like what changes nothing.
    HurryChanges,
    /// A configuration is remembered without what the object holds.
    ForgetState,
    /// A read that found nothing comes after the first write.
    InitialReversed,
    /// An earlier write is taken to be the one after the observer.
    OverwrittenWide,
    /// A later write is taken to be one that is not known to come after the source.
    OutdatedWide,
    /// Operations that need not have happened hold back the next write like those that did.
    OptionalReaders,
    /// An open write that nobody saw is left out although somebody was refused.
    SparesDropped,
    /// An open write is left out although its value was seen.
    OpenDropped,
    /// An open write is taken to have happened.
    OpenHappened,
    /// An open write that nobody saw may be placed only when it changes nothing for a refusal.
    SparesReversed,
    /// Keys are judged by themselves although a group touches two.
    AlwaysLocal,
    /// A value that several operations wrote is taken to come from the first.
    FirstSource,
    /// A part keeps reads without what they read.
    LoneReaders,
    /// A part keeps compare-and-sets as they are without what they replaced.
    LoneCas,
    /// A part keeps refusals without the writes that may be their reason.
    LoneRefusals,
}

#[cfg(test)]
thread_local! {
    static BROKEN: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Whether this rule is broken.
#[cfg(test)]
pub(super) fn broken(mutation: Mutation) -> bool {
    BROKEN.get() == Some(mutation)
}

/// Nothing is broken.
#[cfg(not(test))]
pub(super) const fn broken(_: Mutation) -> bool {
    false
}

/// Breaks one rule in this thread while `work` goes on.
#[cfg(test)]
pub(super) fn with<T>(mutation: Mutation, work: impl FnOnce() -> T) -> T {
    BROKEN.set(Some(mutation));
    let result = work();
    BROKEN.set(None);
    result
}
