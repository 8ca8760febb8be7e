//! A conversation with a client, without a cluster: what it says when nobody listens, when the connection
//! breaks behind a request, when nobody answers, and when it is asked for what it does not know.
//!
//! The members of this conversation are ports of our own (`check/member.rs`), with a real member behind them
//! or nobody. They see whether a request's value arrives, and how often: a client that sends an operation
//! twice, or whose library does, makes one operation of the history two of the system's, and nobody could
//! judge that.
//!
//! What a client must not do is a *fault*: nothing that it says in a run can be believed. What it could do
//! better is *advice*.
//!
//! A client that holds locks meets the bench's store as well (`check/guarded.rs`).

mod guarded;
mod member;

use std::sync::Arc;
use std::time::Duration;

use checker::history::{EventKind, Function, Micro, NOT_SENT};
use tokio::net::TcpStream;
use tokio::time::Instant;
use workloads::Outcome;
use workloads::op::{Body, Object, Op};
use workloads::workload::example;

use super::holder::{self, Clock};
use super::process::{NoAnswer, Process};
use super::{SESSION_VARIABLE, STORE_VARIABLE, lines};
use crate::program::Program;
use crate::system::Beginning;
use guarded::{Answers, Store};
pub use member::Behind;
use member::{Heard, Member};

/// How long the client is told that it may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// How much longer is waited for it.
const GRACE: Duration = Duration::from_millis(500);
/// How long what it holds may outlive its silence.
const SESSION: Duration = Duration::from_secs(4);
/// What is said of a request that a real member answered.
const UNKNOWN_REQUEST: &str = "not tried: the member did it, because nothing in its request is its value in \
    decimal, in base64 or in four bytes";
/// And of one that did not come to be.
const NO_REQUEST: &str = "not tried: the request with its value never came; what the member answered \
    before it was not what it needs";
/// A member that is not there.
const NOWHERE: &str = "127.0.0.1:1";
/// How long it may take to end when its input does.
const EXIT_PATIENCE: Duration = Duration::from_secs(5);
/// The value by which a request is known again, in decimal.
const VALUE: i64 = 724_105_813;
/// How long a watch is to wait for news.
const WAIT_MS: u64 = 200;
/// What is compared with.
const OTHER: i64 = 318_640_927;

/// How a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// As it should be.
    Good,
    /// It could be better.
    Advice,
    /// It could not be tried.
    Untried,
    /// No conversation without a cluster can try it.
    Untriable,
    /// Nothing that such a client says can be believed.
    Fault,
}

/// One thing that was tried.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was tried.
    pub tried: String,
    /// What came of it.
    pub seen: String,
    /// How that weighs.
    pub weight: Weight,
}

/// A conversation that was played to its end.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// What was tried, in order.
    pub findings: Vec<Finding>,
    /// Whether the client has functions that change something, and no request of any of them ever came: of
    /// all that makes a client worth believing nothing was tried.
    pub heard_no_change: bool,
}

/// What a member of the conversation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    /// Nobody listens.
    Refuses,
    /// It reads, and resets the connection.
    Resets,
    /// It reads, and says nothing.
    IsSilent,
}

impl Conduct {
    const ALL: [Self; 3] = [Self::Refuses, Self::Resets, Self::IsSilent];

    fn words(self) -> &'static str {
        match self {
            Self::Refuses => "nobody listens",
            Self::Resets => "the connection is reset behind the request",
            Self::IsSilent => "nobody answers",
        }
    }
}

/// Plays the conversation with a client.
///
/// # Errors
/// The client does not start, or says no hello; nobody listens where a member was said to be.
pub async fn converse(
    program: &Program,
    beginning: &Beginning,
    behind: &Behind,
) -> Result<Conversation, String> {
    if let Behind::Member(address) = behind {
        TcpStream::connect(address).await.map_err(|error| format!("no member at {address}: {error}"))?;
    }
    let store = Store::open().await.map_err(|error| format!("opening a port: {error}"))?;
    let mut beginning = beginning.clone();
    beginning.environment.extend([
        (STORE_VARIABLE.to_owned(), store.address.to_string()),
        (SESSION_VARIABLE.to_owned(), SESSION.as_millis().to_string()),
    ]);
    let mut talk =
        Talk { program, beginning, behind, number: 0, asked: 0, findings: Vec::new(), changes: None };
    let process = talk.start().await?;
    let functions = process.functions().to_vec();
    let names: Vec<&str> = functions.iter().map(|function| function.as_str()).collect();
    talk.found("its hello", format!("it can {}", names.join(", ")), Weight::Good);
    let mut process = Some(process);
    for conduct in Conduct::ALL {
        for op in functions.iter().filter_map(|function| operation(*function)) {
            if conduct != Conduct::Refuses && !behind.can_try(&op) {
                continue;
            }
            let open = match process.take() {
                Some(process) => process,
                None => talk.start().await?,
            };
            process = talk.meets(open, &op, conduct).await?;
        }
    }
    if functions.contains(&Function::STORE) {
        process = talk.writes(process, &store).await?;
    }
    for function in &functions {
        if let Some(why) = untriable(*function) {
            talk.found(function.as_str(), why.to_owned(), Weight::Untriable);
        }
    }
    let open = match process {
        Some(process) => process,
        None => talk.start().await?,
    };
    if let Some(process) = talk.is_asked_for_the_unknown(open).await {
        talk.is_dismissed(process).await;
    }
    Ok(Conversation { findings: talk.findings, heard_no_change: talk.changes == Some(0) })
}

