//! The load's rules under a lock, and the line of those who wait for what falls due.
//!
//! Clients wait in the order in which they became free, so that work goes round all of them, those beside a
//! fault included. There is a permit for each operation that is due, or more: who has no connection writes
//! operations off without waiting. Whoever takes an operation uses a permit up, and so does who finds none
//! left; who connects instead gives it back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use harness_core::load::{ClientId, Load, Step};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::clock::RunNs;

/// What all clients share.
#[derive(Debug)]
pub struct Queue {
    rules: Mutex<Load>,
    due: Semaphore,
}

impl Queue {
    /// Nothing is due.
    pub fn new(rules: Load) -> Self {
        Self { rules: Mutex::new(rules), due: Semaphore::new(0) }
    }

    /// The rules, for a moment.
    pub fn rules(&self) -> MutexGuard<'_, Load> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation falls due.
    pub fn push(&self, at: RunNs) {
        if self.rules().falls_due(at) {
            self.due.add_permits(1);
        }
    }

    /// Waits in the line for an operation; none when there will be no more.
    pub async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.due.acquire().await.ok()
    }

    /// What a client whose turn it is does next.
    pub fn take(&self, turn: SemaphorePermit<'_>, client: ClientId, now: RunNs) -> Step {
        let step = self.rules().next(client, now);
        // Somebody without a connection wrote off what this turn was for.
        if !matches!(step, Step::Connect(_) | Step::Leave) {
            turn.forget();
        }
        step
    }

    /// What a client does that does not wait in the line: it has no connection, or thinks of home.
    pub fn ask(&self, client: ClientId, now: RunNs) -> Step {
        let turn = self.due.try_acquire().ok();
        let step = self.rules().next(client, now);
        if let (Some(turn), Step::Do(_) | Step::WriteOff(..)) = (turn, &step) {
            turn.forget();
        }
        step
    }

    /// No more operations: whoever waits is sent away.
    pub fn close(&self) {
        self.rules().close();
        self.due.close();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use harness_core::load::Terms;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;
    use runs::member::MemberId;
    use workloads::{Kind, Params, Workload};

    use super::*;

    pub(in super::super) fn queue(members: u64) -> Queue {
        let rng = ChaCha8Rng::seed_from_u64(1);
        let workload = Workload::new(Kind::REGISTER, Params::of_keys(1), rng).expect("a workload");
        let members = (1..=members).map(MemberId).collect();
        let mut rules = Load::new(Terms { members, clients: 2, patience_ns: 100 }, workload);
        rules.open();
        Queue::new(rules)
    }

    fn connect(queue: &Queue, client: ClientId) {
        assert!(matches!(queue.ask(client, 0), Step::Connect(_)));
        queue.rules().connected(client, 0);
    }

    #[tokio::test]
    async fn each_operation_is_one_turn_and_the_end_sends_everybody_away() {
        let queue = queue(1);
        connect(&queue, 0);
        queue.push(5);
        queue.push(200);
        let turn = queue.turn().await.expect("an operation is due");
        assert!(matches!(queue.take(turn, 0, 201), Step::WriteOff(due, _) if due.at == 5));
        let turn = queue.turn().await.expect("an operation is due");
        assert!(matches!(queue.take(turn, 0, 201), Step::Do(due) if due.at == 200));
        assert_eq!(queue.due.available_permits(), 0);
        queue.close();
        assert!(queue.turn().await.is_none());
    }

    #[tokio::test]
    async fn a_turn_whose_operation_was_written_off_is_used_up_and_one_that_goes_home_is_given_back() {
        let queue = queue(2);
        connect(&queue, 0);
        queue.push(5);
        let turn = queue.turn().await.expect("an operation is due");
        // Client 1 has no connection, and what is due has expired.
        assert!(matches!(queue.ask(1, 200), Step::WriteOff(due, _) if due.at == 5));
        assert!(matches!(queue.take(turn, 0, 200), Step::Wait(_)));
        assert_eq!(queue.due.available_permits(), 0);

        let away = |queue: &Queue| {
            assert_eq!(queue.ask(1, 200), Step::Connect(MemberId(2)));
            queue.rules().refused(1, 200);
            let Step::Wait(Some(until)) = queue.ask(1, 200) else { panic!("it pauses") };
            assert_eq!(queue.ask(1, until), Step::Connect(MemberId(1)));
            queue.rules().connected(1, until);
            queue.rules().homesick_at(1).expect("it is away")
        };
        let at = away(&queue);
        queue.push(at);
        let turn = queue.turn().await.expect("an operation is due");
        assert_eq!(queue.take(turn, 1, at), Step::Connect(MemberId(2)));
        assert_eq!(queue.due.available_permits(), 1, "somebody else takes it");
    }
}
