//! Lines that fit a terminal: one that is drawn again and again gives up what matters least, one that stays
//! is broken between words.
//!
//! Columns are counted as characters. What is told here is made of plain ones.

/// Stands where something was cut off.
const ELLIPSIS: char = '…';
/// Rows behind the first one begin with this.
const INDENT: &str = "  ";

/// A line of parts, of which some may be left out where there is little room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// What stands before it, unless it is the first.
    joint: &'static str,
    text: String,
    /// The higher it is, the sooner the part is left out. Parts of rank 0 stay.
    rank: u8,
}

impl Line {
    /// A line that begins so. Its beginning is never left out.
    pub fn begin(text: impl Into<String>) -> Self {
        Self { parts: vec![Part { joint: "", text: text.into(), rank: 0 }] }
    }

    /// The same line with a part behind a comma, or behind whatever joins it. Higher ranks are left out
    /// sooner.
    #[must_use]
    pub fn and(mut self, joint: &'static str, text: impl Into<String>, rank: u8) -> Self {
        self.parts.push(Part { joint, text: text.into(), rank });
        self
    }

    /// Everything.
    pub fn whole(&self) -> String {
        self.upto(u8::MAX)
    }

    /// As much as there is room for, the least important parts left out first. What is then still too long is
    /// cut, and shows it.
    pub fn fitted(&self, columns: usize) -> String {
        let mut ranks: Vec<u8> = self.parts.iter().map(|part| part.rank).chain([0]).collect();
        ranks.sort_unstable();
        let lines = ranks.iter().rev().map(|rank| self.upto(*rank));
        lines.into_iter().find(|line| length(line) <= columns).unwrap_or_else(|| cut(&self.upto(0), columns))
    }

    fn upto(&self, rank: u8) -> String {
        let mut line = String::new();
        for part in self.parts.iter().filter(|part| part.rank <= rank) {
            if !line.is_empty() {
                line.push_str(part.joint);
            }
            line.push_str(&part.text);
        }
        line
    }
}

/// As much of a text as there is room for, with a sign where something is missing.
pub fn cut(text: &str, columns: usize) -> String {
    if length(text) <= columns {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    kept.truncate(kept.trim_end().len());
    if columns > 0 {
        kept.push(ELLIPSIS);
    }
    kept
}

/// A text broken between words, its rows indented behind the first. A word that is longer than a row, a path
/// say, stands on one of its own and stays whole.
pub fn wrapped(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| wrapped_line(line, columns)).collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str, columns: usize) -> String {
    if length(line) <= columns {
        return line.to_owned();
    }
    let (mut out, mut used) = (String::new(), 0);
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let needed = length(word);
        if used > 0 && used + 1 + needed > columns {
            out.push('\n');
            out.push_str(INDENT);
            used = INDENT.len();
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += needed;
    }
    out
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line::begin("12 s of 30 s: 9,240 ok").and(", ", "398 refused", 3).and(", ", "8 unknown", 2).and(
            "; ",
            "n3 leads epoch 4",
            1,
        )
    }

    #[test]
    fn what_matters_least_is_left_out_first_and_whole() {
        for (columns, shown) in [
            (64, "12 s of 30 s: 9,240 ok, 398 refused, 8 unknown; n3 leads epoch 4"),
            (63, "12 s of 30 s: 9,240 ok, 8 unknown; n3 leads epoch 4"),
            (50, "12 s of 30 s: 9,240 ok; n3 leads epoch 4"),
            (39, "12 s of 30 s: 9,240 ok"),
            (15, "12 s of 30 s:…"),
            (0, ""),
        ] {
            assert_eq!(line().fitted(columns), shown);
        }
        assert_eq!(line().whole(), line().fitted(64));
    }

    #[test]
    fn no_line_is_wider_than_its_terminal() {
        for columns in 0..80 {
            assert!(length(&line().fitted(columns)) <= columns, "{columns}");
        }
    }

    #[test]
    fn a_text_is_broken_between_words_and_a_path_stays_whole() {
        let text = "5 members in processes, register at 1000 operations/s by 20 clients";
        assert_eq!(
            wrapped(text, 30),
            "5 members in processes,\n  register at 1000\n  operations/s by 20 clients"
        );
        let path = "folder runs/register-partition-leader/20261123T121621Z";
        assert_eq!(wrapped(path, 30), "folder\n  runs/register-partition-leader/20261123T121621Z");
        assert_eq!(wrapped(path, 80), path);
        assert_eq!(wrapped("one\ntwo three", 8), "one\ntwo\n  three");
    }
}
