//! `node standby`: a command that runs on the active one of several processes.

use std::time::{Duration, Instant};

use bytes::Bytes;
use bytestring::ByteString;
use node_client::Running;
use node_client::recipes::Token;
use node_recipes::line::Left;
use node_recipes::standby::{ActiveStandby, Call, Options, Told};
use node_wire::ids::SessionId;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::child::{Child, Exit};
use super::reach::{self, Reached};
use super::shell::Shell;
use super::signals::Signals;
use super::who::field;
use super::{Common, FAILED, LOST, UNGUARDED, duration, held, path, say, who};

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

    /// What tells the next active one whom to fence; --fence finds it in FENCE_DATA. No two processes may say
    /// the same: one that finds its own data does not fence
    #[arg(long, value_name = "DATA", required_unless_present = "who")]
    data: Option<String>,

    /// A shell command that makes sure that the process named in FENCE_DATA does nothing any more. Only where
    /// it exits with 0 in time this process becomes active
    #[arg(long, value_name = "SHELL COMMAND", required_unless_present = "who")]
    fence: Option<String>,

    /// How long the fence may take. Then it is ended, counts as failed, and the lock is given up for a moment
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    fence_timeout: Duration,

    /// A shell command that says whether this process is fit to be active: it exits with 0 in time
    #[arg(long, value_name = "SHELL COMMAND")]
    health: Option<String>,

    /// How long it rests between two answers to that
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    health_interval: Duration,

    /// How long an answer may take. Then the health command is ended, and this process is not fit
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    health_timeout: Duration,

    #[command(flatten)]
    common: Common,
}

impl StandbyArgs {
    fn data(&self) -> &str {
        self.data.as_deref().unwrap_or_default()
    }

    fn looks(&self) -> Interval {
        let mut looks = interval(self.health_interval.max(Duration::from_millis(10)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks
    }

    /// Begins to ask whether this process is fit.
    fn ask_health(&self) -> Option<Shell> {
        let health = self.health.as_ref()?;
        Some(Shell::start("health", health, &[], self.health_timeout, Duration::ZERO))
    }

    fn options(&self, reached: &Reached) -> Options {
        // The program ends a fence in time itself, and then says that it failed.
        let fence_within = self.fence_timeout + reached.grace + Duration::from_secs(5);
        Options { notice: reached.grace, fence_within, ..Options::default() }
    }
}

/// What comes next.
enum Next {
    Told(Option<Told>),
    Exited(Exit),
    Signal(u8),
    Move,
    AskHealth,
    Health(bool),
    Fenced(bool),
}

/// Why it left the contest.
enum Leaving {
    /// For good, with this exit status.
    Exit(u8),
    /// To join again when it is fit.
    Rejoin,
}

pub(super) async fn run(args: &StandbyArgs) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let reached = tokio::select! {
        reached = args.common.connect() => reached?,
        status = signals.next() => return Ok(status),
    };
    let status = match args.common.who {
        true => who::standby(&reached, &args.base).await,
        false => contend(args, &reached, &mut signals).await,
    };
    tokio::select! {
        _ = reached.keeper.close() => {}
        _ = signals.next() => {}
    }
    status
}

async fn contend(args: &StandbyArgs, reached: &Reached, signals: &mut Signals) -> anyhow::Result<u8> {
    reached.make(&args.base).await?;
    reached.warn_of_open(&args.common, &args.base).await;
    loop {
        if let Some(status) = wait_until_fit(args, signals).await {
            return Ok(status);
        }
        let data = Bytes::copy_from_slice(args.data().as_bytes());
        let join = ActiveStandby::join(args.base.clone(), data, args.options(reached));
        let mut process = Process {
            args,
            reached,
            running: reached.keeper.drive(join),
            child: None,
            health: None,
            fence: None,
            session: None,
            signals,
        };
        match process.contend().await? {
            Leaving::Exit(status) => return Ok(status),
            Leaving::Rejoin => {}
        }
    }
}

/// Gives an exit status where a signal came first.
async fn wait_until_fit(args: &StandbyArgs, signals: &mut Signals) -> Option<u8> {
    args.health.as_ref()?;
    let mut looks = args.looks();
    loop {
        let fit = async {
            looks.tick().await;
            match args.ask_health() {
                Some(mut shell) => shell.succeeds().await,
                None => true,
            }
        };
        tokio::select! {
            fit = fit => if fit { return None },
            status = signals.next() => return Some(status),
        }
    }
}

struct Process<'a> {
    args: &'a StandbyArgs,
    reached: &'a Reached,
    running: Running<ActiveStandby>,
    child: Option<Child>,
    /// The health command, while it runs.
    health: Option<Shell>,
    /// The fence, while it runs, and the term that it is for.
    fence: Option<(Token, Shell)>,
    /// The session in which the command was started.
    session: Option<SessionId>,
    signals: &'a mut Signals,
}

