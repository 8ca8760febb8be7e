//! What is measured of this machine: how long its disk takes to sync, the median of many tries.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

/// How often each thing is measured; the median is told.
const SAMPLES: usize = 51;

/// How long it takes to sync a small file where runs are kept.
///
/// # Errors
///
/// When nothing can be written there.
pub fn median_sync(store: &Path) -> anyhow::Result<Duration> {
    // The store need not exist yet: the nearest folder above it is on the same disk.
    let absolute = std::path::absolute(store).context("finding the store")?;
    let folder = absolute.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    let mut file =
        tempfile::tempfile_in(folder).with_context(|| format!("writing below {}", folder.display()))?;
    median_of(|| {
        file.write_all(&[0; 128]).context("writing")?;
        file.sync_data().context("fdatasync")
    })
}

/// The median of many tries.
///
/// # Errors
///
/// The first failure.
pub fn median_of(mut once: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let mut took = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        once()?;
        took.push(start.elapsed());
    }
    took.sort_unstable();
    Ok(took[SAMPLES / 2])
}
