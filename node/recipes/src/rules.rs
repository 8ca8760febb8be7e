//! Decisions of recipes that are one rule each.
//!
//! They stand here and not where they are used, so that each has a name and an argument, and so that a test
//! bench can try what becomes of a recipe that decides otherwise. [`Sound`] is every rule as it should be.

/// The rules of a recipe. Every method's default is the sound one.
pub trait Rules: Clone {
    /// Each contender watches the one ahead of it alone, so that a change of leader is told to one
    /// (ZooKeeper's recipes: the herd effect). Otherwise each watches the whole line.
    fn watches_one_ahead(&self) -> bool {
        true
    }

    /// When the one ahead is gone the line is looked at again: it may have been ahead of nobody, or others
    /// may be ahead still. Otherwise whoever's predecessor goes takes itself for the first.
    fn looks_again(&self) -> bool {
        true
    }

    /// A watch stands only if the znode was there when it was left. Otherwise the line is not looked at again
    /// where the one ahead went in between.
    fn minds_a_missing_predecessor(&self) -> bool {
        true
    }

    /// When the answer to a creation was lost, a contender looks for its guid before it creates again.
    /// Otherwise its first znode, if there is one, stands in everybody's way.
    fn looks_for_its_own(&self) -> bool {
        true
    }

    /// Before a contender looks for its guid it syncs, so that it sees what it asked for before. Otherwise
    /// its znode may be made after it looked.
    fn syncs_before_it_looks(&self) -> bool {
        true
    }

    /// A term ends when it is not certain any more that the session lives. Otherwise it ends when the client
    /// is told of the session's end, and another may lead by then.
    fn ends_with_certainty(&self) -> bool {
        true
    }

    /// A term ends with its session. Otherwise a new session's contender goes on with the old term.
    fn ends_with_the_session(&self) -> bool {
        true
    }

    /// A resignation whose answer was lost is made again. Otherwise its znode may stay, ahead of all, while
    /// nobody leads.
    fn resigns_until_it_is_known(&self) -> bool {
        true
    }

    /// A znode that was still being made when its contender left is deleted. Otherwise it stays (CURATOR-3).
    fn deletes_what_was_made_after_it_left(&self) -> bool {
        true
    }

    /// Everything that was asked over a connection that is gone is asked anew. Otherwise a watch whose answer
    /// was lost is taken for one that stands.
    fn watches_anew(&self) -> bool {
        true
    }

    /// The token of a term is its znode's place in the order of all changes. Otherwise it is the number in
    /// its name, which begins anew when the resource is made anew.
    fn token_is_a_place(&self) -> bool {
        true
    }

    /// A contender whose znode was deleted by somebody does not go on.
    fn minds_its_own(&self) -> bool {
        true
    }

    /// An active process writes its breadcrumb over the one that it read, and no newer one.
    fn breadcrumb_by_version(&self) -> bool {
        true
    }

    /// A process that became first fences the one that was active before it acts.
    fn fences(&self) -> bool {
        true
    }

    /// A lock znode is known as one's own by its session. Otherwise whoever finds one takes it for another's.
    fn knows_its_lock(&self) -> bool {
        true
    }

    /// What opens a double barrier goes with the last who leaves. Otherwise the first who leaves deletes it,
    /// and whoever was cut off meanwhile waits for it for ever, and all others for him.
    fn ready_goes_last(&self) -> bool {
        true
    }
}

/// Every rule as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sound;

impl Rules for Sound {}
