//! Processes of the user's client that have said hello and wait: a worker whose process ended goes on with
//! one of them at once.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore};

use super::process::Process;
use crate::failure::FirstFailure;
use crate::program::Program;
use crate::system::Beginning;

/// What to do where nobody said who the clients are.
pub(super) const NO_CLIENT: &str = "the file names no client: write one (`harness init system` shows how), \
    or run a test of your own by `harness wrap`";
/// Processes that wait beside those that work.
const SPARES: usize = 2;
/// Processes that start at the same time.
const AT_A_TIME: usize = 4;
/// Starts that may fail one after the other before the client is given up.
const FAILURES: u32 = 3;

#[derive(Debug, Default)]
struct State {
    beginning: Option<Arc<Beginning>>,
    idle: VecDeque<Process>,
    starting: usize,
    waiting: usize,
    /// How many were ever started.
    started: u64,
    failures: u32,
}

/// The processes.
#[derive(Debug)]
pub struct Pool {
    /// None where the file names no client: then there are no processes either.
    program: Option<Arc<Program>>,
    state: Mutex<State>,
    news: Notify,
    slots: Semaphore,
    failed: FirstFailure,
}

/// So many processes are waited for.
struct Waiting<'a>(&'a Pool, usize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= self.1;
    }
}

impl Pool {
    /// None yet.
    pub(super) fn new(program: Option<Arc<Program>>) -> Self {
        Self {
            program,
            state: Mutex::default(),
            news: Notify::new(),
            slots: Semaphore::new(AT_A_TIME),
            failed: FirstFailure::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts as many as there will be clients, and waits for their hellos.
    pub(super) async fn begin(self: &Arc<Self>, beginning: Beginning) -> Result<(), String> {
        if self.program.is_none() {
            return Err(NO_CLIENT.to_owned());
        }
        std::fs::create_dir_all(&beginning.folder)
            .map_err(|error| format!("creating {}: {error}", beginning.folder.display()))?;
        let clients = beginning.clients;
        self.state().beginning = Some(Arc::new(beginning));
        let _waiting = self.waits_for(clients);
        self.keep_spares();
        loop {
            let news = self.news.notified();
            if self.state().idle.len() >= clients {
                return Ok(());
            }
            tokio::select! {
                () = news => {}
                why = self.failed.noted() => return Err(why),
            }
        }
    }

    fn waits_for(&self, processes: usize) -> Waiting<'_> {
        self.state().waiting += processes;
        Waiting(self, processes)
    }

    /// Starts so many more.
    fn start(self: &Arc<Self>, number: usize) {
        let (beginning, program) = (self.state().beginning.clone(), self.program.clone());
        let (Some(beginning), Some(program)) = (beginning, program) else { return };
        for _ in 0..number {
            let number = {
                let mut state = self.state();
                state.starting += 1;
                state.started += 1;
                state.started
            };
            let (pool, beginning, program) = (Arc::clone(self), Arc::clone(&beginning), Arc::clone(&program));
            tokio::spawn(async move {
                let slot = pool.slots.acquire().await;
                let started = Process::start(&program, &beginning, number).await;
                drop(slot);
                pool.has_started(started);
            });
        }
    }

    fn has_started(self: &Arc<Self>, started: Result<Process, String>) {
        let mut state = self.state();
        state.starting -= 1;
        match started {
            Ok(process) => {
                state.failures = 0;
                state.idle.push_back(process);
            }
            Err(why) => {
                state.failures += 1;
                if state.failures >= FAILURES {
                    self.failed.note(|| why);
                }
            }
        }
        drop(state);
        self.news.notify_waiters();
        self.keep_spares();
    }

    /// Starts what is missing: whoever waits is to have one, and a few are to wait for somebody.
    fn keep_spares(self: &Arc<Self>) {
        let state = self.state();
        let wanted = state.waiting + SPARES;
        let there = state.idle.len() + state.starting;
        let is_failed = self.failed.is_noted();
        drop(state);
        if !is_failed {
            self.start(wanted.saturating_sub(there));
        }
    }

    /// A process that has said hello. Waits for one where there is none.
    pub(super) async fn take(self: &Arc<Self>) -> Process {
        let waiting = self.waits_for(1);
        loop {
            let news = self.news.notified();
            let next = self.state().idle.pop_front();
            match next {
                Some(process) => {
                    if process.lives() {
                        drop(waiting);
                        self.keep_spares();
                        return process;
                    }
                }
                None => {
                    self.keep_spares();
                    news.await;
                }
            }
        }
    }

    /// What a request calls the member at this address.
    pub(super) fn called(&self, member: SocketAddr) -> String {
        let name = || {
            let container = self.program.as_ref()?.in_container.as_ref()?;
            let beginning = self.state().beginning.clone()?;
            let (id, _) = beginning.members.iter().find(|(_, address)| *address == member)?;
            container.members.get(usize::try_from(id.checked_sub(1)?).ok()?).cloned()
        };
        name().unwrap_or_else(|| member.to_string())
    }

    /// The number of the member that a client calls so: `n1`, or its address as requests have it. None where
    /// that is no member.
    pub(super) fn number_of(&self, member: &str) -> Option<u64> {
        let beginning = self.state().beginning.clone()?;
        let is_it = |(id, address): &&(u64, SocketAddr)| {
            member == format!("n{id}") || member == address.to_string() || member == self.called(*address)
        };
        beginning.members.iter().find(is_it).map(|(id, _)| *id)
    }

    /// The client did what no client may do: nothing that it said can be judged.
    pub(super) fn fail(&self, why: String) {
        self.failed.note(|| why);
    }

    /// Completes when that has happened.
    pub(super) async fn broken(&self) -> String {
        self.failed.noted().await
    }
}
