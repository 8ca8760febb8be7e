//! `harness sim`: worlds of the simulator from the command line. One of them told in full, many told in
//! figures, or a script lived through again.

mod json;
pub(super) mod protocol;
mod screen;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use harness_systems::bounded;
use lab_mutants::Mutant;
use lab_sim::{Drawn, Only, Options, Outcome, Rule, recipe_mutants};

use super::screen::print;
use crate::cli::SimArgs;
use crate::cli::options::bug;
use crate::cli::simulator::SimFormat;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::progress::line::Line;
use crate::run::interrupt::Interrupt;
use crate::text::{span, suggest};
use crate::worlds::scripts::{self, Script};
use crate::worlds::seeds::Seeds;
use crate::worlds::{self, Sweep, Swept};

/// Failing seeds that are spelled out; the rest are only counted.
const SHOWN: usize = 5;
/// Failing seeds of a sweep that are made small: the first of each promise.
const SHRUNK: usize = 3;

/// What `--mutant`, `--only`, `--mutant-recipe` and `--outside` mean, and the words that repeat them.
struct Manner {
    options: Options,
    words: String,
}

impl Manner {
    fn of(args: &SimArgs) -> Result<Self, Failure> {
        let mutant = bug(args.mutant.as_deref())?;
        let mut words = mutant.map(|bug| format!(" --mutant {}", bug.name())).unwrap_or_default();
        let only = only(args.only.as_deref())?;
        if let Some(only) = only {
            words.push_str(" --only ");
            words.push_str(only.name());
        }
        let left_out = match only {
            Some(Only::Applications) => Some("applications"),
            Some(Only::LongSteps) => Some("steps that take time"),
            Some(Only::Membership) | None => None,
        };
        if let Some(what) = left_out.filter(|_| args.shrink) {
            return Err(Failure::usage(format!(
                "--shrink: a script says nothing of {what}, so their worlds are not made small; leave it \
                 out, and look at one with --seed N --trace"
            )));
        }
        let recipe = recipe(args.mutant_recipe.as_deref(), only)?;
        if let Some(recipe) = recipe {
            words.push_str(" --mutant-recipe ");
            words.push_str(recipe.name);
        }
        if args.outside {
            words.push_str(" --outside");
        }
        Ok(Self {
            options: Options {
                mutant,
                trace: args.trace,
                look_inside: !args.outside,
                only,
                recipe,
                ..Options::default()
            },
            words,
        })
    }

    /// The command that lives through a seed again.
    fn again(&self, seed: u64) -> String {
        format!("harness sim --seed {seed}{} --trace", self.words)
    }
}

/// The worlds to which a sweep is narrowed.
fn only(text: Option<&str>) -> Result<Option<Only>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let names = Only::ALL.map(Only::name);
    Only::from_name(text).map(Some).ok_or_else(|| {
        let hint = suggest::hint(text, &names);
        Failure::usage(format!(
            "--only {text}: there are no such worlds{hint}; there are: {}",
            names.join(", ")
        ))
    })
}

/// The bug of the applications' recipe.
fn recipe(text: Option<&str>, only: Option<Only>) -> Result<Option<recipe_mutants::Mutant>, Failure> {
    let Some(text) = text else { return Ok(None) };
    if only != Some(Only::Applications) {
        return Err(Failure::usage(
            "--mutant-recipe: no applications are in these worlds; add --only applications",
        ));
    }
    let names = recipe_mutants::OF_ELECTIONS.map(|mutant| mutant.name);
    let named = recipe_mutants::OF_ELECTIONS.into_iter().find(|mutant| mutant.name == text);
    named.map(Some).ok_or_else(|| {
        let hint = suggest::hint(text, &names);
        Failure::usage(format!(
            "--mutant-recipe {text}: no bug of a recipe is called so{hint}; there are: {}",
            names.join(", ")
        ))
    })
}

