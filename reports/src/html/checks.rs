//! Checks: which promise, what decided it, and the evidence.

use checker::verdict::CheckResult;
use serde_json::{Map, Value};

use super::Input;
use super::markup::{Markup, css};
use runs::findings::{self, sentence, shortened};
use runs::numbers::{count, duration, len};
use runs::standing::Standing;

/// Characters of one value of evidence at most; the whole is in results.json.
const MOST_EVIDENCE: usize = 600;
/// Values of evidence at most.
const MOST_VALUES: usize = 40;
/// Columns of a table of evidence at most.
const MOST_COLUMNS: usize = 8;
/// Columns in the order in which they are read; others follow.
const COLUMNS: [&str; 9] =
    ["fault", "kind", "member", "key", "before", "epoch_before", "during", "after", "epoch_after"];
/// Characters of what a check found at most.
const MOST_SUMMARY: usize = 800;
/// Characters of a name at most.
const MOST_NAME: usize = 80;

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    m.heading("checks", "Checks", &findings::checks(input.results));
    if input.results.checks.is_empty() {
        return;
    }
    m.el("table", &[("class", "cards checks")], |m| {
        m.el("thead", &[], |m| {
            m.el("tr", &[], |m| {
                for name in ["check", "verdict", "what was found", "decided by, in"] {
                    m.leaf("th", &[("data-sort", "yes")], name);
                }
            });
        });
        for check in &input.results.checks {
            m.el("tbody", &[], |m| row(m, check));
            m.line();
        }
    });
    m.line();
}

fn row(m: &mut Markup, check: &CheckResult) {
    let standing = Standing::of(check);
    let nothing = check.evidence.is_null() && check.counterexample.is_none();
    m.el("tr", &[], |m| {
        m.el("td", &[("class", "id")], |m| {
            if nothing {
                m.leaf("span", &[("class", "bare")], &title(&check.name));
            } else {
                // Folded away where the check holds, open where it does not.
                let open: &[(&'static str, &str)] =
                    if matches!(standing, Standing::Valid | Standing::NothingJudged) {
                        &[]
                    } else {
                        &[("open", "")]
                    };
                m.el("details", open, |m| m.leaf("summary", &[], &title(&check.name)));
            }
        });
        let class = match standing {
            Standing::Valid => "state valid",
            Standing::Invalid => "state invalid",
            Standing::Unknown | Standing::NotPromised => "state unknown",
            Standing::NothingJudged => "state",
        };
        m.leaf("td", &[("class", class)], &format!("{} {}", standing.glyph(), standing.word()));
        m.leaf("td", &[("class", "wide")], &shortened(&sentence(&check.summary), MOST_SUMMARY));
        let took = check.took_ms.map(duration);
        match (&check.decided_by, took) {
            (Some(how), took) => {
                let how = took.map_or_else(|| how.clone(), |took| format!("{how}, {took}"));
                m.leaf("td", &[("class", "wide quiet"), ("data-l", "decided by")], &how);
            }
            (None, Some(took)) => m.leaf("td", &[("class", "wide quiet"), ("data-l", "in")], &took),
            (None, None) => m.leaf("td", &[("class", "wide quiet nothing")], "–"),
        }
    });
    if !nothing {
        m.el("tr", &[("class", "more")], |m| {
            m.el("td", &[("colspan", "4"), ("class", "wide")], |m| {
                m.el("div", &[("class", "evidence")], |m| evidence(m, check));
            });
        });
    }
}

/// The name of a check as a person writes it: `per-session-order` is an identifier.
pub(super) fn title(name: &str) -> String {
    let mut words = words(name);
    if let Some(first) = words.get(..1) {
        let first = first.to_uppercase();
        words.replace_range(..1, &first);
    }
    words
}

fn evidence(m: &mut Markup, check: &CheckResult) {
    if let Some(found) = &check.counterexample {
        m.el("p", &[], |m| {
            m.text(&shortened(&sentence(&found.sentence), MOST_SUMMARY));
            m.text(" ");
            m.leaf("a", &[("href", "#counterexample")], "See the counterexample.");
        });
    }
    match &check.evidence {
        Value::Null => {}
        Value::Object(fields) => pairs(m, fields),
        Value::Array(items) if !items.is_empty() => list(m, items),
        other => m.leaf("p", &[], &value_text(other)),
    }
}

/// What has one value as a pair, what has many as a table under its name.
fn pairs(m: &mut Markup, fields: &Map<String, Value>) {
    let is_list = |value: &Value| {
        value.as_array().is_some_and(|items| items.iter().any(|item| item.is_object() || item.is_array()))
    };
    let (lists, plain): (Vec<_>, Vec<_>) =
        fields.iter().take(MOST_VALUES).partition(|(_, value)| is_list(value));
    if !plain.is_empty() {
        m.el("dl", &[("class", "inline")], |m| {
            for (name, value) in plain {
                m.el("div", &[], |m| {
                    m.leaf("dt", &[], &words(name));
                    m.leaf("dd", &[], &value_text(value));
                });
            }
        });
    }
    for (name, value) in lists {
        m.leaf("p", &[("class", "list-name")], &words(name));
        list(m, value.as_array().map(Vec::as_slice).unwrap_or_default());
    }
}

/// Objects as rows under the names of the fields that the first one has; anything else as text.
fn list(m: &mut Markup, items: &[Value]) {
    let Some(first) = items.first().and_then(Value::as_object) else {
        m.leaf("p", &[], &value_text(&Value::Array(items.to_vec())));
        return;
    };
    let mut names: Vec<&String> = first.keys().take(MOST_COLUMNS).collect();
    // A name first, then what comes one after the other in time; the file has them by the alphabet.
    names.sort_by_key(|name| COLUMNS.iter().position(|column| column == name).unwrap_or(COLUMNS.len()));
    m.el("div", &[("class", "sideways")], |m| {
        m.el("table", &[("class", "list")], |m| {
            m.el("tr", &[], |m| {
                for name in &names {
                    m.leaf("th", &[], &words(name));
                }
            });
            for item in items.iter().take(MOST_VALUES) {
                m.el("tr", &[], |m| {
                    for name in &names {
                        m.leaf("td", &[], &value_text(item.get(name.as_str()).unwrap_or(&Value::Null)));
                    }
                });
            }
        });
    });
    if let Some(left) = items.len().checked_sub(MOST_VALUES).filter(|left| *left > 0) {
        m.leaf("p", &[], &format!("{} more are in results.json.", len(left)));
    }
}

fn words(name: &str) -> String {
    shortened(&name.replace(['-', '_'], " "), MOST_NAME)
}

fn value_text(value: &Value) -> String {
    let text = full_text(value);
    let cut = shortened(&text, MOST_EVIDENCE);
    if cut != text { format!("{cut} (all of it in results.json)") } else { text }
}

fn full_text(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => count(whole),
            // Three digits behind the point: more are noise, and results.json has them.
            (None, Some(value)) if number.is_f64() && value.abs() < 1e15 => css(value),
            (None, _) => number.to_string(),
        },
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(full_text).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let pair = |(name, value): (&String, &Value)| format!("{} {}", words(name), full_text(value));
            fields.iter().map(pair).collect::<Vec<_>>().join(", ")
        }
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
