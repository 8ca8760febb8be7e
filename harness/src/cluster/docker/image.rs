//! The members' image: this very executable and two empty folders. Nothing is pulled, nothing is built.

use std::io;
use std::time::Duration;

use anyhow::{Context, anyhow};
use bollard::query_parameters::CreateImageOptionsBuilder;
use bytes::Bytes;
use futures_util::TryStreamExt;
use tar::{Builder, EntryType, Header};

use super::elf::Executable;
use super::labels;
use super::resources::Resources;
use crate::exit::Failure;

/// How long an import may take: an engine far away gets some megabytes.
const IMPORT_PATIENCE: Duration = Duration::from_secs(60);
/// Where the executable is in the image.
pub(super) const EXECUTABLE: &str = "/harness";
/// Where a member keeps its data.
pub(super) const DATA: &str = "/data";
/// Who members are, in numbers: `nobody` nearly everywhere.
pub(super) const NOBODY: u64 = 65_534;

/// The image's tar. Refuses an executable that would not run there.
pub(super) fn layers(architecture: &str) -> Result<Bytes, Failure> {
    // The kernel's own way to the file stays right when it was replaced meanwhile.
    let file = std::fs::read("/proc/self/exe").context("reading this executable")?;
    let executable = Executable::read(&file)
        .and_then(|executable| executable.check(architecture).map(|()| executable))
        .map_err(|unfit| Failure::usage(format!("--cluster docker: {unfit}")))?;
    let loaded = executable.without_sections().map_err(|unfit| anyhow!("cutting: {unfit}"))?;
    Ok(pack(&loaded).context("packing the image")?.into())
}

/// Whether this executable would run there.
pub(super) fn check(architecture: &str) -> anyhow::Result<()> {
    let file = std::fs::read("/proc/self/exe").context("reading this executable")?;
    Executable::read(&file)
        .and_then(|executable| executable.check(architecture))
        .map_err(|unfit| anyhow!("{unfit}"))
}

fn pack(executable: &[u8]) -> io::Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::with_capacity(executable.len() + 16 * 1024));
    folder(&mut tar, "data/", 0o755, NOBODY)?;
    folder(&mut tar, "tmp/", 0o1777, 0)?;
    let mut header = header(EntryType::Regular, 0o755, 0);
    header.set_size(crate::num::wide(executable.len()));
    tar.append_data(&mut header, EXECUTABLE.trim_start_matches('/'), executable)?;
    tar.into_inner()
}

fn folder(tar: &mut Builder<Vec<u8>>, path: &str, mode: u32, owner: u64) -> io::Result<()> {
    tar.append_data(&mut header(EntryType::Directory, mode, owner), path, io::empty())
}

fn header(kind: EntryType, mode: u32, owner: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(owner);
    header.set_gid(owner);
    header.set_mtime(0);
    header.set_size(0);
    header
}

/// Brings it to the engine; gives its name there.
pub(super) async fn import(resources: &Resources, layers: Bytes) -> anyhow::Result<String> {
    let tag = resources.labels().short().to_owned();
    let name = format!("harness:{tag}");
    let mut changes: Vec<String> = resources
        .labels()
        .of("image")
        .into_iter()
        .map(|(key, value)| format!("LABEL {key}=\"{value}\""))
        .collect();
    changes.sort();
    debug_assert!(changes.iter().any(|change| change.contains(labels::RUN)));
    let options =
        CreateImageOptionsBuilder::new().from_src("-").repo("harness").tag(&tag).changes(changes).build();
    resources
        .make("importing the members' image", IMPORT_PATIENCE, move |docker| async move {
            let told = docker.create_image(Some(options), Some(bollard::body_full(layers)), None);
            told.try_for_each(|_| async { Ok(()) }).await
        })
        .await?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_holds_the_executable_and_folders_that_members_may_write_to() {
        let tar = pack(b"an executable").expect("packed");
        let mut archive = tar::Archive::new(tar.as_slice());
        let entries: Vec<(String, u32, u64)> = archive
            .entries()
            .expect("entries")
            .map(|entry| {
                let entry = entry.expect("an entry");
                let header = entry.header();
                let path = entry.path().expect("a path").display().to_string();
                (path, header.mode().expect("a mode"), header.uid().expect("an owner"))
            })
            .collect();
        let expected = [("data/", 0o755, NOBODY), ("tmp/", 0o1777, 0), ("harness", 0o755, 0)];
        assert_eq!(entries, expected.map(|(path, mode, owner)| (path.to_owned(), mode, owner)));
    }
}
