//! What every rendering says of a night in the same words: its headline, its cases, its thresholds, its
//! planted bugs.

use std::collections::BTreeMap;

use checker::verdict::Verdict;
use nights::findings::{Finding, State};
use nights::fold::{CaseNight, Night};
use nights::index::{Alarm, Attempt, Comparison, LeftOut};
use nights::measures;
use nights::pile::Pile;
use nights::statistic::Unit;
use nights::threshold::{Judgement, Outcome};
use runs::findings::sentence_end;
use runs::numbers::{count, len, plural};

use super::View;

/// The last night of a view, looked at once.
pub(super) struct Digest<'a> {
    /// What is drawn.
    pub(super) view: View<'a>,
    /// The night.
    pub(super) night: &'a Night,
    /// Its cases, by id.
    pub(super) cases: Vec<CaseNight>,
    /// What it is shown as.
    pub(super) pile: Pile,
    /// The same as a heading.
    pub(super) headline: &'static str,
    /// Why, in a sentence or two.
    pub(super) sentence: String,
}

/// A threshold of a case, judged.
pub(super) struct Judged<'a> {
    /// The case.
    pub(super) case: &'a str,
    /// What came out.
    pub(super) judgement: &'a Judgement,
}

/// A planted bug that was hunted.
pub(super) struct Hunted<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Whether a try convicted it.
    pub(super) is_convicted: bool,
    /// The try that convicted it, or the last.
    pub(super) attempt: &'a Attempt,
    /// How many tries there were.
    pub(super) tries: u64,
}

impl<'a> Digest<'a> {
    /// The last night; none of no nights.
    pub(super) fn of(view: &View<'a>) -> Option<Self> {
        let night = view.nights.last()?;
        let cases = night.cases();
        let (pile, headline, sentence) = headline(night, &cases);
        Some(Self { view: *view, night, cases, pile, headline, sentence })
    }

    /// The exit status; none while the night has no end.
    pub(super) fn status(&self) -> Option<u8> {
        self.night.judged.as_ref().map(|judged| judged.status)
    }

    /// Cases that are not valid, the worst first.
    pub(super) fn not_valid(&self) -> Vec<(&CaseNight, Pile)> {
        let is_not_valid = |case: &&CaseNight| case.pile.is_some_and(|pile| pile != Pile::Valid);
        let mut all: Vec<(&CaseNight, Pile)> =
            self.cases.iter().filter(is_not_valid).filter_map(|case| Some((case, case.pile?))).collect();
        all.sort_by(|a, b| (b.1, &a.0.case).cmp(&(a.1, &b.0.case)));
        all
    }

    /// How many cases each pile has, the worst first, and how many were not run.
    pub(super) fn piles(&self) -> (Vec<(Pile, usize)>, usize) {
        let of = |pile: Pile| self.cases.iter().filter(|case| case.pile == Some(pile)).count();
        let piles = Pile::ALL.into_iter().rev().map(|pile| (pile, of(pile))).collect();
        (piles, self.cases.iter().filter(|case| case.pile.is_none()).count())
    }

    /// The same in words, each that has any: `2 violations`, `1 not run`.
    pub(super) fn piles_in_words(&self) -> Vec<String> {
        let (piles, not_run) = self.piles();
        let some = piles.into_iter().filter(|(_, n)| *n > 0);
        let mut parts: Vec<String> = some.map(|(pile, n)| format!("{} {}", len(n), named(pile, n))).collect();
        if not_run > 0 {
            parts.push(format!("{} not run", len(not_run)));
        }
        parts
    }