/// An operation of that kind; none for what has no single request, or changes something and has no value by
/// which its request is known.
fn operation(function: Function) -> Option<Op> {
    let (object, body) = match function {
        Function::READ => (Object::REGISTER, Body::Read),
        Function::WRITE => (Object::REGISTER, Body::Write { value: VALUE }),
        Function::CAS => (Object::REGISTER, Body::Cas { from: OTHER, to: VALUE, basis: None }),
        Function::ADD => (Object::SET, Body::Add { element: VALUE }),
        Function::APPEND => (Object::LIST, Body::Append { element: VALUE, onto: Arc::from([]), basis: None }),
        // Without a read before it, so that it is in the first request.
        Function::TXN => return Some(Op::txn([Micro::append(1, VALUE)])),
        Function::WATCH => {
            (Object::REGISTER, Body::Watch { watcher: 0, from: Some(VALUE), wait_ms: WAIT_MS })
        }
        Function::ENQUEUE => (Object::QUEUE, Body::Enqueue { element: VALUE }),
        Function::ACKNOWLEDGE => (Object::QUEUE, Body::Acknowledge { element: VALUE }),
        Function::ACQUIRE => (Object::LOCK, Body::Acquire),
        // What one workload alone asks for.
        other => return example(other, VALUE),
    };
    Some(Op::new(object, 1, body))
}

/// Why nothing of this conversation tries that function; none where something does.
fn untriable(function: Function) -> Option<&'static str> {
    match function {
        // At the bench's store.
        Function::STORE => None,
        Function::RELEASE => {
            Some("not tried: no member of this conversation gives a lock; see yourself that it is sent once")
        }
        other if operation(other).is_none() => Some(
            "not tried: its request has no value by which it is known; see yourself that it is sent once",
        ),
        _ => None,
    }
}

struct Talk<'a> {
    program: &'a Program,
    beginning: Beginning,
    behind: &'a Behind,
    number: u64,
    asked: u64,
    findings: Vec<Finding>,
    /// Requests for a change that came; none where none was to come.
    changes: Option<usize>,
}

