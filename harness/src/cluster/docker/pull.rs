//! Images that the engine does not have are pulled where that was asked for (`--pull missing`, as Compose
//! does when nobody says otherwise), and it is said. Otherwise nothing is pulled.
//!
//! The engine pulls without credentials: whoever needs some pulls the image by hand.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::TryStreamExt;
use harness_systems::Contained;

use super::engine::{Cause, Engine, EngineError};
use crate::exit::Failure;

/// How long a pull may take, all layers of an image together.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How long the engine may take to say what it has.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);
/// The tag of a name that has none.
const USUAL_TAG: &str = "latest";

/// The images that a cluster needs: those of members, and of services beside them.
pub(super) fn needed<'a>(named: Option<&'a str>, contained: &'a dyn Contained) -> BTreeSet<&'a str> {
    let services = contained.services().unwrap_or_default().iter().map(|service| service.image.as_str());
    let beside = contained.auxiliaries().all().map(|auxiliary| auxiliary.service.image.as_str());
    named.into_iter().chain(services).chain(beside).collect()
}

/// Pulls what the engine does not have.
pub async fn missing(
    engine: &Engine,
    named: Option<&str>,
    contained: &dyn Contained,
    say: impl Fn(&str),
) -> Result<(), Failure> {
    for image in needed(named, contained) {
        if has(engine, image).await? {
            continue;
        }
        say(&format!("image {image}: the engine does not have it, and pulls it"));
        let begun = Instant::now();
        match pull(engine, image).await {
            Ok(()) => say(&format!("image {image}: pulled in {:.1} s", begun.elapsed().as_secs_f64())),
            Err(EngineError { cause: Cause::Refused(_, why), .. }) => return Err(refused(image, &why)),
            Err(error) => return Err(anyhow::Error::new(error).into()),
        }
    }
    Ok(())
}

fn refused(image: &str, why: &str) -> Failure {
    Failure::usage(format!(
        "image {image}: it can't be pulled: {}. Is it called so? Where its registry asks for a password, \
         `docker login` and `docker pull {image}` first",
        why.trim().trim_end_matches('.')
    ))
}

/// Whether the engine has an image.
pub(super) async fn has(engine: &Engine, image: &str) -> Result<bool, Failure> {
    let name = image.to_owned();
    let look = engine.call("looking for an image", LOOK_PATIENCE, |docker| async move {
        docker.inspect_image(&name).await
    });
    match look.await {
        Ok(_) => Ok(true),
        Err(error) if error.is_unknown() => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).into()),
    }
}

async fn pull(engine: &Engine, image: &str) -> Result<(), EngineError> {
    let (name, tag) = parts(image);
    // Without a tag the engine would pull all that there are.
    let options = CreateImageOptionsBuilder::default().from_image(name).tag(tag).build();
    engine
        .call(&format!("pulling image {image}"), PATIENCE, |docker| async move {
            docker.create_image(Some(options), None, None).try_for_each(|_| async { Ok(()) }).await
        })
        .await
}

/// A name and its tag or digest. A colon before the last slash is that of a registry's port.
fn parts(image: &str) -> (&str, &str) {
    if let Some(parts) = image.split_once('@') {
        return parts;
    }
    let last = image.rfind('/').map_or(0, |slash| slash + 1);
    match image[last..].rfind(':') {
        Some(colon) => (&image[..last + colon], &image[last + colon + 1..]),
        None => (image, USUAL_TAG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_tag_a_digest_or_the_usual_one() {
        assert_eq!(parts("redis"), ("redis", "latest"));
        assert_eq!(parts("redis:7"), ("redis", "7"));
        assert_eq!(parts("127.0.0.1:5000/a/redis"), ("127.0.0.1:5000/a/redis", "latest"));
        assert_eq!(parts("127.0.0.1:5000/redis:7"), ("127.0.0.1:5000/redis", "7"));
        assert_eq!(parts("a/redis@sha256:ab"), ("a/redis", "sha256:ab"));
    }
}
