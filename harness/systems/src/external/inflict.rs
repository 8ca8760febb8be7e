//! Runs the commands of faults of the user's own: on this machine in the folder of the file, or in the
//! container of the member that the fault is aimed at.
//!
//! Each has a deadline, because no fault may keep a run from its end. On this machine a command that misses
//! it is killed with all that it started; in a container nobody can, and it is left alone there.

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::faults::Aimed;
use super::file::Description;
use super::{probe, template};
use crate::look::{Ran, Whereabouts};
use crate::own::Order;
use crate::program;

/// How long a command may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// Runs one for a member to its end.
pub(super) async fn run(description: Arc<Description>, order: Order, member: Whereabouts) -> io::Result<Ran> {
    let unknown = || io::Error::other("the file has no such command");
    let fault = description.faults.iter().find(|fault| fault.own == order.own).ok_or_else(unknown)?;
    let words = fault.command(order.command).ok_or_else(unknown)?;
    let folder = description.folder.display().to_string();
    let places = Aimed {
        outside: probe::commanded(&description, &member),
        data: member.data.as_ref().map(|data| data.display().to_string()),
        folder: member.inside.is_none().then_some(folder),
        fault: order.fault,
    };
    let filled = |word: &String| template::filled(word, member.id.0, &places).map_err(io::Error::other);
    let words = words.iter().map(filled).collect::<io::Result<Vec<String>>>()?;
    let ran = match &member.inside {
        Some(inside) => inside.run(member.id, words, DEADLINE).await?,
        None => here(&description, words, DEADLINE).await?,
    };
    ran.if_it_was_run()
}

/// Runs one on this machine.
async fn here(description: &Description, words: Vec<String>, deadline: Duration) -> io::Result<Ran> {
    let Some((name, arguments)) = words.split_first() else {
        return Err(io::Error::other("there is no program in it"));
    };
    // A path is meant from the file's folder; a name alone is looked for on the path.
    let path = if name.contains('/') { description.folder.join(name) } else { name.into() };
    let mut command = Command::new(path);
    command.args(arguments).current_dir(&description.folder);
    match tokio::time::timeout(deadline, program::output(command)).await {
        Ok(Ok(output)) => {
            let status = output.status.code().map(i64::from);
            Ok(Ran { status, output: output.stdout, errors: output.stderr })
        }
        Ok(Err(error)) => Err(io::Error::new(error.kind(), format!("{name} can't be run: {error}"))),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!(
                "it did not end within {} s; nor may what it leaves running hold its output",
                deadline.as_secs()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Instant;

    use runs::member::MemberId;

    use super::*;
    use crate::Async;
    use crate::look::Inside;
    use crate::own::OwnCommand;

    fn description(folder: &std::path::Path) -> Description {
        let text = "[member]\ncommand = [\"a\"]\nready = { http = \"/\" }\n";
        super::super::file::parse(text, "x", folder.to_owned()).expect("a file")
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Notes what is run, and ends with this status.
    struct Noting(Option<i64>, Mutex<Vec<(MemberId, Vec<String>, Duration)>>);

    impl Inside for Noting {
        fn run(
            &self,
            member: MemberId,
            words: Vec<String>,
            within: Duration,
        ) -> Async<'static, io::Result<Ran>> {
            self.1.lock().expect("notes").push((member, words, within));
            let ran = Ran { status: self.0, ..Ran::default() };
            Box::pin(async { Ok(ran) })
        }
    }

    #[tokio::test]
    async fn a_command_of_a_member_in_a_container_runs_there_and_finds_it_at_its_own_port() {
        let text = "services:\n  a: { image: x }\nx-harness:\n  members: [a]\n  ports: { client: 6379 }\n  \
                    ready: { http: \"/\" }\n  faults:\n    compact:\n      exec: [\"cli\", \"{client}\", \
                    \"{fault}\"]\n      seen: [\"ask\", \"{id}\"]\n";
        let description = Arc::new(super::super::file::parse_compose(text, "/f".into()).expect("a file"));
        let own = description.faults[0].own;
        let run = async |status, command| {
            let inside = Arc::new(Noting(status, Mutex::default()));
            let mut member = Whereabouts::of(MemberId(2), ([10, 0, 0, 2], 9).into());
            member.inside = Some(Arc::<Noting>::clone(&inside));
            let order = Order { own, command, fault: "F7".to_owned() };
            let ran = super::run(Arc::clone(&description), order, member).await;
            let notes = inside.1.lock().expect("notes").clone();
            (ran, notes)
        };
        let (ran, notes) = run(Some(0), OwnCommand::Exec).await;
        assert!(ran.expect("it ran").succeeded());
        assert_eq!(notes, [(MemberId(2), words(&["cli", "127.0.0.1:6379", "F7"]), DEADLINE)]);
        let (ran, notes) = run(Some(1), OwnCommand::Seen).await;
        assert_eq!((ran.expect("it ran").status, &notes[0].1), (Some(1), &words(&["ask", "2"])));
        let (ran, _) = run(Some(127), OwnCommand::Seen).await;
        assert!(ran.expect_err("neither yes nor no").to_string().contains("can't be run"));
        let (ran, notes) = run(Some(0), OwnCommand::Heal).await;
        assert!(ran.is_err() && notes.is_empty(), "the file has none");
    }

    #[tokio::test]
    async fn a_command_runs_in_the_folder_of_its_file_and_says_how_it_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let description = description(folder.path());
        let line = words(&["sh", "-c", "pwd -P; echo why >&2; exit 3"]);
        let ran = here(&description, line, DEADLINE).await.expect("it ran");
        let place = folder.path().canonicalize().expect("a folder").display().to_string();
        assert_eq!(ran.status, Some(3));
        assert_eq!(ran.words(), format!("{place}\nwhy"));
    }

    #[tokio::test]
    async fn a_command_that_never_ends_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = words(&["sh", "-c", "sleep 1000 & echo $! >child; wait"]);
        let error = here(&description(folder.path()), line, Duration::from_millis(300)).await;
        assert_eq!(error.expect_err("too long").kind(), io::ErrorKind::TimedOut);
        let child = std::fs::read_to_string(folder.path().join("child")).expect("its child");
        let until = Instant::now() + Duration::from_secs(20);
        let runs = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
            stat.contains("(sleep)") && !stat.contains(") Z")
        };
        while runs() {
            assert!(Instant::now() < until, "what it started still runs");
            tokio::task::yield_now().await;
        }
    }
}
