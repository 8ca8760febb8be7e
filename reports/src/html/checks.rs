//! Checks: which promise, what decided it, and the evidence.

use checker::verdict::{CheckResult, Verdict};
use serde_json::Value;

use super::Input;
use super::markup::Markup;
use crate::findings::{self, sentence_end};
use crate::numbers::count;

/// Characters of one value of evidence at most; the whole is in results.json.
const MOST_EVIDENCE: usize = 600;
/// Values of evidence at most.
const MOST_VALUES: usize = 40;

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    m.heading("checks", "Checks", &findings::checks(input.results));
    m.el("table", &[("class", "cards checks")], |m| {
        m.el("thead", &[], |m| {
            m.el("tr", &[], |m| {
                for name in ["check", "verdict", "what was found", "decided by"] {
                    m.leaf("th", &[], name);
                }
            });
        });
        m.el("tbody", &[], |m| {
            for check in &input.results.checks {
                row(m, check);
            }
        });
    });
    m.line();
}

fn row(m: &mut Markup, check: &CheckResult) {
    m.el("tr", &[], |m| {
        m.leaf("td", &[("class", "id span2")], &title(&check.name));
        let (class, text) = match check.verdict {
            Verdict::Valid => ("state valid", "✓ valid"),
            Verdict::Invalid => ("state invalid", "✗ violation"),
            Verdict::Unknown => ("state unknown", "? unknown"),
        };
        m.leaf("td", &[("class", class)], text);
        m.el("td", &[("class", "wide"), ("data-l", "what was found")], |m| {
            m.text(&sentence_end(&check.summary));
            evidence(m, check);
        });
        let decided = check.decided_by.as_deref().unwrap_or("–");
        m.leaf("td", &[("class", "wide quiet"), ("data-l", "decided by")], decided);
    });
    m.line();
}

/// The name of a check as a person writes it: `per-session-order` is an identifier.
pub(super) fn title(name: &str) -> String {
    let mut words = name.replace(['-', '_'], " ");
    if let Some(first) = words.get(..1) {
        let first = first.to_uppercase();
        words.replace_range(..1, &first);
    }
    words
}

/// Evidence folded away where the check holds, open where it does not.
fn evidence(m: &mut Markup, check: &CheckResult) {
    let nothing = check.evidence.is_null() && check.counterexample.is_none();
    if nothing {
        return;
    }
    let closed: &[(&'static str, &str)] = &[];
    let attributes = if check.verdict == Verdict::Valid { closed } else { &[("open", "")] };
    m.el("details", attributes, |m| {
        m.leaf("summary", &[], "evidence");
        m.el("div", &[("class", "evidence")], |m| {
            if let Some(found) = &check.counterexample {
                m.el("p", &[], |m| {
                    m.text(&sentence_end(&found.sentence));
                    m.text(" ");
                    m.leaf("a", &[("href", "#counterexample")], "Drawn above.");
                });
            }
            match &check.evidence {
                Value::Null => {}
                Value::Object(fields) => {
                    m.el("dl", &[("class", "pairs")], |m| {
                        for (name, value) in fields.iter().take(MOST_VALUES) {
                            m.leaf("dt", &[], &name.replace(['-', '_'], " "));
                            m.leaf("dd", &[], &value_text(value));
                        }
                    });
                }
                other => m.leaf("p", &[], &value_text(other)),
            }
        });
    });
}

fn value_text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), count),
        Value::Array(items) if items.iter().all(|item| item.is_string() || item.is_number()) => {
            items.iter().map(value_text).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST_EVIDENCE) {
        Some((cut, _)) => format!("{}… (all of it in results.json)", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words_whatever_they_begin_with() {
        assert_eq!([title("session-order"), title(""), title("éx")], ["Session order", "", "éx"]);
    }

    #[test]
    fn long_evidence_is_cut_at_a_character() {
        let long = Value::String("é".repeat(MOST_EVIDENCE + 1));
        assert!(value_text(&long).ends_with("(all of it in results.json)"));
    }
}
