//! Scripts as text, in both directions.
//!
//! What is read may come from anywhere: every number and every length has a bound, and an error names its
//! line and what would have been understood there.

use std::fmt;
use std::str::FromStr;

use lab_mutants::Mutant;
use node_wire::ids::Zxid;

use super::head::{Head, MAX_CLIENTS, MAX_MEMBERS, SETTINGS};
use super::lines::{Crash, DiskChange, Kind, Line, Target, Transition};
use super::{ClientAction, Script};
use crate::network::HostIndex;
use crate::outcome::Rule;

/// Bytes of a script at most.
const MAX_BYTES: usize = 64 << 20;

/// Lines of a script at most.
const MAX_LINES: usize = 500_000;

/// Ticks of a whole script at most.
const MAX_TICKS: u64 = 2_000_000;

/// The latest moment, in microseconds: a day.
const MAX_US: u64 = 86_400_000_000;

/// Any other number in a line, at most.
const MAX_NUMBER: u64 = 1 << 40;

/// How much faster or slower a clock may run, in parts per million.
const MAX_PACE_PPM: i64 = 500_000;

/// The longest name of a file.
const MAX_NAME: usize = 40;

/// Answers to the disk's questions at a crash, at most.
const MAX_KEEPS: usize = 10_000;

/// Where notes begin, mostly.
const COLUMN: usize = 36;

/// Where notes should end.
const WIDTH: usize = 118;

/// A text that is no script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What would have been understood there.
    pub expected: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)
    }
}

impl std::error::Error for ScriptError {}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        comments(f, &self.title)?;
        if let Some(bug) = self.mutant {
            writeln!(f, "mutant {bug}")?;
        }
        if let Some(rule) = self.breaks {
            writeln!(f, "breaks {}", rule.name())?;
        }
        writeln!(f, "{}\n", self.head)?;
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        if !self.tail.is_empty() {
            writeln!(f)?;
        }
        comments(f, &self.tail)
    }
}

fn comments(f: &mut fmt::Formatter<'_>, lines: &[String]) -> fmt::Result {
    lines.iter().try_for_each(|line| writeln!(f, "{}", format!("# {line}").trim_end()))
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ensemble {}", self.members)?;
        for (setting, value) in SETTINGS.iter().zip(self.settings) {
            if value != setting.usual {
                write!(f, " {}={value}{}", setting.name, setting.unit)?;
            }
        }
        write!(f, "\nclients {}", self.clients)?;
        if self.outside {
            f.write_str(" outside")?;
        }
        let prompt: Vec<&str> =
            self.prompt.words().into_iter().filter_map(|(word, said)| said.then_some(word)).collect();
        if prompt.is_empty() { Ok(()) } else { write!(f, "\nprompt {}", prompt.join(" ")) }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        if let Some(at) = self.at_us {
            text += &format!("{}.{:06} ", at / 1_000_000, at % 1_000_000);
        }
        text += &self.transition.to_string();
        if self.note.is_empty() {
            return f.write_str(&text);
        }
        let mut width = 0;
        for (index, part) in self.note.split("; ").enumerate() {
            if index == 0 {
                write!(f, "{text:COLUMN$} # {part}")?;
                width = text.len().max(COLUMN) + 3 + part.len();
            } else if width + 2 + part.len() <= WIDTH {
                write!(f, "; {part}")?;
                width += 2 + part.len();
            } else {
                write!(f, "\n{:COLUMN$} # {part}", "")?;
                width = COLUMN + 3 + part.len();
            }
        }
        Ok(())
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self {
            title: Vec::new(),
            mutant: None,
            breaks: None,
            head: Head::usual(0),
            lines: Vec::new(),
            tail: Vec::new(),
        };
        if text.len() > MAX_BYTES {
            return Err(ScriptError { line: 1, expected: format!("at most {MAX_BYTES} bytes") });
        }
        let mut ticks = 0;
        for (index, line) in text.lines().enumerate() {
            script
                .read_line(line, &mut ticks)
                .map_err(|expected| ScriptError { line: index + 1, expected })?;
        }
        if script.head.members == 0 {
            let line = text.lines().count().max(1);
            return Err(ScriptError {
                line,
                expected: "a line `ensemble MEMBERS` before the end".to_owned(),
            });
        }
        Ok(script)
    }
}

