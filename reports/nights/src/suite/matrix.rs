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
        flags.extend(given(key, value)?);
    }
    Ok(flags)
}

/// A key with its value as flags: one for each word of a list where the flag is given once for each, else one
/// at most.
fn given(key: &str, value: &Value) -> Result<Vec<(String, String)>, String> {
    is_flag(key)?;
    match value {
        Value::Array(words) if WORD_BY_WORD.contains(&flag(key).as_str()) => {
            words.iter().map(|word| Ok((flag(key), single_word(key, word)?))).collect()
        }
        value => Ok(text(key, value)?.map(|text| (flag(key), text)).into_iter().collect()),
    }
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
    match value {
        Value::Boolean(there) => Ok(there.then(String::new)),
        Value::Array(values) if !values.is_empty() => {
            let words = values.iter().map(|value| single_word(key, value)).collect::<Result<Vec<_>, _>>()?;
            Ok(Some(words.join(",")))
        }
        other => single_word(key, other).map(Some),
    }
}

/// A value that is no list, as it is typed.
fn single_word(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        _ => Err(format!("{key}: write a text, number, true, false or list of these")),
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
        let values = &matrix[axis];
        if all.len().saturating_mul(values.len()) > MOST {
            return Err(format!("its matrix has more than {MOST} combinations"));
        }
        let mut longer = Vec::new();
        for begun in &all {
            for value in values {
                let mut one = begun.clone();
                one.extend(given(axis, value)?);
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
        let given = rule.iter().map(|(key, value)| Ok((flag(key), given(key, value)?)));
        excluded.push(given.collect::<Result<Vec<_>, String>>()?);
    }
    let is_excluded = |axes: &Vec<(String, String)>| {
        let has =
            |flag: &str, given: &[(String, String)]| axes.iter().filter(|(other, _)| other == flag).eq(given);
        excluded.iter().any(|rule| rule.iter().all(|(flag, given)| has(flag, given)))
    };
    all.retain(|axes| !is_excluded(axes));
    Ok(all)
}
