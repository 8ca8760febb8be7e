//! What a client asks for, in words.
//!
//! A place is a letter and a number: `r0` is a register, `s0` a set, `l0` a list, `q0` a place of numbered
//! nodes, `e0` one of ephemeral nodes.

use std::fmt;
use std::sync::Arc;

use workloads::Kind;
use workloads::op::{Body, Object, Op};
use workloads::sequential::is_persistent;

use crate::prober::{self, Probe};
use crate::traffic::MIXED;
use crate::watcher::Ask;

/// Something that a client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientAction {
    /// An operation of a workload.
    Operation(Kind, Box<Op>),
    /// The end of the session, when all is over for the client.
    Goodbye,
    /// What a watcher does.
    Ask(Ask),
    /// What a prober asks at once.
    Probe(Vec<Probe>),
}

/// The largest key that a script may name.
const MAX_KEY: u64 = 9_999;

/// The letter of a workload's places: that of its nodes.
fn letter(kind: Kind) -> char {
    zookeeper_mapping::letter(kind.object())
}

impl fmt::Display for ClientAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, op) = match self {
            Self::Operation(kind, op) => (kind, op),
            Self::Goodbye => return f.write_str("goodbye"),
            Self::Ask(ask) => return write!(f, "watcher {ask}"),
            Self::Probe(batch) => return write!(f, "prober {}", prober::show(batch)),
        };
        let place = Place { kind: *kind, key: op.key };
        match &op.body {
            Body::Read => write!(f, "read {place}"),
            Body::MakePlace => write!(f, "create {place}"),
            Body::MakeRegister { value: name } | Body::Next { name, .. } | Body::Create { name } => {
                write!(f, "create {place} {name}")
            }
            Body::Write { value } => write!(f, "write {place} {value}"),
            Body::Cas { from, to, .. } => write!(f, "cas {place} {from} to {to}"),
            Body::Add { element } => write!(f, "add {place} {element}"),
            Body::Append { element, onto, .. } => {
                write!(f, "append {place} {element}")?;
                match onto.last() {
                    Some(last) => write!(f, " behind {last}"),
                    None => f.write_str(" first"),
                }
            }
            Body::Delete { name, .. } => write!(f, "delete {place} {name}"),
            Body::Exists { name } => write!(f, "look {place} {name}"),
            Body::Open
            | Body::Close
            | Body::Abandon
            | Body::Acquire
            | Body::Store { .. }
            | Body::Release { .. }
            | Body::Enqueue { .. }
            | Body::Dequeue
            | Body::Acknowledge { .. }
            | Body::Enter { .. }
            | Body::Leave { .. }
            | Body::Txn { .. }
            | Body::Watch { .. }
            | Body::Said { .. } => write!(f, "{}", op.function()),
        }
    }
}

/// Where nodes of a workload are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    kind: Kind,
    key: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", letter(self.kind), self.key)
    }
}

impl Place {
    fn parse(word: &str, kinds: &[Kind]) -> Result<Self, String> {
        let place = || {
            let kind = kinds.iter().copied().find(|kind| word.starts_with(letter(*kind)))?;
            let key: u64 = word.get(1..)?.parse().ok()?;
            (key <= MAX_KEY).then_some(Self { kind, key })
        };
        let expected = || {
            let places: Vec<String> = kinds.iter().map(|kind| format!("{}0", letter(*kind))).collect();
            format!("a place as {}, up to number {MAX_KEY}", places.join(", "))
        };
        place().ok_or_else(expected)
    }

    fn action(self, body: Body) -> ClientAction {
        ClientAction::Operation(self.kind, Box::new(Op::new(self.kind.object(), self.key, body)))
    }
}

