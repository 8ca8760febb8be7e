//! What the files hold, as it is written: names and forms, before anything is made of them.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A question to a member, and what its answer must have in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// How it is asked.
    pub how: How,
    /// What must be in the answer. Nothing where any good answer will do.
    pub expect: String,
    /// The member's port that is asked, where it is not that for clients.
    pub at: Option<u16>,
}

impl Probe {
    /// All texts that may have placeholders in them.
    pub(super) fn texts(&self) -> Vec<&str> {
        let mut texts = match &self.how {
            How::Send(text) | How::Http(text) => vec![text.as_str()],
            How::Exec(words) => words.iter().map(String::as_str).collect(),
        };
        texts.push(&self.expect);
        texts
    }
}

/// How a member is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// These bytes are sent to it; nothing, where it speaks first.
    Send(String),
    /// This path is asked for over HTTP; a status of 200 to 299 is a good answer.
    Http(String),
    /// A command is run; exit status 0 is a good answer, what it prints is the answer.
    Exec(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) name: Option<String>,
    pub(super) version: Option<Words>,
    #[serde(default)]
    pub(super) variables: Vec<String>,
    pub(super) member: WrittenMember,
    pub(super) client: Option<WrittenClient>,
    #[serde(default)]
    pub(super) promises: BTreeMap<String, WrittenPromise>,
    #[serde(default)]
    pub(super) faults: BTreeMap<String, WrittenFault>,
}

/// The block of a Compose file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenHarness {
    /// The services that are broken.
    pub(super) members: Vec<String>,
    /// Those of them whose program must be process 1.
    #[serde(default)]
    pub(super) process_1: Which,
    pub(super) ports: WrittenPorts,
    pub(super) ready: WrittenProbe,
    pub(super) leader: Option<WrittenProbe>,
    pub(super) client: Option<WrittenClient>,
    #[serde(default)]
    pub(super) variables: Vec<String>,
    #[serde(default)]
    pub(super) promises: BTreeMap<String, WrittenPromise>,
    #[serde(default)]
    pub(super) faults: BTreeMap<String, WrittenFault>,
    pub(super) start_patience: Option<String>,
    pub(super) farewell: Option<String>,
    pub(super) gives_up_after: Option<String>,
    pub(super) interval: Option<String>,
    pub(super) comes_back: Option<WrittenPromise>,
    pub(super) comes_back_within: Option<String>,
}

/// Some of the members.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "true, false, or a list of members")]
pub(super) enum Which {
    /// All of them, or none.
    All(bool),
    /// These.
    These(Vec<String>),
}

impl Default for Which {
    fn default() -> Self {
        Self::All(false)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPorts {
    pub(super) client: u16,
    #[serde(default)]
    pub(super) peers: Vec<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenMember {
    pub(super) command: Words,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) peers: u16,
    pub(super) clients_at_peer: Option<u16>,
    pub(super) ready: WrittenProbe,
    pub(super) leader: Option<WrittenProbe>,
    pub(super) start_patience: Option<String>,
    pub(super) farewell: Option<String>,
    pub(super) gives_up_after: Option<String>,
    pub(super) interval: Option<String>,
    pub(super) comes_back: Option<WrittenPromise>,
    pub(super) comes_back_within: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenClient {
    pub(super) command: Words,
    /// The service in whose container it runs.
    pub(super) service: Option<String>,
    /// What its hello will say, where nobody can hear it before.
    #[serde(default)]
    pub(super) functions: Vec<String>,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
}

/// A command: words, or a line for the shell.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Words {
    Line(String),
    List(Vec<String>),
}

impl Words {
    pub(super) fn command(self, key: &str) -> Result<Vec<String>, String> {
        let words = match self {
            Self::Line(line) if line.trim().is_empty() => Vec::new(),
            Self::Line(line) => vec!["sh".to_owned(), "-c".to_owned(), line],
            Self::List(words) => words,
        };
        match words.first() {
            Some(program) if !program.is_empty() => Ok(words),
            _ => Err(format!("{key}: name a program")),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenProbe {
    send: Option<String>,
    http: Option<String>,
    exec: Option<Words>,
    #[serde(default)]
    expect: String,
    /// The port that is asked, where it is not that for clients.
    pub(super) at: Option<u16>,
}

impl WrittenProbe {
    pub(super) fn probe(self, key: &str) -> Result<Probe, String> {
        let Self { send, http, exec, expect, at } = self;
        match at {
            Some(0) => return Err(format!("{key}: at = 0: write a port from 1 to 65535")),
            Some(_) if exec.is_some() => {
                return Err(format!("{key}: at is for send and http; a command asks where it likes"));
            }
            Some(_) | None => {}
        }
        let how = match (send, http, exec) {
            (send, None, None) if !expect.is_empty() => How::Send(send.unwrap_or_default()),
            (Some(_) | None, None, None) => {
                return Err(format!(
                    "{key}: a port that accepts proves nothing, because the kernel accepts for a member that \
                     is stopped; write what it must answer: {{ send = \"PING\\r\\n\", expect = \"PONG\" }}, \
                     {{ http = \"/health\" }}, or {{ exec = [\"...\"] }}"
                ));
            }
            (None, Some(path), None) if path.starts_with('/') => How::Http(path),
            (None, Some(path), None) => return Err(format!("{key}: http = \"{path}\": begin with a /")),
            (None, None, Some(words)) => How::Exec(words.command(key)?),
            _ => return Err(format!("{key}: write one of send, http and exec")),
        };
        Ok(Probe { how, expect, at })
    }
}

/// A fault of the user's own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenFault {
    pub(super) exec: Option<Words>,
    pub(super) heal: Option<Words>,
    pub(super) seen: Option<Words>,
    pub(super) aim: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum WrittenPromise {
    Alone(String),
    #[serde(rename_all = "snake_case")]
    WithSource {
        promise: String,
        source: String,
    },
}
