//! One run, from its first operation to its last: what comes after what, how long anything may take, and what
//! ends it early.
//!
//! The members serve when a run begins, and the machine goes through its phases in order:
//!
//! 1. **Set-up.** Every key is made, at the first member.
//! 2. **Work.** Clients are let in, operations fall due, nemeses break members ([`crate::nemeses`]), until
//!    the time limit.
//! 3. **Healing.** What is in force is healed; clients work on meanwhile.
//! 4. **Showing.** The load goes on, up to a bound, until enough succeeded since the last fault to tell that
//!    the ensemble recovered from it: a fault that was slow to heal leaves little of the time limit, and a
//!    run that ends there has shown nothing. Where something acknowledges nothing any more, it goes on until
//!    that has lasted for so long that it is for good, or is over.
//! 5. **Leaving.** Nothing falls due any more; clients end what is under way, and leave.
//! 6. **Settling.** All members are to serve again.
//! 7. **Reading.** Every member that serves is read a last time, again and again until what is read is
//!    settled: an operation whose fate was unknown may still take effect, and sessions may still expire.
//!    Members that do not serve are left out; what those that do have lost is lost in any case.
//!
//! An interrupt, or a violation that is to end the run, ends the work at once ([`Run::end_early`]): what is
//! in force is healed all the same, and there is nothing more to show. After an interrupt members have less
//! time to serve: somebody waits. Work may also come to its end by itself ([`Run::work_is_done`]).

use std::collections::VecDeque;

use runs::clock::RunNs;
use runs::comes_back::ComesBack;
use runs::member::MemberId;
use runs::numbers::{NS_PER_MS, NS_PER_S};
use runs::views;

use crate::nemeses::{self, Nemeses, Sight, Silence};
use crate::schedule::Schedule;

/// How long the load may go on beyond the time limit to show what became of the ensemble after its last
/// fault.
const AFTERMATH_NS: RunNs = 5_000 * NS_PER_MS;
/// To the time after which a silence is for good is added, because the judge's clock leaves time out: this
/// part of it, and so long.
const GOOD_MEASURE: (RunNs, RunNs) = (8, 3_000 * NS_PER_MS);
/// How long members may take to serve again after the work.
const SETTLING_PATIENCE_NS: RunNs = 20_000 * NS_PER_MS;
/// The same after an interrupt.
const INTERRUPTED_PATIENCE_NS: RunNs = 3_000 * NS_PER_MS;
/// How long members may take to agree on what is read last, beyond what sessions need to expire.
const AGREEMENT_PATIENCE_NS: RunNs = 10_000 * NS_PER_MS;
/// The pause between two rounds of last reads.
const PAUSE_NS: RunNs = 20 * NS_PER_MS;

/// What a driver is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Make every key, at the first member, as process zero. Answer with [`Run::was_set_up`].
    SetUp,
    /// Let clients in. Operations fall due from the first of these moments to the second.
    OpenLoad(RunNs, RunNs),
    /// Nothing falls due any more, while clients work on.
    EndArrivals,
    /// Nothing falls due, and no client takes a further operation. Answer with [`Run::clients_left`] when all
    /// are gone.
    CloseLoad,
    /// Read these members a last time. Answer with [`Run::was_read`].
    Read(Vec<MemberId>),
    /// What the nemeses decided.
    Nemesis(Box<nemeses::Command>),
    /// Tell what is being done.
    Step(Phase),
    /// Tell somebody who watches.
    Say(String),
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Keys are made.
    SetUp,
    /// The load and the nemeses are at work.
    Work,
    /// What was in force at the end is healed.
    Healing,
    /// The load goes on until it has shown that the ensemble serves again.
    Showing,
    /// Clients end what is under way.
    Leaving,
    /// Members are waited for.
    Settling,
    /// Members are read a last time.
    Reading,
    /// It is over.
    Over,
}

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Terms {
    /// For how long the load and the nemeses are at work, in ns.
    pub time_limit_ns: RunNs,
    /// How much longer last reads may take for sessions that were left to expire, in ns; zero where there are
    /// none.
    pub expiry_ns: RunNs,
    /// What the system promises about coming back, and the silence after which members give up on one
    /// another, in ms; none where nobody waits for that.
    pub comes_back: Option<(ComesBack, Option<u64>)>,
    /// Whom nemeses act on.
    pub nemeses: nemeses::Terms,
}

