//! What was drawn, in a few words: so that of many worlds it can be told what was drawn in how many of them.

use crate::dice::Chance;
use crate::drawn::{Drawn, FaultKind};

impl Drawn {
    /// The climate as pairs of what was drawn and how it fell, coarse enough to be counted.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        let mut words = vec![
            ("members", self.members.to_string()),
            ("clients", below(self.clients, &[5, 9])),
            ("visitors", self.visitors.to_string()),
            ("reads", format!("{}%", self.read_percent)),
            ("peer time-out, ms", below(self.peer_timeout_ms, &[200, 300, 401])),
            ("entries to a snapshot", below(self.snap_count, &[20, 100, 401])),
            ("bytes to a log file", below(self.roll_bytes, &[4_096, 16_384, 65_537])),
            ("crashes lose the page cache", share(self.power)),
            ("crashes reset connections", share(self.abrupt)),
            ("crashes within a step", share(self.mid_step)),
            ("losses told late", share(self.told_late)),
        ];
        let faults = FaultKind::ALL.into_iter().zip(self.weights).filter(|(_, weight)| *weight > 0);
        words.extend(faults.map(|(kind, _)| ("faults", kind.name().to_owned())));
        words
    }
}

/// The range that a figure falls in.
fn below<N: PartialOrd + Copy + std::fmt::Display>(figure: N, bounds: &[N]) -> String {
    let mut from = None;
    for bound in bounds {
        if figure < *bound {
            return from
                .map_or_else(|| format!("below {bound}"), |from| format!("{from} and more, below {bound}"));
        }
        from = Some(*bound);
    }
    from.map_or_else(String::new, |from| format!("{from} and more"))
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
        assert!((20..80).contains(&classes.len()), "{classes:?}");
        assert_eq!(below(7, &[5, 9]), "5 and more, below 9");
    }
}
