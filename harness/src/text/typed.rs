//! Words as a shell takes them.

/// A word as it can be typed and copied: as it is, or in quotes.
pub fn word(text: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%".contains(c);
    if !text.is_empty() && text.chars().all(harmless) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
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
