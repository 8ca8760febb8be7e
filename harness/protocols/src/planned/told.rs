//! What a member tells of itself, as a real member prints it: derived from what the protocol shows of it.
//!
//! A member takes part in an epoch when it leads it, or when it follows the leader of one that was
//! established. Its port needs no time to open, so then it serves.

use std::collections::{BTreeMap, VecDeque};

use runs::events::{Event, Said};

use super::Planned;
use crate::protocol::{Id, Protocol};

/// How often a leader says how long its proposals waited.
const COMMITS_EVERY_US: u64 = 1_000_000;
/// Proposals that wait at most; what is beyond is not counted.
const MOST_WAITING: usize = 65_536;

/// What a member has told, and what it will.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Who leads it, in which epoch; none while it looks for a leader.
    follows: Option<(Id, u32)>,
    /// Whether it has said anything.
    has_spoken: bool,
    /// As leader: places that it proposed, with when.
    waiting: VecDeque<(u64, u64)>,
    proposed: u64,
    /// How many proposals waited for so long, in microseconds.
    counted: BTreeMap<u64, u64>,
    said_us: u64,
}

impl Told {
    /// As leader it has proposed up to one place, and knows up to another what is decided.
    fn counts(&mut self, proposed: u64, decided: u64, now_us: u64) {
        if self.proposed == 0 {
            self.proposed = proposed.min(decided);
        }
        for place in self.proposed + 1..=proposed {
            if self.waiting.len() < MOST_WAITING {
                self.waiting.push_back((place, now_us));
            }
        }
        self.proposed = self.proposed.max(proposed);
        while let Some((_, since)) = self.waiting.pop_front_if(|(place, _)| *place <= decided) {
            *self.counted.entry(now_us - since).or_default() += 1;
        }
    }

    /// What was counted, if it is to be told.
    fn commits(&mut self, now_us: u64, leads: bool) -> Option<Vec<(u64, u64)>> {
        if !leads {
            self.waiting.clear();
            self.proposed = 0;
        } else if now_us - self.said_us < COMMITS_EVERY_US {
            return None;
        }
        self.said_us = now_us;
        let counted = std::mem::take(&mut self.counted);
        (!counted.is_empty()).then(|| counted.into_iter().collect())
    }
}

impl<P: Protocol> Planned<P> {
    /// Whoever stepped last says what is news. Where it begins to lead, so does everybody who follows it.
    pub(super) fn tell_news(&mut self) {
        let id = self.ensemble.stepped;
        let Some(member) = self.ensemble.configuration.running(id) else { return };
        let begins = self.ensemble.configuration.protocol().leads(member).is_some_and(|term| {
            let begins = !self.established.contains_key(&term);
            self.established.insert(term, id);
            begins
        });
        self.tell_what_it_is(id);
        if begins {
            Id::all(self.ensemble.members())
                .filter(|other| *other != id)
                .for_each(|id| self.tell_what_it_is(id));
        }
    }

    fn tell_what_it_is(&mut self, id: Id) {
        let Some(member) = self.ensemble.configuration.running(id) else { return };
        let protocol = self.ensemble.configuration.protocol();
        let follows = match (protocol.leads(member), protocol.follows(member)) {
            (Some(term), _) => Some((id, epoch(term))),
            (None, Some(term)) => self.established.get(&term).map(|leader| (*leader, epoch(term))),
            (None, None) => None,
        };
        let progress = protocol.leads(member).and_then(|_| protocol.progress(member));
        self.tell(id, follows, progress);
    }

    fn tell(&mut self, id: Id, follows: Option<(Id, u32)>, progress: Option<(u64, u64)>) {
        let now_us = self.ensemble.now.0;
        let told = &mut self.told[id.place()];
        let leads = follows.is_some_and(|(leader, _)| leader == id);
        if let Some((proposed, decided)) = progress {
            told.counts(proposed, decided, now_us);
        }
        if let Some(us) = told.commits(now_us, leads) {
            self.note(id, Event::Said(Said::Commits { us }));
        }
        let told = &mut self.told[id.place()];
        if told.has_spoken && told.follows == follows {
            return;
        }
        let left = std::mem::replace(&mut told.follows, follows).map(|(leader, _)| u64::from(leader.0));
        let looks = !std::mem::replace(&mut told.has_spoken, true) || follows.is_none();
        if looks || left.is_some() {
            self.note(id, Event::Said(Said::Looking { left }));
        }
        if let Some((leader, epoch)) = follows {
            let leader = u64::from(leader.0);
            self.note(id, Event::Said(Said::Elected { leader }));
            self.note(id, Event::Said(Said::Established { leader, epoch }));
            self.note(id, Event::Said(Said::Serving {}));
        }
    }
}

/// A term, as a run counts epochs.
fn epoch(term: u64) -> u32 {
    u32::try_from(term).unwrap_or(u32::MAX)
}
