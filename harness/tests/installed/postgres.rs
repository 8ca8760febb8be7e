//! PostgreSQL with Patroni, by the files that `harness init postgres` writes, in containers of images that
//! are made here: one of what Debian's packages install, and the bundled member as the store of who leads.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::PoisonError;

use super::image::Image;
use super::{MACHINE, check, json, text};

/// What makes the image.
const PACKAGES: [&str; 3] = ["postgresql-15", "patroni", "python3-kazoo"];

/// By this seed the primary is cut off from its replicas first, and killed while it is.
const FAULTS: [&str; 12] = [
    "--nemesis",
    "partition-leader,kill-leader",
    "--overlap",
    "--interval",
    "24s",
    "--time-limit",
    "45s",
    "--seed",
    "488051702",
    "--rate",
    "300",
    "--system",
];

struct Images {
    postgres: Image,
    zookeeper: Image,
}

impl Images {
    fn made() -> Option<Self> {
        let postgres = Image::of_packages("harness-test/postgres:installed", &PACKAGES)?;
        let zookeeper = Image::of_a_member("harness-test/store:installed")?;
        Some(Self { postgres, zookeeper })
    }

    fn harness(&self, folder: &Path, synchronous: &str, arguments: &[&str]) -> Output {
        let serializable = ("ISOLATION", "serializable");
        self.harness_with(folder, &[("SYNCHRONOUS", synchronous), serializable], arguments)
    }

    fn harness_with(&self, folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_harness"))
            .args(arguments)
            .current_dir(folder)
            .env("POSTGRES_IMAGE", self.postgres.0)
            .env("ZOOKEEPER_IMAGE", self.zookeeper.0)
            .envs(environment.iter().copied())
            .output()
            .expect("the harness starts")
    }

    /// A folder with the files. A primary that is gone is replaced sooner than newer Patronis take, so that a
    /// test is short.
    fn begun(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let written = self.harness(folder.path(), "false", &["init", "postgres"]);
        assert_eq!(written.status.code(), Some(0), "{}", text(&written));
        let file = folder.path().join("postgres.sh");
        let script = std::fs::read_to_string(&file).expect("a file");
        assert!(script.contains("ttl: 20\n"), "{script}");
        std::fs::write(&file, script.replace("ttl: 20\n", "ttl: 5\n")).expect("written");
        folder
    }
}

#[test]
fn postgres_loses_what_only_a_primary_had_that_was_cut_off_and_killed() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(images) = Images::made() else { return };
    let folder = images.begun();
    let run = [&["run", "--workload", "set"], &FAULTS[..], &["./compose.yaml"]].concat();
    let output = images.harness(folder.path(), "false", &run);
    // A machine too busy to show anything else shows this all the same.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    assert_eq!(results["faults"]["verified"], 2, "{}", results["faults"]);
    let durability = check(&results, "durability");
    assert_eq!(durability["evidence"]["kept"], false, "{durability}");
    assert!(!results["elections"].as_array().expect("elections").is_empty(), "{}", text(&output));
}

#[test]
fn postgres_in_strict_synchronous_mode_keeps_what_it_acknowledged() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(images) = Images::made() else { return };
    let folder = images.begun();
    let promise = ["--promise", "linearizable-updates"];
    let run = [&["run", "--workload", "set"], &promise[..], &FAULTS[..], &["./compose.yaml"]].concat();
    let output = images.harness(folder.path(), "true", &run);
    // Nobody can commit while the primary is cut off, so the load was too weak for a verdict.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    assert_eq!(results["faults"]["verified"], 2, "{}", results["faults"]);
    for name in ["durability", "convergence"] {
        assert_eq!(check(&results, name)["verdict"], "valid", "{name}: {}", text(&output));
    }
}

/// The keys are made by whoever takes writes, which need not be the first member.
#[test]
fn postgres_serves_a_register_without_faults() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(images) = Images::made() else { return };
    let folder = images.begun();
    let run = ["run", "--system", "./compose.yaml", "--promise", "linearizable-updates"];
    let load = ["--nemesis", "none", "--time-limit", "8s", "--rate", "100"];
    let output = images.harness(folder.path(), "true", &[&run[..], &load].concat());
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    for name in ["version-order", "durability", "convergence"] {
        assert_eq!(check(&results, name)["verdict"], "valid", "{name}: {}", text(&output));
    }
}

/// What each level of isolation lets through, by PostgreSQL's own manual: repeatable read is snapshot
/// isolation, and read committed loses updates.
#[test]
fn postgres_shows_write_skew_below_serializable_and_lost_updates_below_repeatable_read() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(images) = Images::made() else { return };
    let folder = images.begun();
    // Two of three workers stand at a standby and are refused there.
    let load = ["--keys", "3", "--rate", "1200", "--concurrency", "30", "--time-limit", "12s"];
    let run = ["run", "--system", "./compose.yaml", "--workload", "txn", "--promise", "serializable"];
    for (isolation, anomaly, holds) in [
        ("serializable", None, "serializable"),
        ("repeatable read", Some("G2-item"), "snapshot-isolation"),
        ("read committed", Some("lost-update"), "read-committed"),
    ] {
        let level = [("ISOLATION", isolation), ("SYNCHRONOUS", "false")];
        let output = images.harness_with(folder.path(), &level, &[&run[..], &load].concat());
        let results = json(folder.path(), "results.json");
        let found = check(&results, "serializable");
        match anomaly {
            Some(anomaly) => {
                assert_eq!(output.status.code(), Some(1), "{isolation}: {}", text(&output));
                assert!(found["evidence"]["anomalies"][anomaly].is_u64(), "{isolation}: {found}");
                assert_eq!(found["counterexample"]["rechecked"], true, "{isolation}: {found}");
            }
            None => assert_eq!(found["verdict"], "valid", "{isolation}: {}", text(&output)),
        }
        let again = ["check", "--model", "list-append", "--condition", holds, "runs/latest/history.jsonl"];
        let weaker = images.harness(folder.path(), "false", &again);
        assert_eq!(weaker.status.code(), Some(0), "{isolation} as {holds}: {}", text(&weaker));
    }
}
