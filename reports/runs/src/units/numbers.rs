//! Numbers as people read them: comma for thousands, s for when, ms for how long, three digits that count.
//!
//! Every report formats through here, so that the terminal and the page never disagree about a figure.

pub use checker::figures::count;

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;

/// A length as a count: collections are far below 2^64.
pub fn len(items: usize) -> String {
    count(items)
}

/// Milliseconds with about three digits that count: `0.45`, `1.58`, `14.7`, `1,053`.
pub fn ms(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if size < 9.995 {
        format!("{value:.2}")
    } else if size < 99.95 {
        format!("{value:.1}")
    } else {
        whole(value)
    }
}

/// Milliseconds without decimals, as elections are given; below one with one decimal.
pub fn whole_ms(value: f64) -> String {
    if value.is_finite() && value.abs() < 0.95 && value != 0.0 { format!("{value:.1}") } else { whole(value) }
}

/// A number without decimals, with a comma between thousands.
fn whole(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{value:.0}");
    match text.strip_prefix('-') {
        Some(digits) => format!("-{}", grouped(digits)),
        None => grouped(&text),
    }
}

fn grouped(digits: &str) -> String {
    match digits.parse::<u64>() {
        Ok(n) => count(n),
        Err(_) => digits.to_owned(),
    }
}

/// A moment in seconds with millisecond resolution: `12.814`.
pub fn moment(ns: u64) -> String {
    let ms = ns / NS_PER_MS + u64::from(ns % NS_PER_MS >= NS_PER_MS / 2);
    format!("{}.{:03}", count(ms / 1000), ms % 1000)
}

/// A duration in words: `8 ms`, `654 ms`, `1.42 s`.
pub fn duration(ms_value: f64) -> String {
    if ms_value < 999.5 {
        format!("{} ms", if ms_value < 9.95 { ms(ms_value) } else { whole(ms_value) })
    } else {
        format!("{} s", ms(ms_value / 1000.0))
    }
}

/// A configured time, exactly: `60 s`, `2.5 s`, `250 ms`.
pub fn setting_ms(value: u64) -> String {
    if value < 1000 {
        format!("{value} ms")
    } else if value.is_multiple_of(1000) {
        format!("{} s", count(value / 1000))
    } else {
        let text = format!("{}.{:03}", count(value / 1000), value % 1000);
        format!("{} s", text.trim_end_matches('0'))
    }
}

/// A rate: no more decimals than it has.
pub fn rate(per_second: f64) -> String {
    if per_second.fract().abs() < 0.05 { whole(per_second) } else { format!("{per_second:.1}") }
}

/// A size in bytes: `3 kB`, `4.1 MB`, `8 GiB` for memory is [`memory`].
pub fn bytes(n: u64) -> String {
    let value = lossy(n);
    if n < 1000 {
        format!("{n} B")
    } else if value < 999_500.0 {
        format!("{} kB", whole(value / 1e3))
    } else if value < 999.95e6 {
        format!("{:.1} MB", value / 1e6)
    } else {
        format!("{:.1} GB", value / 1e9)
    }
}

/// A size of memory in GiB.
pub fn memory(n: u64) -> String {
    let gib = lossy(n) / f64::from(1_u32 << 30);
    if gib < 10.0 { format!("{gib:.1} GiB") } else { format!("{} GiB", whole(gib)) }
}

/// Nanoseconds as milliseconds.
pub fn ns_to_ms(ns: u64) -> f64 {
    lossy(ns) / 1e6
}

/// Milliseconds as nanoseconds; what is no length of time is none.
pub fn ms_to_ns(ms: f64) -> u64 {
    // Beyond 49 days a run is not; a file may claim anything.
    u64::from(to_u32(ms, u32::MAX)) * NS_PER_MS + u64::from(to_u32(ms.max(0.0).fract() * 1e6, 999_999))
}

/// Nanoseconds as seconds.
pub fn ns_to_s(ns: u64) -> f64 {
    lossy(ns) / 1e9
}

/// The nearest `f64`. A run would have to last three months before this lost a nanosecond, and a picture
/// does not show one.
pub fn lossy(n: u64) -> f64 {
    let high = u32::try_from(n >> 32).unwrap_or(u32::MAX);
    let low = u32::try_from(n & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

/// A number of things as `f64`, for positions and shares.
pub fn len_f64(items: usize) -> f64 {
    lossy(u64::try_from(items).unwrap_or(u64::MAX))
}

/// Bounds `value` to `0..=max` and drops its fraction.
pub fn to_u32(value: f64, max: u32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded on both sides first"
    )]
    let whole = value.clamp(0.0, f64::from(max)) as u32;
    whole
}

/// Things that are named in a sentence at most; the others are counted.
const MOST_NAMED: usize = 3;

/// The first three by name, and how many more there are: `F1, F2, F3 and 9 more`.
pub fn named(all: &[String]) -> String {
    let first = all.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MOST_NAMED) {
        0 => first,
        more => format!("{first} and {} more", len(more)),
    }
}

/// A number and its noun: `1 fault`, `2 faults`.
pub fn plural(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{} {noun}s", count(n)) }
}

/// The value at the nearest rank of a sorted list: never a number that was not measured.
pub fn nearest_rank(sorted: &[f64], percentile: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = (percentile / 100.0 * len_f64(sorted.len())).ceil();
    let index = usize::try_from(to_u32(rank - 1.0, u32::MAX)).unwrap_or(last);
    sorted.get(index.min(last)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_keep_three_digits_that_count() {
        let shown: Vec<String> =
            [0.0, 0.452, 1.579, 9.996, 14.68, 99.96, 1053.4].iter().map(|&v| ms(v)).collect();
        assert_eq!(shown, ["0.00", "0.45", "1.58", "10.0", "14.7", "100", "1,053"]);
    }

    #[test]
    fn counts_and_moments_have_commas_where_people_look_for_them() {
        assert_eq!(
            [count(0), count(999), count(1000), count(12_345_678)],
            ["0", "999", "1,000", "12,345,678"]
        );
        assert_eq!(moment(3_002_499_999), "3.002");
        assert_eq!(moment(3_001_999_999), "3.002");
        assert_eq!(moment(1_000_000_000_000), "1,000.000");
    }

    #[test]
    fn settings_are_exact() {
        assert_eq!([setting_ms(250), setting_ms(2500), setting_ms(60_000)], ["250 ms", "2.5 s", "60 s"]);
    }

    #[test]
    fn a_percentile_is_always_a_measured_value() {
        let values = [5.0, 6.0, 7.0, 600.0];
        assert_eq!(nearest_rank(&values, 50.0), Some(6.0));
        assert_eq!(nearest_rank(&values, 75.0), Some(7.0));
        assert_eq!(nearest_rank(&values, 99.0), Some(600.0));
        assert_eq!(nearest_rank(&values, 0.0), Some(5.0));
        assert_eq!(nearest_rank(&[], 50.0), None);
    }

    #[test]
    fn bytes_change_their_unit_before_they_need_four_digits() {
        assert_eq!([bytes(12), bytes(2_900), bytes(2_900_000)], ["12 B", "3 kB", "2.9 MB"]);
    }
}
