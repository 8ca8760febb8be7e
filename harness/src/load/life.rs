//! Whether what is asked is decided, while a run goes on: a run that ends in silence waits until that is for
//! good.

use std::collections::BTreeMap;

use checker::history::Event;
use harness_core::nemeses::Silence;
use runs::numbers::NS_PER_S;
use runs::silence::{Sign, sign_of_line};
use workloads::workload::vocabulary;

use crate::clock::RunNs;

/// What was not decided for so long is silent, in ns. It is short: whoever waits for nothing is told by the
/// next answer.
const SILENT_NS: RunNs = 2 * NS_PER_S;
/// A key that nobody was refused for so long is not asked for any more, in ns.
const ASKED_NS: RunNs = 3 * NS_PER_S;

/// When changes were decided.
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// The first and the last.
    span: Option<(RunNs, RunNs)>,
    keys: BTreeMap<u64, Key>,
}

#[derive(Debug)]
struct Key {
    /// The last change of it.
    decided: RunNs,
    /// The last that was refused or not answered.
    refused: RunNs,
}

impl Life {
    /// Takes a line of the history.
    pub(crate) fn note(&mut self, line: &Event) {
        let Some(at) = line.time else { return };
        match sign_of_line(line, vocabulary()) {
            Sign::Life => {
                self.span = Some((self.span.map_or(at, |(first, _)| first), at));
                self.keys.entry(line.key).or_insert(Key { decided: at, refused: 0 }).decided = at;
            }
            Sign::Against => {
                if let Some(key) = self.keys.get_mut(&line.key) {
                    key.refused = at;
                }
            }
            Sign::Nothing => {}
        }
    }

    /// What is silent at this moment, all or a key, since when it is longest. What was never decided at all
    /// is no silence.
    pub(crate) fn silence(&self, now: RunNs) -> Option<Silence> {
        let (first, last) = self.span?;
        let is_long = |since: &RunNs| now.saturating_sub(*since) >= SILENT_NS;
        let of_keys = self.keys.values().filter(|key| now.saturating_sub(key.refused) < ASKED_NS);
        let since = of_keys.map(|key| key.decided).chain([last]).filter(is_long).min()?;
        Some(Silence { since, first })
    }
}

#[cfg(test)]
mod tests {
    use checker::history::{EventKind, Function, Value};

    use super::*;

    const S: RunNs = NS_PER_S;

    fn line(kind: EventKind, key: u64, at: RunNs) -> Event {
        let mut line = Event::new(1, kind, Function::WRITE, key, Value::One(1), at * S);
        line.error = (kind != EventKind::Ok).then(|| "stuck".into());
        line
    }

    #[test]
    fn all_is_silent_or_a_key_that_is_still_asked_for() {
        let mut life = Life::default();
        life.note(&line(EventKind::Fail, 0, 1));
        assert_eq!(life.silence(60 * S), None, "nothing was ever decided");
        for key in [0, 1] {
            life.note(&line(EventKind::Ok, key, 2));
        }
        assert_eq!(life.silence(3 * S), None);
        assert_eq!(life.silence(4 * S), Some(Silence { since: 2 * S, first: 2 * S }));
        life.note(&line(EventKind::Ok, 0, 20));
        assert_eq!(life.silence(21 * S), None, "nobody asks for key 1");
        life.note(&line(EventKind::Fail, 1, 20));
        assert_eq!(life.silence(21 * S), Some(Silence { since: 2 * S, first: 2 * S }));
        life.note(&line(EventKind::Ok, 0, 23));
        assert_eq!(life.silence(24 * S), None, "nor is it asked for any more");
    }
}
