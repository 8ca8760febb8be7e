//! What is said of Apache ZooKeeper's members alone: `--set tick=1s`.

use std::time::Duration;

use harness_systems::setting::Setting;
use harness_systems::system::Wanted;
use runs::span;

/// Apache ZooKeeper's usual 2 s would have every leader fault end before it is noticed.
const USUAL_TICK: &str = "500ms";
/// The same.
const USUAL: Duration = Duration::from_millis(500);
/// Below that a virtual machine that clears its memory is given up.
const SHORTEST: Duration = Duration::from_millis(50);

const TICK: &str = "tick";
const CLASS_PATH: &str = "classpath";

/// All of them.
pub(super) static ALL: [Setting; 2] = [
    Setting {
        name: TICK,
        value: "TIME",
        about: "the tick of Apache ZooKeeper's members, who give each other up after two of them",
        usual: Some(USUAL_TICK),
        names_code: false,
        read: |text| match span::parse(text)? {
            tick if tick >= SHORTEST => Ok(span::show(tick)),
            _ => Err(format!("write at least {}", span::show(SHORTEST))),
        },
    },
    Setting {
        name: CLASS_PATH,
        value: "CLASSPATH",
        about: "Apache ZooKeeper's class path as Java takes it; else it is that of ZOOKEEPER_CLASSPATH, or \
                where Debian's package is",
        usual: None,
        names_code: true,
        read: |text| Ok(text.to_owned()),
    },
];

/// The members' tick.
pub(super) fn tick(wanted: &Wanted) -> Duration {
    wanted.settings.get(TICK).and_then(|text| span::parse(text).ok()).unwrap_or(USUAL)
}

/// The class path, where one was named.
pub(super) fn class_path(wanted: &Wanted) -> Option<&str> {
    wanted.settings.get(CLASS_PATH).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_tick_is_as_it_is_spelled() {
        assert_eq!(span::parse(USUAL_TICK), Ok(USUAL));
    }
}
