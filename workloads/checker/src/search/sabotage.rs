//! Rules that can be broken on purpose, so that a test can show that the fuzzing would notice.
//!
//! Every pruning and every rule about what may be left out is a claim, and a claim whose violation nobody
//! would notice is not tested. In a test build a thread may break one rule; in every other build the compiler
//! removes the question.

/// A rule, broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// Places whatever leaves the present state as it is, not only what leaves every state so.
    EagerForAll,
    /// Takes any two operations for the same.
    AllAreSame,
    /// Of two that are the same tries the one that returns last.
    LaterOfSame,
    /// Thinks that who spent more operations of unknown fate can do more.
    SpendthriftWins,
    /// Thinks that who placed fewer observations can do more.
    FewerObservationsWin,
    /// Leaves out operations of the past without asking whether the object could still hold the same.
    ForgetsThePast,
    /// Lets operations that returned after the end of a prefix be left out.
    PendingAreDropped,
    /// Keeps every refusal of a register, whatever is left out.
    EveryRefusalIsFair,
    /// Keeps a refusal that somebody needs the value of, although the value has several sources.
    FairWithSeveralSources,
    /// Keeps a refusal that somebody needs the value of, also who was called before the refusal returned.
    FairIfNeededEver,
    /// Keeps a refusal with any kept change before it.
    AnyShieldIsFair,
    /// Places a refusal whatever the register holds.
    PlacedWithoutLooking,
    /// Places a refusal before one that had returned.
    PlacedWithoutFloor,
}

/// Nothing is broken.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn is_broken(_: Rule) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static BROKEN: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}

/// Whether this rule is broken.
#[cfg(test)]
pub(crate) fn is_broken(rule: Rule) -> bool {
    BROKEN.get() == Some(rule)
}

/// Breaks one rule in this thread while `run` runs.
#[cfg(test)]
pub(crate) fn with<T>(rule: Rule, run: impl FnOnce() -> T) -> T {
    BROKEN.set(Some(rule));
    let result = run();
    BROKEN.set(None);
    result
}
