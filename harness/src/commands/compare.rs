//! `harness compare`: two builds, images, systems or settings, run in turn and compared number by number.
//!
//! A machine drifts by more than two builds differ. So the sides take turns, both runs of a pair have the
//! same seed, and only the ratio within a pair counts ([`nights::paired`]). Some fifteen numbers are compared
//! at once. So what is told is chosen by Holm's procedure (1979): two sides that are equal are told apart in
//! at most one of twenty comparisons, however many numbers there are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use checker::verdict::Verdict as RunVerdict;
use clap::Parser;
use harness_systems::catalogue::Meant;
use nights::fence::Direction;
use nights::measures;
use nights::outcome::Outcome;
use nights::paired::{Level, MIN_PAIRS, Paired};
use nights::plan;
use nights::quantiles::median;
use runs::numbers::{len_f64, plural};

use super::screen::print;
use crate::cli::seed;
use crate::cli::{Cli, Command, CompareArgs};
use crate::config::RunOptions;
use crate::exit::{Exit, Failure};
use crate::night::child::{self, Order};
use crate::night::record;
use crate::progress::Progress;
use crate::run::interrupt::Interrupt;
use crate::systems::CATALOGUE;

/// Beside its time, what a run may take.
const GRACE: Duration = Duration::from_secs(300);

/// What is compared.
#[derive(Clone, Debug)]
struct Side {
    /// As it was typed.
    name: String,
    executable: PathBuf,
    /// Flags of its own.
    words: Vec<String>,
    options: RunOptions,
}

/// Numbers of both sides by series, a pair for each pair of runs that had them.
type Pairs = BTreeMap<String, Vec<(f64, f64)>>;

/// Runs both in turn, and tells what differs.
pub fn compare(args: &CompareArgs) -> Result<Exit, Failure> {
    let sides = [side(&args.a, args)?, side(&args.b, args)?];
    let seed = args.seed.unwrap_or_else(seed::fresh);
    let progress = Progress::on_stderr();
    progress.say(&format!(
        "{} of runs, seed {seed}, below {}",
        plural(u64::from(args.pairs), "pair"),
        args.store.display()
    ));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    let mut compared = Compared::default();
    let interrupted = runtime.block_on(async {
        let words = "interrupted: the run that goes on heals and ends, then what there is is compared";
        let interrupt = Interrupt::listen_and_say(progress.clone(), words, || {})?;
        for pair in 0..args.pairs {
            if interrupt.was_asked() {
                break;
            }
            let seed = plan::seed(seed, "pairs", pair);
            compared.pair(&sides, pair, seed, args, &interrupt, &progress).await?;
        }
        Ok::<bool, Failure>(interrupt.was_asked())
    })?;
    progress.clear();
    print(&compared.screen(&sides, args.pairs))?;
    Ok(if compared.broken[1] {
        Exit::Invalid
    } else if interrupted {
        Exit::Interrupted
    } else {
        compared.exit()
    })
}

#[derive(Debug, Default)]
struct Compared {
    pairs: Pairs,
    /// Pairs of which both runs were valid.
    valid: u32,
    /// Whether a side broke a promise.
    broken: [bool; 2],
    /// What became of runs that were not valid.
    notes: Vec<String>,
}