/// Lives through worlds.
pub fn sim(args: &SimArgs) -> Result<Exit, Failure> {
    if let Some(name) = args.protocol.as_deref().filter(|name| protocol::has(name, args)) {
        return protocol::sim(args, name);
    }
    protocol::check_members(args)?;
    let manner = Manner::of(args)?;
    let jobs = jobs(args.jobs)?;
    match (args.seed, args.seeds, &args.script) {
        (_, _, Some(file)) => script(args, &manner, file),
        (Some(seed), _, _) => one(args, &manner, seed),
        (_, Some(seeds), _) => many(args, &manner, seeds, jobs),
        _ => Err(Failure::usage(
            "name what to live through: --seed N for one world, --seeds 0..10000 for many, --script FILE for \
             a saved one",
        )),
    }
}

/// Threads to use.
pub(super) fn jobs(asked: Option<usize>) -> Result<usize, Failure> {
    match asked {
        Some(0) => Err(Failure::usage("--jobs 0: write how many worlds may be lived through at a time")),
        Some(jobs) => Ok(jobs),
        None => Ok(worlds::cores()),
    }
}

/// One world, told in full.
fn one(args: &SimArgs, manner: &Manner, seed: u64) -> Result<Exit, Failure> {
    if args.format == SimFormat::Human {
        // Before the world begins: whatever becomes of it, this is how to come back.
        print(&format!("{}\n", Drawn::of(seed, manner.options.only)))?;
    }
    let outcome = worlds::one(seed, manner.options)?;
    let shrunk = if args.shrink { shrink(args, manner, &outcome)? } else { None };
    let text = match args.format {
        SimFormat::Human | SimFormat::Svg => screen::one(&outcome, shrunk.as_ref(), args.shrink),
        SimFormat::Json => json::one(&outcome, manner, shrunk.as_ref())?,
    };
    print(&text)?;
    Ok(verdict(outcome.violation.is_some(), false))
}

fn verdict(broken: bool, interrupted: bool) -> Exit {
    match (broken, interrupted) {
        (true, _) => Exit::Invalid,
        (false, true) => Exit::Interrupted,
        (false, false) => Exit::Done,
    }
}

/// A failing world that was made small, and where it is.
pub(super) struct Small {
    seed: u64,
    shrunk: scripts::Shrunk,
    path: String,
}

fn shrink(args: &SimArgs, manner: &Manner, outcome: &Outcome) -> Result<Option<Small>, Failure> {
    let Some(violation) = &outcome.violation else { return Ok(None) };
    small(args, manner, outcome.drawn.seed, violation.rule)
}

fn small(args: &SimArgs, manner: &Manner, seed: u64, rule: lab_sim::Rule) -> Result<Option<Small>, Failure> {
    let Some(shrunk) = scripts::shrink(seed, Options { trace: false, ..manner.options })? else {
        return Ok(None);
    };
    let path = scripts::save(&args.store, rule, seed, &shrunk.script)?;
    Ok(Some(Small { seed, shrunk, path: path.display().to_string() }))
}

