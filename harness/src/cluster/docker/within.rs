//! Commands in containers of every kind, for as long as they run, and what they leave in a folder.
//!
//! The engine starts each command and tells its end, but can't end it. So where the container has a shell,
//! the shell notes its process group before it becomes the command, and a second command kills that group:
//! the runtime makes each command the leader of a session.
//!
//! Folders come as archives, which asks for no program in the container, be it `ls` or `cat`. They pass by
//! without being held: a template may be many programs of some ten megabytes.
//!
//! What programs assert lies in one volume of the run, which every container has at [`OUTPUT`], with a folder
//! for each. Everybody may write there, because the users of foreign images are not known.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bollard::container::LogOutput;
use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use tar::{Archive, EntryType};
use tokio::sync::mpsc;

use super::container::Lines;
use super::engine::{Cause, Engine, EngineError};
use crate::cluster::Async;
use crate::cluster::containers::{
    Containers, EachFile, Found, Job, LOCAL_OUTPUT_VARIABLE, OUTPUT_VARIABLE, Ran, Said,
};

/// Where the volume is in every container.
pub(super) const OUTPUT: &str = "/harness-tests";
/// How long the engine may take to begin or to look at something.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a short command may take, and the engine for it.
const SHORT_PATIENCE: Duration = Duration::from_secs(10);
/// How long an archive may take.
const ARCHIVE_PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of an archive that are read.
const MOST_BYTES: u64 = 2 << 30;
/// Pieces of an archive that wait to be read.
const MOST_WAITING: usize = 16;
/// Notes its process group, and becomes a command.
const NOTE_AND_RUN: &str = "echo $$ >\"$0\"; exec \"$1\"";
/// Kills a process group that was noted.
const KILL: &str = "read group <\"$0\" && kill -9 -\"$group\"";

/// Runs commands in the containers of a run.
pub(super) struct Within {
    engine: Engine,
    /// A container of ours that has the volume and lives as long as the run.
    reader: String,
    /// What runs, by the names of services; a member's changes with each start.
    running: Mutex<BTreeMap<String, String>>,
    /// Which containers have a shell, by their ids.
    shells: Shells,
}

/// Which containers have a shell, by their ids.
pub(super) type Shells = Arc<Mutex<BTreeMap<String, bool>>>;

impl Within {
    /// Makes a folder for each of these containers, none of which runs yet.
    pub(super) async fn prepare(engine: Engine, reader: String, names: &[&str]) -> anyhow::Result<Self> {
        let folders = folders(names).context("describing folders")?;
        let options = UploadToContainerOptionsBuilder::new().path(OUTPUT).build();
        let id = reader.clone();
        let upload = |docker: bollard::Docker| async move {
            docker.upload_to_container(&id, Some(options), bollard::body_full(folders)).await
        };
        engine.call("making folders for what is asserted", PATIENCE, upload).await?;
        Ok(Self { engine, reader, running: Mutex::default(), shells: Shells::default() })
    }

    /// A service runs in this container from now.
    pub(super) fn runs(&self, name: &str, container: String) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(name.to_owned(), container);
    }

    fn id(&self, name: &str) -> Option<String> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// What a container's own programs are told. No two of its processes write into one file: some SDKs empty it
/// first.
pub(super) fn environment(container: &str, file: &str) -> [String; 2] {
    [
        format!("{OUTPUT_VARIABLE}={OUTPUT}/{container}"),
        format!("{LOCAL_OUTPUT_VARIABLE}={OUTPUT}/{container}/{file}.jsonl"),
    ]
}

fn folders(names: &[&str]) -> io::Result<Bytes> {
    let mut archive = tar::Builder::new(Vec::new());
    for name in names {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_mode(0o777);
        header.set_size(0);
        archive.append_data(&mut header, format!("{name}/"), io::empty())?;
    }
    archive.into_inner().map(Bytes::from)
}

