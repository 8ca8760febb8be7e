//! The composer's rules: driven by hand where an order matters, and over many seeds where none may be broken.

use CommandKind::{
    Anytime, Eventually, Finally, First, ParallelDriver as Parallel, SerialDriver as Serial,
    SingletonDriver as Singleton,
};

use super::*;
use crate::seed::stream;

const SECOND: RunNs = 1_000 * NS_PER_MS;

/// A composer, and what it did.
struct Stage {
    composer: Composer,
    commands: Vec<CommandKind>,
    now: RunNs,
    running: BTreeMap<u64, CommandKind>,
    started: Vec<CommandKind>,
    ended: Vec<CommandKind>,
}

impl Stage {
    fn of(commands: &[CommandKind], seed: u64) -> Self {
        Self {
            composer: Composer::new(commands.to_vec(), stream(seed, "composer")),
            commands: commands.to_vec(),
            now: 0,
            running: BTreeMap::new(),
            started: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Does what is to be done now, and holds every start against the rules.
    fn act(&mut self) {
        while let Some(act) = self.composer.next(self.now) {
            match act {
                Act::Start { number, command } => {
                    let kind = self.commands[command];
                    self.allowed(kind);
                    self.running.insert(number, kind);
                    self.started.push(kind);
                }
                Act::End { number } => {
                    self.ended.push(self.running[&number]);
                    self.finish(number, End::CutShort);
                }
            }
        }
    }

    /// Whether a command of this kind may run beside what runs.
    fn allowed(&self, kind: CommandKind) {
        let beside: Vec<CommandKind> = self.running.values().copied().collect();
        let only = |allowed: &[CommandKind]| beside.iter().all(|other| allowed.contains(other));
        let fits = match kind {
            First => beside.is_empty() && self.started.is_empty(),
            Parallel => only(&[Parallel, Anytime]),
            Serial | Singleton | Eventually | Finally => only(&[Anytime]),
            Anytime => !beside.contains(&First) && !beside.iter().any(|other| other.is_last()),
        };
        assert!(fits, "{kind:?} beside {beside:?}");
        if kind != First && self.commands.contains(&First) {
            assert_eq!(self.started.first(), Some(&First), "nothing runs before it");
        }
        assert!(!self.started.iter().any(|started| started.is_last()), "nothing comes after the last");
    }

    fn finish(&mut self, number: u64, end: End) {
        assert!(self.running.remove(&number).is_some());
        self.composer.ended(number, end);
    }

    /// Lets one that runs end by itself.
    fn finish_any(&mut self, dice: &mut ChaCha8Rng) {
        let running: Vec<u64> = self.running.keys().copied().collect();
        if let Some(number) = one_of(&running, dice) {
            self.finish(number, End::Succeeded);
        }
    }

    /// Begins, with a first command that succeeds.
    fn opened(commands: &[CommandKind], seed: u64) -> Self {
        let mut stage = Self::of(commands, seed);
        stage.act();
        let first: Vec<u64> = stage.running.keys().copied().collect();
        first.into_iter().for_each(|number| stage.finish(number, End::Succeeded));
        assert!(stage.composer.is_ready());
        stage.act();
        assert_eq!(stage.started.len(), usize::from(commands.contains(&First)), "nobody waits for faults");
        stage.composer.open(stage.now);
        stage
    }

    /// Lets it work for a while in which executions end now and then.
    fn work(&mut self, steps: u64, dice: &mut ChaCha8Rng) {
        for _ in 0..steps {
            self.act();
            self.now = self.composer.wake(self.now).unwrap_or(self.now + SECOND);
            if dice.random_range(0..3) == 0 {
                self.finish_any(dice);
            }
        }
        self.act();
    }

    fn count(&self, kind: CommandKind) -> usize {
        self.started.iter().filter(|started| **started == kind).count()
    }

    fn runs(&self, kind: CommandKind) -> usize {
        self.running.values().filter(|running| **running == kind).count()
    }

    /// Ends everything by itself until nothing will begin.
    fn run_to_its_end(&mut self, dice: &mut ChaCha8Rng) {
        self.composer.close();
        for _ in 0..100 {
            self.act();
            self.finish_any(dice);
        }
        assert!(self.composer.is_over() && self.running.is_empty());
    }
}

const EVERYTHING: [CommandKind; 12] = [
    First, First, Parallel, Parallel, Serial, Serial, Singleton, Anytime, Anytime, Eventually, Finally,
    Finally,
];

#[test]
fn no_rule_is_broken_whatever_is_drawn() {
    let (mut singles, mut several, mut lasts) = (0, 0, BTreeMap::new());
    for seed in 0..400 {
        let mut dice = stream(seed, "ends");
        let mut stage = Stage::opened(&EVERYTHING, seed);
        stage.work(200, &mut dice);
        assert_eq!(stage.count(First), 1);
        assert!(stage.count(Anytime) > 0);
        if stage.count(Singleton) > 0 {
            assert_eq!((stage.count(Singleton), stage.count(Parallel) + stage.count(Serial)), (1, 0));
            singles += 1;
        } else {
            assert!(stage.count(Parallel) > 0 && stage.count(Serial) > 0);
            several += 1;
        }
        stage.run_to_its_end(&mut dice);
        let last = *stage.started.last().expect("some were started");
        assert!(last.is_last());
        assert_eq!(stage.count(Eventually) + stage.count(Finally), 1);
        *lasts.entry(last.prefix()).or_insert(0) += 1;
    }
    assert!(singles > 50 && several > 50 && lasts.len() == 2, "{singles} {several} {lasts:?}");
}

#[test]
fn the_same_seed_and_the_same_ends_draw_the_same() {
    let started = |seed| {
        let mut dice = stream(3, "ends");
        let mut stage = Stage::opened(&[Parallel, Parallel, Serial, Anytime], seed);
        stage.work(100, &mut dice);
        (stage.started, stage.now)
    };
    assert_eq!(started(1), started(1));
    assert_ne!(started(1), started(2));
}

#[test]
fn parallel_drivers_run_beside_each_other_and_no_more_than_the_bound() {
    let mut most = 0;
    for seed in 0..50 {
        let mut stage = Stage::opened(&[Parallel], seed);
        // None of them ends.
        for _ in 0..100 {
            stage.act();
            stage.now = stage.composer.wake(stage.now).unwrap_or(stage.now + SECOND);
        }
        most = most.max(stage.runs(Parallel));
        assert!(stage.runs(Parallel) <= MOST_PARALLEL && stage.runs(Parallel) > 0);
        assert_eq!(stage.composer.wake(stage.now), None, "nobody can be started before one ends");
    }
    assert_eq!(most, MOST_PARALLEL);
}

#[test]
fn a_serial_driver_that_is_drawn_is_not_overtaken() {
    for seed in 0..50 {
        let mut stage = Stage::opened(&[Parallel, Serial], seed);
        let mut dice = stream(seed, "ends");
        while stage.composer.next_driver.is_none_or(|next| stage.commands[next] != Serial)
            || stage.runs(Parallel) == 0
        {
            stage.work(1, &mut dice);
        }
        let parallel = stage.count(Parallel);
        stage.now += 10 * SECOND;
        stage.act();
        assert_eq!(stage.count(Parallel), parallel);
        while stage.runs(Parallel) > 0 {
            assert_eq!(stage.runs(Serial), 0);
            stage.finish_any(&mut dice);
            stage.act();
        }
        assert_eq!(stage.runs(Serial), 1);
    }
}

#[test]
fn a_singleton_that_has_ended_has_done_the_work_of_the_run() {
    let mut stage = Stage::opened(&[Singleton], 1);
    stage.act();
    assert!(stage.runs(Singleton) == 1 && !stage.composer.has_done_its_work());
    stage.finish(1, End::Succeeded);
    stage.now += 100 * SECOND;
    stage.act();
    assert!(stage.running.is_empty() && stage.composer.has_done_its_work());
    let mut several = Stage::opened(&[Parallel], 1);
    several.act();
    several.finish(1, End::Succeeded);
    assert!(!several.composer.has_done_its_work());
}

#[test]
fn nothing_follows_a_first_command_that_did_not_succeed() {
    for end in [End::Failed, End::CutShort] {
        let mut stage = Stage::of(&[First, Parallel, Anytime, Finally], 1);
        stage.act();
        stage.finish(1, end);
        assert!(stage.composer.is_ready() && stage.composer.has_done_its_work());
        stage.composer.open(stage.now);
        stage.act();
        stage.composer.close();
        stage.act();
        assert!(stage.composer.is_over() && stage.started == [First]);
    }
}

#[test]
fn eventually_ends_the_drivers_and_lets_anytime_commands_end() {
    for seed in 0..50 {
        let mut stage = Stage::opened(&[Parallel, Parallel, Anytime, Eventually], seed);
        while stage.runs(Parallel) == 0 || stage.runs(Anytime) == 0 {
            stage.now += SECOND;
            stage.act();
        }
        let (drivers, looking) = (stage.runs(Parallel), stage.runs(Anytime));
        stage.composer.close();
        stage.act();
        assert_eq!(stage.ended, vec![Parallel; drivers]);
        assert_eq!((stage.runs(Eventually), stage.runs(Anytime)), (1, looking));
        let last = *stage.running.iter().find(|(_, kind)| **kind == Eventually).expect("it runs").0;
        stage.finish(last, End::Succeeded);
        stage.act();
        assert!(!stage.composer.is_over(), "anytime commands run still");
        let rest: Vec<u64> = stage.running.keys().copied().collect();
        rest.into_iter().for_each(|number| stage.finish(number, End::Succeeded));
        assert!(stage.composer.is_over());
    }
}

#[test]
fn a_driver_that_has_to_be_ended_is_waited_for() {
    let mut stage = Stage::opened(&[Serial, Eventually], 1);
    stage.act();
    stage.composer.close();
    assert_eq!(stage.composer.next(stage.now), Some(Act::End { number: 1 }));
    assert_eq!(stage.composer.next(stage.now), None);
    stage.finish(1, End::CutShort);
    stage.act();
    assert_eq!(stage.runs(Eventually), 1);
}

#[test]
fn finally_waits_for_drivers_and_comes_after_none_that_was_cut_short() {
    for (commands, end, last, kept_from) in [
        (&[Parallel, Finally][..], End::Succeeded, Some(Finally), false),
        (&[Parallel, Finally], End::Failed, Some(Finally), false),
        (&[Parallel, Finally], End::CutShort, None, true),
        (&[Parallel, Finally, Finally, Eventually], End::CutShort, Some(Eventually), false),
    ] {
        for seed in 0..20 {
            let mut stage = Stage::opened(commands, seed);
            stage.act();
            stage.finish(1, end);
            stage.now += SECOND;
            stage.act();
            stage.composer.close();
            stage.act();
            let mut dice = stream(seed, "ends");
            if stage.composer.last().map(|(place, _)| stage.commands[place]) == Some(Finally) {
                while stage.runs(Parallel) > 0 {
                    assert_eq!(stage.runs(Finally), 0);
                    stage.finish_any(&mut dice);
                    stage.act();
                }
                assert!(stage.ended.is_empty());
            }
            let ran = stage.started.last().copied().filter(|kind| kind.is_last());
            let told = stage.composer.last().is_some_and(|(_, why)| why.is_some());
            if commands.len() == 2 {
                assert_eq!((ran, told), (last, kept_from));
            } else {
                assert!(ran == last || end != End::CutShort, "{ran:?}");
            }
        }
    }
}

#[test]
fn without_a_driver_nothing_comes_last_and_the_end_says_so() {
    let mut stage = Stage::opened(&[Anytime, Eventually], 1);
    stage.act();
    assert_eq!(stage.runs(Anytime), 1);
    stage.composer.close();
    stage.act();
    assert!(stage.composer.last().is_some_and(|(_, why)| why.is_some()));
    stage.finish(1, End::Succeeded);
    assert!(stage.composer.is_over());
    assert_eq!(stage.started, [Anytime]);
}

#[test]
fn a_template_without_a_last_command_waits_for_its_drivers() {
    let mut stage = Stage::opened(&[Parallel], 1);
    stage.act();
    stage.composer.close();
    stage.act();
    assert!(!stage.composer.is_over());
    stage.finish(1, End::Succeeded);
    stage.act();
    assert!(stage.composer.is_over());
}
