//! Placeholders in commands: `{client}`, `{data}`, `{n1.dial.0}`, `{all:n{id}=http://{dial.0}}`.
//!
//! | placeholder | what stands there |
//! |---|---|
//! | `{id}` | the member's number, from 1 |
//! | `{data}` | a folder of its own, kept from one start to the next |
//! | `{folder}` | the folder of the file that describes the system |
//! | `{client}` | where clients find the member: `127.0.0.1:10257` |
//! | `{listen.0}`, `{listen.1}`, ... | where it listens for other members, on its first, second, ... port |
//! | `{dial.0}`, `{dial.1}`, ... | where other members must dial it to reach that port |
//! | `{n1.dial.0}`, `{n1.client}`, ... | the same of another member |
//! | `{all:...}`, `{others:...}` | the text for each member, or each other one, with commas between |
//!
//! An address has parts: `{client.host}`, `{client.port}`, `{dial.0.port}`. Two braces are one: `{{` and
//! `}}`.

use std::net::SocketAddr;

/// What placeholders stand for.
pub trait Places {
    /// The members' numbers.
    fn members(&self) -> Vec<u64>;
    /// Where clients find a member.
    fn client(&self, member: u64) -> SocketAddr;
    /// Where it listens on that port for others.
    fn listen(&self, member: u64, port: u16) -> Option<SocketAddr>;
    /// Where others dial it.
    fn dial(&self, member: u64, port: u16) -> Option<SocketAddr>;
    /// A word by itself: `data`, `folder`.
    fn word(&self, member: u64, word: &str) -> Option<String>;
}

/// The text with its placeholders filled in for a member.
///
/// # Errors
/// The placeholder that nobody knows.
pub fn filled(text: &str, member: u64, places: &dyn Places) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let (brace, behind) = rest[at..].split_at(1);
        if behind.starts_with(brace) {
            out.push_str(brace);
            rest = &behind[1..];
        } else if brace == "}" {
            return Err(format!("`{text}`: a brace closes that none opened; a brace itself is `}}}}`"));
        } else {
            let end = closing(behind)
                .ok_or_else(|| format!("`{text}`: a brace is never closed; a brace itself is `{{{{`"))?;
            out.push_str(&meaning(&behind[..end], member, places)?);
            rest = &behind[end + 1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Where the brace closes that was open before this text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn meaning(name: &str, member: u64, places: &dyn Places) -> Result<String, String> {
    if let Some((who @ ("all" | "others"), text)) = name.split_once(':') {
        let members = places.members().into_iter().filter(|of| who == "all" || *of != member);
        let texts: Result<Vec<String>, String> = members.map(|of| filled(text, of, places)).collect();
        return Ok(texts?.join(","));
    }
    let unknown = || format!("nobody knows the placeholder {{{name}}}");
    let mut words = name.split('.').peekable();
    let of = words.peek().and_then(|word| word.strip_prefix('n')?.parse::<u64>().ok());
    if of.is_some() {
        words.next();
    }
    let of = of.unwrap_or(member);
    if !places.members().contains(&of) {
        return Err(format!("{{{name}}}: there is no member n{of}; raise --nodes"));
    }
    let first = words.next().ok_or_else(unknown)?;
    let mut port = || words.next().and_then(|word| word.parse::<u16>().ok());
    let address = match first {
        "client" => Some(places.client(of)),
        "listen" => port().and_then(|port| places.listen(of, port)),
        "dial" => port().and_then(|port| places.dial(of, port)),
        word if words.peek().is_none() => {
            return if word == "id" { Ok(of.to_string()) } else { places.word(of, word).ok_or_else(unknown) };
        }
        _ => None,
    };
    let address = address.ok_or_else(unknown)?;
    match (words.next(), words.next()) {
        (None, _) => Ok(address.to_string()),
        (Some("host"), None) => Ok(address.ip().to_string()),
        (Some("port"), None) => Ok(address.port().to_string()),
        _ => Err(unknown()),
    }
}

/// What placeholders stand for in a question: the member that is asked, and nobody else.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    /// Its number.
    pub(super) id: u64,
    /// Where clients find it.
    pub(super) member: SocketAddr,
    /// The folder of the file.
    pub(super) folder: String,
}

impl Outside {
    /// Somebody, to see whether a text makes sense.
    pub(super) fn first() -> Self {
        Self { id: 1, member: SocketAddr::from(([127, 0, 0, 1], 1)), folder: String::new() }
    }

    /// What a command within a member's container knows. The folder of the file is not there.
    pub(super) fn within(id: u64, client_port: u16) -> Self {
        Self { id, member: SocketAddr::from(([127, 0, 0, 1], client_port)), folder: String::new() }
    }
}

impl Places for Outside {
    fn members(&self) -> Vec<u64> {
        vec![self.id]
    }

    fn client(&self, _: u64) -> SocketAddr {
        self.member
    }

    fn listen(&self, _: u64, _: u16) -> Option<SocketAddr> {
        None
    }

    fn dial(&self, _: u64, _: u16) -> Option<SocketAddr> {
        None
    }

    fn word(&self, _: u64, word: &str) -> Option<String> {
        (word == "folder").then(|| self.folder.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Three;

    impl Places for Three {
        fn members(&self) -> Vec<u64> {
            vec![1, 2, 3]
        }
        fn client(&self, member: u64) -> SocketAddr {
            SocketAddr::from(([127, 0, 0, 1], 100 + u16::try_from(member).unwrap()))
        }
        fn listen(&self, member: u64, port: u16) -> Option<SocketAddr> {
            let at = 200 + 10 * port + u16::try_from(member).unwrap();
            (port < 2).then(|| SocketAddr::from(([127, 0, 0, 1], at)))
        }
        fn dial(&self, member: u64, port: u16) -> Option<SocketAddr> {
            self.listen(member, port).map(|at| SocketAddr::new(at.ip(), at.port() + 100))
        }
        fn word(&self, member: u64, word: &str) -> Option<String> {
            (word == "data").then(|| format!("/data/{member}"))
        }
    }

    #[test]
    fn placeholders_are_filled_in() {
        for (text, meant) in [
            ("--port={client.port} {data}", "--port=102 /data/2"),
            ("{n1.dial.0.host} {n1.dial.0.port}", "127.0.0.1 301"),
            ("{listen.1}", "127.0.0.1:212"),
            (
                "{all:n{id}=http://{dial.0}}",
                "n1=http://127.0.0.1:301,n2=http://127.0.0.1:302,n3=http://127.0.0.1:303",
            ),
            ("{others:{client.port}}", "101,103"),
            ("{{\"a\": {id}}}", "{\"a\": 2}"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(filled(text, 2, &Three).as_deref(), Ok(meant), "{text}");
        }
    }

    #[test]
    fn what_nobody_knows_is_refused_by_name() {
        for (text, word) in [
            ("{clients}", "{clients}"),
            ("{listen.7}", "{listen.7}"),
            ("{listen}", "{listen}"),
            ("{n4.client}", "raise --nodes"),
            ("{client.name}", "{client.name}"),
            ("{client", "never closed"),
            ("a}", "that none opened"),
            ("{}", "{}"),
            ("{dial.0.port.x}", "{dial.0.port.x}"),
        ] {
            let error = filled(text, 2, &Three).expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
