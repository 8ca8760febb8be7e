//! Which test command runs when: the rules of a test template, as a machine without containers and without a
//! clock.
//!
//! The rules are those of Antithesis' test composer, by its documents:
//!
//! | kind | how often | beside it | faults |
//! |---|---|---|---|
//! | `first_` | one of them, once, before everything else | nothing | none yet |
//! | `parallel_driver_` | again and again | parallel drivers, itself too; anytime | yes |
//! | `serial_driver_` | again and again | anytime | yes |
//! | `singleton_driver_` | once, and then no other driver | anytime | yes |
//! | `anytime_` | again and again, between the first and the last | all but the first | as they come |
//! | `eventually_` | one of them, last: drivers are ended for it | anytime that runs still | over |
//! | `finally_` | one of them, last, when each driver has ended by itself | the same | over |
//!
//! A command that ends a run may destroy what it looks at. So a run has one of them, as a history of the
//! original has. It is drawn, and so is whether the run has a singleton or the other drivers, who comes next,
//! how many run beside each other, and how long nobody is started. All of it comes from one stream of the
//! seed. When commands end is the system's, so the same seed draws the same only as long as they end in the
//! same order: real containers are not deterministic.
//!
//! The driver asks [`Composer::next`] until it gives nothing, and again at [`Composer::wake`] and after every
//! answer. It answers each start with [`Composer::ended`], and tells when faults may come
//! ([`Composer::open`]) and when they are over ([`Composer::close`]).

use std::collections::{BTreeMap, VecDeque};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use runs::clock::RunNs;
use runs::numbers::NS_PER_MS;
use runs::template::CommandKind;

/// Parallel drivers that run beside each other at most.
pub const MOST_PARALLEL: usize = 6;
/// Anytime commands that run beside each other at most.
pub const MOST_ANYTIME: usize = 2;
/// From the start of one driver to that of the next at most.
const DRIVER_PAUSE_NS: RunNs = 500 * NS_PER_MS;
/// From the start of one anytime command to that of the next at most.
const ANYTIME_PAUSE_NS: RunNs = 2_000 * NS_PER_MS;
/// An engine is busy for some time with each start.
const SHORTEST_PAUSE_NS: RunNs = 20 * NS_PER_MS;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Start a command, as the execution of this number.
    Start {
        /// The execution.
        number: u64,
        /// The command, by its place in the list.
        command: usize,
    },
    /// End this execution. It is answered like an end of its own, as [`End::CutShort`].
    End {
        /// The execution.
        number: u64,
    },
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, and content.
    Succeeded,
    /// By itself, and not content.
    Failed,
    /// From outside: by the composer, or by what broke its container.
    CutShort,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first command has its turn.
    First,
    /// It had it, and faults may begin.
    Ready,
    /// Drivers and anytime commands have their turns.
    Work,
    /// No driver begins any more.
    Closing,
    /// The last command runs.
    Last,
    /// Nothing begins any more.
    Over,
}

/// Which drivers a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// This one alone, once.
    Singleton(usize),
    /// All that are no singletons.
    Several,
}

/// The machine.
#[derive(Debug)]
pub struct Composer {
    commands: Vec<CommandKind>,
    dice: ChaCha8Rng,
    stage: Stage,
    first: Option<usize>,
    course: Course,
    last: Option<usize>,
    /// Why the last command that was drawn does not run.
    kept_from: Option<&'static str>,
    /// What runs, by its number.
    running: BTreeMap<u64, usize>,
    started: u64,
    drivers_started: u64,
    /// Whether a driver did not end by itself.
    cut_short: bool,
    /// The driver whose turn is next.
    next_driver: Option<usize>,
    /// How many parallel drivers may run beside each other now.
    width: usize,
    driver_at: RunNs,
    anytime_at: RunNs,
    /// What is to be ended.
    to_end: VecDeque<u64>,
}

