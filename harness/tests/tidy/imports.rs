//! Which file of a crate uses which: read from the sources, for the rules about arrows within a crate.
//!
//! The reader knows no macros and no types. It sees `use` items, with their braces taken apart, and paths
//! that begin with `crate`, `super` or `self`; it follows a name that a module hands on by `pub use` to where
//! it is defined. What stands behind `#[cfg(test)]` does not count: tests may look at everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's path below its crate; empty for the root.
pub(crate) type Module = Vec<String>;

/// Re-exports of re-exports that are followed.
const MOST_HOPS: usize = 8;

/// The arrows between the files of one crate, parents and children aside.
pub(crate) struct Imports {
    arrows: BTreeMap<Module, BTreeSet<Module>>,
}

/// A path that a file names, and whether it hands it on.
struct Named {
    path: Vec<String>,
    handed_on: bool,
}

impl Imports {
    /// Reads the sources below `src`.
    pub(crate) fn of_crate(src: &Path) -> Self {
        let mut sources = Vec::new();
        super::files(src, "rs", &mut sources);
        let mut named: BTreeMap<Module, Vec<Named>> = BTreeMap::new();
        let mut texts = BTreeMap::new();
        for path in sources {
            let Some(module) = module_of(path.strip_prefix(src).expect("below the crate")) else { continue };
            texts.insert(module, without_tests(&fs::read_to_string(&path).expect("a readable file")));
        }
        let modules: BTreeSet<Module> = texts.keys().cloned().collect();
        let mut handed_on = BTreeMap::new();
        for (module, text) in &texts {
            let paths = paths(text, module, &modules);
            for path in paths.iter().filter(|path| path.handed_on) {
                let name = path.path.last().expect("a path has a name").clone();
                handed_on.insert((module.clone(), name), path.path.clone());
            }
            named.insert(module.clone(), paths);
        }
        let mut arrows: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, paths) in &named {
            let targets = paths.iter().filter_map(|path| resolve(&path.path, &modules, &handed_on));
            let beside = targets.filter(|to| !to.starts_with(from) && !from.starts_with(to));
            arrows.entry(from.clone()).or_default().extend(beside);
        }
        Self { arrows }
    }

    /// The files that a file uses.
    pub(crate) fn arrows(&self) -> impl Iterator<Item = (&Module, &Module)> {
        self.arrows.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)))
    }

    /// Files that use each other, by whatever way around.
    pub(crate) fn cycles(&self) -> Vec<BTreeSet<Module>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.arrows.keys().map(|module| (module, self.reached_from(module))).collect();
        let mut cycles: Vec<BTreeSet<Module>> = Vec::new();
        for (module, there) in reached.iter().filter(|(module, there)| there.contains(*module)) {
            if cycles.iter().any(|cycle| cycle.contains(*module)) {
                continue;
            }
            let back =
                there.iter().filter(|other| reached.get(**other).is_some_and(|from| from.contains(module)));
            cycles.push(back.map(|other| (*other).clone()).collect());
        }
        cycles
    }

    /// The same between the folders at the top and the files beside them. The crate's root is above all.
    pub(crate) fn rooms(&self) -> Self {
        let room = |module: &Module| module.first().map(|first| vec![first.clone()]);
        let mut arrows: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, to) in self.arrows() {
            let (Some(from), Some(to)) = (room(from), room(to)) else { continue };
            arrows.entry(to.clone()).or_default();
            let targets = arrows.entry(from.clone()).or_default();
            if from != to {
                targets.insert(to);
            }
        }
        Self { arrows }
    }

    fn reached_from(&self, module: &Module) -> BTreeSet<&Module> {
        let mut reached = BTreeSet::new();
        let mut waiting: Vec<&Module> = self.arrows[module].iter().collect();
        while let Some(next) = waiting.pop() {
            if reached.insert(next) {
                waiting.extend(self.arrows.get(next).into_iter().flatten());
            }
        }
        reached
    }
}

/// The module of a file; none for executables and for tests in files of their own.
fn module_of(file: &Path) -> Option<Module> {
    let mut parts: Module =
        file.with_extension("").iter().map(|part| part.to_str().expect("a plain name").to_owned()).collect();
    let last = parts.last().expect("a file has a name").clone();
    if parts.len() == 1 && last == "main" || parts[0] == "bin" || last == "tests" {
        return None;
    }
    if last == "mod" || parts.len() == 1 && last == "lib" {
        parts.pop();
    }
    Some(parts)
}

/// The text without comments and without tests: a module of them at its end, or a line that names one
/// elsewhere.
fn without_tests(text: &str) -> String {
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect();
    let code = code.replace("#[cfg(test)]\nmod tests;", "");
    code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// Every path of ours in a text.
fn paths(text: &str, module: &Module, modules: &BTreeSet<Module>) -> Vec<Named> {
    let mut found = Vec::new();
    // Modules that were imported by name: what is reached through them is used as well.
    let mut imported: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (begin, statement) in uses(text) {
        let handed_on = is_public(&text[..begin]);
        for path in taken_apart(&statement) {
            let Some(path) = absolute(&path, module, modules) else { continue };
            if let Some(name) = path.last().filter(|_| modules.contains(&path)) {
                imported.insert(name.clone(), path.clone());
            }
            found.push(Named { path, handed_on });
        }
    }
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        if ["crate::", "super::", "self::"].iter().any(|start| word.starts_with(start)) {
            found.extend(absolute(word, module, modules).map(|path| Named { path, handed_on: false }));
        } else if let Some((first, rest)) = word.split_once("::")
            && let Some(through) = imported.get(first)
        {
            let rest = rest.split("::").filter(|part| !part.is_empty()).map(str::to_owned);
            let path = through.iter().cloned().chain(rest).collect();
            found.push(Named { path, handed_on: false });
        }
    }
    found.retain(|named| !named.path.is_empty());
    found
}

