//! Records to operations: what the lines of a history of znodes mean. The table stands in [`super`].

use std::sync::Arc;

use super::op::{ANY, Answer, Ask, Op, Path, Refusal, Shown, Stat, Step};
use crate::history::{Datum, EventKind, Record};

/// Steps of one multi that are read.
const MOST_STEPS: usize = 1 << 12;

/// What an invocation and its completion mean.
///
/// # Errors
/// What is wrong with them.
pub(super) fn decode(invoked: &Record, completed: Option<&Record>) -> Result<Option<Op>, String> {
    let session = completed.and_then(|record| record.session).or(invoked.session);
    let ask = match &*invoked.f {
        "leave" | "abandon" if completed.is_some_and(|completed| completed.kind == EventKind::Ok) => {
            return Err(format!(
                "nobody knows when a session ends: {} is never ok, leave it open",
                invoked.f
            ));
        }
        "close" | "expire" | "leave" | "abandon" => {
            session.ok_or_else(|| format!("{} names no session", invoked.f))?;
            Ask::End
        }
        "multi" => Ask::Multi(multi(&invoked.value)?),
        f => Ask::One(step(f, &invoked.value)?),
    };
    if ask.steps().iter().any(|step| is_of_the_system(step.path())) {
        return if ask.steps().len() == 1 {
            Ok(None)
        } else {
            Err("a multi of the system's own znodes".to_owned())
        };
    }
    let ephemeral = |step: &Step| matches!(step, Step::Create { ephemeral: true, .. });
    if ask.steps().iter().any(ephemeral) && session.is_none_or(|session| session == 0) {
        return Err("an ephemeral znode needs the session of its line".to_owned());
    }
    let zxid = completed.and_then(|record| record.zxid);
    let answer = match completed.filter(|completed| completed.kind != EventKind::Info) {
        None if ask.changes() => None,
        None => return Ok(None),
        Some(completed) if completed.kind == EventKind::Fail => match refusal(completed, &ask)? {
            Some(answer) => Some(answer),
            None => return Ok(None),
        },
        Some(completed) => Some(done(completed, &ask)?),
    };
    Ok(Some(Op { session, ask, answer, zxid }))
}

