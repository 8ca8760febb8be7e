//! The executable that makes the runs of a night.
//!
//! It is copied into the store under a mark of its bytes. So a build that replaces it while the night goes on
//! changes nothing, and a later night can run the same build again beside its own and see which of them is
//! slower.
//!
//! A store may be somebody else's, or merged from others, and what it calls a build is a program. So an
//! earlier build runs only where its bytes are those of one that this user kept from a night of his own: the
//! user's cache has a file for each, named after all of its SHA-256.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use harness_systems::files::cache;
use sha2::{Digest, Sha256};

/// Digits of a build's mark.
const DIGITS: usize = 12;

/// A build of the harness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Its version and mark: `0.1.0 3fa8b2c41d5e`.
    pub name: String,
    /// The executable in the store.
    pub executable: PathBuf,
}

/// Where a build of that name is kept.
pub fn place(store: &Path, name: &str) -> Option<PathBuf> {
    let mark = name.rsplit_once(' ').map_or(name, |(_, mark)| mark);
    let is_mark = mark.len() == DIGITS && mark.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_mark.then(|| store.join("builds").join(mark).join("harness"))
}

/// The executable of an earlier build, if it may be run: it is there, and this user kept it.
///
/// # Errors
///
/// Why it is not run.
pub fn earlier(store: &Path, name: &str) -> Result<PathBuf, String> {
    // The name is what an index says, which may be somebody else's.
    let shown = name.escape_debug();
    let gone = || format!("the build {shown} is not kept any more");
    let executable = place(store, name).and_then(|file| std::path::absolute(file).ok()).ok_or_else(gone)?;
    let bytes = fs::read(&executable).map_err(|_| gone())?;
    let sum = sum(&bytes);
    if !name.ends_with(mark(&sum)) || !kept_here().is_some_and(|kept| kept.join(&sum).is_file()) {
        return Err(format!(
            "the build {shown} in this store made no night of yours on this machine, so it is not run"
        ));
    }
    Ok(executable)
}

/// Where it is noted which builds this user kept.
fn kept_here() -> Option<PathBuf> {
    cache().map(|cache| cache.join("harness").join("builds"))
}

/// Notes that this user kept a build. Where it can't be noted, a later night does not run it again.
fn note(sum: &str) {
    let Some(kept) = kept_here() else { return };
    let noted = fs::create_dir_all(&kept).and_then(|()| fs::write(kept.join(sum), b""));
    if let Err(error) = noted {
        tracing::warn!(%error, "later nights will not run this build again: {}", kept.display());
    }
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The mark of a build, from the sum of its bytes.
fn mark(sum: &str) -> &str {
    &sum[..DIGITS]
}

/// Keeps the executable of this process in the store. What lies in its place and is another is replaced.
///
/// # Errors
///
/// When it can't be read, or the store can't be written.
pub fn keep(store: &Path) -> anyhow::Result<Build> {
    // The link leads to what runs, even when the file was replaced or removed since.
    let bytes = fs::read("/proc/self/exe").context("reading this executable")?;
    let sum = sum(&bytes);
    let name = format!("{} {}", env!("CARGO_PKG_VERSION"), mark(&sum));
    let executable = std::path::absolute(store)
        .context("finding the store")?
        .join("builds")
        .join(mark(&sum))
        .join("harness");
    if fs::read(&executable).ok().as_deref() != Some(&bytes[..]) {
        copy(&bytes, &executable).with_context(|| format!("writing {}", executable.display()))?;
    }
    note(&sum);
    Ok(Build { name, executable })
}

fn copy(bytes: &[u8], to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = to.with_extension("new");
    // A link in its place leads elsewhere.
    let _ = fs::remove_file(&draft);
    fs::File::create_new(&draft)?.write_all(bytes)?;
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755))?;
    fs::rename(&draft, to)
}
