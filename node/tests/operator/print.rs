//! `node log` and `node snapshot`: what they print, and what they say of a file that is not whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use node_client::ConnectOptions;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{NODE, Node, PATIENCE};

/// The zxid, version and value of a snapshot's digest, and the seal behind them.
const DIGEST_LEN: usize = 20 + 13;

/// A directory in which a member wrote some nodes and a snapshot.
fn written() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let mut node = Node::spawn(Command::new(NODE), dir.path(), "127.0.0.1:0", &["--snap-count", "5"]);
    let addr = node.event("serving")["client"].as_str().expect("an address").to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let options = ConnectOptions { deadline: PATIENCE, ..ConnectOptions::default() };
        let client = node_client::connect(addr, options).await.expect("connected");
        for n in 0..8 {
            client.create(format!("/n{n}"), "some data", 0).await.expect("created");
        }
    });
    kill_process(Pid::from_child(&node.child), Signal::TERM).expect("it lives");
    assert!(node.child.wait().expect("ended").success());
    dir
}

/// The first file of that kind.
fn file(dir: &Path, kind: &str) -> PathBuf {
    let entries = fs::read_dir(dir.join("version-2")).expect("a directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let is_kind =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(kind));
    paths.into_iter().find(is_kind).expect(kind)
}

/// The last snapshot; the first is of an empty tree.
fn newest_snapshot(dir: &Path) -> PathBuf {
    let entries = fs::read_dir(dir.join("version-2")).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let newest =
        names.filter(|name| name.starts_with("snapshot.")).max_by_key(|name| (name.len(), name.clone()));
    dir.join("version-2").join(newest.expect("a snapshot"))
}

fn node(args: &[&str], path: &Path) -> Output {
    Command::new(NODE).args(args).arg(path).output().expect("started")
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_log_is_printed_as_text_and_as_json() {
    let dir = written();
    let log = file(dir.path(), "log.");
    let text = node(&["log"], &log);
    assert!(text.status.success(), "{}", stderr(&text));
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.lines().next().is_some_and(|line| line.contains(" CreateSession ")), "{text}");
    assert!(text.contains(" Create /n0 9 bytes \"some data\" acl world:anyone:cdrwa"), "{text}");

    let json = node(&["log", "--json"], &log);
    let lines = lines(&json);
    assert_eq!(lines.len(), text.lines().count() + 1, "and one for the end");
    let create = lines.iter().find(|line| line["path"] == "/n1").expect("it was created");
    assert_eq!((&create["type"], &create["data"]), (&"Create".into(), &"some data".into()));
    assert_eq!(lines.last().expect("an end")["end"], "sound", "zeros behind the last record are its end");
}

#[test]
fn a_snapshot_is_printed_as_text_and_as_json() {
    let dir = written();
    let snapshot = newest_snapshot(dir.path());
    let text = node(&["snapshot"], &snapshot);
    assert!(text.status.success(), "{}", stderr(&text));
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.contains("\n/n0 9 bytes \"some data\" acl "), "{text}");
    let lines = lines(&node(&["snapshot", "--json"], &snapshot));
    assert!(lines.iter().any(|line| line["path"] == "/" && line["version"] == 0), "{lines:?}");
    assert_eq!(lines.last().expect("an end")["end"], "sound");
}

#[test]
fn of_a_damaged_file_what_is_sound_is_printed_and_the_place_is_told() {
    let dir = written();
    let log = file(dir.path(), "log.");
    let whole = fs::read(&log).expect("read");
    let lines_of_whole = lines(&node(&["log", "--json"], &log));
    let third = usize::try_from(lines_of_whole[2]["offset"].as_u64().expect("an offset")).expect("small");
    let fourth = usize::try_from(lines_of_whole[3]["offset"].as_u64().expect("an offset")).expect("small");
    let mut flipped = whole.clone();
    flipped[third + 20] ^= 1;
    let mut gap = whole[..third].to_vec();
    gap.resize(third + 200_000, 0);
    gap.push(7);
    let mut length = whole.clone();
    length[third + 8..third + 12].copy_from_slice(&i32::MAX.to_be_bytes());
    let mut mark = whole.clone();
    mark[fourth - 1] = b'C';
    let table = [
        (whole[..fourth - 3].to_vec(), 3, "the file ends inside of a record"),
        (whole[..third + 5].to_vec(), 3, "the file ends inside of a record"),
        (flipped, 3, "a record does not match its checksum"),
        (gap, 3, "a gap of zeros has data behind it"),
        (length, 3, "a record says that it has 2147483647 bytes"),
        (mark, 3, "a record lacks its end mark"),
        (b"ZKSN and more of it".to_vec(), 1, "this is no transaction log"),
        (Vec::new(), 1, "this is no transaction log"),
    ];
    let path = dir.path().join("damaged");
    for (bytes, count, reason) in table {
        fs::write(&path, bytes).expect("written");
        let output = node(&["log", "--json"], &path);
        assert_eq!(output.status.code(), Some(1), "{reason}");
        assert!(stderr(&output).contains(reason), "{reason}: {}", stderr(&output));
        let lines = lines(&output);
        assert_eq!(lines.len(), count, "{reason}");
        let end = lines.last().expect("an end");
        let expected = if count == 1 { 0 } else { third };
        assert_eq!((&end["end"], &end["offset"]), (&"damaged".into(), &expected.into()), "{reason}");
    }
}

#[test]
fn every_cut_of_a_snapshot_and_every_flipped_byte_is_noticed() {
    let dir = written();
    let whole = fs::read(newest_snapshot(dir.path())).expect("read");
    let path = dir.path().join("damaged");
    let step = (whole.len() / 40).max(1);
    // A file that ends before its digest is whole: ZooKeeper wrote such before 3.6.
    let without_digest = whole.len() - DIGEST_LEN;
    for at in (0..whole.len()).step_by(step) {
        fs::write(&path, &whole[..at]).expect("written");
        let cut = node(&["snapshot", "--json"], &path);
        let code = if at == without_digest { 0 } else { 1 };
        assert_eq!(cut.status.code(), Some(code), "cut at {at} of {}", whole.len());
        let end = lines(&cut).pop().expect("an end");
        assert!(end["offset"].as_u64().is_some_and(|offset| offset <= at as u64), "{end}");
        // The third number of the header means nothing, but the checksum is of it too.
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        fs::write(&path, flipped).expect("written");
        assert_eq!(node(&["snapshot"], &path).status.code(), Some(1), "flipped at {at}");
    }
    assert_eq!(node(&["snapshot"], Path::new("/nonexistent")).status.code(), Some(1));
}

#[test]
fn the_keys_are_listed_with_what_becomes_of_them() {
    let output = Command::new(NODE).arg("keys").output().expect("started");
    let text = String::from_utf8(output.stdout).expect("text");
    for part in [
        "\nObeyed:\n",
        "\nAccepted without effect:\n",
        "\nRefused:\n",
        "  tickTime\n",
        "  ssl.keyStore.location\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
