//! Applications as the kernel and their own links tell of them, each beside another that no fault touches.

use std::time::{Duration, Instant};

use harness_core::fault::application::{Harm, Holder};
use harness_core::mechanism::clock::show_offset;

use super::clocks::fits;
use super::{LOOK_EVERY, PATIENCE, Proof, RECOVERY_PATIENCE};
use crate::applications::Applications;
use crate::cluster::{ClockReading, ProcessState};

/// How long nothing must pass a cut for it to be seen. Whoever holds speaks several times in it.
const SILENCE: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 500 });

/// What a proof looks at: applications, by the numbers of their processes.
pub trait ApplicationsSeen {
    /// How many are to run.
    fn wanted(&self) -> usize;
    /// How many run and have said that they are ready.
    fn ready(&self) -> usize;
    /// The state of one's process.
    fn state(&self, application: u64) -> ProcessState;
    /// One that runs and is another one.
    fn another(&self, than: u64) -> Option<u64>;
    /// Bytes that passed one's links since the start, and those that wait.
    fn traffic(&self, application: u64) -> (u64, u64);
    /// Bytes that passed one's links since it was cut off.
    fn passed_since(&self, application: u64) -> u64;
    /// Lets one read its own wall clock.
    fn read_clock(&self, application: u64) -> impl Future<Output = anyhow::Result<ClockReading>>;
}

impl ApplicationsSeen for Applications {
    fn wanted(&self) -> usize {
        self.settings().number
    }

    fn ready(&self) -> usize {
        Self::ready(self)
    }

    fn state(&self, application: u64) -> ProcessState {
        Self::state(self, application)
    }

    fn another(&self, than: u64) -> Option<u64> {
        Self::another(self, than)
    }

    fn traffic(&self, application: u64) -> (u64, u64) {
        Self::traffic(self, application)
    }

    fn passed_since(&self, application: u64) -> u64 {
        Self::passed_since(self, application)
    }

    async fn read_clock(&self, application: u64) -> anyhow::Result<ClockReading> {
        Self::read_clock(self, application).await
    }
}

/// Whether an application is as it was to be.
pub async fn application_is_harmed(all: &impl ApplicationsSeen, holder: &Holder, harm: Harm) -> Proof {
    let own = match harm {
        Harm::Pause => state_is(all, holder, |state| *state == ProcessState::Stopped, PATIENCE).await,
        Harm::Kill => state_is(all, holder, |state| matches!(state, ProcessState::Gone(_)), PATIENCE).await,
        Harm::Cut => return is_cut_off(all, holder).await,
        Harm::Clock { offset_ns } => clock_reads(all, holder.application, offset_ns).await,
    };
    own.and(control(all, holder, harm).await)
}

/// Whether what was done to an application is undone.
pub async fn application_is_well(all: &impl ApplicationsSeen, holder: &Holder, harm: Harm) -> Proof {
    match harm {
        Harm::Pause => state_is(all, holder, |state| *state == ProcessState::Running, PATIENCE).await,
        Harm::Kill => all_are_ready(all).await,
        Harm::Cut => passes_again(all, holder).await,
        Harm::Clock { .. } => clock_reads(all, holder.application, 0).await,
    }
}

/// What passed a cut while it held.
pub fn at_the_end_of_a_cut_application(crossed: u64) -> Proof {
    Proof::new(crossed == 0, format!("{crossed} bytes crossed while it held"))
}

/// Waits until something holds.
async fn until(deadline: Instant, holds: impl Fn() -> bool) -> bool {
    while !holds() {
        if Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    true
}

async fn state_is(
    all: &impl ApplicationsSeen,
    holder: &Holder,
    wanted: impl Fn(&ProcessState) -> bool,
    patience: Duration,
) -> Proof {
    let number = holder.application;
    let holds = until(Instant::now() + patience, || wanted(&all.state(number))).await;
    Proof::new(holds, format!("application {number} is {}", all.state(number)))
}

/// Another application, which must be as usual.
async fn control(all: &impl ApplicationsSeen, holder: &Holder, harm: Harm) -> Proof {
    let Some(other) = all.another(holder.application) else {
        return Proof::new(false, "no other application runs beside it".to_owned());
    };
    match harm {
        Harm::Clock { .. } => clock_reads(all, other, 0).await,
        Harm::Pause | Harm::Kill | Harm::Cut => {
            let state = all.state(other);
            let runs = state == ProcessState::Running;
            Proof::new(runs, format!("application {other} beside it is {state}"))
        }
    }
}

/// Nothing passes its links, though it speaks, and something passes those of another one.
async fn is_cut_off(all: &impl ApplicationsSeen, holder: &Holder) -> Proof {
    let number = holder.application;
    let other = all.another(number);
    let before = other.map(|other| all.traffic(other).0);
    let deadline = Instant::now() + PATIENCE;
    tokio::time::sleep(SILENCE).await;
    let speaks = until(deadline, || all.traffic(number).1 > 0).await;
    let beside = || other.map_or(0, |other| all.traffic(other).0 - before.unwrap_or_default());
    let others_pass = until(deadline, || beside() > 0).await;
    let (crossed, waiting) = (all.passed_since(number), all.traffic(number).1);
    let words = format!(
        "{crossed} bytes passed between application {number} and the members, {waiting} wait; {} passed of \
         another one beside it",
        beside()
    );
    Proof::new(crossed == 0 && speaks && others_pass, words)
}

/// Bytes pass its links again. One that is gone has none.
async fn passes_again(all: &impl ApplicationsSeen, holder: &Holder) -> Proof {
    let number = holder.application;
    let before = all.traffic(number).0;
    let is_gone = || matches!(all.state(number), ProcessState::Gone(_));
    let deadline = Instant::now() + RECOVERY_PATIENCE;
    let holds = until(deadline, || all.traffic(number).0 > before || is_gone()).await;
    let words = if is_gone() {
        format!("application {number} is {}", all.state(number))
    } else {
        format!("{} bytes passed since", all.traffic(number).0 - before)
    };
    Proof::new(holds, words)
}

async fn all_are_ready(all: &impl ApplicationsSeen) -> Proof {
    let wanted = all.wanted();
    let holds = until(Instant::now() + RECOVERY_PATIENCE, || all.ready() >= wanted).await;
    Proof::new(holds, format!("{} of {wanted} applications run", all.ready()))
}

async fn clock_reads(all: &impl ApplicationsSeen, number: u64, offset_ns: i64) -> Proof {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = all.read_clock(number).await;
        let fitting = seen.as_ref().is_ok_and(|reading| fits(*reading, offset_ns));
        // A process that is gone took its clock with it.
        let is_gone = offset_ns == 0 && matches!(all.state(number), ProcessState::Gone(_));
        if fitting || is_gone || Instant::now() >= deadline {
            let words = match seen {
                Ok(reading) => format!(
                    "application {number} reads {} (error {} us)",
                    show_offset(reading.offset_ns),
                    reading.error_ns / 1000
                ),
                Err(error) => format!("application {number} can't be read: {error:#}"),
            };
            return Proof::new(fitting || is_gone, words);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
