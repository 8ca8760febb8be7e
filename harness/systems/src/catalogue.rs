//! Every system that can be named.
//!
//! This crate has those that are files, and etcd. Whoever makes an executable registers others.

use std::sync::Arc;

use harness_core::virtual_ensemble::Begin;

use crate::etcd::Etcd;
use crate::external::External;
use crate::files::{self, Files};
use crate::setting::Setting;
use crate::system::System;

/// The system that a text means; none where it means another, and what to write where it makes no sense.
pub type Chosen = Option<Result<Arc<dyn System>, String>>;

/// A system as it is listed to a person.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name on the command line.
    pub name: &'static str,
    /// The same, with a parameter for which any ensemble of five has room.
    pub example: &'static str,
    /// What it is, and what it promises.
    pub about: &'static str,
    is: Is,
    world: Option<Begin>,
}

/// How a system is made of a text.
#[derive(Clone, Copy)]
enum Is {
    /// By this, for an ensemble of so many; none when the text means another.
    BuiltIn(fn(&str, u32) -> Chosen),
    /// It is described by files.
    Files(&'static Files),
}

impl Entry {
    /// One that is built in. `choose` makes it of a text, for an ensemble of so many; it gives none when the
    /// text means another.
    #[must_use]
    pub const fn built_in(
        name: &'static str,
        example: &'static str,
        about: &'static str,
        choose: fn(&str, u32) -> Chosen,
    ) -> Self {
        Self { name, example, about, is: Is::BuiltIn(choose), world: None }
    }

    /// The same, with this as its ensemble in virtual time.
    #[must_use]
    pub const fn in_virtual_time(self, world: Begin) -> Self {
        Self { world: Some(world), ..self }
    }
}

/// What a text stands for beside its words.
#[derive(Clone, Copy, Debug)]
pub struct Meant {
    /// How many members vote.
    pub nodes: u32,
    /// Whether containers were asked for.
    pub in_containers: bool,
}

impl Meant {
    /// So many members, wherever they run.
    #[must_use]
    pub const fn of(nodes: u32) -> Self {
        Self { nodes, in_containers: false }
    }
}

/// An ensemble in which every parameter of a name has room.
const USUAL_NODES: u32 = 5;

/// Those of this crate that are built in.
const BUILT_IN: &[Entry] = &[Entry::built_in(
    "etcd",
    "etcd",
    "etcd 3.4 or newer as local processes, where it is installed: linearizable reads and updates",
    |text, _| (text == "etcd").then(|| Ok(Arc::new(Etcd) as _)),
)];

/// Every system that can be named: those that are registered, and those of this crate.
#[derive(Clone, Copy)]
pub struct Catalogue {
    registered: &'static [Entry],
}

impl Catalogue {
    /// These, and those of this crate behind them.
    #[must_use]
    pub const fn of(registered: &'static [Entry]) -> Self {
        Self { registered }
    }

    /// All systems, in the order in which they are listed.
    pub fn systems(self) -> impl Iterator<Item = Entry> {
        let of_files = |files: &&'static Files| {
            let (name, about) = (files.name, files.about?);
            Some(Entry { name, example: name, about, is: Is::Files(files), world: None })
        };
        let built_in = self.registered.iter().chain(BUILT_IN).copied();
        built_in.chain(files::ALL.iter().filter_map(of_files))
    }

    /// The system that a text means, for an ensemble of so many: one of the list, or a file that describes
    /// one; none when nobody knows it.
    ///
    /// # Errors
    /// What to write instead of a parameter that makes no sense.
    #[must_use]
    pub fn choose(self, text: &str, meant: Meant) -> Chosen {
        if External::is_meant(text) {
            return Some(External::read(text).map(|system| Arc::new(system) as _));
        }
        self.systems().find_map(|entry| match entry.is {
            Is::BuiltIn(choose) => choose(text, meant.nodes),
            Is::Files(files) if files.name == text => {
                Some(External::of_files(files, meant.in_containers).map(|system| Arc::new(system) as _))
            }
            Is::Files(_) => None,
        })
    }

    /// What makes a system's ensemble in virtual time, if it has one.
    #[must_use]
    pub fn world(self, system: &dyn System) -> Option<Begin> {
        let name = system.name();
        self.systems().find(|entry| entry.name == name)?.world
    }

    /// The names of those for which this holds, as they are listed.
    pub fn names(self, holds: impl Fn(&dyn System) -> bool) -> Vec<&'static str> {
        let is_one = |entry: &Entry| match self.choose(entry.example, Meant::of(USUAL_NODES)) {
            Some(Ok(system)) => holds(&*system),
            Some(Err(_)) | None => false,
        };
        self.systems().filter(is_one).map(|entry| entry.name).collect()
    }

    /// Every setting that only some have, with the names of those. A system that files describe has none.
    #[must_use]
    pub fn settings(self) -> Vec<(&'static Setting, Vec<&'static str>)> {
        let mut all: Vec<(&Setting, Vec<&str>)> = Vec::new();
        for entry in self.systems() {
            let Is::BuiltIn(choose) = entry.is else { continue };
            let Some(Ok(system)) = choose(entry.example, USUAL_NODES) else { continue };
            for setting in system.settings() {
                match all.iter_mut().find(|(known, _)| known.name == setting.name) {
                    Some((_, systems)) => systems.push(entry.name),
                    None => all.push((setting, vec![entry.name])),
                }
            }
        }
        all
    }

    /// Whether a text is the name of one of the list, with whatever parameter, and of no file.
    #[must_use]
    pub fn is_built_in(self, text: &str) -> bool {
        let is_it = |entry: Entry| match entry.is {
            Is::BuiltIn(choose) => choose(text, USUAL_NODES).is_some(),
            Is::Files(files) => files.name == text,
        };
        !External::is_meant(text) && self.systems().any(is_it)
    }
}
