//! Rules that are chosen when a member starts.

use std::collections::BTreeSet;
use std::fmt;

use node_core::quorum::Quorum;
use node_core::tree::Tree;
use node_core::{Acknowledged, Rules};
use node_wire::ids::{Epoch, ServerId, Zxid};
use node_wire::snapshot::{Image, StatPersisted};

/// The rules that a mutant follows.
#[derive(Clone, Copy)]
pub(crate) struct Followed(&'static dyn Rules);

impl Followed {
    pub(crate) fn new(rules: &'static dyn Rules) -> Self {
        Self(rules)
    }
}

impl fmt::Debug for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! as_they_say {
    ($(fn $rule:ident(&self $(, $arg:ident: $of:ty)*) -> $gives:ty;)*) => {
        impl Rules for Followed {
            $(
                #[inline]
                fn $rule(&self $(, $arg: $of)*) -> $gives {
                    self.0.$rule($($arg),*)
                }
            )*
        }
    };
}

type Voters = BTreeSet<ServerId>;

as_they_say! {
    fn quorum(&self, active: Voters, proposed: Option<Voters>) -> Quorum;
    fn newness(&self, epoch: Epoch, last: Zxid) -> (Epoch, Zxid);
    fn electorate_changes(&self) -> bool;
    fn abdicates(&self) -> bool;
    fn hangs_up_on_older(&self) -> bool;
    fn beginning(&self, epoch: Epoch, history: Zxid) -> Zxid;
    fn next_zxid(&self, last: Zxid, last_counter: u32) -> Option<Zxid>;
    fn commits(&self, acknowledged: Acknowledged) -> Zxid;
    fn serves(&self, established: bool) -> bool;
    fn sync_asks_quorum(&self) -> bool;
    fn moving_is_life(&self) -> bool;
    fn multi_is_atomic(&self) -> bool;
    fn judged_by_proposals(&self) -> bool;
    fn sequence(&self, cversion: i32, children: usize) -> i64;
    fn lives_since(&self, stat: &StatPersisted) -> i64;
    fn measured(&self, new: usize, old: usize) -> usize;
    fn watches_ask_lists(&self) -> bool;
    fn restore(&self, image: &Image) -> Tree;
    fn history_tells_membership(&self) -> bool;
}
