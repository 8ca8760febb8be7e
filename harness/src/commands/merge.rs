//! `harness merge`: nights of several machines in one store.
//!
//! Shards need no word from each other while they run; afterwards their lines and folders are put together.
//! Lines that are there already are left as they are, so a merge that was interrupted is begun again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context;
use nights::fold;
use nights::index::{Line, Merged};
use runs::numbers::plural;

use super::screen::{print, style};
use crate::cli::MergeArgs;
use crate::exit::{Exit, Failure};
use crate::night::files::Report;
use crate::night::store::{self, Store};

/// Puts stores together, draws the page, and ends as the last night did.
pub fn merge(args: &MergeArgs) -> Result<Exit, Failure> {
    let mut from = Vec::new();
    for path in &args.from {
        if !store::index_of(path).is_file() {
            return Err(Failure::usage(format!(
                "{} has no nights.jsonl: name the --store of a night",
                path.display()
            )));
        }
        from.push((path, store::lines(path)?));
    }
    let (mut into, mut all) = Store::take(&args.into)?;
    let mut taken = 0_u64;
    for (path, lines) in from {
        let nights: BTreeSet<String> = lines.iter().map(|line| line.night().to_owned()).collect();
        for night in &nights {
            copy(&path.join(night), &into.night(night))
                .with_context(|| format!("copying the night {night} of {}", path.display()))?;
        }
        copy(&path.join("builds"), &into.path().join("builds"))
            .with_context(|| format!("copying the builds of {}", path.display()))?;
        for line in lines {
            if !all.contains(&line) {
                into.append(&line)?;
                all.push(line);
                taken += 1;
            }
        }
    }
    // From now on all shards of these nights are to be here, also where but one was merged.
    let of_shards = |line: &Line| matches!(line, Line::Night(begun) if begun.shard.is_some());
    let nights: BTreeSet<String> =
        all.iter().filter(|line| of_shards(line)).map(|line| line.night().to_owned()).collect();
    for night in nights {
        let merged = Line::Merged(Merged { night });
        if !all.contains(&merged) {
            into.append(&merged)?;
            all.push(merged);
        }
    }
    let nights = fold::nights(&all);
    let exit = match nights.last().and_then(|night| night.judged.as_ref()) {
        Some(judged) => Exit::from(judged.pile),
        None => Exit::Unknown,
    };
    let report = Report::of(&args.into, nights, &[]);
    report.write(&args.into).context("writing the page of the nights")?;
    let text = report.screen(&args.into, style());
    print(&format!("{text}taken in    {}\n", plural(taken, "line")))?;
    Ok(exit)
}

/// Copies what is not there yet. Links are left out: they lead elsewhere.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    fs::create_dir_all(to)?;
    for entry in entries {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() && !target.exists() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
