//! Every input of every corpus, seeds and what was found: no promise is broken by any.

use node_fuzz::{TARGETS, corpus, target};

fn run(name: &str) {
    let target = target(name).expect("a target has its test");
    let folder = std::fs::read_dir(corpus(name)).expect("a target has its corpus");
    let mut count = 0;
    for entry in folder {
        let path = entry.expect("a readable entry").path();
        let input = std::fs::read(&path).expect("a readable input");
        assert!(input.len() <= node_fuzz::MAX_INPUT, "{} is short", path.display());
        println!("{}", path.display());
        (target.run)(&input);
        count += 1;
    }
    assert!(count > 0, "{name} has inputs");
}

macro_rules! corpora {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            if target(stringify!($name)).is_some() || cfg!(feature = "config") {
                run(stringify!($name));
            }
        })*

        #[test]
        #[cfg(feature = "config")]
        fn every_target_has_its_test() {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

corpora! {
    requests replies session packets stream peers election
    transactions log snapshot directory config digest jaas jks
}
