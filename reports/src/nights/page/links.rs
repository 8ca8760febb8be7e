//! Links of the page: to files of the store beside it, and to where somebody wrote about a finding.
//!
//! The index comes from outside, and so do the folders in it. What could lead out of the store is no link.

use std::fmt::Write as _;

/// Characters of a link at most.
const MOST_LINK: usize = 400;

/// The page of a run folder that is relative to the store; none where it would lead elsewhere.
pub(super) fn run_page(folder: &str) -> Option<String> {
    let folder = folder.strip_suffix('/').unwrap_or(folder);
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_odd = |c: char| c == '\\' || c.is_control();
    if folder.contains(is_odd) || !folder.split('/').all(is_plain) {
        return None;
    }
    let mut link = String::with_capacity(folder.len() + 16);
    for byte in folder.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                link.push(char::from(byte));
            }
            // A colon as well: before it, everything would be a scheme.
            _ => {
                let _ = write!(link, "%{byte:02X}");
            }
        }
    }
    link.push_str("/report.html");
    (link.len() <= MOST_LINK).then_some(link)
}

/// A place on the web; none of any other scheme.
pub(super) fn web(link: &str) -> Option<&str> {
    let lower = link.get(..8).unwrap_or(link).to_ascii_lowercase();
    let is_web = lower.starts_with("https://") || lower.starts_with("http://");
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    (is_web && link.len() <= MOST_LINK && !link.contains(is_odd)).then_some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_the_store_is_a_link() {
        assert_eq!(run_page("20261125T020000Z-a/").as_deref(), Some("20261125T020000Z-a/report.html"));
        assert_eq!(run_page("a b/c:d?e#f").as_deref(), Some("a%20b/c%3Ad%3Fe%23f/report.html"));
    }

    #[test]
    fn what_leads_out_of_the_store_is_none() {
        for folder in ["", "/etc", "../x", "a/../b", "a//b", "./a", "a\\b", "a\nb", "//host/a"] {
            assert_eq!(run_page(folder), None, "{folder}");
        }
        assert_eq!(run_page(&"a".repeat(1000)), None);
    }

    #[test]
    fn only_places_on_the_web_are_followed() {
        assert_eq!(web("https://example.org/1"), Some("https://example.org/1"));
        assert!(web("HTTP://example.org").is_some());
        for link in
            ["javascript:alert(1)", "file:///etc/passwd", "example.org", "https:/x", "http://a b", "é"]
        {
            assert_eq!(web(link), None, "{link}");
        }
    }
}
