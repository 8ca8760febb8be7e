//! The test by blocks, online: one register, fed call by call and return by return.
//!
//! The theorem of [`super`] is decided while the history is read, with a memory that holds what is still open
//! and nothing else.
//!
//! **Calls are counted when the return is in.** Until then nobody knows what an operation says. Time at a
//! return is later than every call, so `first` is the time of the first return and never changes, and a block
//! that gets its first return conflicts with nothing. Conflicts come when `last` grows. Then either another
//! block began inside the stretch from `first` to `last` that just grew over it, or this block began inside
//! another one's stretch. Stretches of different blocks are disjoint (else there is a conflict), so every
//! block is grown over once at most and remembers by whom: each pair that matters is looked at once.
//!
//! **What can be forgotten.** Let m be the call of the oldest operation that still waits for an answer, or
//! now. Whatever returns from here on was called at m or later. A block B is *dead* when another block A has
//! `first(B) < last(A)` and `first(A) < m`: a further operation in B would be called after `first(A)`, so A
//! would have to come before B and B before A. So a dead block only has to be forgotten: seeing its value
//! again is a violation by itself.
//!
//! **No conflict is lost with a dead block.** Let X be a block that is not dead and gets a call c >= m.
//! Suppose it comes to conflict with the dead block B, so `first(X) < last(B)` and `first(B) < c`. Let A be
//! what killed B. A and B do not conflict, so `last(B) <= first(A) < m`. If `last(A) > first(A)`, then
//! `first(X) < last(B) <= first(A) < last(A)`, and A killed X as well. Otherwise `first(B) < last(A) <=
//! first(A) < m`, and B itself killed X. Both times X is dead too. ∎ It follows that of all blocks with
//! `first < m` only the one with the latest `last` has to be remembered as the killer: what an earlier killer
//! would kill is dead by then, by the same argument.
//!
//! **How much is alive.** Blocks whose `first` is at m or later have returned since the oldest call that
//! still waits. Of the others, with L the latest `last` among them, only those with `first >= L` live; all of
//! them were called before L and returned after it, so they were open at the same time.
//!
//! **Chains** are shortened in the same way: when a later segment has returned before m, an operation of an
//! earlier one would be called too late, so that segment is forgotten. Chains only grow at their end, because
//! who sees the value of a compare-and-set shows that it happened.
//!
//! **Values that repeat** are no trouble when the earlier one is forgotten: whoever sees the value from then
//! on can only mean the later one. While both are alive nobody knows who is meant, and a search has to
//! decide.
//!
//! **Refused compare-and-sets** are outside of this, but for the one certain contradiction: a refusal that
//! lies wholly between two operations that need its value. The module `refused` says when they have a place
//! for certain.

use std::collections::VecDeque;

use super::refused::{Pending, Refusals};
use super::terms::{Asked, Call, Halt, Rule, Shown, Undecided};
use super::window::Window;
use super::{BEGINNING, Contradiction, Ends, Moment, Stretch};
use crate::hash::FastMap;

/// A call or return that counts: when, whose, and the value that it shows.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Moment,
    /// None is the register's beginning.
    record: Option<u64>,
    value: Shown,
}

/// Who writes a value, and where the value stands when that is certain to have happened.
#[derive(Clone, Copy, Debug)]
struct Source {
    record: u64,
    at: Moment,
    /// For a compare-and-set what it takes.
    takes: Option<Shown>,
    /// Block, and number of the segment in it.
    place: Option<(usize, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    value: Shown,
    /// The first return of whoever shows the value.
    first: Option<Mark>,
    /// The first return in a later segment.
    after: Option<Mark>,
    /// The first return of a refusal that was called after `first`.
    refused: Option<Mark>,
}

#[derive(Clone, Debug)]
struct Block {
    first: Option<Mark>,
    last: Mark,
    segments: VecDeque<Segment>,
    /// The number of the front segment.
    front: u64,
    /// The block whose stretch this one began in, and that one's `first`.
    inside: Option<(usize, Moment)>,
    /// Up to here the stretch was looked through.
    looked: Moment,
}

/// The test of one register.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    sources: FastMap<Shown, Source>,
    blocks: Vec<Block>,
    free: Vec<usize>,
    /// Blocks that have begun to return, by that.
    order: VecDeque<(Moment, usize)>,
    /// How many of these have begun before the horizon.
    entered: usize,
    /// Among those the one with the latest call.
    killer: usize,
    /// Whatever returns from here on was called at this moment or later.
    horizon: Moment,
    window: Window,
    /// Refused compare-and-sets that have no certain place.
    refusals: Refusals,
    #[cfg(test)]
    pub(crate) broken: Option<Rule>,
}

