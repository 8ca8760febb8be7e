//! Who watches the instances of a service: a [`Cache`] of the service's znode, and what its data means.

use std::collections::BTreeMap;

use bytestring::ByteString;
use node_session::Moment;

use super::instance::{Instance, Unreadable};
use crate::cache::{self, Cache, Call};
use crate::line::Left;
use crate::names::child;
use crate::recipe::{Effects, Input, Now, Recipe};

/// What somebody who watches a service is told. Instances go by the names of their znodes: mostly their ids,
/// but Curator appends a number to those of the type `DYNAMIC_SEQUENTIAL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// An instance is there that was not.
    Joined {
        /// The name of its znode.
        name: ByteString,
        /// What it says of itself.
        instance: Instance,
    },
    /// An instance says something else of itself.
    Changed {
        /// The name of its znode.
        name: ByteString,
        /// What it says now.
        instance: Instance,
    },
    /// An instance that was told of is gone, or its data can't be read any more.
    Left {
        /// The name of its znode.
        name: ByteString,
    },
    /// A znode is no instance. It is told as [`Told::Joined`] when it becomes one.
    Unreadable {
        /// Its name.
        name: ByteString,
        /// Why.
        why: Unreadable,
    },
    /// All that are there have been told, and changes are told as they come.
    Complete,
    /// Changes are not told any more, until [`Told::Complete`] comes. The instances stay as they were told:
    /// most of them will be there still.
    Stale,
    /// Nothing follows.
    Over(Left),
}

/// Somebody who watches the instances of a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instances {
    /// How the paths of instances begin.
    below: String,
    cache: Cache,
    instances: BTreeMap<ByteString, Instance>,
}

impl Instances {
    /// Watches a service, whether its znode is there or not.
    #[must_use]
    pub fn watch(base: &str, service: &str) -> Self {
        let path = child(base, service);
        Self { below: format!("{path}/"), cache: Cache::new(path), instances: BTreeMap::new() }
    }

    /// The instances that were told of, by the names of their znodes.
    #[must_use]
    pub fn instances(&self) -> &BTreeMap<ByteString, Instance> {
        &self.instances
    }

    /// True while changes are told as they come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.cache.is_complete()
    }

    /// The name of an instance's znode. The service's own znode is none, nor is what is below an instance.
    fn name(&self, path: &str) -> Option<ByteString> {
        path.strip_prefix(&self.below).filter(|name| !name.contains('/')).map(Into::into)
    }

    fn heard(&mut self, told: cache::Told, effects: &mut Effects<Told>) {
        match told {
            cache::Told::Added(path) | cache::Told::Changed(path) => self.read(&path, effects),
            cache::Told::Removed(path) => {
                if let Some(name) = self.name(&path) {
                    self.gone(name, effects);
                }
            }
            cache::Told::Complete => effects.tell(Told::Complete),
            cache::Told::Stale => effects.tell(Told::Stale),
            cache::Told::Over(why) => effects.tell(Told::Over(why)),
        }
    }

    fn read(&mut self, path: &ByteString, effects: &mut Effects<Told>) {
        let (Some(name), Some(znode)) = (self.name(path), self.cache.znodes().get(path)) else { return };
        match Instance::from_json(&znode.data) {
            Ok(instance) => self.keep(name, instance, effects),
            Err(why) => {
                self.gone(name.clone(), effects);
                effects.tell(Told::Unreadable { name, why });
            }
        }
    }

    fn keep(&mut self, name: ByteString, instance: Instance, effects: &mut Effects<Told>) {
        match self.instances.insert(name.clone(), instance.clone()) {
            None => effects.tell(Told::Joined { name, instance }),
            Some(before) if before != instance => effects.tell(Told::Changed { name, instance }),
            Some(_) => {}
        }
    }

    fn gone(&mut self, name: ByteString, effects: &mut Effects<Told>) {
        if self.instances.remove(&name).is_some() {
            effects.tell(Told::Left { name });
        }
    }
}

impl Recipe for Instances {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, input: Input<Call>, effects: &mut Effects<Told>) {
        let mut cached = Effects::default();
        self.cache.step(now, input, &mut cached);
        effects.asks.append(&mut cached.asks);
        for told in cached.told {
            self.heard(told, effects);
        }
    }

    fn leave() -> Call {
        Cache::leave()
    }

    fn wakes_at(&self) -> Option<Moment> {
        self.cache.wakes_at()
    }

    fn is_over(&self) -> bool {
        self.cache.is_over()
    }
}
