//! How things of ours are told from everybody else's: by labels, never by their names.

use std::collections::HashMap;

use crate::host::procfs::{self, Namespaces};
use crate::store::lock;

/// The run's token, which names its harness: on everything of ours.
pub(super) const RUN: &str = "harness.run";
/// The namespaces in which the token's id and start time mean something.
pub(super) const NAMESPACE: &str = "harness.pid-namespace";
/// What a thing is for: `sandbox`, `member`, ...
pub(super) const PART: &str = "harness.part";
/// The part that lives exactly as long as somebody renews its lease.
pub(super) const SANDBOX: &str = "sandbox";

/// The labels of one run.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    token: String,
    namespace: String,
}

impl Labels {
    /// Those of the run with this token, made by this process.
    pub(super) fn new(token: &str) -> Self {
        Self { token: token.to_owned(), namespace: own_namespace().unwrap_or_else(|| "unknown".to_owned()) }
    }

    /// The labels of a thing.
    pub(super) fn of(&self, part: &str) -> HashMap<String, String> {
        let pairs = [(RUN, self.token.as_str()), (NAMESPACE, &self.namespace), (PART, part)];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// The run's token.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// The token's random part, short enough for a name.
    pub(super) fn short(&self) -> &str {
        self.token.rsplit('.').next().unwrap_or(&self.token)
    }
}

/// What can be said of the harness that a thing's labels name, by looking at this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It lives.
    Lives,
    /// It does not live.
    Dead,
    /// It is of another machine, another boot or another namespace, into which nobody can look from here.
    Elsewhere,
}

/// Looks for the harness that these labels name.
pub(super) fn owner(token: &str, namespace: Option<&str>) -> Owner {
    let Some(identity) = lock::owner_of(token) else { return Owner::Elsewhere };
    let here = procfs::boot_id().is_some_and(|boot| boot == identity.boot_id)
        && namespace.is_some_and(|theirs| own_namespace().is_some_and(|own| own == theirs));
    match (here, here && identity.lives()) {
        (_, true) => Owner::Lives,
        (true, false) => Owner::Dead,
        (false, false) => Owner::Elsewhere,
    }
}

/// `pid:[4026531836] time:[4026531834]`; none where `/proc` does not tell about this process, so that
/// nobody's owner can be looked for.
fn own_namespace() -> Option<String> {
    let Namespaces { pid, time } = Namespaces::own()?;
    Some(format!("{pid} {time}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::procfs::Identity;

    fn token(identity: &Identity) -> String {
        format!("{}.{}.{}.0badcafe", identity.pid, identity.start_ticks, identity.boot_id)
    }

    #[test]
    fn an_owner_is_judged_only_where_its_id_means_something() {
        let own = Identity::own().expect("this process");
        let namespace = own_namespace().expect("/proc");
        assert_eq!(owner(&token(&own), Some(&namespace)), Owner::Lives);
        let dead = Identity { start_ticks: own.start_ticks + 1, ..own.clone() };
        assert_eq!(owner(&token(&dead), Some(&namespace)), Owner::Dead);
        assert_eq!(owner(&token(&dead), Some("pid:[1]")), Owner::Elsewhere);
        assert_eq!(owner(&token(&dead), None), Owner::Elsewhere);
        let other = Identity { boot_id: "another".to_owned(), ..own };
        assert_eq!(owner(&token(&other), Some(&namespace)), Owner::Elsewhere);
        assert_eq!(owner("nonsense", Some(&namespace)), Owner::Elsewhere);
    }

    #[test]
    fn a_thing_carries_its_run_and_a_name_its_random_part() {
        let labels = Labels::new("7.8.boot.0badcafe");
        assert_eq!(labels.of(SANDBOX).get(RUN).map(String::as_str), Some("7.8.boot.0badcafe"));
        assert_eq!(labels.short(), "0badcafe");
    }
}
