//! The night's numbers as OpenMetrics text, for a textfile collector or a push.
//!
//! Gauges all of them: a night is looked at, not counted on. The numbers of series are in the unit of their
//! metric, ms or a share or operations a second, which is why that family has no unit of its own.

use std::fmt::{Display, Write as _};

use nights::findings::State;
use nights::pile::Pile;
use nights::threshold::Outcome;

use super::View;
use super::digest::Digest;

/// The text under construction.
struct Metrics {
    out: String,
}

/// Writes the night as OpenMetrics text.
pub(super) fn render(view: &View<'_>) -> String {
    let mut metrics = Metrics { out: String::new() };
    if let Some(digest) = Digest::of(view) {
        metrics.night(&digest);
        metrics.cases(&digest);
        metrics.work(&digest);
        metrics.series(&digest);
    }
    metrics.out.push_str("# EOF\n");
    metrics.out
}

impl Metrics {
    fn family(&mut self, name: &str, unit: &str, help: &str) {
        let _ = writeln!(self.out, "# TYPE harness_night_{name} gauge");
        if !unit.is_empty() {
            let _ = writeln!(self.out, "# UNIT harness_night_{name} {unit}");
        }
        let _ = writeln!(self.out, "# HELP harness_night_{name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escape(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.out, "harness_night_{name}{labels} {value}");
    }

    /// A family that has one sample, without labels.
    fn single_sample(&mut self, name: &str, unit: &str, help: &str, value: impl Display) {
        self.family(name, unit, help);
        self.sample(name, &[], value);
    }

    fn night(&mut self, digest: &Digest<'_>) {
        let begun = &digest.night.begun;
        let labels: [(&str, &str); 3] =
            [("night", &begun.night), ("build", &begun.build), ("machine", &begun.machine.key())];
        let _ = writeln!(self.out, "# TYPE harness_night_of info");
        let _ = writeln!(self.out, "# HELP harness_night_of The night, the build, and where.");
        self.sample("of_info", &labels, 1);
        let start = begun.started_utc.as_second();
        self.single_sample("start_seconds", "seconds", "When the night began, seconds since 1970.", start);
        let is_valid = u8::from(digest.pile == Pile::Valid);
        self.single_sample("valid", "", "1 of a night that came to its end and was valid, else 0.", is_valid);
        let Some(judged) = &digest.night.judged else { return };
        self.single_sample(
            "end_seconds",
            "seconds",
            "When the night ended, seconds since 1970; absent while it has no end.",
            judged.ended_utc.as_second(),
        );
        self.single_sample("exit_status", "", "The exit status of the night.", judged.status);
    }

    fn cases(&mut self, digest: &Digest<'_>) {
        let (piles, not_run) = digest.piles();
        self.family("cases", "", "Cases by what they are taken for.");
        for (pile, n) in piles.into_iter().rev() {
            let word = match pile {
                Pile::BenchFailure => "bench-failure",
                Pile::Valid | Pile::Regression | Pile::Unknown | Pile::Violation => pile.name(),
            };
            self.sample("cases", &[("pile", word)], n);
        }
        self.sample("cases", &[("pile", "not-run")], not_run);
        self.family("findings", "", "Findings by what they are tonight.");
        for (state, word) in [
            (State::New, "new"),
            (State::NewShape, "new-shape"),
            (State::Ongoing, "ongoing"),
            (State::Gone, "gone"),
        ] {
            self.sample("findings", &[("state", word)], digest.findings(&[state]).len());
        }
        let all = digest.thresholds();
        self.family("thresholds", "", "Thresholds by what came of them.");
        for (outcome, word) in
            [(Outcome::Met, "met"), (Outcome::Crossed, "crossed"), (Outcome::TooFew, "too-few")]
        {
            let n = all.iter().filter(|one| one.judgement.outcome == outcome).count();
            self.sample("thresholds", &[("outcome", word)], n);
        }
        self.family("alarms", "", "Numbers that stood out, by whether a comparison confirmed it.");
        let confirmed = digest.confirmed().count();
        self.sample("alarms", &[("confirmed", "yes")], confirmed);
        self.sample("alarms", &[("confirmed", "no")], digest.night.alarms.len() - confirmed);
    }

    fn work(&mut self, digest: &Digest<'_>) {
        let (elections, faults, operations) = digest.night.work();
        let (worlds, bad) = digest.night.worlds_lived();
        let hunted = digest.hunted();
        let convicted = hunted.iter().filter(|hunted| hunted.is_convicted).count();
        let left_out: u64 = digest.left_out().iter().map(|left| u64::from(left.runs)).sum();
        self.single_sample("runs", "", "Runs of cases, every try counted.", digest.night.attempts.len());
        self.single_sample("runs_left_out", "", "Runs that were planned and not made.", left_out);
        self.single_sample("worlds", "", "Worlds of the simulator that were lived through.", worlds);
        self.single_sample("worlds_broken", "", "Worlds that broke a rule.", bad.len());
        self.single_sample("elections", "", "Elections that were measured.", elections);
        self.single_sample("faults_verified", "", "Faults that were proven.", faults);
        self.single_sample("operations", "", "Operations that were invoked.", operations);
        self.family("planted_bugs", "", "Planted bugs that were hunted, by whether a run convicted them.");
        self.sample("planted_bugs", &[("convicted", "yes")], convicted);
        self.sample("planted_bugs", &[("convicted", "no")], hunted.len() - convicted);
    }

    fn series(&mut self, digest: &Digest<'_>) {
        self.family("series", "", "Tonight's number of a case, in the unit of its metric.");
        for series in digest.view.series {
            let Some(sample) = series.tonight(digest.view.nights.len()) else { continue };
            if sample.value.is_finite() {
                let labels =
                    [("case", series.case.as_str()), ("series", &series.name), ("machine", &series.machine)];
                self.sample("series", &labels, sample.value);
            }
        }
    }
}

/// A label's value: what the format gives a meaning to is escaped.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\r', " ").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_from_outside_stays_one_label() {
        let mut metrics = Metrics { out: String::new() };
        metrics.sample("x", &[("case", "a\"} 1\nb\\")], 2.5);
        assert_eq!(metrics.out, "harness_night_x{case=\"a\\\"} 1\\nb\\\\\"} 2.5\n");
    }
}
