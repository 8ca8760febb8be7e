//! Faults of the user's own: commands that a system's file names, as a kind of fault like any other.
//!
//! The file says what is run to break a member, what undoes that, and what tells whether it is in force. The
//! catalogue of this crate ends where such a file begins, so these kinds are made when it is read, and are
//! there as long as the program runs. Nothing here knows the commands: who carries a fault out finds them by
//! the [`Own`] that stands in its action.
//!
//! Nobody knows what such a fault does to a member. So whoever it is aimed at is one that may serve nobody as
//! long as it is in force: a quorum is counted without it. It need not be one, either, so no leader is taken
//! for deposed. And no other fault ends or stops the process meanwhile, because the commands could no longer
//! be run beside it.

/// At whom a fault of the user's own is aimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whom {
    /// Any member.
    #[default]
    One,
    /// The one that leads.
    Leader,
    /// All that do not lead.
    Followers,
    /// Everybody.
    All,
}

impl Whom {
    /// Every choice.
    pub const ALL: [Self; 4] = [Self::One, Self::Leader, Self::Followers, Self::All];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Leader => "leader",
            Self::Followers => "followers",
            Self::All => "all",
        }
    }

    /// The choice that is written so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|whom| whom.name() == name)
    }
}

/// What there is to know of one.
#[derive(Debug, PartialEq, Eq)]
struct Described {
    name: String,
    about: String,
    whom: Whom,
    lasts: bool,
}

/// A kind of fault of the user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own(&'static Described);

impl Own {
    /// The kind of that name, kept for as long as the program runs. `about` says what it does, in a line;
    /// `lasts` says whether it is in force until something undoes it, or is done with when it was done.
    #[must_use]
    pub fn new(name: &str, about: String, whom: Whom, lasts: bool) -> Self {
        Self(Box::leak(Box::new(Described { name: name.to_owned(), about, whom, lasts })))
    }

    /// Its name on the command line and in every file.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// What it does, in a line.
    #[must_use]
    pub fn about(self) -> &'static str {
        &self.0.about
    }

    /// At whom it is aimed.
    #[must_use]
    pub fn whom(self) -> Whom {
        self.0.whom
    }

    /// Whether it is in force until something undoes it.
    #[must_use]
    pub fn lasts(self) -> bool {
        self.0.lasts
    }

    /// The smallest ensemble on which it means anything, and why.
    pub(super) const fn fewest_nodes(self) -> (u32, &'static str) {
        match self.0.whom {
            Whom::Followers => (2, "a member alone leads itself"),
            Whom::One | Whom::Leader | Whom::All => (1, ""),
        }
    }
}
