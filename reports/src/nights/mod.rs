//! A night of runs, drawn: as a page, on a terminal, and for build servers.
//!
//! The crate [`nights`] folds an index into nights, findings and series; a [`View`] has them, and everything
//! here is a function of it, as the renderings of a run are functions of a run. All of them say the same in
//! the same words, which come from one place.
//!
//! - [`page`]: the page that lies in the store, beside the run folders that it links to.
//! - [`screen`]: the last lines on a terminal.
//! - [`markdown`] and [`annotations`]: for the summary and the log of a build server's job.
//! - [`junit`]: test cases that keep their names from night to night.
//! - [`open_metrics`]: the night's numbers for whoever collects them.
//!
//! A night that has no end on record, that was stopped, or in which no case came to an end is never drawn as
//! a valid one, whatever its line says.

mod annotations;
mod digest;
mod junit;
mod markdown;
mod metrics;
mod page;
mod screen;

use nights::findings::Finding;
use nights::fold::Night;
use nights::trends::Series;

use crate::terminal::Style;

/// What every rendering is drawn from.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The nights, oldest first; the last one is shown.
    pub nights: &'a [Night],
    /// The findings as the last night sees them.
    pub findings: &'a [Finding],
    /// Every series of the last night's machine.
    pub series: &'a [Series],
}

/// The page: one self-contained file, to lie in the store beside the run folders.
pub fn page(view: &View<'_>) -> String {
    page::render(view)
}

/// The last lines of a night on a terminal.
pub fn screen(view: &View<'_>, style: Style) -> String {
    screen::render(view, style)
}

/// The line of the screen that says where the page lies, as a person would type it.
pub fn screen_page(path: &str) -> String {
    screen::page(path)
}

/// The summary of a build server's job, in Markdown.
pub fn markdown(view: &View<'_>) -> String {
    markdown::render(view)
}

/// Annotations as GitHub's workflow commands, a line each.
pub fn annotations(view: &View<'_>) -> String {
    annotations::render(view)
}

/// The night as JUnit XML.
pub fn junit(view: &View<'_>) -> String {
    junit::render(view)
}

/// The night's numbers as OpenMetrics text.
pub fn open_metrics(view: &View<'_>) -> String {
    metrics::render(view)
}
