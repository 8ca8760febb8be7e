//! The sentence that each part of a report opens with, drawn from the data.
//!
//! A reader who stops after the first line of a part should know what it shows. So these sentences say what
//! was found and not what is drawn, name the exception (E10, F4) and never claim more than the numbers do:
//! what has no data says so.

use checker::verdict::Verdict;

use crate::faults::{FaultRecord, FaultState};
use crate::numbers::{count, duration, len, ms, nearest_rank, ns_to_ms, plural, setting_ms, whole_ms};
use crate::results::{Election, LatencyClass, Outage, OutcomeCounts, Phase, Results, RunInfo};

/// A share of a recovery from which its phase is called the greater part.
const GREATER_PART: f64 = 0.5;

/// Text in which some words carry the finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence {
    parts: Vec<(String, bool)>,
}

impl Sentence {
    /// A sentence that is all finding.
    pub fn strong(text: impl Into<String>) -> Self {
        Self::default().and_strong(text)
    }

    /// Adds ordinary words.
    #[must_use]
    pub fn and(mut self, text: impl Into<String>) -> Self {
        self.parts.push((text.into(), false));
        self
    }

    /// Adds words that carry the finding.
    #[must_use]
    pub fn and_strong(mut self, text: impl Into<String>) -> Self {
        self.parts.push((text.into(), true));
        self
    }

    /// The parts in order; true where they carry the finding.
    pub fn parts(&self) -> impl Iterator<Item = (&str, bool)> {
        self.parts.iter().map(|(text, strong)| (text.as_str(), *strong))
    }

    /// Without emphasis.
    pub fn plain(&self) -> String {
        self.parts().map(|(text, _)| text).collect()
    }
}

/// The verdict in a sentence or two.
pub fn verdict(run: &RunInfo, results: &Results, faults: &[FaultRecord]) -> Sentence {
    let begun = opening(run, results, faults);
    match results.verdict {
        Verdict::Valid => held(begun, results),
        Verdict::Invalid => broken(begun, results),
        Verdict::Unknown => undecided(begun, results),
    }
}

fn opening(run: &RunInfo, results: &Results, faults: &[FaultRecord]) -> Sentence {
    let members = match run.nodes {
        1 => format!("One {} member", run.target),
        n => format!("{} {} members", small_number(n), run.target),
    };
    let plant = match &run.plant {
        Some(bug) => format!(" with the planted bug {bug}"),
        None => String::new(),
    };
    let place = match run.cluster.as_str() {
        "process" => "as local processes".to_owned(),
        "docker" => "in Docker".to_owned(),
        "sim" => "in the simulator".to_owned(),
        other => format!("on {other}"),
    };
    let served = if results.timings.workload_ms > 0.0 {
        about_seconds(results.timings.workload_ms)
    } else {
        setting_ms(run.time_limit_ms)
    };
    let begun = Sentence::default()
        .and(format!("{members}{plant}, {place}, served a {} workload for {served}", run.workload));
    if faults.is_empty() {
        return begun.and(" without faults; ");
    }
    let verified = faults.iter().filter(|fault| fault.state == FaultState::Verified).count();
    let proof = if verified == faults.len() {
        " every one seen to bite and seen to be gone; ".to_owned()
    } else {
        format!(" {} of them seen to bite and seen to be gone; ", len(verified))
    };
    begun
        .and(" under ")
        .and_strong(plural(u64::try_from(faults.len()).unwrap_or(u64::MAX), "fault"))
        .and(",")
        .and(proof)
}

fn held(begun: Sentence, results: &Results) -> Sentence {
    let said =
        begun.and_strong(format!("{} operations", count(results.operations.total.invoked))).and(format!(
            " and {} later no promise was broken",
            plural(u64::try_from(results.elections.len()).unwrap_or(u64::MAX), "election")
        ));
    match worst_outage(&results.outages) {
        Some(worst) => said
            .and(", and the longest time without an acknowledged write was ")
            .and_strong(duration(outage_ms(worst)))
            .and("."),
        None => said.and(", and no client waited long for a write."),
    }
}

fn broken(begun: Sentence, results: &Results) -> Sentence {
    let failing: Vec<_> = results.checks.iter().filter(|check| check.verdict == Verdict::Invalid).collect();
    let said = begun.and(format!("among {} operations ", count(results.operations.total.invoked)));
    let said = said.and_strong(format!(
        "{} of {} checks found a broken promise",
        len(failing.len()),
        len(results.checks.len())
    ));
    match failing.first() {
        Some(first) => said.and(": ").and(sentence_end(&first.summary)),
        None => said.and("."),
    }
}

fn undecided(begun: Sentence, results: &Results) -> Sentence {
    let why = results.checks.iter().find(|check| check.verdict == Verdict::Unknown);
    let said = begun.and_strong("whether every promise was kept is not known");
    let said = if results.interrupted { said.and(" (the run was stopped early)") } else { said };
    match why {
        Some(first) => said.and(": ").and(sentence_end(&first.summary)),
        None => said.and("."),
    }
}

