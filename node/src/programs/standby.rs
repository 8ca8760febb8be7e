//! `node standby`: a command that runs on the active one of several processes.

use std::time::{Duration, Instant};

use bytes::Bytes;
use bytestring::ByteString;
use node_client::recipes::Token;
use node_client::{Keeper, Running};
use node_recipes::line::Left;
use node_recipes::standby::{ActiveStandby, Call, Options, Told};
use node_wire::ids::SessionId;
use tokio::process::Command;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::child::Child;
use super::signals::Signals;
use super::{Common, FAILED, duration, path};

/// Runs the command while this process is the active one. The one before is fenced first.
///
/// It stands beside Hadoop's ActiveStandbyElector: the same znodes, the same breadcrumb. The command finds
/// TOKEN (the fencing token) and BASE in its environment. It is ended when this process must stand down. This
/// program exits when the command exits by itself.
#[derive(Clone, Debug, clap::Args)]
pub struct StandbyArgs {
    /// The znode below which the lock and the breadcrumb are. It is made where it is not there
    #[arg(value_parser = path)]
    base: ByteString,

    /// What tells the next active one whom to fence; --fence finds it in FENCE_DATA
    #[arg(long, value_name = "DATA", required = true)]
    data: String,

    /// A shell command that makes sure that the process named in FENCE_DATA does nothing any more. Only where
    /// it exits with 0 this process becomes active
    #[arg(long, value_name = "SHELL COMMAND")]
    fence: String,

    /// A shell command that says whether this process is fit to be active: it exits with 0
    #[arg(long, value_name = "SHELL COMMAND")]
    health: Option<String>,

    /// How often that is asked
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    health_interval: Duration,

    #[command(flatten)]
    common: Common,
}

/// What comes next.
enum Next {
    Told(Option<Told>),
    Exited(u8),
    Signal(u8),
    Move,
    Health,
}

/// Why it left the contest.
enum Leaving {
    /// For good, with this exit status.
    Exit(u8),
    /// Until it is fit again.
    Unfit,
}

pub(super) async fn run(args: &StandbyArgs) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let keeper = tokio::select! {
        keeper = args.common.connect() => keeper?,
        status = signals.next() => return Ok(status),
    };
    keeper.create_all(&args.base).await?;
    let status = loop {
        if let Some(status) = wait_until_fit(args, &mut signals).await {
            break status;
        }
        let options = Options { notice: args.common.grace(), ..Options::default() };
        let data = Bytes::copy_from_slice(args.data.as_bytes());
        let running = keeper.drive(ActiveStandby::join(args.base.clone(), data, options));
        let mut process = Process {
            args,
            keeper: keeper.clone(),
            running,
            child: None,
            session: None,
            signals: &mut signals,
        };
        match process.contend().await? {
            Leaving::Exit(status) => break status,
            Leaving::Unfit => {}
        }
    };
    tokio::select! {
        _ = keeper.close() => {}
        _ = signals.next() => {}
    }
    Ok(status)
}

async fn shell(command: &str, environment: &[(&str, String)]) -> bool {
    let environment = environment.iter().map(|(name, value)| (name, value));
    let status =
        Command::new("sh").arg("-c").arg(command).envs(environment).kill_on_drop(true).status().await;
    status.is_ok_and(|status| status.success())
}

/// Gives an exit status where a signal came first.
async fn wait_until_fit(args: &StandbyArgs, signals: &mut Signals) -> Option<u8> {
    let health = args.health.as_ref()?;
    let mut looks = interval(args.health_interval.max(Duration::from_millis(10)));
    loop {
        tokio::select! {
            fit = async { looks.tick().await; shell(health, &[]).await } => if fit { return None },
            status = signals.next() => return Some(status),
        }
    }
}

struct Process<'a> {
    args: &'a StandbyArgs,
    keeper: Keeper,
    running: Running<ActiveStandby>,
    child: Option<Child>,
    /// The session in which the command was started.
    session: Option<SessionId>,
    signals: &'a mut Signals,
}

