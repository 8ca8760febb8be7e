//! The four-letter words: questions in plain text on the client port.
//!
//! The formats are ZooKeeper's, because monitoring reads them. `mntr` has keys of our own at its end: the
//! last applied zxid and the digest of the tree, by which an outsider can see whether members agree.
//!
//! Which words there are, and which of them are answered, stands in [`whitelist`](crate::whitelist).

mod answers;
mod report;

pub(crate) use answers::{answer, environment, expiries, mode, zab_state};

use crate::view::Want;
use crate::whitelist::Word;

/// The protocol's version that is spoken, then our own. Clients parse the first part.
pub(crate) const VERSION: &str = concat!("3.8.0-node-", env!("CARGO_PKG_VERSION"));

impl Word {
    /// What its answer is made of.
    pub(crate) fn wants(self) -> Want {
        let nothing = Want::default();
        match self {
            Self::Cons | Self::Stat => Want { connections: true, ..nothing },
            Self::Crst => Want { reset_connections: true, ..nothing },
            Self::Dump => Want { tree: true, deadlines: true, ..nothing },
            Self::Hash => Want { digests: true, ..nothing },
            Self::Srst => Want { reset_server: true, ..nothing },
            Self::Wchc | Self::Wchp | Self::Wchs => Want { watches: true, ..nothing },
            Self::Mntr => Want { quotas: true, ..nothing },
            Self::Conf
            | Self::Dirs
            | Self::Envi
            | Self::Gtmk
            | Self::Isro
            | Self::Ruok
            | Self::Srvr
            | Self::Stmk => nothing,
        }
    }
}

#[cfg(test)]
mod tests;