/// The `use` items: where each begins, and what stands between the word and the semicolon, without white
/// space.
fn uses(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (begin, _) in text.match_indices("use ") {
        let alone = text[..begin].chars().next_back().is_none_or(char::is_whitespace);
        let Some(end) = text[begin..].find(';').filter(|_| alone) else { continue };
        let statement = text[begin + 4..begin + end].replace(" as ", "\0");
        found.push((begin, statement.chars().filter(|c| !c.is_whitespace()).collect()));
    }
    found
}

/// Whether what comes next is public, by whatever bounds.
fn is_public(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    line == "pub" || line.starts_with("pub(")
}

/// Each path of a `use` item by itself: `a::{b, c::{d, e}}` is three.
fn taken_apart(statement: &str) -> Vec<String> {
    let Some(open) = statement.find('{') else {
        return vec![statement.split('\0').next().unwrap_or_default().to_owned()];
    };
    let (prefix, rest) = statement.split_at(open);
    let inner = &rest[1..rest.rfind('}').unwrap_or(rest.len())];
    let (mut depth, mut part, mut parts) = (0, String::new(), Vec::new());
    for c in inner.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
    }
    parts.push(part);
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .flat_map(|part| taken_apart(&format!("{prefix}{part}")))
        .collect()
}

/// A path from the root of the crate; none where it leads out of it.
fn absolute(path: &str, module: &Module, modules: &BTreeSet<Module>) -> Option<Vec<String>> {
    let mut parts: Vec<String> = path.split("::").map(str::to_owned).collect();
    let mut begin = match parts[0].as_str() {
        "crate" => Vec::new(),
        "self" | "super" => module.clone(),
        child => {
            let mut child_of = module.clone();
            child_of.push(child.to_owned());
            modules.contains(&child_of).then_some(())?;
            module.clone()
        }
    };
    if parts[0] == "crate" || parts[0] == "self" {
        parts.remove(0);
    }
    while parts.first().is_some_and(|part| part == "super") {
        parts.remove(0);
        begin.pop();
    }
    begin.extend(parts.into_iter().filter(|part| part != "self" && !part.is_empty()));
    Some(begin)
}

/// The module that a path leads to: the longest beginning that is one, behind what is handed on.
fn resolve(
    path: &[String],
    modules: &BTreeSet<Module>,
    handed_on: &BTreeMap<(Module, String), Vec<String>>,
) -> Option<Module> {
    let mut path = path.to_vec();
    for _ in 0..MOST_HOPS {
        let length = (0..=path.len()).rev().find(|length| modules.contains(&path[..*length]))?;
        let module = path[..length].to_vec();
        let further = path.get(length).and_then(|name| handed_on.get(&(module.clone(), name.clone())));
        match further {
            Some(target) if *target != path => {
                path = target.iter().chain(&path[length + 1..]).cloned().collect();
            }
            _ => return Some(module),
        }
    }
    None
}

#[test]
fn braces_are_taken_apart() {
    assert_eq!(taken_apart("a::{b,c::{d,e\0f},g}"), ["a::b", "a::c::d", "a::c::e", "a::g"]);
}

#[test]
fn what_is_handed_on_leads_to_where_it_is() {
    let module = |path: &str| path.split('/').map(str::to_owned).collect::<Module>();
    let modules = BTreeSet::from([Vec::new(), module("a"), module("a/b"), module("c")]);
    let text = "pub use b::Thing;\nuse super::c;\n";
    let named = paths(text, &module("a"), &modules);
    assert!(named.iter().any(|named| named.handed_on && named.path == ["a", "b", "Thing"]));
    let handed_on =
        BTreeMap::from([((module("a"), "Thing".to_owned()), vec!["a".into(), "b".into(), "Thing".into()])]);
    let asked: Vec<String> = ["a", "Thing", "new"].map(str::to_owned).to_vec();
    assert_eq!(resolve(&asked, &modules, &handed_on), Some(module("a/b")));
}

#[test]
fn cycles_are_found_and_parents_are_none() {
    let module = |name: &str| vec![name.to_owned()];
    let arrows = |to: &[&str]| to.iter().map(|to| module(to)).collect::<BTreeSet<_>>();
    let imports = Imports {
        arrows: BTreeMap::from([
            (module("a"), arrows(&["b"])),
            (module("b"), arrows(&["c"])),
            (module("c"), arrows(&["a"])),
            (module("d"), arrows(&["a"])),
        ]),
    };
    assert_eq!(imports.cycles(), [arrows(&["a", "b", "c"])]);
}
