//! Deliberate mistakes, to show that the fuzzing tests would notice each.
//!
//! Every pruning of the searches is a claim, and a claim whose violation nobody would notice is not tested.
//! In a test build a thread may switch one mistake on; in every other build [`is`] is a constant that the
//! compiler removes.

/// A rule of some search, broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// No twins are recognised: slower, and nothing else.
    NoTwins,
    /// Twins are ordered by their calls, whatever their returns.
    TwinsOfAnyReturn,
    /// What may follow a lazy change is not a part of the configuration.
    LazyForgotten,
    /// The twin that returns later goes first.
    TwinsReversed,
    /// What changes nothing is placed whether or not its answer is right.
    EagerWithoutLooking,
    /// Values that are needed may be left: slower, and nothing else.
    NeverFatal,
    /// A value that is needed may never be left, even if it can come back.
    AlwaysFatalWhenNeeded,
    /// Of two configurations the first one stays, whatever they used.
    AnySetBeats,
    /// Changes of unknown fate of values that nobody mentions are left out.
    UnobservedDropped,
    /// Rule (a) for everything: a part keeps every refusal.
    EveryRefusalIsFair,
    /// Rule (b) without its single source.
    FairWithSeveralSources,
    /// Rule (b) with any need, also one that was called before the refusal returned.
    FairIfNeededEver,
    /// Rule (c) with any kept change before the refusal.
    AnyShieldIsFair,
    /// A configuration is given up though a change of unknown fate could help it.
    HopelessWithoutOpens,
    /// No change of unknown fate explains a refusal.
    NoExcuse,
    /// A change of unknown fate is never reached through another.
    NoChains,
    /// A compare-and-set of unknown fate is set aside though the value that it takes can come back.
    SpareWithSeveralSources,
    /// What is set aside is never used.
    SpareNeverUsed,
    /// A refusal is placed whatever the register holds.
    PlacedWithoutLooking,
    /// A refusal is placed before one that had returned.
    PlacedWithoutFloor,
    /// What a cut in time overlaps must have happened before it.
    CutKeepsReturns,
    /// What a cut in time overlaps stays, if it changes nothing.
    CutKeepsQuiet,
}

#[cfg(test)]
impl Mutant {
    /// All of them.
    pub(super) const ALL: [Self; 22] = [
        Self::NoTwins,
        Self::TwinsOfAnyReturn,
        Self::LazyForgotten,
        Self::TwinsReversed,
        Self::EagerWithoutLooking,
        Self::NeverFatal,
        Self::AlwaysFatalWhenNeeded,
        Self::AnySetBeats,
        Self::UnobservedDropped,
        Self::EveryRefusalIsFair,
        Self::FairWithSeveralSources,
        Self::FairIfNeededEver,
        Self::AnyShieldIsFair,
        Self::HopelessWithoutOpens,
        Self::NoExcuse,
        Self::NoChains,
        Self::SpareWithSeveralSources,
        Self::SpareNeverUsed,
        Self::PlacedWithoutLooking,
        Self::PlacedWithoutFloor,
        Self::CutKeepsReturns,
        Self::CutKeepsQuiet,
    ];

    /// Whether it changes no answer. Without twins or needed values a search is slower. A depth-first search
    /// that forgets what may follow a lazy change skips configurations in which that change served nothing,
    /// and those without it, which are tried too, can do whatever they can.
    pub(super) fn is_harmless(self) -> bool {
        matches!(self, Self::NoTwins | Self::NeverFatal | Self::LazyForgotten)
    }
}

/// Whether this mistake is to be made.
#[cfg(not(test))]
#[inline(always)]
pub(super) const fn is(_: Mutant) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static SWITCHED_ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether this mistake is to be made.
#[cfg(test)]
pub(super) fn is(mutant: Mutant) -> bool {
    SWITCHED_ON.get() == Some(mutant)
}

/// Makes a mistake while `run` runs.
#[cfg(test)]
pub(super) fn with<T>(mutant: Mutant, run: impl FnOnce() -> T) -> T {
    SWITCHED_ON.set(Some(mutant));
    let result = run();
    SWITCHED_ON.set(None);
    result
}
