//! Applications: the clients of workloads in which one holds at a time, each a process of its own.
//!
//! A client that is a task of the bench can't be stopped by itself, so these are processes: our own
//! executable under its hidden subcommand `app`, on this machine whatever the members run in. What they are
//! told and answer is in [`harness_systems::application`]. Of a system that a file describes they are the
//! user's own client, with everything that it starts; that speaks lines, of [`harness_systems::external`].
//! Each reaches the members through links of its own ([`network`]), which can be held, and writes to a
//! [`store`] that sees its token. So an application can be stopped, killed and cut off from all members, and
//! its clock can be shifted, by the same code on every cluster.
//!
//! - [`process`]: one application; [`client`]: the load's client that drives it.
//! - [`network`], [`store`]: what it speaks with, on a thread of their own, so that the load delays neither.

pub mod client;
pub mod network;
pub mod process;
pub mod store;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use harness_core::fault::application::{Harm, Holder};
use harness_systems::application::{Answered, Runs, monotonic_ns};
use harness_systems::bounded;
use harness_systems::external::{
    MEMBERS_VARIABLE, SESSION_VARIABLE, STORE_VARIABLE, accused, holder, listed,
};
use harness_systems::failure::FirstFailure;
use harness_systems::mutant::ClientMutant;
use harness_systems::program::Program;
use runs::member::MemberId;
use runs::notices::{Notice, Notices};
use rustix::process::Signal;
use workloads::{Kind, Op, Outcome};

use crate::clock::{RunClock, RunNs};
use crate::cluster::process_clock::Clocks;
use crate::cluster::{ClockReading, ProcessState};
use crate::host::spawner::Spawner;
use crate::store::lock::TOKEN_VARIABLE;
use network::{Link, Network};
use process::Process;

/// Readings of both clocks, of which the pair that took least is kept.
const READINGS: u32 = 16;

/// What applications are started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What they do.
    pub workload: Kind,
    /// Where the members are found.
    pub members: Vec<(MemberId, SocketAddr)>,
    /// How long their sessions outlive their silence.
    pub session_timeout: Duration,
    /// How long one may be silent before it is given up. Longer than any fault is held.
    pub patience: Duration,
    /// Their planted bug. The store of careless holders takes whatever comes.
    pub mutant: Option<ClientMutant>,
    /// How many there are.
    pub number: usize,
    /// Where their words are kept.
    pub folder: PathBuf,
    /// What names the run in the environment of its processes.
    pub token: String,
    /// What they run.
    pub runs: Runs,
}

/// The applications of a run.
pub struct Applications {
    settings: Settings,
    executable: PathBuf,
    network: Network,
    store: SocketAddr,
    spawner: Spawner,
    clocks: Clocks,
    /// What the monotonic clock showed when that of the run stood at zero.
    origin_ns: u64,
    numbers: AtomicU64,
    living: Mutex<BTreeMap<u64, Arc<Process>>>,
    notices: Mutex<Notices>,
    /// What one of them did that no client may do.
    failed: FirstFailure,
    clock: RunClock,
}

