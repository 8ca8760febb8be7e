//! The rules of a load, one script each, in virtual time.
//!
//! A script begins with `begin clients=C members=M [patience=MS]` and goes on with inputs. `at MS` moves the
//! clock. `due` lets an operation fall due. `next C` asks what client C is to do; what it is told to do
//! becomes its operation under way. `connected C`, `refused C` and `lost C` say what became of its
//! connection, `replaced C` that it was not there itself; `ok C`, `failed C` and `unknown C` of its
//! operation. `home C` has a client connected to its home. `close` ends the load, `status` tells what is
//! shared.

use std::collections::BTreeMap;
use std::error::Error;

use checker::history::EventKind;
use goldenscript::{Command, Context};
use harness_core::load::{Load, Step, Terms};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use runs::member::MemberId;
use workloads::{Kind, Op, Outcome, Params, Workload};

use crate::{MS, moment};

#[derive(Default)]
pub(crate) struct Script {
    load: Option<Load>,
    now: u64,
    open: BTreeMap<usize, Op>,
}

impl Script {
    fn begin(&mut self, command: &Command) -> Result<(), Box<dyn Error>> {
        let mut words = command.consume_args();
        let clients = words.take_key("clients").unwrap_or("1").parse()?;
        let members: u64 = words.take_key("members").unwrap_or("1").parse()?;
        let patience: u64 = words.take_key("patience").unwrap_or("1000").parse()?;
        words.reject_next()?;
        let terms =
            Terms { members: (1..=members).map(MemberId).collect(), clients, patience_ns: patience * MS };
        let workload = Workload::new(Kind::REGISTER, Params::of_keys(1), ChaCha8Rng::seed_from_u64(1))?;
        let mut load = Load::new(terms, workload);
        load.open();
        self.load = Some(load);
        Ok(())
    }

    fn step(&mut self, client: usize) -> Result<String, Box<dyn Error>> {
        let step = self.load.as_mut().ok_or("no load has begun")?.next(client, self.now);
        Ok(match step {
            Step::Do(due) => {
                let verb = if due.op.is_change() { "change" } else { "read" };
                let words = format!("{verb} as p{}, due at {}", due.process, millis(due.at));
                self.open.insert(client, due.op);
                words
            }
            Step::WriteOff(due, why) => {
                let words = format!("write off as p{}, due at {}: {why}", due.process, millis(due.at));
                self.finish(client, &due.op, EventKind::Fail)?;
                words
            }
            Step::Connect(member) => format!("connect to n{member}"),
            Step::Wait(Some(until)) => format!("wait until {}", millis(until)),
            Step::Wait(None) => "wait".to_owned(),
            Step::Leave => "leave".to_owned(),
        })
    }

    fn finish(&mut self, client: usize, op: &Op, kind: EventKind) -> Result<(), Box<dyn Error>> {
        let outcome = Outcome::without_result(kind, op, String::new());
        self.load.as_mut().ok_or("no load has begun")?.completed(client, op, &outcome);
        Ok(())
    }

    fn end(&mut self, client: usize, kind: EventKind) -> Result<(), Box<dyn Error>> {
        let op = self.open.remove(&client).ok_or("it has nothing under way")?;
        self.finish(client, &op, kind)
    }

    fn client(command: &Command) -> Result<usize, Box<dyn Error>> {
        let mut words = command.consume_args();
        let client = words.next_pos().ok_or("which client?")?.parse()?;
        words.reject_next()?;
        Ok(client)
    }
}

fn millis(ns: u64) -> String {
    format!("{} ms", ns / MS)
}

impl goldenscript::Runner for Script {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        let mut out = String::new();
        let now = self.now;
        match command.name.as_str() {
            "begin" => self.begin(command)?,
            "at" => self.now = moment(command)?,
            "due" => {
                self.load.as_mut().ok_or("no load has begun")?.falls_due(now);
            }
            "next" => out = self.step(Self::client(command)?)?,
            "ok" => self.end(Self::client(command)?, EventKind::Ok)?,
            "failed" => self.end(Self::client(command)?, EventKind::Fail)?,
            "unknown" => self.end(Self::client(command)?, EventKind::Info)?,
            name => {
                let load = self.load.as_mut().ok_or("no load has begun")?;
                match name {
                    "connected" => load.connected(Self::client(command)?, now),
                    "refused" => load.refused(Self::client(command)?, now),
                    "replaced" => load.not_there(Self::client(command)?, now),
                    "lost" => load.lost(Self::client(command)?, now),
                    "home" => {
                        let client = Self::client(command)?;
                        load.next(client, now);
                        load.connected(client, now);
                    }
                    "close" => load.close(),
                    "status" => {
                        let waits = if load.is_due() { "something waits" } else { "nothing waits" };
                        out = format!("{waits}, {} shed, next process p{}", load.shed(), load.next_process());
                    }
                    other => return Err(format!("there is no {other} in these scripts").into()),
                }
            }
        }
        Ok(out)
    }
}