impl Composer {
    /// A composer of these commands that has not begun.
    #[must_use]
    pub fn new(commands: Vec<CommandKind>, mut dice: ChaCha8Rng) -> Self {
        let of = |wanted: fn(CommandKind) -> bool| {
            let places = commands.iter().enumerate();
            places.filter(|(_, kind)| wanted(**kind)).map(|(place, _)| place).collect::<Vec<usize>>()
        };
        let first = one_of(&of(|kind| kind == CommandKind::First), &mut dice);
        let singletons = of(|kind| kind == CommandKind::SingletonDriver);
        let has_others = !of(is_repeated).is_empty();
        let drawn = draw(singletons.len() + usize::from(has_others), &mut dice);
        let course = match drawn.and_then(|drawn| singletons.get(drawn)) {
            Some(singleton) => Course::Singleton(*singleton),
            None => Course::Several,
        };
        let last = one_of(&of(CommandKind::is_last), &mut dice);
        Self {
            commands,
            dice,
            stage: Stage::First,
            first,
            course,
            last,
            kept_from: None,
            running: BTreeMap::new(),
            started: 0,
            drivers_started: 0,
            cut_short: false,
            next_driver: None,
            width: 1,
            driver_at: 0,
            anytime_at: 0,
            to_end: VecDeque::new(),
        }
    }

    /// The command that is to end the run, and why it does not run, if it does not.
    #[must_use]
    pub fn last(&self) -> Option<(usize, Option<&'static str>)> {
        Some((self.last?, self.kept_from))
    }

