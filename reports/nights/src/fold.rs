//! Nights as they are planned by, judged and drawn: the lines of the index, put together.
//!
//! What a case is taken for follows from its attempts: of each run the last try counts, a violation in any
//! try counts for ever, and over the runs the worst decides. A threshold that was crossed makes a valid case
//! a regression; one with too few samples makes it unknown, because what was asked for was not shown.

use std::collections::{BTreeMap, BTreeSet};

use runs::numbers::{count, plural};
use serde::{Deserialize, Serialize};

use crate::findings::{self, Finding, Found, Seen, State};
use crate::index::{Alarm, Attempt, Begun, Judged, LeftOut, Line, Merged, Purpose, Worlds};
use crate::pile::Pile;
use crate::suite::Known;
use crate::threshold::{Judgement, Outcome};

/// What findings of worlds have in the place of a case.
pub const WORLDS: &str = "worlds";

/// More machines than share a night.
const MOST_SHARDS: u32 = 10_000;

/// A night, whole or as far as it got.
#[derive(Clone, Debug, PartialEq)]
pub struct Night {
    /// How it began.
    pub begun: Begun,
    /// Every run of a case, in the order of their ends.
    pub attempts: Vec<Attempt>,
    /// The planted bugs that were hunted.
    pub mutants: Vec<Attempt>,
    /// Its violations, looked at.
    pub found: Vec<Found>,
    /// Worlds that were lived through.
    pub worlds: Vec<Worlds>,
    /// Numbers that stood out.
    pub alarms: Vec<Alarm>,
    /// How it was judged; none when it did not live to its end.
    pub judged: Option<Judged>,
    /// The shards that began it, and those that came to their end.
    pub shards: (BTreeSet<u32>, BTreeSet<u32>),
    /// Whether its shards were put together, so that all of them are to be here.
    pub is_merged: bool,
}

/// A case in one night.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseNight {
    /// Its id.
    pub case: String,
    /// Who is told of it.
    pub owner: Option<String>,
    /// What it is taken for; none when it was not run.
    pub pile: Option<Pile>,
    /// Why, in a sentence; empty for a valid one.
    pub why: String,
    /// Runs that came to an end, tries of the same run counted once.
    pub runs: u32,
    /// Runs that another try made valid.
    pub tried_again: u32,
}

/// The nights of an index, oldest first. Lines of a night that never began are left out.
pub fn nights<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Vec<Night> {
    let mut nights: Vec<Night> = Vec::new();
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        if let Line::Night(begun) = line {
            let at = *place.entry(&begun.night).or_insert_with(|| {
                nights.push(Night::new(begun.clone()));
                nights.len() - 1
            });
            nights[at].begin(begun);
            continue;
        }
        let Some(night) = place.get(line.night()).and_then(|at| nights.get_mut(*at)) else { continue };
        match line {
            Line::Night(_) => {}
            Line::Attempt(attempt) if attempt.purpose == Purpose::Mutant => {
                night.mutants.push(attempt.clone());
            }
            Line::Attempt(attempt) => night.attempts.push(attempt.clone()),
            Line::Finding(found) => night.found.push(found.clone()),
            Line::Worlds(worlds) => night.worlds.push(worlds.clone()),
            Line::Alarm(alarm) => night.alarms.push(alarm.clone()),
            Line::Judged(judged) => night.judge(judged),
            Line::Merged(Merged { night: _ }) => night.is_merged = true,
        }
    }
    for night in &mut nights {
        night.tell_shards();
    }
    nights.sort_by(|a, b| (a.begun.started_utc, &a.begun.night).cmp(&(b.begun.started_utc, &b.begun.night)));
    nights
}

impl Night {
    /// A night of which nothing is known but that it began.
    pub fn new(begun: Begun) -> Self {
        Self {
            begun,
            attempts: Vec::new(),
            mutants: Vec::new(),
            found: Vec::new(),
            worlds: Vec::new(),
            alarms: Vec::new(),
            judged: None,
            shards: (BTreeSet::new(), BTreeSet::new()),
            is_merged: false,
        }
    }