impl ClientAction {
    /// The action that these words describe. The version that it expects is the one that was shown with what
    /// it replaces, and the path of a node that got a number the one that it got.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        Ok(match words {
            ["goodbye"] => Self::Goodbye,
            ["watcher", ask @ ..] => Self::Ask(Ask::parse(ask)?),
            ["prober", batch @ ..] => Self::Probe(prober::parse(batch)?),
            ["close"] => Self::Operation(Kind::EPHEMERAL, Box::new(Op::close())),
            ["abandon"] => Self::Operation(Kind::EPHEMERAL, Box::new(Op::abandon())),
            ["read", place] => Place::parse(place, &MIXED)?.action(Body::Read),
            ["create", place] => {
                let kinds = [Kind::SET, Kind::APPEND, Kind::SEQUENTIAL, Kind::EPHEMERAL];
                Place::parse(place, &kinds)?.action(Body::MakePlace)
            }
            ["create", place, value] => {
                let place = Place::parse(place, &[Kind::REGISTER, Kind::SEQUENTIAL, Kind::EPHEMERAL])?;
                Self::creation(place, number(value)?)
            }
            ["write", place, value] => {
                Place::parse(place, &[Kind::REGISTER])?.action(Body::Write { value: number(value)? })
            }
            ["cas", place, from, "to", to] => {
                let (from, to) = (number(from)?, number(to)?);
                Place::parse(place, &[Kind::REGISTER])?.action(Body::Cas { from, to, basis: Some(0) })
            }
            ["add", place, value] => {
                Place::parse(place, &[Kind::SET])?.action(Body::Add { element: number(value)? })
            }
            ["append", place, value, "first"] => Self::appending(place, number(value)?, &[])?,
            ["append", place, value, "behind", last] => {
                Self::appending(place, number(value)?, &[number(last)?])?
            }
            ["delete", place, value] => {
                let name = number(value)?;
                Place::parse(place, &[Kind::SEQUENTIAL])?.action(Body::Delete { name, number: 0 })
            }
            ["look", place, value] => {
                Place::parse(place, &[Kind::EPHEMERAL])?.action(Body::Exists { name: number(value)? })
            }
            _ => {
                return Err(
                    "read rK, create rK N, write rK N, cas rK N to M, add sK N, append lK N behind M \
                            (or first), delete qK N, look eK N, close, abandon or goodbye"
                        .to_owned(),
                );
            }
        })
    }

    fn creation(place: Place, name: i64) -> Self {
        place.action(match place.kind.object() {
            Object::REGISTER => Body::MakeRegister { value: name },
            Object::NUMBERS => Body::Next { name, lasts: is_persistent(name) },
            _ => Body::Create { name },
        })
    }

    /// The end of the list must be enough; the rest of it is what was shown.
    fn appending(place: &str, element: i64, end: &[i64]) -> Result<Self, String> {
        let place = Place::parse(place, &[Kind::APPEND])?;
        Ok(place.action(Body::Append { element, onto: Arc::from(end), basis: Some(0) }))
    }
}

fn number(word: &str) -> Result<i64, String> {
    word.parse().map_err(|_| "a value".to_owned())
}

#[cfg(test)]
mod tests {
    use checker::history::Value;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use workloads::{Claims, Outcome, Params, Workload};

    use super::*;

    fn outcome(op: &Op) -> Outcome {
        let told = |value| Outcome {
            claims: Claims { version: Some(1), ..Claims::default() },
            ..Outcome::told(value, Some(1))
        };
        match (&op.body, op.object) {
            (Body::Next { name, .. }, _) => told(Value::Pair(Some(*name), 1)),
            (Body::Read, Object::LIST) => told(Value::List([7, 8].into())),
            (Body::Read, Object::REGISTER) => told(Value::One(7)),
            _ => told(op.value()),
        }
    }

    /// What a script does not say: it is known when the operation is asked for.
    fn without_memory(mut op: Op) -> Op {
        match &mut op.body {
            Body::Cas { basis, .. } => *basis = Some(0),
            Body::Append { onto, basis, .. } => {
                *basis = Some(0);
                *onto = onto.last().copied().into_iter().collect();
            }
            Body::Delete { number, .. } => *number = 0,
            _ => {}
        }
        op
    }

    #[test]
    fn every_operation_of_every_workload_is_read_as_it_is_written() {
        for kind in MIXED {
            let rng = ChaCha8Rng::seed_from_u64(7);
            let mut workload = Workload::new(kind, Params::of_keys(2), rng).expect("two keys");
            let mut asked = workload.setup();
            asked.extend(workload.final_reads());
            for _ in 0..600 {
                let next = workload.next_op(3);
                workload.complete(3, &next, &outcome(&next));
                asked.push(next);
            }
            for op in asked {
                let action = ClientAction::Operation(kind, Box::new(without_memory(op)));
                let text = action.to_string();
                let words: Vec<&str> = text.split(' ').collect();
                let ClientAction::Operation(read_as, read) =
                    ClientAction::parse(&words).expect("it can be read")
                else {
                    panic!("{text} is an operation");
                };
                let read = ClientAction::Operation(read_as, Box::new(without_memory(*read)));
                assert_eq!(read, action, "{text}");
            }
        }
    }
}
