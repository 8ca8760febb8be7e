//! Several registers that are read and written together: transactions of reads and writes, each at one
//! moment.
//!
//! An operation `txn` has for its value a list of `[r key value]` and `[w key value]` (or `read` and `write`
//! in full); its `ok` says what the reads saw. `read` and `write` with a map of keys and values are such
//! transactions too. A read of nothing says nothing, as in Knossos, whose model of this name this is.
//!
//! What the registers held before the history began is not in it. Whoever read a register's first value
//! called before the first write of it had returned, so what such reads saw are the only values that it may
//! have held, as far as anybody can tell ([`MultiRegister::beginnings`]): a history has an order if it has
//! one from any of them.
//!
//! Registers that no transaction touches together, not even by way of others, are independent objects. So the
//! history falls into the connected components of its keys ([`MultiRegister::parted`]), and each is judged by
//! itself: linearizability is local.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::names::Names;
use super::{Call, Model};
use crate::history::{Datum, EventKind, NEVER, Rank, Record};

/// Registers. Until somebody says otherwise they hold nothing at first.
#[derive(Debug, Default)]
pub struct MultiRegister {
    keys: Names,
    values: Names,
    /// For each key the first of its component.
    components: HashMap<u32, u32>,
    first: Held,
}

/// More combinations of first values than this are not tried.
const MOST_BEGINNINGS: usize = 64;

/// One read or write of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Micro {
    /// The key held the value.
    Read(u32, u32),
    /// The key holds the value from here on.
    Write(u32, u32),
}

impl Micro {
    fn key(self) -> u32 {
        match self {
            Self::Read(key, _) | Self::Write(key, _) => key,
        }
    }
}

/// A transaction: reads and writes in their order.
pub type Transaction = Arc<[Micro]>;

/// What registers hold: those that were written, by key.
pub type Held = Arc<Vec<(u32, u32)>>;

fn held(state: &[(u32, u32)], key: u32) -> Option<u32> {
    state.binary_search_by_key(&key, |&(key, _)| key).ok().map(|at| state[at].1)
}

/// The key that stands for a key's component.
fn root(parent: &mut HashMap<u32, u32>, key: u32) -> u32 {
    let mut at = key;
    loop {
        let up = *parent.entry(at).or_insert(at);
        if up == at {
            return at;
        }
        // Half of the way is cut short for whoever comes next.
        let further = *parent.entry(up).or_insert(up);
        parent.insert(at, further);
        at = further;
    }
}

impl MultiRegister {
    /// The same, with the components that these operations make of the keys.
    #[must_use]
    pub fn parted(mut self, calls: &[Call<Transaction>]) -> Self {
        let mut parent: HashMap<u32, u32> = HashMap::new();
        for call in calls {
            for pair in call.op.windows(2) {
                let (one, other) = (root(&mut parent, pair[0].key()), root(&mut parent, pair[1].key()));
                // The smaller number is the root, so that the result does not depend on an order.
                parent.insert(one.max(other), one.min(other));
            }
        }
        let keys: Vec<u32> = calls.iter().flat_map(|call| call.op.iter()).map(|micro| micro.key()).collect();
        self.components = keys.into_iter().map(|key| (key, root(&mut parent, key))).collect();
        self
    }

    /// What the registers may have held before these operations; none if there are too many possibilities to
    /// try.
    #[must_use]
    pub fn beginnings(calls: &[Call<Transaction>]) -> Option<Vec<Held>> {
        let mut overwritten: BTreeMap<u32, Rank> = BTreeMap::new();
        for call in calls {
            for micro in call.op.iter().filter(|micro| matches!(micro, Micro::Write(..))) {
                let first = overwritten.entry(micro.key()).or_insert(NEVER);
                *first = call.ret.min(*first);
            }
        }
        let mut seen: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for call in calls {
            for &micro in call.op.iter() {
                if let Micro::Read(key, value) = micro
                    && overwritten.get(&key).is_none_or(|&rank| call.call < rank)
                {
                    seen.entry(key).or_default().insert(value);
                }
            }
        }
        let mut beginnings = vec![Vec::new()];
        for (key, values) in seen {
            if beginnings.len() * values.len() > MOST_BEGINNINGS {
                return None;
            }
            let with = |one: &Vec<(u32, u32)>, value: u32| [one.as_slice(), &[(key, value)]].concat();
            beginnings =
                beginnings.iter().flat_map(|one| values.iter().map(move |&value| with(one, value))).collect();
        }
        Some(beginnings.into_iter().map(Arc::new).collect())
    }

    /// The same, with this at first.
    #[must_use]
    pub fn with_first(self, first: Held) -> Self {
        Self { first, ..self }
    }

