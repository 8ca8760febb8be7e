//! Seeds as people type them: `0..10000`, or `0..` without an end.

use std::fmt;
use std::str::FromStr;

/// Seeds from the first to the last, that one left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    first: u64,
    end: Option<u64>,
}

impl Seeds {
    /// The first.
    pub fn first(self) -> u64 {
        self.first
    }

    /// How many there are, when there is an end.
    pub fn count(self) -> Option<u64> {
        self.end.map(|end| end - self.first)
    }

    /// Whether it is one of them.
    pub fn contains(self, seed: u64) -> bool {
        seed >= self.first && self.end.is_none_or(|end| seed < end)
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, end) = text
            .split_once("..")
            .ok_or_else(|| format!("`{text}` are no seeds: write `0..10000`, or `0..`"))?;
        let number = |text: &str| {
            text.trim()
                .parse::<u64>()
                .map_err(|_| format!("`{text}` is no seed: write a whole number from 0 on"))
        };
        let first = if first.trim().is_empty() { 0 } else { number(first)? };
        let end = if end.trim().is_empty() { None } else { Some(number(end)?) };
        if end.is_some_and(|end| end <= first) {
            return Err(format!("`{text}` is empty: the last seed is left out, so write a larger one"));
        }
        Ok(Self { first, end })
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.first)?;
        self.end.map_or(Ok(()), |end| write!(f, "{end}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_read_and_written_back() {
        for text in ["0..10000", "5..", "7..8"] {
            let seeds: Seeds = text.parse().expect("seeds");
            assert_eq!(seeds.to_string(), text);
        }
        let seeds: Seeds = "..3".parse().expect("seeds");
        assert_eq!((seeds.count(), seeds.contains(2), seeds.contains(3)), (Some(3), true, false));
    }

    #[test]
    fn what_are_no_seeds_is_refused_with_advice() {
        for (text, advice) in [
            ("12", "write `0..10000`"),
            ("a..b", "whole number"),
            ("5..5", "is empty"),
            ("-1..3", "whole number"),
        ] {
            let error = text.parse::<Seeds>().expect_err(text);
            assert!(error.contains(advice), "{text}: {error}");
        }
    }
}
