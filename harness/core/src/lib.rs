//! The bench, as far as it decides: pure machines and values, and drivers carry out what they decide.
//!
//! A machine knows no clock, no socket and no thread. Every call says the moment at which it is made, in
//! nanoseconds since the start of the run, and every answer is a value. So one machine serves local
//! processes, containers and the virtual world, and its rules are held by scripts in virtual time (`tests`).
//!
//! - [`schedule`]: which faults, when: a function of the seed. [`fault`]: the catalogue of faults, one file
//!   each, whom they hit and what follows from all that are in force. [`mechanism`]: how they are done, one
//!   file each. [`cut`]: what a network lets through. [`condition`]: what a world is told to be like.
//!   [`parameter`]: what may be said of a fault.
//! - [`run`]: what comes after what, from the first operation to the last reads, and what ends a run early.
//! - [`nemeses`]: what is broken, proven and healed, and when; [`proof`]: what a look at the ensemble showed.
//! - [`load`]: what clients do: which of them connects where, who takes the next operation, what is written
//!   off.
//! - [`virtual_ensemble`]: an ensemble in virtual time, as a run drives it.

pub mod composer;
pub mod condition;
pub mod cut;
pub mod fault;
pub mod load;
pub mod mechanism;
pub mod nemeses;
pub mod parameter;
pub mod proof;
pub mod run;
pub mod schedule;
pub mod seed;
pub mod virtual_ensemble;
