//! One client: takes what is due, sends it once, writes down what came of it.

use std::sync::Arc;
use std::time::Duration;

use checker::history::{BAD_VERSION, Event, EventKind};
use harness_core::load::{CONNECT_PATIENCE_NS, ClientId, Due, Step};
use harness_systems::{Client, Connected};
use runs::member::MemberId;
use tokio::sync::{SemaphorePermit, watch};
use workloads::op::{Body, Object};
use workloads::{Op, Outcome};

use super::Shared;
use super::queue::Queue;
use crate::clock::{RunClock, RunNs};

/// How long one member may take to answer a connect.
const CONNECT_PATIENCE: Duration = Duration::from_nanos(CONNECT_PATIENCE_NS);

/// A client that was refused for so long, and nothing else, is replaced by a new one: that it is refused may
/// be its own fault.
const WORN_NS: RunNs = 5_000_000_000;

/// A client.
pub struct LoadClient {
    shared: Shared,
    /// The system's client.
    own: Box<dyn Client>,
    /// The member that it went to last.
    at: Option<MemberId>,
    client: ClientId,
    /// Whether the rules know it as connected.
    has_slot: bool,
    /// Since when all that it asked for was refused.
    refused_since: Option<RunNs>,
}

impl LoadClient {
    /// The client of that number.
    pub fn new(shared: Shared, client: ClientId) -> Self {
        Self {
            own: shared.client_of_the_load(),
            at: None,
            shared,
            client,
            has_slot: false,
            refused_since: None,
        }
    }

