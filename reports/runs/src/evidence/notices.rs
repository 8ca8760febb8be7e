//! What applications told beside their answers: by which session each works, and what each was told of the
//! line that it stands in.
//!
//! Where one holds at a time, each in the line watches the one ahead of it. So the end of a holder is told to
//! one application, and not to all: else each change costs as many looks at the line as there are in it (the
//! herd effect of ZooKeeper's recipes).

use serde::{Deserialize, Serialize};

use crate::clock::RunNs;

/// Notices that are kept at most. A run with more says how many more there were.
pub const MOST: usize = 500_000;

/// What applications told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notices {
    /// The sessions by which they worked, in the order in which each was first told of.
    pub sessions: Vec<SessionOf>,
    /// What they were told, in the order in which they told it.
    pub told: Vec<Notice>,
    /// How many more were told, and not kept.
    #[serde(default)]
    pub dropped: u64,
}

/// A session of an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOf {
    /// When the application first told of it.
    pub time: RunNs,
    /// The number of the application's process.
    pub application: u64,
    /// The session, in hexadecimal as members print it.
    pub session: String,
}

/// An event that an application was told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// When it was told.
    pub time: RunNs,
    /// The number of the application's process.
    pub application: u64,
    /// Of which lock.
    pub key: u64,
    /// Of what.
    pub of: End,
}

/// What ended or changed, as the one who watched it names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// One who stood in the line is gone, by the number of its place.
    Place(i64),
    /// The line as a whole changed.
    Line,
    /// Whoever held is gone. All who stand by watch the same znode there.
    Holder,
}

impl Notices {
    /// True if nothing was told.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.told.is_empty() && self.dropped == 0
    }

    /// An application works by this session.
    pub fn works_by(&mut self, time: RunNs, application: u64, session: &str) {
        let last = self.sessions.iter().rev().find(|known| known.application == application);
        if last.is_none_or(|known| known.session != session) {
            self.sessions.push(SessionOf { time, application, session: session.to_owned() });
        }
    }

    /// An application was told of something.
    pub fn note(&mut self, notice: Notice) {
        if self.told.len() < MOST {
            self.told.push(notice);
        } else {
            self.dropped += 1;
        }
    }

    /// The session by which an application worked at a moment, as far as it had told of it.
    #[must_use]
    pub fn session_of(&self, application: u64, at: RunNs) -> Option<&str> {
        let of = |known: &&SessionOf| known.application == application && known.time <= at;
        self.sessions.iter().filter(of).max_by_key(|known| known.time).map(|known| known.session.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_counts_until_the_next_one_is_told_of() {
        let mut notices = Notices::default();
        notices.works_by(10, 1, "0xa");
        notices.works_by(20, 2, "0xb");
        notices.works_by(30, 1, "0xa");
        notices.works_by(40, 1, "0xc");
        assert_eq!(notices.sessions.len(), 3);
        assert_eq!(notices.session_of(1, 5), None);
        assert_eq!(notices.session_of(1, 39), Some("0xa"));
        assert_eq!(notices.session_of(1, 40), Some("0xc"));
        assert_eq!(notices.session_of(2, 40), Some("0xb"));
    }

    #[test]
    fn notices_are_written_as_they_are_documented() {
        let notice = |of| Notice { time: 5, application: 1, key: 0, of };
        let line = |of| serde_json::to_string(&notice(of)).expect("json");
        assert_eq!(line(End::Place(7)), r#"{"time":5,"application":1,"key":0,"of":{"place":7}}"#);
        assert_eq!(line(End::Line), r#"{"time":5,"application":1,"key":0,"of":"line"}"#);
    }
}