impl Talk<'_> {
    async fn start(&mut self) -> Result<Process, String> {
        self.number += 1;
        Process::start(self.program, &self.beginning, self.number).await
    }

    fn found(&mut self, tried: impl Into<String>, seen: String, weight: Weight) {
        self.findings.push(Finding { tried: tried.into(), seen, weight });
    }

    /// Asks the client for an operation at a member of this conduct. Gives the process back if it can be
    /// asked again.
    async fn meets(
        &mut self,
        mut process: Process,
        op: &Op,
        conduct: Conduct,
    ) -> Result<Option<Process>, String> {
        let member =
            Member::open(conduct, self.behind).await.map_err(|error| format!("opening a port: {error}"))?;
        let tried = format!("{}, {}", op.function(), conduct.words());
        self.asked += 1;
        let line = lines::asked(op, self.asked, &member.address.to_string(), PATIENCE);
        let began = Instant::now();
        let answered = process.converse(&line, PATIENCE + GRACE).await;
        let heard = member.heard();
        if op.is_change() && op.body != Body::Acquire && conduct != Conduct::Refuses {
            *self.changes.get_or_insert(0) += heard.requests;
        }
        let line = match answered {
            Ok(line) => line,
            Err(why) => {
                self.has_no_answer(tried, &process, &why);
                return Ok(None);
            }
        };
        let said = String::from_utf8_lossy(&line).into_owned();
        match self.outcome(op, &process, &line) {
            Err(why) => self.found(tried, format!("{why}; its line: {said}"), Weight::Fault),
            Ok(outcome) => {
                let told = (outcome.kind, outcome.error.as_deref());
                let is_real = matches!(self.behind, Behind::Member(_)) && conduct != Conduct::Refuses;
                let (seen, weight) = match (is_real, heard.requests, outcome.kind) {
                    (true, 0, EventKind::Ok) => (UNKNOWN_REQUEST.to_owned(), Weight::Untried),
                    (true, 0, _) => (NO_REQUEST.to_owned(), Weight::Untried),
                    _ => judged(op, conduct, told, heard),
                };
                let took = began.elapsed().as_millis();
                self.found(tried, format!("{seen} ({took} ms): {said}"), weight);
            }
        }
        Ok(Some(process))
    }

    fn has_no_answer(&mut self, tried: String, process: &Process, why: &NoAnswer) {
        let (seen, weight) = match why {
            NoAnswer::TooLong => ("a line that never ends".to_owned(), Weight::Fault),
            NoAnswer::Ended => {
                let seen = process.accused("it ended", None);
                let seen = format!("{seen}; each such operation costs a process; answer info and live on");
                (seen, Weight::Advice)
            }
            NoAnswer::Late => {
                let seen = format!(
                    "no answer within {} ms of the {} ms that it was told: its process would be ended, and \
                     another take its place; give the library a time-out",
                    (PATIENCE + GRACE).as_millis(),
                    PATIENCE.as_millis()
                );
                (seen, Weight::Advice)
            }
        };
        self.found(tried, seen, weight);
    }

    /// What a line means that answers the last question.
    fn outcome(&self, op: &Op, process: &Process, line: &[u8]) -> Result<Outcome, String> {
        if op.object == Object::LOCK {
            return holder::outcome(
                op,
                self.asked,
                line,
                &Clock { read_ns: 0, run_ns: &|monotonic| monotonic },
            );
        }
        lines::outcome(op, self.asked, process.functions(), line)
    }

    /// Asks the client for guarded writes, once for each thing that the store may do.
    async fn writes(
        &mut self,
        mut process: Option<Process>,
        store: &Store,
    ) -> Result<Option<Process>, String> {
        for answers in Answers::ALL {
            let mut open = match process.take() {
                Some(process) => process,
                None => self.start().await?,
            };
            store.is_to(answers);
            let op = Op::new(Object::LOCK, 1, Body::Store { token: VALUE, value: OTHER });
            self.asked += 1;
            let line = lines::asked(&op, self.asked, NOWHERE, PATIENCE);
            let tried = format!("store, {}", answers.words());
            let line = match open.converse(&line, PATIENCE + GRACE).await {
                Ok(line) => line,
                Err(why) => {
                    self.has_no_answer(tried, &open, &why);
                    continue;
                }
            };
            let said = String::from_utf8_lossy(&line).into_owned();
            match self.outcome(&op, &open, &line) {
                Err(why) => self.found(tried, format!("{why}; its line: {said}"), Weight::Fault),
                Ok(told) => {
                    let told = (told.kind, told.error.as_deref());
                    let Some((seen, weight)) = guarded::judged(answers, told, store.arrived()) else {
                        self.found("store", format!("it holds nothing, and says so: {said}"), Weight::Good);
                        return Ok(Some(open));
                    };
                    self.found(tried, format!("{seen}: {said}"), weight);
                }
            }
            process = Some(open);
        }
        Ok(process)
    }

    async fn is_asked_for_the_unknown(&mut self, mut process: Process) -> Option<Process> {
        self.asked += 1;
        let line = format!(
            "{{\"id\":{},\"f\":\"frobnicate\",\"key\":1,\"value\":null,\"member\":\"127.0.0.1:1\",\
             \"timeout_ms\":1000}}\n",
            self.asked
        );
        let tried = "a function that nobody knows";
        match process.converse(line.as_bytes(), PATIENCE + GRACE).await {
            Ok(line) => {
                let said = String::from_utf8_lossy(&line).into_owned();
                let is_fail = serde_json::from_slice::<serde_json::Value>(&line)
                    .is_ok_and(|answer| answer["type"] == "fail" && answer["id"] == self.asked);
                let (seen, weight) = if is_fail {
                    ("fail", Weight::Good)
                } else {
                    ("it must be a fail, with the same id", Weight::Fault)
                };
                self.found(tried, format!("{seen}: {said}"), weight);
                Some(process)
            }
            Err(_) => {
                let seen = "it ended, or says nothing; answer fail, so that a later protocol does no harm";
                self.found(tried, seen.to_owned(), Weight::Advice);
                None
            }
        }
    }

    async fn is_dismissed(&mut self, process: Process) {
        let tried = "the end of its input";
        if process.ends_without_input(EXIT_PATIENCE).await {
            self.found(tried, "it ends".to_owned(), Weight::Good);
        } else {
            let seen = format!("it lives on for more than {} s", EXIT_PATIENCE.as_secs());
            self.found(tried, seen, Weight::Fault);
        }
    }
}

