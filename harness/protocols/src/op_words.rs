//! Operations of clients, as scripts and pictures name them.

use workloads::Op;
use workloads::op::{Body, Object};

/// An operation, as scripts name it.
pub(crate) fn op_in_words(op: &Op) -> String {
    match &op.body {
        Body::MakeRegister { value } => format!("make {} {value}", op.key),
        Body::Write { value } => format!("write {} {value}", op.key),
        Body::Cas { from, to, basis: None } => format!("cas {} {from} {to}", op.key),
        Body::Cas { from, to, basis: Some(version) } => format!("cas {} {from} {to} {version}", op.key),
        Body::Read => format!("read {}", op.key),
        _ => format!("{} {}", op.function(), op.key),
    }
}

/// The operation of these words.
///
/// # Errors
/// What it should be.
pub(crate) fn op(words: &str) -> Result<Op, String> {
    let wrong = || {
        format!(
            "{words}: an operation is `write KEY VALUE`, `make KEY VALUE`, `read KEY`, or `cas KEY FROM TO`, \
             with a version behind it where one was shown"
        )
    };
    let mut words = words.split_whitespace();
    let name = words.next().unwrap_or_default();
    let numbers: Option<Vec<i64>> = words.map(|word| word.parse().ok()).collect();
    let numbers = numbers.ok_or_else(wrong)?;
    let body = match (name, numbers.as_slice()) {
        ("make", [_, value]) => Body::MakeRegister { value: *value },
        ("write", [_, value]) => Body::Write { value: *value },
        ("read", [_]) => Body::Read,
        ("cas", [_, from, to]) => Body::Cas { from: *from, to: *to, basis: None },
        ("cas", [_, from, to, version]) => Body::Cas { from: *from, to: *to, basis: Some(*version) },
        _ => return Err(wrong()),
    };
    let key = u64::try_from(numbers[0]).map_err(|_| wrong())?;
    Ok(Op::new(Object::REGISTER, key, body))
}
