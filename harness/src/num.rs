//! The few conversions between widths of numbers, in one place and without silent casts.

/// A length as a counter.
pub fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A length as a small counter.
pub fn narrow(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A counter as an index.
pub fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// `1 fault`, `2 faults`.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