impl Compared {
    async fn pair(
        &mut self,
        sides: &[Side; 2],
        pair: u32,
        seed: u64,
        args: &CompareArgs,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let mut order = [0, 1];
        if pair % 2 == 1 {
            order.reverse();
        }
        let mut numbers = [None, None];
        for at in order {
            let side = &sides[at];
            let name = format!("pair-{}-{}", pair + 1, ["a", "b"][at]);
            progress.step(&format!("{name}: {}", side.name));
            let mut arguments = vec!["run".to_owned()];
            arguments.extend(args.flags.iter().chain(&side.words).cloned());
            arguments.extend(["--seed".to_owned(), seed.to_string(), "--name".to_owned(), name.clone()]);
            arguments.extend(["--store".to_owned(), args.store.display().to_string()]);
            arguments.extend(["--format".to_owned(), "json".to_owned()]);
            let log = args.store.join("log").join(format!("{name}.log"));
            let deadline = side.options.time_limit * 3 + GRACE;
            let order = Order { executable: side.executable.clone(), arguments, log, deadline };
            let ended = child::run(&order, interrupt).await?;
            if ended.interrupted {
                return Ok(());
            }
            let record = record::newest(&args.store.join(&name)).and_then(|folder| record::read(&folder));
            let run = Outcome::of("compare", &ended, record.as_ref());
            match record.filter(|record| record.results.verdict == RunVerdict::Valid && run.why.is_empty()) {
                Some(record) => numbers[at] = Some(measures::series(&record.results, &record.faults)),
                None => {
                    self.broken[at] |= run.pile == nights::pile::Pile::Violation;
                    self.notes.push(format!("{name} is {}: {}", run.pile.name(), run.why));
                }
            }
        }
        if let [Some(a), Some(b)] = numbers {
            self.valid += 1;
            for (name, sample) in a {
                if let Some(other) = b.get(&name) {
                    self.pairs.entry(name).or_default().push((sample.value, other.value));
                }
            }
        }
        progress.say(&format!("pair {}: {} valid so far", pair + 1, self.valid));
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        let row = |(name, pairs): (&String, &Vec<(f64, f64)>)| {
            let metric = measures::of_series(name)?;
            let paired = Paired::of(pairs);
            let side = |of: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(of).collect::<Vec<_>>());
            let unit = metric.unit();
            Some(Row {
                name: name.clone(),
                pairs: pairs.len(),
                sides: [side(|pair| pair.0), side(|pair| pair.1)]
                    .map(|value| value.map_or_else(|| "-".to_owned(), |value| unit.show(value))),
                p: paired.as_ref().ok().map(Paired::p),
                worse: false,
                ratio: paired.ok().map(|paired| {
                    let interval = paired.interval(Level::P99);
                    (interval.low, paired.ratio, interval.high)
                }),
                direction: metric.direction(),
            })
        };
        let mut rows: Vec<Row> = self.pairs.iter().filter_map(row).collect();
        holm(&mut rows);
        rows
    }

    fn exit(&self) -> Exit {
        let rows = self.rows();
        if rows.iter().all(|row| row.p.is_none()) {
            Exit::Unknown
        } else if rows.iter().any(|row| row.worse) {
            Exit::Regression
        } else {
            Exit::Done
        }
    }

    fn screen(&self, sides: &[Side; 2], pairs: u32) -> String {
        let rows = self.rows();
        let worse: Vec<&str> = (rows.iter()).filter(|row| row.worse).map(|row| row.name.as_str()).collect();
        let told = if rows.iter().all(|row| row.p.is_none()) {
            format!("UNKNOWN: {} of {pairs} pairs were valid, and {MIN_PAIRS} are needed", self.valid)
        } else if worse.is_empty() {
            "b is not told to be worse in anything".to_owned()
        } else {
            format!("b is worse in {}", worse.join(", "))
        };
        let mut text = format!("{told}\n\na  {}\nb  {}\n\n", sides[0].name, sides[1].name);
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let _ = writeln!(text, "{:width$}  {:>12} {:>12}  b / a, 99 % interval", "", "a", "b");
        for row in &rows {
            let ratio = row.ratio.map_or_else(
                || format!("{} of {MIN_PAIRS} pairs", row.pairs),
                |(low, ratio, high)| format!("{ratio:.2} ({low:.2} to {high:.2}) {}", row.word()),
            );
            let _ = writeln!(
                text,
                "{:width$}  {:>12} {:>12}  {}",
                row.name,
                row.sides[0],
                row.sides[1],
                ratio.trim_end()
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "{}", reports::terminal::printable(note));
        }
        text
    }
}

