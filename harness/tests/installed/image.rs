//! Images for a test, made of programs that are installed here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a program is.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().ok()?;
    let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    std::fs::canonicalize(path).ok()
}

/// An image, for as long as this lives.
pub(crate) struct Image(pub(crate) &'static str);

impl Image {
    /// One of these programs under these names, with what they are linked to; none, which is said, where one
    /// is not installed or no engine answers.
    pub(crate) fn made(name: &'static str, programs: &[(&str, &[&str])]) -> Option<Self> {
        let mut found = Vec::new();
        for (program, names) in programs {
            let Some(path) = which(program) else {
                eprintln!("skipped: {program} is not installed");
                return None;
            };
            // A script asks for more than what it is linked to.
            let begins = std::fs::read(&path).unwrap_or_default();
            if !begins.starts_with(b"\x7fELF") {
                eprintln!("skipped: {} is a script, and an image needs the program", path.display());
                return None;
            }
            found.push((path, *names));
        }
        let engine = Command::new("docker").args(["version", "--format", "x"]).output();
        if !engine.is_ok_and(|engine| engine.status.success()) {
            eprintln!("skipped: no Docker engine answers, or there is no docker to ask it");
            return None;
        }
        let root = tempfile::tempdir().expect("a folder");
        let mut files: BTreeSet<PathBuf> = BTreeSet::new();
        for (program, names) in &found {
            let needed = Command::new("ldd").arg(program).output().expect("ldd");
            let needed = String::from_utf8_lossy(&needed.stdout).into_owned();
            files.extend(needed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from));
            names.iter().for_each(|name| copy(program, &root.path().join("bin").join(name)));
        }
        for file in &files {
            copy(file, &root.path().join(file.strip_prefix("/").expect("absolute")));
        }
        std::fs::create_dir(root.path().join("data")).expect("made");
        let mut tar = Command::new("tar")
            .arg("-C")
            .arg(root.path())
            .args(["-c", "."])
            .stdout(Stdio::piped())
            .spawn()
            .expect("tar");
        let import = ["import", "--change", "ENV PATH=/bin", "-", name];
        let imported = Command::new("docker").args(import).stdin(tar.stdout.take().expect("a pipe")).output();
        assert!(imported.expect("docker").status.success() && tar.wait().expect("it ends").success());
        Some(Self(name))
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
    std::fs::copy(from, to).expect("copied");
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", "--force", self.0]).output();
    }
}
