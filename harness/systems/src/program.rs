//! Programs of the user's own, looked for before anything is started.

use std::path::Path;

use rustix::fs::{Access, access};

/// Whether there is such a program that can be run: where it is named by its path, seen from this folder,
/// else on the path.
#[must_use]
pub fn is_there(program: &str, folder: &Path) -> bool {
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return runs(&folder.join(program));
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| runs(&path.join(program)))
}
