//! Redis with Sentinel by files: replication that acknowledges before any replica has what was written.

use super::Files;

pub(super) const FILES: Files = Files {
    name: "redis",
    about: Some(
        "Redis with Sentinel, by the files of `harness init redis`: what was acknowledged may be \
         lost by a failover, and is counted",
    ),
    files: &[
        ("redis.toml", include_str!("redis.toml")),
        ("compose.yaml", include_str!("compose.yaml")),
        ("redis.sh", include_str!("redis.sh")),
        ("redis_client.py", include_str!("redis_client.py")),
    ],
    next: "the client alone:    harness client check --system FILE\n\
           in containers:       harness run --system ./compose.yaml --workload set \
           --nemesis partition-leader,kill-leader --time-limit 60s\n\
           as local processes:  harness run --system ./FILE --nodes 3 --workload set \
           --nemesis partition-leader,kill-leader --time-limit 60s\n\n\
           Containers need an image of Redis (--pull missing has it pulled, or REDIS_IMAGE=NAME of one\n\
           that is there), processes redis-server, and the client python3.",
};
