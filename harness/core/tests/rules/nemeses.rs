//! The rules of the nemeses, one script each, in virtual time.
//!
//! A script begins with `begin members=N [observers=N] [interval=MS] [overlap]` and names the faults to come
//! with `fault KIND at=MS [hold=MS]`. `at MS` moves the clock. `next` has everything done whose time has
//! come, and tells what the driver is to do. A driver's answers are `injected LANE`, `stale LANE`, `proven
//! LANE`, `refuted LANE`, `undone LANE [crossed]` and `failed LANE`; a look is answered by the version of the
//! latest one, or of the one before with `old`. `leader n1 [EPOCH]`, `nobody-leads`, `down n1`, `up n1`,
//! `shown` and `not-shown` say what is seen of members and load. `halt` ends the run early, `wake` tells when
//! there is something to do, and whether all is over.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

use goldenscript::Context;
use harness_core::fault::LoseUnsynced;
use harness_core::mechanism::Action;
use harness_core::mechanism::own::Owned;
use harness_core::nemeses::{Answer, Command, LaneId, Look, Nemeses, Terms};
use harness_core::proof::Proof;
use harness_core::schedule::Schedule;
use runs::consequence::Consequence;
use runs::faults::{FaultDetail, FaultPhase, FaultTransition};
use runs::member::MemberId;
use runs::views::Leader;

use crate::seen::Seen;
use crate::{MS, moment, planned};

pub(crate) struct Script {
    terms: Terms,
    schedule: Schedule,
    nemeses: Option<Nemeses>,
    seen: Seen,
    now: u64,
    /// The versions of each lane's looks.
    looks: BTreeMap<LaneId, Vec<u64>>,
}

impl Default for Script {
    fn default() -> Self {
        let terms = Terms {
            members: Vec::new(),
            voters: Vec::new(),
            servers: BTreeMap::new(),
            lose_unsynced: LoseUnsynced::default(),
            look_every_ns: 5 * MS,
            tells_leader: true,
        };
        let schedule = Schedule {
            seed: 0,
            nemeses: Vec::new(),
            interval_ms: 4000,
            hold_ms: 2000,
            overlap: false,
            faults: Vec::new(),
        };
        Self { terms, schedule, nemeses: None, seen: Seen::default(), now: 0, looks: BTreeMap::new() }
    }
}

type Printed = Result<String, Box<dyn Error>>;

impl Script {
    fn begin(&mut self, command: &goldenscript::Command) -> Result<(), Box<dyn Error>> {
        let mut words = command.consume_args();
        let voters: u64 = words.take_key("members").unwrap_or("3").parse()?;
        let observers: u64 = words.take_key("observers").unwrap_or("0").parse()?;
        self.schedule.interval_ms = words.take_key("interval").unwrap_or("4000").parse()?;
        self.terms.tells_leader = words.take_key("leaders") != Some("untold");
        self.schedule.overlap = words.next_pos().is_some_and(|word| word == "overlap");
        words.reject_next()?;
        self.terms.voters = (1..=voters).map(MemberId).collect();
        self.terms.members = (1..=voters + observers).map(MemberId).collect();
        self.seen = Seen::all_well(&self.terms.members);
        Ok(())
    }

    fn plan(&mut self, command: &goldenscript::Command) -> Result<(), Box<dyn Error>> {
        let fault = planned(command, self.schedule.faults.len())?;
        if !self.schedule.nemeses.contains(&fault.kind) {
            self.schedule.nemeses.push(fault.kind);
        }
        self.schedule.faults.push(fault);
        Ok(())
    }

    fn nemeses(&mut self) -> &mut Nemeses {
        self.nemeses.get_or_insert_with(|| Nemeses::new(&self.schedule, &self.terms, 0))
    }

    fn next(&mut self) -> Printed {
        let mut told = String::new();
        let now = self.now;
        self.nemeses();
        let Some(nemeses) = self.nemeses.as_mut() else { return Ok(told) };
        while let Some(command) = nemeses.next(now, &self.seen) {
            if let Command::Prove(look) | Command::Watch(look) = &command {
                self.looks.entry(look.lane).or_default().push(look.version);
            }
            writeln!(told, "{}", words(command))?;
        }
        Ok(told)
    }

    fn answer(&mut self, command: &goldenscript::Command) -> Result<(), Box<dyn Error>> {
        let mut args = command.consume_args();
        let lane: LaneId = args.next_pos().ok_or("which lane?")?.parse()?;
        let how = args.next_pos().map(str::to_owned);
        args.reject_next()?;
        let (now, is_old) = (self.now, how.as_deref() == Some("old"));
        let looks = self.looks.get(&lane).cloned().unwrap_or_default();
        let version = looks.iter().rev().nth(usize::from(is_old)).copied().unwrap_or_default();
        let crossed = how.filter(|how| how == "crossed");
        let proof = |holds, words: &str| Proof::new(holds, words.to_owned());
        let answer = match command.name.as_str() {
            "injected" => Answer::Injected(now),
            "stale" => Answer::Stale,
            "proven" => Answer::Looked(version, proof(true, "as it should be")),
            "refuted" => Answer::Looked(version, proof(false, "not so")),
            "undone" => Answer::Undone(now, crossed.map(|words| proof(false, &words))),
            _ => {
                self.nemeses().failed(lane);
                return Ok(());
            }
        };
        self.nemeses().answered(lane, now, answer);
        Ok(())
    }