/// What the ensemble keeps for itself has data and versions of its own making: it is not judged.
fn is_of_the_system(path: &Path) -> bool {
    path.as_str().strip_prefix("/zookeeper").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn multi(value: &Datum) -> Result<Box<[Step]>, String> {
    let ops = value.get("ops").and_then(Datum::as_list).ok_or("a multi needs a list of ops")?;
    if ops.len() > MOST_STEPS {
        return Err(format!("a multi of more than {MOST_STEPS} steps"));
    }
    ops.iter()
        .map(|op| {
            let f = op.get("f").and_then(Datum::as_text).ok_or("a step of a multi needs an f")?;
            let step = step(f, op)?;
            match step {
                Step::Get(_) | Step::Exists(_) | Step::Children(_) => Err(format!("a multi has no {f}")),
                step => Ok(step),
            }
        })
        .collect()
}

fn step(f: &str, value: &Datum) -> Result<Step, String> {
    let text = |what: &str| match value.get(what) {
        Some(Datum::Text(text)) => Ok(Arc::clone(text)),
        _ => Err(format!("{f} needs a {what}")),
    };
    let path = || path(&text("path")?);
    let version = || match value.get("version") {
        None | Some(Datum::Nil) => Ok(ANY),
        Some(version) => version
            .as_int()
            .and_then(|version| i32::try_from(version).ok())
            .ok_or_else(|| format!("{version} is no version")),
    };
    let data = || value.get("data").cloned().unwrap_or_default();
    Ok(match f {
        "create" => {
            let mut flags = [false; 2];
            for flag in value.get("flags").and_then(Datum::as_list).unwrap_or_default() {
                match flag.as_text() {
                    Some("ephemeral") => flags[0] = true,
                    Some("sequential") => flags[1] = true,
                    _ => return Err(format!("a znode that is {flag} is not known here")),
                }
            }
            let [ephemeral, sequential] = flags;
            let path = if sequential {
                let text = text("path")?;
                // With any number behind it, it must be a path.
                Path::prefix(Arc::clone(&text))
                    .filter(|_| is_path(&format!("{text}0")))
                    .ok_or_else(|| format!("{text:?} is no beginning of a path"))?
            } else {
                path()?
            };
            Step::Create { path, data: data(), ephemeral, sequential }
        }
        "delete" => Step::Delete { path: path()?, version: version()? },
        "set" => Step::Set { path: path()?, data: data(), version: version()? },
        "check" => Step::Check { path: path()?, version: version()? },
        "get" => Step::Get(path()?),
        "exists" => Step::Exists(path()?),
        "children" => Step::Children(path()?),
        other => return Err(format!("a tree of znodes has no {other}")),
    })
}

/// The path that a text is.
pub(super) fn path(text: &Arc<str>) -> Result<Path, String> {
    Path::new(Arc::clone(text)).filter(|_| is_path(text)).ok_or_else(|| format!("{text:?} is no path"))
}

/// Names between slashes, none of them empty, `.` or `..`.
fn is_path(text: &str) -> bool {
    text == "/"
        || text
            .strip_prefix('/')
            .is_some_and(|names| names.split('/').all(|name| !name.is_empty() && name != "." && name != ".."))
}

fn refusal(completed: &Record, ask: &Ask) -> Result<Option<Answer>, String> {
    let Some(why) = completed.error.as_deref().and_then(Refusal::named).filter(|_| *ask != Ask::End) else {
        return Ok(None);
    };
    let at = match completed.value.get("failed").filter(|_| matches!(ask, Ask::Multi(_))) {
        None | Some(Datum::Nil) => None,
        Some(at) => {
            let at = at.as_int().and_then(|at| usize::try_from(at).ok());
            Some(at.filter(|at| *at < ask.steps().len()).ok_or("failed names no step of the multi")?)
        }
    };
    Ok(Some(Answer::Refused { at, why }))
}

fn done(completed: &Record, ask: &Ask) -> Result<Answer, String> {
    match ask {
        Ask::End => Ok(Answer::Done(Box::default())),
        Ask::One(step) => {
            let value = &completed.value;
            if matches!(step, Step::Exists(_))
                && (value.is_nil() || value.get("stat").is_some_and(Datum::is_nil))
            {
                return Ok(Answer::Refused { at: None, why: Refusal::NoNode });
            }
            let mut shown = shown(step, value)?;
            if (completed.version.is_some() || completed.mzxid.is_some())
                && !matches!(step, Step::Delete { .. })
            {
                let stat = shown.stat.get_or_insert_default();
                let version = completed.version.and_then(|version| i32::try_from(version).ok());
                stat.version = stat.version.or(version);
                stat.mzxid = stat.mzxid.or(completed.mzxid);
            }
            Ok(Answer::Done(Box::new([shown])))
        }
        Ask::Multi(steps) => {
            let results = completed.value.get("results").and_then(Datum::as_list).unwrap_or_default();
            if !results.is_empty() && results.len() != steps.len() {
                return Err(format!("a multi of {} steps has {} results", steps.len(), results.len()));
            }
            let shown: Result<Box<[Shown]>, String> =
                steps.iter().zip(results).map(|(step, result)| shown(step, result)).collect();
            Ok(Answer::Done(shown?))
        }
    }
}

fn shown(step: &Step, value: &Datum) -> Result<Shown, String> {
    let mut shown = Shown::default();
    match step {
        Step::Create { .. } => {
            shown.path = match value.get("path") {
                Some(Datum::Text(path)) => Some(Arc::clone(path)),
                None | Some(Datum::Nil) => None,
                Some(other) => return Err(format!("{other} is no path")),
            };
        }
        Step::Get(_) => shown.data = value.get("data").cloned(),
        Step::Children(_) => {
            if let Some(names) = value.get("children") {
                let names = names.as_list().ok_or("children is no list")?;
                let mut names = names
                    .iter()
                    .map(|name| {
                        if let Datum::Text(name) = name {
                            Ok(Arc::clone(name))
                        } else {
                            Err("a child without name")
                        }
                    })
                    .collect::<Result<Box<[Arc<str>]>, _>>()?;
                names.sort_unstable();
                shown.children = Some(names);
            }
        }
        Step::Delete { .. } | Step::Check { .. } | Step::Set { .. } | Step::Exists(_) => {}
    }
    shown.stat = match value.get("stat") {
        None | Some(Datum::Nil) => None,
        Some(fields) => Some(Box::new(stat(fields)?)),
    };
    Ok(shown)
}

fn stat(fields: &Datum) -> Result<Stat, String> {
    let int = |name: &str| match fields.get(name) {
        None | Some(Datum::Nil) => Ok(None),
        Some(Datum::Int(value)) => Ok(Some(*value)),
        Some(other) => Err(format!("{name} {other} is no integer")),
    };
    let short = |name: &str| {
        int(name)?.map(i32::try_from).transpose().map_err(|_| format!("{name} does not fit 32 bits"))
    };
    // Written in hexadecimal where readers take numbers as doubles.
    let bits = |name: &str| match fields.get(name) {
        None | Some(Datum::Nil) => Ok(None),
        Some(Datum::Int(value)) => Ok(Some(value.cast_unsigned())),
        Some(Datum::Text(text)) => text
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Some)
            .ok_or_else(|| format!("{name} {text:?} is no number of 64 bits")),
        Some(other) => Err(format!("{name} {other} is no number of 64 bits")),
    };
    Ok(Stat {
        czxid: bits("czxid")?,
        mzxid: bits("mzxid")?,
        pzxid: bits("pzxid")?,
        version: short("version")?,
        cversion: short("cversion")?,
        aversion: short("aversion")?,
        ephemeral_owner: bits("ephemeralOwner")?,
        data_length: int("dataLength")?,
        num_children: int("numChildren")?,
    })
}
