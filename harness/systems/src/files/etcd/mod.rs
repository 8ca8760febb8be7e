//! etcd by files: a store of keys whose revisions are one order, and a client over its JSON gateway.

use super::Files;

pub(super) const FILES: Files = Files {
    name: "etcd",
    about: None,
    files: &[
        ("etcd.toml", include_str!("etcd.toml")),
        ("compose.yaml", include_str!("compose.yaml")),
        ("etcd_client.py", include_str!("etcd_client.py")),
        ("etcd_compact.py", include_str!("etcd_compact.py")),
    ],
    next: "the client alone:    harness client check --system FILE\n\
           in containers:       harness run --system ./compose.yaml \
           --nemesis partition-leader,kill-leader --time-limit 60s\n\
           as local processes:  harness run --system ./FILE --nodes 3 \
           --nemesis partition-leader,kill-leader --time-limit 60s\n\n\
           Containers need an image of etcd (--pull missing has it pulled, or\n\
           ETCD_IMAGE=NAME of one that is there), processes etcd, and the client python3.",
};
