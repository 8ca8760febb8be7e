//! What is asked of a tree of znodes, and what is answered.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::history::Datum;

/// The path of a znode, or for a sequential create the beginning of one.
#[derive(Clone, PartialEq, Eq)]
pub struct Path {
    text: Arc<str>,
    /// Where the name begins; 0 for the root alone.
    name: usize,
}

impl Path {
    /// Whatever follows the last slash is the name. None without a slash in front.
    #[must_use]
    pub fn new(text: Arc<str>) -> Option<Self> {
        if !text.starts_with('/') {
            return None;
        }
        let name = if text.len() == 1 { 0 } else { text.rfind('/')? + 1 };
        Some(Self { text, name })
    }

    /// What precedes the number of a sequential znode: it may end in a slash, and then the number is the
    /// name.
    #[must_use]
    pub fn prefix(text: Arc<str>) -> Option<Self> {
        let name = text.starts_with('/').then(|| text.rfind('/'))?? + 1;
        Some(Self { text, name })
    }

    /// The whole of it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path of the parent; empty for the root.
    #[must_use]
    pub fn parent(&self) -> &str {
        match self.name {
            0 => "",
            1 => "/",
            name => &self.text[..name - 1],
        }
    }

    /// The name in the parent; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.name == 0 { "" } else { &self.text[self.name..] }
    }

    /// The path with the number that a parent gives: ten digits at least, of what its counter holds.
    #[must_use]
    pub fn numbered(&self, counter: i32) -> Self {
        Self { text: format!("{}{counter:010}", self.text).into(), name: self.name }
    }
}

/// Siblings are neighbours: by parent first.
impl Ord for Path {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.parent(), self.name()).cmp(&(other.parent(), other.name()))
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Path {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One step: an operation of its own, or one of a multi.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make a znode.
    Create {
        /// Its path, or what precedes its number.
        path: Path,
        /// What it holds.
        data: Datum,
        /// Whether it ends with the session.
        ephemeral: bool,
        /// Whether the parent's counter is appended.
        sequential: bool,
    },
    /// Remove a znode.
    Delete {
        /// Its path.
        path: Path,
        /// The version that it must have, or [`ANY`].
        version: i32,
    },
    /// Replace the data.
    Set {
        /// The path.
        path: Path,
        /// What it holds from now on.
        data: Datum,
        /// The version that it must have, or [`ANY`].
        version: i32,
    },
    /// Demand a version.
    Check {
        /// The path.
        path: Path,
        /// The version that it must have, or [`ANY`].
        version: i32,
    },
    /// Read data and Stat.
    Get(Path),
    /// Read the Stat.
    Exists(Path),
    /// Read the children's names and the Stat.
    Children(Path),
}

/// Any version will do.
pub const ANY: i32 = -1;

impl Step {
    /// What it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Create { path, .. }
            | Self::Delete { path, .. }
            | Self::Set { path, .. }
            | Self::Check { path, .. }
            | Self::Get(path)
            | Self::Exists(path)
            | Self::Children(path) => path,
        }
    }

    /// Whether it asks for a change.
    #[must_use]
    pub fn changes(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Delete { .. } | Self::Set { .. })
    }
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// One step.
    One(Step),
    /// Steps that happen all at once or not at all.
    Multi(Box<[Step]>),
    /// The end of the session, closed or expired.
    End,
}

impl Ask {
    /// Its steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        match self {
            Self::One(step) => std::slice::from_ref(step),
            Self::Multi(steps) => steps,
            Self::End => &[],
        }
    }

    /// Whether it asks for a change.
    #[must_use]
    pub fn changes(&self) -> bool {
        *self == Self::End || self.steps().iter().any(Step::changes)
    }

    /// Whether it goes through the leader and takes its place among the updates, changing something or not.
    #[must_use]
    pub fn is_update(&self) -> bool {
        !matches!(self, Self::One(Step::Get(_) | Step::Exists(_) | Step::Children(_)))
    }
}

