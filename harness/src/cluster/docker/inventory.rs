//! Everything of ours that an engine holds, and its removal.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use bollard::models::ContainerSummaryStateEnum;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListNetworksOptionsBuilder,
    ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder,
    RemoveVolumeOptionsBuilder,
};
use futures_util::future::join_all;

use super::engine::{Cause, Engine, EngineError};
use super::labels::{NAMESPACE, PART, RUN, SANDBOX};

/// How long a list may take.
const LIST_PATIENCE: Duration = Duration::from_secs(5);
/// How long the removal of one thing may take.
const REMOVE_PATIENCE: Duration = Duration::from_secs(15);
/// How long is tried to get rid of everything: a network goes only when the last container has left it.
const EMPTY_PATIENCE: Duration = Duration::from_secs(20);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(40);

/// The kinds of things, in the order in which they can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A container, running or not.
    Container,
    /// A network.
    Network,
    /// A volume.
    Volume,
    /// An image.
    Image,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Container, Self::Network, Self::Volume, Self::Image];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Network => "network",
            Self::Volume => "volume",
            Self::Image => "image",
        }
    }
}

/// A thing of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) kind: Kind,
    /// What the engine calls it when it is to be removed.
    pub(super) name: String,
    /// The run that it belongs to.
    pub(super) token: String,
    /// The namespace of process ids in which the token was made.
    pub(super) namespace: Option<String>,
    /// A sandbox that runs: somebody renews its lease.
    pub(super) leased: bool,
    /// When it was made, by the engine's clock, in seconds since 1970.
    pub(super) created_s: i64,
}

/// What was removed, by kind.
pub type Removed = BTreeMap<Kind, usize>;

/// Lists everything of every run.
pub(super) async fn list(engine: &Engine) -> Result<Vec<Thing>, EngineError> {
    let filters = HashMap::from([("label".to_owned(), vec![RUN.to_owned()])]);
    let mut things = containers(engine, &filters).await?;
    things.extend(networks(engine, &filters).await?);
    things.extend(volumes(engine, &filters).await?);
    things.extend(images(engine, &filters).await?);
    Ok(things)
}

type Filters = HashMap<String, Vec<String>>;

fn thing(kind: Kind, name: String, labels: &HashMap<String, String>, created_s: i64) -> Option<Thing> {
    Some(Thing {
        kind,
        name,
        token: labels.get(RUN)?.clone(),
        namespace: labels.get(NAMESPACE).cloned(),
        leased: false,
        created_s,
    })
}

async fn containers(engine: &Engine, filters: &Filters) -> Result<Vec<Thing>, EngineError> {
    let options = ListContainersOptionsBuilder::new().all(true).filters(filters).build();
    let found = engine
        .call("listing containers", LIST_PATIENCE, |docker| async move {
            docker.list_containers(Some(options)).await
        })
        .await?;
    let things = found.into_iter().filter_map(|container| {
        let labels = container.labels.unwrap_or_default();
        let runs = container.state == Some(ContainerSummaryStateEnum::RUNNING);
        let sandbox = labels.get(PART).is_some_and(|part| part == SANDBOX);
        let thing = thing(Kind::Container, container.id?, &labels, container.created.unwrap_or_default())?;
        Some(Thing { leased: runs && sandbox, ..thing })
    });
    Ok(things.collect())
}

async fn networks(engine: &Engine, filters: &Filters) -> Result<Vec<Thing>, EngineError> {
    let options = ListNetworksOptionsBuilder::new().filters(filters).build();
    let found =
        engine
            .call("listing networks", LIST_PATIENCE, |docker| async move {
                docker.list_networks(Some(options)).await
            })
            .await?;
    let things = found.into_iter().filter_map(|network| {
        let created = network.created.as_deref().map_or(0, seconds);
        thing(Kind::Network, network.id?, &network.labels.unwrap_or_default(), created)
    });
    Ok(things.collect())
}

async fn volumes(engine: &Engine, filters: &Filters) -> Result<Vec<Thing>, EngineError> {
    let options = ListVolumesOptionsBuilder::new().filters(filters).build();
    let found =
        engine
            .call("listing volumes", LIST_PATIENCE, |docker| async move {
                docker.list_volumes(Some(options)).await
            })
            .await?;
    let things = found.volumes.unwrap_or_default().into_iter().filter_map(|volume| {
        let created = volume.created_at.as_deref().map_or(0, seconds);
        thing(Kind::Volume, volume.name, &volume.labels, created)
    });
    Ok(things.collect())
}

