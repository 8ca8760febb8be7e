//! The four-letter words by name, and which of them the operator allows.
//!
//! Words are answered before anybody says who he is. Without a whitelist only those are that read cheaply and
//! tell nothing of anybody's data; `wchc`, `wchp` and `dump` can be as long as the tree has watches and
//! ephemerals.

use std::collections::BTreeSet;

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
}

/// The words that the operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whitelist {
    allowed: BTreeSet<Word>,
}

impl Whitelist {
    /// From the key `4lw.commands.whitelist`, or whatever its name is to the operator; without it everything
    /// that only reads cheaply is allowed, which is more than ZooKeeper's `srvr`.
    ///
    /// # Errors
    /// When something in the list is not four letters long. A word that has no answer here is let pass: the
    /// list may be shared with members that know it.
    ///
    /// Whatever the list says, `srvr` is answered, which ZooKeeper's own scripts ask, and of a member in
    /// read-only mode `isro`, by which clients find one that takes writes.
    pub fn new(listed: Option<&[String]>, name_of_list: &str, read_only_mode: bool) -> Result<Self, String> {
        let Some(listed) = listed else { return Ok(Self { allowed: Word::USUAL.into() }) };
        let mut allowed = BTreeSet::from([Word::Srvr]);
        allowed.extend(read_only_mode.then_some(Word::Isro));
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
mod tests {
    use super::*;

    fn listed(names: &[&str]) -> Result<Whitelist, String> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        Whitelist::new(Some(&names), "the list", false)
    }

    #[test]
    fn only_lower_case_letters_are_a_word() {
        let words = Whitelist::new(None, "the list", false).expect("the default");
        assert_eq!(words.question(*b"ruok"), Question::Ask(Word::Ruok));
        assert_eq!(words.question([0, 0, 0, 45]), Question::NotAWord);
        assert_eq!(words.question(*b"GET "), Question::NotAWord);
        assert!(matches!(words.question(*b"kill"), Question::Refuse(_)));
    }

    #[test]
    fn the_whitelist_decides_and_without_one_only_what_reads_cheaply_is_answered() {
        let words = listed(&["srvr", "dump", "what"]).expect("words");
        assert_eq!(words.question(*b"srvr"), Question::Ask(Word::Srvr));
        assert_eq!(words.question(*b"dump"), Question::Ask(Word::Dump));
        assert!(matches!(words.question(*b"ruok"), Question::Refuse(_)));
        let all = listed(&["*"]).expect("words");
        let usual = Whitelist::new(None, "the list", false).expect("the default");
        let answered = |list: &Whitelist| -> Vec<&str> {
            let asked = Word::ALL.iter().filter(|word| {
                let name = word.name().as_bytes().first_chunk::<4>().expect("four letters");
                list.question(*name) == Question::Ask(**word)
            });
            asked.map(|word| word.name()).collect()
        };
        assert_eq!(answered(&usual), ["isro", "mntr", "ruok", "srvr", "stat"]);
        assert_eq!(
            answered(&all).join(" "),
            "conf cons crst dirs dump envi gtmk hash isro mntr ruok srst srvr stat stmk wchc wchp wchs"
        );
        assert!(listed(&["server"]).is_err());
        let stat = ["stat".to_owned()];
        let read_only = Whitelist::new(Some(&stat), "the list", true).expect("words");
        assert_eq!(answered(&read_only), ["isro", "srvr", "stat"]);
        assert_eq!(answered(&listed(&["stat"]).expect("words")), ["srvr", "stat"]);
    }
}
