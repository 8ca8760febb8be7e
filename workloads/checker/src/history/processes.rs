//! Who speaks in a line: a client by number, a client by name, or the nemesis.
//!
//! Jepsen numbers its clients and calls the nemesis by name. Others name their clients: `worker-1`. Only
//! `nemesis` is taken for no client, because whoever is taken for none is left out, and what is left out
//! can't convict. A number that is no natural number below [`END`] is refused: rounding it, or taking it for
//! a name, would make two processes of one or one of two.

use std::collections::HashMap;
use std::sync::Arc;

/// The first number that no process may have; those from here on stand for names.
pub(super) const END: u64 = 1 << 62;

/// The name that is no client's.
const NEMESIS: &str = "nemesis";

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// A client with a number.
    Number(u64),
    /// A client with a name.
    Name(Arc<str>),
    /// No client.
    Nemesis,
}

impl Who {
    /// Whom a word names.
    pub(super) fn of(word: &str) -> Result<Self, String> {
        let name = word.strip_prefix(':').unwrap_or(word);
        if name == NEMESIS {
            return Ok(Self::Nemesis);
        }
        if looks_like_a_number(name) {
            let number = name.parse().map_err(|_| outside(name))?;
            return Self::of_number(number);
        }
        if name.is_empty() { Err("a process has no name".to_owned()) } else { Ok(Self::Name(name.into())) }
    }

    /// Whom a number names.
    pub(super) fn of_number(number: u64) -> Result<Self, String> {
        if number < END { Ok(Self::Number(number)) } else { Err(outside(&number.to_string())) }
    }
}

fn outside(number: &str) -> String {
    format!("a process is a name or a natural number below {END}, and {number} is neither")
}

/// Whether a text is a number in JSON or EDN, ratios and suffixes included.
fn looks_like_a_number(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['+', '-']);
    let plain = unsigned.strip_suffix(['N', 'M']).unwrap_or(unsigned);
    let is_ratio = plain.contains('/') && plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/');
    unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && (plain.parse::<f64>().is_ok() || is_ratio)
}

/// The numbers of the clients of a history.
///
/// Where the first client has a name, all are numbered in the order in which they come, so that small numbers
/// are told and drawn. Otherwise numbers are kept, and a name that comes later gets one that no number can
/// have.
#[derive(Debug, Default)]
pub(super) struct Processes {
    known: HashMap<Who, u64>,
    all: Option<bool>,
}

impl Processes {
    /// The number of who speaks; none for the nemesis.
    pub(super) fn number(&mut self, who: &Who) -> Option<u64> {
        let all = match (who, self.all) {
            (Who::Nemesis, _) => return None,
            (_, Some(all)) => all,
            (Who::Number(_), None) => *self.all.insert(false),
            (Who::Name(_), None) => *self.all.insert(true),
        };
        if let (Who::Number(number), false) = (who, all) {
            return Some(*number);
        }
        if let Some(number) = self.known.get(who) {
            return Some(*number);
        }
        let next = u64::try_from(self.known.len()).unwrap_or(u64::MAX - END) + if all { 0 } else { END };
        self.known.insert(who.clone(), next);
        Some(next)
    }

    /// The clients that have a number which is not in the file, in its order: who, and the number.
    pub(super) fn renamed(&self) -> Vec<(String, u64)> {
        let told = |(who, number): (&Who, &u64)| match who {
            Who::Number(own) => (own.to_string(), *number),
            Who::Name(name) => (name.to_string(), *number),
            Who::Nemesis => (NEMESIS.to_owned(), *number),
        };
        let mut renamed: Vec<(String, u64)> = self.known.iter().map(told).collect();
        renamed.sort_by_key(|(_, number)| *number);
        renamed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_no_number_is_a_client_by_name_and_only_the_nemesis_is_none() {
        assert_eq!(Who::of("17"), Ok(Who::Number(17)));
        for name in ["worker-1", ":worker-1", "10.0.0.7", "10.0.0.7:4000", "infinity", "-", "e5"] {
            let expected = name.strip_prefix(':').unwrap_or(name);
            assert_eq!(Who::of(name), Ok(Who::Name(expected.into())), "{name}");
        }
        assert_eq!((Who::of("nemesis"), Who::of(":nemesis")), (Ok(Who::Nemesis), Ok(Who::Nemesis)));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for number in
            ["1.5", "-1", "18446744073709551616", "99999999999999999999999N", "1e3", "1/2", "2M", "+-3", ".5"]
        {
            assert!(Who::of(number).is_err(), "{number}");
        }
        assert!(Who::of(&END.to_string()).is_err() && Who::of(&(END - 1).to_string()).is_ok());
    }

    #[test]
    fn two_clients_never_share_a_number() {
        let who = |word: &str| Who::of(word).unwrap();
        for words in [["0", "a", "1", "b"], ["a", "0", "b", "1"]] {
            let mut processes = Processes::default();
            let first: Vec<Option<u64>> = words.iter().map(|word| processes.number(&who(word))).collect();
            let again: Vec<Option<u64>> = words.iter().map(|word| processes.number(&who(word))).collect();
            let distinct: std::collections::BTreeSet<Option<u64>> = first.iter().copied().collect();
            assert_eq!((&first, distinct.len()), (&again, 4), "{words:?}");
        }
        let mut processes = Processes::default();
        assert_eq!((processes.number(&who("b")), processes.number(&who("7"))), (Some(0), Some(1)));
        assert_eq!(processes.renamed(), [("b".to_owned(), 0), ("7".to_owned(), 1)]);
        assert_eq!(processes.number(&Who::Nemesis), None);
    }
}
