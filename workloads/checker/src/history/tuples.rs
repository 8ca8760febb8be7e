//! Jepsen's independent keys: a test of many registers whose values are pairs of a key and a value.
//!
//! Jepsen runs one test on many keys by making `[3 [1 2]]` of a compare-and-set `[1 2]` on key 3. Nothing in
//! the file says so, but the invocations do: a register is not asked to read `[3 nil]`, to hold `[3 1]`, nor
//! to compare a number with a pair. So the key is taken out of those, and out of their completions.

use std::collections::HashMap;

use super::{Datum, EventKind, Record};

/// The keys of the operations that are open, by process.
#[derive(Default)]
pub(super) struct Tuples(HashMap<u64, Datum>);

impl Tuples {
    /// Takes the key out of a record's value, if there is one in it.
    pub(super) fn take_key_out(&mut self, record: &mut Record) {
        let key = match record.kind {
            EventKind::Invoke => {
                self.0.remove(&record.process);
                if !record.key.is_nil() || !is_tuple(&record.f, &record.value) {
                    return;
                }
                let Some([key, _]) = record.value.as_list() else { return };
                self.0.insert(record.process, key.clone());
                key.clone()
            }
            EventKind::Ok | EventKind::Fail | EventKind::Info => match self.0.remove(&record.process) {
                Some(key) => key,
                None => return,
            },
        };
        match &mut record.value {
            Datum::List(pair) if pair.len() == 2 && pair[0] == key => {
                record.value = pair.pop().unwrap_or_default();
            }
            // An answer of another key: whoever pairs the lines says so.
            Datum::List(pair) if pair.len() == 2 && record.kind == EventKind::Ok => {
                record.key = pair[0].clone();
                return;
            }
            // What failed, and a change that is answered without a value, need not repeat it.
            _ => {}
        }
        record.key = key;
    }
}

/// Whether the value of an invocation is a key and a value.
fn is_tuple(f: &str, value: &Datum) -> bool {
    match (f, value.as_list()) {
        ("read", Some([_, value])) => value.is_nil(),
        ("write", Some([_, value])) => value.as_int().is_some(),
        ("cas", Some([_, value])) => value.as_list().is_some_and(|pair| pair.len() == 2),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::history::{OpKind, load};

    #[test]
    fn a_key_in_the_value_is_the_key_of_the_operation() {
        let text = "[{:process 0 :type :invoke :f :write :value [7 1]} \
                     {:process 0 :type :ok :f :write :value [7 1]}
                     {:process 1 :type :invoke :f :cas :value [8 [nil 2]]} \
                     {:process 1 :type :ok :f :cas :value [8 [nil 2]]}
                     {:process 0 :type :invoke :f :read :value [7 nil]} \
                     {:process 0 :type :ok :f :read :value [7 1]}
                     {:process 0 :type :invoke :f :write :value [8 3]} \
                     {:process 0 :type :info :f :write :value nil}]";
        let history = load(text.as_bytes()).unwrap().history;
        let ops: Vec<(u64, OpKind)> = history.ops().iter().map(|op| (op.key, op.kind())).collect();
        assert_eq!(
            ops,
            [
                (7, OpKind::Write { value: 1 }),
                (8, OpKind::Cas { from: None, to: 2 }),
                (7, OpKind::Read { value: Some(1) }),
                (8, OpKind::Write { value: 3 }),
            ]
        );
    }

    #[test]
    fn a_compare_and_set_of_numbers_and_the_elements_of_a_list_are_no_keys() {
        let text = "[{:process 0 :type :invoke :f :cas :value [7 1]} \
                     {:process 0 :type :ok :f :cas :value [7 1]}
                     {:process 0 :type :invoke :f :read :value nil} \
                     {:process 0 :type :ok :f :read :value [7 1]}]";
        let history = load(text.as_bytes()).unwrap().history;
        assert!(history.ops().iter().all(|op| op.key == 0));
        assert_eq!(history.ops()[1].list().map(|list| &list[..]), Some(&[7, 1][..]));
    }
}
