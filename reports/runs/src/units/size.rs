//! Sizes of memory as people type them: `2GiB`, `512MiB`, `1.5GB`.

/// Bytes of each unit. Binary units are what the kernel counts in; decimal ones are what is printed on
/// modules.
const UNITS: [(&str, f64); 8] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
];
/// The most that is taken: more is a slip of the finger, and still exact as a floating-point number.
const MOST: f64 = 1e15;

/// Reads a size. A bare number is refused, because its unit would be a guess.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    if unit.is_empty() {
        return Err(format!("`{text}` has no unit: write `{text}MiB` or `{text}GiB`"));
    }
    let known = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let Some((_, bytes)) = known else {
        return Err(format!("`{unit}` is no unit of memory: write MiB or GiB"));
    };
    let number: f64 =
        number.trim().parse().map_err(|_| format!("`{text}` is no size: write `512MiB` or `2GiB`"))?;
    let size = number * bytes;
    if !(size > 0.0 && size <= MOST) {
        return Err(format!("`{text}` is no size of memory: write `512MiB` or `2GiB`"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "above zero and below 2^53, as was just checked"
    )]
    Ok(size as u64)
}

/// Writes a size for people, rounded to what matters.
pub fn show(bytes: u64) -> String {
    let mebibytes = bytes.div_ceil(1 << 20);
    if mebibytes >= 10 * 1024 { format!("{} GiB", mebibytes / 1024) } else { format!("{mebibytes} MiB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood_whatever_their_case() {
        for (text, bytes) in
            [("2GiB", 2 << 30), ("512mib", 512 << 20), ("1.5 GB", 1_500_000_000), ("64kB", 64_000)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_advice() {
        assert!(parse("512").expect_err("no unit").contains("`512MiB`"));
        assert!(parse("2 buckets").expect_err("no such unit").contains("no unit of memory"));
        for text in ["", "GiB", "-1GiB", "0MiB", "nanGiB", "99999999TiB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_in_whole_units() {
        assert_eq!([show(1), show(64 << 20), show(20 << 30)], ["1 MiB", "64 MiB", "20 GiB"]);
    }
}