impl Process<'_> {
    async fn contend(&mut self) -> anyhow::Result<Leaving> {
        let mut moves = interval(Duration::from_millis(50));
        let mut looks = self.args.looks();
        loop {
            match self.next(&mut moves, &mut looks).await {
                Next::Told(Some(Told::Over(why))) => return self.over(why).await,
                Next::Told(Some(told)) => {
                    if let Some(status) = self.take(told).await {
                        return Ok(Leaving::Exit(self.quit(status, false).await));
                    }
                }
                Next::Told(None) => anyhow::bail!("the session was closed"),
                Next::Exited(Exit::Status(status)) => {
                    self.child = None;
                    if self.certain_until().is_none_or(|until| until <= Instant::now()) {
                        say(format_args!("the command was ended in time, while this process did not run"));
                        let left = self.quit(0, false).await;
                        return Ok(if left == 0 { Leaving::Rejoin } else { Leaving::Exit(left) });
                    }
                    return Ok(Leaving::Exit(self.quit(status, false).await));
                }
                Next::Exited(Exit::Unguarded) => {
                    self.child = None;
                    say(format_args!("{UNGUARDED}: leaving the contest, and the next one fences"));
                    return Ok(Leaving::Exit(self.quit(LOST, true).await));
                }
                Next::Signal(status) => {
                    self.end().await;
                    return Ok(Leaving::Exit(self.quit(status, false).await));
                }
                Next::Move => self.extend(),
                Next::AskHealth => self.health = self.args.ask_health(),
                Next::Health(true) => self.health = None,
                Next::Health(false) => {
                    say(format_args!("this process is not fit: it leaves the contest until it is"));
                    let signal = self.end().await;
                    let left = self.quit(signal.unwrap_or(0), false).await;
                    return Ok(if left == 0 { Leaving::Rejoin } else { Leaving::Exit(left) });
                }
                Next::Fenced(ok) => {
                    if let Some((token, _)) = self.fence.take() {
                        self.running.call(Call::Fenced { token, ok });
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
        let fenced = async {
            match &mut self.fence {
                Some((_, fence)) => fence.succeeds().await,
                None => std::future::pending().await,
            }
        };
        let asks_health = self.args.health.is_some() && self.health.is_none();
        let healthy = async {
            match &mut self.health {
                Some(health) => health.succeeds().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            told = self.running.next() => Next::Told(told),
            exit = exits => Next::Exited(exit),
            status = self.signals.next() => Next::Signal(status),
            ok = fenced => Next::Fenced(ok),
            fit = healthy => Next::Health(fit),
            _ = moves.tick() => Next::Move,
            _ = looks.tick(), if asks_health => Next::AskHealth,
        }
    }

    /// Does what is told. Gives an exit status where a signal came meanwhile.
    async fn take(&mut self, told: Told) -> Option<u8> {
        match told {
            Told::Fence { token, data, .. } => {
                say(format_args!("fencing {}, which was active", field(&data)));
                let environment = [
                    ("FENCE_DATA", String::from_utf8_lossy(&data).into_owned()),
                    ("TOKEN", token.to_string()),
                ];
                let command = self.args.fence.as_deref().unwrap_or("false");
                let within = self.args.fence_timeout;
                // One of a term that is over is killed, as it is dropped.
                let fence = Shell::start("fence", command, &environment, within, self.reached.grace);
                self.fence = Some((token, fence));
            }
            Told::BecomeActive(token) => {
                let ok = self.start(token);
                self.running.call(Call::BecameActive { token, ok });
            }
            Told::Resumed(_) => {}
            Told::Standby { active } => {
                self.fence = None;
                say(format_args!("standing by: {} is active", field(&active)));
                if active == self.args.data().as_bytes() {
                    say(format_args!(
                        "warning: the active one has the same --data. Unless it is this one before it was \
                         started again, nobody will fence it: give each process data of its own"
                    ));
                }
            }
            Told::Neutral => say(format_args!("the ensemble is not reached")),
            Told::StandDown { why, .. } => {
                say(format_args!("standing down: {why}. The command is ended"));
                return self.end_command().await;
            }
            Told::Over(_) => {}
        }
        None
    }

    fn start(&mut self, token: Token) -> bool {
        self.session = self.reached.keeper.credentials().map(|credentials| credentials.id);
        let environment = [("TOKEN", token.to_string()), ("BASE", self.args.base.to_string())];
        let Some(until) = self.certain_until() else { return false };
        match Child::start(&self.args.common.command, &environment, until, self.reached.grace) {
            Ok(child) => {
                say(format_args!("active with token {token}"));
                self.child = Some(child);
                true
            }
            Err(error) => {
                say(format_args!("failed to start the command: {error}"));
                false
            }
        }
    }

    /// Until when the command may run: the session in which it was started certainly lives so long.
    fn certain_until(&self) -> Option<Instant> {
        let until = self.reached.keeper.certain_until_of(self.session?)?;
        until.checked_sub(self.reached.grace)
    }

    fn extend(&mut self) {
        let until = self.certain_until();
        if let (Some(child), Some(until)) = (&mut self.child, until) {
            child.extend(until);
        }
    }

    /// Ends the command, and waits until it is gone. Gives an exit status where a signal came meanwhile.
    async fn end_command(&mut self) -> Option<u8> {
        let mut child = self.child.take()?;
        held::end(&mut child, self.signals).await
    }

    /// Ends all that runs, and waits until it is gone. Gives an exit status where a signal came meanwhile.
    async fn end(&mut self) -> Option<u8> {
        self.health = None;
        let fenced = match self.fence.take() {
            Some((_, mut fence)) => fence.end(self.signals).await,
            None => None,
        };
        let ended = self.end_command().await;
        fenced.or(ended)
    }

    /// Leaves the contest. The command is gone; the next one fences this process all the same, if it is told.
    async fn quit(&mut self, status: u8, need_fence: bool) -> u8 {
        self.running.call(Call::Quit { need_fence });
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

    /// The recipe left the contest.
    async fn over(&mut self, why: Left) -> anyhow::Result<Leaving> {
        self.end().await;
        say(format_args!("the contest is over: {}", reach::left(why, &self.args.base)));
        Ok(Leaving::Exit(FAILED))
    }
}
