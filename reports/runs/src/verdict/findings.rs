//! The sentence that each part of a report opens with, drawn from the data.
//!
//! A reader who stops after the first line of a part should know what it shows. So these sentences say what
//! was found and not what is drawn, name the exception (E10, F4) and never claim more than the numbers do:
//! what has no data says so.

use std::collections::{BTreeMap, BTreeSet};

use checker::verdict::{CheckResult, Verdict};

use crate::broken as promises;
use crate::election_kinds::NO_FAULT;
use crate::faults::{FaultRecord, FaultState};
use crate::numbers::{count, duration, len, lossy, ms, plural, setting_ms, whole_ms};
use crate::outages::touched_by_any;
use crate::results::{
    Election, ElectionKind, KeyOutage, LatencyClass, Outage, OutcomeCounts, Phase, Results, RunInfo,
};
use crate::standing::{self, Standing};
use crate::unsent::Unsent;
use crate::verdicts::word;

/// Characters of a counterexample's sentence with which it fits into the verdict's.
const MOST_STORY: usize = 220;
/// Characters of a promise's name at most.
const MOST_PROMISE: usize = 90;
/// Other broken promises that the verdict's sentence names.
const MOST_PROMISES: usize = 2;
/// Characters of a reason in the verdict's sentence at most.
const MOST_WHY: usize = 400;
/// Characters of a command in the verdict's sentence at most.
const MOST_COMMAND: usize = 80;
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
        Verdict::Valid if run.is_wrapped() => passed(begun, run, results),
        Verdict::Valid => held(begun, results),
        Verdict::Invalid => broken(begun, run, results),
        Verdict::Unknown => undecided(begun, results),
    }
}

