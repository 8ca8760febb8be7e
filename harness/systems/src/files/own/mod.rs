//! Files to begin a system of one's own from.

use super::Files;

pub(super) const FILES: Files = Files {
    name: "system",
    about: None,
    files: &[("system.toml", include_str!("system.toml")), ("client.py", include_str!("client.py"))],
    next: "write your own commands into both, and then\n\
           the client alone:  harness client check --system FILE\n\
           a run:             harness run --system ./FILE --nodes 3 \
           --nemesis partition-one,kill-one,pause-one",
};
