//! ZooKeeper by files, for containers of one's own: `--system zookeeper` is another thing, and built in.

use super::Files;

pub(super) const FILES: Files = Files {
    name: "zookeeper",
    about: None,
    files: &[
        ("compose.yaml", include_str!("compose.yaml")),
        ("zookeeper_client.py", include_str!("zookeeper_client.py")),
    ],
    next: "the client alone:  harness client check --system FILE --greeting \
           '\\x00\\x00\\x00\\x14\\x00\\x00\\x00\\x00\\x00\\x00u0\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\
           \\x00\\x00\\x00\\x00'\n\
           in containers:     harness run --system ./FILE \
           --nemesis partition-leader,kill-leader --time-limit 60s\n\n\
           Containers need an image of ZooKeeper (--pull missing has it pulled, or\n\
           ZOOKEEPER_IMAGE=NAME of one that is there), and the client python3.\n\
           Without files of one's own, and as local processes: harness run --system zookeeper",
};