/// A refusal that tells something about the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The znode, or the parent of the one to be made, is not there.
    NoNode,
    /// The znode to be made is there.
    NodeExists,
    /// It has another version.
    BadVersion,
    /// It has children.
    NotEmpty,
    /// Its parent is ephemeral.
    NoChildrenForEphemerals,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::NoNode, Self::NodeExists, Self::BadVersion, Self::NotEmpty, Self::NoChildrenForEphemerals];

    /// As lines name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoNode => "no-node",
            Self::NodeExists => "node-exists",
            Self::BadVersion => "bad-version",
            Self::NotEmpty => "not-empty",
            Self::NoChildrenForEphemerals => "no-children-for-ephemerals",
        }
    }

    /// The refusal of that name, with hyphens or without, whatever the case: `no-node`, `NoNode`, `NONODE`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let letters = |text: &str| -> String {
            text.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
        };
        let wanted = letters(name);
        Self::ALL.into_iter().find(|refusal| letters(refusal.as_str()) == wanted)
    }
}

/// What a Stat said, as far as it was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The zxid of the create.
    pub czxid: Option<u64>,
    /// The zxid of the last change of the data.
    pub mzxid: Option<u64>,
    /// The zxid of the last change of the children.
    pub pzxid: Option<u64>,
    /// How often the data was replaced.
    pub version: Option<i32>,
    /// How often the children changed.
    pub cversion: Option<i32>,
    /// How often the access list was replaced.
    pub aversion: Option<i32>,
    /// The session that it ends with, or 0.
    pub ephemeral_owner: Option<u64>,
    /// Bytes of data.
    pub data_length: Option<i64>,
    /// How many children it has.
    pub num_children: Option<i64>,
}

/// What a step was answered, as far as it was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The path that a create made.
    pub path: Option<Arc<str>>,
    /// The data read.
    pub data: Option<Datum>,
    /// The names of the children read, sorted.
    pub children: Option<Box<[Arc<str>]>>,
    /// The Stat.
    pub stat: Option<Box<Stat>>,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It happened. What each step showed; a list that is too short has nothing to say about the others.
    Done(Box<[Shown]>),
    /// It was refused, at this step if that is known.
    Refused {
        /// Which step of a multi.
        at: Option<usize>,
        /// Why.
        why: Refusal,
    },
}

/// One operation on the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The session that asked, where the line names it.
    pub session: Option<u64>,
    /// What was asked.
    pub ask: Ask,
    /// What was answered; none when nobody knows.
    pub answer: Option<Answer>,
    /// The zxid in the reply's header. Only the [witness](super::witness) looks at it.
    pub zxid: Option<u64>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |version: i32| if version == ANY { String::new() } else { format!(" at version {version}") };
        match self {
            Self::Create { path, data, ephemeral, sequential } => {
                let kind = match (ephemeral, sequential) {
                    (false, false) => "",
                    (true, false) => "ephemeral ",
                    (false, true) => "sequential ",
                    (true, true) => "ephemeral sequential ",
                };
                write!(f, "create {kind}{path:?}")?;
                if data.is_nil() { Ok(()) } else { write!(f, " = {data}") }
            }
            Self::Delete { path, version } => write!(f, "delete {path:?}{}", at(*version)),
            Self::Set { path, data, version } => write!(f, "set {path:?} = {data}{}", at(*version)),
            Self::Check { path, version } => write!(f, "check {path:?}{}", at(*version)),
            Self::Get(path) => write!(f, "get {path:?}"),
            Self::Exists(path) => write!(f, "exists {path:?}"),
            Self::Children(path) => write!(f, "children {path:?}"),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.path.as_deref().map(ToOwned::to_owned));
        parts.extend(self.data.as_ref().map(ToString::to_string));
        parts.extend(self.children.as_ref().map(|names| format!("[{}]", names.join(" "))));
        parts.extend(
            self.stat.as_ref().and_then(|stat| stat.version).map(|version| format!("version {version}")),
        );
        f.write_str(&parts.join(", "))
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ask {
            Ask::One(step) => write!(f, "{step}")?,
            Ask::Multi(steps) => {
                let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
                write!(f, "multi {{{}}}", steps.join("; "))?;
            }
            Ask::End => write!(f, "end of session {:#x}", self.session.unwrap_or(0))?,
        }
        match &self.answer {
            Some(Answer::Refused { at: Some(at), why }) => {
                write!(f, " → {} at step {}", why.as_str(), at + 1)
            }
            Some(Answer::Refused { at: None, why }) => write!(f, " → {}", why.as_str()),
            Some(Answer::Done(shown)) => {
                let shown: Vec<String> =
                    shown.iter().map(ToString::to_string).filter(|s| !s.is_empty()).collect();
                if shown.is_empty() { Ok(()) } else { write!(f, " → {}", shown.join("; ")) }
            }
            None => Ok(()),
        }
    }
}