    /// What was planned and not run.
    pub(super) fn left_out(&self) -> &'a [LeftOut] {
        self.night.judged.as_ref().map_or(&[], |judged| judged.left_out.as_slice())
    }

    /// Thresholds by what came of them: crossed, too few samples, met.
    pub(super) fn thresholds(&self) -> Vec<Judged<'a>> {
        let all = self.night.judged.iter().flat_map(|judged| &judged.thresholds);
        let mut all: Vec<Judged<'a>> =
            all.flat_map(|(case, all)| all.iter().map(move |judgement| Judged { case, judgement })).collect();
        all.sort_by_key(|one| match one.judgement.outcome {
            Outcome::Crossed => 0,
            Outcome::TooFew => 1,
            Outcome::Met => 2,
        });
        all
    }

    /// Planted bugs that were hunted, by name.
    pub(super) fn hunted(&self) -> Vec<Hunted<'a>> {
        let mut all: BTreeMap<&str, Hunted<'a>> = BTreeMap::new();
        for attempt in &self.night.mutants {
            let is_convicted = attempt.pile == Pile::Violation;
            let first = Hunted { name: &attempt.case, is_convicted, attempt, tries: 0 };
            let hunted = all.entry(&attempt.case).or_insert(first);
            hunted.tries += 1;
            if !hunted.is_convicted {
                (hunted.is_convicted, hunted.attempt) = (is_convicted, attempt);
            }
        }
        all.into_values().collect()
    }

    /// Findings of these states.
    pub(super) fn findings(&self, states: &[State]) -> Vec<&'a Finding> {
        self.view.findings.iter().filter(|finding| states.contains(&finding.state)).collect()
    }

    /// Tonight's findings of a case.
    pub(super) fn findings_of(&self, case: &str) -> Vec<&'a Finding> {
        let tonight = self.findings(&[State::New, State::NewShape, State::Ongoing]);
        tonight.into_iter().filter(|finding| finding.shape.case == case).collect()
    }

    /// Alarms that a comparison confirmed.
    pub(super) fn confirmed(&self) -> impl Iterator<Item = &'a Alarm> {
        self.night.alarms.iter().filter(|alarm| alarm.is_confirmed())
    }

    /// A night's day by its name; the name itself where the night is not among those drawn.
    pub(super) fn day(&self, name: &str) -> String {
        self.view.nights.iter().find(|night| night.begun.night == name).map_or_else(|| name.to_owned(), day)
    }
}

/// The day of a night's start.
pub(super) fn day(night: &Night) -> String {
    night.begun.started_utc.strftime("%Y-%m-%d").to_string()
}

/// What a night is shown as. One that has no end on record, that somebody stopped, or in which no case came
/// to an end, is never valid.
pub(super) fn headline(night: &Night, cases: &[CaseNight]) -> (Pile, &'static str, String) {
    let ran = cases.iter().filter(|case| case.pile.is_some()).count();
    let Some(judged) = &night.judged else {
        let worst = Pile::worst(cases.iter().filter_map(|case| case.pile));
        let pile = if worst == Pile::Violation { worst } else { Pile::Unknown };
        let word = if pile == Pile::Violation { heading(pile) } else { "Not ended" };
        let sentence = format!(
            "This night has no end on record: {} of {} came to an end so far.",
            len(ran),
            plural(number(cases.len()), "case")
        );
        return (pile, word, sentence);
    };
    let mut sentence = sentence_end(&judged.sentence);
    let mut said = |more: &str| {
        let space = if sentence.is_empty() { "" } else { " " };
        sentence = format!("{sentence}{space}{more}");
    };
    let mut word = heading(judged.pile);
    let is_green = judged.pile == Pile::Valid;
    if judged.interrupted {
        said("It was stopped before its end.");
        word = if is_green { "Stopped" } else { word };
    }
    // A shard to which no case falls has nothing to show.
    let nothing = ran == 0 && !(cases.is_empty() && night.begun.shard.is_some());
    if nothing && is_green {
        said("No case came to an end, so nothing was shown.");
        word = if judged.interrupted { word } else { heading(Pile::Unknown) };
    }
    let pile = if is_green && (judged.interrupted || nothing) { Pile::Unknown } else { judged.pile };
    (pile, word, sentence)
}