fn opening(run: &RunInfo, results: &Results, faults: &[FaultRecord]) -> Sentence {
    let members = {
        let n = run.nodes;
        let many = if n == 1 { "member" } else { "members" };
        let number = small_number(n);
        let beside = match run.observers {
            0 => String::new(),
            1 => "and one observer".to_owned(),
            more => format!("and {} observers", small_number(more).to_lowercase()),
        };
        let words = [number.as_str(), &run.system.before, many, &beside, &run.system.after];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let mutant = match &run.mutant {
        Some(bug) => format!(" with the planted bug {bug}"),
        None => String::new(),
    };
    let place = run.cluster.place();
    let served = if results.timings.workload_ms > 0.0 {
        about_seconds(results.timings.workload_ms)
    } else {
        setting_ms(run.time_limit_ms)
    };
    let work = match &run.command {
        None if run.is_wrapped() => "the test commands in their containers".to_owned(),
        Some(words) => format!("`{}`", shortened(&words.join(" "), MOST_COMMAND)),
        None => format!("{} workload", with_article(&run.workload)),
    };
    let begun = Sentence::default().and(format!("{members}{mutant}, {place}, served {work} for {served}"));
    // A reader who stops here must not take the bench for the system.
    let begun = match results.unsent.as_ref().filter(|unsent| unsent.is_notable()) {
        Some(unsent) => begun
            .and(", of which ")
            .and_strong(format!("the bench itself never sent {}", unsent.in_figures()))
            .and(format!(", because {}, so that nothing is measured,", unsent.why())),
        None => begun,
    };
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

/// The word with its article: `a register`, `an append`.
fn with_article(word: &str) -> String {
    let vowel = word.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']);
    format!("{} {word}", if vowel { "an" } else { "a" })
}

/// A test of the user's own passed.
fn passed(begun: Sentence, run: &RunInfo, results: &Results) -> Sentence {
    let who = if run.command.is_some() { "the command" } else { "the test commands" };
    let said = begun.and_strong(format!("{who} succeeded"));
    match u64::try_from(results.elections.len()).unwrap_or(u64::MAX) {
        0 => said.and("."),
        some => said.and(format!(" through {}.", changes(some))),
    }
}

fn held(begun: Sentence, results: &Results) -> Sentence {
    let elections = match u64::try_from(results.elections.len()).unwrap_or(u64::MAX) {
        0 => String::new(),
        some => format!(" and {}", changes(some)),
    };
    let said = begun
        .and_strong(format!("{} operations", count(results.operations.total.invoked)))
        .and(format!("{elections} later no promise was broken"));
    let said = match unkept(results) {
        Some(measured) => said.and("; ").and_strong(shortened(&measured.summary, MOST_WHY)),
        None => said,
    };
    match worst_outage(&results.outages) {
        _ if results.unsent.as_ref().is_some_and(Unsent::is_notable) => said.and("."),
        Some(worst) => said
            .and(", and the longest time without an acknowledged write was ")
            .and_strong(duration(worst.ms()))
            .and(of_one_key(results))
            .and("."),
        None if own_outage(results).is_some() => {
            said.and(", and some write was always acknowledged before long").and(of_one_key(results)).and(".")
        }
        None => said.and(", and no client waited long for a write."),
    }
}

/// The longest outage of a single key, where it says more than that of the whole system.
pub fn own_outage(results: &Results) -> Option<&KeyOutage> {
    let whole = worst_outage(&results.outages).map_or(0.0, Outage::ms);
    results.key_outages.as_ref()?.worst().filter(|of_key| of_key.outage.ms() > whole)
}

/// The same, behind what is said of the whole system.
fn of_one_key(results: &Results) -> String {
    own_outage(results)
        .map(|own| format!("; to key {} alone none was for {}", own.key, duration(own.outage.ms())))
        .unwrap_or_default()
}

/// How many keys had outages of their own, and the longest, in a sentence behind another; empty where none.
fn keys_with_outages(results: &Results) -> String {
    let Some((keys, worst)) = results.key_outages.as_ref().and_then(|keys| Some((keys, keys.worst()?)))
    else {
        return String::new();
    };
    let cause = worst.outage.fault.as_ref().map(|id| format!(", under {id}")).unwrap_or_default();
    let open = if worst.outage.open { ", open at the end" } else { "" };
    format!(
        " {} of {} keys had outages of their own, while others were served: to key {} no write was \
         acknowledged for {}{cause}{open}.",
        count(keys.with),
        count(keys.keys),
        worst.key,
        duration(worst.outage.ms())
    )
}

/// What was measured, because it was not promised, and was not kept; of several the last, which is nearest to
/// what is left at the end.
fn unkept(results: &Results) -> Option<&CheckResult> {
    results.checks.iter().rfind(|check| Standing::of(check) == Standing::NotPromised)
}

fn broken(begun: Sentence, run: &RunInfo, results: &Results) -> Sentence {
    let failing: Vec<_> = results.checks.iter().filter(|check| check.verdict == Verdict::Invalid).collect();
    let among = match run.is_wrapped() {
        true => String::new(),
        false => format!("among {} operations ", count(results.operations.total.invoked)),
    };
    let said = begun.and(among);
    let said = said.and_strong(format!(
        "{} of {} checks found a broken promise",
        len(failing.len()),
        len(results.checks.len())
    ));
    let Some((at, simplest)) = promises::simplest(&results.checks) else { return said.and(".") };
    let said = said.and(": ").and_strong(shortened(&simplest.promise, MOST_PROMISE));
    let said = match simplest.fact {
        Some(fact) => said.and(format!(": {}", sentence_end(&shortened(&fact, MOST_WHY)))),
        // The check's own words, where they say more than which promise it is.
        None => match results.checks[at].counterexample.as_ref().map(|found| found.sentence.as_str()) {
            Some(story) if story.len() <= MOST_STORY => said.and(format!(": {}", sentence_end(story))),
            _ if simplest.promise == results.checks[at].name => said.and("."),
            _ => said.and(format!(" ({}).", shortened(&results.checks[at].name, MOST_PROMISE))),
        },
    };
    let others = promises::others(&results.checks, &simplest.promise);
    match others.as_slice() {
        [] => said,
        some => {
            // Of many one: the screen is small, and the checks below have them all.
            let named = if some.len() <= MOST_PROMISES { some.len() } else { 1 };
            let told: Vec<String> =
                some.iter().take(named).map(|promise| shortened(promise, MOST_PROMISE)).collect();
            let more = some.len() - named;
            let more = if more > 0 { format!(", and {} more", len(more)) } else { String::new() };
            said.and(format!(" Also: {}{more}.", told.join(", ")))
        }
    }
}

/// What lies deeper explains what lies above it: a member that died leaves its last state unread and its side
/// without clients. So of several checks that decided nothing the first of these is the reason.
const DEPTH: [&str; 8] =
    ["finished", "history", "fault-record", "processes", "harness-lag", "faults", "leader-faults", "sides"];
/// Behind the other checks: it is weak for any of their reasons.
const SHALLOWEST: &str = "load";

/// The checks that decided nothing, the deepest reason first.
pub fn reasons(results: &Results) -> Vec<&CheckResult> {
    let mut open: Vec<&CheckResult> =
        results.checks.iter().filter(|check| check.verdict == Verdict::Unknown).collect();
    let depth = |check: &&CheckResult| {
        let place = DEPTH.iter().position(|name| *name == check.name);
        place.unwrap_or(DEPTH.len() + usize::from(check.name == SHALLOWEST))
    };
    open.sort_by_key(depth);
    open
}

/// The word that a report opens with, and the verdict whose colour and sign it has.
pub fn headline(results: &Results) -> (&'static str, Verdict) {
    match (results.verdict, results.interrupted) {
        (Verdict::Invalid, _) | (_, false) => (word(results.verdict), results.verdict),
        (Verdict::Valid | Verdict::Unknown, true) => ("interrupted", Verdict::Unknown),
    }
}

fn undecided(begun: Sentence, results: &Results) -> Sentence {
    let open = reasons(results);
    let said = begun.and_strong("whether every promise was kept is not known");
    match open.first() {
        Some(first) => said.and(": ").and(sentence_end(&shortened(&first.summary, MOST_WHY))),
        None => said.and("."),
    }
}

/// The timeline's finding: what outages have to do with faults.
pub fn timeline(run: &RunInfo, results: &Results, faults: &[FaultRecord]) -> Sentence {
    let outages = &results.outages;
    if run.is_wrapped() {
        let who = if run.command.is_some() { "A command" } else { "Test commands" };
        return Sentence::strong(format!("{who} worked on the members, and no clients of the bench's."));
    }
    if results.operations.total.invoked == 0 {
        return Sentence::strong("No operation is on record.");
    }
    let of_keys = keys_with_outages(results);
    let Some(worst) = worst_outage(outages) else {
        return match faults.len() {
            _ if !of_keys.is_empty() => Sentence::strong("No outage was one of all keys.").and(of_keys),
            0 => Sentence::strong("Nothing was broken, and writes were acknowledged throughout."),
            _ => Sentence::strong("No fault kept clients from having writes acknowledged."),
        };
    };
    let said = Sentence::strong(outages_and_faults(outages, faults));
    let open = if worst.open { ", open at the end of the run" } else { "" };
    let cause = worst.fault.as_ref().map(|id| format!(", under {id}")).unwrap_or_default();
    let said = said.and(format!(" The longest took {}{cause}{open}.", duration(worst.ms()))).and(&of_keys);
    // Which faults the outages of keys fell under is known of the longest alone.
    if !of_keys.is_empty() {
        return said;
    }
    // Whoever is blamed for an outage, of another fault that was at work meanwhile nobody knows that it cost
    // nothing.
    let blamed: BTreeSet<&str> = outages.iter().filter_map(|outage| outage.fault.as_deref()).collect();
    let harmless: Vec<&str> = faults
        .iter()
        .filter(|fault| fault.injected_ns.is_some() && !blamed.contains(fault.id.as_str()))
        .filter(|fault| !touched_by_any(outages, fault))
        .map(|fault| fault.id.as_str())
        .collect();
    match harmless.as_slice() {
        [] => said,
        [one] => said.and(format!(" {one} cost clients nothing.")),
        some @ ([_, _] | [_, _, _]) => said.and(format!(" {} cost clients nothing.", some.join(", "))),
        many => said.and(format!(" {} faults cost clients nothing.", len(many.len()))),
    }
}

/// How many outages begin with a fault, whether they end before it does, and how long the others are.
fn outages_and_faults(outages: &[Outage], faults: &[FaultRecord]) -> String {
    let healing: BTreeMap<&str, Option<u64>> =
        faults.iter().map(|fault| (fault.id.as_str(), fault.heal_asked_ns)).collect();
    let (explained, others): (Vec<&Outage>, Vec<&Outage>) =
        outages.iter().partition(|outage| outage.fault.is_some());
    let longest = others.iter().map(|outage| outage.ms()).fold(0.0, f64::max);
    if explained.is_empty() {
        return match outages.len() {
            1 => "The one outage has no fault behind it.".to_owned(),
            n => format!("None of {} outages has a fault behind it.", len(n)),
        };
    }
    let outlasting = explained
        .iter()
        .filter(|outage| {
            let healed = outage.fault.as_deref().and_then(|id| healing.get(id).copied().flatten());
            outage.open || healed.is_some_and(|healed| outage.to_ns > healed)
        })
        .count();
    let subject = match (explained.len(), outages.len()) {
        (1, 1) => "The one outage".to_owned(),
        (some, all) if some == all => "Each outage".to_owned(),
        (some, all) => format!("{} of {} outages", len(some), len(all)),
    };
    let many = explained.len() != outages.len() && explained.len() > 1;
    let begins = if many { "begin" } else { "begins" };
    let rest = match outlasting {
        0 => format!(" and {} before the fault does", if many { "end" } else { "ends" }),
        n if n == explained.len() => {
            format!(" and {} until it is healed or longer", if many { "last" } else { "lasts" })
        }
        1 => "; 1 of them lasts until it is healed or longer".to_owned(),
        n => format!("; {} of them last until it is healed or longer", len(n)),
    };
    let others = match others.len() {
        0 => String::new(),
        1 => format!("; the one without took {}", duration(longest)),
        _ => format!("; those without one took {} at most", duration(longest)),
    };
    format!("{subject} {begins} with a fault{rest}{others}.")
}

/// The finding where nobody knows who leads: how often and for how long clients waited.
pub fn outages(outages: &[Outage]) -> Sentence {
    let Some(worst) = worst_outage(outages) else {
        return Sentence::strong("No client waited long for a write.");
    };
    let cause = worst.fault.as_ref().map(|id| format!(", under {id}")).unwrap_or_default();
    let longest = duration(worst.ms());
    match outages.len() {
        1 => Sentence::strong(format!("The one outage took {longest}{cause}.")),
        n => Sentence::strong(format!("The longest of {} outages took {longest}{cause}.", len(n))),
    }
}

/// The elections' finding: what a failover costs, kind by kind of fault, and which phase it is spent in.
pub fn elections(results: &Results) -> Sentence {
    let elections = results.elections.as_slice();
    let mut kinds: Vec<&ElectionKind> =
        results.election_kinds.iter().filter(|kind| kind.max_ms.is_some()).collect();
    if kinds.is_empty() {
        return if elections.is_empty() && results.member_spans.is_empty() {
            Sentence::strong("What the members were is not on record.")
        } else if elections.is_empty() {
            Sentence::strong("No leader changed.")
        } else {
            Sentence::strong(format!("{}, none measured to the end.", changes(len_u64(elections.len()))))
        };
    }
    let said = match kinds.as_slice() {
        [only] if only.measured == 1 => Sentence::strong(format!(
            "The one change of leader took {}{}.",
            duration(only.max_ms.unwrap_or(0.0)),
            after_kind(&only.kind)
        )),
        [only] => {
            Sentence::strong(format!("A change of leader{} takes {}.", after_kind(&only.kind), figures(only)))
        }
        _ => {
            // The most frequent first; the table has the others.
            kinds.sort_by_key(|kind| std::cmp::Reverse(kind.measured));
            let told: Vec<String> = kinds
                .iter()
                .take(MOST_KINDS_TOLD)
                .map(|kind| format!("{} {}", shortened(&kind.kind, MOST_KIND), figures(kind)))
                .collect();
            let more = kinds.len().saturating_sub(MOST_KINDS_TOLD);
            let more = if more > 0 { format!("; {} more kinds below", len(more)) } else { String::new() };
            Sentence::strong(format!(
                "What a change of leader takes is the fault's: {}{more}.",
                told.join("; ")
            ))
        }
    };
    let said = greater_part(results, &kinds).map(|text| said.clone().and(text)).unwrap_or(said);
    let measured: u64 = results.election_kinds.iter().map(|kind| kind.measured).sum();
    match len_u64(elections.len()).saturating_sub(measured) {
        0 => said,
        1 => said.and(format!(" 1 of {} was not measured to the end.", len(elections.len()))),
        n => said.and(format!(" {} of {} were not measured to the end.", count(n), len(elections.len()))),
    }
}

/// Kinds of faults in a sentence at most.
const MOST_KINDS_TOLD: usize = 4;
/// Characters of a kind's name at most.
pub const MOST_KIND: usize = 60;

fn len_u64(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

/// A number of changes of leader.
pub fn changes(number: u64) -> String {
    format!("{} of leader", plural(number, "change"))
}

fn after_kind(kind: &str) -> String {
    if kind == NO_FAULT {
        " without a fault".to_owned()
    } else {
        format!(" after {}", shortened(kind, MOST_KIND))
    }
}

/// The figures of a kind in words: `12 ms at the median, 20 at most`; of few the largest alone.
fn figures(kind: &ElectionKind) -> String {
    let most = kind.max_ms.unwrap_or(0.0);
    match (kind.p50_ms, kind.p99_ms) {
        (Some(median), Some(p99)) => {
            format!(
                "{} at the median, {} at p99, {} at most",
                duration(median),
                duration(p99),
                duration(most)
            )
        }
        (Some(median), None) => format!("{} at the median, {} at most", duration(median), duration(most)),
        (None, _) => {
            format!("{} at most ({})", duration(most), if kind.measured == 1 { "one" } else { "two" })
        }
    }
}

/// The same in few words, with the names of the percentiles: `7: p50 262, largest 271 ms`.
pub fn kind_in_brief(kind: &ElectionKind) -> String {
    let named = [("p50", kind.p50_ms), ("p90", kind.p90_ms), ("p99", kind.p99_ms), ("largest", kind.max_ms)];
    let known: Vec<String> = named
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name} {}", whole_ms(value))))
        .collect();
    let figures =
        if known.is_empty() { "not measured".to_owned() } else { format!("{} ms", known.join(", ")) };
    format!("{} {}: {figures}", shortened(&kind.kind, MOST_KIND), count(kind.count))
}

/// Names the phase in which most of the time of the elections was spent that took the most time together.
fn greater_part(results: &Results, kinds: &[&ElectionKind]) -> Option<String> {
    let weight = |kind: &ElectionKind| kind.p50_ms.or(kind.max_ms).unwrap_or(0.0) * lossy(kind.measured);
    let slowest = kinds.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)))?;
    let medians = [
        (Phase::Detection, slowest.detection_p50_ms),
        (Phase::Election, slowest.election_p50_ms),
        (Phase::Synchronization, slowest.sync_p50_ms),
        (Phase::FirstWrite, slowest.first_write_p50_ms),
    ];
    let all: f64 = medians.iter().filter_map(|(_, ms)| *ms).sum();
    let (phase, spent) = medians
        .into_iter()
        .filter_map(|(phase, ms)| ms.map(|ms| (phase, ms)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = spent / all;
    if all <= 0.0 || share < GREATER_PART || results.elections.len() < 2 {
        return None;
    }
    let what = match phase {
        Phase::Detection => "the time in which a leader that is gone is still believed",
        Phase::Election => "the time until a vote is decided",
        Phase::Synchronization => "the time until the new epoch is established",
        Phase::FirstWrite => "the time until clients have found the new leader",
    };
    let whose =
        if kinds.len() > 1 { format!(" of {}", shortened(&slowest.kind, MOST_KIND)) } else { String::new() };
    Some(format!(" {:.0} %{whose} is {}: {what}.", share * 100.0, phase.name()))
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
        (None, None) if results.operations.total.invoked == 0 => {
            Sentence::strong("No operation is on record.")
        }
        (None, None) => Sentence::strong("No write was acknowledged."),
    }
}