impl Applications {
    /// None yet; the store is there.
    pub fn create(settings: Settings, clock: RunClock) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&settings.folder)
            .with_context(|| format!("creating {}", settings.folder.display()))?;
        let network = Network::start()?;
        let store = network.serve_store(clock, settings.mutant != Some(ClientMutant::CarelessHolder))?;
        Ok(Self {
            executable: std::env::current_exe().context("finding this executable")?,
            network,
            store,
            spawner: Spawner::start().context("starting a thread")?,
            clocks: Clocks::default(),
            origin_ns: origin_ns(clock),
            numbers: AtomicU64::new(0),
            living: Mutex::default(),
            notices: Mutex::default(),
            failed: FirstFailure::default(),
            clock,
            settings,
        })
    }

    /// What they are started with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A moment of the monotonic clock on the run's clock.
    pub fn run_ns(&self, monotonic_ns: i64) -> RunNs {
        monotonic_ns.unsigned_abs().saturating_sub(self.origin_ns)
    }

    /// Keeps what an application told beside an answer.
    pub fn note(&self, application: u64, answered: &Answered) {
        let now = monotonic_ns().saturating_sub(self.origin_ns);
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &answered.session {
            notices.works_by(now, application, session);
        }
        for noticed in &answered.notices {
            let time = noticed.at.saturating_sub(self.origin_ns);
            notices.note(Notice { time, application, key: noticed.key, of: noticed.of });
        }
    }

    /// What they told beside their answers.
    pub fn notices(&self) -> Notices {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn living(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Process>>> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts another application. It says when it is ready.
    pub fn spawn(&self) -> anyhow::Result<(Arc<Process>, process::Answers)> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let targets: Vec<SocketAddr> = self.settings.members.iter().map(|(_, address)| *address).collect();
        let link = self.network.open(&targets)?;
        let mut command = match &self.settings.runs {
            Runs::Own => self.own_command(&link),
            Runs::Program(program) => self.command_of(program, &link),
        };
        command.env(TOKEN_VARIABLE, &self.settings.token);
        let log = self.settings.folder.join(format!("{number}.log"));
        let (process, answers) = Process::spawn(number, &self.spawner, command, &log, link)?;
        let process = Arc::new(process);
        self.living().retain(|_, process| process.how_it_ended().is_none());
        self.living().insert(number, Arc::clone(&process));
        Ok((process, answers))
    }

    /// What starts our own executable as an application.
    fn own_command(&self, link: &Link) -> Command {
        let mut command = Command::new(&self.executable);
        command.arg("app").arg("--parent").arg(std::process::id().to_string());
        command.arg("--holds").arg(self.settings.workload.name()).arg("--store").arg(self.store.to_string());
        for entrance in link.entrances() {
            command.arg("--member").arg(entrance.to_string());
        }
        let timeout_ms = crate::clock::whole_milliseconds(self.settings.session_timeout);
        command.arg("--session-timeout-ms").arg(timeout_ms.to_string());
        if let Some(bug) = self.settings.mutant {
            command.arg("--mutant").arg(bug.name());
        }
        command
    }

    /// What starts the user's client as one.
    fn command_of(&self, program: &Program, link: &Link) -> Command {
        let members = self.settings.members.iter().map(|(member, _)| member.0);
        let found: Vec<(u64, SocketAddr)> = members.zip(link.entrances().iter().copied()).collect();
        let timeout_ms = crate::clock::whole_milliseconds(self.settings.session_timeout);
        let mut command = program.command(&self.executable);
        command
            .env(MEMBERS_VARIABLE, listed(&found))
            .env(STORE_VARIABLE, self.store.to_string())
            .env(SESSION_VARIABLE, timeout_ms.to_string());
        command
    }

    /// Whether each question says which member it is for.
    pub fn are_told_the_member(&self) -> bool {
        matches!(self.settings.runs, Runs::Program(_))
    }

    /// The member at an address.
    fn member_at(&self, address: SocketAddr) -> Option<MemberId> {
        self.settings.members.iter().find(|(_, at)| *at == address).map(|(member, _)| *member)
    }

    /// Where an application finds a member, by its own links.
    fn entrance(&self, link: &Link, member: MemberId) -> Option<SocketAddr> {
        let at = self.settings.members.iter().position(|(other, _)| *other == member)?;
        link.entrances().get(at).copied()
    }

    /// What a line means that the user's client said.
    fn judged(&self, op: &Op, id: u64, line: &[u8]) -> Result<Outcome, String> {
        let run_ns = |monotonic: u64| monotonic.saturating_sub(self.origin_ns);
        holder::outcome(op, id, line, &holder::Clock { read_ns: self.clock.now(), run_ns: &run_ns })
    }

    /// One of them did what no client may do: nothing that it said can be judged.
    fn fail(&self, application: u64, why: &str, line: &[u8]) {
        let log = self.of(application).map(|process| process.log().to_owned());
        self.failed.note(|| {
            let words = log.as_ref().map(|log| bounded::tail(log, bounded::LAST_WORDS)).unwrap_or_default();
            accused(why, Some(line), &words, log.as_deref())
        });
    }

    /// Completes when that has happened.
    pub async fn broken(&self) -> String {
        self.failed.noted().await
    }

    /// The application that holds something by the largest token that was told.
    pub fn holder(&self) -> Option<Holder> {
        let living = self.living();
        let held = living.values().filter(|process| process.how_it_ended().is_none());
        held.filter_map(|process| process.held()).max_by_key(|holder| holder.token)
    }

    /// What an application holds, by what it said last.
    pub fn held_by(&self, application: u64) -> Option<Holder> {
        self.of(application)?.held()
    }

    /// Whether an application must write once more before it gives up what it holds.
    pub fn is_on_trial(&self, application: u64) -> bool {
        self.of(application).is_some_and(|process| process.is_on_trial())
    }

    fn of(&self, application: u64) -> Option<Arc<Process>> {
        self.living().get(&application).cloned()
    }

    /// Harms an application, unless it does not hold any more what it held; then false, and nothing is done.
    /// `asked` comes before it, and nothing stands between the two.
    pub async fn harm(
        &self,
        holder: &Holder,
        harm: Harm,
        asked: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let Some(process) = self.of(holder.application) else { return Ok(false) };
        let done = process.harm(holder, || {
            asked()?;
            match harm {
                Harm::Pause => process.signal(Signal::STOP),
                Harm::Kill => process.signal(Signal::KILL),
                Harm::Cut => process.link().hold(),
                Harm::Clock { .. } => {}
            }
            anyhow::Ok(())
        });
        let Some(done) = done else { return Ok(false) };
        done?;
        match harm {
            Harm::Clock { offset_ns } => {
                // Each process of a group has a clock of its own.
                ensure!(
                    process.is_alone(),
                    "the client's command starts processes, and one clock is shifted"
                );
                self.clocks.shift(process.pid(), offset_ns).await?;
            }
            Harm::Cut => {
                self.network.settle().await;
                process.link().note();
            }
            Harm::Pause | Harm::Kill => {}
        }
        Ok(true)
    }

    /// Takes it back. Gives what had passed a cut while it held.
    pub async fn undo(&self, holder: &Holder, harm: Harm) -> anyhow::Result<Option<u64>> {
        let Some(process) = self.of(holder.application) else { return Ok(None) };
        process.is_healed();
        match harm {
            Harm::Pause => process.signal(Signal::CONT),
            // Its place was taken at once.
            Harm::Kill => {}
            Harm::Cut => {
                let crossed = process.link().passed_since();
                process.link().pass();
                return Ok(Some(crossed));
            }
            Harm::Clock { .. } => {
                self.clocks.shift(process.pid(), 0).await?;
            }
        }
        Ok(None)
    }

    /// The state of an application's process.
    pub fn state(&self, application: u64) -> ProcessState {
        self.of(application).map_or(ProcessState::Gone("before".to_owned()), |process| process.state())
    }

    /// Lets an application read its own wall clock.
    pub async fn read_clock(&self, application: u64) -> anyhow::Result<ClockReading> {
        let process = self.of(application).ok_or_else(|| anyhow!("application {application} is gone"))?;
        self.clocks.read(process.pid()).await
    }

    /// Bytes that passed an application's links since the start, and those that wait.
    pub fn traffic(&self, application: u64) -> (u64, u64) {
        self.of(application).map_or((0, 0), |process| process.link().traffic())
    }

    /// Bytes that passed the links of an application since it was cut off.
    pub fn passed_since(&self, application: u64) -> u64 {
        self.of(application).map_or(0, |process| process.link().passed_since())
    }

    /// An application that runs and is another one: the control beside a proof.
    pub fn another(&self, than: u64) -> Option<u64> {
        let living = self.living();
        let runs = |process: &&Arc<Process>| process.state() == ProcessState::Running;
        living.values().filter(runs).map(|process| process.number()).find(|number| *number != than)
    }

    /// How many run and have said that they are ready.
    pub fn ready(&self) -> usize {
        self.living()
            .values()
            .filter(|process| process.is_ready() && process.how_it_ended().is_none())
            .count()
    }
}

impl Drop for Applications {
    /// Whatever led here, a panic too: no process stays.
    fn drop(&mut self) {
        for process in self.living().values() {
            process.signal(Signal::KILL);
        }
    }
}

/// What the monotonic clock showed at the beginning of the run.
fn origin_ns(clock: RunClock) -> u64 {
    let read = || {
        let before = monotonic_ns();
        let run_ns = clock.now();
        let after = monotonic_ns();
        (after - before, (before + (after - before) / 2).saturating_sub(run_ns))
    };
    (0..READINGS).map(|_| read()).min().map(|(_, origin)| origin).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_and_that_of_the_run_are_laid_on_one_axis() {
        let clock = RunClock::start();
        let origin = origin_ns(clock);
        let (run, monotonic) = (clock.now(), monotonic_ns());
        assert!((monotonic - origin).abs_diff(run) < 100_000_000, "{run} {monotonic} {origin}");
    }
}
