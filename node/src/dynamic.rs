//! The membership in the operator's files, as ZooKeeper keeps it: `zoo.cfg.dynamic.VERSION` beside zoo.cfg
//! holds the server lines, and zoo.cfg's key `dynamicConfigFile` names it.
//!
//! The first time, the server lines move out of zoo.cfg, whose old text stays beside it as `zoo.cfg.bak`.
//! Everything else in it stays as the operator wrote it, comments too. Each file is written whole beside its
//! place and then moved there, the dynamic one first: a crash leaves a pair that fits.
//!
//! A member that was configured by flags or variables alone has no such file, and learns its membership again
//! from the log and from the others.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use node_wire::ids::{ServerId, Zxid};
use node_wire::membership::Membership;

use crate::zoocfg::properties::{self, Line};

/// Keys that the dynamic file takes over.
const MOVED: &[&str] = &["server.", "group", "weight", "dynamicConfigFile", "peerType"];

/// Keys that a server's line takes over when it says where clients connect.
const CLIENT: &[&str] = &["clientPort", "clientPortAddress"];

/// Where the membership is written.
#[derive(Clone, Debug)]
pub(crate) struct DynamicFile {
    id: ServerId,
    zoo_cfg: PathBuf,
}

impl DynamicFile {
    pub(crate) fn new(id: ServerId, zoo_cfg: &Path) -> Self {
        Self { id, zoo_cfg: zoo_cfg.to_path_buf() }
    }

    /// Writes a membership down.
    ///
    /// # Errors
    /// When a file can't be read or written, with its name.
    pub(crate) fn write(&self, membership: &Membership) -> io::Result<()> {
        let text = fs::read(&self.zoo_cfg).map_err(|error| about(&self.zoo_cfg, &error))?;
        let unsound = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no file of properties any more");
        let read = properties::read(&text).map_err(unsound).map_err(|error| about(&self.zoo_cfg, &error))?;
        let dynamic = beside(&self.zoo_cfg, &format!(".dynamic.{:x}", membership.version.0));
        let mut lines: Vec<String> =
            membership.servers.iter().map(|(id, line)| format!("server.{id}={line}")).collect();
        lines.sort();
        replace(&dynamic, lines.join("\n").as_bytes())?;
        let key_of = |line: &Line<'_>| line.pair.as_ref().map(|pair| pair.key.clone()).unwrap_or_default();
        if read.iter().any(|line| key_of(line).starts_with("server.")) {
            replace(&beside(&self.zoo_cfg, ".bak"), &text)?;
        }
        let says_client = membership.servers.get(&self.id).is_some_and(|line| line.client.is_some());
        let stays = |line: &&Line<'_>| {
            let key = key_of(line);
            let moved = MOVED.iter().any(|moved| key.starts_with(moved));
            !(moved || says_client && CLIENT.contains(&&*key))
        };
        let mut kept: Vec<u8> = read.iter().filter(stays).flat_map(|line| line.raw).copied().collect();
        // Behind a last line that would go on an empty one ends it.
        kept.extend_from_slice(if kept.ends_with(b"\\\n") || kept.ends_with(b"\\") { b"\n\n" } else { b"" });
        if kept.last().is_some_and(|last| *last != b'\n') {
            kept.push(b'\n');
        }
        let canonical = fs::canonicalize(&dynamic).map_err(|error| about(&dynamic, &error))?;
        let pointer = properties::escape(&canonical.display().to_string());
        kept.extend_from_slice(format!("dynamicConfigFile={pointer}\n").as_bytes());
        replace(&self.zoo_cfg, &kept)
    }
}

/// The version that a dynamic file's name ends with, if it does.
pub(crate) fn version_of(path: &Path) -> Option<Zxid> {
    let name = path.file_name()?.to_str()?;
    let (_, version) = name.rsplit_once('.')?;
    let version = u64::from_str_radix(version, 16).ok()?;
    i64::try_from(version).ok().map(|_| Zxid(version))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Old or new, never half.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let temporary = beside(path, ".tmp");
    let attempt = || {
        let mut file = File::create(&temporary)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    };
    attempt().map_err(|error| about(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_lines_move_out_of_the_static_file_and_the_rest_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let zoo_cfg = dir.path().join("zoo.cfg");
        let before = "# ours\ntickTime=2000\nclientPort=2181\nserver.1=a:1:2\nserver.2=b:1:2\n\
                      4lw.commands.whitelist=*\n";
        fs::write(&zoo_cfg, before).expect("written");
        let file = DynamicFile::new(ServerId(1), &zoo_cfg);

        let first: Membership =
            "server.1=a:1:2\nserver.2=b:1:2\nversion=100000000".parse().expect("a membership");
        file.write(&first).expect("written");
        let dynamic = dir.path().join("zoo.cfg.dynamic.100000000");
        let pointer = |dynamic: &Path| {
            format!("dynamicConfigFile={}\n", fs::canonicalize(dynamic).expect("is there").display())
        };
        let read = |path: &Path| fs::read_to_string(path).expect("is there");
        assert_eq!(read(&dynamic), "server.1=a:1:2:participant\nserver.2=b:1:2:participant");
        assert_eq!(version_of(&dynamic), Some(Zxid(0x1_0000_0000)));
        let rest = "# ours\ntickTime=2000\nclientPort=2181\n4lw.commands.whitelist=*\n";
        assert_eq!(read(&zoo_cfg), format!("{rest}{}", pointer(&dynamic)));
        assert_eq!(read(&dir.path().join("zoo.cfg.bak")), before);

        let second: Membership = "server.1=a:1:2;3\nversion=100000005".parse().expect("a membership");
        file.write(&second).expect("written");
        let dynamic = dir.path().join("zoo.cfg.dynamic.100000005");
        let rest = "# ours\ntickTime=2000\n4lw.commands.whitelist=*\n";
        assert_eq!(read(&zoo_cfg), format!("{rest}{}", pointer(&dynamic)));
        assert_eq!(read(&dir.path().join("zoo.cfg.bak")), before, "the operator's own text stays");
    }

    #[test]
    fn lines_that_go_on_move_or_stay_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let zoo_cfg = dir.path().join("zoo.cfg");
        fs::write(&zoo_cfg, b"\\u0073erver.0: a\\\n  :1:2\nserver.1 b:1:2\nx=\\\r\n  server.1=\xe9\\")
            .expect("written");
        let membership: Membership = "server.0=a:1:2\nserver.1=b:1:2\nversion=1".parse().expect("sound");
        DynamicFile::new(ServerId(0), &zoo_cfg).write(&membership).expect("written");
        let text = fs::read(&zoo_cfg).expect("is there");
        let pairs: Vec<_> =
            properties::read(&text).expect("sound").into_iter().filter_map(|line| line.pair).collect();
        assert_eq!(pairs.len(), 2, "{}", text.escape_ascii());
        assert_eq!((&*pairs[0].key, &*pairs[0].value), ("x", "server.1=\u{e9}"));
        assert_eq!(pairs[1].key, "dynamicConfigFile");
        assert!(Path::new(&pairs[1].value).exists());
    }

    #[test]
    fn a_file_without_a_version_in_its_name_has_none() {
        assert_eq!(version_of(Path::new("/etc/zoo.cfg.dynamic")), None);
        assert_eq!(version_of(Path::new("zoo.cfg.dynamic.1a")), Some(Zxid(0x1a)));
    }
}