impl Script {
    fn read_line(&mut self, line: &str, ticks: &mut u64) -> Result<(), String> {
        let (said, note) = line.split_once('#').unwrap_or((line, ""));
        let note = note.strip_prefix(' ').unwrap_or(note).trim_end();
        let words: Vec<&str> = said.split_whitespace().collect();
        if words.is_empty() {
            self.comment(line, note);
            return Ok(());
        }
        match words[..] {
            ["mutant", name] => {
                self.mutant = Some(Mutant::named(name).ok_or_else(|| "the name of a bug".to_owned())?);
            }
            ["breaks", ..] => {
                let rule = Rule::from_name(&words[1..].join(" "));
                self.breaks = Some(rule.ok_or_else(|| "the name of a rule".to_owned())?);
            }
            ["ensemble", members, ..] => self.read_ensemble(members, &words[2..])?,
            ["clients", clients, ..] => self.read_clients(clients, &words[2..])?,
            ["prompt", ..] => {
                for word in &words[1..] {
                    match *word {
                        "clients" => self.head.prompt.clients = true,
                        "disks" => self.head.prompt.disks = true,
                        "votes" => self.head.prompt.votes = true,
                        _ => return Err("clients, disks or votes".to_owned()),
                    }
                }
            }
            _ if self.head.members == 0 => return Err("`ensemble MEMBERS` before the first line".to_owned()),
            _ if self.lines.len() == MAX_LINES => return Err(format!("at most {MAX_LINES} lines")),
            _ => {
                let line = self.read_transition(&words, note)?;
                if let Transition::Tick { times, .. } = line.transition {
                    *ticks += u64::from(times);
                    if *ticks > MAX_TICKS {
                        return Err(format!("at most {MAX_TICKS} ticks"));
                    }
                }
                self.lines.push(line);
            }
        }
        Ok(())
    }

    fn comment(&mut self, line: &str, note: &str) {
        if !line.contains('#') {
            return;
        }
        match self.lines.last_mut() {
            None if self.head.members == 0 => self.title.push(note.to_owned()),
            None => {}
            Some(last) if line.starts_with(' ') => {
                last.note.push_str("; ");
                last.note.push_str(note);
            }
            Some(_) => self.tail.push(note.to_owned()),
        }
    }

    fn read_ensemble(&mut self, members: &str, settings: &[&str]) -> Result<(), String> {
        if self.head.members != 0 {
            return Err("one `ensemble` only".to_owned());
        }
        let members = number(members, u64::try_from(MAX_MEMBERS).unwrap_or(1), "members")?;
        self.head.members = usize::try_from(members.max(1)).unwrap_or(1);
        for word in settings {
            let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
            let expected = || format!("a setting NAME=VALUE of {}", names.join(", "));
            let (name, value) = word.split_once('=').ok_or_else(expected)?;
            let place = names.iter().position(|known| *known == name).ok_or_else(expected)?;
            let setting = &SETTINGS[place];
            let value = value.strip_suffix(setting.unit).unwrap_or(value);
            self.head.settings[place] = number(value, setting.most, name)?;
        }
        Ok(())
    }

    fn read_clients(&mut self, clients: &str, rest: &[&str]) -> Result<(), String> {
        self.head.clients = size(number(clients, MAX_CLIENTS, "clients")?);
        match rest {
            [] => {}
            ["outside"] => self.head.outside = true,
            _ => return Err("nothing more, or outside".to_owned()),
        }
        Ok(())
    }

    fn read_transition(&self, words: &[&str], note: &str) -> Result<Line, String> {
        let timed = words[0].starts_with(|first: char| first.is_ascii_digit());
        let at_us = timed.then(|| moment(words[0])).transpose()?;
        let words = &words[usize::from(timed)..];
        let Some((subject, rest)) = words.split_first() else {
            return Err("a transition behind its time".to_owned());
        };
        let transition = if *subject == "look" {
            let target = Target::ALL.into_iter().find(|target| [target.name()] == *rest);
            let names: Vec<&str> = Target::ALL.into_iter().map(Target::name).collect();
            Transition::Look(target.ok_or_else(|| format!("look and one of {}", names.join(", ")))?)
        } else if let Some((from, to)) = subject.split_once('>') {
            self.read_arrival(self.member(from)?, self.member(to)?, rest)?
        } else if subject.starts_with('c') {
            self.read_client(self.client(subject)?, rest)?
        } else {
            self.read_member(self.member(subject)?, rest)?
        };
        Ok(Line { at_us, transition, note: note.to_owned() })
    }

    fn member(&self, word: &str) -> Result<HostIndex, String> {
        named(word, 's', self.head.hosts())
    }

    fn client(&self, word: &str) -> Result<usize, String> {
        named(word, 'c', self.head.clients)
    }

