//! Findings: each a state, a case, a sentence, and the command that shows it again.

use nights::findings::{Finding, State};
use runs::findings::{Sentence, sentence, shortened};
use runs::numbers::{len, plural};

use super::{MOST_TEXT, head, links, more};
use crate::html::markup::Markup;
use crate::html::verdict::command;
use crate::nights::digest::{Digest, number, replays, shrunk};

/// Findings that are drawn at most.
const MOST_FINDINGS: usize = 100;
/// Characters of a sentence at most.
const MOST_SENTENCE: usize = 1000;
/// Characters of a command at most; one that is cut would do something else, so a longer one is not drawn.
const MOST_COMMAND: usize = 2000;

/// Writes them.
pub(super) fn write(m: &mut Markup, digest: &Digest<'_>) {
    let all = digest.view.findings;
    m.heading("findings", "Findings", &summary(all));
    if all.is_empty() {
        return;
    }
    m.el("table", &[("class", "cards checks found")], |m| {
        head(
            m,
            &[
                ("State", false),
                ("Case", false),
                ("Check", false),
                ("First seen", false),
                ("Last seen", false),
                ("Nights", true),
                ("Seen again", false),
            ],
        );
        for finding in all.iter().take(MOST_FINDINGS) {
            m.el("tbody", &[], |m| row(m, finding, digest));
            m.line();
        }
    });
    more(m, all.len(), MOST_FINDINGS, "finding");
}

fn summary(all: &[Finding]) -> Sentence {
    if all.is_empty() {
        return Sentence::strong("No finding")
            .and(": none is new, ongoing or gone tonight. Of cases that were not run nothing is said.");
    }
    let states = [State::New, State::NewShape, State::Ongoing, State::Gone];
    let parts: Vec<String> = states
        .into_iter()
        .filter_map(|state| {
            let n = all.iter().filter(|finding| finding.state == state).count();
            (n > 0).then(|| format!("{} {}", len(n), state.name()))
        })
        .collect();
    let tolerated = all.iter().filter(|finding| finding.is_tolerated).count();
    let rest = match tolerated {
        0 => String::new(),
        n => format!(" {} known and not counted in the exit status.", plural(number(n), "finding")),
    };
    Sentence::strong(plural(number(all.len()), "finding")).and(format!(": {}.{rest}", parts.join(", ")))
}

fn tone(state: State) -> &'static str {
    match state {
        State::New | State::NewShape => "state invalid",
        State::Ongoing => "state unknown",
        State::Gone => "state valid",
    }
}

fn row(m: &mut Markup, finding: &Finding, digest: &Digest<'_>) {
    m.el("tr", &[], |m| {
        let mut cell = |label: &'static str, class: &str, text: &str| {
            let attributes: &[(&str, &str)] = &[("class", class), ("data-l", label)];
            m.leaf("td", attributes, &shortened(text, MOST_TEXT));
        };
        cell("State", tone(finding.state), finding.state.name());
        cell("Case", "span2", &finding.shape.case);
        cell("Check", "span2", &finding.shape.check);
        cell("First seen", "nowrap", &digest.day(&finding.first));
        cell("Last seen", "nowrap", &digest.day(&finding.last));
        cell("Nights", "n", &runs::numbers::count(finding.nights));
        cell("Seen again", "nowrap", &replays(finding));
    });
    m.el("tr", &[], |m| {
        m.el("td", &[("class", "wide told"), ("colspan", "7")], |m| details(m, finding));
    });
}

fn details(m: &mut Markup, finding: &Finding) {
    m.leaf("p", &[], &shortened(&sentence(&finding.sentence), MOST_SENTENCE));
    if !finding.best.command.is_empty() && finding.best.command.len() <= MOST_COMMAND {
        command(m, &finding.best.command);
    }
    m.el("p", &[("class", "quiet")], |m| {
        m.leaf("code", &[], &shortened(&finding.fingerprint, MOST_TEXT));
        // A world has no run folder: its seed is all there is.
        if finding.shape.case != nights::fold::WORLDS {
            link_to(m, " · ", "its run", links::run_page(&finding.best.folder));
        }
        if let Some(shrunk) = shrunk(finding) {
            m.text(&format!(" · shrunk to {shrunk}"));
            let folder = finding.best.shrunk.as_ref().and_then(|shrunk| links::run_page(&shrunk.folder));
            link_to(m, " · ", "the shrunk run", folder);
        }
        if let Some(link) = &finding.link {
            m.text(" · known: ");
            match links::web(link) {
                Some(href) => m.leaf("a", &[("href", href), ("rel", "noopener noreferrer")], href),
                None => m.text(&shortened(link, MOST_TEXT)),
            }
        }
        if finding.is_tolerated {
            m.text(" · not counted in the exit status yet");
        }
    });
}

fn link_to(m: &mut Markup, before: &str, text: &str, href: Option<String>) {
    if let Some(href) = href {
        m.text(before);
        m.leaf("a", &[("href", &href)], text);
    }
}
