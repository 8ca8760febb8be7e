//! A system of the user's own, from its file to the verdict: members, a client that speaks lines, and clients
//! that misbehave.

mod begun;
mod faults;
mod locks;
mod stopped;
mod transactions;
mod watches;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const MEMBER: &str = include_str!("tiny.py");
const CLIENT: &str = include_str!("tiny_client.py");

/// How long what was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder with the system's file, its members' program and its client's.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("tiny.py"), MEMBER).expect("written");
        fs::write(folder.path().join("tiny_client.py"), CLIENT).expect("written");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file of a system whose members get another flag, and whose client has this conduct.
    fn system(&self, flag: &str, conduct: &str, more: &str) -> String {
        let name = format!("tiny{flag}-{conduct}");
        let text = format!(
            "name = \"tiny\"\n[member]\n\
             command = [\"sh\", \"-c\", \"exec python3 tiny.py {{client.port}} {{listen.0.port}} \
             {{folder}}/{name}.json $(test {{id}} = 1 && echo 1 || echo 0) {{others:{{dial.0}}}} {flag}\"]\n\
             peers = 1\nready = {{ send = \"ping\\n\", expect = \"pong\" }}\n{more}\n\
             [client]\ncommand = [\"python3\", \"tiny_client.py\", \"{conduct}\"]\n\
             [promises]\nset = {{ promise = \"nothing\", source = \"tiny.py\" }}\n"
        );
        fs::write(self.path().join(format!("{name}.toml")), text).expect("written");
        format!("./{name}.toml")
    }

    fn harness(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_harness"))
            .args(arguments)
            .current_dir(self.path())
            .output()
            .expect("the harness starts")
    }

    fn run(&self, system: &str, more: &[&str]) -> Output {
        let usual = ["run", "--system", system, "--nodes", "3", "--rate", "200", "--concurrency", "6"];
        self.harness(&[&usual[..], more].concat())
    }

    /// The folder of the last run.
    fn latest(&self) -> PathBuf {
        self.path().join("runs/latest")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ended(output: &Output, status: i32) {
    let (told, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{told}\n{said}");
}

#[test]
fn a_sound_system_is_valid_under_faults_that_need_no_leader() {
    let folder = Folder::new();
    let system = folder.system("", "sound", "");
    let faults = ["--nemesis", "kill-one,partition-one", "--interval", "5s", "--time-limit", "12s"];
    let output = folder.run(&system, &faults);
    ended(&output, 0);
    let told = text(&output.stdout);
    assert!(told.contains("2 of 2 verified"), "{told}");
    assert!(!text(&output.stderr).contains("no leader"), "nobody is asked who leads");
    assert!(folder.latest().join("clients/1.log").exists(), "what clients write is kept");
}

#[test]
fn a_file_without_a_client_is_for_a_test_of_ones_own() {
    let folder = Folder::new();
    let system = folder.system("", "sound", "");
    let file = folder.path().join(&system);
    let written = fs::read_to_string(&file).expect("a file");
    let (members, promises) = (written.split("[client]").next(), written.find("[promises]"));
    let without = format!("{}{}", members.unwrap_or_default(), &written[promises.expect("promises")..]);
    fs::write(&file, without).expect("written");
    let refused = folder.run(&system, &["--time-limit", "4s"]);
    ended(&refused, 254);
    assert!(text(&refused.stderr).contains("harness wrap"), "{}", text(&refused.stderr));
    let script = "until grep -q verified-healed $HARNESS_FOLDER/faults.jsonl; do sleep 0.05; done";
    let usual = ["wrap", "--system", &system, "--nodes", "3", "--nemesis", "kill-one", "--interval", "5s"];
    ended(&folder.harness(&[&usual[..], &["--", "sh", "-c", script]].concat()), 0);
}

#[test]
fn what_says_how_a_system_is_set_up_is_kept_and_must_be_the_same_for_a_replay() {
    let folder = Folder::new();
    let system = folder.system("", "sound", "");
    let file = folder.path().join(&system);
    let written = fs::read_to_string(&file).expect("a file");
    fs::write(&file, format!("variables = [\"TINY_MODE\", \"TINY_UNSET\"]\n{written}")).expect("written");
    let set = |arguments: &[&str], mode: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(folder.path()).env("TINY_MODE", mode);
        command.output().expect("the harness starts")
    };
    let run = ["run", "--system", &system, "--nodes", "3", "--rate", "200", "--time-limit", "3s"];
    let made = set(&run, "two words");
    ended(&made, 0);
    assert!(text(&made.stdout).contains("TINY_MODE='two words' "), "{}", text(&made.stdout));
    let replay = ["replay", "runs/latest", "--system", &system];
    let other = set(&replay, "one");
    ended(&other, 254);
    assert!(text(&other.stderr).contains("TINY_MODE='two words'"), "{}", text(&other.stderr));
    ended(&set(&replay, "two words"), 0);
    ended(&set(&run, "\u{fc}"), 254);
}

#[test]
fn members_that_keep_their_own_values_are_convicted() {
    let folder = Folder::new();
    let system = folder.system("--apart", "sound", "");
    let short = ["--time-limit", "4s"];
    ended(&folder.run(&system, &short), 1);
}

#[test]
fn members_without_an_environment_are_cut_off_and_found_when_the_harness_was_killed() {
    let folder = Folder::new();
    let system = folder.system("", "sound", "");
    let file = folder.path().join(&system);
    let text_of_file = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text_of_file.replace("exec python3", "exec env -i PATH=$PATH python3"))
        .expect("written");
    let cut = folder.run(&system, &["--nemesis", "partition-one", "--interval", "4s", "--time-limit", "6s"]);
    ended(&cut, 0);
    let mut killed = Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(["run", "--system", &system, "--nodes", "3", "--time-limit", "60s", "--name", "killed"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the harness starts");
    let words = BufReader::new(killed.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(words.into_iter().any(|line| line.contains("all members serve")), "they serve");
    killed.kill().expect("killed");
    killed.wait().expect("ended");
    let clean = folder.harness(&["clean"]);
    ended(&clean, 0);
    nothing_runs_in(folder.path());
}

#[test]
fn what_is_not_promised_is_measured_and_a_violation_when_it_is_asked_for() {
    let folder = Folder::new();
    let system = folder.system("--forgets", "sound", "");
    let short = ["--time-limit", "4s"];
    let set = folder.run(&system, &[&short[..], &["--workload", "set"]].concat());
    ended(&set, 0);
    let told = text(&set.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("not promised, and not kept"), "{told}");
    let held =
        folder.run(&system, &[&short[..], &["--workload", "set", "--promise", "linearizable"]].concat());
    ended(&held, 1);
    assert!(text(&held.stdout).contains("acknowledged writes were lost"), "{}", text(&held.stdout));
}

#[test]
fn a_queue_that_takes_for_good_is_judged_as_such() {
    let folder = Folder::new();
    let short = ["--workload", "queue", "--time-limit", "4s"];
    let sound = folder.run(&folder.system("", "sound", ""), &short);
    ended(&sound, 0);
    let doubles = folder.run(&folder.system("--doubles", "sound", ""), &short);
    ended(&doubles, 1);
    assert!(text(&doubles.stdout).contains("dequeued"), "{}", text(&doubles.stdout));
}

#[test]
fn a_leader_that_a_question_finds_is_aimed_at() {
    let folder = Folder::new();
    let system = folder.system("", "sound", "leader = { send = \"role\\n\", expect = \"leader\" }");
    let faults = ["--nemesis", "pause-leader", "--interval", "6s", "--time-limit", "8s"];
    let output = folder.run(&system, &faults);
    // Nobody takes over from a leader that is one for ever: what checks of elections say is another thing.
    let told = text(&output.stdout);
    assert!(told.contains("1 of 1 verified"), "{told}\n{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("pause n1 (leader)"), "{}", text(&output.stderr));
}

#[test]
fn what_is_no_answer_is_a_failure_of_the_harness_with_the_line() {
    let folder = Folder::new();
    let words = ["Traceback (most", "it answers", "never ends"];
    let outputs = side_by_side(&folder, ["garbage", "twice", "flood"], "20s");
    for ((conduct, output), word) in outputs.into_iter().zip(words) {
        ended(&output, 255);
        let said = text(&output.stderr);
        assert!(said.contains(word) && said.contains("it misbehaves now"), "{conduct}: {said}");
    }
}

/// A run for each of these conducts of clients, at once: they wait most of the time.
fn side_by_side(
    folder: &Folder,
    conducts: [&'static str; 3],
    time_limit: &str,
) -> [(&'static str, Output); 3] {
    std::thread::scope(|scope| {
        let runs = conducts.map(|conduct| {
            let system = folder.system("", conduct, "");
            let run = move || folder.run(&system, &["--time-limit", time_limit, "--store", conduct]);
            (conduct, scope.spawn(run))
        });
        runs.map(|(conduct, run)| (conduct, run.join().expect("it ran")))
    })
}

#[test]
fn a_client_that_dies_hangs_or_is_late_is_replaced_and_accuses_nobody() {
    let folder = Folder::new();
    let outputs = side_by_side(&folder, ["die", "hang", "late"], "6s");
    for (conduct, output) in outputs {
        ended(&output, 0);
        let told = text(&output.stdout);
        assert!(told.contains("unknown"), "{conduct}: some fates are unknown: {told}");
    }
}

#[test]
fn a_client_that_hangs_at_a_last_read_does_not_cost_the_word_of_its_member() {
    let folder = Folder::new();
    ended(&folder.run(&folder.system("", "last", ""), &["--time-limit", "3s"]), 0);
    let asked = fs::read_dir(folder.path()).expect("a folder");
    let hung = asked
        .filter_map(Result::ok)
        .filter(|file| text(file.file_name().as_encoded_bytes()).starts_with("asked-"));
    assert_eq!(hung.count(), 3, "one client hung at each member");
}

#[test]
fn a_system_that_is_not_ready_for_its_first_key_is_waited_for() {
    let folder = Folder::new();
    let output = folder.run(&folder.system("", "unready", ""), &["--time-limit", "3s"]);
    ended(&output, 0);
    let history = fs::read_to_string(folder.latest().join("history.jsonl")).expect("a history");
    assert!(history.contains("not yet"), "what was refused is in the history");
}

#[test]
fn what_a_client_started_is_gone_with_it() {
    let folder = Folder::new();
    let system = folder.system("", "hang", "");
    let file = folder.path().join(&system);
    let words = "[\"python3\", \"tiny_client.py\", \"hang\"]";
    let line = "\"true; python3 tiny_client.py hang; true\"";
    let text_of_file = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text_of_file.replace(words, line)).expect("written");
    ended(&folder.run(&system, &["--time-limit", "5s"]), 0);
    let mute = folder.harness(&["client", "check", "--", "sh", "-c", "sleep 1000; true"]);
    ended(&mute, 254);
    let survived = "sleep 1000 & exec python3 tiny_client.py";
    ended(&folder.harness(&["client", "check", "--", "sh", "-c", survived]), 0);
    nothing_runs_in(folder.path());
}

/// Nothing runs in a folder. What was killed is gone when the kernel comes to it.
fn nothing_runs_in(folder: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !processes_in(folder).is_empty() {
        assert!(Instant::now() < deadline, "{} still run", processes_in(folder));
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// What still runs in a folder, by the kernel's word.
fn processes_in(folder: &Path) -> String {
    let folder = folder.canonicalize().expect("absolute");
    let inside = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place.starts_with(&folder))
    };
    let entries = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let names = entries.filter(inside).map(|entry| entry.file_name().display().to_string());
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_wrong_with_a_client_or_a_file_is_said_before_any_member_starts() {
    let folder = Folder::new();
    fs::write(folder.path().join("broken.py"), "import nothing_of_the_kind\n").expect("written");
    let system = folder.system("", "sound", "");
    let broken = fs::read_to_string(folder.path().join(&system)).expect("a file");
    fs::write(folder.path().join("broken.toml"), broken.replace("tiny_client.py", "broken.py"))
        .expect("written");
    let of_all = broken.replace("[promises]\n", "[promises]\nall = \"session\"\n");
    fs::write(folder.path().join("of_all.toml"), of_all).expect("written");
    for (arguments, advice) in [
        (vec!["--system", "./nowhere.toml"], "`harness init system`"),
        (vec!["--system", "./broken.toml"], "nothing_of_the_kind"),
        (vec!["--system", &system, "--nemesis", "kill-leader"], "nobody tells who that is"),
        (vec!["--system", &system, "--workload", "append"], "can append"),
        (vec!["--system", &system, "--workload", "election"], "has no applications that do this; take lock"),
        (vec!["--system", &system, "--workload", "barrier"], "lines have no barriers"),
        (vec!["--system", &system, "--nemesis", "pause-holder"], "--workload register; take lock"),
        (vec!["--system", &system, "--workload", "lock", "--mutant", "herd"], "leave the flag out"),
        (vec!["--system", &system, "--cluster", "docker"], "write --cluster process"),
        (vec!["--system", &system, "--nodes", "3", "--nemesis", "clock-bump"], "in containers"),
        (vec!["--system", &system, "--promise", "linearisable"], "did you mean `linearizable`?"),
        (vec!["--system", "./of_all.toml", "--workload", "txn"], "in its file (promises.txn)"),
    ] {
        let output = folder.harness(&[&["run"], &arguments[..]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(254), "{arguments:?}: {said}");
        assert!(said.contains(advice), "{arguments:?}: {said}");
    }
    assert!(!folder.path().join("runs").exists(), "nothing was begun");
}

#[test]
fn a_conversation_tells_what_is_wrong_with_a_client() {
    let folder = Folder::new();
    let check = |words: &[&str]| folder.harness(&[&["client", "check", "--"], words].concat());
    let sound = check(&["python3", "tiny_client.py"]);
    ended(&sound, 0);
    assert!(text(&sound.stdout).contains("this client can be believed"), "{}", text(&sound.stdout));
    let told = text(&sound.stdout);
    for (conduct, seen) in [("the store refuses the token", "ok, with what"), ("nobody answers", "info")] {
        assert!(told.contains(&format!("store, {conduct}: {seen}")), "{told}");
    }
    assert!(told.contains("? dequeue: not tried"), "{told}");
    let bank = CLIENT.replace("[\"read\", ", "[\"transfer\", \"poll\", \"read\", ");
    fs::write(folder.path().join("bank.py"), bank).expect("written");
    let bank = text(&check(&["python3", "bank.py"]).stdout);
    for tried in ["transfer, nobody answers", "poll, nobody listens"] {
        assert!(bank.contains(tried), "{bank}");
    }
    let lies = CLIENT.replace("{\"type\": \"info\", \"error\": repr(error)}", "{\"type\": \"fail\"}");
    fs::write(folder.path().join("lies.py"), lies).expect("written");
    let lies = check(&["python3", "lies.py"]);
    ended(&lies, 1);
    assert!(text(&lies.stdout).contains("nobody knows what became of it"), "{}", text(&lies.stdout));
    let told = "store, nobody answers: fail, though the write had left";
    assert!(text(&lies.stdout).contains(told), "{}", text(&lies.stdout));
    let again = CLIENT.replace("sendall((\" \".join", "sendall(2 * (\" \".join");
    fs::write(folder.path().join("again.py"), again).expect("written");
    let again = check(&["python3", "again.py"]);
    ended(&again, 1);
    assert!(text(&again.stdout).contains("2 times"), "{}", text(&again.stdout));
    let none = check(&["python3", "-c", "print('ready')"]);
    ended(&none, 254);
    assert!(text(&none.stderr).contains("no hello"), "{}", text(&none.stderr));
}

#[test]
fn nothing_that_a_client_or_a_question_started_outlives_a_harness_that_is_killed() {
    let folder = Folder::new();
    let question = "ready = { exec = [\"sh\", \"-c\", \"setsid sleep 1000 >/dev/null 2>&1 & \
                    echo $! >>{folder}/left; exit 0\"] }";
    let system = folder.system("", "sound", "");
    let file = folder.path().join(&system);
    let written = fs::read_to_string(&file).expect("a file");
    let ready = written.lines().find(|line| line.starts_with("ready")).expect("a question").to_owned();
    let client = "command = [\"sh\", \"-c\", \"setsid sleep 1000 >/dev/null 2>&1 & echo $! >>left; \
                  touch begun; exec python3 tiny_client.py sound\"]";
    let usual = "command = [\"python3\", \"tiny_client.py\", \"sound\"]";
    fs::write(&file, written.replace(&ready, question).replace(usual, client)).expect("written");
    let mut harness = Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(["run", "--system", &system, "--nodes", "3", "--concurrency", "3", "--time-limit", "60s"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let left = || -> Vec<u32> {
        let text = fs::read_to_string(folder.path().join("left")).unwrap_or_default();
        text.lines().filter_map(|id| id.parse().ok()).collect()
    };
    let until = Instant::now() + PATIENCE;
    while !(folder.path().join("begun").exists() && left().len() > 6) {
        assert!(Instant::now() < until, "its clients never began");
        std::thread::yield_now();
    }
    harness.kill().and_then(|()| harness.wait()).expect("killed");
    let lives = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.contains("(sleep)") && !stat.contains(") Z")
    };
    let until = Instant::now() + PATIENCE;
    while left().iter().any(lives) {
        assert!(Instant::now() < until, "something lives on: {:?}", left());
        std::thread::yield_now();
    }
}
