//! Facts on their way to the core.
//!
//! Two queues: what peers and the disk say goes before what clients ask, so that no flood of requests delays
//! a heartbeat. Order between connections means nothing, order within one is kept.
//!
//! Everything here belongs to one thread. The exception is the wake-up, which the log's writer uses too.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use node_core::io::Input;
use tokio::sync::{Notify, oneshot};

use crate::view::{View, Want};

/// Inputs that may wait in either queue before readers of sockets hold back.
const FULL: usize = 8192;

/// Questions about the member that may wait; more are refused.
const MAX_QUESTIONS: usize = 256;

/// A look at the member that somebody waits for.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) want: Want,
    pub(crate) answer: oneshot::Sender<View>,
}

/// Filled by the tasks that own sockets, emptied by the task that owns the member.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    peers: RefCell<VecDeque<Input>>,
    clients: RefCell<VecDeque<Input>>,
    questions: RefCell<Vec<Question>>,
    wake: Arc<Notify>,
}

impl Inbox {
    /// What wakes the member's task.
    pub(crate) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    pub(crate) fn put_peer(&self, input: Input) {
        self.peers.borrow_mut().push_back(input);
        self.wake.notify_one();
    }

    pub(crate) fn put_client(&self, input: Input) {
        self.clients.borrow_mut().push_back(input);
        self.wake.notify_one();
    }

    pub(crate) fn next_from_peer(&self) -> Option<Input> {
        self.peers.borrow_mut().pop_front()
    }

    pub(crate) fn next_from_client(&self) -> Option<Input> {
        self.clients.borrow_mut().pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.peers.borrow().is_empty()
            && self.clients.borrow().is_empty()
            && self.questions.borrow().is_empty()
    }

    /// Asks for a look at the member as it is after the present batch.
    pub(crate) async fn look(&self, want: Want) -> Option<View> {
        let (answer, receiver) = oneshot::channel();
        {
            let mut questions = self.questions.borrow_mut();
            if questions.len() >= MAX_QUESTIONS {
                return None;
            }
            questions.push(Question { want, answer });
        }
        self.wake.notify_one();
        receiver.await.ok()
    }

    pub(crate) fn questions(&self) -> Vec<Question> {
        std::mem::take(&mut self.questions.borrow_mut())
    }

    /// Lets the member's task go first when much is waiting. Readers call it after each portion.
    pub(crate) async fn make_room(&self) {
        while self.peers.borrow().len() >= FULL || self.clients.borrow().len() >= FULL {
            tokio::task::yield_now().await;
        }
    }
}
