//! The phases of a run, one script a rule, in virtual time.
//!
//! A script begins with `begin [limit=MS] [expiry=MS] [within=MS]`, on three members, and names the faults to
//! come with `fault KIND at=MS [hold=MS]`. `at MS` moves the clock. `next` has everything done whose time has
//! come, and tells what the driver is to do; what the nemeses ask is answered at once, as it should be, but
//! for a healed fault that is not `seen` to be gone. `set-up`, `left`, `settled` and `unsettled` are the
//! driver's answers, `failed` says that a nemesis could not do something. `interrupt` and `violation` end the
//! run early; `done` says that the work came to its own end. `down n1`, `looks n1`, `up n1`, `shown`,
//! `not-shown`, `silent` and `answered` say what is seen of members and load. `wake` tells when there is
//! something to do, and whether all is over.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

use goldenscript::Context;
use harness_core::fault::LoseUnsynced;
use harness_core::nemeses::{self, Answer, Look};
use harness_core::proof::Proof;
use harness_core::run::{Command, Early, Run, Terms};
use harness_core::schedule::{PlannedFault, Schedule};
use runs::comes_back::ComesBack;
use runs::member::MemberId;
use runs::views::{Stand, leader_of};

use crate::seen::{SERVING, Seen};
use crate::{MS, moment, planned};

#[derive(Default)]
pub(crate) struct Script {
    terms: Option<Terms>,
    faults: Vec<PlannedFault>,
    run: Option<Run>,
    seen: Seen,
    now: u64,
    /// Whether what was healed is not seen to be gone yet, and what is looked for.
    unseen: bool,
    watch: Option<Look>,
}

type Printed = Result<String, Box<dyn Error>>;

impl Script {
    fn begin(&mut self, command: &goldenscript::Command) -> Result<(), Box<dyn Error>> {
        let mut words = command.consume_args();
        let limit: u64 = words.take_key("limit").unwrap_or("10000").parse()?;
        let expiry: u64 = words.take_key("expiry").unwrap_or("0").parse()?;
        let within = words.take_key("within").map(str::parse).transpose()?;
        words.reject_next()?;
        let comes_back =
            within.map(|within| (ComesBack { within_ms: Some(within), ..ComesBack::default() }, None));
        let members: Vec<MemberId> = (1..=3).map(MemberId).collect();
        self.seen = Seen::all_well(&members);
        let nemeses = nemeses::Terms {
            voters: members.clone(),
            members,
            servers: BTreeMap::new(),
            lose_unsynced: LoseUnsynced::default(),
            look_every_ns: 5 * MS,
            tells_leader: true,
        };
        self.terms = Some(Terms { time_limit_ns: limit * MS, expiry_ns: expiry * MS, comes_back, nemeses });
        Ok(())
    }

    fn plan(&mut self, command: &goldenscript::Command) -> Result<(), Box<dyn Error>> {
        self.faults.push(planned(command, self.faults.len())?);
        Ok(())
    }

    fn run(&mut self) -> Result<&mut Run, Box<dyn Error>> {
        if self.run.is_none() {
            let schedule = Schedule {
                seed: 0,
                nemeses: self.faults.iter().map(|fault| fault.kind).collect(),
                interval_ms: 4000,
                hold_ms: 2000,
                overlap: false,
                faults: self.faults.clone(),
            };
            self.run = Some(Run::new(self.terms.clone().ok_or("no run has begun")?, schedule));
        }
        self.run.as_mut().ok_or_else(|| "no run has begun".into())
    }

