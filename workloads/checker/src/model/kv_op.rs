//! The operations of a map of texts, with their answers.
//!
//! The model applies them, and [`super::read_texts`] looks through them for what is read.

use std::sync::Arc;

use super::text::Text;

/// What can be done with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvOp {
    /// The number of the key.
    pub key: u32,
    /// What is done with it.
    pub action: KvAction,
}

/// What can be done with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KvAction {
    /// This is what it was.
    Get(Text),
    /// It is this from here on.
    Put(Text),
    /// This comes at its end.
    Append(Arc<str>),
}