impl Process<'_> {
    async fn contend(&mut self) -> anyhow::Result<Leaving> {
        let mut moves = interval(Duration::from_millis(50));
        let mut looks = interval(self.args.health_interval.max(Duration::from_millis(10)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.next(&mut moves, &mut looks).await {
                Next::Told(Some(Told::Over(why))) => return self.over(why),
                Next::Told(Some(told)) => self.take(told).await,
                Next::Told(None) => anyhow::bail!("the session was closed"),
                Next::Exited(status) => {
                    self.child = None;
                    return Ok(Leaving::Exit(self.quit(status).await));
                }
                Next::Signal(status) => {
                    self.end().await;
                    return Ok(Leaving::Exit(self.quit(status).await));
                }
                Next::Move => self.extend().await,
                Next::Health => {
                    if let Some(health) = self.args.health.clone()
                        && !shell(&health, &[]).await
                    {
                        tracing::warn!("this process is not fit: it leaves the contest");
                        self.end().await;
                        self.quit(0).await;
                        return Ok(Leaving::Unfit);
                    }
                }
            }
        }
    }

    async fn next(&mut self, moves: &mut Interval, looks: &mut Interval) -> Next {
        let exits = async {
            match &mut self.child {
                Some(child) => child.wait().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            told = self.running.next() => Next::Told(told),
            status = exits => Next::Exited(status),
            status = self.signals.next() => Next::Signal(status),
            _ = moves.tick() => Next::Move,
            _ = looks.tick(), if self.args.health.is_some() => Next::Health,
        }
    }

    async fn take(&mut self, told: Told) {
        match told {
            Told::Fence { token, data, .. } => {
                tracing::info!(data = %String::from_utf8_lossy(&data), "fencing the one that was active");
                let environment = [
                    ("FENCE_DATA", String::from_utf8_lossy(&data).into_owned()),
                    ("TOKEN", token.to_string()),
                ];
                let ok = shell(&self.args.fence, &environment).await;
                self.running.call(Call::Fenced { token, ok });
            }
            Told::BecomeActive(token) => {
                let ok = self.start(token);
                self.running.call(Call::BecameActive { token, ok });
            }
            Told::Resumed(_) => {}
            Told::Standby { active } => {
                tracing::info!(active = %String::from_utf8_lossy(&active), "standing by");
            }
            Told::Neutral => tracing::warn!("the ensemble is not reached"),
            Told::StandDown { why, .. } => {
                tracing::warn!(?why, "standing down: ending the command");
                self.end().await;
            }
            Told::Over(_) => {}
        }
    }

    fn start(&mut self, token: Token) -> bool {
        let grace = self.args.common.grace();
        self.session = self.keeper.credentials().map(|credentials| credentials.id);
        let until = self.certain_until();
        let environment = [("TOKEN", token.to_string()), ("BASE", self.args.base.to_string())];
        let started = until.map(|until| Child::start(&self.args.common.command, &environment, until, grace));
        match started {
            Some(Ok(child)) => {
                tracing::info!(%token, "active");
                self.child = Some(child);
            }
            Some(Err(error)) => tracing::error!("failed to start the command: {error}"),
            None => {}
        }
        self.child.is_some()
    }

    /// Until when the command may run: the session in which it was started certainly lives so long.
    fn certain_until(&self) -> Option<Instant> {
        let until = self.keeper.certain_until_of(self.session?)?;
        until.checked_sub(self.args.common.grace())
    }

    async fn extend(&mut self) {
        let until = self.certain_until();
        if let (Some(child), Some(until)) = (&mut self.child, until) {
            child.extend(until).await;
        }
    }

    /// Ends the command, and waits until it is gone.
    async fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.end().await;
            child.wait().await;
        }
    }

    /// Leaves the contest. The command is gone, so nobody need fence it.
    async fn quit(&mut self, status: u8) -> u8 {
        self.running.call(Call::Quit { need_fence: false });
        loop {
            tokio::select! {
                told = self.running.next() => match told {
                    Some(Told::Over(_)) | None => return status,
                    Some(_) => {}
                },
                other = self.signals.next() => return other,
            }
        }
    }

    fn over(&self, why: Left) -> anyhow::Result<Leaving> {
        eprintln!("node: the contest is over: {why}");
        Ok(Leaving::Exit(FAILED))
    }
}
