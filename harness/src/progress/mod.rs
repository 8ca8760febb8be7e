//! What is told while a run goes on: a bar on a terminal, plain lines in a pipe, always on stderr.
//!
//! Nothing is told that the result does not tell again; it is for whoever waits. On a terminal there is a
//! word for whatever takes time, and no line is wider than the terminal is at that moment.

pub mod line;
mod load;

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub use load::Load;

use line::Line;

/// In a pipe, a line about the load comes this often.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// How often the sign that something goes on moves.
const TICK: Duration = Duration::from_millis(200);
/// The width of a terminal that does not say its own.
const USUAL_COLUMNS: usize = 80;
/// What the frame around a bar takes, with the space behind it and the last column, which some terminals
/// don't fill without going to the next row.
const FRAME: usize = 4;
/// What stands around a step: the sign before it and the time behind it, and the last column.
const AROUND_A_STEP: usize = 9;

/// Whether to colour what goes to a stream, by the convention of `NO_COLOR`.
pub fn colour_wanted(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// What the terminal shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    /// Nothing of ours.
    #[default]
    Nothing,
    /// A step whose length nobody knows.
    Step,
    /// A bar of this width.
    Bar(usize),
}

#[derive(Default)]
struct State {
    shown: Shown,
    last_line: Duration,
}

/// Where progress is told. Clones tell it at the same place.
#[derive(Clone)]
pub struct Progress {
    bar: Option<ProgressBar>,
    state: Arc<Mutex<State>>,
}

impl Progress {
    /// On stderr, as fits it.
    pub fn on_stderr() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = terminal.then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()));
        Self { bar, state: Arc::default() }
    }

    /// Nowhere.
    pub fn silent() -> Self {
        Self { bar: Some(ProgressBar::hidden()), state: Arc::default() }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) if bar.is_hidden() => {}
            Some(bar) => bar.suspend(|| write_line(&line::wrapped(line, columns()))),
            None => write_line(line),
        }
    }

    /// Words of somebody else's, as they are.
    pub fn pass_on(&self, words: &[u8]) {
        // A closed stderr is no reason to end a run.
        let write = || drop(std::io::stderr().write_all(words));
        match &self.bar {
            Some(bar) if bar.is_hidden() => {}
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// What is done now, where nobody knows how long it takes. In a pipe nothing is said: what came of it
    /// will be.
    pub fn step(&self, what: &str) {
        let Some(bar) = &self.bar else { return };
        let mut state = self.state();
        if state.shown != Shown::Step {
            state.shown = Shown::Step;
            style(bar, "{spinner} {msg}, {elapsed}");
        }
        bar.reset();
        bar.set_message(line::cut(what, columns().saturating_sub(AROUND_A_STEP)));
        bar.enable_steady_tick(TICK);
    }

    /// How far the step is that was begun last, in other words for it.
    pub fn step_goes_on(&self, what: &str) {
        if let Some(bar) = &self.bar
            && self.state().shown == Shown::Step
        {
            bar.set_message(line::cut(what, columns().saturating_sub(AROUND_A_STEP)));
        }
    }

    /// How far the workload is, and how it goes.
    pub fn advance(&self, elapsed: Duration, limit: Duration, load: &Load) {
        let line = load.line(elapsed, limit);
        match &self.bar {
            Some(bar) => {
                let length = crate::clock::whole_milliseconds(limit);
                self.draw(bar, crate::clock::whole_milliseconds(elapsed.min(limit)), length, &line);
            }
            None => self.line_now_and_then(elapsed, &line),
        }
    }

    /// How many of so many things are done, after how long; of an unknown number when there is none.
    pub fn count(&self, done: u64, of: Option<u64>, elapsed: Duration, line: &Line) {
        match &self.bar {
            Some(bar) => self.draw(bar, done, of.unwrap_or(done).max(1), line),
            None => self.line_now_and_then(elapsed, line),
        }
    }

    fn draw(&self, bar: &ProgressBar, position: u64, length: u64, line: &Line) {
        let columns = columns();
        let width = bar_width(columns);
        let mut state = self.state();
        if state.shown != Shown::Bar(width) {
            if !matches!(state.shown, Shown::Bar(_)) {
                bar.disable_steady_tick();
                bar.reset();
            }
            state.shown = Shown::Bar(width);
            let colour = if colour_wanted(true) { ".cyan" } else { "" };
            style(bar, &format!("[{{bar:{width}{colour}}}] {{msg}}"));
        }
        bar.set_length(length);
        bar.set_position(position);
        bar.set_message(line.fitted(columns.saturating_sub(beside(columns))));
    }

    fn line_now_and_then(&self, elapsed: Duration, line: &Line) {
        let mut state = self.state();
        if elapsed.saturating_sub(state.last_line) >= LINE_EVERY {
            state.last_line = elapsed;
            write_line(&line.whole());
        }
    }

    /// What is told by a bar is over: it goes.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            self.state().shown = Shown::Nothing;
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The templates are constants of ours; were one wrong, the look before it would do.
fn style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("##-"));
    }
}

/// How wide a bar is on a terminal of so many columns. The words beside it are worth more.
fn bar_width(columns: usize) -> usize {
    match columns {
        ..70 => 8,
        70..100 => 12,
        100..140 => 16,
        _ => 30,
    }
}

/// What a bar and its frame take of so many columns.
fn beside(columns: usize) -> usize {
    bar_width(columns) + FRAME
}

/// The width of the terminal at this moment.
fn columns() -> usize {
    rustix::termios::tcgetwinsize(std::io::stderr())
        .map(|size| usize::from(size.ws_col))
        .ok()
        .filter(|columns| *columns > 0)
        .unwrap_or(USUAL_COLUMNS)
}

fn write_line(line: &str) {
    // A closed stderr is no reason to end a run.
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_leaves_most_of_the_line_to_the_words() {
        for columns in 40..200 {
            assert!(beside(columns) * 3 <= columns, "{columns}");
        }
    }

    #[test]
    fn nothing_is_told_nowhere_whatever_comes_in_which_order() {
        let progress = Progress::silent();
        progress.step("a step");
        progress.step_goes_on("a step: half of it");
        progress.advance(Duration::from_secs(1), Duration::from_secs(2), &Load::default());
        progress.clear();
        progress.step("another");
        progress.say("a line");
        progress.clear();
    }
}