    /// Shards of one night begin it together.
    fn begin(&mut self, begun: &Begun) {
        self.begun.cases.extend(begun.cases.clone());
        let Some((shard, of)) = begun.shard else { return };
        self.shards.0.insert(shard);
        // Where they do not agree on how many there are, none of the most may be missing.
        if let Some((_, most)) = &mut self.begun.shard {
            *most = of.max(*most);
        }
    }

    /// Whether shards of several machines are to be here: some were put together.
    fn is_of_several(&self) -> bool {
        self.is_merged || self.shards.0.len() > 1
    }

    /// Shards of a night of several machines that have no end on record. A store of one shard alone says
    /// nothing of the others.
    pub fn missing_shards(&self) -> Vec<u32> {
        match self.begun.shard {
            Some((_, of)) if self.is_of_several() => {
                (1..=of.min(MOST_SHARDS)).filter(|shard| !self.shards.1.contains(shard)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Which of its shards are here: `shard 1 of 2`, `shards 1 and 3 of 4`; none where it has but one.
    pub fn shards_here(&self) -> Option<String> {
        let (shard, of) = self.begun.shard.filter(|(_, of)| *of > 1)?;
        let here: Vec<u32> =
            if self.is_of_several() { self.shards.1.iter().copied().collect() } else { vec![shard] };
        Some(format!("{} of {of}", numbered(&here)))
    }

    /// Says which of its shards are here. What is not there can't be valid.
    pub fn tell_shards(&mut self) {
        let Some(here) = self.shards_here() else { return };
        let (missing, of_several) = (self.missing_shards(), self.is_of_several());
        let Some(judged) = &mut self.judged else { return };
        if !of_several {
            judged.sentence.push_str(&format!(" This is {here} alone."));
        } else if !missing.is_empty() {
            if judged.pile < Pile::Unknown {
                (judged.pile, judged.status) = (Pile::Unknown, Pile::Unknown.status());
            }
            let missing = numbered(&missing);
            judged.sentence.push_str(&format!(" Here is {here}; of {missing} no end is on record."));
        }
    }

    /// Takes in how it was judged, or how one more of its shards was.
    fn judge(&mut self, judged: &Judged) {
        self.shards.1.extend(judged.shard.map(|(shard, _)| shard));
        let Some(all) = &mut self.judged else {
            self.judged = Some(judged.clone());
            return;
        };
        if judged.pile > all.pile {
            (all.pile, all.status) = (judged.pile, judged.status);
        }
        all.ended_utc = all.ended_utc.max(judged.ended_utc);
        all.interrupted |= judged.interrupted;
        all.sentence = format!("{} {}", all.sentence, judged.sentence).trim().to_owned();
        all.left_out.extend(judged.left_out.clone());
        all.thresholds.extend(judged.thresholds.clone());
    }

    /// Its cases, those of the plan and those that were run, by id.
    pub fn cases(&self) -> Vec<CaseNight> {
        let ran = self.attempts.iter().map(|attempt| (attempt.case.as_str(), None));
        let planned = self.begun.cases.iter().map(|(case, owner)| (case.as_str(), owner.clone()));
        let all: BTreeMap<&str, Option<String>> = ran.chain(planned).collect();
        all.into_iter().map(|(case, owner)| self.case(case, owner, &|_| true)).collect()
    }

    /// The last try of each run of a case.
    pub fn last_tries(&self, case: &str) -> Vec<&Attempt> {
        let mut last: BTreeMap<u32, &Attempt> = BTreeMap::new();
        for attempt in self.attempts.iter().filter(|attempt| attempt.case == case) {
            let kept = last.entry(attempt.repeat).or_insert(attempt);
            if kept.pile != Pile::Violation {
                *kept = attempt;
            }
        }
        last.into_values().collect()
    }

    fn thresholds(&self, case: &str) -> &[Judgement] {
        self.judged.as_ref().and_then(|judged| judged.thresholds.get(case)).map_or(&[], Vec::as_slice)
    }

    /// A case by those of its last tries that count.
    fn case(&self, case: &str, owner: Option<String>, counts: &dyn Fn(&Attempt) -> bool) -> CaseNight {
        let mut last = self.last_tries(case);
        last.retain(|attempt| counts(attempt));
        let tries = self.attempts.iter().filter(|attempt| attempt.case == case);
        let again = tries.filter(|attempt| attempt.attempt > 1 && attempt.pile == Pile::Valid).count();
        let mut worst: Option<(Pile, String)> = None;
        let mut worse = |pile: Pile, why: &str| {
            if worst.as_ref().is_none_or(|(kept, _)| pile > *kept) {
                worst = Some((pile, why.to_owned()));
            }
        };
        for attempt in &last {
            worse(attempt.pile, &attempt.why);
        }
        if !last.is_empty() {
            for judgement in self.thresholds(case) {
                match judgement.outcome {
                    Outcome::Met => {}
                    Outcome::Crossed => worse(Pile::Regression, &judgement.sentence),
                    Outcome::TooFew => worse(Pile::Unknown, &judgement.sentence),
                }
            }
            let confirmed = |alarm: &&Alarm| alarm.case == case && alarm.is_confirmed();
            for alarm in self.alarms.iter().filter(confirmed) {
                worse(Pile::Regression, &alarm.sentence);
            }
        }
        let (pile, why) = worst.map_or((None, String::new()), |(pile, why)| (Some(pile), why));
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        CaseNight {
            case: case.to_owned(),
            owner,
            pile,
            why,
            runs: number(last.len()),
            tried_again: number(again),
        }
    }

    /// What it says about findings.
    pub fn seen(&self) -> Seen {
        let decided = |attempt: &&Attempt| matches!(attempt.pile, Pile::Valid | Pile::Violation);
        let cases = self.attempts.iter().filter(decided).map(|attempt| attempt.case.clone());
        let worlds = self.worlds.iter().any(|piece| piece.worlds > 0).then(|| WORLDS.to_owned());
        Seen {
            night: self.begun.night.clone(),
            day: self.begun.started_utc.strftime("%Y-%m-%d").to_string(),
            found: self.found.clone(),
            ran: cases.chain(worlds).collect(),
        }
    }

    /// Worlds lived through, and those that broke a rule.
    pub fn worlds_lived(&self) -> (u64, Vec<&(u64, String)>) {
        let all = self.worlds.iter().fold(0_u64, |all, piece| all.saturating_add(piece.worlds));
        (all, self.worlds.iter().flat_map(|piece| &piece.broken).collect())
    }

    /// Elections measured, faults verified and operations made.
    pub fn work(&self) -> (u64, u64, u64) {
        self.attempts.iter().fold((0, 0, 0), |(elections, faults, operations): (u64, u64, u64), attempt| {
            (
                elections.saturating_add(attempt.elections),
                faults.saturating_add(u64::from(attempt.faults.0)),
                operations.saturating_add(attempt.operations),
            )
        })
    }
}

/// Shards by their numbers, the first of many.
fn numbered(shards: &[u32]) -> String {
    const MOST: usize = 20;
    let mut named: Vec<String> = shards.iter().take(MOST).map(u32::to_string).collect();
    if shards.len() > MOST {
        named.push(format!("{} more", count(len(shards.len() - MOST))));
    }
    match named.as_slice() {
        [] => "no shard".to_owned(),
        [one] => format!("shard {one}"),
        [first @ .., last] => format!("shards {} and {last}", first.join(", ")),
    }
}

/// The findings as one of these nights sees them.
pub fn findings(nights: &[Night], known: &[Known]) -> Vec<Finding> {
    let seen: Vec<Seen> = nights.iter().map(Night::seen).collect();
    findings::over(&seen, known)
}

/// What a night comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The worst of its piles.
    pub pile: Pile,
    /// Why, in a sentence or two.
    pub sentence: String,
}

/// Judges the last of these nights.
pub fn conclude(nights: &[Night], known: &[Known], left_out: &[LeftOut]) -> Conclusion {
    let Some(tonight) = nights.last() else {
        return Conclusion { pile: Pile::Unknown, sentence: "There was no night.".to_owned() };
    };
    let findings = findings(nights, known);
    let cases = tonight.cases();
    let run: Vec<(&CaseNight, Pile)> =
        cases.iter().filter_map(|case| case.pile.map(|pile| (case, pile))).collect();
    let tolerated = tolerated(tonight, &findings);
    // What is tolerated hides nothing else: the other runs of the case count as they are.
    let counted = |(case, pile): &(&CaseNight, Pile)| {
        if *pile != Pile::Violation || !tolerated.contains(&case.case) {
            return *pile;
        }
        let others = tonight.case(&case.case, None, &|attempt| attempt.pile != Pile::Violation);
        others.pile.unwrap_or(Pile::Valid)
    };
    let mut pile = Pile::worst(run.iter().map(counted));
    let mut said = vec![opening(&run, cases.len())];
    if cases.is_empty() {
        said = vec!["No case belongs to this shard.".to_owned()];
    } else if run.is_empty() {
        pile = pile.max(Pile::Unknown);
        said = vec!["No case came to an end, so nothing was shown.".to_owned()];
    }
    let (_, broken) = tonight.worlds_lived();
    if !broken.is_empty() {
        pile = Pile::Violation;
        said.push(format!("{} broke a rule.", plural(len(broken.len()), "world")));
    }
    if let Some(why) = tonight.worlds.iter().find_map(|piece| piece.failed.as_ref()) {
        pile = pile.max(Pile::BenchFailure);
        said.push(format!("Worlds were not lived through: {why}."));
    }
    let missed: Vec<&str> = missed(tonight);
    if !missed.is_empty() {
        pile = pile.max(Pile::Unknown);
        said.push(format!(
            "The planted bug {} was not convicted, so what this night did not find proves little.",
            missed.join(", ")
        ));
    } else if let Some(hunted) = tonight.mutants.first() {
        said.push(format!("The planted bug {} was convicted.", hunted.case));
    }
    let new = findings.iter().filter(|finding| finding.state == State::New).count();
    if new > 0 {
        said.push(format!("{} never seen before.", plural(len(new), "finding")));
    }
    if !tolerated.is_empty() {
        said.push(format!("{} known, and not counted yet.", plural(len(tolerated.len()), "case")));
    }
    let runs: u32 = left_out.iter().fold(0, |all, left| all.saturating_add(left.runs));
    if runs > 0 {
        said.push(format!("{} left out.", plural(u64::from(runs), "run")));
    }
    Conclusion { pile, sentence: said.join(" ") }
}

/// Cases whose violations are all known and tolerated.
fn tolerated(tonight: &Night, findings: &[Finding]) -> BTreeSet<String> {
    let forgiven: BTreeSet<&str> = (findings.iter())
        .filter(|finding| finding.is_tolerated)
        .map(|finding| finding.fingerprint.as_str())
        .collect();
    let mut cases: BTreeMap<&str, bool> = BTreeMap::new();
    for attempt in tonight.attempts.iter().filter(|attempt| attempt.pile == Pile::Violation) {
        let all = !attempt.findings.is_empty()
            && attempt.findings.iter().all(|found| forgiven.contains(found.as_str()));
        *cases.entry(&attempt.case).or_insert(true) &= all;
    }
    cases.into_iter().filter(|(_, all)| *all).map(|(case, _)| case.to_owned()).collect()
}

/// Planted bugs that no try convicted.
fn missed(night: &Night) -> Vec<&str> {
    let mut convicted: BTreeMap<&str, bool> = BTreeMap::new();
    for attempt in &night.mutants {
        *convicted.entry(&attempt.case).or_default() |= attempt.pile == Pile::Violation;
    }
    convicted.into_iter().filter(|(_, convicted)| !convicted).map(|(name, _)| name).collect()
}

fn opening(run: &[(&CaseNight, Pile)], planned: usize) -> String {
    let mut parts = Vec::new();
    for pile in Pile::ALL.into_iter().rev().filter(|pile| *pile != Pile::Valid) {
        let number = run.iter().filter(|(_, other)| *other == pile).count();
        match number {
            0 => {}
            1 => parts.push(format!("1 {}", pile.name())),
            more => parts.push(format!("{} {}", count(len(more)), pile.names())),
        }
    }
    let ran = if run.len() == planned {
        plural(len(planned), "case")
    } else {
        format!("{} of {}", run.len(), plural(len(planned), "case"))
    };
    if parts.is_empty() { format!("{ran} valid.") } else { format!("{ran}: {}.", parts.join(", ")) }
}

fn len(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invented;

    fn begun(night: &str, cases: &[&str]) -> Begun {
        let cases = cases.iter().map(|case| ((*case).to_owned(), None)).collect();
        Begun { cases, ..invented::begun(night) }
    }

    fn attempt(case: &str, repeat: u32, attempt: u32, pile: Pile) -> Attempt {
        Attempt { repeat, attempt, ..invented::attempt(case, pile) }
    }

    fn night(cases: &[&str], attempts: Vec<Attempt>) -> Night {
        Night { attempts, ..Night::new(begun("n", cases)) }
    }

    fn pile(night: &Night, case: &str) -> Option<Pile> {
        night.cases().into_iter().find(|one| one.case == case).expect("the case").pile
    }

    #[test]
    fn of_each_run_the_last_try_counts_and_a_violation_is_never_tried_away() {
        let tries = vec![
            attempt("a", 1, 1, Pile::Unknown),
            attempt("a", 1, 2, Pile::Valid),
            attempt("b", 1, 1, Pile::Valid),
            attempt("b", 2, 1, Pile::Violation),
            attempt("b", 2, 2, Pile::Valid),
            attempt("c", 1, 1, Pile::BenchFailure),
            attempt("c", 1, 2, Pile::Unknown),
        ];
        let night = night(&["a", "b", "c", "d"], tries);
        assert_eq!(pile(&night, "a"), Some(Pile::Valid));
        assert_eq!(pile(&night, "b"), Some(Pile::Violation));
        assert_eq!(pile(&night, "c"), Some(Pile::Unknown));
        assert_eq!(pile(&night, "d"), None);
        let all = conclude(&[night], &[], &[]);
        assert_eq!(all.pile, Pile::Violation);
        assert_eq!(all.sentence, "3 of 4 cases: 1 violation, 1 unknown.");
    }

    #[test]
    fn a_night_without_an_attempt_and_one_that_missed_its_bug_are_never_green() {
        assert_eq!(conclude(&[night(&["a"], vec![])], &[], &[]).pile, Pile::Unknown);
        let mut missed = night(&["a"], vec![attempt("a", 1, 1, Pile::Valid)]);
        missed.mutants.push(attempt("commit-alone", 1, 1, Pile::Valid));
        let all = conclude(std::slice::from_ref(&missed), &[], &[]);
        assert_eq!(all.pile, Pile::Unknown, "{}", all.sentence);
        missed.mutants.push(attempt("commit-alone", 1, 2, Pile::Violation));
        assert_eq!(conclude(&[missed], &[], &[]).pile, Pile::Valid);
    }

    #[test]
    fn a_crossed_threshold_is_a_regression_and_one_without_samples_is_unknown() {
        let judgement = |outcome| Judgement {
            threshold: "outage max < 1s".to_owned(),
            outcome,
            value: None,
            samples: 1,
            sentence: "it is 2 s".to_owned(),
        };
        let judged = |outcome| Judged {
            night: "n".to_owned(),
            ended_utc: "2026-11-25T03:00:00Z".parse().expect("a moment"),
            pile: Pile::Valid,
            status: 0,
            sentence: String::new(),
            shard: None,
            interrupted: false,
            left_out: Vec::new(),
            thresholds: [("a".to_owned(), vec![judgement(outcome)])].into(),
        };
        for (outcome, expected) in [
            (Outcome::Met, Pile::Valid),
            (Outcome::Crossed, Pile::Regression),
            (Outcome::TooFew, Pile::Unknown),
        ] {
            let mut night = night(&["a"], vec![attempt("a", 1, 1, Pile::Valid)]);
            night.judged = Some(judged(outcome));
            assert_eq!(pile(&night, "a"), Some(expected));
        }
    }

    #[test]
    fn what_is_tolerated_hides_nothing_else() {
        let mut violation = attempt("a", 1, 1, Pile::Violation);
        violation.findings = vec!["0123456789".to_owned()];
        let found = Found {
            night: "n".to_owned(),
            fingerprint: "0123456789".to_owned(),
            shape: crate::fingerprint::Shape {
                check: "c".to_owned(),
                case: "a".to_owned(),
                kinds: BTreeSet::new(),
                operations: BTreeSet::new(),
            },
            sentence: String::new(),
            folder: "f".to_owned(),
            replays: findings::Replays::default(),
            shrunk: None,
            command: String::new(),
        };
        let known = Known {
            finding: "0123456789".to_owned(),
            link: "https://example.org".to_owned(),
            until: Some("2026-12-31".to_owned()),
        };
        let mut night = night(&["a"], vec![violation, attempt("a", 2, 1, Pile::Valid)]);
        night.found.push(found);
        let pile =
            |night: &Night| conclude(std::slice::from_ref(night), std::slice::from_ref(&known), &[]).pile;
        assert_eq!(pile(&night), Pile::Valid);
        night.attempts.push(attempt("a", 3, 1, Pile::BenchFailure));
        assert_eq!(pile(&night), Pile::BenchFailure);
    }

    #[test]
    fn a_merged_night_of_which_a_shard_is_missing_is_never_valid() {
        let shard = |shard: u32| Begun { shard: Some((shard, 3)), ..begun("n", &["a"]) };
        let judged = |shard: u32| Judged {
            night: "n".to_owned(),
            ended_utc: "2026-11-25T03:00:00Z".parse().expect("a moment"),
            pile: Pile::Valid,
            status: 0,
            sentence: "1 case valid.".to_owned(),
            shard: Some((shard, 3)),
            interrupted: false,
            left_out: Vec::new(),
            thresholds: BTreeMap::new(),
        };
        let mut lines = vec![Line::Night(shard(1)), Line::Judged(judged(1))];
        let pile = |lines: &[Line]| nights(lines)[0].judged.as_ref().expect("judged").pile;
        let said = |lines: &[Line]| nights(lines)[0].judged.as_ref().expect("judged").sentence.clone();
        assert_eq!(pile(&lines), Pile::Valid, "a shard's own store");
        assert_eq!(said(&lines), "1 case valid. This is shard 1 of 3 alone.");
        let merged = Line::Merged(Merged { night: "n".to_owned() });
        let one = [&lines[..], std::slice::from_ref(&merged)].concat();
        assert_eq!(pile(&one), Pile::Unknown, "one shard arrived where all were to be");
        assert_eq!(said(&one), "1 case valid. Here is shard 1 of 3; of shards 2 and 3 no end is on record.");
        lines.extend([Line::Night(shard(2)), Line::Judged(judged(2)), Line::Night(shard(3))]);
        assert_eq!(pile(&lines), Pile::Unknown);
        lines.extend([Line::Judged(judged(3)), merged]);
        assert_eq!(pile(&lines), Pile::Valid);
        assert!(!said(&lines).contains("shard"), "all are here: {}", said(&lines));
    }

    #[test]
    fn lines_of_two_nights_that_run_at_once_are_told_apart() {
        let mut other = attempt("a", 1, 1, Pile::Valid);
        "m".clone_into(&mut other.night);
        let lines = [
            Line::Night(begun("n", &["a"])),
            Line::Night(begun("m", &["a"])),
            Line::Attempt(attempt("a", 1, 1, Pile::Violation)),
            Line::Attempt(other),
        ];
        let nights = nights(&lines);
        assert_eq!(nights.iter().map(|night| night.attempts.len()).collect::<Vec<_>>(), [1, 1]);
    }
}
