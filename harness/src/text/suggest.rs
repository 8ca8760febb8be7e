//! Finds what somebody probably meant to type.

/// At most this share of a word may differ for it to be worth suggesting: one letter in three.
const LETTERS_PER_SLIP: usize = 3;

/// The candidate nearest to `typed`, if one is near.
pub fn nearest<'a>(typed: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase();
    let words = sorted_words(&typed);
    if let Some(same) = candidates.iter().find(|candidate| sorted_words(candidate) == words) {
        return Some(same);
    }
    let best =
        candidates.iter().map(|candidate| (strsim::levenshtein(&typed, candidate), *candidate)).min()?;
    let allowed = (typed.chars().count() / LETTERS_PER_SLIP).max(1);
    if best.0 <= allowed {
        return Some(best.1);
    }
    // `partition` or `leader` alone: the first name that has the word in it.
    let shortest_useful = 4;
    (typed.len() >= shortest_useful)
        .then(|| candidates.iter().copied().find(|candidate| candidate.contains(&typed)))
        .flatten()
}

/// `leader_partition` and `partition-leader` have the same words.
fn sorted_words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split(['-', '_', ' ']).collect();
    words.sort_unstable();
    words
}

/// `; did you mean X?` or nothing.
pub fn hint(typed: &str, candidates: &[&str]) -> String {
    nearest(typed, candidates).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// Names on lines of this width.
const COLUMNS: usize = 98;

/// What is said of a name that nobody knows: what may be meant, and what there is.
pub fn unknown(what: &str, typed: &str, names: &[&str], advice: &str) -> String {
    format!("there is no {what} `{typed}`{}\n{advice}\n{}", hint(typed, names), listed(names))
}

/// Names with commas between them, on as many lines as they take, a little indented.
pub fn listed(names: &[&str]) -> String {
    let (mut out, mut used) = (String::from("  "), 2);
    for (i, name) in names.iter().enumerate() {
        let comma = usize::from(i + 1 < names.len());
        if i > 0 && used + 1 + name.len() + comma > COLUMNS {
            out.push_str("\n  ");
            used = 2;
        } else if i > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(name);
        out.push_str(&","[..comma]);
        used += name.len() + comma;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["partition-leader", "partition-halves", "kill-leader", "pause-leader"];

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        assert_eq!(nearest("partition-laeder", &NAMES), Some("partition-leader"));
        assert_eq!(nearest("kil-leader", &NAMES), Some("kill-leader"));
    }

    #[test]
    fn words_in_another_order_are_recognised() {
        assert_eq!(nearest("leader_pause", &NAMES), Some("pause-leader"));
    }

    #[test]
    fn a_part_of_a_name_is_recognised() {
        assert_eq!(nearest("halves", &NAMES), Some("partition-halves"));
    }

    #[test]
    fn names_are_listed_on_lines_that_a_terminal_shows_whole() {
        assert_eq!(listed(&["one"]), "  one");
        let many = ["a-name-of-twenty-two-ch"; 9];
        let text = listed(&many);
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= COLUMNS), "{text}");
        assert_eq!(text.matches(many[0]).count(), many.len());
        let words = unknown("nemesis", "kil-leader", &NAMES, "`harness list nemeses` says what each does:");
        assert_eq!(
            words,
            "there is no nemesis `kil-leader`; did you mean `kill-leader`?\n`harness list nemeses` says what \
             each does:\n  partition-leader, partition-halves, kill-leader, pause-leader"
        );
    }

    #[test]
    fn nothing_is_suggested_for_something_else_altogether() {
        assert_eq!(nearest("xyzzy", &NAMES), None);
    }
}