/// When the parts of a run ended, in ns since its clock began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// Clients were let in.
    pub work_from: RunNs,
    /// The last of them left.
    pub work_to: RunNs,
    /// The last members were read.
    pub read: RunNs,
}

/// Why a run ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// Somebody interrupted it.
    Interrupted,
    /// A violation was seen.
    Violation,
    /// The work came to its end by itself.
    Done,
    /// Something could not be done.
    Failed,
}

/// A run.
#[derive(Debug)]
pub struct Run {
    terms: Terms,
    schedule: Schedule,
    phase: Phase,
    /// Whether members are being read.
    is_asked: bool,
    nemeses: Option<Nemeses>,
    /// When the phase, or the pause between two rounds of reads, is over at the latest.
    until: RunNs,
    /// Since when nothing is in force any more.
    healed: RunNs,
    /// When the last round of reads may begin.
    read_until: RunNs,
    /// Who serves, and is read.
    readers: Vec<MemberId>,
    early: Option<Early>,
    moments: Moments,
    out: VecDeque<Command>,
}

impl Run {
    /// A run that has not begun.
    #[must_use]
    pub fn new(terms: Terms, schedule: Schedule) -> Self {
        let mut run = Self {
            terms,
            schedule,
            phase: Phase::SetUp,
            is_asked: false,
            nemeses: None,
            until: 0,
            healed: 0,
            read_until: 0,
            readers: Vec::new(),
            early: None,
            moments: Moments::default(),
            out: VecDeque::new(),
        };
        run.enter(Phase::SetUp);
        run.out.push_back(Command::SetUp);
        run
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.out.push_back(Command::Step(phase));
    }

    /// How far it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Why it ends before its time, if it does.
    #[must_use]
    pub fn early(&self) -> Option<Early> {
        self.early
    }

