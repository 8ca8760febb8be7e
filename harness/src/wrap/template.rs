//! Test commands in the containers, in place of the bench's clients (`harness wrap --template`).
//!
//! What runs when is decided by [`harness_core::composer`], in one task here that starts what it says, ends
//! what it says, and tells it how executions end. The run gives the turns ([`Turn`]): the first command
//! before any fault, drivers beside the faults, the last command when the last fault was seen to be gone and
//! all members serve again, or have had their time to.
//!
//! What is found in the containers is known only when they run. So a template that is not there, or that has
//! nothing to run, is refused then, and the members are ended again.
//!
//! Every execution is a line of `tests.jsonl` when it is over, and what it writes goes into `tests.log`, a
//! line behind its number. At the end what programs asserted is read from the containers, by
//! [`runs::assertions`], and what is worth keeping of it is in `assertions.jsonl`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use harness_core::composer::{Act, Composer, End, one_of};
use rand_chacha::ChaCha8Rng;
use runs::assertions::{Asserted, Assertions, Line, MOST_OF_A_LINE};
use runs::template::{CommandKind, Execution, How, Last, Tally, TemplateRun, TestCommand};
use runs::views;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::clock::{RunClock, RunNs};
use crate::cluster::containers::{Containers, EachFile, Found, Job, Ran, Said};
use crate::config::Template;
use crate::events::EventLog;
use crate::exit::Failure;
use crate::progress::Progress;

/// What test commands wrote, in the run folder.
pub const LOG: &str = "tests.log";
/// Every execution of one.
pub const EXECUTIONS: &str = "tests.jsonl";
/// What was asserted.
pub const ASSERTIONS: &str = "assertions.jsonl";
/// Files and folders that commands use, and that are none.
const HELPER: &str = "helper_";
/// From one look whether the system is set up to the next.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long members may take to serve before the last command.
const SERVING_PATIENCE: Duration = Duration::from_secs(20);
/// How long what was killed may take to be over.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// Lines that wait to be written at most.
const MOST_WAITING: usize = 1_024;
/// Bytes of an execution's last words.
const LAST_WORDS: usize = 400;
/// Lines of assertions that are kept; all are counted.
const MOST_KEPT: u64 = 100_000;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The first command's.
    First,
    /// Those of drivers and anytime commands.
    Drivers,
    /// The last command's.
    Last,
    /// Nobody's: the run was interrupted.
    Stop,
}

/// What test commands are run with.
pub struct Settings {
    /// Where they lie and run.
    pub containers: Arc<dyn Containers>,
    /// What was asked for.
    pub template: Template,
    /// What is drawn comes from here.
    pub dice: ChaCha8Rng,
    /// The run folder.
    pub folder: PathBuf,
    /// What members say.
    pub events: EventLog,
    /// How long it may take until somebody says that the system is set up.
    pub patience: Duration,
    /// The run's clock.
    pub clock: RunClock,
    /// Where it is shown.
    pub progress: Progress,
}

/// Who waits for a turn of the template.
pub struct Waiting {
    /// The first command had its turn: faults may begin.
    pub ready: Option<oneshot::Sender<()>>,
    /// Nothing will begin before faults are over.
    pub done: Option<oneshot::Sender<()>>,
}

/// Runs a template to its end.
pub async fn run(
    settings: Settings,
    mut turn: watch::Receiver<Turn>,
    waiting: Waiting,
) -> Result<TemplateRun, Failure> {
    let Settings { containers, template, folder, .. } = &settings;
    if template.awaits_setup {
        tokio::select! {
            set_up = set_up(&settings) => set_up?,
            _ = turn.wait_for(|turn| *turn == Turn::Stop) => return Err(Failure::Interrupted),
        }
    }
    let found = list_files(&**containers, &template.folder).await?;
    let mut dice = settings.dice.clone();
    let chosen = Chosen::of(&found, template, &mut dice)?;
    let words = |(count, noun): (usize, &str)| runs::numbers::plural(crate::num::wide(count), noun);
    let (commands, name) = (words((chosen.commands.len(), "test command")), &chosen.template);
    settings.progress.say(&format!("the template {name} has {commands}"));
    for why in &chosen.ignored {
        settings.progress.say(&format!("not run: {why}"));
    }
    let create = |name: &str| {
        let path = folder.join(name);
        File::create(&path).with_context(|| format!("creating {}", path.display()))
    };
    let kinds = chosen.commands.iter().map(|command| command.kind).collect();
    let (said, hears) = mpsc::channel(MOST_WAITING);
    let mut session = Session {
        composer: Composer::new(kinds, dice),
        tallies: chosen.commands.iter().cloned().map(Tally::of).collect(),
        running: BTreeMap::new(),
        executions: JoinSet::new(),
        log: create(LOG)?,
        lines: create(EXECUTIONS)?,
        span: (0, 0),
        interrupted: false,
        said,
        chosen: &chosen,
        settings: &settings,
    };
    session.run(turn, waiting, hears).await?;
    settings.progress.step("reading what was asserted");
    let asserted = asserted(&**containers, create(ASSERTIONS)?).await;
    Ok(session.finish(&found, asserted))
}

