//! Faults of the user's own, as a file describes them.
//!
//! ```toml
//! [faults.slow-disk]
//! exec = ["sh", "-c", "touch {data}/slow"]
//! heal = ["rm", "{data}/slow"]
//! seen = ["test", "-e", "{data}/slow"]
//! aim = "leader"
//! ```
//!
//! `exec` brings the fault, `heal` undoes it, and `seen` ends with 0 at a member where it is in force.
//! Without `heal` it is done with when it was done. Without `seen` nobody could prove it, so it is refused: a
//! run whose faults are not proven shows nothing. Commands and names are checked here; what runs them is in
//! `inflict.rs`.

use std::collections::BTreeMap;
use std::path::Path;

use harness_core::fault::Nemesis;
use harness_core::fault::own::{Own, Whom};

use super::template::{self, Outside, Places};
use super::written::{Words, WrittenFault};
use crate::own::OwnCommand;
use crate::program;

/// The longest name.
const MOST_LETTERS: usize = 40;

/// A fault of the user's own with its commands: each has a program's name at least.
#[derive(Clone, Debug)]
pub struct OwnFault {
    /// What it is for everybody else.
    pub own: Own,
    exec: Vec<String>,
    heal: Option<Vec<String>>,
    seen: Vec<String>,
}

impl OwnFault {
    /// The command for this; none where it has no such one.
    pub(super) fn command(&self, command: OwnCommand) -> Option<&[String]> {
        match command {
            OwnCommand::Exec => Some(&self.exec),
            OwnCommand::Heal => self.heal.as_deref(),
            OwnCommand::Seen => Some(&self.seen),
        }
    }

    /// Whether its programs can be run on this machine.
    pub(super) fn check_programs(&self, folder: &Path) -> Result<(), String> {
        for command in [OwnCommand::Exec, OwnCommand::Heal, OwnCommand::Seen] {
            let Some([program, ..]) = self.command(command) else { continue };
            if !program.contains('{') && !program::is_there(program, folder) {
                return Err(format!(
                    "faults.{}.{}: there is no {program} that can be run; install it, or put it on the path",
                    self.own.name(),
                    command.name()
                ));
            }
        }
        Ok(())
    }
}

/// What the file's words mean. `are_contained` says whether members are containers.
pub(super) fn described(
    written: BTreeMap<String, WrittenFault>,
    are_contained: bool,
) -> Result<Vec<OwnFault>, String> {
    written
        .into_iter()
        .map(|(name, written)| {
            check_name(&name)?;
            own_fault(&name, written, are_contained).map_err(|why| format!("faults.{name}{why}"))
        })
        .collect()
}

/// A name stands in lists with commas, in file names and on the page.
fn check_name(name: &str) -> Result<(), String> {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if name.is_empty() || name.len() > MOST_LETTERS || name.starts_with('-') || !name.chars().all(fits) {
        return Err(format!(
            "faults.{name}: a name has up to {MOST_LETTERS} of a-z, 0-9 and -, and does not begin with -"
        ));
    }
    if Nemesis::names().contains(&name) {
        return Err(format!("faults.{name}: there is a nemesis of that name already; take another one"));
    }
    Ok(())
}

/// A fault as its table in the file describes it. The error begins with the key behind `faults.NAME`.
fn own_fault(name: &str, written: WrittenFault, are_contained: bool) -> Result<OwnFault, String> {
    let WrittenFault { exec, heal, seen, aim } = written;
    let exec = exec.ok_or(": write exec, the command that brings it")?;
    let seen = seen.ok_or(
        ": a fault that nobody sees proves nothing; write seen, a command that ends with 0 at a member where \
         the fault is in force, and with another status where it is not",
    )?;
    let command = |command: OwnCommand, words: Words| {
        let key = format!(".{}", command.name());
        let words = words.command(&key)?;
        check_places(&words, are_contained).map_err(|why| format!("{key}: {why}"))?;
        Ok::<_, String>(words)
    };
    let exec = command(OwnCommand::Exec, exec)?;
    let heal = heal.map(|heal| command(OwnCommand::Heal, heal)).transpose()?;
    let seen = command(OwnCommand::Seen, seen)?;
    let whom = match aim {
        None => Whom::default(),
        Some(text) => Whom::named(&text)
            .ok_or_else(|| format!(".aim = \"{text}\": write {}", Whom::ALL.map(Whom::name).join(", ")))?,
    };
    let healed = match &heal {
        Some(heal) => format!("healed by {heal:?}"),
        None => "not healed".to_owned(),
    };
    let about = format!("runs {exec:?} ({}), {healed}, seen by {seen:?}", whom.name());
    Ok(OwnFault { own: Own::new(name, about, whom, heal.is_some()), exec, heal, seen })
}

