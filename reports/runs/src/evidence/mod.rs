//! What was seen of the members and of the bench, beside the history: the files' formats, and what each
//! member was at any moment. Nothing here judges.
//!
//! - `observed.json`: [`observed`], with [`events`] of members, [`notices`] to applications and the harness's
//!   own [`lag`]; from the lag the machine's [`stalls`].
//! - `tests.jsonl`: [`template`], with [`assertions`].
//! - Who spoke and where: [`member`], [`cluster_kind`]. What each was, and when: [`views`], [`spans`].

pub mod assertions;
pub mod cluster_kind;
pub mod events;
pub mod lag;
pub mod member;
pub mod notices;
pub mod observed;
pub mod spans;
pub mod stalls;
pub mod template;
pub mod views;
