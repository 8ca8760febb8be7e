//! Systems that are files: what `harness init NAME` writes, and what `--system NAME` runs as it is.
//!
//! Each is a folder here and a line in the list below: a TOML file for local processes, a Compose file, or
//! both, and a client. They are the same files that a user of such a system would write, so whoever wants
//! something else begins from them. A run by name has them written to a folder of the user's cache, because
//! a client is a program and Compose files name files beside them.

use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

/// A system's files.
#[derive(Debug)]
pub struct Files {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is and what it promises, where `--system NAME` runs it.
    pub about: Option<&'static str>,
    /// By their usual names. The first is the one that `harness init` can be given another name for.
    pub files: &'static [(&'static str, &'static str)],
    /// What to do with them, `FILE` being the first.
    pub next: &'static str,
}

macro_rules! systems {
    ($($folder:ident,)*) => {
        $(mod $folder;)*

        /// All of them, in the order in which they are listed.
        pub const ALL: &[&Files] = &[$(&$folder::FILES),*];
    };
}

systems! {
    etcd,
    nats,
    postgres,
    redis,
    own,
    zookeeper,
}

/// Those that have this name, and can be run by it.
#[must_use]
pub fn named(name: &str) -> Option<&'static Files> {
    ALL.iter().copied().find(|files| files.name == name && files.about.is_some())
}

/// What a Compose file is called.
const COMPOSE: &str = "compose.yaml";
const TOML: &str = ".toml";

impl Files {
    /// The file that describes it, and its text: for containers where those are asked for, else for local
    /// processes; the other one where there is but one.
    #[must_use]
    pub fn described(&self, in_containers: bool) -> Option<(&'static str, &'static str)> {
        let named = |is_it: &dyn Fn(&str) -> bool| self.files.iter().copied().find(|(name, _)| is_it(name));
        let (compose, toml) = (named(&|name| name == COMPOSE), named(&|name| name.ends_with(TOML)));
        if in_containers { compose.or(toml) } else { toml.or(compose) }
    }

    /// The folder of the user's cache in which they lie once a run needs them, one for each version of them.
    ///
    /// # Errors
    /// The user has none.
    pub fn folder(&self) -> Result<PathBuf, String> {
        let cache = cache().ok_or_else(|| {
            let name = self.name;
            format!("neither XDG_CACHE_HOME nor HOME says where; `harness init {name}` writes its files here")
        })?;
        Ok(cache.join("harness").join("systems").join(format!("{}-{:016x}", self.name, self.hash())))
    }

    /// Writes them there, and says where that is.
    ///
    /// # Errors
    /// What could not be written, and why.
    pub fn unpacked(&self) -> Result<PathBuf, String> {
        let folder = self.folder()?;
        self.write(&folder).map_err(|error| {
            format!("{}: {error}; `harness init {}` writes its files here", folder.display(), self.name)
        })?;
        Ok(folder)
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for (name, text) in self.files {
            let path = folder.join(name);
            if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
                continue;
            }
            // Another run may read it at this moment: it is there as a whole, or not yet.
            let beside = folder.join(format!(".{name}.{}", process::id()));
            fs::write(&beside, text)?;
            fs::rename(&beside, &path)?;
        }
        Ok(())
    }

    /// FNV-1a of names and contents: another version's files lie elsewhere.
    fn hash(&self) -> u64 {
        let bytes = self.files.iter().flat_map(|(name, text)| name.bytes().chain([0]).chain(text.bytes()));
        bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// Where programs keep what they can make again: the XDG base directories say so. Nowhere else: what lies in
/// a folder that everybody can make may be somebody else's program.
#[must_use]
pub fn cache() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
}

#[cfg(test)]
mod tests {
    use checker::history::Function;
    use workloads::Kind;

    use super::*;
    use crate::external::External;
    use crate::system::System;

    #[test]
    fn whoever_asks_for_containers_gets_the_compose_file_and_others_the_one_for_processes() {
        let of = |name: &str| ALL.iter().find(|files| files.name == name).expect(name);
        let described = |name: &str, in_containers| of(name).described(in_containers).map(|(file, _)| file);
        assert_eq!(described("redis", false), Some("redis.toml"));
        assert_eq!(described("redis", true), Some("compose.yaml"));
        assert_eq!(described("postgres", false), Some("compose.yaml"));
    }

    #[test]
    fn what_a_client_of_ours_can_do_its_file_promises_something_of() {
        let mut told = 0;
        for files in ALL {
            let (_, client) =
                files.files.iter().find(|(name, _)| name.ends_with("client.py")).expect("a client");
            let folder = tempfile::tempdir().expect("a folder");
            files.write(folder.path()).expect("written");
            let has = |function: &Function| client.contains(&format!("\"{function}\""));
            for kind in Kind::ALL.iter().filter(|kind| {
                kind.asks_for().iter().all(|function| has(function) || kind.can_do_without(*function))
            }) {
                let described = [true, false].into_iter().filter_map(|at| files.described(at));
                for (name, _) in described {
                    let path = folder.path().join(name);
                    let system = External::read(&path.to_string_lossy()).expect(name);
                    let promise = system.promises(*kind).what;
                    assert!(kind.promised(promise).is_some(), "{}, {}: {promise}", files.name, kind.name());
                    told += 1;
                }
            }
        }
        assert!(told > 40, "{told}");
    }

    #[test]
    fn no_system_of_ours_may_be_silent_for_six_minutes() {
        let seconds = |text: &str, key: &str| -> Option<u64> {
            let line = text.lines().find(|line| line.trim_start().starts_with(key))?;
            line.trim_end_matches(['"', ' ']).trim_end_matches('s').rsplit([' ', '"']).next()?.parse().ok()
        };
        let mut told = 0;
        for (name, text) in ALL.iter().filter(|files| files.name != "system").flat_map(|files| files.files) {
            let Some(gives_up) = seconds(text, "gives_up_after") else { continue };
            let bound = seconds(text, "comes_back_within").unwrap_or(gives_up * runs::comes_back::TIMEOUTS);
            assert!(bound < 6 * 60, "{name}: {bound} s");
            told += 1;
        }
        assert!(told >= 7, "{told} files say when members give up");
    }

    #[test]
    fn files_are_written_once_and_mended_when_somebody_changed_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = ALL.iter().find(|files| files.name == "redis").expect("redis");
        files.write(folder.path()).expect("written");
        let client = folder.path().join("redis_client.py");
        let written = fs::metadata(&client).and_then(|found| found.modified()).expect("it is there");
        files.write(folder.path()).expect("written");
        assert_eq!(fs::metadata(&client).and_then(|found| found.modified()).expect("it is there"), written);
        fs::write(&client, "half").expect("written");
        files.write(folder.path()).expect("written");
        assert!(fs::read_to_string(&client).expect("read").len() > 4);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), files.files.len());
    }
}
