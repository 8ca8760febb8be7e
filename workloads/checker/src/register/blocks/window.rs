//! Which operations are under way, and since when the oldest of them.

use std::collections::VecDeque;

use super::Moment;

/// Calls that still wait for an answer, in the order of time.
///
/// Memory is in proportion to what was called since the oldest that waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// The number of the front ticket.
    first: u64,
    /// When called, and whether it still waits. The front one does.
    tickets: VecDeque<(Moment, bool)>,
}

impl Window {
    /// A call; the ticket is handed back when it is answered.
    pub(super) fn open(&mut self, at: Moment) -> u64 {
        self.tickets.push_back((at, true));
        self.first + u64::try_from(self.tickets.len() - 1).unwrap_or(u64::MAX)
    }

    /// The answer, or the end of waiting for one.
    pub(super) fn close(&mut self, ticket: u64) {
        let place = ticket.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some((_, waits)) = place.and_then(|place| self.tickets.get_mut(place)) {
            *waits = false;
        }
        while self.tickets.pop_front_if(|&mut (_, waits)| !waits).is_some() {
            self.first += 1;
        }
    }

    /// The call of the oldest that waits.
    pub(super) fn oldest(&self) -> Option<Moment> {
        self.tickets.front().map(|&(at, _)| at)
    }

    /// Bytes held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.tickets.capacity() * size_of::<(Moment, bool)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_the_first_call_without_an_answer() {
        let mut window = Window::default();
        let [a, b, c] = [3, 5, 8].map(|at| window.open(at));
        window.close(b);
        assert_eq!(window.oldest(), Some(3));
        window.close(a);
        assert_eq!(window.oldest(), Some(8));
        window.close(a);
        window.close(c);
        assert_eq!(window.oldest(), None);
        assert_eq!(window.open(9), 3);
    }
}
