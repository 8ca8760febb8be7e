//! Values of YAML as texts.

use serde_yaml_ng::Value;

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
