//! Words as a shell takes them.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        assert_eq!(word("runs/nights/n-1"), "runs/nights/n-1");
        assert_eq!(word("my nights/x"), "'my nights/x'");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word(""), "''");
    }
}
