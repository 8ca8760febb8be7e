//! PostgreSQL with Patroni by files: containers alone, and a store of configuration beside them.

use super::Files;

pub(super) const FILES: Files = Files {
    name: "postgres",
    about: Some(
        "PostgreSQL with Patroni in containers, by the files of `harness init postgres`: what it promises \
         is set by its replication",
    ),
    files: &[
        ("compose.yaml", include_str!("compose.yaml")),
        ("postgres.sh", include_str!("postgres.sh")),
        ("postgres.Dockerfile", include_str!("postgres.Dockerfile")),
        ("postgres_client.py", include_str!("postgres_client.py")),
    ],
    next: "the client alone:  harness client check --system FILE \
           --greeting 'R\\x00\\x00\\x00\\x08\\x00\\x00\\x00\\x00Z\\x00\\x00\\x00\\x05I'\n\
           its image:         docker build --file postgres.Dockerfile --tag postgres-patroni .\n\
           in containers:     harness run --system ./FILE --workload set --pull missing \
           --nemesis partition-leader,kill-leader --overlap --time-limit 100s --seed 488051702\n\n\
           Containers need an image with PostgreSQL and Patroni (the one above, or\n\
           POSTGRES_IMAGE=NAME) and one of ZooKeeper (--pull missing has it pulled, or\n\
           ZOOKEEPER_IMAGE=NAME of one that is there), and the client python3.\n\
           SYNCHRONOUS=true before the command has commits wait for a replica.",
};
