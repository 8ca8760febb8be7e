//! What each member is, as far as its events tell.
//!
//! Nothing is asked of a member here: a view is only what follows from what it said and from what became of
//! its process.

use std::collections::BTreeMap;

use crate::events::{Event, Said};
use crate::member::MemberId;

/// What a member is, as far as its events tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stand {
    /// Looks for a leader, or is on its way to one.
    #[default]
    Looking,
    /// It answers clients, and tells nobody whom it follows.
    Answering,
    /// In an established epoch.
    Established {
        /// Its leader, itself perhaps.
        leader: MemberId,
        /// The epoch.
        epoch: u32,
        /// Whether it answers clients.
        serving: bool,
    },
}

/// What is known of one member: of one that says nothing, nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Whether its process exists.
    pub running: bool,
    /// Whether its process is stopped.
    pub paused: bool,
    /// Its stand.
    pub stand: Stand,
    /// Why it halted itself, when it did.
    pub halted: Option<String>,
}

impl View {
    /// Takes in what happened to it.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Spawned => *self = Self { running: true, ..Self::default() },
            Event::Exited(_) => {
                self.running = false;
                self.paused = false;
                self.stand = Stand::Looking;
            }
            Event::Paused => self.paused = true,
            Event::Resumed => self.paused = false,
            Event::Clock { .. } => {}
            Event::Said(Said::Looking { .. }) => self.stand = Stand::Looking,
            Event::Said(Said::Established { leader, epoch }) => {
                self.stand = Stand::Established { leader: MemberId(*leader), epoch: *epoch, serving: false };
            }
            Event::Said(Said::Serving {}) => match &mut self.stand {
                Stand::Established { serving, .. } => *serving = true,
                stand => *stand = Stand::Answering,
            },
            Event::Said(Said::Halt { reason }) => self.halted = Some(reason.clone()),
            Event::Said(
                Said::Started {}
                | Said::Elected { .. }
                | Said::Synced {}
                | Said::Expired { .. }
                | Said::Commits { .. }
                | Said::Other,
            ) => {}
        }
    }
}

/// The established leader with the highest epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Who.
    pub id: MemberId,
    /// In which epoch.
    pub epoch: u32,
}

/// The established leader of the highest epoch.
pub fn leader_of(views: &BTreeMap<MemberId, View>) -> Option<Leader> {
    views
        .iter()
        .filter(|(_, view)| view.running && !view.paused)
        .filter_map(|(id, view)| match view.stand {
            Stand::Established { leader, epoch, .. } if leader == *id => Some(Leader { id: *id, epoch }),
            _ => None,
        })
        .max_by_key(|leader| leader.epoch)
}

/// The highest epoch that any member says is established.
pub fn highest_epoch(views: &BTreeMap<MemberId, View>) -> Option<u32> {
    views
        .values()
        .filter_map(|view| match view.stand {
            Stand::Established { epoch, .. } => Some(epoch),
            Stand::Looking | Stand::Answering => None,
        })
        .max()
}

/// True when every member runs and serves: in one and the same epoch, or, where nobody tells of epochs, at
/// all.
pub fn all_serve(views: &BTreeMap<MemberId, View>) -> bool {
    serving(views).len() == views.len()
}

/// True when waiting is over: all serve, or a member's process is gone and nobody will start it again.
pub fn settled(views: &BTreeMap<MemberId, View>) -> bool {
    all_serve(views) || views.values().any(|view| !view.running)
}

/// The members that serve in the highest epoch; where nobody tells of epochs, those that answer.
pub fn serving(views: &BTreeMap<MemberId, View>) -> Vec<MemberId> {
    let stand = match leader_of(views) {
        Some(leader) => Stand::Established { leader: leader.id, epoch: leader.epoch, serving: true },
        None => Stand::Answering,
    };
    let serves = |view: &View| view.running && !view.paused && view.stand == stand;
    views.iter().filter(|(_, view)| serves(view)).map(|(id, _)| *id).collect()
}

/// The members that do not serve in the highest epoch, and what they are instead, for messages.
pub fn laggards(views: &BTreeMap<MemberId, View>) -> String {
    let leader = leader_of(views);
    let mut words = Vec::new();
    for (id, view) in views {
        let what = match view.stand {
            _ if !view.running => "down".to_owned(),
            _ if view.paused => "paused".to_owned(),
            Stand::Answering if leader.is_none() => continue,
            Stand::Answering => "not in the leader's epoch".to_owned(),
            Stand::Looking => "looking".to_owned(),
            Stand::Established { serving: false, epoch, .. } => format!("in epoch {epoch}, not serving"),
            Stand::Established { epoch, .. } if leader.is_some_and(|leader| leader.epoch == epoch) => {
                continue;
            }
            Stand::Established { epoch, .. } => format!("in epoch {epoch} still"),
        };
        words.push(format!("n{} is {what}", id.0));
    }
    match words.as_slice() {
        [] if views.values().all(|view| view.stand == Stand::Answering) => "all answer".to_owned(),
        [] => "no leader is established".to_owned(),
        words => words.join(", "),
    }
}