/// Waits until a container says that the system is set up.
async fn set_up(settings: &Settings) -> Result<(), Failure> {
    settings.progress.step("waiting until a container says that the system is set up");
    let waiting = async {
        loop {
            let is_set_up = Arc::<AtomicBool>::default();
            let seen = Arc::clone(&is_set_up);
            let each: EachFile = Box::new(move |container, file, content| {
                each_line(content, |line| {
                    let said = Assertions::default().take(container, file, line);
                    seen.fetch_or(said == Line::SetUp, Ordering::Relaxed);
                })
            });
            settings.containers.read(each).await?;
            if is_set_up.load(Ordering::Relaxed) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    match tokio::time::timeout(settings.patience, waiting).await {
        Ok(set_up) => Ok(set_up?),
        Err(_) => Err(Failure::usage(format!(
            "no container said within {} s that the system is set up ({}): where all is ready as soon as the \
             members serve, add --no-setup",
            settings.patience.as_secs(),
            "{\"antithesis_setup\": {\"status\": \"complete\"}} in $ANTITHESIS_OUTPUT_DIR/sdk.jsonl"
        ))),
    }
}

/// The files of all templates, each with the name of the container that it lies in.
type FoundThere = Vec<(String, Found)>;

/// Lists the files of all templates below `folder` in each container that runs, in a fixed order.
async fn list_files(containers: &dyn Containers, folder: &str) -> anyhow::Result<FoundThere> {
    let mut all = Vec::new();
    for container in containers.names() {
        let mut there = containers.files(&container, folder).await?;
        there.sort();
        all.extend(there.into_iter().map(|found| (container.clone(), found)));
    }
    Ok(all)
}

/// A template, and what is run of it.
struct Chosen {
    template: String,
    folder: String,
    commands: Vec<TestCommand>,
    ignored: Vec<String>,
}

impl Chosen {
    fn of(found: &FoundThere, asked: &Template, dice: &mut ChaCha8Rng) -> Result<Self, Failure> {
        let folder = &asked.folder;
        let templates = templates(found);
        let template = match &asked.name {
            Some(name) if templates.contains(name) => name.clone(),
            Some(name) => {
                return Err(Failure::usage(format!(
                    "--template {name}: no container has {folder}/{name}; {}",
                    those(&templates)
                )));
            }
            None => one_of(&templates, dice).ok_or_else(|| {
                Failure::usage(format!(
                    "--template: no container has a test command in {folder}/TEMPLATE/; name another folder \
                     with --templates"
                ))
            })?,
        };
        let (mut commands, mut ignored) = (Vec::new(), Vec::new());
        for (container, Found { name, executable, .. }) in
            found.iter().filter(|(_, found)| found.template == template)
        {
            match (CommandKind::of_name(name), executable) {
                (Some(kind), true) => {
                    commands.push(TestCommand { container: container.clone(), name: name.clone(), kind });
                }
                (Some(_), false) => ignored.push(format!("{container}: {name} is not executable")),
                (None, true) if !name.starts_with(HELPER) => {
                    ignored.push(format!("{container}: the name of {name} tells no kind"));
                }
                (None, _) => {}
            }
        }
        let works = |command: &TestCommand| command.kind.is_driver() || command.kind == CommandKind::Anytime;
        if !commands.iter().any(works) {
            return Err(Failure::usage(format!(
                "--template {template}: it has no driver and no anytime command, so nothing would work on \
                 the members{}",
                ignored.iter().map(|why| format!("; {why}")).collect::<String>()
            )));
        }
        Ok(Self { template, folder: folder.clone(), commands, ignored })
    }
}

/// The templates that have a test command.
fn templates(found: &FoundThere) -> Vec<String> {
    let with_commands = found.iter().filter(|(_, found)| CommandKind::of_name(&found.name).is_some());
    let names: BTreeSet<&String> = with_commands.map(|(_, found)| &found.template).collect();
    names.into_iter().cloned().collect()
}

fn those(templates: &[String]) -> String {
    match templates {
        [] => "and none has any other".to_owned(),
        some => format!("take {}", some.join(", ")),
    }
}

/// An execution that runs.
struct Running {
    command: usize,
    from_ns: RunNs,
    /// Whether the composer asked for its end.
    ending: bool,
    last_words: Vec<u8>,
}

/// What a task of an execution comes to.
enum Over {
    /// It ended.
    Ran(u64, Ran),
    /// It was to be killed: true where it could be.
    Killed(u64, bool),
    /// It was killed and does not end.
    Stays(u64),
}

/// Test commands at work.
struct Session<'a> {
    composer: Composer,
    tallies: Vec<Tally>,
    running: BTreeMap<u64, Running>,
    executions: JoinSet<anyhow::Result<Over>>,
    log: File,
    lines: File,
    span: (RunNs, RunNs),
    interrupted: bool,
    said: mpsc::Sender<Said>,
    chosen: &'a Chosen,
    settings: &'a Settings,
}

impl Session<'_> {
    /// From the first command to the last.
    async fn run(
        &mut self,
        mut turn: watch::Receiver<Turn>,
        mut waiting: Waiting,
        mut hears: mpsc::Receiver<Said>,
    ) -> anyhow::Result<()> {
        let clock = self.settings.clock;
        let mut serving = None;
        loop {
            while let Some(act) = self.composer.next(clock.now()) {
                self.carry_out(act);
            }
            // Nobody may wait for it any more.
            if self.composer.is_ready() {
                let _ = waiting.ready.take().map(|ready| ready.send(()));
            }
            if self.composer.has_done_its_work() {
                let _ = waiting.done.take().map(|done| done.send(()));
            }
            if self.composer.is_over() {
                return Ok(());
            }
            let moment = self.composer.wake(clock.now());
            tokio::select! {
                Some(said) = hears.recv() => self.hear(&said),
                Some(over) = self.executions.join_next() => {
                    // What it said comes before its end.
                    while let Ok(said) = hears.try_recv() {
                        self.hear(&said);
                    }
                    self.is_over(over.context("waiting for a test command")??)?;
                }
                () = until(clock, moment) => {}
                () = next_of(&mut serving) => {
                    serving = None;
                    self.composer.close();
                }
                // The sender lives as long as the run.
                _ = turn.changed() => match *turn.borrow_and_update() {
                    Turn::First => {}
                    Turn::Drivers => {
                        self.span.0 = clock.now();
                        self.composer.open(clock.now());
                    }
                    Turn::Last => {
                        self.span.1 = clock.now();
                        let events = self.settings.events.clone();
                        serving = Some(Box::pin(async move {
                            events.wait(SERVING_PATIENCE, views::settled).await;
                        }));
                    }
                    Turn::Stop => return self.stop(),
                },
            }
        }
    }

    fn carry_out(&mut self, act: Act) {
        let containers = Arc::clone(&self.settings.containers);
        match act {
            Act::Start { number, command } => {
                let from_ns = self.settings.clock.now();
                let running = Running { command, from_ns, ending: false, last_words: Vec::new() };
                self.running.insert(number, running);
                let TestCommand { container, name, .. } = &self.chosen.commands[command];
                self.note(number, &format!("{name} in {container} begins"));
                let (job, said) = (self.job(number, command), self.said.clone());
                self.executions.spawn(async move { Ok(Over::Ran(number, containers.run(job, said).await?)) });
            }
            Act::End { number } => {
                let Some(running) = self.running.get_mut(&number) else { return };
                running.ending = true;
                let command = running.command;
                let job = self.job(number, command);
                self.executions.spawn(async move { Ok(Over::Killed(number, containers.end(job).await?)) });
            }
        }
    }

    fn job(&self, number: u64, command: usize) -> Job {
        let Chosen { template, folder, commands, .. } = self.chosen;
        let TestCommand { container, name, .. } = &commands[command];
        Job { number, container: container.clone(), path: format!("{folder}/{template}/{name}") }
    }

    fn hear(&mut self, said: &Said) {
        let Said { number, line } = said;
        // A full disk costs the log and not the run.
        let _ = write!(self.log, "#{number} ");
        let _ = self.log.write_all(line).and_then(|()| self.log.write_all(b"\n"));
        if let Some(running) = self.running.get_mut(number) {
            let words = &mut running.last_words;
            words.extend_from_slice(line);
            words.push(b'\n');
            words.drain(..words.len().saturating_sub(LAST_WORDS));
        }
    }

    fn note(&mut self, number: u64, words: &str) {
        let _ = writeln!(self.log, "#{number} -- {words}");
    }

    fn is_over(&mut self, over: Over) -> anyhow::Result<()> {
        match over {
            Over::Ran(number, ran) => self.ended(number, ran),
            Over::Killed(number, true) if self.running.contains_key(&number) => {
                self.executions.spawn(async move {
                    tokio::time::sleep(KILL_PATIENCE).await;
                    Ok(Over::Stays(number))
                });
                Ok(())
            }
            Over::Killed(number, false) if self.running.contains_key(&number) => {
                self.note(number, "it can't be ended from outside, and is waited for");
                Ok(())
            }
            Over::Stays(number) if self.running.contains_key(&number) => {
                self.ended(number, Ran::Lost("it was killed and does not end".to_owned()))
            }
            // It has ended meanwhile.
            Over::Killed(..) | Over::Stays(_) => Ok(()),
        }
    }

    /// Writes an end down, and tells the composer of it.
    fn ended(&mut self, number: u64, ran: Ran) -> anyhow::Result<()> {
        let Some(running) = self.running.remove(&number) else { return Ok(()) };
        let (how, status, words) = match (running.ending, ran) {
            (true, Ran::Status(status)) => (How::Ended, Some(status), String::new()),
            (true, Ran::Lost(why)) => (How::Ended, None, why),
            (false, Ran::Status(0)) => (How::Exited, Some(0), String::new()),
            (false, Ran::Status(status)) => (How::Exited, Some(status), last_words(&running.last_words)),
            (false, Ran::Lost(why)) => (How::Lost, None, why),
        };
        let end = match (how, status.map(runs::template::Word::of)) {
            (How::Exited, Some(runs::template::Word::Succeeded)) => End::Succeeded,
            (How::Exited, Some(runs::template::Word::FromOutside(_))) => End::CutShort,
            (How::Exited, _) => End::Failed,
            (How::Ended | How::Lost | How::Interrupted, _) => End::CutShort,
        };
        self.write_down(number, &running, (how, status, words))?;
        self.composer.ended(number, end);
        Ok(())
    }

    fn write_down(
        &mut self,
        number: u64,
        running: &Running,
        (how, status, words): (How, Option<i64>, String),
    ) -> anyhow::Result<()> {
        let status_in_words = status.map_or_else(|| words.clone(), |status| format!("exit status {status}"));
        self.note(number, &format!("it is over: {status_in_words}"));
        let command = self.chosen.commands[running.command].clone();
        let (from_ns, to_ns) = (running.from_ns, self.settings.clock.now());
        let execution = Execution { number, command, from_ns, to_ns, how, status, words };
        self.tallies[running.command].count(&execution);
        let line = serde_json::to_string(&execution).context("describing an execution")?;
        writeln!(self.lines, "{line}").context("writing down an execution")
    }

    /// Somebody interrupted the run. What runs ends with its containers.
    fn stop(&mut self) -> anyhow::Result<()> {
        self.interrupted = true;
        self.executions.abort_all();
        for (number, running) in std::mem::take(&mut self.running) {
            self.write_down(number, &running, (How::Interrupted, None, String::new()))?;
        }
        Ok(())
    }

    fn finish(self, found: &FoundThere, asserted: Asserted) -> TemplateRun {
        let last = self.composer.last().map(|(command, kept_from)| Last {
            command: self.chosen.commands[command].clone(),
            kept_from: kept_from.map(str::to_owned),
        });
        let (from_ns, to_ns) = self.span;
        TemplateRun {
            template: self.chosen.template.clone(),
            templates: templates(found),
            ignored: self.chosen.ignored.clone(),
            from_ns,
            to_ns: if to_ns == 0 { self.settings.clock.now() } else { to_ns },
            interrupted: self.interrupted,
            last,
            commands: self.tallies,
            asserted,
        }
    }
}