impl Containers for Within {
    fn names(&self) -> Vec<String> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn files<'a>(&'a self, container: &'a str, folder: &'a str) -> Async<'a, Vec<Found>> {
        Box::pin(async move {
            let id = self.id(container).ok_or_else(|| anyhow!("{container} was never started"))?;
            let (sender, found) = std::sync::mpsc::channel();
            let each = move |path: &Path, header: &tar::Header, _: &mut dyn Read| {
                // Nobody hears when this is given up.
                let _ = found_at(path, header).map(|found| sender.send(found));
                Ok(())
            };
            for_each_entry(&self.engine, id, folder, each)
                .await
                .with_context(|| format!("{container}, {folder}"))?;
            Ok(found.into_iter().collect())
        })
    }

    fn run(&self, job: Job, said: mpsc::Sender<Said>) -> Async<'static, Ran> {
        let (engine, container) = (self.engine.clone(), self.id(&job.container));
        let shells = Arc::clone(&self.shells);
        Box::pin(async move {
            let Some(container) = container else {
                return Ok(Ran::Lost("its container was never started".to_owned()));
            };
            Ok(match run(&engine, container, job, (said, shells)).await {
                Ok(status) => Ran::Status(status),
                Err(why) => Ran::Lost(why.to_string()),
            })
        })
    }

    fn end(&self, job: Job) -> Async<'static, bool> {
        let (engine, container) = (self.engine.clone(), self.id(&job.container));
        Box::pin(async move {
            let Some(container) = container else { return Ok(false) };
            let words = ["/bin/sh", "-c", KILL, &noted(&job)].map(str::to_owned).to_vec();
            let killed = engine.call("ending a command", SHORT_PATIENCE, |docker| async move {
                short(&docker, &container, words).await
            });
            // A container that is gone has taken the command along.
            Ok(killed.await.is_ok_and(|status| status == Some(0)))
        })
    }

    fn read(&self, mut each: EachFile) -> Async<'_, ()> {
        Box::pin(async move {
            let each = move |path: &Path, header: &tar::Header, content: &mut dyn Read| {
                let mut names = path.components().filter_map(name).skip(1);
                let (container, file) = (names.next(), names.next());
                match (header.entry_type(), container, file) {
                    (EntryType::Regular, Some(container), Some(file)) => each(&container, &file, content),
                    _ => Ok(()),
                }
            };
            for_each_entry(&self.engine, self.reader.clone(), OUTPUT, each).await
        })
    }
}

fn name(component: Component<'_>) -> Option<String> {
    match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    }
}

/// What an entry of an archive of a folder of templates is: `v1/TEMPLATE/NAME`.
fn found_at(path: &Path, header: &tar::Header) -> Option<Found> {
    let names: Vec<String> = path.components().filter_map(name).collect();
    let [_, template, file] = names.as_slice() else { return None };
    let executable = match header.entry_type() {
        EntryType::Regular | EntryType::Link => header.mode().is_ok_and(|mode| mode & 0o111 != 0),
        // Whatever it leads to shows when it is run.
        EntryType::Symlink => true,
        _ => return None,
    };
    Some(Found { template: template.clone(), name: file.clone(), executable })
}

/// Where the process group of a job is noted.
fn noted(job: &Job) -> String {
    format!("{OUTPUT}/{}/execution-{}.pid", job.container, job.number)
}

/// Runs a job to its end and gives its exit status.
async fn run(
    engine: &Engine,
    container: String,
    job: Job,
    (said, shells): (mpsc::Sender<Said>, Shells),
) -> Result<i64, EngineError> {
    let words = if has_a_shell(engine, &container, &shells).await? {
        ["/bin/sh", "-c", NOTE_AND_RUN, &noted(&job), &job.path].map(str::to_owned).to_vec()
    } else {
        vec![job.path.clone()]
    };
    let config = ExecConfig {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        env: Some(environment(&job.container, &format!("execution-{}", job.number)).to_vec()),
        cmd: Some(words),
        ..ExecConfig::default()
    };
    let (id, mut output) = engine
        .call("starting a command in a container", PATIENCE, |docker| async move {
            let id = docker.create_exec(&container, config).await?.id;
            match docker.start_exec(&id, None).await? {
                StartExecResults::Attached { output, .. } => Ok((id, Some(output))),
                StartExecResults::Detached => Ok((id, None)),
            }
        })
        .await?;
    let listening = engine.spawn(async move {
        let mut lines = [Lines::default(), Lines::default()];
        while let Some(Ok(piece)) = next(&mut output).await {
            let stream = usize::from(matches!(piece, LogOutput::StdErr { .. }));
            let mut whole = Vec::new();
            lines[stream].take(&piece.into_bytes(), |line| whole.push(line.to_vec()));
            for line in whole {
                // Nobody hears when the run is given up.
                let _ = said.send(Said { number: job.number, line }).await;
            }
        }
        // A last line without an end.
        for mut rest in lines {
            let mut last = Vec::new();
            rest.take(b"\n", |line| last.extend_from_slice(line));
            if !last.is_empty() {
                let _ = said.send(Said { number: job.number, line: last }).await;
            }
        }
    });
    // Its end is what counts, and what it said is in the log.
    let _ = listening.await;
    let looking = |docker: bollard::Docker| async move { docker.inspect_exec(&id).await };
    let ended = engine.call("asking how a command ended", PATIENCE, looking).await?;
    ended.exit_code.ok_or_else(|| EngineError {
        what: "asking how a command ended".to_owned(),
        cause: Cause::Unfitting("the engine does not say".to_owned()),
    })
}

