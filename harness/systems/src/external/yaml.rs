//! YAML, read within bounds, and its values as texts.

use serde_yaml_ng::Value;

/// Brackets that may be open at a time. The parser looks at all of them for each one more, and honest files
/// have a handful.
const MOST_OPEN: usize = 200;

/// Reads a document.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut open = 0_usize;
    for byte in text.bytes() {
        match byte {
            // Within a text they count too: no honest text has so many more of the one than of the other.
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MOST_OPEN {
            return Err(format!(
                "more than {MOST_OPEN} brackets are open at once: nothing is nested so deeply"
            ));
        }
    }
    serde_yaml_ng::from_str(text).map_err(|error| error.to_string())
}

/// A text, or what is written like one.
pub(super) fn text_of(value: &Value, what: &str) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        _ => Err(format!("{what}: a text is expected")),
    }
}

/// A list of texts.
pub(super) fn texts(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Sequence(list) => list.iter().map(|one| text_of(one, "an entry")).collect(),
        _ => Err("a list is expected".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_without_end_are_refused_before_they_are_parsed() {
        for bracket in ["[", "{", "{a: ["] {
            let why = parse(&bracket.repeat(1_000_000)).expect_err("too deep");
            assert!(why.contains("brackets are open at once"), "{why}");
        }
        assert!(parse(&"[1, {a: 2}]\n".replace('\n', "")).is_ok());
        let wide = format!("[{}]", "[1],".repeat(10_000));
        assert!(parse(&wide).is_ok(), "wide is not deep");
    }
}
