//! What scripts say is seen of the members and of the load.

use std::collections::BTreeMap;

use harness_core::nemeses::{Sight, Silence};
use runs::member::MemberId;
use runs::views::{Leader, Stand, View};

/// What is seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) views: BTreeMap<MemberId, View>,
    pub(crate) leader: Option<Leader>,
    pub(crate) shown: bool,
    /// Since when nothing is acknowledged.
    pub(crate) silent: Option<u64>,
}

/// How a member stands that serves in the first epoch, under the first member.
pub(crate) const SERVING: Stand = Stand::Established { leader: MemberId(1), epoch: 1, serving: true };

impl Seen {
    /// All serve under the first, and the load has shown enough.
    pub(crate) fn all_well(members: &[MemberId]) -> Self {
        let view = View { running: true, stand: SERVING, ..View::default() };
        Self {
            views: members.iter().map(|member| (*member, view.clone())).collect(),
            leader: Some(Leader { id: MemberId(1), epoch: 1 }),
            shown: true,
            silent: None,
        }
    }
}

impl Sight for Seen {
    fn views(&self) -> BTreeMap<MemberId, View> {
        self.views.clone()
    }

    fn leader(&self) -> Option<Leader> {
        self.leader
    }

    fn load_has_shown(&self) -> bool {
        self.shown
    }

    fn silence(&self) -> Option<Silence> {
        self.silent.map(|since| Silence { since, first: 0 })
    }
}