    /// Whether the first command had its turn, or there is none: faults may begin.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stage != Stage::First
    }

    /// Whether nothing will be started before faults are over: the singleton has ended.
    #[must_use]
    pub fn has_done_its_work(&self) -> bool {
        match (self.stage, self.course) {
            (Stage::Over, _) => true,
            (Stage::Work, Course::Singleton(_)) => self.drivers_started > 0 && self.drivers() == 0,
            _ => false,
        }
    }

    /// Whether nothing runs and nothing will.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over && self.running.is_empty()
    }

    /// Faults may come from now on, and with them the drivers.
    pub fn open(&mut self, now: RunNs) {
        if self.stage == Stage::Ready {
            self.stage = Stage::Work;
            self.driver_at = now;
            self.anytime_at = now;
        }
    }

    /// Faults are over: the last command has its turn.
    pub fn close(&mut self) {
        if self.stage == Stage::Over {
            return;
        }
        self.stage = Stage::Closing;
        if self.last.is_some() && self.drivers_started == 0 {
            self.keep_from("no driver was started, and it comes after one");
        }
        if self.runs_last() == Some(CommandKind::Eventually) {
            let drivers = self.running.iter().filter(|(_, command)| self.commands[**command].is_driver());
            self.to_end.extend(drivers.map(|(number, _)| *number));
        }
    }

    /// An execution is over.
    pub fn ended(&mut self, number: u64, end: End) {
        let Some(command) = self.running.remove(&number) else { return };
        self.to_end.retain(|waits| *waits != number);
        let kind = self.commands[command];
        self.cut_short |= kind.is_driver() && end == End::CutShort;
        match (self.stage, kind) {
            // Drivers of a system that is not as they expect it accuse it of that.
            (Stage::First, CommandKind::First) if end != End::Succeeded => self.stage = Stage::Over,
            (Stage::First, CommandKind::First) => self.stage = Stage::Ready,
            (Stage::Last, kind) if kind.is_last() => self.stage = Stage::Over,
            _ => {}
        }
    }

    /// What is to be done at this moment, one after the other, until there is nothing more.
    pub fn next(&mut self, now: RunNs) -> Option<Act> {
        if let Some(number) = self.to_end.pop_front() {
            return Some(Act::End { number });
        }
        match self.stage {
            Stage::First => self.begin_first(),
            Stage::Work => self.begin_anytime(now).or_else(|| self.begin_driver(now)),
            Stage::Closing if self.drivers() == 0 => self.begin_last(),
            Stage::Ready | Stage::Closing | Stage::Last | Stage::Over => None,
        }
    }

    /// When to ask again though nothing ended meanwhile.
    #[must_use]
    pub fn wake(&self, now: RunNs) -> Option<RunNs> {
        if self.stage != Stage::Work {
            return None;
        }
        let driver = self.next_driver.is_none_or(|next| self.may_start(next)).then_some(self.driver_at);
        let driver = driver.filter(|_| self.has_drivers());
        let anytime = self.has_room_for_anytime().then_some(self.anytime_at);
        driver.into_iter().chain(anytime).filter(|at| *at > now).min()
    }

    fn begin_first(&mut self) -> Option<Act> {
        match self.first {
            Some(first) if self.started == 0 => Some(self.start(first)),
            Some(_) => None,
            None => {
                self.stage = Stage::Ready;
                None
            }
        }
    }

    fn begin_anytime(&mut self, now: RunNs) -> Option<Act> {
        if now < self.anytime_at || !self.has_room_for_anytime() {
            return None;
        }
        self.anytime_at = now + self.pause(ANYTIME_PAUSE_NS);
        let all = self.places(|kind| kind == CommandKind::Anytime);
        let chosen = one_of(&all, &mut self.dice)?;
        Some(self.start(chosen))
    }

    fn begin_driver(&mut self, now: RunNs) -> Option<Act> {
        let next = match (self.course, self.next_driver) {
            (Course::Singleton(_), _) if self.drivers_started > 0 => return None,
            (Course::Singleton(singleton), _) => singleton,
            (Course::Several, Some(next)) => next,
            (Course::Several, None) => self.draw_driver()?,
        };
        // Whoever waits for the others to end is not overtaken by more of them.
        self.next_driver = Some(next);
        if now < self.driver_at || !self.may_start(next) {
            return None;
        }
        self.next_driver = None;
        self.driver_at = now + self.pause(DRIVER_PAUSE_NS);
        Some(self.start(next))
    }

    fn draw_driver(&mut self) -> Option<usize> {
        if self.drivers() == 0 {
            self.width = self.dice.random_range(1..=MOST_PARALLEL);
        }
        one_of(&self.places(is_repeated), &mut self.dice)
    }

    fn begin_last(&mut self) -> Option<Act> {
        if self.runs_last() == Some(CommandKind::Finally) && self.cut_short {
            // Of a driver that was cut short nobody knows what it left.
            match one_of(&self.places(|kind| kind == CommandKind::Eventually), &mut self.dice) {
                Some(eventually) => self.last = Some(eventually),
                None => self.keep_from("a driver was cut short, and it comes after drivers that ended"),
            }
        }
        match self.last.filter(|_| self.kept_from.is_none()) {
            Some(last) => {
                self.stage = Stage::Last;
                Some(self.start(last))
            }
            None => {
                self.stage = Stage::Over;
                None
            }
        }
    }

    fn start(&mut self, command: usize) -> Act {
        self.started += 1;
        self.drivers_started += u64::from(self.commands[command].is_driver());
        self.running.insert(self.started, command);
        Act::Start { number: self.started, command }
    }

    fn keep_from(&mut self, why: &'static str) {
        self.kept_from = Some(why);
    }

    /// The kind of the command that will end the run.
    fn runs_last(&self) -> Option<CommandKind> {
        self.last.filter(|_| self.kept_from.is_none()).map(|last| self.commands[last])
    }

    /// Whether this driver may run beside those that do.
    fn may_start(&self, driver: usize) -> bool {
        match self.commands[driver] {
            CommandKind::ParallelDriver => {
                self.drivers() == self.running(CommandKind::ParallelDriver) && self.drivers() < self.width
            }
            _ => self.drivers() == 0,
        }
    }

    fn has_drivers(&self) -> bool {
        match self.course {
            Course::Singleton(_) => self.drivers_started == 0,
            Course::Several => self.commands.iter().any(|kind| is_repeated(*kind)),
        }
    }

    fn has_room_for_anytime(&self) -> bool {
        self.commands.contains(&CommandKind::Anytime) && self.running(CommandKind::Anytime) < MOST_ANYTIME
    }

    fn running(&self, kind: CommandKind) -> usize {
        self.running.values().filter(|command| self.commands[**command] == kind).count()
    }

    fn drivers(&self) -> usize {
        self.running.values().filter(|command| self.commands[**command].is_driver()).count()
    }

    fn places(&self, wanted: impl Fn(CommandKind) -> bool) -> Vec<usize> {
        (0..self.commands.len()).filter(|place| wanted(self.commands[*place])).collect()
    }

    fn pause(&mut self, most: RunNs) -> RunNs {
        self.dice.random_range(SHORTEST_PAUSE_NS..=most)
    }
}

/// Whether it is a driver that runs again and again.
fn is_repeated(kind: CommandKind) -> bool {
    kind.is_driver() && kind != CommandKind::SingletonDriver
}

/// One of so many, if there is any.
fn draw(many: usize, dice: &mut ChaCha8Rng) -> Option<usize> {
    (many > 0).then(|| dice.random_range(0..many))
}

/// One of these, if there is any.
pub fn one_of<T: Clone>(these: &[T], dice: &mut ChaCha8Rng) -> Option<T> {
    draw(these.len(), dice).map(|drawn| these[drawn].clone())
}

#[cfg(test)]
mod tests;
