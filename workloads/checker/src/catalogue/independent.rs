//! Independent keys: histories of many objects of a kind, whose values are pairs of a key and a value.
//!
//! `jepsen.independent` runs one test on many keys by making `[7 1]` of an element 1 that is added to set 7,
//! `[7 nil]` of a read of that set and `[7 #{1}]` of its answer. Nothing in the file says so. What does are
//! the invocations that have no argument of their own: a read is asked `nil` where there is one object, and
//! `[7 nil]` where there are many. A pair of two anything could be an element by itself, so it decides
//! nothing; where nothing else decides, the history is refused. So is one that is in part of one kind and in
//! part of the other, and one whose answers have another shape than what was asked for. Nothing is guessed:
//! a history that is read as something else is accused of what it did not do.
//!
//! Knossos writes into an invocation what its answer will be. That is taken where it is so.
//!
//! A field `key` says the same in so many words, in any format.

use std::collections::{HashMap, VecDeque};

use super::ModelName;
use crate::history::{Datum, EventKind, LoadError, Record};

/// The records of a history, behind one type, so that models and searches are compiled here and not by every
/// caller.
pub type Records<'r> = &'r mut dyn Iterator<Item = Result<Record, LoadError>>;

/// What an invocation says about keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// There is one object.
    Plain,
    /// It names the key of its object.
    Keyed,
    /// A pair that may be a value, or a key and a value.
    Either,
}

/// What a function of a model is asked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Argument {
    /// Nothing.
    Nothing,
    /// Nothing, or its answer: Knossos fills that in where there is one.
    Answer,
    /// Nothing, or a token that says which lock is given up.
    Token,
    /// A value that is no list.
    Scalar,
    /// Anything.
    Any,
    /// An element, or an element and room for the answer.
    Asked,
    /// Two values.
    Two,
    /// A list of micro-operations.
    Micros,
    /// Anything, and the model looks at it.
    Other,
}

fn argument(model: ModelName, f: &str) -> Argument {
    use Argument::{Answer, Any, Asked, Micros, Nothing, Other, Scalar, Token, Two};
    match (model, f) {
        (ModelName::CasRegister | ModelName::Register | ModelName::Set | ModelName::Counter, "read")
        | (ModelName::Queue, "dequeue")
        | (ModelName::Kv, "get") => Answer,
        (ModelName::Mutex, "acquire" | "lock") => Nothing,
        (ModelName::Mutex, "release" | "unlock") => Token,
        (ModelName::CasRegister | ModelName::Register, "write")
        | (ModelName::Counter, "add")
        | (ModelName::Kv, "put" | "append") => Scalar,
        (ModelName::CasRegister, "cas") => Two,
        (ModelName::Set, "add" | "remove" | "delete") | (ModelName::Queue, "enqueue") => Any,
        (ModelName::Set, "contains" | "exists") => Asked,
        (ModelName::MultiRegister | ModelName::ListAppend, "txn") => Micros,
        _ => Other,
    }
}

/// Whether keys of this model's objects stand in a field of their own.
fn has_keys(model: ModelName) -> bool {
    !matches!(model, ModelName::MultiRegister | ModelName::ListAppend | ModelName::Watch)
}

/// Whether keys of this model's objects may stand in its values.
fn may_have_keys(model: ModelName) -> bool {
    has_keys(model) || is_of_transactions(model)
}

fn is_of_transactions(model: ModelName) -> bool {
    matches!(model, ModelName::MultiRegister | ModelName::ListAppend)
}

/// Whether a datum is a list or a map.
fn is_composite(datum: &Datum) -> bool {
    matches!(datum, Datum::List(_) | Datum::Map(_))
}

/// The shape of a value that was asked with.
///
/// # Errors
/// Why the function can't have it.
fn shape(f: &str, argument: Argument, value: &Datum) -> Result<Shape, String> {
    let pair = value.as_list().and_then(|list| <&[Datum; 2]>::try_from(list).ok());
    Ok(match (argument, pair, value) {
        (Argument::Nothing | Argument::Answer | Argument::Token, Some([_, Datum::Nil]), _) => Shape::Keyed,
        (Argument::Token, Some([_, token]), _) if !is_composite(token) => Shape::Keyed,
        (Argument::Nothing | Argument::Answer | Argument::Token, _, Datum::Nil) => Shape::Plain,
        (Argument::Answer, Some(_), _) => Shape::Either,
        (Argument::Answer, ..) => Shape::Plain,
        (Argument::Token, None, value) if !is_composite(value) => Shape::Plain,
        (Argument::Nothing | Argument::Token, ..) => {
            return Err(asks_for_nothing(f, value));
        }
        (Argument::Any | Argument::Asked | Argument::Scalar, _, Datum::Nil) => {
            return Err(format!("a {f} needs a value, and this one has none"));
        }
        (Argument::Asked, Some([_, Datum::Nil | Datum::Bool(_)]), _) => Shape::Plain,
        (Argument::Any | Argument::Asked, Some(_), _) => Shape::Either,
        (Argument::Scalar, Some(_), _) => Shape::Keyed,
        (Argument::Two, Some([_, Datum::List(two)]), _) if two.len() == 2 => Shape::Keyed,
        (Argument::Micros, Some([key, Datum::List(_)]), _) if !is_composite(key) => Shape::Keyed,
        (Argument::Any | Argument::Asked | Argument::Scalar | Argument::Two, ..)
        | (Argument::Micros | Argument::Other, ..) => Shape::Plain,
    })
}

