//! The main loop: requests, the lease, signals; and how it ends.
//!
//! One thread looks at everything that can happen (input, the other threads' nudges, signals, deadlines) and
//! does what takes at most a few milliseconds itself. What waits is elsewhere: answers in the writer's queue,
//! clocks at a thread of their own, questions for arrivals in a list. So a lease that runs out is served
//! whatever the others do.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Deserialize;

use crate::clock::{ClockMaker, ClockThread};
use crate::devices::{Around, Devices};
use crate::lease::{Due, Lease};
use crate::lines::{Cut, Lines, MAX_LINE};
use crate::netfilter::{Filter, FilterError};
use crate::output::{Finished, Output};
use crate::probe::{Answer, ProbeError, Probes, Question};
use crate::processes::{OwnNamespace, ProcessError, of_the_member};
use crate::protocol::{Command, LEASE_MS, Outcome, PeerCount, Request, SignalName};
use crate::signals::{Arrived, Signals, reap, signal_all};
use crate::threads::Wake;
use crate::time::{MS, now_ns};

/// Questions for arrivals that may wait.
const MAX_QUESTIONS: usize = 64;
/// Longest name of a run or fault.
const MAX_NAME: usize = 256;
/// How long the dying may take at the end; the kernel ends whoever is left.
const DYING: Duration = Duration::from_secs(2);
/// How long the last answers may take to be read.
const FLUSH_PATIENCE: Duration = Duration::from_millis(500);

/// Why the agent ended otherwise than asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// What it needs could not be had.
    #[error("start: {0}")]
    Start(io::Error),
    /// The input broke.
    #[error("read requests: {0}; everything was healed")]
    Input(io::Error),
    /// The harness fell silent for good.
    #[error("hear from the harness: it was silent for too long; everything was healed")]
    Abandoned,
}

/// What the agent needs to know from its caller.
pub struct Options {
    /// The arguments with which the running executable calls [`crate::idle_on_stdio`] and does nothing else.
    pub idle: Vec<std::ffi::OsString>,
    /// Makes what shifts clocks.
    pub clocks: ClockMaker,
}

impl Default for Options {
    /// As the harness's executable has it: the subcommand `clock-target`, and this machine's clocks.
    fn default() -> Self {
        Self {
            idle: vec!["clock-target".into()],
            clocks: Box::new(|| Box::<crate::clock::RealClocks>::default()),
        }
    }
}

/// Runs on standard input and output until it is told to stop, or the input ends, or the lease is over. To be
/// called before the process has other threads: as process 1 it takes its signals from a file.
///
/// # Errors
/// See [`AgentError`]. Everything is healed then as well.
pub fn main_loop_on_stdio(options: Options) -> Result<(), AgentError> {
    let input = io::stdin().as_fd().try_clone_to_owned().map_err(AgentError::Start)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(AgentError::Start)?;
    // As files: the standard library's handles keep bytes back, of which `poll` knows nothing.
    run(File::from(input), File::from(output), options)
}

/// Runs until it is told to stop, or the input ends, or the lease is over; then everything is healed and,
/// when this is process 1, every other process of the namespace is ended.
///
/// `input` must not keep bytes back that it has read: the agent waits for its file descriptor. `output` may
/// block, for ever even; it is written by a thread that nobody waits for.
///
/// # Errors
/// See [`AgentError`].
pub fn run<I, O>(mut input: I, output: O, options: Options) -> Result<(), AgentError>
where
    I: Read + AsFd,
    O: Write + Send + 'static,
{
    // Before any thread is started, so that all have the signals blocked.
    let signals = Signals::open().map_err(AgentError::Start)?;
    let wake = Wake::new().map_err(AgentError::Start)?;
    let (output, finished) = Output::start(output).map_err(AgentError::Start)?;
    let clocks = ClockThread::new(output.clone(), wake.clone(), options.clocks, options.idle);
    let namespace = OwnNamespace::of_this_process().ok();
    let mut agent = Agent {
        output,
        wake,
        clocks,
        namespace,
        introduced: None,
        devices: Devices::default(),
        questions: Vec::new(),
        reap_owed: false,
    };
    let end = agent.serve(&mut input, &signals);
    agent.finish(&end, finished);
    match end {
        End::Stop(_) | End::OfInput | End::Signal => Ok(()),
        End::Broken(error) => Err(AgentError::Input(error)),
        End::Silence => Err(AgentError::Abandoned),
    }
}