/// A number of both sides.
struct Row {
    name: String,
    pairs: usize,
    sides: [String; 2],
    ratio: Option<(f64, f64, f64)>,
    /// How often two equal sides would differ as much.
    p: Option<f64>,
    worse: bool,
    direction: Direction,
}

impl Row {
    fn word(&self) -> &'static str {
        if self.worse { "worse" } else { "" }
    }

    fn is_to_the_worse(&self) -> bool {
        let ratio = self.ratio.map_or(1.0, |(_, ratio, _)| ratio);
        match self.direction {
            Direction::LowerIsBetter => ratio > 1.0,
            Direction::HigherIsBetter => ratio < 1.0,
        }
    }
}

/// How often at most two equal sides are told apart in any number.
const FAMILY: f64 = 0.05;

/// Goes from the surest to the least sure, and stops at the first that is not sure enough for how many are
/// left.
fn holm(rows: &mut [Row]) {
    let mut order: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].p.is_some()).collect();
    order.sort_by(|a, b| rows[*a].p.unwrap_or(1.0).total_cmp(&rows[*b].p.unwrap_or(1.0)));
    let all = order.len();
    for (nth, at) in order.into_iter().enumerate() {
        if rows[at].p.unwrap_or(1.0) > FAMILY / len_f64(all - nth) {
            break;
        }
        rows[at].worse = rows[at].is_to_the_worse();
    }
}

/// Whether a flag says where members run, or what they are.
fn says_where(flag: &str) -> bool {
    ["--cluster", "--image", "--system"].contains(&flag.split('=').next().unwrap_or_default())
}

/// What a side means: a file that can be run, flags, a system, or else an image.
fn side(text: &str, args: &CompareArgs) -> Result<Side, Failure> {
    let path = Path::new(text);
    let own = std::env::current_exe().context("finding this executable")?;
    let (executable, words) = if text.is_empty() {
        (own, Vec::new())
    } else if path.is_file() {
        (std::path::absolute(path).context("finding a side")?, Vec::new())
    } else if text.starts_with("--") {
        (own, text.split_ascii_whitespace().map(str::to_owned).collect())
    } else if CATALOGUE.choose(text, Meant::of(5)).is_some() {
        (own, vec!["--system".to_owned(), text.to_owned()])
    } else if !text.contains(':') {
        return Err(Failure::usage(format!(
            "{text}: there is no such file and no such system; a side is an executable of the harness, an \
             image with its tag (NAME:TAG), a system, or flags in quotes"
        )));
    } else if let Some(flag) = args.flags.iter().find(|flag| says_where(flag)) {
        return Err(Failure::usage(format!(
            "{text} is taken for an image, whose members run in containers: leave out {flag}, or name an \
             executable that is there"
        )));
    } else {
        (own, ["--cluster", "docker", "--image", text].map(str::to_owned).to_vec())
    };
    let of_side = |why: String| Failure::usage(format!("{text}: {why}"));
    let all = ["harness", "run"].map(str::to_owned).into_iter().chain(args.flags.iter().cloned());
    let cli = Cli::try_parse_from(all.chain(words.iter().cloned()))
        .map_err(|error| of_side(error.to_string().trim_end().to_owned()))?;
    let Command::Run(run) = cli.command else { return Err(of_side("it is no run".to_owned())) };
    let typed = args.flags.iter().chain(&words);
    let ours = ["--seed", "--name", "--store", "--format"];
    let is_ours = |word: &&String| ours.iter().any(|flag| word.split('=').next() == Some(*flag));
    if let Some(word) = typed.clone().find(is_ours) {
        return Err(of_side(format!("{word} is not for a side: each pair has its own")));
    }
    let options = RunOptions::from_args(&run).map_err(|failure| of_side(failure.to_string()))?;
    let name = if text.is_empty() { "this build".to_owned() } else { text.to_owned() };
    Ok(Side { name, executable, words, options })
}