/// The faults' finding.
pub fn faults(run: &RunInfo, faults: &[FaultRecord]) -> Sentence {
    if faults.is_empty() && run.nemeses.is_empty() {
        return Sentence::strong("Nothing was broken.").and(" The run had no nemesis.");
    }
    if faults.is_empty() {
        let names = shortened(&run.nemeses.join(", "), MOST_WHY);
        return Sentence::strong("No fault is on record.").and(format!(" Asked for: {names}."));
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
        (FaultState::MemberDied, "undone while a member was dead"),
        (FaultState::NoTarget, "without a member that fitted"),
        (FaultState::Unsupported, "impossible on this cluster"),
    ]
    .into_iter()
    .filter(|(state, _)| number(*state) > 0)
    .map(|(state, words)| format!("{} {words}", len(number(state))))
    .collect();
    let said = if odd.is_empty() { said } else { said.and_strong(format!(" {}.", odd.join(", "))) };
    said.and(
        " A fault counts only when its effect was seen in the target, and as healed only when the \
        effect was seen to be gone.",
    )
}

/// The checks' finding.
pub fn checks(results: &Results) -> Sentence {
    let all = results.checks.len();
    let number = |verdict| results.checks.iter().filter(|check| check.verdict == verdict).count();
    let (invalid, unknown) = (number(Verdict::Invalid), number(Verdict::Unknown));
    match (invalid, unknown) {
        _ if all == 0 => Sentence::strong("Nothing was checked."),
        (0, 0) => {
            let valid = Standing::Valid.count(&results.checks);
            let beside = standing::others(&results.checks);
            match (all, beside.join("; ")) {
                (1, beside) if beside.is_empty() => Sentence::strong("The one check holds."),
                (_, beside) if beside.is_empty() => Sentence::strong(format!("All {} hold.", len(all))),
                (_, beside) => Sentence::strong(format!("{} of {} hold", len(valid), len(all)))
                    .and(format!("; {beside}.")),
            }
        }
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
    let unknown: Vec<&str> =
        Phase::ALL.into_iter().filter(|phase| phase.of(election).is_none()).map(Phase::short).collect();
    match (known.as_slice(), unknown.as_slice()) {
        ([], _) => "no phase is known".to_owned(),
        (_, []) => known.join(", "),
        (_, unknown) => format!("{}; not known: {}", known.join(", "), unknown.join(", ")),
    }
}

/// The longest outage.
pub fn worst_outage(outages: &[Outage]) -> Option<&Outage> {
    outages.iter().max_by_key(|outage| outage.to_ns.saturating_sub(outage.from_ns))
}

/// The mean rate of answered operations in a second.
pub fn mean_rate(results: &Results) -> Option<f64> {
    let seconds = results.timings.workload_ms / 1000.0;
    let ok = crate::numbers::lossy(results.operations.total.ok);
    (seconds > 0.0).then(|| ok / seconds)
}

/// The text as a sentence: with a full stop.
pub fn sentence_end(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// The text as a whole sentence: with a full stop, and a capital where it begins with a word and not with the
/// name of something (`n3`).
pub fn sentence(text: &str) -> String {
    let mut text = sentence_end(text);
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_word = first.len() > 1 && first.chars().all(|c| c.is_ascii_lowercase());
    if is_word && let Some(letter) = text.get_mut(..1) {
        letter.make_ascii_uppercase();
    }
    text
}

/// The text, or its beginning where it has more than `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", text[..cut].trim_end()),
        None => text.to_owned(),
    }
}