/// How the main loop ends.
#[derive(Debug)]
enum End {
    /// Asked for, by the request of this number.
    Stop(u64),
    OfInput,
    Signal,
    Silence,
    Broken(io::Error),
}

/// What there is after hello.
struct Introduced {
    filter: Filter,
    probes: Probes,
    around: Around,
}

struct Agent {
    output: Output,
    wake: Wake,
    clocks: ClockThread,
    /// The agent's own process namespace; none when it is not its first process.
    namespace: Option<OwnNamespace>,
    introduced: Option<Introduced>,
    devices: Devices,
    questions: Vec<(u64, Question)>,
    /// Somebody may have died that was not waited for yet.
    reap_owed: bool,
}

/// Why a request can't be done, in words.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("failed to {0}")]
    Filter(#[from] FilterError),
    #[error("failed to {0}")]
    Probe(#[from] ProbeError),
    #[error("failed to {0}")]
    Process(#[from] ProcessError),
    #[error("{0}")]
    Asked(&'static str),
    #[error("{0}")]
    Device(String),
}

impl Agent {
    fn serve(&mut self, input: &mut (impl Read + AsFd), signals: &Signals) -> End {
        let mut lease = Lease::new(now_ns());
        let mut lines = Lines::default();
        let mut buffer = vec![0; MAX_LINE];
        loop {
            let limit_ns = self.deadline_ns().saturating_sub(now_ns()).min(lease.patience_ns());
            let limit = Timespec::try_from(Duration::from_nanos(limit_ns)).unwrap_or_default();
            let mut wanted = [
                PollFd::new(input, PollFlags::IN),
                PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
                PollFd::new(signals, PollFlags::IN),
            ];
            match poll(&mut wanted, Some(&limit)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return End::Broken(error.into()),
            }
            let [has_input, is_nudged, is_signalled] = wanted.map(|one| !one.revents().is_empty());
            if is_nudged {
                self.wake.clear();
            }
            // Input before the lease: a line that waits was heard in time, however late this thread is.
            let mut heard = false;
            if has_input {
                match input.read(&mut buffer) {
                    Ok(0) => return End::OfInput,
                    Ok(length) => {
                        for cut in lines.take(buffer.get(..length).unwrap_or_default()) {
                            heard = true;
                            if let Some(end) = self.take(cut) {
                                return end;
                            }
                        }
                    }
                    Err(error)
                        if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                    }
                    Err(error) => return End::Broken(error),
                }
            }
            match lease.look(now_ns(), heard) {
                Due::Nothing => {}
                Due::Heal => self.heal("no word from the harness", LEASE_MS),
                Due::End => return End::Silence,
            }
            if is_signalled {
                while let Some(arrived) = signals.next() {
                    match arrived {
                        Arrived::Child => self.reap_owed = true,
                        Arrived::End => return End::Signal,
                    }
                }
            }
            self.reap();
            self.answer_questions();
        }
    }

    /// When some question must be answered at the latest.
    fn deadline_ns(&self) -> u64 {
        let Some(introduced) = &self.introduced else { return u64::MAX };
        let until = self.questions.iter().map(|(_, question)| match introduced.probes.answer(*question) {
            Answer::Now(_) => 0,
            Answer::Until(until_ns) => until_ns,
        });
        until.min().unwrap_or(u64::MAX)
    }

    fn take(&mut self, cut: Cut) -> Option<End> {
        let line = match cut {
            Cut::Line(line) => line,
            Cut::TooLong => {
                self.output.notice(format!("a request of more than {MAX_LINE} bytes was not read"));
                return None;
            }
        };
        match serde_json::from_slice::<Request>(&line) {
            Ok(Request { id, command }) => self.command(id, command),
            Err(error) => {
                #[derive(Deserialize)]
                struct Numbered {
                    id: u64,
                }
                let reason = format!("not a request that this agent knows: {error}");
                match serde_json::from_slice(&line) {
                    Ok(Numbered { id }) => self.output.answer(id, Outcome::Failed(reason)),
                    Err(_) => self.output.notice(reason),
                }
                None
            }
        }
    }

    fn command(&mut self, id: u64, command: Command) -> Option<End> {
        let outcome = match command {
            Command::Renew => return None,
            Command::Stop => return Some(End::Stop(id)),
            Command::ShiftClock { offset_ns } => {
                self.clocks.shift(id, offset_ns);
                return None;
            }
            Command::ReadClock => {
                self.clocks.read(id);
                return None;
            }
            Command::TryClock => {
                self.clocks.attempt(id);
                return None;
            }
            Command::Arrivals { round, patience_ms } => match self.ask(id, round, patience_ms) {
                Ok(()) => return None,
                Err(refused) => Err(refused),
            },
            command => self.act(command),
        };
        self.output.answer(id, outcome.unwrap_or_else(|refused| Outcome::Failed(refused.to_string())));
        None
    }

    /// What is done and answered at once.
    fn act(&mut self, command: Command) -> Result<Outcome, Refused> {
        match command {
            hello @ Command::Hello { .. } => {
                self.introduce(hello)?;
                Ok(Outcome::Done(self.counters()?))
            }
            Command::Cut { fault, from, refusal } => {
                if fault.len() > MAX_NAME {
                    return Err(Refused::Asked("the fault's name is longer than 256 bytes: shorten it"));
                }
                self.introduced()?.filter.cut(&fault, &from, refusal)?;
                Ok(Outcome::Done(self.counters()?))
            }
            Command::Heal { fault } => {
                self.introduced()?.filter.heal(&fault)?;
                Ok(Outcome::Done(self.counters()?))
            }
            Command::Counters => {
                self.introduced()?.filter.settle();
                Ok(Outcome::Done(self.counters()?))
            }
            Command::SendProbes { round } => {
                self.introduced()?.probes.send(round)?;
                Ok(Outcome::Done(Vec::new()))
            }
            Command::Signal { signal } => {
                signal_all(self.namespace.ok_or(ProcessError::NotFirst)?, signal)?;
                Ok(Outcome::Done(Vec::new()))
            }
            Command::Processes => {
                let processes = of_the_member(self.namespace.ok_or(ProcessError::NotFirst)?.processes()?);
                Ok(Outcome::Processes(processes.into_iter().map(|process| process.line).collect()))
            }
            Command::Devices => Ok(Outcome::Devices(self.devices.attempt())),
            Command::Device { device, order } => {
                let around = self.introduced()?.around.clone();
                self.devices.order(&device, &around, order).map(Outcome::Device).map_err(Refused::Device)
            }
            Command::ShiftClock { .. }
            | Command::ReadClock
            | Command::TryClock
            | Command::Arrivals { .. }
            | Command::Renew
            | Command::Stop => Err(Refused::Asked("this request is served elsewhere")),
        }
    }

    fn introduce(&mut self, hello: Command) -> Result<(), Refused> {
        let Command::Hello { run, own, peers, probe_port, control_port, peer_ports } = hello else {
            return Err(Refused::Asked("this is no hello"));
        };
        if self.introduced.is_some() {
            return Err(Refused::Asked("hello was said before: start another agent for another run"));
        }
        if run.is_empty() || run.len() > MAX_NAME {
            return Err(Refused::Asked("the run needs a name of 1 to 256 bytes"));
        }
        if probe_port == 0 || control_port == 0 || probe_port == control_port {
            return Err(Refused::Asked("probes and controls need two ports, neither of them 0"));
        }
        if peers.iter().any(|(peer, _)| *peer == own) {
            return Err(Refused::Asked("the member is among its own peers: leave it out"));
        }
        let filter = Filter::open(&run, &peers, control_port, &peer_ports)?;
        // Without probes the table goes again with its socket, or here.
        match Probes::open(&run, own, &peers, (probe_port, control_port), self.wake.clone()) {
            Ok(probes) => {
                let around = Around { run, peers, control_port, probe_port };
                self.introduced = Some(Introduced { filter, probes, around });
                Ok(())
            }
            Err(error) => {
                let _ = filter.remove();
                Err(error.into())
            }
        }
    }

    fn introduced(&mut self) -> Result<&mut Introduced, Refused> {
        self.introduced
            .as_mut()
            .ok_or(Refused::Asked("the agent does not know who is who yet: say hello first"))
    }

    fn counters(&mut self) -> Result<Vec<PeerCount>, Refused> {
        Ok(self.introduced()?.filter.counters()?)
    }

    fn ask(&mut self, id: u64, round: u64, patience_ms: u64) -> Result<(), Refused> {
        if self.questions.len() >= MAX_QUESTIONS {
            return Err(Refused::Asked(
                "64 questions for arrivals are waiting: ask again when some are answered",
            ));
        }
        self.introduced()?.probes.await_arrivals(true);
        self.questions.push((id, Question { round, asked_ns: now_ns(), patience_ms }));
        Ok(())
    }

    fn answer_questions(&mut self) {
        let Some(introduced) = &self.introduced else { return };
        if self.questions.is_empty() {
            return;
        }
        self.questions.retain(|(id, question)| match introduced.probes.answer(*question) {
            Answer::Until(_) => true,
            Answer::Now(arrivals) => {
                self.output.answer(*id, Outcome::Arrived(arrivals));
                false
            }
        });
        introduced.probes.await_arrivals(!self.questions.is_empty());
    }

    /// Waits for the dead, unless clocks are at work: then when they are done.
    fn reap(&mut self) {
        if let Some(namespace) = self.namespace.filter(|_| self.reap_owed) {
            self.reap_owed = !self.clocks.undisturbed(|| reap(namespace));
        }
    }

    /// Heals everything: the lease is over.
    fn heal(&mut self, why: &str, after_ms: u64) {
        let mut told = format!("{why} for {} s: everything was healed", after_ms / 1_000);
        if let Some(Err(error)) = self.introduced.as_mut().map(|introduced| introduced.filter.heal_all()) {
            told = format!("{told}, except that the agent failed to {error}");
        }
        if let Err(error) = self.devices.heal() {
            told = format!("{told}, except that the agent failed to {error}");
        }
        if let Some(Err(error)) = self.namespace.map(|within| signal_all(within, SignalName::Continue)) {
            told = format!("{told}, except that the agent failed to {error}");
        }
        self.clocks.restore_all();
        self.output.notice(told);
    }

    /// Takes the table away, ends everybody (who then has no clock to be restored), says goodbye.
    fn finish(mut self, end: &End, finished: Finished) {
        let mut failed = Vec::new();
        if let Some(Introduced { filter, probes, .. }) = self.introduced.take() {
            if let Err(error) = filter.remove() {
                failed.push(format!("failed to {error}"));
            }
            drop(probes);
        }
        if let Some(within) = self.namespace {
            failed.extend(end_all(within).err().map(|error| format!("failed to {error}")));
        }
        match end {
            End::Stop(id) if failed.is_empty() => self.output.answer(*id, Outcome::Done(Vec::new())),
            End::Stop(id) => self.output.answer(*id, Outcome::Failed(failed.join("; "))),
            End::Silence => self.output.notice("no word from the harness for too long: the agent ends"),
            End::Signal => self.output.notice("the agent was told to end by a signal: everything was healed"),
            End::OfInput | End::Broken(_) => {}
        }
        self.output.flush(finished, FLUSH_PATIENCE);
    }
}

/// Kills every process and waits until none is left alive.
fn end_all(within: OwnNamespace) -> Result<(), ProcessError> {
    let deadline_ns = now_ns().saturating_add(u64::try_from(DYING.as_nanos()).unwrap_or(u64::MAX));
    loop {
        signal_all(within, SignalName::Kill)?;
        reap(within);
        if within.processes()?.iter().all(crate::processes::Process::is_dead) || now_ns() >= deadline_ns {
            return Ok(());
        }
        thread::sleep(Duration::from_nanos(MS));
    }
}
