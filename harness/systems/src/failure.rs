//! The first thing that a client did that no client may do: nothing that clients said can be judged then.

use tokio::sync::watch;

/// What the first one did. Whoever waits for it is told once.
#[derive(Debug)]
pub struct FirstFailure(watch::Sender<Option<String>>);

impl Default for FirstFailure {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl FirstFailure {
    /// Notes what was done, unless something was noted before.
    pub fn note(&self, why: impl FnOnce() -> String) {
        self.0.send_if_modified(|noted| {
            let is_first = noted.is_none();
            noted.get_or_insert_with(why);
            is_first
        });
    }

    /// Whether anything was.
    #[must_use]
    pub fn is_noted(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Completes when something is, with what it was.
    pub async fn noted(&self) -> String {
        let mut noted = self.0.subscribe();
        let why = noted.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        match why {
            Some(why) => why,
            // The sender lives as long as this does.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_is_kept_and_told_to_whoever_waits() {
        let failure = FirstFailure::default();
        assert!(!failure.is_noted());
        let (told, ()) = tokio::join!(failure.noted(), async {
            failure.note(|| "one".to_owned());
            failure.note(|| "another".to_owned());
        });
        assert_eq!((told.as_str(), failure.is_noted()), ("one", true));
    }
}