    fn read_arrival(&self, from: HostIndex, to: HostIndex, words: &[&str]) -> Result<Transition, String> {
        let Some((kind, rest)) = words.split_first() else {
            return Err("vote or the kind of a packet".to_owned());
        };
        if *kind == "vote" && rest.is_empty() {
            return Ok(Transition::Vote { from, to });
        }
        let kind = Kind::all()
            .find(|known| known.to_string() == *kind)
            .ok_or_else(|| "vote, IMAGE or the kind of a packet, as PROPOSAL".to_owned())?;
        let (mut zxid, mut old) = (None, 0);
        for word in rest {
            if let Some(digits) = word.strip_prefix("0x") {
                let raw = u64::from_str_radix(digits, 16).map_err(|_| "a zxid as 0x100000002".to_owned())?;
                zxid = Some(Zxid(raw));
            } else {
                old = older(Some(word))?;
            }
        }
        Ok(Transition::Packet { from, to, kind, zxid, old })
    }

    fn read_client(&self, client: usize, words: &[&str]) -> Result<Transition, String> {
        Ok(match words {
            ["connects", member] => Transition::Connects { client, host: self.member(member)?, anew: false },
            ["connects", member, "anew"] => {
                Transition::Connects { client, host: self.member(member)?, anew: true }
            }
            ["asks", action @ ..] => Transition::Asks { client, action: ClientAction::parse(action)? },
            ["pings"] => Transition::Pings { client },
            ["hangs-up"] => Transition::HangsUp { client },
            ["listens"] => Transition::Listens { client },
            ["cut"] => Transition::Cut { client },
            _ => return Err("connects sN [anew], asks …, pings, hangs-up, listens or cut".to_owned()),
        })
    }

    fn read_member(&self, host: HostIndex, words: &[&str]) -> Result<Transition, String> {
        let peer = |word: &&str| self.member(word);
        Ok(match words {
            ["start"] => Transition::Start { host },
            ["crash", rest @ ..] => Transition::Crash { host, crash: crash(rest)? },
            ["tick"] => Transition::Tick { host, times: 1 },
            ["tick", times] => {
                let times = u32::try_from(count(times)?).map_err(|_| "fewer ticks".to_owned())?;
                Transition::Tick { host, times }
            }
            ["stored"] => Transition::Stored { host, ops: None },
            ["stored", ops] => Transition::Stored { host, ops: Some(size(count(ops)?)) },
            ["wrote"] => Transition::Wrote { host, ops: None },
            ["wrote", ops] => Transition::Wrote { host, ops: Some(size(count(ops)?)) },
            ["told"] => Transition::Told { host },
            ["snapshot"] => Transition::Snapshot { host },
            ["clock", rest @ ..] => clock(host, rest)?,
            ["disk-fails", at, rest @ ..] if rest.is_empty() || *rest == ["lasting"] => {
                let nth = at.strip_prefix("at=").ok_or_else(|| "at=N".to_owned())?;
                let nth = number(nth, MAX_NUMBER, "disk operations")?;
                Transition::DiskFails { host, nth, lasting: !rest.is_empty() }
            }
            ["disk", change @ ..] => Transition::Disk { host, change: disk_change(change)? },
            ["rots", file, bit] => {
                let sound =
                    file.len() <= MAX_NAME && (file.starts_with("log.") || file.starts_with("snapshot."));
                let bit = bit.strip_prefix("bit=").filter(|_| sound);
                let bit = bit.ok_or_else(|| "rots log.X bit=N or rots snapshot.X bit=N".to_owned())?;
                let bit = size(number(bit, MAX_NUMBER, "a bit")?);
                Transition::Rots { host, file: (*file).to_owned(), bit }
            }
            ["meets", other] => Transition::Meets { host, peer: peer(other)? },
            ["misses", other] => Transition::Misses { host, peer: peer(other)? },
            ["dials", other] => Transition::Dials { host, peer: peer(other)? },
            ["accepts", other] => Transition::Accepts { host, peer: peer(other)? },
            ["dialled", other] => Transition::Dialled { host, peer: peer(other)? },
            ["refused", other] => Transition::Refused { host, peer: peer(other)? },
            ["loses", other, rest @ ..] if rest.len() < 2 => {
                Transition::Loses { host, peer: peer(other)?, old: older(rest.first())? }
            }
            ["hears", client, rest @ ..] if rest.len() < 2 => {
                Transition::Hears { host, client: self.client(client)?, old: older(rest.first())? }
            }
            ["drops", client, rest @ ..] if rest.len() < 2 => {
                Transition::Drops { host, client: self.client(client)?, old: older(rest.first())? }
            }
            _ => {
                return Err(
                    "start, crash, tick, stored, wrote, told, snapshot, clock, disk, disk-fails, rots, \
                            meets, \
                            misses, dials, accepts, dialled, refused, loses, hears or drops"
                        .to_owned(),
                );
            }
        })
    }
}

