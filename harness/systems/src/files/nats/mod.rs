//! NATS JetStream by files: a stream with three replicas, and a client of sockets alone.

use super::Files;

pub(super) const FILES: Files = Files {
    name: "nats",
    about: Some(
        "NATS JetStream with three replicas, by the files of `harness init nats`: linearizable updates",
    ),
    files: &[
        ("nats.toml", include_str!("nats.toml")),
        ("compose.yaml", include_str!("compose.yaml")),
        ("nats_client.py", include_str!("nats_client.py")),
    ],
    next: "its client, tried:   harness wrap --system ./FILE --nodes 3 -- \
           harness client check --system FILE\n\
           in containers:       harness run --system ./compose.yaml --workload set --rate 100 \
           --nemesis kill-one,partition-one --time-limit 90s\n\
           as local processes:  harness run --system ./FILE --nodes 3 --workload set --rate 100 \
           --nemesis kill-one,partition-one --time-limit 90s\n\n\
           Containers need an image of NATS (--pull missing has it pulled, or NATS_IMAGE=NAME of one\n\
           that is there), processes nats-server, and the client python3.",
};
