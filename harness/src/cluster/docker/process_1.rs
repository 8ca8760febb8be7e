//! A member whose program is process 1 of a namespace of its own, which no agent is in.
//!
//! Some images insist on that: their init refuses to be anything else. Such a member shares its sandbox's
//! network alone. It is killed and paused by the engine, because nobody else reaches its processes, and a
//! SIGSTOP to an init stops no database.
//!
//! - A kill is proven by the engine's word that process 1 has ended: the kernel tells of that only when no
//!   other process of the namespace is left.
//! - A pause is the freezer's, of the container's cgroup. It is proven by what the kernel says of that cgroup
//!   where the engine is on this machine, and else by the engine's word, which waits for the freezer.
//!
//! Whoever kills the harness leaves such a member as it is, frozen too: its lease is nobody's. The next sweep
//! removes it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use bollard::errors::Error;
use bollard::models::{ContainerState, ContainerStateStatusEnum};
use bollard::query_parameters::{KillContainerOptionsBuilder, StopContainerOptionsBuilder};

use super::engine::{Cause, Engine, EngineError};
use crate::cluster::ProcessState;

/// How long the engine may take for a signal, or to freeze or thaw.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long looking at a container may take.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);
/// Where the kernel tells of cgroups.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Kills everything in the container. A frozen one is thawed by that.
pub(super) async fn kill(engine: &Engine, container: &str) -> anyhow::Result<()> {
    let id = container.to_owned();
    let options = KillContainerOptionsBuilder::new().signal("KILL").build();
    let killed = engine
        .call("killing a container", PATIENCE, |docker| async move {
            docker.kill_container(&id, Some(options)).await
        })
        .await;
    done_unless_it_runs(engine, container, killed).await
}

/// Freezes everything in the container.
pub(super) async fn pause(engine: &Engine, container: &str) -> anyhow::Result<()> {
    let id = container.to_owned();
    let paused = engine
        .call("pausing a container", PATIENCE, |docker| async move { docker.pause_container(&id).await })
        .await;
    match paused {
        Err(error)
            if is_refused(&error) && is(engine, container, ContainerStateStatusEnum::PAUSED).await? =>
        {
            Ok(())
        }
        other => done_unless_it_runs(engine, container, other).await,
    }
}

/// Thaws it.
pub(super) async fn resume(engine: &Engine, container: &str) -> anyhow::Result<()> {
    let id = container.to_owned();
    let resumed = engine
        .call("resuming a container", PATIENCE, |docker| async move { docker.unpause_container(&id).await })
        .await;
    match resumed {
        // It was killed and started again meanwhile, or it is gone.
        Err(error)
            if is_refused(&error) && !is(engine, container, ContainerStateStatusEnum::PAUSED).await? =>
        {
            Ok(())
        }
        other => Ok(other?),
    }
}

/// Asks it to end by the signal that its image names, and kills it after this time.
pub(super) async fn end(engine: &Engine, container: &str, patience: Duration) {
    // A frozen one hears nothing; one that is not frozen is what was wanted.
    let _ = resume(engine, container).await;
    let id = container.to_owned();
    let seconds = i32::try_from(patience.as_secs()).unwrap_or(i32::MAX);
    let options = StopContainerOptionsBuilder::new().t(seconds).build();
    let ended = engine
        .call("ending a container", PATIENCE + patience, |docker| async move {
            docker.stop_container(&id, Some(options)).await
        })
        .await;
    if let Err(error) = ended.or_else(|error| if is_refused(&error) { Ok(()) } else { Err(error) }) {
        tracing::warn!(%error, "a member was not asked to end");
    }
}

/// What it is, where the engine has not told yet how it ended.
pub(super) async fn state(engine: &Engine, container: &str) -> anyhow::Result<ProcessState> {
    let Some(state) = look(engine, container).await? else { return Ok(ProcessState::Dying) };
    Ok(match state.status {
        Some(ContainerStateStatusEnum::RUNNING) => ProcessState::Running,
        Some(ContainerStateStatusEnum::PAUSED) => {
            let freezer = if engine.place().is_local() {
                state.pid.and_then(|pid| freezer(Path::new("/"), pid, container))
            } else {
                None
            };
            match freezer {
                Some(Freezer { is_frozen: false, .. }) => ProcessState::Running,
                Some(Freezer { is_frozen: true, words }) => ProcessState::Frozen(words),
                None => ProcessState::Frozen("by the engine's word".to_owned()),
            }
        }
        _ => ProcessState::Dying,
    })
}

/// Why an engine can't pause containers, if it can't.
pub(super) async fn can_pause(engine: &Engine) -> Result<(), String> {
    let info =
        engine.call("asking for its cgroups", LOOK_PATIENCE, |docker| async move { docker.info().await });
    let driver = info.await.map_err(|error| error.to_string())?.cgroup_driver;
    if driver.is_some_and(|driver| driver.to_string() == "none") {
        return Err(
            "a member that is process 1 (x-harness.process_1) is paused by its cgroup, and this engine \
                    has none: use an engine that is not rootless, or one with cgroups of version 2"
                .to_owned(),
        );
    }
    Ok(())
}

