//! `harness sim --protocol`: worlds, scripts and explorations of a protocol that is written as a state
//! machine.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use harness_protocols::entry::{Entry, Playable, Played};
use harness_protocols::explore::Bounds;
use harness_protocols::report::Summary;
use harness_protocols::script::Script;
use harness_protocols::world::Options;
use harness_systems::bounded;

use super::{jobs, print, verdict};
use crate::cli::SimArgs;
use crate::cli::simulator::SimFormat;
use crate::exit::{Exit, Failure};
use crate::num::plural;
use crate::progress::Progress;
use crate::protocols::PROTOCOLS;
use crate::text::suggest;
use crate::worlds::seeds::Seeds;

/// States of whole members that are looked at: each takes ten kilobytes and more.
const STATES_OF_MEMBERS: usize = 150_000;
/// What never happens, which no script of what happened shows.
const COMES_BACK: &str = "comes-back";
/// Failing seeds that are told.
const TOLD: usize = 5;

/// Whether what is asked for is of a protocol that is written as a state machine. The members' own is, as far
/// as its scripts go; the worlds of its seeds are those of whole members.
pub(super) fn has(name: &str, args: &SimArgs) -> bool {
    let is_script = args.scenario.is_some() || args.script.is_some() || args.explore.is_some();
    name != lab_zab::NAME || is_script
}

/// What only scripts have is refused of the worlds of whole members.
pub(super) fn check_members(args: &SimArgs) -> Result<(), Failure> {
    let advice = "a script is drawn, and no world of whole members; write --scenario NAME or --script FILE";
    refuse(&[("--format svg", args.format == SimFormat::Svg)], advice)
}

/// The first of these flags that is there is refused.
fn refuse(flags: &[(&str, bool)], why: &str) -> Result<(), Failure> {
    match flags.iter().find(|(_, is_there)| *is_there) {
        Some((flag, _)) => Err(Failure::usage(format!("{flag}: {why}"))),
        None => Ok(()),
    }
}

/// A protocol, its bug, and what it is made of.
struct Asked<'a> {
    args: &'a SimArgs,
    entry: Entry,
    bug: Option<&'a str>,
}

/// The protocol of a name.
pub(in crate::commands) fn named(name: &str) -> Result<Entry, Failure> {
    PROTOCOLS.into_iter().find(|entry| entry.name == name.trim()).ok_or_else(|| {
        let names = PROTOCOLS.map(|entry| entry.name);
        let known = "`harness list protocols` knows:";
        Failure::Usage(suggest::unknown("protocol", name, &names, known))
    })
}

/// Lives through what was asked for.
pub(super) fn sim(args: &SimArgs, name: &str) -> Result<Exit, Failure> {
    let entry = named(name)?;
    let bug = args.mutant.as_deref().filter(|bug| *bug != "none");
    let asked = Asked { args, entry, bug };
    asked.check()?;
    if let Some(name) = &args.scenario {
        return asked.scenario(name);
    }
    match (args.seed, args.seeds, &args.script, args.explore) {
        (.., Some(members)) => asked.explore(members),
        (_, _, Some(file), _) => asked.file(file),
        (Some(seed), ..) => asked.one(seed),
        (_, Some(seeds), ..) => asked.many(seeds),
        _ => Err(Failure::usage(
            "name what to live through: --seed N for one world, --seeds 0..10000 for many, --scenario NAME, \
             --script FILE, or --explore 3 for every interleaving",
        )),
    }
}

