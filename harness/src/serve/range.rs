//! Which part of a file a request asks for. (RFC 9110, section 14.)

use std::ops::Range;

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// All of it.
    Whole,
    /// These bytes, which it has.
    Part(Range<u64>),
    /// Bytes that it does not have.
    Beyond,
}

/// What a `Range` asks for of a file that has so many bytes. Several parts, another unit, or what makes no
/// sense asks for nothing special: whoever sends it must take the whole.
pub(super) fn of(header: &str, length: u64) -> Asked {
    part(header, length).unwrap_or(Asked::Whole)
}

fn part(header: &str, length: u64) -> Option<Asked> {
    let (unit, range) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let range = if first.is_empty() {
        // The last so many.
        length.saturating_sub(number(last)?)..length
    } else {
        let first = number(first)?;
        let last = if last.is_empty() { u64::MAX } else { number(last)? };
        if last < first {
            return None;
        }
        first..length.min(last.saturating_add(1))
    };
    Some(if range.is_empty() { Asked::Beyond } else { Asked::Part(range) })
}

fn number(text: &str) -> Option<u64> {
    // One that is larger than any is beyond every file.
    let is_one = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_one.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_the_file_has_of_it() {
        for (header, asked) in [
            ("bytes=0-4", Asked::Part(0..5)),
            ("bytes=5-", Asked::Part(5..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-30", Asked::Part(0..10)),
            ("bytes=9-99", Asked::Part(9..10)),
            ("Bytes=0-99999999999999999999999", Asked::Part(0..10)),
            ("bytes=10-", Asked::Beyond),
            ("bytes=10-12", Asked::Beyond),
            ("bytes=99999999999999999999999-", Asked::Beyond),
            ("bytes=-0", Asked::Beyond),
            ("bytes=4-2", Asked::Whole),
            ("bytes=0-1,4-5", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("lines=0-4", Asked::Whole),
            ("bytes", Asked::Whole),
        ] {
            assert_eq!(of(header, 10), asked, "{header}");
        }
        assert_eq!(of("bytes=0-", 0), Asked::Beyond);
        assert_eq!(of("bytes=-1", 0), Asked::Beyond);
    }
}