    /// A read or write as a list of three, or as an entry of a map.
    fn micro(&self, f: &str, key: &Datum, value: &Datum) -> Result<Option<Micro>, String> {
        let key = self.keys.number(key)?;
        match f {
            "r" | "read" if value.is_nil() => Ok(None),
            "r" | "read" => Ok(Some(Micro::Read(key, self.values.number(value)?))),
            "w" | "write" => Ok(Some(Micro::Write(key, self.values.number(value)?))),
            other => Err(format!("a transaction of registers has no {other}")),
        }
    }

    /// The reads and writes that a value says, with what was read if it `happened`.
    fn micros(&self, f: &str, value: &Datum) -> Result<Vec<Micro>, String> {
        let mut micros = Vec::new();
        match (f, value) {
            (_, Datum::Nil) => {}
            ("txn", Datum::List(all)) => {
                for micro in all {
                    let Some([Datum::Text(f), key, value]) = micro.as_list() else {
                        return Err(format!("{micro} is no [r key value] or [w key value]"));
                    };
                    micros.extend(self.micro(f, key, value)?);
                }
            }
            ("read" | "write", Datum::Map(entries)) => {
                for (key, value) in entries {
                    micros.extend(self.micro(f, key, value)?);
                }
            }
            _ => return Err(format!("{value} is nothing that a {f} of several registers can have")),
        }
        Ok(micros)
    }
}

impl Model for MultiRegister {
    type Op = Transaction;
    type State = Held;

