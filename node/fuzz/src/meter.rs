//! How much memory a piece of work holds at its peak.
//!
//! The allocator of whoever links this crate counts, thread by thread, what is given out and what comes back.
//! It never refuses: that a bound was broken is said when the work is done, with the numbers.

#![allow(unsafe_code, reason = "an allocator that counts is an unsafe trait over one that does not")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counted.
#[derive(Debug)]
pub struct Meter;

#[global_allocator]
static METER: Meter = Meter;

fn grow(bytes: usize) {
    // A thread that ends has no counters any more, and nobody asks for them.
    let _ = LIVE.try_with(|live| {
        live.set(live.get().wrapping_add(bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

fn shrink(bytes: usize) {
    // What another thread allocated is given back here too: only differences within one piece of work count.
    let _ = LIVE.try_with(|live| live.set(live.get().saturating_sub(bytes)));
}

// SAFETY: every call goes to the system's allocator as it came; the counting allocates nothing.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be there while it is copied.
        grow(size);
        // SAFETY: the caller's promises are passed on.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        shrink(layout.size());
        moved
    }
}

/// What a piece of work may hold at most: so many bytes, and so many for each byte of its input.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Whatever the input.
    pub flat: usize,
    /// For each byte of it.
    pub per_byte: usize,
}

impl Bound {
    /// For an input of this length.
    #[must_use]
    pub fn of(self, len: usize) -> usize {
        self.flat + self.per_byte * len
    }
}

/// Does a piece of work, and answers with the most bytes that it held at once.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    let done = work();
    (done, PEAK.with(Cell::get) - before)
}

/// Does a piece of work on an input of this length.
///
/// # Panics
/// When it held more than its bound at any moment.
pub fn within<T>(bound: Bound, len: usize, work: impl FnOnce() -> T) -> T {
    let (done, held) = measured(work);
    let limit = bound.of(len);
    assert!(held <= limit, "{held} bytes were held for an input of {len}, where {limit} are justified");
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Bound = Bound { flat: 1000, per_byte: 2 };

    #[test]
    fn the_peak_counts_and_not_what_is_left() {
        let ((), held) = measured(|| drop(vec![0_u8; 5000]));
        assert!((5000..6000).contains(&held), "{held}");
        let (kept, held) = measured(|| vec![0_u8; 300]);
        assert!((300..1300).contains(&held), "{held}");
        assert_eq!(kept.len(), 300);
    }

    #[test]
    fn a_bound_holds() {
        assert_eq!(within(SMALL, 500, || vec![0_u8; 1900].len()), 1900);
    }

    #[test]
    #[should_panic(expected = "are justified")]
    fn what_goes_beyond_is_told() {
        within(SMALL, 500, || drop(vec![0_u8; 2100]));
    }
}