impl Asked<'_> {
    /// What would be left out of account is refused.
    fn check(&self) -> Result<(), Failure> {
        let args = self.args;
        let flags = [
            ("--format json", args.format == SimFormat::Json),
            ("--time-limit", args.time_limit.is_some()),
            ("--mutant-recipe", args.mutant_recipe.is_some()),
        ];
        refuse(&flags, &format!("worlds of {} have none of that; leave it out", self.entry.name))?;
        let is_one = args.seed.is_some();
        let advice = "that is of one world at a time; name it with --seed N";
        refuse(&[("--trace", args.trace && !is_one), ("--shrink", args.shrink && !is_one)], advice)?;
        let is_drawn =
            args.scenario.is_some() || args.script.is_some() || args.explore.is_some() || args.shrink;
        let advice =
            "a script is drawn; write --scenario NAME, --script FILE, --explore 3, or --seed N --shrink";
        refuse(&[("--format svg", args.format == SimFormat::Svg && !is_drawn)], advice)
    }

    fn made(&self, bug: Option<&str>) -> Result<Box<dyn Playable>, Failure> {
        (self.entry.make)(bug).ok_or_else(|| {
            let mut names: Vec<&str> = self.entry.mutants.iter().map(|mutant| mutant.name).collect();
            if self.entry.name == lab_zab::NAME {
                names.extend(lab_mutants::ALL.iter().map(|mutant| mutant.name()));
            }
            let known = format!("{} has:", self.entry.name);
            Failure::Usage(suggest::unknown("mutant", bug.unwrap_or_default(), &names, &known))
        })
    }

    fn scenario(&self, name: &str) -> Result<Exit, Failure> {
        let scenarios = self.entry.scenarios;
        let scenario = scenarios.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
            let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name).collect();
            Failure::Usage(suggest::unknown("scenario", name, &names, "`harness list scenarios` knows:"))
        })?;
        self.play(&format!("{}: {}", scenario.name, scenario.about), scenario.script)
    }

    fn file(&self, file: &Path) -> Result<Exit, Failure> {
        let text = bounded::text(file, bounded::WRITTEN)
            .map_err(|error| Failure::usage(format!("{} can't be read: {error}", file.display())))?;
        self.play(&file.display().to_string(), &text)
    }

    fn play(&self, title: &str, text: &str) -> Result<Exit, Failure> {
        let script = Script::read(text).map_err(|why| Failure::usage(format!("{title}: {why}")))?;
        if script.protocol != self.entry.name {
            let is = &script.protocol;
            return Err(Failure::usage(format!("{title} is a script of {is}: write --protocol {is}")));
        }
        let bug = if self.args.mutant.is_some() { self.bug } else { script.plant.as_deref() };
        let played = self.made(bug)?.play(title, &script);
        let mut text = format!("{title}\n\n{}", played.lines.join("\n"));
        match &played.right {
            Ok(()) => text.push_str("\n\nit came out as the script says"),
            Err(otherwise) => {
                let _ = write!(text, "\n\nnot as the script says: {otherwise}");
            }
        }
        if let Some(broken) = &played.broken {
            let _ = write!(text, "\nbroken: {broken}");
        }
        text.push('\n');
        self.show(&text, Some(&played))?;
        Ok(verdict(played.right.is_err(), false))
    }

    /// Prints what is asked for: words, or the picture of what is told by them.
    fn show(&self, words: &str, played: Option<&Played>) -> Result<(), Failure> {
        match (self.args.format, played) {
            (SimFormat::Svg, Some(played)) => print(&played.svg),
            (SimFormat::Svg, None) => {
                Progress::on_stderr().say(&format!("nothing is drawn\n{}", words.trim_end()));
                Ok(())
            }
            (SimFormat::Human | SimFormat::Json, _) => print(words),
        }
    }

    /// A script that was found, as it would be played again.
    fn found(&self, script: &str, again: &str) -> Result<Played, Failure> {
        let script = Script::read(script).map_err(|why| anyhow::anyhow!("{why}"))?;
        Ok(self.made(self.bug)?.play(again, &script))
    }

    fn explore(&self, members: u8) -> Result<Exit, Failure> {
        if !(1..=7).contains(&members) {
            return Err(Failure::usage("--explore: write how many members, 1 to 7"));
        }
        let mut bounds = Bounds::duel();
        bounds.asks.retain(|(id, _)| id.0 <= members);
        if self.entry.name == lab_zab::NAME {
            bounds.states = STATES_OF_MEMBERS;
        }
        let found = self.made(self.bug)?.explore(members, &bounds, self.bug);
        let whole = match (&found.broken, found.whole) {
            (Some(_), _) => "and the last one is broken",
            (None, true) => "all of them",
            (None, false) => "as many as fit; others were left",
        };
        let mut text = format!("{} states, {whole}\n", found.states);
        let mut played = None;
        match &found.broken {
            None => text.push_str("nothing is broken in them\n"),
            Some((broken, script)) => {
                let again = self.again(&format!("--explore {members}"));
                played = Some(self.found(script, &again)?);
                let _ = write!(
                    text,
                    "broken: {broken}\ndrawn: {again} --format svg\na shortest way to it:\n\n{script}"
                );
            }
        }
        self.show(&text, played.as_ref())?;
        Ok(verdict(found.broken.is_some(), false))
    }

    fn again(&self, what: &str) -> String {
        let bug = self.bug.map(|bug| format!(" --mutant {bug}")).unwrap_or_default();
        format!("harness sim --protocol {}{bug} {what}", self.entry.name)
    }

    fn one(&self, seed: u64) -> Result<Exit, Failure> {
        let protocol = self.made(self.bug)?;
        let options = Options { trace: self.args.trace, ..Options::default() };
        let summary = protocol.simulate(seed, options);
        let mut text = format!("seed {seed}: {}\n", summary.drawn);
        summary.lines.iter().for_each(|line| {
            text.push_str(line);
            text.push('\n');
        });
        let _ = writeln!(
            text,
            "{} steps in {} s, {}, {} operations acknowledged, trace {:016x}",
            summary.steps,
            summary.lived_us / 1_000_000,
            faults(&summary),
            summary.acknowledged,
            summary.hash
        );
        text.push_str(&self.told(&summary));
        let mut played = None;
        if self.args.shrink && summary.broken.is_some() {
            match protocol.script_of(seed, self.bug) {
                None => text.push_str("what never happens is not made small\n"),
                Some(small) => {
                    let again = self.again(&format!("--seed {seed} --shrink"));
                    played = Some(self.found(&small, &again)?);
                    let _ = write!(text, "\n{small}");
                }
            }
        }
        self.show(&text, played.as_ref())?;
        Ok(verdict(summary.broken.is_some(), false))
    }

    fn told(&self, summary: &Summary) -> String {
        match &summary.broken {
            None => "nothing is broken\n".to_owned(),
            Some(broken) => {
                let again = self.again(&format!("--seed {}", summary.seed));
                let small = match broken.rule.as_str() {
                    COMES_BACK => String::new(),
                    _ => format!("small: {again} --shrink\ndrawn: {again} --shrink --format svg\n"),
                };
                format!("broken: {broken}\nagain: {again} --trace\n{small}")
            }
        }
    }

    fn many(&self, seeds: Seeds) -> Result<Exit, Failure> {
        let Some(count) = seeds.count() else {
            return Err(Failure::usage(format!("--seeds {seeds} has no end: write one")));
        };
        let protocol = self.made(self.bug)?;
        let next = AtomicU64::new(seeds.first());
        let begun = Instant::now();
        let lived = || {
            let mut broken = Vec::new();
            let mut acknowledged = 0;
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if !seeds.contains(seed) {
                    return (broken, acknowledged);
                }
                let summary = protocol.simulate(seed, Options::default());
                acknowledged += summary.acknowledged;
                if summary.broken.is_some() {
                    broken.push(summary);
                }
            }
        };
        let threads = jobs(self.args.jobs)?.max(1);
        let parts: Vec<(Vec<Summary>, u64)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(lived)).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        if parts.len() < threads {
            return Err(anyhow::anyhow!("a world of {} panicked", self.entry.name).into());
        }
        let acknowledged: u64 = parts.iter().map(|(_, acknowledged)| acknowledged).sum();
        let mut broken: Vec<Summary> = parts.into_iter().flat_map(|(broken, _)| broken).collect();
        broken.sort_by_key(|summary| summary.seed);
        let mut text = format!(
            "{count} worlds in {} s, {acknowledged} operations acknowledged, {} broken\n",
            begun.elapsed().as_secs(),
            broken.len()
        );
        broken.iter().take(TOLD).for_each(|summary| text.push_str(&self.told(summary)));
        print(&text)?;
        Ok(verdict(!broken.is_empty(), false))
    }
}

/// Faults of a world, by name: `3 faults (kill-one 2, pause-leader 1)`.
fn faults(summary: &Summary) -> String {
    let count = plural(usize::try_from(summary.faults.values().sum::<u64>()).unwrap_or(usize::MAX), "fault");
    let names: Vec<String> = summary.faults.iter().map(|(name, times)| format!("{name} {times}")).collect();
    if names.is_empty() { count } else { format!("{count} ({})", names.join(", ")) }
}
