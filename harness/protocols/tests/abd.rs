//! The example of a protocol of one's own: worlds of it are linearizable, and its planted bug is found and
//! drawn.

#[path = "../examples/abd.rs"]
mod abd;

use abd::{Abd, BUG, TITLE, first_broken};
use harness_protocols::entry::Playable;
use harness_protocols::script::Script;

/// What stands in the guide.
const PICTURE: &str = include_str!("../examples/abd.svg");

#[test]
fn a_register_by_majorities_is_linearizable_in_every_world() {
    assert_eq!(first_broken(&Abd { writes_back: true }, 150), None);
}

#[test]
fn a_read_that_does_not_write_back_is_found() {
    let (seed, broken) = first_broken(&Abd { writes_back: false }, 2_000).expect("a world");
    assert!(broken.starts_with("linearizable"), "{seed}: {broken}");
}

#[test]
fn its_bug_is_a_script_that_is_drawn() {
    let script = Script::read(BUG).expect("a script");
    let played = Abd { writes_back: false }.play(TITLE, &script);
    assert_eq!(played.right, Ok(()), "{}", played.lines.join("\n"));
    assert!(played.svg == PICTURE, "in harness/protocols/examples: cargo run --example abd -- bug");
    let otherwise =
        Abd { writes_back: true }.play(TITLE, &script).right.expect_err("it waits for a majority");
    assert_eq!(otherwise.to_string(), "line 10: s2 has answered 2: nothing");
}
