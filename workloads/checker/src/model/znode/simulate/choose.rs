//! What the simulated clients ask for.

use super::{Run, map, parent_of};
use crate::history::Datum;

impl Run<'_> {
    fn path(&mut self) -> String {
        let root = self.random.below(self.plan.roots);
        if self.random.per_mille(250) {
            return format!("/k{root}");
        }
        if self.random.per_mille(300) {
            // One that got a number, if there is any.
            let parent = format!("/k{root}");
            let numbered: Vec<&String> = self
                .nodes
                .by_path
                .get(&parent)
                .into_iter()
                .flat_map(|node| node.children.range("s-".to_owned()..).take(4))
                .collect();
            if !numbered.is_empty() {
                let name = numbered[self.random.below(numbered.len())];
                return format!("{parent}/{name}");
            }
        }
        format!("/k{root}/n{}", self.random.below(self.plan.names))
    }

    fn data(&mut self) -> Datum {
        let number = if self.plan.values == 0 {
            self.fresh += 1;
            self.fresh
        } else {
            self.random.below(self.plan.values)
        };
        Datum::text(&format!("v{number}"))
    }

    fn version(&mut self, path: &str) -> Option<Datum> {
        let guess = self.nodes.by_path.get(path).map_or(0, |node| node.version);
        match self.random.below(4) {
            0 => Some(Datum::Int(guess)),
            1 => Some(Datum::Int(self.random.below(3_u64).cast_signed())),
            _ => None,
        }
    }

    fn update(&mut self, path: String) -> (&'static str, Datum) {
        let version = self.version(&path);
        let text = |path: &str| ("path", Datum::text(path));
        let with = |more: Datum| {
            map([Some(text(&path)), Some(("data", more)), version.clone().map(|v| ("version", v))]
                .into_iter()
                .flatten())
        };
        match self.random.below(10) {
            0..=1 => ("create", with(self.data())),
            2..=3 => {
                let mut flags = vec![Datum::text("sequential")];
                if self.plan.sessions && self.random.per_mille(500) {
                    flags.push(Datum::text("ephemeral"));
                }
                let parent = parent_of(&path);
                // In the root a number crosses all roots, and below a child there is little to find.
                let place = if parent != "/" {
                    parent
                } else if self.plan.crossing && self.random.per_mille(200) {
                    String::new()
                } else {
                    path
                };
                (
                    "create",
                    map([text(&format!("{place}/s-")), ("data", self.data()), ("flags", Datum::List(flags))]),
                )
            }
            4 if self.plan.sessions => {
                let flags = Datum::List(vec![Datum::text("ephemeral")]);
                ("create", map([text(&path), ("data", self.data()), ("flags", flags)]))
            }
            4..=6 => {
                ("delete", map([Some(text(&path)), version.map(|v| ("version", v))].into_iter().flatten()))
            }
            _ => ("set", with(self.data())),
        }
    }

    pub(super) fn choose(&mut self) -> (&'static str, Datum) {
        let path = self.path();
        let of = |path: &str| map([("path", Datum::text(path))]);
        match self.random.below(100) {
            0..=54 => self.update(path),
            55..=66 => ("get", of(&path)),
            67..=72 => ("exists", of(&path)),
            73..=84 => {
                let parent = parent_of(&path);
                let path = if parent == "/" && !self.plan.crossing { path } else { parent };
                ("children", of(&path))
            }
            85..=94 => {
                let root = path.split('/').nth(1).unwrap_or_default().to_owned();
                let steps = 1 + self.random.below(3);
                let mut ops = Vec::new();
                for _ in 0..steps {
                    let mut path = self.path();
                    if !self.plan.crossing {
                        let below = path[1..].find('/').map_or("", |slash| &path[slash + 1..]).to_owned();
                        path = format!("/{root}{below}");
                    }
                    let (f, value) = if self.random.per_mille(150) {
                        let version = self.version(&path);
                        let entries = [Some(("path", Datum::text(&path))), version.map(|v| ("version", v))];
                        ("check", map(entries.into_iter().flatten()))
                    } else {
                        self.update(path)
                    };
                    let Datum::Map(mut entries) = value else { continue };
                    entries.insert(0, (Datum::text("f"), Datum::text(f)));
                    ops.push(Datum::Map(entries));
                }
                ("multi", map([("ops", Datum::List(ops))]))
            }
            95..=97 if self.plan.sessions => ("close", Datum::Nil),
            98 if self.plan.sessions => ("expire", Datum::Nil),
            99 if self.plan.sessions => ("leave", Datum::Nil),
            _ => ("get", of(&path)),
        }
    }
}
