//! Places for refused compare-and-sets, as far as they are certain.
//!
//! A refusal from v, called at c and returned at r, says that at some moment between them the register did not hold v.
//! It has such a moment in every order that the blocks allow, with every operation as late as the order lets it be,
//! when
//!
//! - v is forgotten: what replaced it had begun before the oldest call that waits, so before c;
//! - v was called after c, or was denied, or nobody ever saw it: then it need not have been there at c;
//! - nobody who showed v or a later value of its chain had returned by c. If v's change takes effect after c, the
//!   refusal comes before it. If it is before c, then because some operation that comes later in the order returned
//!   before c; it is in another block, which therefore had replaced v at c;
//! - a later value of v's chain had returned by r: v was taken away before that;
//! - another block had its first return by r and must come after v's: `first(V) < last(A)` and `first(A) <= r`.
//!
//! The last may become true later, so a refusal waits for it until v is forgotten. When it did not come true, the test
//! does not decide whether there is a place: it goes on looking for violations, but is in doubt.

use super::alarm::Shown;
use super::blocks::Blocks;
use super::terms::{Call, Rule};
use super::window::Moment;

/// A refusal without a certain place so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    from: Shown,
    returned: Moment,
    record: u64,
}

impl Blocks {
    /// A compare-and-set from `from` was refused.
    pub(super) fn note_refusal(&mut self, call: &Call, from: Shown, now: Moment) {
        let Some((block, number)) = self.place_of(from) else { return };
        let not_begun = self.began(block, number).is_none_or(|first| first > call.at);
        if not_begun || !self.keeps(Rule::NotBegun) {
            return;
        }
        self.mark_refusal(block, number, call, now);
        if !self.is_taken(block, number) && !self.is_replaced(block) {
            self.pending.push(Pending { from, returned: now, record: call.record });
        }
    }

    /// A block has got a later call: some refusals may have a place now.
    pub(super) fn reconsider(&mut self, block: usize) {
        if self.pending.is_empty() {
            return;
        }
        let (Some(first), last) = (self.first_return(block), self.last_call(block)) else { return };
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|refusal| {
            let Some((held_by, _)) = self.place_of(refusal.from).filter(|&(held_by, _)| held_by != block)
            else {
                return true;
            };
            let in_time = first <= refusal.returned || !self.keeps(Rule::ReplacedInTime);
            let must_follow = self.first_return(held_by).is_some_and(|held| held < last);
            !(in_time && (must_follow || !self.keeps(Rule::MustFollow)))
        });
        self.pending = pending;
    }

    /// A value is forgotten.
    pub(super) fn leave_refusals(&mut self, value: Shown) {
        if self.pending.is_empty() {
            return;
        }
        let unplaced =
            self.pending.iter().find(|refusal| refusal.from == value).map(|refusal| refusal.record);
        self.unplaced = self.unplaced.or(unplaced);
        self.pending.retain(|refusal| refusal.from != value);
    }

    /// A refusal that has no certain place.
    pub(super) fn doubt(&self) -> Option<u64> {
        self.unplaced.or_else(|| self.pending.first().map(|refusal| refusal.record))
    }
}
