//! Applications as the kernel and their own links tell of them, each beside another that no fault touches.

use std::time::{Duration, Instant};

use harness_core::fault::application::{Harm, Holder};
use harness_core::fault::scene::show_offset;

use super::clocks::fits;
use super::{GLANCE, PATIENCE, Proof, RECOVERY_PATIENCE};
use crate::applications::Applications;
use crate::cluster::ProcessState;

/// How long nothing must pass a cut for it to be seen. Whoever holds speaks several times in it.
const SILENCE: Duration = Duration::from_millis(500);

/// Whether an application is as it was to be.
pub async fn application_is_harmed(all: &Applications, holder: &Holder, harm: Harm) -> Proof {
    let own = match harm {
        Harm::Pause => state_is(all, holder, |state| *state == ProcessState::Stopped, PATIENCE).await,
        Harm::Kill => state_is(all, holder, |state| matches!(state, ProcessState::Gone(_)), PATIENCE).await,
        Harm::Cut => return is_cut_off(all, holder).await,
        Harm::Clock { offset_ns } => clock_reads(all, holder.application, offset_ns).await,
    };
    own.and(control(all, holder, harm).await)
}

/// Whether what was done to an application is undone.
pub async fn application_is_well(all: &Applications, holder: &Holder, harm: Harm) -> Proof {
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
        tokio::time::sleep(GLANCE).await;
    }
    true
}

async fn state_is(
    all: &Applications,
    holder: &Holder,
    wanted: impl Fn(&ProcessState) -> bool,
    patience: Duration,
) -> Proof {
    let number = holder.application;
    let holds = until(Instant::now() + patience, || wanted(&all.state(number))).await;
    Proof::new(holds, format!("application {number} is {}", all.state(number)))
}

/// Another application, which must be as usual.
async fn control(all: &Applications, holder: &Holder, harm: Harm) -> Proof {
    let Some(other) = all.another(holder.application) else {
        return Proof::new(false, "no other application runs beside it".to_owned());
    };
    match harm {
        Harm::Clock { .. } => clock_reads(all, other, 0).await,
        Harm::Pause | Harm::Kill | Harm::Cut => {
            Proof::new(true, format!("application {other} beside it is {}", all.state(other)))
        }
    }
}

/// Nothing passes its links, though it speaks, and something passes those of another one.
async fn is_cut_off(all: &Applications, holder: &Holder) -> Proof {
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
async fn passes_again(all: &Applications, holder: &Holder) -> Proof {
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

async fn all_are_ready(all: &Applications) -> Proof {
    let wanted = all.settings().number;
    let holds = until(Instant::now() + RECOVERY_PATIENCE, || all.ready() >= wanted).await;
    Proof::new(holds, format!("{} of {wanted} applications run", all.ready()))
}

async fn clock_reads(all: &Applications, number: u64, offset_ns: i64) -> Proof {
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
        tokio::time::sleep(GLANCE).await;
    }
}
