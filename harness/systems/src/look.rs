//! What a member shows when it is asked from outside.

use std::fmt;

use runs::member::MemberId;

use crate::Async;

/// Whom a member follows, by its own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// It leads.
    Itself,
    /// This one.
    Member(MemberId),
    /// It follows and does not say whom.
    Unsaid,
}

/// What a member says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Whom it follows.
    pub whom: Whom,
    /// The epoch that it shows. Where it does not say whom it follows, this may still be the epoch before.
    pub epoch: u32,
}

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It answers as a member of a standing epoch.
    Serves(Role),
    /// It answers that it serves nobody, or refuses.
    ServesNobody,
    /// Nothing, in time.
    Nothing,
}

/// Asks one member, again and again.
pub trait Look: Send {
    /// Asks now.
    fn look(&mut self) -> Async<'_, Seen>;
}

/// What a member's client port does when it is asked anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// It answers.
    Answers,
    /// It accepts, or not even that, and says nothing.
    Silent,
    /// The connection is refused.
    Refuses,
}

impl fmt::Display for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answers => "answers",
            Self::Silent => "is silent",
            Self::Refuses => "refuses",
        })
    }
}
