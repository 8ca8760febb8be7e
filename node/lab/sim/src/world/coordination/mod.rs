//! What concerns several owners at once: methods of [`World`](super::World) alone, a file for each subject.
//!
//! They hand owners to each other and keep nothing. [`driver`] is the middle of it: an input reaches a
//! member, and its effects reach their owners. [`stages`] is the course of a world: chaos, then healing, then
//! what must hold afterwards; [`minority`]: and what must hold before all are back.

mod applications;
mod appointments;
mod clients;
mod disks;
mod driver;
mod election;
mod machine;
mod membership;
mod minority;
mod nemesis;
mod progress;
mod stages;
mod traps;
mod wires;
mod work;
