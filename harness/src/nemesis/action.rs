//! A fault as a cluster carries it out: to whom, and what.

use node_wire::ids::ServerId;

use crate::cluster::Cut;
use crate::targets::Server;

/// What the cluster is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Let nothing pass in some directions.
    Cut(Cut),
    /// SIGKILL to these at once.
    Kill {
        /// Whom.
        members: Vec<ServerId>,
    },
    /// Have these end in order, and another kind of server take their place.
    Replace {
        /// Whom.
        members: Vec<ServerId>,
        /// What comes.
        by: Server,
    },
    /// SIGSTOP to these.
    Pause {
        /// Whom.
        members: Vec<ServerId>,
    },
    /// Shift the wall clocks of these.
    Clock {
        /// Whose.
        members: Vec<ServerId>,
        /// By how much, against the true one.
        offset_ns: i64,
    },
}
