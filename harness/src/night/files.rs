//! What comes out of a night: the page of all nights, and files for CI and for monitoring.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use nights::findings::Finding;
use nights::fold::{self, Night};
use nights::suite::Known;
use nights::trends::{self, Series};
use reports::nights::View;
use reports::terminal::Style;

use crate::store::RunFolder;

/// Where CI on GitHub wants a summary.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// The reports of nights. What is derived from all of them is derived once.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    nights: Vec<Night>,
    findings: Vec<Finding>,
    series: Vec<Series>,
}

impl Report {
    /// Of a store. Runs whose folders are gone are shown without them.
    pub fn of(store: &Path, mut nights: Vec<Night>, known: &[Known]) -> Self {
        for run in nights.iter_mut().flat_map(|night| night.attempts.iter_mut().chain(&mut night.mutants)) {
            run.folder = run.folder.take().filter(|folder| store.join(folder).is_dir());
        }
        let (findings, series) = (fold::findings(&nights, known), trends::series(&nights));
        Self { nights, findings, series }
    }

    fn view(&self) -> View<'_> {
        View { nights: &self.nights, findings: &self.findings, series: &self.series }
    }

    /// Writes the page and the files beside it into the store.
    ///
    /// # Errors
    ///
    /// When one can't be written.
    pub fn write(&self, store: &Path) -> anyhow::Result<()> {
        let view = self.view();
        let markdown = reports::nights::markdown(&view);
        for (name, text) in [
            ("index.html", &reports::nights::page(&view)),
            ("junit.xml", &reports::nights::junit(&view)),
            ("summary.md", &markdown),
            ("metrics.txt", &reports::nights::open_metrics(&view)),
        ] {
            RunFolder::write(&store.join(name), text.as_bytes())?;
        }
        match std::env::var_os(STEP_SUMMARY) {
            Some(summary) => append(Path::new(&summary), &markdown),
            None => Ok(()),
        }
    }

    /// The screen with the place of the page, and what CI on GitHub shows beside the code.
    pub fn screen(&self, store: &Path, style: Style) -> String {
        let view = self.view();
        let page = store.join("index.html").display().to_string();
        let mut text = reports::nights::screen(&view, style) + &reports::nights::screen_page(&page);
        if std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
            text.push_str(&reports::nights::annotations(&view));
        }
        text
    }
}

fn append(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}, which {STEP_SUMMARY} names", path.display()))
}
