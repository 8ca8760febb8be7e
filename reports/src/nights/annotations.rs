//! Annotations as GitHub's workflow commands: what a person should see without opening anything.
//!
//! GitHub shows ten errors and ten warnings of a step and drops the rest without a word, so the tenth says
//! how many there are. A new line in a message would begin another command; it is escaped, as GitHub's own
//! toolkit does it (`actions/toolkit`, `command.ts`).

use nights::findings::State;
use nights::pile::Pile;
use runs::findings::{sentence, sentence_end, shortened};
use runs::numbers::{len, plural};

use super::View;
use super::digest::{Digest, broken, day, number, replays};

/// Annotations of a level that GitHub shows of a step.
const MOST: usize = 10;
/// Characters of a message at most.
const MOST_TEXT: usize = 1000;

/// An annotation.
struct Annotation {
    is_error: bool,
    title: String,
    message: String,
}

/// Writes them; nothing of a valid night.
pub(super) fn render(view: &View<'_>) -> String {
    let Some(digest) = Digest::of(view) else {
        return line("error", "Unknown", "There was no night.");
    };
    let all = annotations(&digest);
    let level = |is_error: bool, word: &str| {
        let of: Vec<&Annotation> = all.iter().filter(|one| one.is_error == is_error).collect();
        let room = if of.len() > MOST { MOST - 1 } else { MOST };
        let mut out: String = of.iter().take(room).map(|one| line(word, &one.title, &one.message)).collect();
        if of.len() > MOST {
            let more = format!("And {} more, on the night's page.", len(of.len() - room));
            out.push_str(&line(word, "More", &more));
        }
        out
    };
    level(true, "error") + &level(false, "warning")
}

fn annotations(digest: &Digest<'_>) -> Vec<Annotation> {
    let mut all = Vec::new();
    let mut add = |is_error: bool, title: String, message: String| {
        all.push(Annotation { is_error, title, message });
    };
    if digest.pile != Pile::Valid {
        let is_error = digest.pile != Pile::Unknown || digest.night.judged.is_none();
        add(
            is_error,
            format!("{}: night of {}", digest.headline, day(digest.night)),
            digest.sentence.clone(),
        );
    }
    for finding in digest.findings(&[State::New, State::NewShape, State::Ongoing]) {
        let again = if finding.best.command.is_empty() {
            String::new()
        } else {
            format!("\nShow it again: {}", finding.best.command)
        };
        add(
            !finding.is_tolerated,
            format!("{} finding: {}", sentence_start(finding.state.name()), finding.shape.case),
            format!("{}: {} {}.{again}", finding.shape.check, sentence(&finding.sentence), replays(finding)),
        );
    }
    let (_, bad) = digest.night.worlds_lived();
    if let Some(first) = bad.first() {
        let title = format!("{} broke a rule", plural(number(bad.len()), "world"));
        add(true, title, broken(first));
    }
    for (case, pile) in digest.not_valid() {
        // A violation that was looked at is a finding, above.
        let is_told = pile == Pile::Violation && !digest.findings_of(&case.case).is_empty();
        if !is_told {
            let is_error = matches!(pile, Pile::Violation | Pile::Regression);
            add(is_error, format!("{}: {}", sentence_start(pile.name()), case.case), sentence_end(&case.why));
        }
    }
    for hunted in digest.hunted().iter().filter(|hunted| !hunted.is_convicted) {
        let title = format!("Planted bug not convicted: {}", hunted.name);
        add(true, title, "What this night did not find proves little.".to_owned());
    }
    all
}

/// A word with a capital.
fn sentence_start(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn line(level: &str, title: &str, message: &str) -> String {
    format!("::{level} title={}::{}\n", property(title), data(message))
}

/// A message as the runner reads it.
fn data(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in shortened(raw, MOST_TEXT).chars() {
        match c {
            '%' => out.push_str("%25"),
            '\r' => out.push_str("%0D"),
            '\n' => out.push_str("%0A"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The same as a property, which ends at a colon or a comma.
fn property(raw: &str) -> String {
    data(raw).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_from_outside_cannot_be_another_command() {
        assert_eq!(
            line("error", "a, b: c", "100 %\r\n::error::x\u{1b}"),
            "::error title=a%2C b%3A c::100 %25%0D%0A::error::x\u{fffd}\n"
        );
    }
}