/// The timeline's finding: what outages have to do with faults.
pub fn timeline(results: &Results, faults: &[FaultRecord]) -> Sentence {
    let outages = &results.outages;
    let Some(worst) = worst_outage(outages) else {
        return match faults.len() {
            0 => Sentence::strong("Nothing was broken, and writes were acknowledged throughout."),
            _ => Sentence::strong("No fault kept clients from having writes acknowledged."),
        };
    };
    let unexplained = outages.iter().filter(|outage| outage.fault.is_none()).count();
    let outlasting = outages.iter().filter(|outage| outlasts_its_fault(outage, faults)).count();
    let said = if unexplained == 0 && outlasting == 0 {
        Sentence::strong("Each outage begins with a fault and ends before the fault does.")
    } else if unexplained == 0 {
        Sentence::strong(format!(
            "Each outage begins with a fault; {} of {} last until it is healed or longer.",
            len(outlasting),
            len(outages.len())
        ))
    } else {
        Sentence::strong(format!(
            "{} of {} outages have no fault behind them.",
            len(unexplained),
            len(outages.len())
        ))
    };
    let open = if worst.open { ", open at the end of the run" } else { "" };
    let cause = worst.fault.as_ref().map(|id| format!(", under {id}")).unwrap_or_default();
    let said = said.and(format!(" The longest took {}{cause}{open}.", duration(outage_ms(worst))));
    let harmless: Vec<&str> = faults
        .iter()
        .filter(|fault| fault.injected_ns.is_some())
        .filter(|fault| !outages.iter().any(|outage| outage.fault.as_deref() == Some(&fault.id)))
        .map(|fault| fault.id.as_str())
        .collect();
    match harmless.as_slice() {
        [] => said,
        [one] => said.and(format!(" {one} cost clients nothing.")),
        some @ ([_, _] | [_, _, _]) => said.and(format!(" {} cost clients nothing.", some.join(", "))),
        many => said.and(format!(" {} faults cost clients nothing.", len(many.len()))),
    }
}

fn outlasts_its_fault(outage: &Outage, faults: &[FaultRecord]) -> bool {
    let fault = faults.iter().find(|fault| outage.fault.as_deref() == Some(&fault.id));
    outage.open || fault.and_then(|fault| fault.heal_asked_ns).is_some_and(|healing| outage.to_ns > healing)
}

/// The elections' finding: what a failover costs, and which phase it is spent in.
pub fn elections(elections: &[Election]) -> Sentence {
    let mut totals: Vec<(f64, &Election)> =
        elections.iter().filter_map(|election| election.total_ms.map(|total| (total, election))).collect();
    totals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(&(slowest, at)) = totals.last() else {
        return if elections.is_empty() {
            Sentence::strong("No leader changed.")
        } else {
            Sentence::strong(format!("{} elections, none of them measured to the end.", len(elections.len())))
        };
    };
    let values: Vec<f64> = totals.iter().map(|total| total.0).collect();
    let said = match (values.as_slice(), nearest_rank(&values, 50.0)) {
        ([only], _) => Sentence::strong(format!("The one change of leader took {}.", duration(*only))),
        (_, Some(median)) => Sentence::strong(format!(
            "A change of leader takes {} at the median, {} at most ({}).",
            duration(median),
            duration(slowest),
            at.id
        )),
        (_, None) => Sentence::default(),
    };
    let said = greater_part(&totals).map(|text| said.clone().and(text)).unwrap_or(said);
    let missing = elections.len() - totals.len();
    if missing == 0 {
        said
    } else {
        said.and(format!(" {} of {} were not measured to the end.", len(missing), len(elections.len())))
    }
}

/// Names the phase in which most of the time of all elections was spent.
fn greater_part(totals: &[(f64, &Election)]) -> Option<String> {
    let all: f64 = totals.iter().map(|total| total.0).sum();
    let (phase, spent) = Phase::ALL
        .into_iter()
        .map(|phase| (phase, totals.iter().filter_map(|(_, election)| phase.of(election)).sum::<f64>()))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = spent / all;
    if all <= 0.0 || share < GREATER_PART {
        return None;
    }
    let what = match phase {
        Phase::Detection => "the time in which a leader that is gone is still believed",
        Phase::Election => "the time until a vote is decided",
        Phase::Synchronization => "the time until the new epoch is established",
        Phase::FirstWrite => "the time until clients have found the new leader",
    };
    Some(format!(" {:.0} % of all of it is {}: {what}.", share * 100.0, phase.name()))
}

/// The latency's finding.
pub fn latency(results: &Results) -> Sentence {
    let calm = results.latency.get(&LatencyClass::WriteCalm);
    let hot = results.latency.get(&LatencyClass::WriteFault);
    match (calm, hot) {
        (Some(calm), Some(hot)) => Sentence::strong(format!(
            "Calm writes take {} ms at the median and {} at p99; under faults the median is {} and p99 {}.",
            ms(calm.p50_ms),
            ms(calm.p99_ms),
            ms(hot.p50_ms),
            ms(hot.p99_ms)
        )),
        (Some(only), None) => Sentence::strong(format!(
            "Writes take {} ms at the median and {} at p99.",
            ms(only.p50_ms),
            ms(only.p99_ms)
        ))
        .and(" None was under a fault."),
        (None, Some(only)) => Sentence::strong(format!(
            "Writes under faults take {} ms at the median and {} at p99.",
            ms(only.p50_ms),
            ms(only.p99_ms)
        ))
        .and(" None was calm."),
        (None, None) => Sentence::strong("No write was acknowledged."),
    }
}

