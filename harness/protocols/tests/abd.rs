//! The example of a protocol of one's own: worlds of it are linearizable, and its planted bug is found and
//! drawn.

#[path = "../examples/abd.rs"]
mod abd;

use abd::{Abd, BUG, first_broken};
use harness_protocols::entry::Playable;
use harness_protocols::script::Script;

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
    let played = Abd { writes_back: false }.play("abd", &script);
    assert_eq!(played.right, Ok(()), "{}", played.lines.join("\n"));
    let answers: Vec<&str> = played.lines.iter().filter_map(|line| line.split("answers ").nth(1)).collect();
    assert_eq!(answers, ["2: 7", "3: nothing"]);
    assert!(played.svg.contains("answers 7") && played.svg.contains("answers nothing"));
    assert!(
        Abd { writes_back: true }.play("abd", &script).lines.iter().all(|line| !line.contains("answers"))
    );
}
