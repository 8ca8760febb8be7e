//! Starts an ensemble, drives a workload, breaks things on a schedule, records what every client saw, has it
//! judged, and writes the run down.
//!
//! This is the half of the bench that touches the world. What clients do and what must then be true is in
//! `workloads`, the search for an order in `checker`, the page in `reports`; none of them knows a socket or a
//! clock, and nothing here decides whether an answer was right.
//!
//! - [`cli`]: flags as typed; [`config`]: a run as it is meant; [`commands`]: one module per subcommand, and
//!   the only ones who know the command line. [`text`]: words that people type. [`exit`]: how it all ends.
//!   [`systems`]: which systems can be named.
//! - [`run`]: one run from its first line to its last, by one [`clock`]; [`sim_run`]: the same in the
//!   simulator. [`progress`]: what is told meanwhile.
//! - [`cluster`]: where members run, and the sweep of what a killed harness left; [`links`]: the network
//!   between them; [`events`]: what they say.
//! - [`nemesis`]: faults as they come and go; [`mechanisms`]: how each is done, and proven.
//! - [`load`]: clients, sessions, and the history as it is written. [`applications`]: clients that are
//!   processes of their own. [`wrap`]: commands of the user's own in place of all clients.
//! - [`judge`]: a history or a run folder, judged within bounds; also one that is still being written.
//! - [`store`]: run folders and their locks. [`serve`]: the same in a browser.
//! - [`night`]: many runs, within a budget. [`worlds`]: many worlds of the simulator, on all cores.
//! - [`host`]: this machine, this process and the others.

pub mod applications;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod commands;
pub mod config;
pub mod events;
pub mod exit;
pub mod host;
pub mod judge;
pub mod links;
pub mod load;
pub mod mechanisms;
pub mod nemesis;
pub mod night;
pub mod num;
pub mod progress;
pub mod protocols;
pub mod run;
pub mod serve;
pub mod sim_run;
pub mod store;
pub mod systems;
pub mod text;
pub mod worlds;
pub mod wrap;

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

pub use exit::Exit;

/// The whole command: parses, runs, and maps what came of it to an exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| commands::dispatch(arguments)));
    match outcome {
        Ok(exit) => exit.into(),
        // The panic's message went to stderr already; guards have cleaned up while it unwound.
        Err(_) => Exit::Failed.into(),
    }
}
