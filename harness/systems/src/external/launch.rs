//! How members of the user's own system are started, as processes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use harness_core::cut::Pair;
use harness_core::fault::Server;
use runs::member::MemberId;

use super::file::{AsProcesses, Description};
use super::template::{self, Places};
use crate::program;
use crate::system::{Installation, Site};

/// A longer version is cut.
const VERSION_LENGTH: usize = 80;

/// The system as it was found: its programs are there.
pub(super) struct Installed {
    description: Arc<Description>,
    members: AsProcesses,
    version: Option<String>,
}

impl Installed {
    /// Asks for the version.
    pub(super) fn find(description: &Arc<Description>, members: &AsProcesses) -> Result<Self, String> {
        let version = members.version.as_ref().map(|words| version(words, description)).transpose()?;
        is_there(&members.command[0], &description.folder)?;
        for fault in &description.faults {
            fault.check_programs(&description.folder)?;
        }
        Ok(Self { description: Arc::clone(description), members: members.clone(), version })
    }
}

/// How placeholders begin that stand for something of one member.
const OF_A_MEMBER: [&str; 8] =
    ["{id}", "{data}", "{client}", "{client.", "{listen.", "{dial.", "{all:", "{others:"];

/// What a program says of its version.
fn version(words: &[String], description: &Description) -> Result<String, String> {
    let of_a_member = |word: &&String| OF_A_MEMBER.iter().any(|placeholder| word.contains(placeholder));
    if let Some(word) = words.iter().find(of_a_member) {
        return Err(format!(
            "version: {word}: no member is there when this is asked; of the placeholders it knows \
             {{folder}} alone"
        ));
    }
    let folder = description.folder.display().to_string();
    let words: Vec<String> = words.iter().map(|word| word.replace("{folder}", &folder)).collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(&description.folder);
    program::mark(&mut command);
    let output = program::brief(&mut command, program::VERSION_PATIENCE)
        .map_err(|error| format!("version: running {}: {error}", words[0]))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(version_in(&text))
}

/// The first word that looks like a version, without what is before its digits; else the first line.
fn version_in(text: &str) -> String {
    let looks_like_one = |word: &&str| {
        word.contains('.')
            && word.split('.').take(2).all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    };
    let digits = |word| str::trim_start_matches(word, |c: char| !c.is_ascii_digit());
    let mut words =
        text.split_ascii_whitespace().map(|word| digits(word).trim_end_matches([',', ';', ')', ':']));
    let line = || text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    words.find(looks_like_one).unwrap_or_else(line).chars().take(VERSION_LENGTH).collect()
}

/// Whether a program is where its name says, or on the path.
fn is_there(program: &str, folder: &Path) -> Result<(), String> {
    if program.contains('{') {
        return Ok(());
    }
    if program::is_there(program, folder) {
        return Ok(());
    }
    Err(format!("member.command: there is no {program} that can be run; install it, or put it on the path"))
}

impl Installation for Installed {
    fn versions(&self) -> BTreeMap<String, String> {
        self.version.iter().map(|version| (self.description.name.clone(), version.clone())).collect()
    }

    fn greeting(&self) -> Option<String> {
        self.version.as_ref().map(|version| format!("{} {version}", self.description.name))
    }

    fn tells(&self, _: Option<Server>) -> bool {
        false
    }

    fn start_patience(&self) -> Duration {
        self.description.start_patience
    }

    fn farewell(&self) -> Duration {
        self.description.farewell
    }

    fn command(&self, site: &Site<'_>, _: Option<Server>, lose_unsynced: bool) -> anyhow::Result<Command> {
        if lose_unsynced {
            anyhow::bail!("what was synced is not known, so nothing else can be lost: --lose-unsynced never");
        }
        let stand = Stand { site, folder: &self.description.folder, peers: self.members.peers };
        let filled = |text: &String| {
            template::filled(text, site.id.0, &stand).map_err(|why| anyhow::anyhow!("member.command: {why}"))
        };
        let words = self.members.command.iter().map(filled).collect::<Result<Vec<String>, _>>()?;
        // A path is meant from the file's folder; a name alone is looked for on the path.
        let program = if words[0].contains('/') {
            self.description.folder.join(&words[0])
        } else {
            words[0].clone().into()
        };
        let mut command = site.program(&program);
        command.args(&words[1..]).current_dir(&self.description.folder);
        for (name, text) in &self.members.environment {
            command.env(name, filled(text)?);
        }
        Ok(command)
    }
}

/// What placeholders stand for at a member's site.
struct Stand<'a> {
    site: &'a Site<'a>,
    folder: &'a Path,
    peers: u16,
}

impl Places for Stand<'_> {
    fn members(&self) -> Vec<u64> {
        self.site.members.iter().map(|member| member.0).collect()
    }

    fn client(&self, member: u64) -> SocketAddr {
        self.site.addresses.client(MemberId(member))
    }

    fn listen(&self, member: u64, port: u16) -> Option<SocketAddr> {
        (port < self.peers).then(|| self.site.addresses.peer(MemberId(member), port))
    }

    fn dial(&self, member: u64, port: u16) -> Option<SocketAddr> {
        let pair = Pair::new(self.site.id, MemberId(member));
        (port < self.peers).then(|| self.site.addresses.dial(pair, port))
    }

    fn word(&self, member: u64, word: &str) -> Option<String> {
        match word {
            "data" if member == self.site.id.0 => Some(self.site.data().display().to_string()),
            "folder" => Some(self.folder.display().to_string()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_print() {
        for (text, version) in [
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0", "7.0.15"),
            ("etcd Version: 3.4.23\nGit SHA: abc\n", "3.4.23"),
            ("psql (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15.18"),
            ("nats-server: v2.12.1", "2.12.1"),
            ("pysyncobj 0.3.17, Python 3.11.7", "0.3.17"),
            ("\n  unknown build\n", "unknown build"),
        ] {
            assert_eq!(version_in(text), version);
        }
    }
}
