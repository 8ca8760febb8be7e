//! How contenders name their znodes, and in which order they stand.
//!
//! A contender's znode is ephemeral and sequential: when its session ends the znode goes, and the number that
//! the ensemble appends says who came first. Before the number stands a guid, by which a contender finds its
//! own znode again when the answer to its creation was lost (ZooKeeper's recipes, "Recoverable Errors and the
//! GUID").
//!
//! Other libraries name theirs otherwise. A [`Layout`] names ours as one of them does, and every znode with a
//! number at its end counts as a contender, so that programs over different libraries stand in one line.

use bytestring::ByteString;

/// Digits of the number that the ensemble appends.
const DIGITS: usize = 10;

/// What tells one contender from all others: chance, drawn by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub u128);

impl Guid {
    /// The one for the contender's next znode.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    fn hyphenated(self) -> String {
        let hex = format!("{:032x}", self.0);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        parts.join("-")
    }
}

/// Whose names are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `<guid>-n_`, as ZooKeeper's recipes have it.
    #[default]
    Own,
    /// Curator's: `_c_<guid>-latch-` for `LeaderLatch`, `_c_<guid>-lock-` for locks.
    Curator,
    /// kazoo's: `<guid>__lock__`.
    Kazoo,
}

/// What a contender wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    /// To lead.
    Lead,
    /// To hold alone.
    Write,
    /// To hold with others that read.
    Read,
}

impl Layout {
    /// The beginning of a contender's name; the ensemble appends the number.
    #[must_use]
    pub fn prefix(self, intent: Intent, guid: Guid) -> String {
        match (self, intent) {
            (Self::Own, Intent::Lead | Intent::Write) => format!("{:032x}-n_", guid.0),
            (Self::Own, Intent::Read) => format!("{:032x}-r_", guid.0),
            (Self::Curator, Intent::Lead) => format!("_c_{}-latch-", guid.hyphenated()),
            (Self::Curator, Intent::Write) => format!("_c_{}-lock-", guid.hyphenated()),
            (Self::Curator, Intent::Read) => format!("_c_{}-__READ__", guid.hyphenated()),
            (Self::Kazoo, Intent::Lead | Intent::Write) => format!("{:032x}__lock__", guid.0),
            (Self::Kazoo, Intent::Read) => format!("{:032x}__rlock__", guid.0),
        }
    }
}

impl Layout {
    /// True if programs with this layout and this intent, over whatever library, stand in one line with this
    /// contender. Others may not see it, or think that it came behind them: then two hold at a time.
    #[must_use]
    pub fn stands_with(self, intent: Intent, contender: &Contender) -> bool {
        let head = contender.head();
        let marks: &[&str] = match (self, intent) {
            (Self::Own, _) => &["-n_", "-r_"],
            (Self::Curator, Intent::Lead) => &["latch-"],
            // Curator's read/write lock calls a writer `__WRIT__`, and does not know `lock-`.
            (Self::Curator, Intent::Write | Intent::Read) => &["lock-", "__READ__"],
            (Self::Kazoo, _) => &["__lock__", "__rlock__"],
        };
        let is_guid = |guid: &str| guid.len() == 32 && guid.bytes().all(|byte| byte.is_ascii_hexdigit());
        marks.iter().filter_map(|mark| head.strip_suffix(mark)).any(|before| match self {
            Self::Own | Self::Kazoo => is_guid(before),
            Self::Curator => before.is_empty() || before.starts_with("_c_"),
        })
    }
}

/// A contender, as its znode's name tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    /// The name of its znode.
    pub name: ByteString,
    /// The number at the name's end. Lower ones came first.
    pub sequence: i32,
    /// True if it is content to share with others that read.
    pub reads: bool,
}

impl Contender {
    /// A contender by this name; nothing where there is no number at its end.
    #[must_use]
    pub fn of(name: &ByteString) -> Option<Self> {
        let at = name.len().checked_sub(DIGITS).filter(|at| name.is_char_boundary(*at))?;
        let (head, digits) = name.split_at(at);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let reads = ["-r_", "__READ__", "__rlock__"].iter().any(|mark| head.ends_with(mark));
        Some(Self { name: name.clone(), sequence: digits.parse().ok()?, reads })
    }

