//! Programs that run a command while they hold something: `node elect`, `node lock`, `node standby`.
//!
//! The command and all that it starts is ended *before* somebody else can hold: first asked (SIGTERM), and a
//! grace later killed, at the latest when the term's certainty ends. That is done by [guardians](guardian),
//! processes between this one and the command: they do so also when this one is stopped or killed, and this
//! one does so when they are killed. The fencing token is in the command's environment, for whatever it
//! writes to.
//!
//! Exit statuses are those of the command, and those in the table of `node/RECIPES.md`.

mod child;
mod elect;
mod family;
pub mod guardian;
mod held;
mod lock;
mod reach;
mod shell;
mod signals;
mod standby;
mod waiting;
mod who;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use bytestring::ByteString;
use node_client::recipes::Layout;

pub use elect::ElectArgs;
pub use lock::LockArgs;
pub use reach::Identity;
pub use standby::StandbyArgs;

/// It was lost while the command ran.
pub(crate) const LOST: u8 = 75;

/// The wait was over.
pub(crate) const TIMED_OUT: u8 = 124;

/// This program failed.
pub(crate) const FAILED: u8 = 125;

/// What is said of a command whose guardian died.
pub(crate) const UNGUARDED: &str =
    "the process that guards the command was killed. The command was ended with all that it started";

/// How all of them reach the ensemble.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Members to connect to: host:port,host:port, and perhaps a /chroot behind. Without it ZOOKEEPER_SERVERS
    /// in the environment, or 127.0.0.1:2181
    #[arg(long, value_name = "SERVERS")]
    server: Option<String>,

    /// The session's time-out, as in 500ms or 10s: so long after this process is gone others wait. The
    /// ensemble grants what lies between its own limits, by default 4s and 40s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    session_timeout: Duration,

    /// How long the command has to end between SIGTERM and SIGKILL: at most half of the time-out that is
    /// granted. 2s where it is not said, or half of the time-out where that is less
    #[arg(long, value_name = "TIME", value_parser = duration)]
    grace: Option<Duration>,

    #[command(flatten)]
    identity: Identity,

    /// Print who has it and who waits, and run nothing. Exits with 1 where nobody has it
    #[arg(long)]
    who: bool,

    /// The command, and its arguments. It must stay in the foreground: what it leaves behind is ended
    #[arg(last = true, required_unless_present = "who", conflicts_with = "who", value_name = "COMMAND")]
    command: Vec<String>,
}

/// Whose names.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Names {
    /// As ZooKeeper's recipes have them
    Own,
    /// Curator's
    Curator,
    /// kazoo's
    Kazoo,
}

impl From<Names> for Layout {
    fn from(names: Names) -> Self {
        match names {
            Names::Own => Layout::Own,
            Names::Curator => Layout::Curator,
            Names::Kazoo => Layout::Kazoo,
        }
    }
}

/// Says something to whoever started this program. Nobody need hear it.
pub(crate) fn say(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "node: {what}");
}

/// A time as in 500ms, 10s, 2m.
fn duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let number: u64 = number.parse().map_err(|_| "write a number and ms, s or m, as in 10s".to_owned())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        _ => Err("write a number and ms, s or m, as in 10s".to_owned()),
    }
}

/// An absolute path, as znodes have them.
fn path(text: &str) -> Result<ByteString, String> {
    match node_wire::client::validate_path(text) {
        Ok(()) => Ok(text.into()),
        Err(error) => Err(format!("can't {error}")),
    }
}

/// One of the programs.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Program {
    /// Run a command while this process is the leader of an election
    Elect(ElectArgs),
    /// Run a command while this process holds a lock
    Lock(LockArgs),
    /// Run a command while this process is the active one, fencing the one before (as Hadoop's elector does)
    Standby(StandbyArgs),
}

impl Program {
    /// Runs it, and gives its exit status.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ready = child::prepare().and(runtime);
        let result = ready.map_err(anyhow::Error::from).and_then(|runtime| {
            runtime.block_on(async {
                match self {
                    Self::Elect(args) => elect::run(args).await,
                    Self::Lock(args) => lock::run(args).await,
                    Self::Standby(args) => standby::run(args).await,
                }
            })
        });
        match result {
            Ok(status) => ExitCode::from(status),
            Err(error) => {
                say(format_args!("{error:#}"));
                ExitCode::from(FAILED)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "s", "5h", "-1s", "1.5s", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