async fn images(engine: &Engine, filters: &Filters) -> Result<Vec<Thing>, EngineError> {
    let options = ListImagesOptionsBuilder::new().filters(filters).build();
    let found = engine
        .call(
            "listing images",
            LIST_PATIENCE,
            |docker| async move { docker.list_images(Some(options)).await },
        )
        .await?;
    Ok(found
        .into_iter()
        .filter_map(|image| thing(Kind::Image, image.id, &image.labels, image.created))
        .collect())
}

/// A moment in seconds since 1970; one that can't be read is long ago.
pub(super) fn seconds(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second)
}

/// Removes one thing. That it is gone already, or going, is what was wanted.
async fn remove(engine: &Engine, thing: &Thing) -> Result<(), EngineError> {
    let name = thing.name.clone();
    let what = format!("removing the {} {name}", thing.kind.name());
    let kind = thing.kind;
    let removed = engine
        .call(&what, REMOVE_PATIENCE, move |docker| async move {
            match kind {
                Kind::Container => {
                    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
                    docker.remove_container(&name, Some(options)).await
                }
                Kind::Network => docker.remove_network(&name).await,
                Kind::Volume => {
                    let options = RemoveVolumeOptionsBuilder::new().force(true).build();
                    docker.remove_volume(&name, Some(options)).await
                }
                Kind::Image => {
                    let options = RemoveImageOptionsBuilder::new().force(true).build();
                    docker.remove_image(&name, Some(options), None).await.map(drop)
                }
            }
        })
        .await;
    match removed {
        Err(error) if error.is_unknown() => Ok(()),
        Err(EngineError { cause: Cause::Refused(409, message), .. })
            if kind == Kind::Container && message.contains("already in progress") =>
        {
            Ok(())
        }
        other => other,
    }
}

/// Removes everything of these runs, until nothing is left. What is removed by somebody else meanwhile is
/// counted too: it was there, and is gone.
pub(super) async fn empty(engine: &Engine, tokens: &[String]) -> Result<Removed, EngineError> {
    let deadline = Instant::now() + EMPTY_PATIENCE;
    let mut seen: BTreeMap<(Kind, String), ()> = BTreeMap::new();
    loop {
        let mut things = list(engine).await?;
        things.retain(|thing| tokens.contains(&thing.token));
        if things.is_empty() {
            let mut removed = Removed::new();
            for (kind, _) in seen.into_keys() {
                *removed.entry(kind).or_default() += 1;
            }
            return Ok(removed);
        }
        seen.extend(things.iter().map(|thing| ((thing.kind, thing.name.clone()), ())));
        // Nothing else can go while a container holds it.
        let containers = things.iter().any(|thing| thing.kind == Kind::Container);
        let turn = things.iter().filter(|thing| !containers || thing.kind == Kind::Container);
        let failed =
            join_all(turn.map(|thing| remove(engine, thing))).await.into_iter().find_map(Result::err);
        if let Some(error) = failed {
            if error.is_gone() || Instant::now() >= deadline {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        } else if Instant::now() >= deadline {
            let what = format!("removing {} things that stay although it said they were gone", things.len());
            return Err(EngineError { what, cause: Cause::Silent(EMPTY_PATIENCE) });
        }
    }
}

/// `2 containers, 1 network`.
pub(super) fn in_words(removed: &Removed) -> String {
    let words: Vec<String> =
        removed.iter().map(|(kind, count)| crate::num::plural(*count, kind.name())).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_as_engines_write_them_are_read() {
        assert_eq!(seconds("1970-01-01T00:00:07Z"), 7);
        assert_eq!(seconds("1970-01-01T01:00:07.123456789+01:00"), 7);
        assert_eq!(seconds("yesterday"), 0);
    }

    #[test]
    fn what_was_removed_is_told_by_kind() {
        let removed = Removed::from([(Kind::Network, 1), (Kind::Container, 2)]);
        assert_eq!(in_words(&removed), "2 containers, 1 network");
    }
}