const BEGAN: Mark = Mark { at: BEGINNING, record: None, value: None };

impl Default for Blocks {
    fn default() -> Self {
        let mut blocks = Self {
            sources: FastMap::default(),
            blocks: Vec::new(),
            free: Vec::new(),
            order: VecDeque::from([(0, 0)]),
            entered: 1,
            killer: 0,
            horizon: 0,
            window: Window::default(),
            refusals: Refusals::default(),
            #[cfg(test)]
            broken: None,
        };
        let beginning = blocks.begin(None, BEGAN);
        blocks.blocks[beginning].first = Some(BEGAN);
        blocks.blocks[beginning].segments[0].first = Some(BEGAN);
        let place = Some((beginning, 0));
        blocks.sources.insert(None, Source { record: 0, at: 0, takes: None, place });
        blocks
    }
}

impl Blocks {
    /// Whether a rule is kept; always, but in tests.
    #[inline]
    fn keeps(&self, rule: Rule) -> bool {
        #[cfg(test)]
        let kept = self.broken != Some(rule);
        #[cfg(not(test))]
        let kept = {
            let _ = rule;
            true
        };
        kept
    }

    /// Bytes held, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        let segments: usize =
            self.blocks.iter().map(|block| block.segments.capacity() * size_of::<Segment>()).sum();
        self.window.memory_bytes()
            + self.sources.capacity() * (size_of::<(Shown, Source)>() + 1)
            + self.blocks.capacity() * size_of::<Block>()
            + self.order.capacity() * size_of::<(Moment, usize)>()
            + segments
    }

    /// A client asks.
    pub(crate) fn call(&mut self, asked: Asked, record: u64, now: Moment) -> Result<Call, Halt> {
        let (to, takes) = match asked {
            Asked::Read => (None, None),
            Asked::Write(to) => (Some(to), None),
            Asked::Cas { from, to } => (Some(to), Some(from)),
        };
        if let Some(value) = to {
            let source = Source { record, at: now, takes, place: None };
            if self.sources.insert(to, source).is_some() && self.keeps(Rule::Repeated) {
                return Err(Halt::Search(Undecided::Repeated(value)));
            }
        }
        Ok(Call { record, at: now, ticket: self.window.open(now), asked })
    }

    /// It was told that the register holds this, or that its change took place.
    pub(crate) fn done(&mut self, call: Call, read: Shown, now: Moment) -> Result<(), Halt> {
        match call.asked {
            Asked::Read => self.shows(&call, read, now, true)?,
            Asked::Write(to) | Asked::Cas { to, .. } => self.shows(&call, Some(to), now, false)?,
        }
        self.over(call, now);
        Ok(())
    }

    /// It happened not; of a compare-and-set, because the register did not hold what it asked for
    /// (`refused`), or for another reason that says nothing.
    pub(crate) fn denied(&mut self, call: Call, refused: bool, now: Moment) -> Result<(), Halt> {
        let (Asked::Write(to) | Asked::Cas { to, .. }) = call.asked else {
            self.over(call, now);
            return Ok(());
        };
        if let Some(source) =
            self.sources.get(&Some(to)).copied().filter(|source| source.record == call.record)
        {
            match source.place {
                Some(place) if self.keeps(Rule::Denied) => {
                    return Err(self.seen_though_denied(&call, to, place));
                }
                Some(_) => {}
                None => {
                    self.sources.remove(&Some(to));
                }
            }
        }
        if let Asked::Cas { from, .. } = call.asked
            && refused
        {
            self.note_refusal(&call, from, now);
        }
        self.over(call, now);
        Ok(())
    }

    /// Nobody knows whether it happened: it may at any time, but nobody waits for it.
    pub(crate) fn over(&mut self, call: Call, now: Moment) {
        self.window.close(call.ticket);
        self.settle(now);
    }

    fn seen_though_denied(&self, call: &Call, to: i64, (block, number): (usize, u64)) -> Halt {
        let segment = self.segment(block, number);
        let shown = segment.first.or(segment.after).and_then(|mark| mark.record);
        let seen_by = shown.or(self.blocks[block].last.record).unwrap_or(call.record);
        let mut values = vec![Some(to)];
        values.extend(self.blocks[block].segments.iter().map(|segment| segment.value));
        Halt::Violation(Contradiction::Denied { change: call.record, seen_by }, values)
    }

    /// Where a value stands; none if it is forgotten, or its change is not certain.
    fn place_of(&self, value: Shown) -> Option<(usize, u64)> {
        self.sources.get(&value).and_then(|source| source.place)
    }

    /// The first return in a block.
    fn first_return(&self, block: usize) -> Option<Moment> {
        self.blocks[block].first.map(|first| first.at)
    }

    /// The latest call in a block.
    fn last_call(&self, block: usize) -> Moment {
        self.blocks[block].last.at
    }

    /// When somebody first returned who shows the value of a segment or a later one.
    fn began(&self, block: usize, number: u64) -> Option<Moment> {
        let segment = self.segment(block, number);
        [segment.first, segment.after].into_iter().flatten().map(|mark| mark.at).min()
    }

    /// Whether a later value of the chain was shown.
    fn is_taken(&self, block: usize, number: u64) -> bool {
        self.segment(block, number).after.is_some()
    }

    /// Whether another block that has begun to return must come later.
    fn is_replaced(&self, block: usize) -> bool {
        let Some(first) = self.first_return(block) else { return false };
        self.order.iter().rev().any(|&(_, other)| other != block && self.blocks[other].last.at > first)
    }

    /// A compare-and-set from `from` was refused. The module `refused` says when that has a place for
    /// certain.
    fn note_refusal(&mut self, call: &Call, from: Shown, now: Moment) {
        let Some((block, number)) = self.place_of(from) else { return };
        let not_begun = self.began(block, number).is_none_or(|first| first > call.at);
        if not_begun || !self.keeps(Rule::NotBegun) {
            return;
        }
        self.mark_refusal(block, number, call, now);
        if !self.is_taken(block, number) && !self.is_replaced(block) {
            self.refusals.wait(Pending { from, returned: now, record: call.record });
        }
    }

    /// A block has got a later call: some refusals may have a place now.
    fn reconsider(&mut self, block: usize) {
        if !self.refusals.any_waits() {
            return;
        }
        let (Some(first), last) = (self.first_return(block), self.last_call(block)) else { return };
        let mut refusals = std::mem::take(&mut self.refusals);
        refusals.settle(|refusal| {
            let Some((held_by, _)) = self.place_of(refusal.from).filter(|&(held_by, _)| held_by != block)
            else {
                return false;
            };
            let in_time = first <= refusal.returned || !self.keeps(Rule::ReplacedInTime);
            let must_follow = self.first_return(held_by).is_some_and(|held| held < last);
            in_time && (must_follow || !self.keeps(Rule::MustFollow))
        });
        self.refusals = refusals;
    }

    /// A refusal that has no certain place.
    pub(crate) fn doubt(&self) -> Option<u64> {
        self.refusals.doubt()
    }

    /// Remembers a refusal that was called when the value had been shown already.
    fn mark_refusal(&mut self, block: usize, number: u64, call: &Call, now: Moment) {
        let segment = self.segment_mut(block, number);
        if segment.refused.is_none() && segment.first.is_some_and(|first| first.at < call.at) {
            segment.refused = Some(Mark { at: now, record: Some(call.record), value: segment.value });
        }
    }

    fn segment(&self, block: usize, number: u64) -> &Segment {
        let block = &self.blocks[block];
        &block.segments[place(number - block.front)]
    }

    fn segment_mut(&mut self, block: usize, number: u64) -> &mut Segment {
        let block = &mut self.blocks[block];
        &mut block.segments[place(number - block.front)]
    }

    /// An operation that has just returned shows `value`; `needs` says that it saw it rather than made it.
    fn shows(&mut self, call: &Call, value: Shown, now: Moment, needs: bool) -> Result<(), Halt> {
        let Some(source) = self.sources.get(&value) else { return Err(self.gone(value, call.record)) };
        let (block, number) = match source.place {
            Some(place) => place,
            None => self.ascertain(value)?,
        };
        let segment = *self.segment(block, number);
        if let Some(after) = segment.after
            && after.at < call.at
            && self.keeps(Rule::Inverted)
        {
            let later = after.record.unwrap_or_default();
            let mut values = self.between(value, after.value);
            values.extend([value, after.value]);
            return Err(Halt::Violation(Contradiction::Inverted { earlier: call.record, later }, values));
        }
        if needs {
            self.held_since(&segment, call)?;
        }
        let mark = Mark { at: now, record: Some(call.record), value };
        self.returned(block, number, mark);
        self.stretch(block, Mark { at: call.at, ..mark })?;
        self.reconsider(block);
        Ok(())
    }

    /// Refuses an operation that needs a value after a refusal that found the value there before and after.
    fn held_since(&self, segment: &Segment, after: &Call) -> Result<(), Halt> {
        match segment.refused {
            Some(refused) if refused.at < after.at && self.keeps(Rule::Held) => {
                let contradiction = Contradiction::Held {
                    before: segment.first.and_then(|first| first.record),
                    refused: refused.record.unwrap_or_default(),
                    after: after.record,
                };
                let made = match after.asked {
                    Asked::Cas { to, .. } => Some(to),
                    _ => segment.value,
                };
                Err(Halt::Violation(contradiction, vec![segment.value, made]))
            }
            _ => Ok(()),
        }
    }

    /// The first return in a segment, and so in all before it that had none after them, and perhaps in the
    /// block.
    fn returned(&mut self, block: usize, number: u64, mark: Mark) {
        let horizon = if self.keeps(Rule::ShortenBeforeOldest) { self.horizon } else { mark.at + 1 };
        let at = &mut self.blocks[block];
        let place = place(number - at.front);
        if at.segments[place].first.is_none() {
            at.segments[place].first = Some(mark);
            for earlier in at.segments.range_mut(..place).rev() {
                if earlier.after.is_some() {
                    break;
                }
                earlier.after = Some(mark);
            }
        }
        if at.first.is_none() {
            at.first = Some(mark);
            self.order.push_back((mark.at, block));
        }
        let is_dead = |segment: &mut Segment| segment.after.is_some_and(|after| after.at < horizon);
        while let Some(dead) = self.blocks[block].segments.pop_front_if(is_dead) {
            self.blocks[block].front += 1;
            self.sources.remove(&dead.value);
            self.refusals.leave(dead.value);
        }
    }

    /// A member of the block was called then.
    fn stretch(&mut self, block: usize, call: Mark) -> Result<(), Halt> {
        let at = &mut self.blocks[block];
        if call.at <= at.last.at {
            return Ok(());
        }
        at.last = call;
        let Some(first) = at.first else { return Ok(()) };
        self.conflicts(block, first)?;
        if first.at < self.horizon && call.at > self.blocks[self.killer].last.at {
            self.killer = block;
        }
        Ok(())
    }

    /// Compares a block whose last call has just become later with the others that it can conflict with.
    fn conflicts(&mut self, block: usize, first: Mark) -> Result<(), Halt> {
        let (last, looked, inside) = {
            let block = &self.blocks[block];
            (block.last, block.looked.max(first.at), block.inside)
        };
        let ours = Stretch { first: first.at, last: last.at };
        // That this block must precede the one that it began inside of is so since it began.
        if let Some((other, began)) = inside
            && (Stretch { first: began, last: self.last_call(other) }).must_precede(ours)
            && self.first_return(other) == Some(began)
            && self.keeps(Rule::BeganInside)
        {
            return Err(self.entangled(other, block));
        }
        let from = self.order.partition_point(|&(began, _)| began <= looked);
        for place in from..self.order.len() {
            let (began, other) = self.order[place];
            let theirs = Stretch { first: began, last: self.last_call(other) };
            if !theirs.must_precede(ours) {
                break;
            }
            if theirs.conflicts(ours) && self.keeps(Rule::GrowsOver) {
                return Err(self.entangled(other, block));
            }
            self.blocks[other].inside = Some((block, first.at));
        }
        self.blocks[block].looked = last.at;
        Ok(())
    }

    /// Makes it certain that `value` was written, with whatever that needs; says where it stands.
    fn ascertain(&mut self, value: Shown) -> Result<(usize, u64), Halt> {
        let mut chain: Vec<(Shown, Source)> = Vec::new();
        let mut next = value;
        let (mut block, mut number) = loop {
            let Some(source) = self.sources.get(&next).copied() else {
                return Err(self.gone(next, chain.last().map_or(0, |(_, source)| source.record)));
            };
            match (source.place, source.takes) {
                (Some(place), _) => break place,
                (None, None) => {
                    let call = Mark { at: source.at, record: Some(source.record), value: next };
                    let call = if self.keeps(Rule::OpenCounts) { call } else { Mark { at: 0, ..call } };
                    let block = self.begin(next, call);
                    break self.stands(next, block, 0);
                }
                (None, Some(takes)) => {
                    chain.push((next, source));
                    if chain.len() > self.sources.len() {
                        if !self.keeps(Rule::Cycle) {
                            let block = self.begin(next, Mark { at: source.at, ..BEGAN });
                            break self.stands(next, block, 0);
                        }
                        return Err(Self::cycle(&chain));
                    }
                    next = takes;
                }
            }
        };
        while let Some((to, source)) = chain.pop() {
            (block, number) = self.append(block, number, to, &source)?;
        }
        Ok((block, number))
    }

    /// A compare-and-set that certainly happened takes the value of a segment away and begins the next one.
    fn append(
        &mut self,
        block: usize,
        number: u64,
        to: Shown,
        source: &Source,
    ) -> Result<(usize, u64), Halt> {
        let from = *self.segment(block, number);
        let end = &self.blocks[block];
        let next = number + 1;
        if next < end.front + length(&end.segments) && self.keeps(Rule::TakenTwice) {
            let other = self.segment(block, next).value;
            let first = self.sources.get(&other).map_or(0, |source| source.record);
            let contradiction = Contradiction::TakenTwice { first, second: source.record };
            return Err(Halt::Violation(contradiction, vec![from.value, other, to]));
        }
        let to_value = to.unwrap_or_default();
        let asked = Asked::Cas { from: from.value, to: to_value };
        self.held_since(&from, &Call { record: source.record, at: source.at, ticket: 0, asked })?;
        let end = &mut self.blocks[block];
        let next = end.front + length(&end.segments);
        end.segments.push_back(Segment { value: to, first: None, after: None, refused: None });
        let place = self.stands(to, block, next);
        if self.keeps(Rule::OpenCounts) {
            let at = source.at;
            self.stretch(block, Mark { at, record: Some(source.record), value: to })?;
        }
        Ok(place)
    }

    fn stands(&mut self, value: Shown, block: usize, number: u64) -> (usize, u64) {
        if let Some(source) = self.sources.get_mut(&value) {
            source.place = Some((block, number));
        }
        (block, number)
    }

    /// A block of one value that has no return yet.
    fn begin(&mut self, value: Shown, call: Mark) -> usize {
        let segment = Segment { value, first: None, after: None, refused: None };
        let at = self.free.pop().unwrap_or(self.blocks.len());
        if at == self.blocks.len() {
            let segments = VecDeque::from([segment]);
            self.blocks.push(Block { first: None, last: call, segments, front: 0, inside: None, looked: 0 });
        } else {
            let block = &mut self.blocks[at];
            (block.first, block.last, block.front, block.inside, block.looked) = (None, call, 0, None, 0);
            block.segments.clear();
            block.segments.push_back(segment);
        }
        at
    }

    /// Time has come so far: blocks begin to be killers, and the dead are forgotten.
    fn settle(&mut self, now: Moment) {
        let oldest = self.window.oldest().unwrap_or(now + 1);
        self.horizon = if self.keeps(Rule::KillerBeforeOldest) { oldest } else { now + 1 };
        while let Some(&(first, block)) = self.order.get(self.entered)
            && first < self.horizon
        {
            self.entered += 1;
            if self.blocks[block].last.at > self.blocks[self.killer].last.at {
                self.killer = block;
            }
        }
        let reach = self.blocks[self.killer].last.at;
        let reach = if self.keeps(Rule::KilledBeforeLast) { reach } else { self.horizon };
        loop {
            let place = usize::from(
                self.order.front().is_some_and(|&(_, block)| block == self.killer)
                    && self.keeps(Rule::KillerStays),
            );
            match self.order.get(place) {
                Some(&(first, block)) if first < reach => {
                    self.order.remove(place);
                    self.entered -= usize::from(place < self.entered);
                    self.forget(block);
                }
                _ => return,
            }
        }
    }

    fn forget(&mut self, block: usize) {
        self.blocks[block].first = None;
        while let Some(segment) = self.blocks[block].segments.pop_front() {
            self.sources.remove(&segment.value);
            self.refusals.leave(segment.value);
        }
        self.free.push(block);
    }

    fn gone(&self, value: Shown, seen_by: u64) -> Halt {
        let killer = &self.blocks[self.killer];
        let by = killer.first.unwrap_or(BEGAN);
        let mut replaced_by: Vec<u64> = [by.record, killer.last.record].into_iter().flatten().collect();
        replaced_by.dedup();
        let mut values = self.between(by.value, killer.last.value);
        values.extend([value, by.value, killer.last.value]);
        Halt::Violation(Contradiction::Gone { seen_by, replaced_by }, values)
    }

    fn cycle(chain: &[(Shown, Source)]) -> Halt {
        let (last, _) = chain[chain.len() - 1];
        let begin =
            chain[..chain.len() - 1].iter().rposition(|&(value, _)| value == last).map_or(0, |at| at + 1);
        let members = chain[begin..].iter().map(|(_, source)| source.record).collect();
        let values = chain[begin..].iter().map(|&(value, _)| value).collect();
        Halt::Violation(Contradiction::Cycle { members }, values)
    }

    fn entangled(&self, a: usize, b: usize) -> Halt {
        let mut values = Vec::new();
        let ends = [a, b].map(|block| {
            let block = &self.blocks[block];
            let first = block.first.unwrap_or(BEGAN);
            values.extend(self.between(first.value, block.last.value));
            values.extend([first.value, block.last.value]);
            Ends { first: first.record, last: block.last.record.unwrap_or_default(), links: Vec::new() }
        });
        let [one, other] = ends;
        Halt::Violation(Contradiction::Entangled { one, other }, values)
    }

    /// The values of the segments between those of two values of one chain, as far as they are remembered.
    fn between(&self, one: Shown, other: Shown) -> Vec<Shown> {
        let Some((block, end)) = self.place_of(other) else { return Vec::new() };
        let begin = self.place_of(one).map_or(self.blocks[block].front, |(_, begin)| begin);
        let (low, high) = (begin.min(end), begin.max(end));
        let block = &self.blocks[block];
        let numbered = block.segments.iter().zip(block.front..);
        numbered
            .filter(|&(_, number)| low < number && number < high)
            .map(|(segment, _)| segment.value)
            .collect()
    }
}

/// A segment's number, less the front's, as an index.
fn place(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn length(segments: &VecDeque<Segment>) -> u64 {
    u64::try_from(segments.len()).unwrap_or(u64::MAX)
}
