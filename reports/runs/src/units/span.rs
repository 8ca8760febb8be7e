//! Durations as people type them: `30s`, `500ms`, `2m`, `1.5s`.

use std::time::Duration;

/// The longest duration that is taken: a run of more than a day is a slip of the finger.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads a duration. A bare number is refused, because its unit would be a guess.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds_per_unit = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "" => return Err(format!("`{text}` has no unit: write `{text}s`, `{text}ms` or `{text}m`")),
        _ => return Err(format!("`{unit}` is no unit of time: write ms, s, m or h")),
    };
    let number: f64 =
        number.trim().parse().map_err(|_| format!("`{text}` is no duration: write `30s` or `500ms`"))?;
    let seconds = number * seconds_per_unit;
    match Duration::try_from_secs_f64(seconds) {
        Ok(span) if span <= LONGEST => Ok(span),
        Ok(_) => Err(format!("`{text}` is longer than a day")),
        Err(_) => Err(format!("`{text}` is no duration: write `30s` or `500ms`")),
    }
}

/// Writes a duration so that [`parse`] reads it back.
pub fn show(span: Duration) -> String {
    let milliseconds = span.as_millis();
    if milliseconds.is_multiple_of(1000) {
        format!("{}s", milliseconds / 1000)
    } else {
        format!("{milliseconds}ms")
    }
}

/// A duration of minutes or hours for people: `6 h`, `1 h 30 min`, `5 min`, `45 s`.
pub fn words(span: Duration) -> String {
    let seconds = span.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes, rest) {
        (0, 0, rest) => format!("{rest} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_durations_are_told_in_the_units_that_people_use() {
        let words = |seconds: u64| words(Duration::from_secs(seconds));
        assert_eq!(words(45), "45 s");
        assert_eq!(words(300), "5 min");
        assert_eq!(words(85), "1 min 25 s");
        assert_eq!(words(21_600), "6 h");
        assert_eq!(words(5400), "1 h 30 min");
    }

    #[test]
    fn units_are_understood_and_written_back() {
        for (text, milliseconds) in [("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("1.5s", 1500)] {
            let span = parse(text).expect("a duration");
            assert_eq!(span.as_millis(), milliseconds);
            assert_eq!(parse(&show(span)), Ok(span));
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_advice() {
        assert!(parse("30").expect_err("no unit").contains("write `30s`"));
        assert!(parse("-4s").is_err());
        assert!(parse("4 fortnights").expect_err("no such unit").contains("no unit of time"));
        assert!(parse("NaNs").is_err());
        assert!(parse("").is_err());
        assert!(parse("100h").expect_err("too long").contains("longer than a day"));
    }
}
