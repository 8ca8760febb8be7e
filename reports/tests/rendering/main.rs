//! The renderings of invented runs and of invented nights.

#[path = "../../examples/invented/mod.rs"]
mod invented;
#[path = "../../examples/invented_nights/mod.rs"]
mod invented_nights;
mod metrics;
mod night_files;
mod night_page;
mod page;
mod screen;
mod structure;
mod xml;