/// Many worlds, told in figures.
fn many(args: &SimArgs, manner: &Manner, seeds: Seeds, jobs: usize) -> Result<Exit, Failure> {
    if args.trace {
        return Err(Failure::usage("--trace: one world at a time has a trace; name it with --seed N"));
    }
    let limit = args
        .time_limit
        .as_deref()
        .map(|text| span::parse(text).map_err(|error| Failure::usage(format!("--time-limit: {error}"))))
        .transpose()?;
    if seeds.count().is_none() && limit.is_none() {
        return Err(Failure::usage(format!(
            "--seeds {seeds} has no end: write one, or when to stop: --time-limit 8h"
        )));
    }
    let progress = Progress::on_stderr();
    progress.say(&format!(
        "seeds {seeds}{} on {}{}",
        manner.words,
        crate::num::plural(jobs, "thread"),
        limit.map(|limit| format!(" for {} at most", span::show(limit))).unwrap_or_default()
    ));
    let sweep = Sweep { seeds, options: manner.options, jobs, limit };
    let swept =
        interruptible(&progress, |stop| sweep.run(stop, |swept| tell(&progress, seeds, limit, swept)))?;
    progress.clear();
    let mut small_ones = Vec::new();
    if args.shrink && !swept.interrupted {
        let mut seen = std::collections::BTreeSet::new();
        for (seed, violation) in &swept.tally.violations {
            if seen.len() < SHRUNK && seen.insert(violation.rule) {
                progress.say(&format!("seed {seed} is made small"));
                small_ones.extend(small(args, manner, *seed, violation.rule)?);
            }
        }
    }
    let text = match args.format {
        SimFormat::Human | SimFormat::Svg => {
            screen::many(&swept, seeds, jobs, manner, &small_ones, args.shrink)
        }
        SimFormat::Json => json::many(&swept, seeds, jobs, manner, &small_ones)?,
    };
    print(&text)?;
    Ok(verdict(swept.tally.broken() > 0, swept.interrupted))
}

fn tell(progress: &Progress, seeds: Seeds, limit: Option<Duration>, swept: &Swept) {
    let (done, elapsed) = (swept.tally.seeds, swept.elapsed);
    let of = seeds.count().map(|count| format!(" of {}", screen::thousands(count))).unwrap_or_default();
    let left = limit.map(|limit| format!(" of {} s", limit.as_secs())).unwrap_or_default();
    let broken = match swept.tally.broken() {
        0 => "no promise broken".to_owned(),
        1 => "1 broke a promise".to_owned(),
        broken => format!("{} broke a promise", screen::thousands(broken)),
    };
    let a_minute = format!("{} a minute", screen::thousands(worlds::per_minute(done, elapsed)));
    let line = Line::begin(format!("{}{of} worlds", screen::thousands(done)))
        .and(" ", format!("in {} s{left}", elapsed.as_secs()), 2)
        .and(", ", a_minute, 3)
        .and(", ", broken, 1);
    progress.count(done, seeds.count(), elapsed, &line);
}

/// Does something that somebody may interrupt: `stop` says so.
pub(super) fn interruptible<T>(
    progress: &Progress,
    work: impl FnOnce(&dyn Fn() -> bool) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let interrupt = {
        let _inside = runtime.enter();
        let words = "interrupted: telling what was found; once more ends at once";
        Interrupt::listen_and_say(progress.clone(), words, || {})?
    };
    let outcome = work(&|| interrupt.was_asked());
    runtime.shutdown_background();
    outcome
}

/// With which members a script is lived through, and what it says itself.
#[derive(Clone, Copy)]
struct Members {
    /// Their bug.
    mutant: Option<Mutant>,
    /// The bug that the script names.
    of_the_script: Option<Mutant>,
    /// The promise that the script says is broken.
    breaks: Option<Rule>,
}

/// A script, lived through again.
fn script(args: &SimArgs, manner: &Manner, file: &Path) -> Result<Exit, Failure> {
    let text = bounded::text(file, bounded::WRITTEN)
        .map_err(|error| Failure::usage(format!("{} can't be read: {error}", file.display())))?;
    let script: Script =
        text.parse().map_err(|error| Failure::usage(format!("{} is no script: {error}", file.display())))?;
    let mutant = if args.mutant.is_some() { manner.options.mutant } else { script.mutant };
    let members = Members { mutant, of_the_script: script.mutant, breaks: script.breaks };
    let replayed = scripts::replay(script, mutant)?;
    let text = match args.format {
        SimFormat::Human | SimFormat::Svg => screen::replayed(&replayed, members),
        SimFormat::Json => json::replayed(&replayed, members)?,
    };
    print(&text)?;
    Ok(verdict(replayed.violation.is_some(), false))
}
