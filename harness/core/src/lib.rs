//! The bench as pure machines: they decide, and drivers carry out what they decide.
//!
//! A machine knows no clock, no socket and no thread. Every call says the moment at which it is made, in nanoseconds since
//! the start of the run, and every answer is a value. So one machine serves local processes, containers and the virtual
//! world, and its rules are held by scripts in virtual time (`tests`).
//!
//! - [`load`]: what clients do: which of them connects where, who takes the next operation, what is written off.

pub mod load;
