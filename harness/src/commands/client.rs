//! `harness client check`: a conversation with a client that speaks lines, without a cluster.

use std::collections::BTreeMap;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use harness_systems::Beginning;
use harness_systems::external::check::{Behind, Conversation, Finding, Weight, converse};
use harness_systems::external::{MEMBERS_VARIABLE, file};
use harness_systems::files;
use harness_systems::program::Program;

use super::screen::print;
use crate::cli::{ClientArgs, ClientCheckArgs, ClientCommand};
use crate::exit::{Exit, Failure};

/// Does what is wanted of a client.
pub fn client(args: &ClientArgs) -> Result<Exit, Failure> {
    match &args.command {
        ClientCommand::Check(args) => check(args),
    }
}

fn check(args: &ClientCheckArgs) -> Result<Exit, Failure> {
    let program = program(args)?;
    let folder = tempfile::tempdir().context("making a folder for what the client writes")?;
    let beginning = Beginning {
        clients: 1,
        members: Vec::new(),
        executable: std::env::current_exe().context("finding this executable")?,
        environment: Vec::new(),
        folder: folder.path().to_owned(),
        alongside: None,
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    let behind = behind(args)?;
    let Conversation { findings, heard_no_change } =
        runtime.block_on(converse(&program, &beginning, &behind)).map_err(Failure::Usage)?;
    let of = |weight| findings.iter().filter(|finding| finding.weight == weight).count();
    let (faults, advice, untried) = (of(Weight::Fault), of(Weight::Advice), of(Weight::Untried));
    print(&findings.iter().map(line).collect::<String>())?;
    let verdict = match (faults, untried, advice) {
        (0, 0, _) if of(Weight::Untriable) > 0 => {
            "this client can be believed in what was tried; what is marked ? can't be tried here"
        }
        (0, 0, 0) => "this client can be believed",
        (0, 0, _) => "this client can be believed; what is marked ! could be better",
        (0, _, _) if heard_no_change => {
            "no request for a change ever came, so nothing that counts was tried: put a running member \
             behind the conversation (--member HOST:PORT), or say what one says first (--greeting TEXT)"
        }
        (0, _, _) if matches!(behind, Behind::Member(_)) => {
            "nothing is wrong as far as was tried; what is marked ? was not"
        }
        (0, _, _) => {
            "nothing is wrong as far as was tried; what is marked ? was not: put a running member behind \
             the conversation (--member HOST:PORT), or say what one says first (--greeting TEXT)"
        }
        (_, _, _) => "no run with this client could be judged: mend what is marked ✗",
    };
    print(&format!("\n{verdict}\n"))?;
    Ok(match faults {
        0 if heard_no_change => Exit::Unknown,
        0 => Exit::Done,
        _ => Exit::Invalid,
    })
}

/// What stands behind the ports of the conversation: the member that was named, or one of those of
/// `harness wrap`, which started this command; else nobody.
fn behind(args: &ClientCheckArgs) -> Result<Behind, Failure> {
    let listed = std::env::var(MEMBERS_VARIABLE).unwrap_or_default();
    let wrapped = listed.split(',').next().and_then(|first| first.split_once('='));
    let member = match (&args.member, wrapped) {
        (Some(member), _) => member.as_str(),
        (None, Some((_, first))) if args.greeting.is_empty() => first,
        (None, _) => return Ok(Behind::Words(unescaped(&args.greeting))),
    };
    let mut found = member.to_socket_addrs().map_err(|error| {
        Failure::usage(format!("--member {member}: {error}; write where it listens for clients, HOST:PORT"))
    })?;
    found.next().map(Behind::Member).ok_or_else(|| Failure::usage(format!("--member {member}: no such host")))
}

fn program(args: &ClientCheckArgs) -> Result<Arc<Program>, Failure> {
    match (&args.system, args.command.is_empty()) {
        (Some(path), true) => {
            let described = match files::named(path).and_then(|files| Some((files, files.described(false)?)))
            {
                Some((files, (name, _))) => {
                    files.unpacked().and_then(|folder| file::read(&folder.join(name)))
                }
                None => file::read(Path::new(path)),
            };
            let none = || Failure::usage(format!("{path} names no client to be tried"));
            let client = described.map_err(Failure::Usage)?.client.ok_or_else(none)?;
            match &client.in_container {
                None => Ok(client),
                Some(container) => Err(Failure::usage(format!(
                    "{path}: its client is the service {}, and only a client on this machine is tried; run \
                     it here: harness client check -- COMMAND",
                    container.service
                ))),
            }
        }
        (None, false) => {
            let folder = std::env::current_dir().context("finding this folder")?;
            Ok(Arc::new(Program {
                command: args.command.clone(),
                environment: BTreeMap::new(),
                folder,
                in_container: None,
            }))
        }
        (None, true) => Err(Failure::usage(
            "name a client: harness client check -- python3 client.py, or --system FILE for that of a file",
        )),
        (Some(_), false) => {
            Err(Failure::usage("--system and a command: leave one of them out, the file names a client"))
        }
    }
}

/// The bytes of a text in which `\r`, `\n` and `\x00` to `\xff` stand as they are typed.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let escaped = match rest.get(..2) {
            Some("\\r") => Some((b'\r', 2)),
            Some("\\n") => Some((b'\n', 2)),
            Some("\\x") => {
                let digits = rest.get(2..4).filter(|digits| !digits.starts_with('+'));
                digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).map(|byte| (byte, 4))
            }
            _ => None,
        };
        let taken = match escaped {
            Some((byte, taken)) => {
                bytes.push(byte);
                taken
            }
            None => {
                bytes.extend(letter.to_string().as_bytes());
                letter.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    bytes
}

fn line(finding: &Finding) -> String {
    let mark = match finding.weight {
        Weight::Good => "✓",
        Weight::Advice => "!",
        Weight::Untried | Weight::Untriable => "?",
        Weight::Fault => "✗",
    };
    format!("{mark} {}: {}\n", finding.tried, finding.seen)
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn a_greeting_is_typed_with_its_bytes_by_number() {
        assert_eq!(unescaped(r"INFO {}\r\n"), b"INFO {}\r\n");
        assert_eq!(unescaped(r"R\x00\x08\xffü"), b"R\x00\x08\xff\xc3\xbc");
        for plain in [r"\", r"\x", r"\x0", r"\xü", r"\x+1", r"\q"] {
            assert_eq!(unescaped(plain), plain.as_bytes());
        }
    }
}