    /// The name without its number.
    fn head(&self) -> &str {
        self.name.len().checked_sub(DIGITS).and_then(|at| self.name.get(..at)).unwrap_or_default()
    }

    /// True if the znode is named with this guid.
    #[must_use]
    pub fn is_of(&self, layout: Layout, intent: Intent, guid: Guid) -> bool {
        self.head() == layout.prefix(intent, guid)
    }
}

/// The contenders among a znode's children, first come first.
#[must_use]
pub fn in_order(names: &[ByteString]) -> Vec<Contender> {
    let mut contenders: Vec<Contender> = names.iter().filter_map(Contender::of).collect();
    contenders.sort_by(|a, b| (a.sequence, &a.name).cmp(&(b.sequence, &b.name)));
    contenders
}

/// A child's path.
#[must_use]
pub fn child(parent: &str, name: &str) -> ByteString {
    if parent == "/" { format!("/{name}").into() } else { format!("{parent}/{name}").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_of_all_libraries_stand_in_one_line_by_their_numbers() {
        let guid = Guid(0xab);
        let names: Vec<ByteString> = [
            (Layout::Curator, Intent::Lead, 3),
            (Layout::Kazoo, Intent::Write, 1),
            (Layout::Own, Intent::Lead, 2),
            (Layout::Curator, Intent::Read, 10),
        ]
        .map(|(layout, intent, number)| format!("{}{number:010}", layout.prefix(intent, guid)).into())
        .to_vec();
        let order = in_order(&names);
        assert_eq!(order.iter().map(|contender| contender.sequence).collect::<Vec<_>>(), [1, 2, 3, 10]);
        assert_eq!(
            order.iter().map(|contender| contender.reads).collect::<Vec<_>>(),
            [false, false, false, true]
        );
        assert!(order[2].is_of(Layout::Curator, Intent::Lead, guid));
        assert!(!order[2].is_of(Layout::Curator, Intent::Lead, guid.next()));
    }

    #[test]
    fn a_name_of_another_layout_is_told_from_those_that_stand_in_one_line() {
        let guid = Guid(0xab);
        let all = [Layout::Own, Layout::Curator, Layout::Kazoo];
        for (ours, theirs) in all.iter().flat_map(|ours| all.iter().map(move |theirs| (*ours, *theirs))) {
            for intent in [Intent::Lead, Intent::Write, Intent::Read] {
                let name = format!("{}0000000007", theirs.prefix(intent, guid)).into();
                let contender = Contender::of(&name).expect("a contender");
                assert_eq!(ours.stands_with(intent, &contender), ours == theirs, "{ours:?} beside {name}");
            }
        }
        for (name, layout, intent) in [
            ("n_0000000001", Layout::Own, Intent::Lead),
            ("0000000001", Layout::Own, Intent::Lead),
            ("job-n_0000000001", Layout::Own, Intent::Lead),
            ("_c_0a-__WRIT__0000000001", Layout::Curator, Intent::Write),
            ("_c_0a-lock-0000000001", Layout::Curator, Intent::Lead),
        ] {
            let contender = Contender::of(&name.into()).expect("a contender");
            assert!(!layout.stands_with(intent, &contender), "{name}");
        }
        let unprotected = Contender::of(&"latch-0000000001".into()).expect("a contender");
        assert!(Layout::Curator.stands_with(Intent::Lead, &unprotected));
    }

    #[test]
    fn names_without_a_number_are_no_contenders() {
        for name in ["", "leader", "n_00000000x1", "0000000001é", "é000000001", "99999999999999"] {
            assert_eq!(in_order(&[name.into()]).len(), usize::from(name == "0000000001"), "{name}");
        }
        assert_eq!(in_order(&["0000000001".into()]).len(), 1);
    }

    #[test]
    fn names_are_as_the_other_libraries_write_them() {
        let guid = Guid(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        let prefix = |layout: Layout, intent| layout.prefix(intent, guid);
        assert_eq!(prefix(Layout::Curator, Intent::Lead), "_c_00112233-4455-6677-8899-aabbccddeeff-latch-");
        assert_eq!(prefix(Layout::Kazoo, Intent::Write), "00112233445566778899aabbccddeeff__lock__");
    }
}
