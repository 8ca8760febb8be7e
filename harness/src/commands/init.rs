//! `harness init`: files to begin from.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::screen::print;
use crate::cli::InitArgs;
use crate::exit::{Exit, Failure};
use crate::text::suggest;

/// What there is to begin with.
struct Beginning {
    /// Its name on the command line.
    name: &'static str,
    /// Its files, by their usual names. The first is the one that can be given another.
    files: &'static [(&'static str, &'static str)],
    /// What to do with them.
    next: &'static str,
}

const ALL: [Beginning; 7] = [
    Beginning {
        name: "night",
        files: &[("nightly.toml", include_str!("../../docs/nightly.toml"))],
        next: "what it would run: harness night FILE --dry-run\nthe night itself:  harness night FILE",
    },
    Beginning {
        name: "etcd",
        files: &[
            ("etcd.toml", include_str!("../../docs/systems/etcd.toml")),
            ("compose.yaml", include_str!("../../docs/systems/etcd_compose.yaml")),
            ("etcd_client.py", include_str!("../../docs/systems/etcd_client.py")),
        ],
        next: "the client alone:    harness client check --system FILE\n\
               in containers:       harness run --system ./compose.yaml \
               --nemesis partition-leader,kill-leader --time-limit 60s\n\
               as local processes:  harness run --system ./FILE --nodes 3 \
               --nemesis partition-leader,kill-leader --time-limit 60s\n\n\
               Containers need an image of etcd (--pull missing has it pulled, or\n\
               ETCD_IMAGE=NAME of one that is there), processes etcd, and the client python3.",
    },
    Beginning {
        name: "nats",
        files: &[
            ("nats.toml", include_str!("../../docs/systems/nats.toml")),
            ("compose.yaml", include_str!("../../docs/systems/nats_compose.yaml")),
            ("nats_client.py", include_str!("../../docs/systems/nats_client.py")),
        ],
        next: "the client alone:    harness client check --system FILE --greeting 'INFO {}\\r\\n'\n\
               in containers:       harness run --system ./compose.yaml --workload set --rate 100 \
               --nemesis kill-one,partition-one --time-limit 90s\n\
               as local processes:  harness run --system ./FILE --nodes 3 --workload set --rate 100 \
               --nemesis kill-one,partition-one --time-limit 90s\n\n\
               Containers need an image of NATS (--pull missing has it pulled, or NATS_IMAGE=NAME of one\n\
               that is there), processes nats-server, and the client python3.",
    },
    Beginning {
        name: "postgres",
        files: &[
            ("compose.yaml", include_str!("../../docs/systems/postgres_compose.yaml")),
            ("postgres.sh", include_str!("../../docs/systems/postgres.sh")),
            ("postgres.Dockerfile", include_str!("../../docs/systems/postgres.Dockerfile")),
            ("postgres_client.py", include_str!("../../docs/systems/postgres_client.py")),
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
    },
    Beginning {
        name: "redis",
        files: &[
            ("redis.toml", include_str!("../../docs/systems/redis.toml")),
            ("compose.yaml", include_str!("../../docs/systems/compose.yaml")),
            ("redis.sh", include_str!("../../docs/systems/redis.sh")),
            ("redis_client.py", include_str!("../../docs/systems/redis_client.py")),
        ],
        next: "the client alone:    harness client check --system FILE\n\
               in containers:       harness run --system ./compose.yaml --workload set \
               --nemesis partition-leader,kill-leader --time-limit 60s\n\
               as local processes:  harness run --system ./FILE --nodes 3 --workload set \
               --nemesis partition-leader,kill-leader --time-limit 60s\n\n\
               Containers need an image of Redis (--pull missing has it pulled, or REDIS_IMAGE=NAME of one\n\
               that is there), processes redis-server and redis-sentinel, and the client python3.",
    },
    Beginning {
        name: "system",
        files: &[
            ("system.toml", include_str!("../../docs/systems/system.toml")),
            ("client.py", include_str!("../../docs/systems/client.py")),
        ],
        next: "write your own commands into both, and then\n\
               the client alone:  harness client check --system FILE\n\
               a run:             harness run --system ./FILE --nodes 3 \
               --nemesis partition-one,kill-one,pause-one",
    },
    Beginning {
        name: "zookeeper",
        files: &[
            ("compose.yaml", include_str!("../../docs/systems/zookeeper_compose.yaml")),
            ("zookeeper_client.py", include_str!("../../docs/systems/zookeeper_client.py")),
        ],
        next: "the client alone:  harness client check --system FILE --greeting \
               '\\x00\\x00\\x00\\x14\\x00\\x00\\x00\\x00\\x00\\x00u0\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\
               \\x00\\x00\\x00\\x00'\n\
               in containers:     harness run --system ./FILE \
               --nemesis partition-leader,kill-leader --time-limit 60s\n\n\
               Containers need an image of ZooKeeper (--pull missing has it pulled, or\n\
               ZOOKEEPER_IMAGE=NAME of one that is there), and the client python3.\n\
               Without files of one's own, and as local processes: harness run --system zookeeper",
    },
];

/// Writes them, unless something is there.
pub fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let Some(beginning) = ALL.into_iter().find(|beginning| beginning.name == args.what) else {
        let names = ALL.map(|beginning| beginning.name);
        return Err(Failure::Usage(suggest::unknown("file", &args.what, &names, "`harness init` writes:")));
    };
    let first = beginning.files[0].0;
    let path = args.file.clone().unwrap_or_else(|| PathBuf::from(first));
    let beside = |name: &str| path.parent().unwrap_or(Path::new("")).join(name);
    let files: Vec<(PathBuf, &str)> = beginning
        .files
        .iter()
        .map(|(name, text)| (if *name == first { path.clone() } else { beside(name) }, *text))
        .collect();
    if let Some((taken, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(Failure::usage(format!(
            "{} exists already, and stays as it is: name another",
            taken.display()
        )));
    }
    let mut names = Vec::new();
    for (path, text) in &files {
        write(path, text)?;
        names.push(path.display().to_string());
    }
    let next = beginning.next.replace("FILE", &names[0]).replace("././", "./");
    print(&format!("written: {}\n\n{next}\n", names.join(" ")))?;
    Ok(Exit::Done)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let name = path.display();
    let mut file = match OpenOptions::new().create_new(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Failure::usage(format!("{name} exists already, and stays as it is: name another")));
        }
        Err(error) => return Err(Failure::usage(format!("{name}: {error}"))),
        Ok(file) => file,
    };
    file.write_all(text.as_bytes()).with_context(|| format!("writing {name}"))?;
    Ok(())
}