fn last_words(words: &[u8]) -> String {
    String::from_utf8_lossy(words).trim().to_owned()
}

async fn until(clock: RunClock, moment: Option<RunNs>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(clock.instant(moment).into()).await,
        None => std::future::pending().await,
    }
}

async fn next_of(waiting: &mut Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>) {
    match waiting {
        Some(waiting) => waiting.await,
        None => std::future::pending().await,
    }
}

/// Reads what programs asserted, and keeps what is worth it.
async fn asserted(containers: &dyn Containers, kept: File) -> Asserted {
    let state = Arc::new(Mutex::new((Assertions::default(), kept, 0)));
    let shared = Arc::clone(&state);
    let each: EachFile = Box::new(move |container, file, content| {
        if !file.ends_with(".jsonl") {
            return Ok(());
        }
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (assertions, kept, lines) = &mut *state;
        each_line(content, |line| {
            let said = assertions.take(container, file, line);
            if matches!(said, Line::Noted | Line::SetUp) && *lines < MOST_KEPT {
                *lines += 1;
                let _ = keep(kept, container, file, line);
            }
        })
    });
    let read = containers.read(each).await;
    let incomplete = read.err().map(|why| format!("what was asserted is not read to its end: {why:#}"));
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut state.0).finish(incomplete)
}