    fn name(&self) -> &'static str {
        "multi-register"
    }

    fn initial(&self) -> Held {
        Arc::clone(&self.first)
    }

    fn apply(&self, state: &Held, op: &Transaction) -> Option<Held> {
        let mut next: Option<Vec<(u32, u32)>> = None;
        for &micro in op.iter() {
            match micro {
                Micro::Read(key, value) => {
                    if held(next.as_deref().unwrap_or(state.as_slice()), key) != Some(value) {
                        return None;
                    }
                }
                Micro::Write(key, value) => {
                    let next = next.get_or_insert_with(|| state.to_vec());
                    match next.binary_search_by_key(&key, |&(key, _)| key) {
                        Ok(at) => next[at].1 = value,
                        Err(at) => next.insert(at, (key, value)),
                    }
                }
            }
        }
        Some(next.map_or_else(|| Arc::clone(state), Arc::new))
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<Transaction>, String> {
        let f = &*invoked.f;
        if !matches!(f, "txn" | "read" | "write") {
            return Err(format!("several registers have no {f}"));
        }
        let asked = self.micros(f, &invoked.value)?;
        let micros = match completed.map(|completed| completed.kind) {
            Some(EventKind::Ok) => {
                let told = completed.map(|completed| self.micros(f, &completed.value)).transpose()?;
                told.filter(|told| !told.is_empty()).unwrap_or(asked)
            }
            Some(EventKind::Fail) => return Ok(None),
            // What an unanswered transaction read nobody knows.
            _ => asked.into_iter().filter(|micro| matches!(micro, Micro::Write(..))).collect(),
        };
        Ok((!micros.is_empty()).then(|| micros.into()))
    }

    fn part(&self, op: &Transaction) -> Option<u64> {
        let first = self.components.get(&op.first()?.key())?;
        Some(u64::from(*first))
    }

    fn changes(&self, op: &Transaction) -> bool {
        op.iter().any(|micro| matches!(micro, Micro::Write(..)))
    }

    fn tells(&self, op: &Transaction) -> bool {
        op.iter().any(|micro| matches!(micro, Micro::Read(..)))
    }

    fn same(&self, one: &Transaction, other: &Transaction) -> bool {
        one == other
    }

    fn held_bytes(&self, state: &Held) -> usize {
        state.len() * size_of::<(u32, u32)>() + 5 * size_of::<usize>()
    }

    fn elements(&self, op: &Transaction) -> Vec<u64> {
        op.iter().map(|micro| micro.key().into()).collect()
    }

    /// Registers do not know of each other: an order of the whole, with one register taken out of everything,
    /// is an order of the rest.
    fn without(&self, op: &Transaction, gone: &dyn Fn(u64) -> bool) -> Option<Transaction> {
        let rest: Vec<Micro> = op.iter().copied().filter(|micro| !gone(micro.key().into())).collect();
        (!rest.is_empty()).then(|| rest.into())
    }

    fn describe(&self, op: &Transaction) -> String {
        let told: Vec<String> = op
            .iter()
            .map(|&micro| match micro {
                Micro::Read(key, value) => {
                    format!("read {} → {}", self.keys.name(key), self.values.name(value))
                }
                Micro::Write(key, value) => {
                    format!("write {} = {}", self.keys.name(key), self.values.name(value))
                }
            })
            .collect();
        told.join(", ")
    }

    fn show(&self, state: &Held) -> Option<String> {
        let shown =
            state.iter().map(|&(key, value)| format!("{}: {}", self.keys.name(key), self.values.name(value)));
        Some(super::names::few(shown, ["{", "}"]))
    }

    fn part_name(&self, part: u64) -> Datum {
        u32::try_from(part).map_or(Datum::Nil, |part| self.keys.name(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::history::records;
    use crate::model::pair;
    use crate::search::judge;
    use crate::verdict::Verdict;

    fn verdict(lines: &[&str]) -> (Verdict, u64) {
        let text = lines.join("\n");
        let model = MultiRegister::default();
        let calls = pair(&model, records(text.as_bytes()).unwrap()).unwrap();
        let model = model.parted(&calls);
        let judged = judge(&model, &calls, &Budget::default(), 1, false).result;
        (judged.verdict, judged.evidence["parts"].as_u64().unwrap())
    }

    const WRITES: &str = "{:process 0 :type :invoke :f :txn :value [[:w :x 1] [:w :y 1]]}
{:process 0 :type :ok :f :txn :value [[:w :x 1] [:w :y 1]]}
{:process 1 :type :invoke :f :txn :value [[:write :x 2] [:write :y 2]]}";

    #[test]
    fn what_is_written_together_is_seen_together() {
        let read = |x: u32, y: u32| {
            format!(
                "{{:process 2 :type :invoke :f :txn :value [[:r :x nil] [:r :y nil]]}}
{{:process 2 :type :ok :f :txn :value [[:r :x {x}] [:r :y {y}]]}}"
            )
        };
        for (x, y, expected) in [
            (1, 1, Verdict::Valid),
            (2, 2, Verdict::Valid),
            (1, 2, Verdict::Invalid),
            (2, 1, Verdict::Invalid),
        ] {
            assert_eq!(verdict(&[WRITES, &read(x, y)]), (expected, 1), "{x} {y}");
        }
    }

    #[test]
    fn keys_that_nothing_touches_together_are_judged_apart() {
        let other = "{:process 3 :type :invoke :f :write :value {:z 1}}
{:process 3 :type :ok :f :write :value {:z 1}}
{:process 3 :type :invoke :f :read :value nil}\n{:process 3 :type :ok :f :read :value {:z 1}}";
        assert_eq!(verdict(&[WRITES, other]), (Verdict::Valid, 2));
        let stale = format!(
            "{other}\n{}",
            other.replace(":z 1", ":z 2").replace("read :value {:z 2}", "read :value {:z 1}")
        );
        assert_eq!(verdict(&[WRITES, &stale]), (Verdict::Invalid, 2));
    }

    #[test]
    fn what_was_there_before_is_told_by_who_read_it_in_time() {
        let read = |process: u32, x: u32| {
            format!(
                "{{:process {process} :type :invoke :f :txn :value [[:r :x nil]]}}
{{:process {process} :type :ok :f :txn :value [[:r :x {x}]]}}"
            )
        };
        let write = "{:process 0 :type :invoke :f :txn :value [[:w :x 1]]}
{:process 0 :type :ok :f :txn :value [[:w :x 1]]}";
        for (lines, expected) in [
            ([read(1, 5), read(2, 5), write.to_owned(), read(3, 1)], Verdict::Valid),
            ([read(1, 5), read(2, 6), write.to_owned(), read(3, 1)], Verdict::Invalid),
            ([read(1, 5), write.to_owned(), read(2, 1), read(3, 5)], Verdict::Invalid),
        ] {
            let text = lines.join("\n");
            let model = MultiRegister::default();
            let calls = pair(&model, records(text.as_bytes()).unwrap()).unwrap();
            let question = |first: Held| {
                let model = MultiRegister::default().parted(&calls).with_first(first);
                judge(&model, &calls, &Budget::default(), 1, false).result.verdict
            };
            let found = MultiRegister::beginnings(&calls).unwrap().into_iter().map(question).min();
            assert_eq!(found, Some(expected), "{text}");
        }
    }

    #[test]
    fn a_transaction_reads_what_it_wrote_and_an_unanswered_one_says_nothing_of_its_reads() {
        let own = "{:process 2 :type :invoke :f :txn :value [[:w :x 7] [:r :x nil]]}
{:process 2 :type :ok :f :txn :value [[:w :x 7] [:r :x 7]]}
{:process 3 :type :invoke :f :txn :value [[:r :x nil] [:w :x 8]]}
{:process 3 :type :info :f :txn :value [[:r :x 9] [:w :x 8]]}";
        assert_eq!(verdict(&[own]).0, Verdict::Valid);
        let never = own.replace("[:w :x 7] [:r :x 7]]", "[:w :x 7] [:r :x 6]]");
        assert_eq!(verdict(&[&never]).0, Verdict::Invalid);
    }
}