    /// Whether nothing is left to be done.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over && self.out.is_empty()
    }

    /// When its parts ended.
    #[must_use]
    pub fn moments(&self) -> Moments {
        self.moments
    }

    /// What is to be done at this moment, one after the other, until there is nothing more.
    pub fn next(&mut self, now: RunNs, sight: &dyn Sight) -> Option<Command> {
        loop {
            if let Some(command) = self.out.pop_front() {
                return Some(command);
            }
            if let Some(command) = self.nemeses.as_mut().and_then(|nemeses| nemeses.next(now, sight)) {
                return Some(Command::Nemesis(Box::new(command)));
            }
            if !self.step(now, sight) {
                return None;
            }
        }
    }

    /// Goes on to the next phase, if its time has come.
    fn step(&mut self, now: RunNs, sight: &dyn Sight) -> bool {
        match self.phase {
            Phase::Work if now >= self.until || self.early.is_some() => {
                if self.early.is_some() {
                    self.out.push_back(Command::EndArrivals);
                }
                self.end_faults();
                self.phase = Phase::Healing;
                if !self.is_healed() {
                    self.enter(Phase::Healing);
                }
            }
            Phase::Healing if self.is_healed() => {
                self.healed = now;
                let shows = !self.schedule.faults.is_empty() || self.is_for_good_at(sight).is_some();
                if self.early.is_none() && shows {
                    self.until = now + AFTERMATH_NS;
                    self.enter(Phase::Showing);
                } else if self.early == Some(Early::Failed) {
                    self.phase = Phase::Over;
                } else {
                    self.leave();
                }
            }
            Phase::Showing if self.early.is_some() => self.leave(),
            Phase::Showing => match self.is_for_good_at(sight).filter(|at| *at > now) {
                Some(at) if now >= self.until => {
                    let seconds = (at - now).div_ceil(NS_PER_S);
                    self.out.push_back(Command::Say(format!(
                        "nothing, or not every key, is acknowledged; the load goes on for {seconds} s more, \
                         to see whether that is for good"
                    )));
                    self.until = at;
                }
                None if now >= self.until || sight.load_has_shown() => self.leave(),
                Some(_) | None => return false,
            },
            Phase::Settling => {
                let views = sight.views();
                if !views::settled(&views) && now < self.until {
                    return false;
                }
                if !views::all_serve(&views) {
                    let words = views::laggards(&views);
                    self.out.push_back(Command::Say(format!(
                        "not all members serve after the workload: {words}"
                    )));
                }
                self.read_until = now + AGREEMENT_PATIENCE_NS + self.terms.expiry_ns;
                self.readers = views::serving(&views);
                self.enter(Phase::Reading);
                self.read();
            }
            Phase::Reading if !self.is_asked && now >= self.until => self.read(),
            _ => return false,
        }
        true
    }

    /// When what is silent now would be so for good; none where nothing is, or where nobody waits for that.
    fn is_for_good_at(&self, sight: &dyn Sight) -> Option<RunNs> {
        let Silence { since, first } = sight.silence()?;
        Some(since.max(self.healed) + self.waits_for(first)?)
    }

    /// How long a silence is waited for.
    fn waits_for(&self, first: RunNs) -> Option<RunNs> {
        let (comes_back, patience_ms) = self.terms.comes_back.as_ref()?;
        let bound = comes_back.bound_ns(*patience_ms, first)?;
        Some(bound + bound / GOOD_MEASURE.0 + GOOD_MEASURE.1)
    }

    fn is_healed(&self) -> bool {
        self.nemeses.as_ref().is_none_or(Nemeses::is_over)
    }

    fn leave(&mut self) {
        self.enter(Phase::Leaving);
        self.out.push_back(Command::CloseLoad);
    }

    fn read(&mut self) {
        self.is_asked = true;
        self.out.push_back(Command::Read(self.readers.clone()));
    }

    /// When to ask again though nothing happened meanwhile. Ask too when members have said something, and
    /// after every answer.
    #[must_use]
    pub fn wake(&self, now: RunNs) -> Option<RunNs> {
        let own = match self.phase {
            Phase::Work | Phase::Settling => Some(self.until),
            Phase::Reading if !self.is_asked => Some(self.until),
            // What the load has shown is looked at now and then.
            Phase::Showing => Some(self.until.min(now + self.terms.nemeses.look_every_ns)),
            Phase::SetUp | Phase::Healing | Phase::Leaving | Phase::Reading | Phase::Over => None,
        };
        let nemeses = self.nemeses.as_ref().and_then(|nemeses| nemeses.wake(now));
        own.into_iter().chain(nemeses).min()
    }

    /// The nemeses, to be told what came of what they had done. There are none before the work begins.
    pub fn nemeses(&mut self) -> Option<&mut Nemeses> {
        self.nemeses.as_mut()
    }

    /// Every key was made: the work begins.
    pub fn was_set_up(&mut self, now: RunNs) {
        self.moments.work_from = now;
        self.until = now + self.terms.time_limit_ns;
        self.nemeses = Some(Nemeses::new(&self.schedule, &self.terms.nemeses, now));
        self.enter(Phase::Work);
        // Twice, as the silence may begin when everything is healed at last.
        let silence = self.waits_for(now).map_or(0, |most| 2 * most);
        self.out.push_back(Command::OpenLoad(now, self.until + AFTERMATH_NS + silence));
    }

    /// All clients are gone.
    pub fn clients_left(&mut self, now: RunNs) {
        self.moments.work_to = now;
        self.until = now + SETTLING_PATIENCE_NS;
        self.enter(Phase::Settling);
        self.hurry(now);
    }

    /// Members were read. What was read is settled when all could be read and nothing may change any more.
    pub fn was_read(&mut self, now: RunNs, is_settled: bool) {
        self.is_asked = false;
        self.until = now + PAUSE_NS;
        if is_settled || now > self.read_until {
            self.moments.read = now;
            self.phase = Phase::Over;
        }
    }

    /// The run is to end before its time. What is in force is healed all the same.
    pub fn end_early(&mut self, now: RunNs, why: Early) {
        if self.early != Some(Early::Failed) {
            self.early = Some(why);
        }
        self.end_faults();
        self.hurry(now);
    }

    /// No further fault begins. What is in force is healed, unless nobody is in a hurry.
    fn end_faults(&mut self) {
        match (&mut self.nemeses, self.early) {
            (Some(nemeses), Some(Early::Done)) => nemeses.close(),
            (Some(nemeses), _) => nemeses.halt(),
            (None, _) => {}
        }
    }

    /// What worked on the members has nothing more to do. Whatever ended the run before remains its reason.
    pub fn work_is_done(&mut self, now: RunNs) {
        if self.early.is_none() {
            self.end_early(now, Early::Done);
        }
    }

    /// Somebody waits.
    fn hurry(&mut self, now: RunNs) {
        if self.phase == Phase::Settling && self.early == Some(Early::Interrupted) {
            self.until = self.until.min(now + INTERRUPTED_PATIENCE_NS);
        }
    }
}
