//! The four-letter words: questions in plain text on the client port.
//!
//! The formats are ZooKeeper's, because monitoring reads them. `mntr` has keys of our own at its end: the last
//! applied zxid and the digest of the tree, by which an outsider can see whether members agree.
//!
//! Words are answered before anybody says who he is. Without a whitelist only those are that read cheaply and
//! tell nothing of anybody's data; `wchc`, `wchp` and `dump` can be as long as the tree has watches and ephemerals.

mod answers;
mod report;

use std::collections::BTreeSet;

pub(crate) use answers::{answer, environment, expiries, mode, zab_state};

use crate::view::Want;

/// The protocol's version that is spoken, then our own. Clients parse the first part.
pub(crate) const VERSION: &str = concat!("3.8.0-node-", env!("CARGO_PKG_VERSION"));

/// Declares the words and their spelling.
macro_rules! words {
    ($($(#[$meta:meta])* $word:ident = $name:literal,)*) => {
        /// Every word that has an answer here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Word {
            $($(#[$meta])* $word,)*
        }

        impl Word {
            const ALL: &[Self] = &[$(Self::$word,)*];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$word => $name,)*
                }
            }
        }
    };
}

words! {
    /// The configuration.
    Conf = "conf",
    /// Every connection.
    Cons = "cons",
    /// Forget the connections' statistics.
    Crst = "crst",
    /// Bytes on disk.
    Dirs = "dirs",
    /// Sessions and ephemerals.
    Dump = "dump",
    /// The environment.
    Envi = "envi",
    /// The trace mask.
    Gtmk = "gtmk",
    /// Digests of the tree.
    Hash = "hash",
    /// Whether it serves only reads.
    Isro = "isro",
    /// Numbers for monitoring.
    Mntr = "mntr",
    /// Whether the process lives.
    Ruok = "ruok",
    /// Forget the server's statistics.
    Srst = "srst",
    /// A summary of the server.
    Srvr = "srvr",
    /// The same, and the connections in short.
    Stat = "stat",
    /// Set the trace mask.
    Stmk = "stmk",
    /// Watches by session.
    Wchc = "wchc",
    /// Watches by path.
    Wchp = "wchp",
    /// How many watches.
    Wchs = "wchs",
}

impl Word {
    /// Those that are allowed when nobody says which.
    const USUAL: [Self; 5] = [Self::Ruok, Self::Srvr, Self::Stat, Self::Mntr, Self::Isro];

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|word| word.name() == name)
    }

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

/// The words that the operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whitelist {
    allowed: BTreeSet<Word>,
}

impl Whitelist {
    /// From the key `4lw.commands.whitelist`, or whatever its name is to the operator; without it everything that
    /// only reads cheaply is allowed, which is more than ZooKeeper's `srvr`.
    ///
    /// # Errors
    /// When something in the list is not four letters long. A word that has no answer here is let pass: the
    /// list may be shared with members that know it.
    pub fn new(listed: Option<&[String]>, name_of_list: &str) -> Result<Self, String> {
        let Some(listed) = listed else { return Ok(Self { allowed: Word::USUAL.into() }) };
        let mut allowed = BTreeSet::new();
        for name in listed {
            if name == "*" {
                allowed.extend(Word::ALL);
            } else if name.len() != 4 || !name.bytes().all(|byte| byte.is_ascii_lowercase()) {
                return Err(format!("`{name}` in {name_of_list}: list words of four letters"));
            } else {
                allowed.extend(Word::from_name(name));
            }
        }
        Ok(Self { allowed })
    }

    /// What the first four bytes of a connection ask, when they are letters.
    pub(crate) fn question(&self, first: [u8; 4]) -> Question {
        if !first.iter().all(u8::is_ascii_lowercase) {
            return Question::NotAWord;
        }
        let name = String::from_utf8_lossy(&first).into_owned();
        match Word::from_name(&name) {
            Some(word) if self.allowed.contains(&word) => Question::Ask(word),
            _ => Question::Refuse(format!("{name} is not executed because it is not in the whitelist.\n")),
        }
    }
}

/// What a connection begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The length of a frame, most likely.
    NotAWord,
    /// A word to answer.
    Ask(Word),
    /// A word with the reason why not.
    Refuse(String),
}

#[cfg(test)]
mod tests;
