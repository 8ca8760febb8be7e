//! Collects members' data before their volumes are removed, so that a run that was not valid can be examined.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use futures_util::TryStreamExt;
use tar::{Archive, EntryType};

use super::engine::Engine;

/// What one member's folder may hold; more is not collected. Apache ZooKeeper makes its log 64 MiB long
/// before anything is in it.
const MAX_BYTES: usize = 128 * 1024 * 1024;
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Copies a folder of a container into a folder of this machine.
pub(super) async fn folder(engine: &Engine, id: &str, path: &str, target: &Path) -> anyhow::Result<()> {
    let options = DownloadFromContainerOptionsBuilder::new().path(path).build();
    let id = id.to_owned();
    let tar = engine
        .call("fetching a member's data", PATIENCE, move |docker| async move {
            let mut pieces = docker.download_from_container(&id, Some(options));
            let mut bytes = Vec::new();
            while let Some(piece) = pieces.try_next().await? {
                bytes.extend_from_slice(&piece);
                if bytes.len() > MAX_BYTES {
                    return Ok(None);
                }
            }
            Ok(Some(bytes))
        })
        .await?;
    let Some(tar) = tar else {
        bail!("it is larger than {} MiB, which is more than is kept", MAX_BYTES / 1024 / 1024);
    };
    unpack(&tar, target).with_context(|| format!("unpacking into {}", target.display()))
}

/// Unpacks folders and plain files, with the names below the first; nothing else, and nothing outside.
fn unpack(tar: &[u8], target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in Archive::new(tar).entries()? {
        let mut entry = entry?;
        let Some(below) = below_the_first(&entry.path()?) else { continue };
        let path = target.join(below);
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(&path)?,
            EntryType::Regular => {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                io::copy(&mut entry, &mut fs::File::create(&path)?)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn below_the_first(path: &Path) -> Option<PathBuf> {
    let mut components = path.components().filter(|part| *part != Component::CurDir);
    components.next()?;
    components
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect::<Option<PathBuf>>()
        .filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_files_come_home_and_nothing_gets_outside() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut add = |path: &str, kind: EntryType| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(0o600);
            header.set_size(if kind == EntryType::Regular { 1 } else { 0 });
            // The safe way to set a path refuses what is to be tried here.
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            if kind == EntryType::Symlink {
                header.set_link_name("/etc").expect("a link");
            }
            header.set_cksum();
            let data: &[u8] = if kind == EntryType::Regular { b"x" } else { b"" };
            tar.append(&header, data).expect("appended");
        };
        add("data/", EntryType::Directory);
        add("data/version-2/log.1", EntryType::Regular);
        add("data/../../outside", EntryType::Regular);
        add("data/link", EntryType::Symlink);
        let tar = tar.into_inner().expect("a tar");
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("a/data");
        unpack(&tar, &target).expect("unpacked");
        assert_eq!(fs::read(target.join("version-2/log.1")).expect("a log"), b"x");
        assert!(!folder.path().join("outside").exists());
        assert!(!target.join("link").exists());
    }
}