    /// Works until the load is over or `stop` says so.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        self.work(stop).await;
        // Whoever holds gives it up, and that is in the history too.
        if let Some(op) = self.gives_up() {
            let process = self.shared.load.rules().process(self.client);
            self.serve(Due { at: self.shared.clock.now(), process, op }).await;
        }
        // Its session is left to expire, and whoever judges sessions counts from here.
        if let Some(session) = self.own.session() {
            self.note_session(&Op::abandon(), &Outcome::abandoned(), None, session);
        }
        self.own.forget();
    }

    async fn work(&mut self, mut stop: watch::Receiver<bool>) {
        let queue = Arc::clone(&self.shared.load);
        let clock = self.shared.clock;
        loop {
            if *stop.borrow() {
                return;
            }
            self.minds_a_fault(&queue);
            self.is_renewed(&queue);
            let step = if !self.own.is_connected() {
                if std::mem::take(&mut self.has_slot) {
                    queue.rules().lost(self.client, clock.now());
                }
                queue.ask(self.client, clock.now())
            } else {
                let homesick = queue.rules().homesick_at(self.client);
                tokio::select! {
                    turn = queue.turn() => match turn {
                        // Broken since the last look: the turn is somebody else's.
                        Some(_) if !self.own.is_connected() => continue,
                        Some(turn) => self.take(&queue, turn),
                        None => return,
                    },
                    () = until(clock, homesick) => queue.ask(self.client, clock.now()),
                    () = self.own.broken() => continue,
                    _ = stop.changed() => return,
                }
            };
            match step {
                Step::Do(due) => self.serve(due).await,
                Step::WriteOff(due, why) => self.never_sent(&due, why),
                Step::Connect(member) => {
                    let asked_at = clock.now();
                    let address = self.shared.cluster.client_address(member);
                    let connected = tokio::select! {
                        connected = self.own.connect(address, CONNECT_PATIENCE) => connected,
                        _ = stop.changed() => return,
                    };
                    self.note_connected(member, asked_at, &connected);
                }
                Step::Wait(_) if self.has_slot => {}
                Step::Wait(moment) => {
                    tokio::select! {
                        () = until(clock, moment) => {}
                        _ = stop.changed() => return,
                    }
                }
                Step::Leave => return,
            }
        }
    }

    /// A new client takes its place where it was refused for too long. An application is one for good, and so
    /// is whose sessions are judged.
    fn is_renewed(&mut self, queue: &Queue) {
        let now = self.shared.clock.now();
        let is_worn = self.refused_since.is_some_and(|since| now.saturating_sub(since) >= WORN_NS);
        if !is_worn || self.shared.applications.is_some() || queue.rules().workload().records_sessions() {
            return;
        }
        self.own = self.shared.client_of_the_load();
        self.refused_since = None;
        self.has_slot = false;
        queue.rules().is_new(self.client, now);
    }

    /// Takes what is due. A fault may have hit its application while it waited for that.
    fn take(&self, queue: &Queue, turn: SemaphorePermit<'_>) -> Step {
        self.minds_a_fault(queue);
        queue.take(turn, self.client, self.shared.clock.now())
    }

    /// Whose application is hit by a fault, or was and did nothing since, gives nothing up before it did.
    fn minds_a_fault(&self, queue: &Queue) {
        let own = self.shared.applications.as_ref().zip(self.own.session());
        if own.is_some_and(|(applications, number)| applications.is_on_trial(number)) {
            queue.rules().works_on(self.client);
        }
    }

    /// The release of what its application still holds.
    fn gives_up(&self) -> Option<Op> {
        let applications = self.shared.applications.as_ref()?;
        // What it has of a queue it gives back when it goes.
        applications.settings().workload.applications().filter(|kind| kind.one_holds())?;
        let holder = applications.held_by(self.own.session()?)?;
        let token = i64::try_from(holder.token).ok()?;
        Some(Op::new(Object::LOCK, holder.key, Body::Release { token }))
    }

    fn never_sent(&mut self, due: &Due, reason: &str) {
        self.note_invoke(due, None);
        self.note_outcome(due, &Outcome::not_sent(&due.op, reason), None);
    }

    async fn serve(&mut self, due: Due) {
        let Some(member) = self.at.filter(|_| self.own.is_connected()) else {
            // Broken since the last look. The operation is this client's, and it can't send it now.
            self.never_sent(&due, "the connection broke before");
            return;
        };
        let place = Place::of(member, &*self.own);
        self.note_invoke(&due, Some(place));
        if due.op.body == Body::Abandon {
            // Silent from before the moment that is written down.
            self.own.forget();
            self.note_outcome(&due, &Outcome::abandoned(), Some(place));
            return;
        }
        let outcome = self.own.perform(&due.op, self.shared.op_timeout).await;
        // Where a client goes by itself it says so when it answers.
        let place = Place { member: self.own.member().unwrap_or(place.member), ..place };
        self.note_outcome(&due, &outcome, Some(place));
        if due.op.ends_session() {
            self.own.forget();
            if let (true, Some(session)) = (outcome.kind != EventKind::Ok, place.session) {
                // Closed or not, nothing more is heard of it from here.
                self.note_session(&Op::abandon(), &Outcome::abandoned(), Some((member, None)), session);
            }
        }
    }

    /// Tells the rules what came of an attempt to connect, and notes how a session began or ended on the way.
    fn note_connected(&mut self, member: MemberId, asked_at: RunNs, connected: &Connected) {
        let now = self.shared.clock.now();
        let mut rules = self.shared.load.rules();
        if connected.stands() {
            rules.connected(self.client, now);
            if matches!(connected, Connected::Opened { .. }) && self.shared.applications.is_some() {
                rules.begins_anew(self.client);
            }
            self.has_slot = true;
            self.at = Some(member);
        } else if *connected == Connected::Replaced {
            rules.not_there(self.client, now);
        } else {
            rules.refused(self.client, now);
        }
        drop(rules);
        match connected {
            Connected::Opened { session, timeout } => {
                let at = Some((member, Some(asked_at)));
                self.note_session(&Op::open(), &Outcome::opened(*timeout), at, *session);
            }
            Connected::Expired { session } => {
                self.note_session(&Op::abandon(), &Outcome::expired(), Some((member, None)), *session);
            }
            Connected::Resumed | Connected::Refused(_) | Connected::Replaced => {}
        }
    }

    /// Writes down what became of a session beside the workload's own operations, for workloads that judge
    /// sessions.
    fn note_session(
        &mut self,
        op: &Op,
        outcome: &Outcome,
        at: Option<(MemberId, Option<RunNs>)>,
        session: u64,
    ) {
        let mut rules = self.shared.load.rules();
        if !rules.workload().records_sessions() {
            return;
        }
        let process = rules.process(self.client);
        rules.workload_mut().complete(process, op, outcome);
        drop(rules);
        let place = |event: &mut Event| {
            event.node = at.map(|(member, _)| member.0);
            event.session = Some(session);
        };
        self.shared.recorder.record(|now| {
            let since = at.and_then(|(_, since)| since).unwrap_or(now);
            let mut event = op.event(process, since);
            place(&mut event);
            event
        });
        self.shared.recorder.record(|now| {
            let mut event = outcome.event(op, process, now);
            place(&mut event);
            event
        });
    }

    fn note_invoke(&self, due: &Due, place: Option<Place>) {
        self.shared.recorder.record(|now| {
            let mut event = due.op.event(due.process, now);
            event.due = Some(due.at);
            Place::note(place, &mut event);
            event
        });
    }

    /// Notes what came of an operation.
    fn note_outcome(&mut self, due: &Due, outcome: &Outcome, place: Option<Place>) {
        self.shared.load.rules().completed(self.client, &due.op, outcome);
        self.refused_since = match outcome.kind {
            EventKind::Fail if outcome.error.as_deref() != Some(BAD_VERSION) => {
                self.refused_since.or_else(|| Some(self.shared.clock.now()))
            }
            _ => None,
        };
        note_completion(&self.shared, outcome, &due.op, due.process, place);
    }
}

/// Waits until a moment; for ever where there is none.
async fn until(clock: RunClock, moment: Option<RunNs>) {
    match moment {
        Some(at) => tokio::time::sleep_until(clock.instant(at).into()).await,
        None => std::future::pending().await,
    }
}

/// Where an operation was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    member: MemberId,
    session: Option<u64>,
}

impl Place {
    pub(super) fn of(member: MemberId, client: &dyn Client) -> Self {
        Self { member: client.member().unwrap_or(member), session: client.session() }
    }

    pub(super) fn note(place: Option<Self>, event: &mut Event) {
        if let Some(place) = place {
            event.node = Some(place.member.0);
            event.session = place.session;
        }
    }
}

/// Writes a completion down.
pub(super) fn note_completion(
    shared: &Shared,
    outcome: &Outcome,
    op: &Op,
    process: u64,
    place: Option<Place>,
) {
    shared.recorder.record(|now| {
        let mut event = outcome.event(op, process, now);
        Place::note(place, &mut event);
        event
    });
}
