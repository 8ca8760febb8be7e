//! The executable that makes the runs of a night.
//!
//! It is copied into the store under a mark of its bytes. So a build that replaces it while the night goes on
//! changes nothing, and a later night can run the same build again beside its own and see which of them is
//! slower.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
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

/// Keeps the executable of this process in the store.
///
/// # Errors
///
/// When it can't be read, or the store can't be written.
pub fn keep(store: &Path) -> anyhow::Result<Build> {
    // The link leads to what runs, even when the file was replaced or removed since.
    let bytes = fs::read("/proc/self/exe").context("reading this executable")?;
    let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let mark: String = hex.chars().take(DIGITS).collect();
    let name = format!("{} {mark}", env!("CARGO_PKG_VERSION"));
    let executable =
        std::path::absolute(store).context("finding the store")?.join("builds").join(&mark).join("harness");
    if !executable.is_file() {
        copy(&bytes, &executable).with_context(|| format!("writing {}", executable.display()))?;
    }
    Ok(Build { name, executable })
}

fn copy(bytes: &[u8], to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = to.with_extension("new");
    fs::write(&draft, bytes)?;
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755))?;
    fs::rename(&draft, to)
}