/// A line that was understood is JSON, and stands as it is in a line of ours.
fn keep(kept: &mut File, container: &str, file: &str, line: &[u8]) -> io::Result<()> {
    let (container, file) = (serde_json::json!(container), serde_json::json!(file));
    write!(kept, "{{\"container\":{container},\"file\":{file},\"line\":")?;
    kept.write_all(line.trim_ascii())?;
    kept.write_all(b"}\n")
}

/// Hands over each line that has an end; of one that is too long its beginning, which is too long as well.
fn each_line(content: &mut dyn Read, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut content = BufReader::new(content);
    let most = crate::num::wide(MOST_OF_A_LINE) + 1;
    loop {
        let mut line = Vec::new();
        if (&mut content).take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.pop_if(|byte| *byte == b'\n').is_some() {
            each(&line);
        } else if line.len() > MOST_OF_A_LINE {
            each(&line);
            skip_line(&mut content)?;
        }
    }
}

fn skip_line(content: &mut impl BufRead) -> io::Result<()> {
    loop {
        let (used, ended) = match content.fill_buf()? {
            [] => return Ok(()),
            buffer => match buffer.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (buffer.len(), false),
            },
        };
        content.consume(used);
        if ended {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::seed;

    fn found(names: &[(&str, &str, bool)]) -> FoundThere {
        let one = |(template, name, executable): &(&str, &str, bool)| {
            let (template, name) = ((*template).to_owned(), (*name).to_owned());
            ("client".to_owned(), Found { template, name, executable: *executable })
        };
        names.iter().map(one).collect()
    }

    fn chosen(found: &FoundThere, name: Option<&str>) -> Result<Chosen, String> {
        let name = name.map(str::to_owned);
        let asked = Template { name, folder: "/t".to_owned(), awaits_setup: false };
        Chosen::of(found, &asked, &mut seed::stream(1, "x")).map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_can_not_be_run_is_told_and_what_helps_is_left_alone() {
        let found = found(&[
            ("main", "first_x", true),
            ("main", "parallel_driver_x", true),
            ("main", "anytime_x", false),
            ("main", "helper_x", true),
            ("main", "notes.md", false),
            ("main", "other", true),
            ("empty", "helper_x", true),
        ]);
        let chosen = chosen(&found, None).expect("a template");
        let names: Vec<&str> = chosen.commands.iter().map(|command| command.name.as_str()).collect();
        assert_eq!((chosen.template.as_str(), names), ("main", vec!["first_x", "parallel_driver_x"]));
        assert_eq!(chosen.ignored.len(), 2, "{:?}", chosen.ignored);
        assert_eq!(templates(&found), ["main"]);
    }

    #[test]
    fn a_template_that_is_not_there_or_does_nothing_is_refused() {
        let found = found(&[("main", "first_x", true), ("main", "finally_x", true)]);
        let refused = |name| chosen(&found, name).err().expect("refused");
        assert!(refused(Some("other")).contains("take main"), "{}", refused(Some("other")));
        assert!(refused(None).contains("no driver"), "{}", refused(None));
        assert!(chosen(&Vec::new(), None).err().expect("refused").contains("--templates"));
    }

    #[test]
    fn lines_come_whole_and_those_without_an_end_or_too_long_do_not() {
        let long = "x".repeat(MOST_OF_A_LINE * 2);
        let mut lengths = Vec::new();
        let text = format!("ab\n\n{long}\ncd\nunfinished");
        each_line(&mut text.as_bytes(), |line| lengths.push(line.len())).expect("read");
        assert_eq!(lengths, [2, 0, MOST_OF_A_LINE + 1, 2]);
    }
}
