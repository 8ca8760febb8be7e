//! A case's keys as flags, and the combinations of its matrix.

use std::collections::BTreeMap;

use toml::Value;

/// Flags whose place in a command line, and in a case's id, is fixed; all others follow by name.
const ORDER: [&str; 6] = ["system", "image", "nodes", "cluster", "nemesis", "workload"];

/// Flags that are given once for each word of a list, and not as one list with commas.
const WORD_BY_WORD: [&str; 2] = ["image-command", "set"];
/// More combinations than anybody means.
const MOST: usize = 10_000;

/// Where a flag stands among others.
pub(super) fn rank(flag: &str) -> (usize, String) {
    let place = ORDER.iter().position(|known| *known == flag).unwrap_or(ORDER.len());
    (place, flag.to_owned())
}

/// The keys of a case as flags.
pub(super) fn flags(keys: &BTreeMap<String, Value>) -> Result<Vec<(String, String)>, String> {
    let mut flags = Vec::new();
    for (key, value) in keys {
        is_flag(key)?;
        match value {
            // A flag that is given once for each word.
            Value::Array(words) if WORD_BY_WORD.contains(&flag(key).as_str()) => {
                for word in words {
                    flags.extend(text(key, word)?.map(|text| (flag(key), text)));
                }
            }
            value => flags.extend(text(key, value)?.map(|text| (flag(key), text))),
        }
    }
    Ok(flags)
}

/// A key is the name of a flag and nothing more.
fn is_flag(key: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if key.chars().all(fits) {
        return Ok(());
    }
    Err(format!("`{}` is no flag: write its name alone, and its value behind =", key.escape_debug()))
}

fn flag(key: &str) -> String {
    key.replace('_', "-")
}

/// A value as it is typed; none for a flag that is not to be there, an empty one for a flag alone.
fn text(key: &str, value: &Value) -> Result<Option<String>, String> {
    let one = |value: &Value| match value {
        Value::String(text) if !text.trim().is_empty() => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        _ => Err(format!("{key}: write a text, number, true, false or list of these")),
    };
    match value {
        Value::Boolean(there) => Ok(there.then(String::new)),
        Value::Array(values) if !values.is_empty() => {
            Ok(Some(values.iter().map(one).collect::<Result<Vec<_>, _>>()?.join(",")))
        }
        other => one(other).map(Some),
    }
}

/// Every combination of the matrix that is not excluded: flags with their values, in a fixed order. Without a
/// matrix there is one, and it is empty.
pub(super) fn product(
    matrix: &BTreeMap<String, Vec<Value>>,
    exclude: &[BTreeMap<String, Value>],
) -> Result<Vec<Vec<(String, String)>>, String> {
    let mut axes: Vec<&String> = matrix.keys().collect();
    axes.sort_by_key(|key| rank(&flag(key)));
    let mut all: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for axis in axes {
        is_flag(axis)?;
        let values = &matrix[axis];
        if all.len().saturating_mul(values.len()) > MOST {
            return Err(format!("its matrix has more than {MOST} combinations"));
        }
        let mut longer = Vec::new();
        for begun in &all {
            for value in values {
                let mut one = begun.clone();
                one.extend(text(axis, value)?.map(|text| (flag(axis), text)));
                longer.push(one);
            }
        }
        all = longer;
    }
    let mut excluded = Vec::new();
    for rule in exclude {
        if let Some(unknown) = rule.keys().find(|key| !matrix.contains_key(*key)) {
            return Err(format!("nothing can be excluded by `{unknown}`, which is not in the matrix"));
        }
        if rule.is_empty() {
            return Err("an empty exclude would leave nothing".to_owned());
        }
        excluded.push(flags(rule)?);
    }
    let is_excluded = |axes: &Vec<(String, String)>| {
        excluded.iter().any(|rule| rule.iter().all(|pair| axes.contains(pair)))
    };
    all.retain(|axes| !is_excluded(axes));
    Ok(all)
}
