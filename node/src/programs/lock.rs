//! `node lock`: a command that runs while a lock is held.

use std::time::Duration;

use bytestring::ByteString;
use node_client::OpError;
use node_client::recipes::{Contention, Guard, Intent, Lock, LockError, Standing};

use super::held::{self, Ended};
use super::reach::{self, Reached};
use super::signals::Signals;
use super::{Common, FAILED, LOST, Names, TIMED_OUT, UNGUARDED, duration, path, say, waiting, who};

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

    /// What others see of this contender
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,

    /// Whose names znodes get, to stand beside programs over another library
    #[arg(long, value_name = "LIBRARY", value_enum, default_value_t = Names::Own)]
    layout: Names,

    #[command(flatten)]
    common: Common,
}

/// `--wait 0s` asks once, which takes some answers.
const AT_ONCE: Duration = Duration::from_millis(500);

pub(super) async fn run(args: &LockArgs) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let reached = tokio::select! {
        reached = args.common.connect() => reached?,
        status = signals.next() => return Ok(status),
    };
    let status = serve(args, &reached, &mut signals).await;
    tokio::select! {
        _ = reached.keeper.close() => {}
        _ = signals.next() => {}
    }
    status
}

async fn open(args: &LockArgs, reached: &Reached) -> Result<Lock, OpError> {
    let (keeper, resource) = (&reached.keeper, args.resource.clone());
    match args.places {
        Some(places) => Lock::semaphore(keeper, resource, usize::from(places)).await,
        None if args.shared => Lock::read(keeper, resource).await,
        None => Lock::write(keeper, resource).await,
    }
}

async fn serve(args: &LockArgs, reached: &Reached, signals: &mut Signals) -> anyhow::Result<u8> {
    if args.common.who {
        return show(args, reached).await;
    }
    let lock = match open(args, reached).await {
        Ok(lock) => lock,
        Err(error) => return Err(reached.explained(error, &args.resource).await),
    };
    reached.warn_of_open(&args.common, &args.resource).await;
    let lock = lock.with_layout(args.layout.into()).with_notice(reached.grace).with_data(args.name.clone());
    let intent = if args.shared { Intent::Read } else { Intent::Write };
    let _looks = waiting::look_out(&reached.keeper, &args.resource, args.layout.into(), intent);
    let contention = lock.stand();
    let _tells = waiting::tell(&reached.keeper, contention.behind());
    let guard = tokio::select! {
        guard = acquire(contention, args.wait) => guard,
        status = signals.next() => return Ok(status),
    };
    let guard = match guard {
        Ok(guard) => guard,
        Err(LockError::TimedOut) => {
            say(format_args!("others held the lock for as long as --wait says"));
            return Ok(TIMED_OUT);
        }
        Err(LockError::Over(why)) => {
            say(format_args!("the place in the line is lost: {}", reach::left(why, &args.resource)));
            return Ok(FAILED);
        }
    };
    let environment = [
        ("TOKEN", guard.token().to_string()),
        ("RESOURCE", args.resource.to_string()),
        ("ZNODE", guard.path().to_owned()),
    ];
    let ended = held::run(&args.common.command, &environment, &guard, reached.grace, signals).await?;
    match ended {
        Ended::Lost(why) => say(format_args!("the lock is lost: {why}. The command was ended")),
        Ended::Unguarded => say(format_args!("{UNGUARDED}: releasing the lock")),
        Ended::Itself(_) | Ended::Signalled(_) => {}
    }
    tokio::select! {
        _ = guard.release() => {}
        _ = signals.next() => {}
    }
    Ok(match ended {
        Ended::Itself(status) | Ended::Signalled(status) => status,
        Ended::Lost(_) | Ended::Unguarded => LOST,
    })
}

async fn acquire(contention: Contention, wait: Option<Duration>) -> Result<Guard, LockError> {
    match wait {
        Some(wait) => tokio::time::timeout(wait.max(AT_ONCE), contention.held())
            .await
            .unwrap_or(Err(LockError::TimedOut)),
        None => contention.held().await,
    }
}

/// Prints who holds the lock and who waits.
async fn show(args: &LockArgs, reached: &Reached) -> anyhow::Result<u8> {
    match Lock::contenders(&reached.keeper, &args.resource).await {
        Ok(standing) => who::line(&standing, "holds", |at| holds(&standing, at, args.places)),
        Err(error) => Err(reached.of_recipe(error, &args.resource).await),
    }
}

/// Whether the one at this place holds: one, or so many as there are places, or all who read and came before
/// the first who does not.
fn holds(standing: &[Standing], at: usize, places: Option<u16>) -> bool {
    match places {
        Some(places) => at < usize::from(places),
        None => at == 0 || standing[..=at].iter().all(|one| one.reads),
    }
}
