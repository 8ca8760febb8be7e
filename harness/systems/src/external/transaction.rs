//! What a client answers to a transaction. Pure.
//!
//! ```text
//! -> {"id":7,"f":"txn","of":"lists","key":5,"value":[["append",5,1],["r",6,null]],"member":...}
//! <- {"id":7,"type":"ok","value":[["append",5,1],["r",6,[4,9]]]}
//! ```
//!
//! An answer says again what was asked, with the lists that were read filled in. A list that nobody has
//! appended to may be `[]` or `null`.

use std::sync::Arc;

use checker::history::{Micro, Value, What};

use super::integer::integer;

/// What the answer tells.
///
/// # Errors
/// What it should have told.
pub(super) fn told(asked: &[Micro], value: &serde_json::Value) -> Result<Value, String> {
    let list = value.as_array().filter(|list| list.len() == asked.len()).ok_or_else(|| {
        format!("the {} micro-operations that were asked for, with what was read", asked.len())
    })?;
    asked.iter().zip(list).map(|(asked, told)| micro(asked, told)).collect::<Result<_, _>>().map(Value::Txn)
}

fn micro(asked: &Micro, told: &serde_json::Value) -> Result<Micro, String> {
    let parts: &[serde_json::Value] = told.as_array().map_or(&[], Vec::as_slice);
    let [f, key, value] = parts else { return Err(wanted(asked)) };
    let same_key = key.as_u64() == Some(asked.key);
    let what = match (&asked.what, f.as_str()) {
        (What::Append(element), Some("append")) if value.as_i64() == Some(*element) => What::Append(*element),
        (What::Read(_), Some("r")) => What::Read(Some(list(value).ok_or_else(|| wanted(asked))?)),
        _ => return Err(wanted(asked)),
    };
    if same_key { Ok(Micro { key: asked.key, what }) } else { Err(wanted(asked)) }
}

fn list(value: &serde_json::Value) -> Option<Arc<[i64]>> {
    match value {
        serde_json::Value::Null => Some(Arc::from([])),
        value => value.as_array()?.iter().map(integer).collect(),
    }
}

/// What stands at the place of a micro-operation in the answer.
fn wanted(asked: &Micro) -> String {
    match asked.what {
        What::Append(element) => format!("[\"append\",{},{element}] in its place", asked.key),
        What::Read(_) => {
            format!("[\"r\",{},[...]] in its place, with a list of integers below 2^53", asked.key)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(value: &str) -> Result<Value, String> {
        let asked = [Micro::append(5, 1), Micro::read(6)];
        told(&asked, &serde_json::from_str(value).expect("JSON"))
    }

    #[test]
    fn an_answer_says_again_what_was_asked_and_what_was_read() {
        let of = |list: &[i64]| {
            let read = Micro { key: 6, what: What::Read(Some(list.into())) };
            Ok(Value::Txn([Micro::append(5, 1), read].into()))
        };
        assert_eq!(said(r#"[["append",5,1],["r",6,[4,9]]]"#), of(&[4, 9]));
        assert_eq!(said(r#"[["append",5,1],["r",6,null]]"#), of(&[]));
    }

    #[test]
    fn what_is_no_answer_says_what_was_wanted() {
        for (wrong, word) in [
            ("null", "the 2 micro-operations"),
            (r#"[["append",5,1]]"#, "the 2 micro-operations"),
            (r#"[["append",5,2],["r",6,[]]]"#, r#"["append",5,1]"#),
            (r#"[["append",5,1],["r",7,[]]]"#, r#"["r",6,[...]]"#),
            (r#"[["append",5,1],["r",6]]"#, r#"["r",6,[...]]"#),
            (r#"[["append",5,1],["r",6,["4"]]]"#, "below 2^53"),
            (r#"[["append",5,1],["r",6,[9007199254740993]]]"#, "below 2^53"),
            (r#"[["r",6,[]],["append",5,1]]"#, r#"["append",5,1]"#),
        ] {
            assert!(said(wrong).expect_err(wrong).contains(word), "{wrong}");
        }
    }
}