/// What is wrong with an operation that is asked with something and has no argument.
fn asks_for_nothing(f: &str, value: &Datum) -> String {
    format!(
        "a {f} is asked with nothing, or with [key nil], and this one has {value}; a key stands in the field \
         key"
    )
}

/// The key of an operation that is open.
enum Open {
    /// It stands in the value.
    InValue(Datum),
    /// It stands in its field.
    InField(Datum),
}

/// Records with their keys taken out of their values, where that is what they are.
pub(super) struct Independent<'r> {
    records: Records<'r>,
    model: ModelName,
    /// Those that were read before it was known what they are.
    waiting: VecDeque<Record>,
    /// Whether it is keyed, and the line that says so.
    decided: Option<(bool, u64)>,
    /// Whether keys stand in values.
    in_values: bool,
    open: HashMap<u64, Open>,
    /// What must be the answers of those that were asked with them.
    answers: HashMap<u64, Datum>,
    /// Whether a list or a map was put into the object, and on which line one was seen in it.
    composite_put: bool,
    composite_seen: Option<u64>,
    ended: bool,
}

fn malformed(line: u64, reason: String) -> LoadError {
    LoadError::Malformed { line, reason }
}

impl<'r> Independent<'r> {
    pub(super) fn new(model: ModelName, records: Records<'r>) -> Self {
        Self {
            records,
            model,
            waiting: VecDeque::new(),
            decided: None,
            in_values: false,
            open: HashMap::new(),
            answers: HashMap::new(),
            composite_put: false,
            composite_seen: None,
            ended: false,
        }
    }

    /// Reads until it is known whether these are independent objects under keys.
    ///
    /// # Errors
    /// A record that can't be read, or nothing tells.
    pub(super) fn is_keyed(&mut self) -> Result<bool, LoadError> {
        let mut either: Option<(u64, String)> = None;
        while self.decided.is_none() {
            let Some(record) = self.records.next() else { break };
            let record = record?;
            if record.kind == EventKind::Invoke {
                match self.shape_of(&record)? {
                    Shape::Either if either.is_none() => {
                        either = Some((record.line, format!("{} {}", record.f, record.value)));
                    }
                    Shape::Either => {}
                    decides => {
                        self.decided = Some((decides == Shape::Keyed, record.line));
                        self.in_values = decides == Shape::Keyed && !self.has_key(&record);
                    }
                }
            }
            self.waiting.push_back(record);
        }
        match (self.decided, either) {
            (Some((is_keyed, _)), _) => Ok(is_keyed),
            (None, None) => Ok(false),
            (None, Some((line, what))) => Err(malformed(
                line,
                format!(
                    "{what} may be of a pair, or of a key and a value, and nothing in this history tells; \
                     write keys into the field key"
                ),
            )),
        }
    }

    /// Whether the history of each key is one of its own. What a transaction touches belongs to its key. One
    /// order of all keys is a promise of the whole, and whoever writes a key into each value tests each by
    /// itself, as `jepsen.independent` does: that decides where an order is asked for. Linearizability is
    /// the same either way. The keys of a store are one object.
    pub(super) fn are_judged_apart(&self, is_of_order: bool) -> bool {
        self.in_values && (is_of_transactions(self.model) || is_of_order && self.model != ModelName::Kv)
    }

    /// Whether its key stands in a field.
    fn has_key(&self, record: &Record) -> bool {
        has_keys(self.model) && !record.key.is_nil()
    }

    fn shape_of(&self, record: &Record) -> Result<Shape, LoadError> {
        let argument = argument(self.model, &record.f);
        let shape =
            shape(&record.f, argument, &record.value).map_err(|reason| malformed(record.line, reason))?;
        match (self.has_key(record), shape) {
            (true, Shape::Keyed) => {
                let reason = format!("{} {}: its key stands in a field already", record.f, record.value);
                Err(malformed(record.line, reason))
            }
            (true, _) => Ok(Shape::Keyed),
            (false, shape) => Ok(shape),
        }
    }

