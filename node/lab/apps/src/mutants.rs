//! Recipes that decide one rule otherwise: each is a bug that a library had, or that a careful reader of the
//! recipe would make.

use node_recipes::rules::Rules;

/// One recipe's planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mutant {
    /// What it is called.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rule {
    WatchesOneAhead,
    LooksAgain,
    MindsAMissingPredecessor,
    LooksForItsOwn,
    SyncsBeforeItLooks,
    EndsWithCertainty,
    EndsWithTheSession,
    ResignsUntilItIsKnown,
    DeletesWhatWasMadeAfterItLeft,
    WatchesAnew,
    TokenIsAPlace,
    MindsItsOwn,
    BreadcrumbByVersion,
    Fences,
    KnowsItsLock,
}

const fn mutant(name: &'static str, does: &'static str, rule: Rule) -> Mutant {
    Mutant { name, does, rule }
}

/// All of them that concern a place in a line.
pub const OF_ELECTIONS: [Mutant; 12] = [
    mutant("herd", "everybody watches the whole line", Rule::WatchesOneAhead),
    mutant(
        "stale-children",
        "leads when its predecessor goes, without another look at the line",
        Rule::LooksAgain,
    ),
    mutant(
        "watch-without-looking",
        "waits for a predecessor that was gone before it was watched",
        Rule::MindsAMissingPredecessor,
    ),
    mutant("no-guid", "creates again without looking for what may be there", Rule::LooksForItsOwn),
    mutant("looks-too-soon", "looks for its znode without a sync", Rule::SyncsBeforeItLooks),
    mutant("leads-after-expiry", "leads until it is told of its session's end", Rule::EndsWithCertainty),
    mutant(
        "leads-for-ever",
        "goes on with its term, whatever becomes of its session",
        Rule::EndsWithTheSession,
    ),
    mutant(
        "forgotten-resignation",
        "resigns once, whether it is answered or not",
        Rule::ResignsUntilItIsKnown,
    ),
    mutant(
        "create-after-close",
        "leaves a znode that is made after it left (CURATOR-3)",
        Rule::DeletesWhatWasMadeAfterItLeft,
    ),
    mutant("lost-watch-on-resume", "takes a watch whose answer was lost for one", Rule::WatchesAnew),
    mutant("token-from-the-number", "its token is the number in its znode's name", Rule::TokenIsAPlace),
    mutant("own-node-unknown", "does not mind that its znode was deleted", Rule::MindsItsOwn),
];

/// All of them that concern who is active and who stands by.
pub const OF_STANDBYS: [Mutant; 8] = [
    mutant("no-fence", "becomes active without fencing the one before", Rule::Fences),
    mutant(
        "breadcrumb-without-version",
        "writes its breadcrumb over whatever stands there",
        Rule::BreadcrumbByVersion,
    ),
    mutant("lock-of-a-stranger", "takes its own lock for another's", Rule::KnowsItsLock),
    mutant("active-after-expiry", "is active until it is told of its session's end", Rule::EndsWithCertainty),
    mutant("looks-too-soon", "looks for its lock without a sync", Rule::SyncsBeforeItLooks),
    mutant(
        "forgotten-quit",
        "gives its lock up once, whether it is answered or not",
        Rule::ResignsUntilItIsKnown,
    ),
    mutant(
        "lock-after-close",
        "leaves a lock that is made after it left",
        Rule::DeletesWhatWasMadeAfterItLeft,
    ),
    mutant("own-lock-unknown", "does not mind that its lock was deleted", Rule::MindsItsOwn),
];

impl Rules for Mutant {
    fn watches_one_ahead(&self) -> bool {
        self.rule != Rule::WatchesOneAhead
    }

    fn looks_again(&self) -> bool {
        self.rule != Rule::LooksAgain
    }

    fn minds_a_missing_predecessor(&self) -> bool {
        self.rule != Rule::MindsAMissingPredecessor
    }

    fn looks_for_its_own(&self) -> bool {
        self.rule != Rule::LooksForItsOwn
    }

    fn syncs_before_it_looks(&self) -> bool {
        self.rule != Rule::SyncsBeforeItLooks
    }

    fn ends_with_certainty(&self) -> bool {
        ![Rule::EndsWithCertainty, Rule::EndsWithTheSession].contains(&self.rule)
    }

    fn ends_with_the_session(&self) -> bool {
        self.rule != Rule::EndsWithTheSession
    }

    fn resigns_until_it_is_known(&self) -> bool {
        self.rule != Rule::ResignsUntilItIsKnown
    }

    fn deletes_what_was_made_after_it_left(&self) -> bool {
        self.rule != Rule::DeletesWhatWasMadeAfterItLeft
    }

    fn watches_anew(&self) -> bool {
        self.rule != Rule::WatchesAnew
    }

    fn token_is_a_place(&self) -> bool {
        self.rule != Rule::TokenIsAPlace
    }

    fn minds_its_own(&self) -> bool {
        self.rule != Rule::MindsItsOwn
    }

    fn breadcrumb_by_version(&self) -> bool {
        self.rule != Rule::BreadcrumbByVersion
    }

    fn fences(&self) -> bool {
        self.rule != Rule::Fences
    }

    fn knows_its_lock(&self) -> bool {
        self.rule != Rule::KnowsItsLock
    }
}
