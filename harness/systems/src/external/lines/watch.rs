//! What a watch is asked and answers, in lines.
//!
//! ```text
//! -> {"id":7,"f":"watch","of":"register","key":3,"value":40,"member":"...","timeout_ms":500,"wait_ms":100}
//! <- {"id":7,"type":"ok","value":[[12,6],[15,7]],"position":42}
//! ```
//!
//! The value of the request is the position up to which this watcher was told already, or null where it
//! begins. The answer has what changed behind it, in order: each value alone, or with its version; and the
//! position up to which that is all. Where nothing changes within `wait_ms` it has an empty list, and a
//! position. A position that can't be resumed from any more is a failure, `gone`: the watcher begins anew.

use std::time::Duration;

use checker::history::Value;
pub(super) use checker::watch::GONE;
use runs::clock::whole_milliseconds;
use workloads::Op;
use workloads::op::Body;

use super::{Answered, integer};

/// In the history, the version where none is told.
const NO_VERSION: i64 = -1;

/// The value of the request; none where it is no watch.
pub(super) fn asked(op: &Op) -> Option<Value> {
    match op.body {
        Body::Watch { from, .. } => Some(from.map_or(Value::Null, Value::One)),
        _ => None,
    }
}

/// How long it waits for news: half of its patience at most, so that there is time for the answer.
pub(super) fn wait_ms(op: &Op, patience: Duration) -> Option<u64> {
    match op.body {
        Body::Watch { wait_ms, .. } => Some(wait_ms.min(whole_milliseconds(patience / 2))),
        _ => None,
    }
}

/// What an answer tells: the position, and each value with its version.
pub(super) fn told(answered: &Answered) -> Result<Value, String> {
    let wrong = |wanted: &str| format!("a watch answers {wanted}, and not {}", answered.value);
    let Some(position) = answered.position.filter(|position| *position >= 0) else {
        return Err("the answer of a watch lacks its \"position\", an integer from 0 on".to_owned());
    };
    let events = match &answered.value {
        serde_json::Value::Null => &[][..],
        serde_json::Value::Array(events) => events,
        _ => return Err(wrong("a list of values")),
    };
    let mut told = vec![position];
    for event in events {
        let pair = match event {
            serde_json::Value::Array(pair) => match pair.as_slice() {
                [value, version] => integer(value).zip(integer(version).filter(|version| *version >= 0)),
                _ => None,
            },
            value => integer(value).map(|value| (value, NO_VERSION)),
        };
        let (value, version) =
            pair.ok_or_else(|| wrong("integers below 2^53, each alone or as [value, version]"))?;
        told.extend([value, version]);
    }
    Ok(Value::List(told.into()))
}

#[cfg(test)]
mod tests {
    use checker::history::EventKind;
    use workloads::op::Object;
    use workloads::{Outcome, Refusal};

    use super::super as lines;
    use super::*;

    const WATCH: Op = Op::new(Object::REGISTER, 3, Body::Watch { watcher: 2, from: Some(40), wait_ms: 900 });

    fn said(line: &str) -> Result<Outcome, String> {
        lines::outcome(&WATCH, 7, &[], line.as_bytes())
    }

    #[test]
    fn a_watch_is_asked_by_its_position_and_does_not_wait_for_longer_than_its_answer_is_waited_for() {
        let line = lines::asked(&WATCH, 7, "h:1", Duration::from_millis(500));
        let text =
            r#"{"id":7,"f":"watch","of":"register","key":3,"value":40,"member":"h:1","timeout_ms":500"#;
        assert_eq!(String::from_utf8(line).unwrap(), format!("{text},\"wait_ms\":250}}\n"));
        let anew = Op { body: Body::Watch { watcher: 2, from: None, wait_ms: 9 }, ..WATCH };
        let line = String::from_utf8(lines::asked(&anew, 7, "h:1", Duration::from_secs(1))).unwrap();
        assert!(line.contains(r#""value":null"#) && line.contains(r#""wait_ms":9"#), "{line}");
    }

    #[test]
    fn an_answer_tells_values_in_order_with_or_without_versions_and_a_position() {
        let list = |line: &str| said(line).map(|outcome| (outcome.kind, outcome.value));
        let told = |numbers: &[i64]| Ok((EventKind::Ok, Value::List(numbers.into())));
        assert_eq!(
            list(r#"{"id":7,"type":"ok","value":[[5,1],[6,2]],"position":9}"#),
            told(&[9, 5, 1, 6, 2])
        );
        assert_eq!(list(r#"{"id":7,"type":"ok","value":[5],"position":9}"#), told(&[9, 5, -1]));
        assert_eq!(list(r#"{"id":7,"type":"ok","position":9}"#), told(&[9]));
    }

    #[test]
    fn what_is_no_answer_to_a_watch_is_refused() {
        for (line, word) in [
            (r#"{"id":7,"type":"ok","value":[5]}"#, "position"),
            (r#"{"id":7,"type":"ok","value":[5],"position":-2}"#, "position"),
            (r#"{"id":7,"type":"ok","value":5,"position":9}"#, "a list of values"),
            (r#"{"id":7,"type":"ok","value":[[5]],"position":9}"#, "[value, version]"),
            (r#"{"id":7,"type":"ok","value":[[5,-1]],"position":9}"#, "[value, version]"),
            (r#"{"id":7,"type":"ok","value":["5"],"position":9}"#, "integers below 2^53"),
        ] {
            assert!(said(line).expect_err(line).contains(word), "{line}");
        }
    }

    #[test]
    fn a_watch_that_is_lost_told_nothing_and_one_whose_position_is_gone_says_so() {
        let lost = said(r#"{"id":7,"type":"info"}"#).expect("an outcome");
        assert_eq!((lost.kind, lost.value), (EventKind::Fail, Value::Pair(Some(40), 2)));
        let gone = said(r#"{"id":7,"type":"fail","error":"gone"}"#).expect("an outcome");
        assert_eq!((gone.kind, gone.refusal), (EventKind::Fail, Some(Refusal::Missing)));
    }
}
