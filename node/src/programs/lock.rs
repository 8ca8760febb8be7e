//! `node lock`: a command that runs while a lock is held.

use std::time::Duration;

use bytestring::ByteString;
use node_client::Keeper;
use node_client::recipes::{Guard, Lock, LockError};

use super::held::{self, Ended};
use super::signals::Signals;
use super::{Common, FAILED, LOST, TIMED_OUT, duration, path};

/// Waits for a lock, runs the command, and releases the lock.
///
/// The command finds TOKEN (the fencing token), RESOURCE and ZNODE in its environment. If the lock is lost
/// the command is ended, and this program exits with 75.
#[derive(Clone, Debug, clap::Args)]
pub struct LockArgs {
    /// The znode below which those stand who want the lock. It is made where it is not there
    #[arg(value_parser = path)]
    resource: ByteString,

    /// How long to wait for it; then exit with 124. Without end where it is not said; 0s does not wait
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,

    /// Hold it with others that say the same, but not with those that do not
    #[arg(long, conflicts_with = "places")]
    shared: bool,

    /// How many hold it at a time. All must say the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    places: Option<u16>,

    #[command(flatten)]
    common: Common,
}

/// `--wait 0s` asks once, which takes some answers.
const AT_ONCE: Duration = Duration::from_millis(500);

pub(super) async fn run(args: &LockArgs) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let keeper = tokio::select! {
        keeper = args.common.connect() => keeper?,
        status = signals.next() => return Ok(status),
    };
    let status = serve(args, &keeper, &mut signals).await;
    tokio::select! {
        _ = keeper.close() => {}
        _ = signals.next() => {}
    }
    status
}

async fn serve(args: &LockArgs, keeper: &Keeper, signals: &mut Signals) -> anyhow::Result<u8> {
    let resource = args.resource.clone();
    let lock = match args.places {
        Some(places) => Lock::semaphore(keeper, resource, usize::from(places)).await?,
        None if args.shared => Lock::read(keeper, resource).await?,
        None => Lock::write(keeper, resource).await?,
    };
    let lock = lock.with_layout(args.common.layout.into()).with_notice(args.common.grace());
    let guard = tokio::select! {
        guard = acquire(&lock, args.wait) => guard,
        status = signals.next() => return Ok(status),
    };
    let guard = match guard {
        Ok(guard) => guard,
        Err(LockError::TimedOut) => return Ok(TIMED_OUT),
        Err(error) => {
            eprintln!("node: {error}");
            return Ok(FAILED);
        }
    };
    let environment = [
        ("TOKEN", guard.token().to_string()),
        ("RESOURCE", args.resource.to_string()),
        ("ZNODE", guard.path().to_owned()),
    ];
    let command = &args.common.command;
    let ended = held::run(command, &environment, &guard, args.common.grace(), signals).await?;
    tokio::select! {
        _ = guard.release() => {}
        _ = signals.next() => {}
    }
    Ok(match ended {
        Ended::Itself(status) | Ended::Told(status) => status,
        Ended::Lost => LOST,
    })
}

async fn acquire(lock: &Lock, wait: Option<Duration>) -> Result<Guard, LockError> {
    match wait {
        Some(wait) => lock.acquire_within(wait.max(AT_ONCE)).await,
        None => lock.acquire().await,
    }
}