    fn member(command: &goldenscript::Command) -> Result<(MemberId, Option<u32>), Box<dyn Error>> {
        let mut words = command.consume_args();
        let member = words.next_pos().and_then(|word| word.strip_prefix('n')).ok_or("which member?")?;
        let id = MemberId(member.parse()?);
        let epoch = words.next_pos().map(str::parse).transpose()?;
        words.reject_next()?;
        Ok((id, epoch))
    }

    fn sees(&mut self, command: &goldenscript::Command) -> Result<(), Box<dyn Error>> {
        match command.name.as_str() {
            "leader" => {
                let (id, epoch) = Self::member(command)?;
                self.seen.leader = Some(Leader { id, epoch: epoch.unwrap_or(1) });
            }
            "nobody-leads" => self.seen.leader = None,
            "shown" => self.seen.shown = true,
            "not-shown" => self.seen.shown = false,
            name @ ("down" | "up") => {
                let (member, _) = Self::member(command)?;
                self.seen.views.get_mut(&member).ok_or("no such member")?.running = name == "up";
            }
            other => return Err(format!("there is no {other} in these scripts").into()),
        }
        Ok(())
    }
}

fn words(command: Command) -> String {
    match command {
        Command::Write(line) => format!("write {}", transition(&line)),
        Command::Say(words) => format!("say {words}"),
        Command::CalmBegins => "calm begins".to_owned(),
        Command::Inject(order) => {
            let lost = if order.action.consequences().contains(&Consequence::LosesUnsynced) {
                " and what was not synced"
            } else {
                ""
            };
            let by =
                order.aimed_by.map_or("nobody leads".to_owned(), |leader| format!("n{} leads", leader.id));
            format!("lane {}: {}{lost}, if {by}", order.lane, action(&order.action, "inject"))
        }
        Command::Prove(look) => format!("lane {}: prove {}", look.lane, looked(&look)),
        Command::Undo(order) => {
            let remained = order.healing.detail.quorum_remained == Some(true);
            let quorum = if remained { "a quorum remained" } else { "no quorum remained" };
            format!("lane {}: {}, {quorum}", order.lane, action(&order.action, "undo"))
        }
        Command::Watch(look) => format!("lane {}: watch {} be gone", look.lane, looked(&look)),
    }
}

fn action(action: &Action, verb: &str) -> String {
    if let Some((directions, _)) = action.silences() {
        return format!("{verb} a cut of {} directions", directions.len());
    }
    let what = action.of::<Owned>().map_or(action.mechanism().name, |owned| owned.own.name());
    format!("{verb} {what}{}", names(action.members().iter().map(|member| member.0)))
}

fn names(members: impl Iterator<Item = u64>) -> String {
    members.map(|member| format!(" n{member}")).collect()
}

fn looked(look: &Look) -> String {
    format!("{} among [{}]", look.fault, look.in_force.names().join(" "))
}

fn transition(line: &FaultTransition) -> String {
    let FaultDetail { evidence, beside, .. } = &line.detail;
    let phase = serde_json::to_value(line.phase).expect("a phase is a word");
    let mut told =
        format!("{} {}{}", line.fault, phase.as_str().unwrap_or("?"), names(line.targets.iter().copied()));
    if line.phase == FaultPhase::Injected && !beside.is_empty() {
        told += &format!(" beside {}", beside.join(" "));
    }
    if let Some(evidence) = evidence {
        told += &format!(": {evidence}");
    }
    told
}

impl goldenscript::Runner for Script {
    type Command = goldenscript::Command;

    fn run(&mut self, command: &goldenscript::Command, _: &Context) -> Printed {
        match command.name.as_str() {
            "begin" => self.begin(command)?,
            "fault" => self.plan(command)?,
            "at" => self.now = moment(command)?,
            "next" => return self.next(),
            "injected" | "stale" | "proven" | "refuted" | "undone" | "failed" => self.answer(command)?,
            "halt" => self.nemeses().halt(),
            "close" => self.nemeses().close(),
            "wake" => {
                let now = self.now;
                let nemeses = self.nemeses();
                return Ok(match nemeses.wake(now) {
                    Some(at) => format!("at {} ms", at / MS),
                    None if nemeses.is_over() => "over".to_owned(),
                    None => "when somebody answers".to_owned(),
                });
            }
            _ => self.sees(command)?,
        }
        Ok(String::new())
    }
}