/// Whether a container has a shell, which is asked once.
pub(super) async fn has_a_shell(
    engine: &Engine,
    container: &str,
    shells: &Shells,
) -> Result<bool, EngineError> {
    let known = shells.lock().unwrap_or_else(PoisonError::into_inner).get(container).copied();
    if let Some(known) = known {
        return Ok(known);
    }
    let (id, words) = (container.to_owned(), ["/bin/sh", "-c", ":"].map(str::to_owned).to_vec());
    let asking = |docker: bollard::Docker| async move { short(&docker, &id, words).await };
    let has_one = engine.call("looking for a shell", SHORT_PATIENCE, asking).await? == Some(0);
    shells.lock().unwrap_or_else(PoisonError::into_inner).insert(container.to_owned(), has_one);
    Ok(has_one)
}

async fn next<S: futures_util::Stream + Unpin>(output: &mut Option<S>) -> Option<S::Item> {
    output.as_mut()?.next().await
}

/// Runs a command that says nothing, and gives its exit status.
pub(super) async fn short(
    docker: &bollard::Docker,
    container: &str,
    words: Vec<String>,
) -> Result<Option<i64>, bollard::errors::Error> {
    // An engine tells the end only of what somebody is attached to.
    let config = ExecConfig {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(words),
        ..ExecConfig::default()
    };
    let id = docker.create_exec(container, config).await?.id;
    if let StartExecResults::Attached { mut output, .. } = docker.start_exec(&id, None).await? {
        while let Some(piece) = output.next().await {
            piece?;
        }
    }
    Ok(docker.inspect_exec(&id).await?.exit_code)
}

/// An archive while it arrives, for a reader that blocks.
struct Pieces {
    coming: mpsc::Receiver<Bytes>,
    /// What is left of the piece that is being read.
    now: Bytes,
    /// Bytes read so far; more than [`MOST_BYTES`] are refused.
    read: u64,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() {
            match self.coming.blocking_recv() {
                Some(piece) => self.now = piece,
                None => return Ok(0),
            }
        }
        let length = self.now.len().min(into.len());
        self.read += u64::try_from(length).unwrap_or(u64::MAX);
        if self.read > MOST_BYTES {
            return Err(io::Error::other("it is larger than what is read"));
        }
        self.now.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}

/// Downloads a folder of a container and gives each entry of it to `each`: its path below the folder's
/// parent, its header and its content. A folder that is not there has no entries.
///
/// The entries are unpacked while they arrive, on a thread of their own, because `tar` reads blockingly.
async fn for_each_entry(
    engine: &Engine,
    container: String,
    folder: &str,
    mut each: impl FnMut(&Path, &tar::Header, &mut dyn Read) -> io::Result<()> + Send + 'static,
) -> anyhow::Result<()> {
    let (sender, coming) = mpsc::channel(MOST_WAITING);
    let reading = tokio::task::spawn_blocking(move || {
        let mut archive = Archive::new(Pieces { coming, now: Bytes::new(), read: 0 });
        for entry in archive.entries()? {
            let mut entry = entry?;
            let (path, header) = (entry.path()?.into_owned(), entry.header().clone());
            each(&path, &header, &mut entry)?;
        }
        io::Result::Ok(())
    });
    let options = DownloadFromContainerOptionsBuilder::new().path(folder).build();
    let fetched = engine
        .call("reading a folder of a container", ARCHIVE_PATIENCE, |docker| async move {
            let mut pieces = Box::pin(docker.download_from_container(&container, Some(options)));
            while let Some(piece) = pieces.next().await {
                // Who reads may have had enough.
                if sender.send(piece?).await.is_err() {
                    break;
                }
            }
            Ok(())
        })
        .await;
    let read = reading.await.context("reading an archive")?;
    match fetched {
        Err(EngineError { cause: Cause::Refused(404, _), .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => match read {
            Ok(()) => Ok(()),
            Err(error) => bail!("reading an archive: {error}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_templates_are_told_apart_from_what_lies_beside_and_below_them() {
        let header = |kind: EntryType, mode: u32| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(mode);
            header
        };
        let found = |path: &str, kind, mode| found_at(Path::new(path), &header(kind, mode));
        let of = |executable| Some(Found { template: "main".into(), name: "first_x".into(), executable });
        assert_eq!(found("v1/main/first_x", EntryType::Regular, 0o755), of(true));
        assert_eq!(found("./v1/main/first_x", EntryType::Regular, 0o644), of(false));
        assert_eq!(found("v1/main/first_x", EntryType::Symlink, 0o777), of(true));
        assert_eq!(found("v1/main/first_x", EntryType::Directory, 0o755), None);
        assert_eq!(found("v1/first_x", EntryType::Regular, 0o755), None);
        assert_eq!(found("v1/main/helper/first_x", EntryType::Regular, 0o755), None);
    }
}
