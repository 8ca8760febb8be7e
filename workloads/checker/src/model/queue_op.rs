//! The operations of a queue, with their answers.
//!
//! The model applies them, and [`super::queue_order`] sorts them without a search.

/// What can be done with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueOp {
    /// The value is its last from here on.
    Enqueue(u32),
    /// The value was its first and is in it no more.
    Dequeue(u32),
    /// There was none.
    Empty,
    /// Its first, if there was one, is in it no more; nobody knows what it was.
    Take,
}
