//! `node --ruok` and `node --serving`: is a member well? For health checks in an image that holds nothing
//! else.
//!
//! The two questions are different on purpose. A process that answers `ruok` lives; to restart it helps
//! nobody. One that answers `srvr` with its mode has a leader and a quorum behind it, so clients can work. A
//! check that makes others wait for a member (Compose's `service_healthy`, a readiness probe) wants the
//! second; one that kills what fails it (a liveness probe) wants the first, or it would kill the minority of
//! every partition.
//!
//! Apache ZooKeeper's members can be asked the same, where their whitelist has the word.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::address::{HostPort, UNSPECIFIED};
use crate::cli::Args;
use crate::config::{ConfigError, DEFAULT_CLIENT_PORT, NodeConfig};
use crate::environment::Environment;
use crate::tls::Guard;

/// Everything together: name, connection and answer. A member that is slower than this serves nobody well.
const DEADLINE: Duration = Duration::from_secs(2);

/// No answer to these words is longer.
const MAX_ANSWER: u64 = 64 << 10;

/// The modes of a member that clients can write through.
const SERVING: [&str; 4] = ["leader", "follower", "observer", "standalone"];

/// Flags that ask a member instead of being one.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Ask a member, exit with 0 for yes and 1 for no")]
pub struct ProbeArgs {
    /// Does it live? Without an address the one that these flags and variables would listen on
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, conflicts_with = "serving")]
    pub ruok: Option<Option<HostPort>>,

    /// Does it serve clients: has it a leader and a quorum?
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1)]
    pub serving: Option<Option<HostPort>>,
}

/// What is asked, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    question: Question,
    target: HostPort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Lives,
    Serves,
}

/// Why the answer is no. Messages fit after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// There is no such configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system has no port to ask.
    #[error("find a port to ask: the member chooses one itself, so give HOST:PORT")]
    AnyPort,
    /// Nobody answered, or nobody in time.
    #[error("ask {target} for `{word}`: {source}")]
    Socket {
        /// Who was asked.
        target: HostPort,
        /// For what.
        word: &'static str,
        /// What happened instead.
        source: io::Error,
    },
    /// The answer was another one.
    #[error("find {target} {wanted}, it said: {answer}")]
    Otherwise {
        /// Who was asked.
        target: HostPort,
        /// What it should be.
        wanted: &'static str,
        /// Its answer's first line.
        answer: String,
    },
}

impl Probe {
    /// The question that the flags ask, if they ask one.
    ///
    /// # Errors
    /// When there is no address to ask.
    pub fn from_args(
        flags: &ProbeArgs,
        args: &Args,
        environment: &Environment,
    ) -> Result<Option<Self>, ProbeError> {
        let (question, given) = match (&flags.ruok, &flags.serving) {
            (Some(given), _) => (Question::Lives, given),
            (None, Some(given)) => (Question::Serves, given),
            (None, None) => return Ok(None),
        };
        let target = match given {
            Some(target) => target.clone(),
            None => client_addr(args, environment)?,
        };
        if target.port == 0 {
            return Err(ProbeError::AnyPort);
        }
        Ok(Some(Self { question, target: dialled(target) }))
    }

    /// Asks, and gives the answer in a word.
    ///
    /// # Errors
    /// When the answer is no or does not come in time.
    pub fn ask(&self) -> Result<String, ProbeError> {
        let word = match self.question {
            Question::Lives => "ruok",
            Question::Serves => "srvr",
        };
        let failed = |source| ProbeError::Socket { target: self.target.clone(), word, source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let answer = runtime
            .block_on(async { tokio::time::timeout(DEADLINE, answer(&self.target, word)).await })
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(failed);
        // A name server that is silent must not hold the process.
        runtime.shutdown_background();
        let answer = answer?;
        let (good, wanted) = match self.question {
            Question::Lives => ((answer == "imok").then_some("imok"), "alive"),
            Question::Serves => (mode(&answer), "serving"),
        };
        good.map(str::to_owned).ok_or_else(|| ProbeError::Otherwise {
            target: self.target.clone(),
            wanted,
            answer: answer.lines().next().unwrap_or("nothing").to_owned(),
        })
    }
}

/// Where the member listens that these settings would start.
fn client_addr(args: &Args, environment: &Environment) -> Result<HostPort, ConfigError> {
    match NodeConfig::from_args_in(args, environment.clone()) {
        Ok(config) if config.security.guard == Guard::Secure => Err(ConfigError::Impossible(
            "a question to a member that serves clients with TLS alone: add clientPort, with \
             clientPortAddress=127.0.0.1 where nobody else may come"
                .to_owned(),
        )),
        Ok(config) => Ok(config.client_addr),
        // The member may have been started with flags that a health check does not see.
        Err(ConfigError::Missing(_)) => {
            Ok(args.client_addr.clone().unwrap_or_else(|| HostPort::new(UNSPECIFIED, DEFAULT_CLIENT_PORT)))
        }
        Err(error) => Err(error),
    }
}

/// Whoever listens on every interface is asked on the loopback.
fn dialled(target: HostPort) -> HostPort {
    let host = match target.host.parse() {
        Ok(IpAddr::V4(address)) if address.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        Ok(IpAddr::V6(address)) if address.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
        Ok(_) | Err(_) => target.host,
    };
    HostPort { host, ..target }
}

async fn answer(target: &HostPort, word: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect((target.host.as_str(), target.port)).await?;
    stream.write_all(word.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The mode in an answer to `srvr`, when it is one that serves.
fn mode(answer: &str) -> Option<&str> {
    let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "))?.trim();
    SERVING.contains(&mode).then_some(mode)
}
