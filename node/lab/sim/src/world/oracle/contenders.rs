//! What must hold of applications that stand in one line, looked at after every event: at most one of them
//! may act, by what each knows at the true time; no session ends of which its client is certain; tokens are
//! given once and grow; and the end of one contender is told to one other at most. In a healed world one of
//! those that stand leads, and no znode is left of others.
//!
//! Whoever was robbed by somebody of its znode may act until it hears of that. No recipe can help it: a
//! fencing token does.

use std::collections::{BTreeMap, BTreeSet};

use bytestring::ByteString;
use lab_apps::elections::RESOURCE;
use node_recipes::election::Status;
use node_recipes::line::{Place, Token};
use node_wire::client::EventType;
use node_wire::ids::Zxid;

use crate::outcome::Rule;
use crate::world::population::applications::moment;
use crate::world::{Clockwork, Oracle, Population};

/// What is known of those who stand in line.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct Contenders {
    /// The newest token that was given.
    highest: Option<Token>,
    /// Znodes that somebody else wanted deleted.
    robbed: BTreeSet<ByteString>,
    /// Those of them whose resource was to go as well.
    removed: BTreeSet<ByteString>,
    /// Who was told of the end of a znode.
    told: BTreeMap<ByteString, BTreeSet<usize>>,
}

impl Contenders {
    /// Somebody asks for the end of another one's znode.
    pub(in crate::world) fn is_robbed(&mut self, path: ByteString) {
        self.robbed.insert(path);
    }

    /// Somebody asks for the end of the resource and of this znode below it.
    pub(in crate::world) fn is_removed(&mut self, path: ByteString) {
        self.removed.insert(path.clone());
        self.robbed.insert(path);
    }

    /// A token was given. The error says why it must not have been.
    pub(in crate::world) fn given(&mut self, place: &Place) -> Result<(), String> {
        let highest = self.highest;
        self.highest = highest.max(Some(place.token));
        // One whose znode was deleted may hear late that it was first.
        match highest.filter(|highest| place.token <= *highest && !self.robbed.contains(&place.path)) {
            Some(highest) => Err(format!("is elected with token {} after {highest}", place.token)),
            None => Ok(()),
        }
    }

    /// An application was told of the end of a znode. Gives all who were, where they are too many.
    fn told_of(&mut self, path: &ByteString, number: usize) -> Option<&BTreeSet<usize>> {
        let told = self.told.entry(path.clone()).or_default();
        told.insert(number);
        // The removal of a resource is told to all, and rightly so.
        (told.len() > 1 && !self.removed.contains(path)).then_some(told)
    }
}

impl Oracle {
    /// After every event: at most one application may act, and what each is certain of is so.
    pub(in crate::world) fn check_applications(&mut self, clock: &mut Clockwork, population: &Population) {
        let now = moment(clock.now);
        let acts = |number: &usize| {
            let application = &population.applications[*number].application;
            let robbed = |place: &Place| self.contenders.robbed.contains(&place.path);
            application.may_act(now) && !application.place().is_some_and(robbed)
        };
        let mut acting = (0..population.applications.len()).filter(acts);
        if let (Some(one), Some(other)) = (acting.next(), acting.next()) {
            self.report(clock, Rule::OneLeads, format!("applications {one} and {other} may act at once"));
        }
        for resident in &population.applications {
            let certain = resident.application.certain().filter(|(_, until)| now < *until);
            if let Some((session, until)) = certain
                && self.invariants.session_is_over(session)
            {
                let left_ms = until.saturating_sub(now).as_millis();
                let sentence =
                    format!("session {session} is over, and its client was certain for {left_ms} ms more");
                self.found(clock, Err((Rule::Certainty, sentence)));
            }
        }
    }

    /// A recipe told something.
    pub(in crate::world) fn application_says(
        &mut self,
        clock: &mut Clockwork,
        population: &Population,
        number: usize,
        status: &Status,
    ) {
        let figure = u64::try_from(number).unwrap_or(u64::MAX);
        let token = match status {
            Status::Standing(place) | Status::Elected(place) => place.token.0,
            Status::Waiting(_) | Status::TermOver(_) | Status::Over(_) => 0,
        };
        clock.world_line("application", [figure, token], || format!("application {number}: {status:?}"));
        match status {
            Status::Standing(_) => clock.counters.candidacies += 1,
            Status::Elected(place) => {
                clock.counters.terms += 1;
                if let Err(sentence) = self.contenders.given(place) {
                    self.report(clock, Rule::TokensGrow, format!("application {number} {sentence}"));
                }
            }
            Status::TermOver(_) => clock.counters.terms_over += 1,
            Status::Waiting(_) | Status::Over(_) => {}
        }
        self.check_applications(clock, population);
    }

    /// A watch of an application that stands saw something that is not its own.
    pub(in crate::world) fn application_saw(
        &mut self,
        clock: &mut Clockwork,
        number: usize,
        kind: EventType,
        path: &ByteString,
        line_seen: Option<Zxid>,
    ) {
        let gone = match kind {
            EventType::NodeDeleted if is_below(path) => Some(path.clone()),
            EventType::NodeChildrenChanged => line_seen.and_then(|seen| self.end_behind(seen)),
            _ => None,
        };
        let Some(gone) = gone else { return };
        if let Some(told) = self.contenders.told_of(&gone, number) {
            let sentence = format!("applications {told:?} were told of the end of {gone}");
            self.report(clock, Rule::NoHerd, sentence);
        }
    }

    /// The znode whose end is the first change of the line behind this state; nothing where another one came.
    fn end_behind(&self, seen: Zxid) -> Option<ByteString> {
        let changes = self.invariants.changes_between(seen, self.invariants.last_committed());
        let changed = |change: &&crate::watcher::Change| {
            change.kind == EventType::NodeChildrenChanged && *change.path == *RESOURCE
        };
        let first = changes.iter().find(changed)?.zxid;
        let ended = changes.iter().find(|change| {
            change.zxid == first && change.kind == EventType::NodeDeleted && is_below(&change.path)
        });
        ended.map(|change| change.path.clone())
    }
}

fn is_below(path: &str) -> bool {
    path.strip_prefix(RESOURCE).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &'static str, token: u64) -> Place {
        Place { path: path.into(), token: Token(token), session: node_wire::ids::SessionId(1) }
    }

    #[test]
    fn a_token_is_given_once_and_a_smaller_one_to_nobody_but_who_was_robbed() {
        let mut contenders = Contenders::default();
        contenders.given(&place("/president/a", 5)).expect("the first");
        contenders.given(&place("/president/b", 7)).expect("a larger one");
        assert!(contenders.clone().given(&place("/president/b", 7)).is_err(), "twice");
        assert!(contenders.clone().given(&place("/president/c", 6)).is_err(), "a smaller one");
        contenders.is_robbed("/president/c".into());
        contenders.given(&place("/president/c", 6)).expect("it heard late that it was first");
    }

    #[test]
    fn one_is_told_of_an_end_and_all_of_a_removal() {
        let (path, mut contenders) = (ByteString::from("/president/a"), Contenders::default());
        assert_eq!(contenders.told_of(&path, 1), None);
        assert_eq!(contenders.told_of(&path, 1), None, "the same one");
        assert!(contenders.clone().told_of(&path, 2).is_some());
        contenders.is_removed(path.clone());
        assert_eq!(contenders.told_of(&path, 2), None);
    }
}
