//! What the client promises, with servers of a few lines.

mod drive;
mod fake;
mod keeper;
mod pipeline;
mod secure;
mod storm;
mod watches;
