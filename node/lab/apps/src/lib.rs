//! Applications over the recipes, in a model of an ensemble.
//!
//! A [`world`](mod@world) has some applications, each a recipe with its session, and an
//! [`ensemble`](mod@ensemble) that is one tree. Everything between them takes its time: requests are served,
//! answers and events are heard, when the world says so. Connections break with requests under way,
//! applications are stopped and go on, sessions end, znodes and resources are deleted by somebody.
//!
//! After every event the world looks at the rules: at most as many hold as may, tokens grow, one is told of a
//! change and not all. At the end everything is let go well, and as many must hold as may, with no znode left
//! of those who went.
//!
//! [`explore`](mod@explore) looks at all that can happen within a budget; [`drawn`] draws from a seed. The
//! [`mutants`] show that the rules bite, in a [`hunt`](mod@hunt).

pub mod application;
pub mod drawn;
pub mod elections;
pub mod ensemble;
pub mod explore;
pub mod hunt;
pub mod mutants;
pub mod standbys;
pub mod world;
