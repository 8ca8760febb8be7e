//! What is told while a run goes on: a bar on a terminal, plain lines in a pipe, always on stderr.
//!
//! Nothing is told that the result does not tell again; it is for whoever waits.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// In a pipe, a line about the load comes this often.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Without colour.
const PLAIN_BAR: &str = "[{bar:30}] {wide_msg}";
/// With colour.
const COLOUR_BAR: &str = "[{bar:30.cyan}] {wide_msg}";

/// Whether to colour what goes to a stream, by the convention of `NO_COLOR`.
pub fn colour_wanted(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Where progress is told. Clones tell it at the same place.
#[derive(Clone)]
pub struct Progress {
    bar: Option<ProgressBar>,
    last_line: Arc<Mutex<Duration>>,
}

impl Progress {
    /// On stderr, as fits it.
    pub fn on_stderr() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let template = if colour_wanted(true) { COLOUR_BAR } else { PLAIN_BAR };
            // The templates are constants of ours; were one wrong, a bar of indicatif's own would do.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("##-"));
            }
            bar
        });
        Self { bar, last_line: Arc::default() }
    }

    /// Nowhere.
    pub fn silent() -> Self {
        Self { bar: Some(ProgressBar::hidden()), last_line: Arc::default() }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) if bar.is_hidden() => {}
            Some(bar) => bar.suspend(|| write_line(line)),
            None => write_line(line),
        }
    }

    /// How far the workload is, and how it goes.
    pub fn advance(&self, elapsed: Duration, limit: Duration, load: &str) {
        let line = format!("{:3} s of {} s: {load}", elapsed.as_secs(), limit.as_secs());
        match &self.bar {
            Some(bar) => {
                bar.set_length(crate::clock::whole_milliseconds(limit));
                bar.set_position(crate::clock::whole_milliseconds(elapsed.min(limit)));
                bar.set_message(line);
            }
            None => self.line_now_and_then(elapsed, &line),
        }
    }

    /// How many of so many things are done, after how long; of an unknown number when there is none.
    pub fn count(&self, done: u64, of: Option<u64>, elapsed: Duration, line: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(of.unwrap_or(done).max(1));
                bar.set_position(done);
                bar.set_message(line.to_owned());
            }
            None => self.line_now_and_then(elapsed, line),
        }
    }

    fn line_now_and_then(&self, elapsed: Duration, line: &str) {
        let mut last = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if elapsed.saturating_sub(*last) >= LINE_EVERY {
            *last = elapsed;
            write_line(line);
        }
    }

    /// The workload is over: the bar goes.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn write_line(line: &str) {
    // A closed stderr is no reason to end a run.
    let _ = writeln!(std::io::stderr(), "{line}");
}
