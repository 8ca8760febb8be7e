//! The three renderings of invented runs.

#[path = "../../examples/invented/mod.rs"]
mod invented;
mod page;
mod screen;
mod structure;
mod xml;
