//! Places for refused compare-and-sets, as far as they are certain.
//!
//! A refusal from v, called at c and returned at r, says that at some moment between them the register did
//! not hold v. It has such a moment in every order that the blocks allow, with every operation as late as the
//! order lets it be, when
//!
//! - v is forgotten: what replaced it had begun before the oldest call that waits, so before c;
//! - v was called after c, or was denied, or nobody ever saw it: then it need not have been there at c;
//! - nobody who showed v or a later value of its chain had returned by c. If v's change takes effect after c,
//!   the refusal comes before it. If it is before c, then because some operation that comes later in the
//!   order returned before c; it is in another block, which therefore had replaced v at c;
//! - a later value of v's chain had returned by r: v was taken away before that;
//! - another block had its first return by r and must come after v's: `first(V) < last(A)` and
//!   `first(A) <= r`.
//!
//! The last may become true later, so a refusal waits for it until v is forgotten. When it did not come true,
//! the test does not decide whether there is a place: it goes on looking for violations, but is in doubt.

use super::Moment;
use super::terms::Shown;

/// A refusal without a certain place so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// The value that it did not find.
    pub(crate) from: Shown,
    /// When it was answered.
    pub(crate) returned: Moment,
    /// Its record.
    pub(crate) record: u64,
}

/// The refusals of one register that have no certain place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    /// Those that may still get one.
    waiting: Vec<Pending>,
    /// One that will not get any.
    unplaced: Option<u64>,
}

impl Refusals {
    /// A refusal waits for a place.
    pub(crate) fn wait(&mut self, refusal: Pending) {
        self.waiting.push(refusal);
    }

    /// Whether any waits for a place.
    pub(crate) fn any_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Lets those go that have a place now.
    pub(crate) fn settle(&mut self, has_place: impl Fn(&Pending) -> bool) {
        self.waiting.retain(|refusal| !has_place(refusal));
    }

    /// A value is forgotten.
    pub(crate) fn leave(&mut self, value: Shown) {
        if self.waiting.is_empty() {
            return;
        }
        let unplaced =
            self.waiting.iter().find(|refusal| refusal.from == value).map(|refusal| refusal.record);
        self.unplaced = self.unplaced.or(unplaced);
        self.waiting.retain(|refusal| refusal.from != value);
    }

    /// A refusal that has no certain place.
    pub(crate) fn doubt(&self) -> Option<u64> {
        self.unplaced.or_else(|| self.waiting.first().map(|refusal| refusal.record))
    }
}