    fn next(&mut self) -> Printed {
        let mut told = String::new();
        self.run()?;
        let Self { run, seen, now, unseen, watch, .. } = self;
        let run = run.as_mut().ok_or("no run has begun")?;
        while let Some(command) = run.next(*now, seen) {
            match command {
                Command::SetUp => writeln!(told, "set up")?,
                Command::OpenLoad(from, until) => {
                    writeln!(told, "open the load, arrivals from {} to {} ms", from / MS, until / MS)?;
                }
                Command::EndArrivals => writeln!(told, "end arrivals")?,
                Command::CloseLoad => writeln!(told, "close the load")?,
                Command::Read(members) => {
                    let names: String = members.iter().map(|member| format!(" n{member}")).collect();
                    writeln!(told, "read{names}")?;
                }
                Command::Step(phase) => writeln!(told, "-- {phase:?}")?,
                Command::Say(words) => writeln!(told, "say {words}")?,
                Command::Nemesis(command) => {
                    let proof = Proof::new(true, String::new());
                    let answer = match *command {
                        nemeses::Command::Inject(order) => {
                            writeln!(told, "{} breaks", order.asked.fault)?;
                            (order.lane, Answer::Injected(*now))
                        }
                        nemeses::Command::Prove(look) => (look.lane, Answer::Looked(look.version, proof)),
                        nemeses::Command::Undo(order) => {
                            writeln!(told, "{} is healed", order.healing.fault)?;
                            (order.lane, Answer::Undone(*now, None))
                        }
                        nemeses::Command::Watch(look) if *unseen => {
                            *watch = Some(look);
                            continue;
                        }
                        nemeses::Command::Watch(look) => (look.lane, Answer::Looked(look.version, proof)),
                        nemeses::Command::CalmBegins => {
                            writeln!(told, "calm begins")?;
                            continue;
                        }
                        nemeses::Command::Write(_) | nemeses::Command::Say(_) => continue,
                    };
                    let machine = run.nemeses().ok_or("nobody asked")?;
                    machine.answered(answer.0, *now, answer.1);
                }
            }
        }
        Ok(told)
    }

    fn seen_gone(&mut self) -> Result<(), Box<dyn Error>> {
        let (look, now) = (self.watch.take().ok_or("nothing is looked for")?, self.now);
        let proof = Proof::new(true, String::new());
        let machine = self.run()?.nemeses().ok_or("there are no nemeses yet")?;
        machine.answered(look.lane, now, Answer::Looked(look.version, proof));
        Ok(())
    }

    fn sees(&mut self, command: &goldenscript::Command) -> Result<(), Box<dyn Error>> {
        let name = command.name.as_str();
        let mut words = command.consume_args();
        let member = words.next_pos().and_then(|word| word.strip_prefix('n')).ok_or("which member?")?;
        let member = MemberId(member.parse()?);
        words.reject_next()?;
        let view = self.seen.views.get_mut(&member).ok_or("no such member")?;
        view.running = name != "down";
        view.stand = match name {
            "up" => SERVING,
            _ => Stand::Looking,
        };
        self.seen.leader = leader_of(&self.seen.views);
        Ok(())
    }
}

impl goldenscript::Runner for Script {
    type Command = goldenscript::Command;

    fn run(&mut self, command: &goldenscript::Command, _: &Context) -> Printed {
        let now = self.now;
        match command.name.as_str() {
            "begin" => self.begin(command)?,
            "fault" => self.plan(command)?,
            "at" => self.now = moment(command)?,
            "next" => return self.next(),
            "set-up" => self.run()?.was_set_up(now),
            "left" => self.run()?.clients_left(now),
            "settled" => self.run()?.was_read(now, true),
            "unsettled" => self.run()?.was_read(now, false),
            "interrupt" => self.run()?.end_early(now, Early::Interrupted),
            "violation" => self.run()?.end_early(now, Early::Violation),
            "done" => self.run()?.work_is_done(now),
            "failed" => {
                let run = self.run()?;
                run.nemeses().ok_or("there are no nemeses yet")?.failed(0);
                run.end_early(now, Early::Failed);
            }
            "shown" => self.seen.shown = true,
            "not-shown" => self.seen.shown = false,
            "silent" => self.seen.silent = Some(now),
            "answered" => self.seen.silent = None,
            "unseen" => self.unseen = true,
            "seen" => self.seen_gone()?,
            "wake" => {
                let run = self.run()?;
                return Ok(match run.wake(now) {
                    Some(at) => format!("at {} ms", at / MS),
                    None if run.is_over() => "over".to_owned(),
                    None => "when somebody answers".to_owned(),
                });
            }
            "up" | "down" | "looks" => self.sees(command)?,
            other => return Err(format!("there is no {other} in these scripts").into()),
        }
        Ok(String::new())
    }
}
