//! Recipes, driven over a session: see [`node_recipes::recipe`] for what is owed to them.

use std::collections::VecDeque;
use std::future::pending;
use std::ops::ControlFlow;
use std::sync::Arc;

use node_recipes::recipe::{Ask, Effects, Input, Now, Recipe};
use node_session::watches::Owner;
use node_session::{Failure, Request, Response};
use node_wire::ids::SessionId;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::events::Note;
use crate::keeper::{Certainty, Keeper};
use crate::pipeline::Pipeline;

/// A recipe at work. When it is dropped the recipe leaves what it is part of, and the session is kept until
/// it has.
pub struct Running<R: Recipe> {
    calls: mpsc::UnboundedSender<R::Call>,
    told: mpsc::UnboundedReceiver<R::Told>,
}

impl<R: Recipe> std::fmt::Debug for Running<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl<R: Recipe> Running<R> {
    /// Wants something of the recipe. One that is over does not hear it.
    pub fn call(&self, call: R::Call) {
        let _ = self.calls.send(call);
    }

    /// What the recipe tells next; nothing once it is over, or the session is closed. Nothing is lost when
    /// the wait is given up.
    pub async fn next(&mut self) -> Option<R::Told> {
        self.told.recv().await
    }
}

impl Keeper {
    /// Drives a recipe in a task of its own. To be called within a runtime of tokio.
    pub fn drive<R>(&self, recipe: R) -> Running<R>
    where
        R: Recipe + Send + 'static,
        R::Call: Send,
        R::Told: Send,
    {
        let (calls, called) = mpsc::unbounded_channel();
        let (tell, told) = mpsc::unbounded_channel();
        let (to, notes) = mpsc::unbounded_channel();
        let owner = self.shared().core().add_recipe(to.clone());
        let driving = Driving {
            keeper: self.clone(),
            recipe,
            owner,
            calls: called,
            has_left: false,
            tell,
            to,
            notes,
            line: None,
            session: None,
            open: VecDeque::new(),
            certainty: None,
        };
        tokio::spawn(driving.run());
        Running { calls, told }
    }
}

/// A request without an answer.
struct Open {
    ask: Ask,
    /// Why it will have none, if it was not sent. It is told when all before it are answered.
    failed: Option<Failure>,
}

struct Driving<R: Recipe> {
    keeper: Keeper,
    recipe: R,
    owner: Owner,
    calls: mpsc::UnboundedReceiver<R::Call>,
    has_left: bool,
    tell: mpsc::UnboundedSender<R::Told>,
    to: mpsc::UnboundedSender<Note>,
    /// Answers, events and states in one order.
    notes: mpsc::UnboundedReceiver<Note>,
    /// The connection that the recipe knows of. What it asks goes over no other.
    line: Option<Arc<Pipeline>>,
    /// The session that the recipe knows of.
    session: Option<SessionId>,
    open: VecDeque<Open>,
    certainty: Option<Certainty>,
}

impl<R: Recipe> Driving<R> {
    async fn run(mut self) {
        while !self.recipe.is_over() {
            match (self.recipe.wants_certainty(), &self.certainty) {
                (true, None) => self.certainty = Some(self.keeper.keep_certain()),
                (false, Some(_)) => self.certainty = None,
                _ => {}
            }
            let alarm = self.recipe.wakes_at().map(|at| self.keeper.shared().instant(at));
            tokio::select! {
                biased;
                note = self.notes.recv() => match note.map(|note| self.note(note)) {
                    Some(ControlFlow::Continue(())) => {}
                    Some(ControlFlow::Break(())) | None => return,
                },
                () = async { if let Some(at) = alarm { sleep_until(at).await } else { pending().await } } => {
                    self.feed(Input::Time);
                }
                call = self.calls.recv(), if !self.has_left => match call {
                    Some(call) => self.feed(Input::Call(call)),
                    None => {
                        self.has_left = true;
                        self.feed(Input::Call(R::leave()));
                    }
                },
            }
        }
    }

    fn note(&mut self, note: Note) -> ControlFlow<()> {
        match note {
            Note::Answered { ask, answer } => self.answered(ask, answer),
            Note::Event(event) => self.feed(Input::Event(event)),
            Note::Connected { session, line } => {
                self.line = Some(line);
                self.session = Some(session);
                self.feed(Input::Connected { session });
            }
            Note::Certain if self.certainty.is_some() => self.feed(Input::Time),
            Note::Certain => {}
            Note::Suspended => self.suspended(),
            Note::Lost => {
                self.suspended();
                if self.session.take().is_some() {
                    self.feed(Input::Lost);
                }
                if self.has_left {
                    return ControlFlow::Break(());
                }
            }
            Note::Closed => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn answered(&mut self, ask: Ask, answer: Result<Response, Failure>) {
        if let Some(at) = self.open.iter().position(|open| open.ask == ask) {
            self.open.remove(at);
            self.feed(Input::Answered { ask, answer });
        }
    }

    /// The connection is over. Its answers came before, so only what was not sent has none.
    fn suspended(&mut self) {
        if self.line.take().is_some() {
            self.feed(Input::Suspended);
        }
    }

    /// Gives the recipe a fact, and the failures of what can't be sent, each in its turn.
    fn feed(&mut self, input: Input<R::Call>) {
        let mut input = input;
        loop {
            self.step(input);
            let Some(Open { ask, failed: Some(failure) }) = self.open.front() else { return };
            input = Input::Answered { ask: *ask, answer: Err(*failure) };
            self.open.pop_front();
        }
    }

    fn step(&mut self, input: Input<R::Call>) {
        let shared = self.keeper.shared();
        // What is certain of a session that the recipe has not heard of says nothing of what it holds.
        let certain_until = self.session.and_then(|session| shared.certain_until_of(session));
        let timeout = Some(shared.timeout());
        let now = Now { at: shared.now(), certain_until, timeout };
        let mut effects = Effects::default();
        self.recipe.step(now, input, &mut effects);
        for (ask, request) in effects.asks {
            let failed = self.send(ask, request);
            self.open.push_back(Open { ask, failed });
        }
        for told in effects.told {
            // An application that went away need not be told.
            let _ = self.tell.send(told);
        }
    }

    fn send(&self, ask: Ask, request: Request) -> Option<Failure> {
        let shared = self.keeper.shared();
        let request = request.with_acl(self.keeper.acl());
        let (Some(line), Ok(request)) = (&self.line, shared.chroot.request(request)) else {
            return Some(Failure::NotSent);
        };
        let to = self.to.clone();
        let deliver = move |result: Result<node_session::Answer, _>| {
            let answer = result.map(|answer| answer.response).map_err(|failed| Failure::from(&failed));
            let _ = to.send(Note::Answered { ask, answer });
            true
        };
        let sent = shared.submit(line, &Arc::new(request), Some(self.owner), Box::new(deliver));
        sent.err().map(|_| Failure::NotSent)
    }
}

impl<R: Recipe> Drop for Driving<R> {
    fn drop(&mut self) {
        self.keeper.shared().core().forget(self.owner);
    }
}
