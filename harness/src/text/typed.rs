//! Words as a shell takes them.

use std::collections::BTreeMap;

/// Whether a shell takes a word as it is.
pub fn is_plain(text: &str) -> bool {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%".contains(c);
    !text.is_empty() && text.chars().all(harmless)
}

/// A word as it can be typed and copied: as it is, or in quotes.
pub fn word(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Several of them, as a command.
pub fn words(texts: &[String]) -> String {
    texts.iter().map(|text| word(text)).collect::<Vec<_>>().join(" ")
}

/// The words of a command as [`words`] wrote it. Of the rest of a shell's rules nothing is known.
pub fn apart(command: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if !quoted => word.get_or_insert_default().extend(letters.next()),
            _ if letter.is_ascii_whitespace() && !quoted => all.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    all
}

/// Variables as they are set for one command, with the blank before it.
pub fn assignments(variables: &BTreeMap<String, String>) -> String {
    variables.iter().map(|(name, value)| format!("{name}={} ", word(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_taken_apart_as_it_was_written() {
        let all = ["run", "slow-one(latency=9ms)", "it's", "", "two words"].map(str::to_owned);
        assert_eq!(apart(&words(&all)), all);
        assert_eq!(apart("  a   b "), ["a", "b"]);
    }

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        assert_eq!(word("runs/nights/n-1"), "runs/nights/n-1");
        assert_eq!(word("my nights/x"), "'my nights/x'");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word(""), "''");
        let set = BTreeMap::from([("A", "1"), ("B", "two words")]);
        let set = set.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(assignments(&set), "A=1 B='two words' ");
    }
}
