//! The names of pieces.

use std::collections::BTreeSet;

use bytestring::ByteString;
use node_wire::client::validate_path;

/// The pieces that are shared, by their names: a set, so their order does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pieces(Vec<ByteString>);

/// Why names are no pieces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BadPieces {
    /// This can't be the name of a znode: it is empty, has a slash or a control character, or is `.` or `..`.
    NoName(ByteString),
    /// This name is there twice.
    Twice(ByteString),
}

impl std::fmt::Display for BadPieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoName(name) => write!(f, "no znode can have the name of this piece: {name:?}"),
            Self::Twice(name) => write!(f, "two pieces have the same name: {name:?}"),
        }
    }
}

impl std::error::Error for BadPieces {}

impl Pieces {
    /// Pieces by these names.
    pub fn new<N: Into<ByteString>>(names: impl IntoIterator<Item = N>) -> Result<Self, BadPieces> {
        let mut pieces = BTreeSet::new();
        for name in names {
            let name = name.into();
            if name.is_empty() || name.contains('/') || validate_path(&format!("/{name}")).is_err() {
                return Err(BadPieces::NoName(name));
            }
            if !pieces.insert(name.clone()) {
                return Err(BadPieces::Twice(name));
            }
        }
        Ok(Self(pieces.into_iter().collect()))
    }

    /// The names, sorted.
    #[must_use]
    pub fn names(&self) -> &[ByteString] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_znodes_and_each_is_there_once() {
        assert_eq!(Pieces::new(["b", "a"]).unwrap().names(), ["a", "b"]);
        assert_eq!(Pieces::new(["b", "a"]), Pieces::new(["a", "b"]));
        assert_eq!(Pieces::new(["a", "b", "a"]), Err(BadPieces::Twice("a".into())));
        for wrong in ["", "a/b", "/", ".", "..", "a\0"] {
            assert_eq!(Pieces::new(["a", wrong]), Err(BadPieces::NoName(wrong.into())));
        }
        let text = BadPieces::NoName("a/b".into()).to_string();
        assert_eq!(text, "no znode can have the name of this piece: \"a/b\"");
    }
}
