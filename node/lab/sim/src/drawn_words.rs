//! What was drawn, in a few words: so that of many worlds it can be told what was drawn in how many of them.

use crate::drawn::Drawn;
use harness_core::fault::SwarmFault;
use harness_world::dice::Chance;

impl Drawn {
    /// The swarm options as pairs of what was drawn and how it fell, coarse enough to be counted.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        let mut words = vec![
            ("members", self.members.to_string()),
            ("observers", self.observers.to_string()),
            ("sieges", if self.siege { "yes" } else { "no" }.to_owned()),
            ("zxids of an epoch", range(u64::from(self.last_counter), &[1, 500, 1_000, 2_000, 1 << 31])),
            (
                "entries kept for learners",
                range(u64::try_from(self.journal_entries).unwrap_or(u64::MAX), &[1, 10, 100, 4_096]),
            ),
            ("clients", range(u64::try_from(self.clients).unwrap_or(u64::MAX), &[2, 5, 9])),
            ("watchers", self.watchers.to_string()),
            ("local sessions", if self.local { "yes" } else { "no" }.to_owned()),
            ("reads without a leader", if self.read_only { "yes" } else { "no" }.to_owned()),
            ("limits", if self.limits { "yes" } else { "no" }.to_owned()),
            ("changing ensembles", if self.changes { "yes" } else { "no" }.to_owned()),
            ("long steps", if self.unit_us > 0 { "yes" } else { "no" }.to_owned()),
            ("visitors", self.visitors.to_string()),
            ("reads", format!("{}%", self.read_percent)),
            ("peer time-out, ms", range(self.peer_timeout_ms, &[100, 200, 300, 401])),
            ("entries to a snapshot", range(self.snap_count, &[5, 20, 100, 401])),
            ("bytes to a log file", range(self.roll_bytes, &[512, 4_096, 16_384, 65_537])),
            ("crashes lose the page cache", share(self.power)),
            ("crashes reset connections", share(self.abrupt)),
            ("crashes within a step", share(self.mid_step)),
            ("losses told late", share(self.told_late)),
        ];
        if self.applications > 0 {
            words.push(("applications", self.applications.to_string()));
            words.push(("recipes", if self.locks { "lock" } else { "election" }.to_owned()));
        }
        let faults = SwarmFault::ALL.into_iter().zip(self.weights).filter(|(_, weight)| *weight > 0);
        words.extend(faults.map(|(kind, _)| ("faults", kind.name().to_owned())));
        words
    }
}

/// The range that a figure falls in, of those that begin at these bounds and before the first.
fn range(figure: u64, bounds: &[u64]) -> String {
    let mut from = 0;
    for bound in bounds {
        if figure < *bound {
            return format!("{from} to {}", bound - 1);
        }
        from = *bound;
    }
    format!("{from} and more")
}

fn share(chance: Chance) -> String {
    match chance {
        Chance::NEVER => "never",
        Chance::ALWAYS => "always",
        Chance(_) => "sometimes",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_drawn_falls_into_few_classes() {
        let mut classes: Vec<(&'static str, String)> =
            (0..200).flat_map(|seed| Drawn::of_seed(seed).words()).collect();
        classes.sort();
        classes.dedup();
        assert!(classes.len() >= 20, "{classes:?}");
        // Faults are of as many classes as there are kinds.
        let of_one = |subject| classes.iter().filter(|(other, _)| *other == subject).count();
        for (subject, _) in classes.iter().filter(|(subject, _)| *subject != "faults") {
            assert!(of_one(*subject) <= 8, "{subject} falls into {} classes", of_one(*subject));
        }
        assert_eq!((range(7, &[5, 9]), range(9, &[5, 9])), ("5 to 8".to_owned(), "9 and more".to_owned()));
    }
}