    fn invoked(&mut self, record: &mut Record) -> Result<(), LoadError> {
        let shape = self.shape_of(record)?;
        // A function that another model has says nothing here, and its model refuses it.
        let Some((is_keyed, since)) = self.decided else { return Ok(()) };
        if !may_have_keys(self.model) {
            return Ok(());
        }
        match (is_keyed, shape) {
            (true, Shape::Plain) | (false, Shape::Keyed) => {
                let (this, that) = if is_keyed { ("no", "a") } else { ("a", "no") };
                let reason = format!(
                    "{} {} has {this} key, and what is asked on line {since} has {that} key: what belongs \
                     together can't be told",
                    record.f, record.value
                );
                return Err(malformed(record.line, reason));
            }
            (false, _) => {}
            (true, _) if self.has_key(record) => {
                self.open.insert(record.process, Open::InField(record.key.clone()));
            }
            (true, _) => {
                let value = std::mem::take(&mut record.value);
                let Datum::List(pair) = value else { return Ok(()) };
                let [key, value] = <[Datum; 2]>::try_from(pair).unwrap_or_default();
                if key.is_nil() {
                    return Err(malformed(record.line, format!("a {} of no key", record.f)));
                }
                // Without its key it must be something that can be asked.
                self::shape(&record.f, argument(self.model, &record.f), &value)
                    .map_err(|reason| malformed(record.line, reason))?;
                self.open.insert(record.process, Open::InValue(key.clone()));
                (record.key, record.value) = (key, value);
            }
        }
        if argument(self.model, &record.f) == Argument::Answer && !record.value.is_nil() {
            self.answers.insert(record.process, record.value.clone());
        }
        Ok(())
    }

    fn completed(&mut self, record: &mut Record) -> Result<(), LoadError> {
        let other = |key: &Datum, told: &Datum| {
            let reason = format!("a {} of key {key} completes with {told}, which is of another", record.f);
            malformed(record.line, reason)
        };
        match self.open.remove(&record.process) {
            None => {}
            Some(Open::InField(key)) => {
                if !record.key.is_nil() && record.key != key {
                    return Err(other(&key, &record.key));
                }
                record.key = key;
            }
            Some(Open::InValue(key)) => {
                let value = match std::mem::take(&mut record.value) {
                    Datum::List(pair) if pair.len() == 2 && pair[0] == key => {
                        pair.into_iter().next_back().unwrap_or_default()
                    }
                    // A change need not repeat what was asked.
                    Datum::Nil => Datum::Nil,
                    told if record.kind == EventKind::Ok => return Err(other(&key, &told)),
                    _ => Datum::Nil,
                };
                (record.key, record.value) = (key, value);
            }
        }
        match self.answers.remove(&record.process) {
            Some(asked) if record.kind != EventKind::Ok || record.value != asked => {
                Err(malformed(record.line, asks_for_nothing(&record.f, &asked)))
            }
            _ => Ok(()),
        }
    }

    /// Remembers whether lists and maps are put into the object, and seen in it.
    fn look(&mut self, record: &Record) {
        let seen = match (self.model, &*record.f, record.kind) {
            (ModelName::Set, "add", EventKind::Invoke) | (ModelName::Queue, "enqueue", EventKind::Invoke) => {
                self.composite_put |= is_composite(&record.value);
                false
            }
            (ModelName::Set, "read", EventKind::Ok) => {
                record.value.as_list().is_some_and(|all| all.iter().any(is_composite))
            }
            (ModelName::Queue, "dequeue", EventKind::Ok) => is_composite(&record.value),
            (ModelName::CasRegister | ModelName::Register, "read", EventKind::Ok) => {
                is_composite(&record.value)
            }
            _ => false,
        };
        if seen && self.composite_seen.is_none() {
            self.composite_seen = Some(record.line);
        }
    }

    fn take(&mut self, mut record: Record) -> Result<Record, LoadError> {
        match record.kind {
            EventKind::Invoke => self.invoked(&mut record)?,
            _ => self.completed(&mut record)?,
        }
        self.look(&record);
        Ok(record)
    }

    /// Nothing more comes: whether what was seen can have been put there.
    fn end(&mut self) -> Option<LoadError> {
        let seen = self.composite_seen.take().filter(|_| !self.composite_put)?;
        let reason = format!(
            "what was read has a list or a map in it, and none was ever put into a {}: its values have \
             another shape than this model knows",
            self.model
        );
        Some(malformed(seen, reason))
    }
}

impl Iterator for Independent<'_> {
    type Item = Result<Record, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = match self.waiting.pop_front() {
            Some(record) => Some(Ok(record)),
            None => self.records.next(),
        };
        let taken = match next {
            Some(record) => Some(record.and_then(|record| self.take(record))),
            None => self.end().map(Err),
        };
        self.ended = !matches!(taken, Some(Ok(_)));
        taken
    }
}