/// The word for a pile, as a heading.
fn heading(pile: Pile) -> &'static str {
    match pile {
        Pile::Valid => "Valid",
        Pile::Regression => "Regression",
        Pile::Unknown => "Unknown",
        Pile::BenchFailure => "Bench failure",
        Pile::Violation => "Violation",
    }
}

/// The word for so many cases of a pile.
pub(super) fn named(pile: Pile, n: usize) -> &'static str {
    if n == 1 { pile.name() } else { pile.names() }
}

/// The verdict whose colour a pile has.
pub(super) fn tone(pile: Pile) -> Verdict {
    match pile {
        Pile::Valid => Verdict::Valid,
        Pile::Violation => Verdict::Invalid,
        Pile::Regression | Pile::Unknown | Pile::BenchFailure => Verdict::Unknown,
    }
}

/// The glyph that stands beside a pile, so that it is not told by colour alone.
pub(super) fn glyph(pile: Pile) -> char {
    match pile {
        Pile::Regression => '↑',
        Pile::BenchFailure => '!',
        Pile::Valid | Pile::Unknown | Pile::Violation => runs::verdicts::glyph(tone(pile)),
    }
}

/// The word for what came of a threshold.
pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "met",
        Outcome::Crossed => "crossed",
        Outcome::TooFew => "too few samples",
    }
}

/// What came out of a threshold, without the threshold and the number of samples around it.
pub(super) fn result(judgement: &Judgement) -> &str {
    let rest = judgement.sentence.strip_prefix(&judgement.threshold).unwrap_or(&judgement.sentence);
    let rest = rest.trim_start_matches(':').trim();
    let rest = rest.strip_prefix("it is ").unwrap_or(rest);
    rest.strip_suffix(&format!(" of {}", count(judgement.samples))).unwrap_or(rest)
}

/// A number of a series for people.
pub(super) fn shown(series: &str, value: f64) -> String {
    measures::of_series(series).map_or(Unit::Number, |metric| metric.unit()).show(value)
}

/// How often a schedule showed a finding again.
pub(super) fn replays(finding: &Finding) -> String {
    match finding.replays.of {
        0 => "never replayed".to_owned(),
        of => format!("{} of {} replays", count(finding.replays.shown), count(of)),
    }
}

/// What a schedule was shrunk to; none where it was not.
pub(super) fn shrunk(finding: &Finding) -> Option<String> {
    let shrunk = finding.best.shrunk.as_ref()?;
    let of = |(before, after): (u32, u32), noun: &str| {
        format!("{} of {}", count(after), plural(u64::from(before), noun))
    };
    let ms = |ms: u64| runs::numbers::setting_ms(ms);
    let simulator = match shrunk.in_the_simulator {
        Some(true) => "; the simulator shows it as well",
        Some(false) => "; the simulator does not show it",
        None => "",
    };
    Some(format!(
        "{}, {}, {} of {}, in {}{simulator}",
        of(shrunk.faults, "fault"),
        of(shrunk.clients, "client"),
        ms(shrunk.workload_ms.1),
        ms(shrunk.workload_ms.0),
        plural(u64::from(shrunk.runs), "run")
    ))
}

/// What a comparison of builds came to.
pub(super) fn compared(comparison: Option<&Comparison>) -> String {
    let Some(comparison) = comparison else { return "not compared with an earlier build".to_owned() };
    let (low, estimate, high) = comparison.ratio;
    format!(
        "{} against build {}: {estimate:.2} times ({low:.2} to {high:.2}) in {}",
        if comparison.confirmed { "confirmed" } else { "not confirmed" },
        comparison.against,
        plural(comparison.pairs, "pair")
    )
}

/// A seed of the simulator and the rule that it broke.
pub(super) fn broken((seed, rule): &(u64, String)) -> String {
    format!("seed {seed}: {rule}")
}

/// A length as a number.
pub(super) fn number(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}