/// Whether every placeholder means something.
fn check_places(words: &[String], are_contained: bool) -> Result<(), String> {
    let here = (!are_contained).then(String::new);
    let places = Aimed { outside: Outside::first(), data: here.clone(), folder: here, fault: String::new() };
    for word in words {
        template::filled(word, places.outside.id, &places).map_err(|why| {
            let here = if are_contained { "" } else { ", {data}, {folder}" };
            format!("{why}; a command of a fault knows {{id}}, {{client}} with its parts, {{fault}}{here}")
        })?;
    }
    Ok(())
}

/// What placeholders stand for in a command of a fault: a question's, and what is the fault's.
pub(super) struct Aimed {
    pub(super) outside: Outside,
    /// The member's own folder, where it is on this machine.
    pub(super) data: Option<String>,
    /// The folder of the file, where that is within reach.
    pub(super) folder: Option<String>,
    /// The fault's name in this run.
    pub(super) fault: String,
}

impl Places for Aimed {
    fn members(&self) -> Vec<u64> {
        self.outside.members()
    }

    fn client(&self, member: u64) -> std::net::SocketAddr {
        self.outside.client(member)
    }

    fn listen(&self, _: u64, _: u16) -> Option<std::net::SocketAddr> {
        None
    }

    fn dial(&self, _: u64, _: u16) -> Option<std::net::SocketAddr> {
        None
    }

    fn word(&self, _: u64, word: &str) -> Option<String> {
        match word {
            "data" => self.data.clone(),
            "folder" => self.folder.clone(),
            "fault" => Some(self.fault.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, are_contained: bool) -> Result<Vec<OwnFault>, String> {
        described(toml::from_str(text).expect("TOML"), are_contained)
    }

    #[test]
    fn a_fault_is_a_nemesis_with_its_commands() {
        let text = "[slow]\nexec = \"touch {data}/{fault}\"\nheal = [\"rm\", \"{data}/{fault}\"]\n\
                    seen = [\"test\", \"-e\", \"{data}/{fault}\"]\naim = \"leader\"\n\
                    [compact]\nexec = [\"c\", \"{client}\"]\nseen = [\"s\", \"{id}\"]\n";
        let faults = read(text, false).expect("two faults");
        let [compact, slow] = &faults[..] else { panic!("two faults") };
        assert_eq!((slow.own.name(), slow.own.whom(), slow.own.lasts()), ("slow", Whom::Leader, true));
        assert_eq!(slow.command(OwnCommand::Exec).expect("exec"), ["sh", "-c", "touch {data}/{fault}"]);
        assert_eq!((compact.own.whom(), compact.own.lasts()), (Whom::One, false));
        assert_eq!(compact.command(OwnCommand::Heal), None);
        assert_eq!(
            compact.own.about(),
            "runs [\"c\", \"{client}\"] (one), not healed, seen by [\"s\", \"{id}\"]"
        );
        let nemesis = Nemesis::from(slow.own);
        assert!(nemesis.needs_leader() && !nemesis.may_lose_unsynced() && !nemesis.hits_applications());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_advice() {
        for (text, advice) in [
            ("[kill-one]\nexec = \"a\"\nseen = \"b\"\n", "there is a nemesis of that name"),
            ("[none]\nexec = \"a\"\nseen = \"b\"\n", "there is a nemesis of that name"),
            ("[Slow]\nexec = \"a\"\nseen = \"b\"\n", "up to 40 of a-z"),
            ("[-slow]\nexec = \"a\"\nseen = \"b\"\n", "does not begin with -"),
            ("[slow]\nexec = \"a\"\n", "faults.slow: a fault that nobody sees proves nothing; write seen"),
            ("[slow]\nseen = \"a\"\n", "faults.slow: write exec"),
            ("[slow]\nexec = []\nseen = \"b\"\n", "faults.slow.exec: name a program"),
            ("[slow]\nexec = \"a\"\nseen = \"b\"\naim = \"voters\"\n", "one, leader, followers, all"),
            ("[slow]\nexec = \"a {dial.0}\"\nseen = \"b\"\n", "faults.slow.exec: nobody knows"),
        ] {
            let error = read(text, false).expect_err(text);
            assert!(error.contains(advice), "{text}\n{error}");
        }
        let data = "[slow]\nexec = \"a\"\nheal = \"b {data}\"\nseen = \"c\"\n";
        let error = read(data, true).expect_err("no folder of this machine");
        assert!(error.contains("faults.slow.heal: nobody knows the placeholder {data}"), "{error}");
    }
}
