//! What comes out of a night: the page of all nights, and files for CI and for monitoring.

use std::path::Path;

use anyhow::Context;
use nights::fold::{self, Night};
use nights::suite::Known;
use nights::trends;
use reports::nights::View;

use crate::store::RunFolder;

/// Where CI on GitHub wants a summary.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Writes them into the store. Runs whose folders are gone are drawn without a link.
///
/// # Errors
///
/// When one can't be written.
pub fn write(store: &Path, nights: &[Night], known: &[Known]) -> anyhow::Result<()> {
    let there = with_folders_that_are_there(store, nights);
    let (findings, series) = (fold::findings(&there, known), trends::series(&there));
    let view = View { nights: &there, findings: &findings, series: &series };
    let markdown = reports::nights::markdown(&view);
    for (name, text) in [
        ("index.html", reports::nights::page(&view)),
        ("junit.xml", reports::nights::junit(&view)),
        ("summary.md", markdown.clone()),
        ("metrics.txt", reports::nights::open_metrics(&view)),
    ] {
        RunFolder::write(&store.join(name), text.as_bytes())?;
    }
    if let Some(summary) = std::env::var_os(STEP_SUMMARY) {
        append(Path::new(&summary), &markdown)?;
    }
    Ok(())
}

fn append(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}, which {STEP_SUMMARY} names", path.display()))
}

fn with_folders_that_are_there(store: &Path, nights: &[Night]) -> Vec<Night> {
    let mut nights = nights.to_vec();
    for run in nights.iter_mut().flat_map(|night| night.attempts.iter_mut().chain(&mut night.mutants)) {
        run.folder = run.folder.take().filter(|folder| store.join(folder).is_dir());
    }
    nights
}

/// The screen, and what CI on GitHub shows beside the code.
pub fn screen(nights: &[Night], known: &[Known], style: reports::terminal::Style) -> String {
    let (findings, series) = (fold::findings(nights, known), trends::series(nights));
    let view = View { nights, findings: &findings, series: &series };
    let mut text = reports::nights::screen(&view, style);
    if std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true") {
        text.push_str(&reports::nights::annotations(&view));
    }
    text
}
