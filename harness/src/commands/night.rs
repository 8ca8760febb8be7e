//! `harness night`: the runs of a file within a budget.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use harness_systems::bounded;
use nights::fold;
use nights::plan::{self, Slot, Terms};
use nights::scheduler::Runs;
use nights::suite::{self, Case};

use super::screen::{print, style};
use crate::cli::seed;
use crate::cli::{Cli, Command, NightArgs};
use crate::config::RunOptions;
use crate::exit::{Exit, Failure};
use crate::night::settings::{self, Orders};
use crate::night::{driver, store};
use crate::num::{index, plural};
use crate::progress::Progress;
use crate::text::span;

/// Where nights are kept when nobody says otherwise.
const USUAL_STORE: &str = "runs/nights";
/// The longest name of a night: it becomes a folder.
const MAX_NAME: usize = 64;

/// Runs a night, or says what it would run.
pub fn night(args: &NightArgs) -> Result<Exit, Failure> {
    let orders = orders(args)?;
    if args.dry_run {
        return dry_run(&orders);
    }
    let place = orders.store.clone();
    let finished = driver::run(orders, &Progress::on_stderr())?;
    print(&finished.report.screen(&place, style()))?;
    Ok(finished.status)
}

fn orders(args: &NightArgs) -> Result<Orders, Failure> {
    let name = args.file.display();
    let text = bounded::text(&args.file, bounded::WRITTEN).map_err(|error| {
        Failure::usage(format!("{name}: {error}. `harness init night` writes a file to begin from"))
    })?;
    let suite = suite::read(&text, args.profile.as_deref())
        .map_err(|why| Failure::usage(format!("{name}: {why}")))?;
    let store = args.store.clone().or_else(|| suite.settings.store.clone());
    let shard = args.shard.as_deref().map(settings::shard).transpose()?;
    let options = suite.cases.iter().map(options).collect::<Result<Vec<_>, _>>()?;
    let budget = match &args.budget {
        Some(text) => Some(span::parse(text).map_err(|why| Failure::usage(format!("--budget: {why}")))?),
        None => suite.settings.budget,
    };
    let Some(budget) = budget.filter(|budget| !budget.is_zero()) else {
        return Err(Failure::usage(format!(
            "{name}: there is no budget; write budget = \"6h\" below [night], or add --budget 6h"
        )));
    };
    let orders = Orders {
        options,
        budget,
        store: std::path::absolute(store.unwrap_or_else(|| PathBuf::from(USUAL_STORE)))
            .context("finding the store")?,
        name: args.night.clone().map(night_name).transpose()?,
        seed: args.seed.unwrap_or_else(seed::fresh),
        shard,
        profile: args.profile.clone(),
        resume: args.resume,
        or_begin: args.or_begin,
        suite,
    };
    orders.check_thresholds()?;
    Ok(orders)
}

fn night_name(name: String) -> Result<String, Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let taken = ["builds", "latest"];
    if name.is_empty()
        || name.len() > MAX_NAME
        || name.starts_with('.')
        || !name.chars().all(fits)
        || taken.contains(&name.as_str())
    {
        return Err(Failure::usage(format!(
            "--night {name}: it becomes a folder; write up to {MAX_NAME} letters, digits, and any of - _ ., \
             not beginning with a dot, and not builds or latest"
        )));
    }
    Ok(name)
}

/// A case as a run. What its flags mean is decided where those of `harness run` are.
fn options(case: &Case) -> Result<RunOptions, Failure> {
    let of_case = |why: String| Failure::usage(format!("case {}: {why}", case.id));
    let words = ["harness", "run"].into_iter().map(str::to_owned).chain(case.words());
    let cli = Cli::try_parse_from(words).map_err(|error| of_case(error.to_string().trim_end().to_owned()))?;
    let Command::Run(args) = cli.command else { return Err(of_case("it is no run".to_owned())) };
    RunOptions::from_args(&args).map_err(|failure| of_case(failure.to_string()))
}

/// The plan, as it would be run now.
fn dry_run(orders: &Orders) -> Result<Exit, Failure> {
    let nights = fold::nights(&store::lines(&orders.store)?);
    let now = jiff::Timestamp::now();
    let guess = |case| orders.guess(case);
    let terms = Terms { nights: &nights, now, seed: orders.seed, shard: orders.shard, guess: &guess };
    let slots = plan::order(&orders.suite, terms);
    let mut text = format!(
        "budget {}, {} of {}, seed {}\n\n",
        span::words(orders.budget),
        plural(slots.len(), "run"),
        plural(orders.suite.cases.len(), "case"),
        orders.seed
    );
    let mut used = Duration::ZERO;
    let mut left = Vec::new();
    for slot in &slots {
        if used.saturating_add(slot.estimate) > orders.budget && !used.is_zero() {
            left.push(slot.clone());
            continue;
        }
        text.push_str(&row(orders, slot, used, now));
        used = used.saturating_add(slot.estimate);
    }
    let rest = orders.budget.saturating_sub(used);
    for unrun in plan::no_room(&orders.suite, &left, rest) {
        let runs = plural(index(u64::from(unrun.runs)), "run");
        text.push_str(&format!("left out   {}, {runs}: {}\n", unrun.case, unrun.why));
    }
    let settings = &orders.suite.settings;
    if settings.mutants > 0 {
        text.push_str(&format!(
            "first      {} must be convicted\n",
            plural(index(u64::from(settings.mutants)), "planted bug")
        ));
    }
    if settings.worlds {
        text.push_str("last       worlds of the simulator, with what is left of the budget\n");
    }
    print(&text)?;
    Ok(Exit::Done)
}

/// A run: when it would begin, what it is, why it has this place, and how to make it by hand.
fn row(orders: &Orders, slot: &Slot, at: Duration, now: jiff::Timestamp) -> String {
    let case = &orders.suite.cases[slot.case];
    format!(
        "{:>6}  {}-{} ({}, about {})\n        {}\n",
        clock(at),
        case.id,
        slot.repeat,
        slot.turn.words(now),
        span::words(slot.estimate.max(Duration::from_secs(1))),
        orders.command(slot.case, slot.seed)
    )
}

/// A time since the beginning: `1:05` hours and minutes.
fn clock(at: Duration) -> String {
    let minutes = at.as_secs() / 60;
    format!("{}:{:02}", minutes / 60, minutes % 60)
}