/// A long time to a tenth of a second, as a setting is written.
fn about_seconds(ms_value: f64) -> String {
    setting_ms(u64::from(crate::numbers::to_u32((ms_value / 100.0).round(), u32::MAX)) * 100)
}

/// Failures in words, those apart that are answers or that no member was sent: `12 failed, 5 not sent, 380
/// compare-and-sets refused`.
pub fn failures(total: OutcomeCounts) -> String {
    let OutcomeCounts { fail, refused, unsent, .. } = total;
    let mut words = format!("{} failed", count(fail.saturating_sub(refused).saturating_sub(unsent)));
    for (number, what) in [(unsent, "not sent"), (refused, "compare-and-sets refused")] {
        if number > 0 {
            words.push_str(&format!(", {} {what}", count(number)));
        }
    }
    words
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
pub fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole * 100.0).clamp(0.0, 100.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::KeyOutages;

    #[test]
    fn what_the_bench_did_not_send_stands_in_the_first_sentence_where_it_is_a_notable_share() {
        let run = RunInfo { nodes: 3, workload: "set".to_owned(), ..RunInfo::default() };
        let mut results = Results::new(Verdict::Valid, &run);
        let outage = Outage { to_ns: 2_940_000_000, ..Outage::default() };
        results.outages = vec![outage];
        let unsent = |replaced| Unsent { due: 1000, replaced, no_client_free: 0, ..Unsent::default() };
        results.unsent = Some(unsent(49));
        let sentence = |results: &Results| verdict(&run, results, &[]).plain();
        assert!(!sentence(&results).contains("never sent"), "{}", sentence(&results));
        assert!(sentence(&results).contains("2.94 s"));
        results.unsent = Some(unsent(190));
        let said = sentence(&results);
        assert!(
            said.contains(
                "of which the bench itself never sent 190 of 1,000 operations (19 %), because clients were \
                 being replaced, so that nothing is measured,"
            ) && !said.contains("2.94 s"),
            "{said}"
        );
    }

    #[test]
    fn a_key_that_was_out_for_longer_than_the_whole_stands_beside_it() {
        let run = RunInfo { nodes: 3, workload: "set".to_owned(), ..RunInfo::default() };
        let mut results = Results::new(Verdict::Valid, &run);
        results.operations.total.invoked = 900;
        results.outages = vec![Outage { to_ns: 126_000_000, ..Outage::default() }];
        let (to_ns, fault) = (3_700_000_000, Some("F1".into()));
        let of_key = KeyOutage { key: 18, outage: Outage { to_ns, fault, ..Outage::default() } };
        let of_keys = KeyOutages { keys: 20, with: 4, longest: vec![of_key] };
        let faults =
            [FaultRecord { id: "F2".into(), asked_ns: 9, injected_ns: Some(9), ..FaultRecord::default() }];
        let said = |results: &Results| {
            (verdict(&run, results, &[]).plain(), timeline(&run, results, &faults).plain())
        };
        assert!(said(&results).0.ends_with("the longest time without an acknowledged write was 126 ms."));
        results.key_outages = Some(of_keys.clone());
        let (sentence, line) = said(&results);
        assert!(sentence.ends_with("write was 126 ms; to key 18 alone none was for 3.70 s."), "{sentence}");
        let keys = "4 of 20 keys had outages of their own, while others were served: to key 18 no write was \
                    acknowledged for 3.70 s, under F1.";
        assert!(line.ends_with(keys) && !line.contains("nothing"), "{line}");
        results.outages.clear();
        let (sentence, line) = said(&results);
        assert!(sentence.contains("acknowledged before long; to key 18 alone none was for 3.70 s."));
        assert_eq!(line, format!("No outage was one of all keys. {keys}"));
        results.key_outages = Some(KeyOutages { with: 0, longest: Vec::new(), ..of_keys });
        assert!(said(&results).0.ends_with("and no client waited long for a write."));
    }

    #[test]
    fn phases_that_nobody_knows_are_named_and_are_no_zeros() {
        let mut election = Election { detection_ms: Some(30.0), ..Election::default() };
        assert_eq!(phases(&election), "detection 30; not known: election, sync, first write");
        election.detection_ms = None;
        assert_eq!(phases(&election), "no phase is known");
    }

    #[test]
    fn of_what_decided_nothing_the_deepest_reason_leads() {
        let mut results = Results::new(Verdict::Unknown, &RunInfo::default());
        let names = ["load", "durability", "faults", "linearizable", "processes", "leader-faults"];
        results.checks = names.map(|name| CheckResult::new(name, Verdict::Unknown, name)).to_vec();
        results.checks.push(CheckResult::new("finished", Verdict::Valid, "it holds"));
        let order: Vec<&str> = reasons(&results).into_iter().map(|check| check.name.as_str()).collect();
        assert_eq!(order, ["processes", "faults", "leader-faults", "durability", "linearizable", "load"]);
        let sentence = undecided(Sentence::default(), &results).plain();
        assert!(sentence.ends_with(": processes."), "{sentence}");
    }

    #[test]
    fn who_interrupts_is_told_so_unless_a_promise_was_broken() {
        let mut results = Results::new(Verdict::Unknown, &RunInfo::default());
        results.interrupted = true;
        assert_eq!(headline(&results), ("interrupted", Verdict::Unknown));
        results.verdict = Verdict::Valid;
        assert_eq!(headline(&results), ("interrupted", Verdict::Unknown), "the folder of an older build");
        results.verdict = Verdict::Invalid;
        assert_eq!(headline(&results), ("violation", Verdict::Invalid));
    }
}