/// The faults' finding.
pub fn faults(faults: &[FaultRecord]) -> Sentence {
    if faults.is_empty() {
        return Sentence::strong("Nothing was broken.").and(" The run had no nemesis.");
    }
    let number = |state| faults.iter().filter(|fault| fault.state == state).count();
    let gone = faults.iter().filter(|fault| fault.verified_healed_ns.is_some()).count();
    let said = Sentence::strong(format!(
        "{} asked, {} verified, {} seen gone.",
        len(faults.len()),
        len(number(FaultState::Verified)),
        len(gone)
    ));
    let odd: Vec<String> = [
        (FaultState::Unverified, "never seen to bite"),
        (FaultState::Leaked, "not seen to be gone"),
        (FaultState::NoTarget, "without a member that fitted"),
        (FaultState::Unsupported, "impossible on this cluster"),
    ]
    .into_iter()
    .filter(|(state, _)| number(*state) > 0)
    .map(|(state, words)| format!("{} {words}", len(number(state))))
    .collect();
    let said = if odd.is_empty() { said } else { said.and_strong(format!(" {}.", odd.join(", "))) };
    said.and(" A fault counts only when its effect was seen in the target, and as healed only when the effect was seen to be gone.")
}

/// The checks' finding.
pub fn checks(results: &Results) -> Sentence {
    let all = results.checks.len();
    let number = |verdict| results.checks.iter().filter(|check| check.verdict == verdict).count();
    let (invalid, unknown) = (number(Verdict::Invalid), number(Verdict::Unknown));
    match (invalid, unknown) {
        _ if all == 0 => Sentence::strong("Nothing was checked."),
        (0, 0) if all == 1 => Sentence::strong("The one check holds."),
        (0, 0) => Sentence::strong(format!("All {} hold.", len(all))),
        (0, _) => Sentence::strong(format!("{} of {} could not be decided.", len(unknown), len(all)))
            .and(" What is not decided is never called valid."),
        (_, 0) => Sentence::strong(format!("{} of {} fail.", len(invalid), len(all))),
        (_, _) => Sentence::strong(format!(
            "{} of {} fail, {} could not be decided.",
            len(invalid),
            len(all),
            len(unknown)
        )),
    }
}

/// The phases of an election in words: `detection 598, election 24, sync 31, first write 18`.
pub fn phases(election: &Election) -> String {
    let known: Vec<String> = Phase::ALL
        .into_iter()
        .filter_map(|phase| phase.of(election).map(|value| format!("{} {}", phase.short(), whole_ms(value))))
        .collect();
    if known.is_empty() { "phases not measured".to_owned() } else { known.join(", ") }
}

/// The longest outage.
pub fn worst_outage(outages: &[Outage]) -> Option<&Outage> {
    outages.iter().max_by_key(|outage| outage.to_ns.saturating_sub(outage.from_ns))
}

/// How long an outage took.
pub fn outage_ms(outage: &Outage) -> f64 {
    ns_to_ms(outage.to_ns.saturating_sub(outage.from_ns))
}

/// The median of the totals of the elections that were measured to the end.
pub fn median_total(elections: &[Election]) -> Option<f64> {
    let mut totals: Vec<f64> = elections.iter().filter_map(|election| election.total_ms).collect();
    totals.sort_by(f64::total_cmp);
    nearest_rank(&totals, 50.0)
}

/// The mean rate of answered operations in a second.
pub fn mean_rate(results: &Results) -> Option<f64> {
    let seconds = results.timings.workload_ms / 1000.0;
    let ok = crate::numbers::lossy(results.operations.total.ok);
    (seconds > 0.0).then(|| ok / seconds)
}

/// The text as a sentence: with a full stop.
pub(crate) fn sentence_end(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// A long time to a tenth of a second, as a setting is written.
fn about_seconds(ms_value: f64) -> String {
    setting_ms(u64::from(crate::numbers::to_u32((ms_value / 100.0).round(), u32::MAX)) * 100)
}

/// Failures in words, those apart that are answers: `12 failed and 380 refused for their version`.
pub fn failures(total: OutcomeCounts) -> String {
    let failed = count(total.fail.saturating_sub(total.refused));
    match total.refused {
        0 => format!("{failed} failed"),
        refused => format!("{failed} failed, {} refused for their version", count(refused)),
    }
}

fn small_number(n: u32) -> String {
    const WORDS: [&str; 13] = [
        "No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven",
        "Twelve",
    ];
    let at = usize::try_from(n).unwrap_or(usize::MAX);
    WORDS.get(at).map_or_else(|| count(u64::from(n)), |word| (*word).to_owned())
}

/// The share of `part` in `whole`, in per cent of the width of a drawing.
pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole * 100.0).clamp(0.0, 100.0) } else { 0.0 }
}
