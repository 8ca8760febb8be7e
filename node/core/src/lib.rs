//! One member of a coordination ensemble as a pure state machine.
//!
//! This crate has no sockets, no files, no clock and no threads. A [`Member`] is given one fact at a time
//! ([`Input`](io::Input)) with the time at which it became known, and answers with a list of intents
//! ([`Effect`](io::Effect)). The same facts at the same times give the same intents in the same order, so the
//! same code runs in a process, in a simulator and under exhaustive exploration. [`io`] says what a driver
//! owes it.
//!
//! A member is always in one of three roles:
//!
//! - *looking*: it holds an election (`election`);
//! - *following*: it takes over a leader's history and then its proposals (`learner`);
//! - *leading*: it gathers a quorum, makes its history the epoch's, and proposes (`leader`).
//!
//! What outlives a role stands in `base`: the journal of logged transactions, the tree of committed ones, the
//! clients and the store's queue. The protocol is ZAB as Apache ZooKeeper speaks it (Junqueira, Reed,
//! Serafini: "Zab: High-performance broadcast for primary-backup systems", DSN 2011) with the repairs that
//! its bugs taught; each stands with its issue number where it matters.
//!
//! The files stand on floors. Each uses files of lower floors only; the files of one folder use their
//! `mod.rs` as well.
//!
//! | floor | files |
//! |---|---|
//! | what a driver drives | `machine` |
//! | one member, whatever its role | `member` |
//! | the roles that take part in an epoch | `leader`, `learner` |
//! | what outlives a role | `base` |
//! | the clients of this member | `clients` |
//! | elections, the judging of requests, sessions of this member alone | `election`, `prep`, `local` |
//! | who takes part, and who is alive | `ensemble`, `sessions`, `silence` |
//! | what goes in and out, and what is decided by rule | [`io`], `zab`, `config`, `divergence` |
//! | ground: what is stored | [`tree`], `journal`, `digests`, [`commit_times`] |
//! | ground: what all refer to | [`quorum`], `phase`, `rules`, `access`, `fingerprint` |

mod access;
mod base;
mod clients;
pub mod commit_times;
mod config;
mod digests;
mod divergence;
mod election;
mod ensemble;
mod fingerprint;
pub mod io;
mod journal;
mod leader;
mod learner;
mod local;
mod machine;
mod member;
mod phase;
mod prep;
pub mod quorum;
mod rules;
mod sessions;
mod silence;
pub mod tree;
mod zab;

pub use config::{Config, SnapCount, TICK};
pub use journal::JOURNAL_ENTRIES;
pub use leader::LearnerView;
pub use machine::{Factory, Machine, Maker};
pub use member::{Member, MemberView, Role, Status};
pub use phase::Phase;
pub use rules::{CONTAINER_CHECK, ClientRules, Reconfiguration};
pub use zab::{Acknowledged, Protocol, Rules, Zab};