/// The engine refused, and is well.
fn is_refused(error: &EngineError) -> bool {
    matches!(error.cause, Cause::Refused(..))
}

/// What holds for signals holds here: one that nobody is there to get is no error.
async fn done_unless_it_runs(
    engine: &Engine,
    container: &str,
    done: Result<(), EngineError>,
) -> anyhow::Result<()> {
    match done {
        Err(error) if is_refused(&error) && !runs(engine, container).await? => Ok(()),
        other => Ok(other?),
    }
}

async fn runs(engine: &Engine, container: &str) -> anyhow::Result<bool> {
    let status = look(engine, container).await?.and_then(|state| state.status);
    Ok(matches!(status, Some(ContainerStateStatusEnum::RUNNING | ContainerStateStatusEnum::PAUSED)))
}

async fn is(engine: &Engine, container: &str, status: ContainerStateStatusEnum) -> anyhow::Result<bool> {
    Ok(look(engine, container).await?.is_some_and(|state| state.status == Some(status)))
}

/// What the engine says of it; none where it knows nothing of it any more.
async fn look(engine: &Engine, container: &str) -> anyhow::Result<Option<ContainerState>> {
    let id = container.to_owned();
    let seen = engine.call("looking at a container", LOOK_PATIENCE, |docker| async move {
        match docker.inspect_container(&id, None).await {
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
            other => other.map(Some),
        }
    });
    match seen.await? {
        None => Ok(None),
        Some(seen) => match seen.state {
            Some(state) => Ok(Some(state)),
            None => bail!("the engine tells no state of the container {container}"),
        },
    }
}

/// What the kernel says of the freezer of a container.
#[derive(Debug, PartialEq, Eq)]
struct Freezer {
    is_frozen: bool,
    /// As the kernel says it.
    words: String,
}

/// Looks at a container's cgroup by its process 1; none where the kernel below `root` is not the engine's.
/// That it is shows in the path, which has the container's id in it.
fn freezer(root: &Path, pid: i64, container: &str) -> Option<Freezer> {
    let all = fs::read_to_string(root.join(format!("proc/{pid}/cgroup"))).ok()?;
    let paths = |is_it: fn(&str) -> bool| {
        all.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            // An init may have made groups below its container's.
            let end = path.find(container).filter(|_| is_it(controllers))? + container.len();
            let rest = &path[end..];
            Some(path[1..end].to_owned() + &rest[..rest.find('/').unwrap_or(rest.len())])
        })
    };
    let read = |path: &str| fs::read_to_string(root.join(&CGROUPS[1..]).join(path)).ok();
    if let Some(path) = paths(|controllers| controllers.split(',').any(|one| one == "freezer")) {
        let state = read(&format!("freezer/{path}/freezer.state"))?;
        let state = state.trim();
        return Some(Freezer { is_frozen: state == "FROZEN", words: format!("freezer.state {state}") });
    }
    let events = read(&format!("{}/cgroup.events", paths(str::is_empty)?))?;
    let line = events.lines().find(|line| line.starts_with("frozen "))?;
    Some(Freezer { is_frozen: line == "frozen 1", words: format!("cgroup.events {line}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0badcafe";

    fn looked(cgroup: &str, file: &str, content: &str) -> Option<Freezer> {
        let root = tempfile::tempdir().expect("a folder");
        for (path, content) in [("proc/7/cgroup", cgroup), (file, content)] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, content).expect("written");
        }
        freezer(root.path(), 7, ID)
    }

    #[test]
    fn a_freezer_is_read_in_both_versions_and_only_in_the_containers_own_group() {
        let one = "9:name=systemd:/docker/0badcafe\n6:cpu,freezer:/docker/0badcafe\n0::/\n";
        let file = "sys/fs/cgroup/freezer/docker/0badcafe/freezer.state";
        let seen = looked(one, file, "FROZEN\n").expect("seen");
        assert_eq!((seen.is_frozen, seen.words.as_str()), (true, "freezer.state FROZEN"));
        assert!(!looked(one, file, "FREEZING\n").expect("seen").is_frozen);
        let two = "0::/system.slice/docker-0badcafe.scope/init.scope\n";
        let file = "sys/fs/cgroup/system.slice/docker-0badcafe.scope/cgroup.events";
        assert!(looked(two, file, "populated 1\nfrozen 1\n").expect("seen").is_frozen);
        let seen = looked(two, file, "populated 1\nfrozen 0\n").expect("seen");
        assert_eq!((seen.is_frozen, seen.words.as_str()), (false, "cgroup.events frozen 0"));
    }

    #[test]
    fn another_processs_group_says_nothing_of_the_container() {
        let other = "6:freezer:/docker/another\n0::/docker/another\n";
        assert_eq!(looked(other, "sys/fs/cgroup/freezer/docker/another/freezer.state", "FROZEN\n"), None);
        assert_eq!(looked("6:freezer:/docker/0badcafe\n", "sys/x", ""), None);
    }
}