/// How an answer weighs, by what could be known at that moment.
fn judged(op: &Op, conduct: Conduct, said: (EventKind, Option<&str>), heard: Heard) -> (String, Weight) {
    let good = |words: &str| (words.to_owned(), Weight::Good);
    let advice = |words: &str| (words.to_owned(), Weight::Advice);
    let fault = |words: &str| (words.to_owned(), Weight::Fault);
    if heard.requests > 1 {
        let times = heard.requests;
        return (format!("it sent the request {times} times: nothing may be tried again"), Weight::Fault);
    }
    let arrived = heard.requests;
    match (said, conduct) {
        ((EventKind::Ok, _), _) => fault("ok, though nobody answered"),
        ((EventKind::Fail, Some(error)), _) if error == checker::history::BAD_VERSION => {
            fault("a mismatch, though nobody compared anything")
        }
        // A read has no effect, so that a lost one is a fail by itself.
        ((EventKind::Fail, Some(error)), Conduct::Refuses) if error.starts_with(NOT_SENT) => {
            good("fail, not-sent")
        }
        ((EventKind::Fail, _), Conduct::Refuses) if !op.is_change() => {
            advice("nothing was sent: with the error not-sent the client is sent to another member")
        }
        ((EventKind::Fail, _), Conduct::Refuses) => {
            advice("fail; with the error not-sent the client is sent to another member")
        }
        ((_, _), Conduct::Refuses) => {
            advice("info is true and costs an identity each time: nothing was sent, so say fail, not-sent")
        }
        // Nothing of it can have been committed.
        ((EventKind::Fail, _), _) if heard.is_begun_only => good("fail: it had not asked to commit"),
        ((EventKind::Fail, _), _) if op.is_change() && arrived > 0 => {
            fault("fail, though the request had left: nobody knows what became of it, so it is info")
        }
        // Its request has no value by which it is known.
        (_, _) if op.body == Body::Acquire => good("it holds nothing"),
        _ if op.is_change() && arrived == 0 => {
            let words = "not tried: its request never came, as where a client and a member shake hands first";
            (words.to_owned(), Weight::Untried)
        }
        ((_, _), _) if op.is_change() => good("info"),
        ((_, _), _) => good("no answer was taken for one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_tried_or_said_not_to_be() {
        for function in workloads::workload::functions() {
            let is_tried = operation(function).is_some() || function == Function::STORE;
            assert_eq!(untriable(function).is_none(), is_tried, "{function}");
        }
        for name in ["send", "poll", "open-account", "transfer", "balances"] {
            assert_eq!(untriable(Function::named(name)), None, "{name}");
        }
    }

    #[test]
    fn an_answer_weighs_by_what_could_be_known() {
        let write = operation(Function::WRITE).expect("a write");
        let read = operation(Function::READ).expect("a read");
        let heard = |requests| Heard { requests, is_begun_only: false };
        let weight = |op: &Op, conduct, said, requests| judged(op, conduct, said, heard(requests)).1;
        let (info, fail) = ((EventKind::Info, None), (EventKind::Fail, Some("refused")));
        assert_eq!(weight(&write, Conduct::Resets, info, 1), Weight::Good);
        assert_eq!(weight(&write, Conduct::Resets, fail, 1), Weight::Fault);
        assert_eq!(weight(&write, Conduct::Resets, fail, 0), Weight::Untried);
        assert_eq!(weight(&write, Conduct::IsSilent, info, 2), Weight::Fault, "it was tried again");
        assert_eq!(weight(&write, Conduct::Refuses, info, 0), Weight::Advice);
        assert_eq!(weight(&write, Conduct::Refuses, (EventKind::Fail, Some("not-sent: x")), 0), Weight::Good);
        assert_eq!(weight(&read, Conduct::IsSilent, (EventKind::Ok, None), 0), Weight::Fault);
        assert_eq!(weight(&read, Conduct::Resets, fail, 0), Weight::Good);
        let begun = Heard { requests: 1, is_begun_only: true };
        assert_eq!(judged(&write, Conduct::Resets, fail, begun).1, Weight::Good);
    }
}