fn named(word: &str, letter: char, count: usize) -> Result<usize, String> {
    let index = word.strip_prefix(letter).and_then(|digits| digits.parse::<usize>().ok());
    index
        .filter(|index| (1..=count).contains(index))
        .map(|index| index - 1)
        .ok_or_else(|| format!("one of {letter}1 to {letter}{count}"))
}

fn number(word: &str, most: u64, what: &str) -> Result<u64, String> {
    let number = word.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("{what}: a number up to {most}"))
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn count(word: &str) -> Result<u64, String> {
    let times = word.strip_prefix('x').ok_or_else(|| "a count as x3".to_owned())?;
    number(times, MAX_TICKS, "a count")
}

fn older(word: Option<&&str>) -> Result<usize, String> {
    let Some(word) = word else { return Ok(0) };
    let old = word.strip_prefix("old=").ok_or_else(|| "old=N".to_owned())?;
    number(old, MAX_NUMBER, "older connections").map(size)
}

fn moment(word: &str) -> Result<u64, String> {
    let expected = || "a moment in seconds, as 1.250".to_owned();
    let (seconds, fraction) = word.split_once('.').unwrap_or((word, "0"));
    if fraction.is_empty() || fraction.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(expected());
    }
    let seconds: u64 = seconds.parse().map_err(|_| expected())?;
    let micros: u64 = format!("{fraction:0<6}").parse().map_err(|_| expected())?;
    let at = seconds.checked_mul(1_000_000).and_then(|us| us.checked_add(micros)).ok_or_else(expected)?;
    if at > MAX_US { Err("a moment within a day".to_owned()) } else { Ok(at) }
}

fn crash(words: &[&str]) -> Result<Crash, String> {
    let mut crash = Crash::default();
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "at-failure" if value.is_empty() => crash.at_failure = true,
            "power" if value.is_empty() => crash.power = true,
            "in-step" => crash.in_step = Some(number(value, MAX_NUMBER, name)?),
            "store" => crash.store = Some(number(value, MAX_NUMBER, name)?),
            "snapshot" => crash.snapshot = Some(number(value, MAX_NUMBER, name)?),
            "keeps" => {
                let keeps: Result<_, _> =
                    value.split(',').map(|kept| number(kept, MAX_NUMBER, name)).collect();
                crash.keeps = keeps?;
                if crash.keeps.len() > MAX_KEEPS {
                    return Err(format!("at most {MAX_KEEPS} numbers"));
                }
            }
            _ => return Err("at-failure, power, in-step=N, store=N, snapshot=N or keeps=N,N".to_owned()),
        }
    }
    Ok(crash)
}

/// What follows `disk` in a line: `s1 disk sync-fails keeps=512`.
fn disk_change(words: &[&str]) -> Result<DiskChange, String> {
    match words {
        ["full"] => Ok(DiskChange::Full),
        ["roomy"] => Ok(DiskChange::Roomy),
        ["restored"] => Ok(DiskChange::Restored),
        ["sound"] => Ok(DiskChange::Sound),
        ["sync-fails", keeps] if keeps.starts_with("keeps=") => {
            Ok(DiskChange::SyncFails(number(&keeps["keeps=".len()..], MAX_NUMBER, "keeps")?))
        }
        _ => Err("full, roomy, restored, sound or sync-fails keeps=N".to_owned()),
    }
}

fn clock(host: HostIndex, words: &[&str]) -> Result<Transition, String> {
    let expected = || "wall=Nms, drift=Nppm, fast=Nppm or jump=Nus".to_owned();
    let paced = |value: &str| {
        let ppm: Option<i64> = value.strip_suffix("ppm").and_then(|digits| digits.parse().ok());
        ppm.filter(|ppm| ppm.abs() <= MAX_PACE_PPM).ok_or_else(expected)
    };
    let (mut wall_ms, mut drift_ppm, mut fast_ppm, mut jump_us) = (0, 0, 0, 0);
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(expected)?;
        match name {
            "wall" => {
                let value = value.strip_suffix("ms").ok_or_else(expected)?;
                let ms: i64 = value.parse().map_err(|_| expected())?;
                let far = i64::try_from(MAX_US / 1000).unwrap_or(i64::MAX);
                wall_ms = Some(ms).filter(|ms| ms.abs() <= far).ok_or_else(expected)?;
            }
            "drift" => drift_ppm = paced(value)?,
            "fast" => fast_ppm = paced(value)?,
            "jump" => {
                let value = value.strip_suffix("us").ok_or_else(expected)?;
                jump_us = number(value, MAX_US, name)?;
            }
            _ => return Err(expected()),
        }
    }
    Ok(Transition::Clock { host, wall_ms, drift_ppm, fast_ppm, jump_us })
}
