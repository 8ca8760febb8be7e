//! Something done with several at once, where no failure of one keeps it from the others.
//!
//! What heals is asked of every member before any failure is told: one that stops at the first would leave
//! the rest broken.

use std::future::poll_fn;
use std::task::Poll;

/// Does all of these at once, each to its end whatever becomes of the others. What they gave, in their order.
///
/// # Errors
/// The first failure in their order.
pub fn every<T, F>(all: impl IntoIterator<Item = F>) -> impl Future<Output = anyhow::Result<Vec<T>>>
where
    F: Future<Output = anyhow::Result<T>>,
{
    // Before anything is waited for, so that a task has what works in it and not what makes it.
    let mut working: Vec<_> = all.into_iter().map(|one| (Box::pin(one), None)).collect();
    async move {
        poll_fn(|context| {
            for (one, done) in &mut working {
                if done.is_none()
                    && let Poll::Ready(end) = one.as_mut().poll(context)
                {
                    *done = Some(end);
                }
            }
            if working.iter().all(|(_, done)| done.is_some()) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        working.into_iter().filter_map(|(_, done)| done).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn a_failure_of_one_keeps_nothing_from_the_others_and_is_told_at_the_end() {
        let done = Cell::new(0);
        let all = (0..4).map(async |number| {
            tokio::task::yield_now().await;
            if number == 1 {
                anyhow::bail!("{number} can't");
            }
            done.set(done.get() + 1);
            Ok(number)
        });
        assert_eq!(every(all).await.expect_err("one failed").to_string(), "1 can't");
        assert_eq!(done.get(), 3);
        let all = (0..3).map(async |number| Ok(number));
        assert_eq!(every(all).await.expect("none failed"), [0, 1, 2]);
    }
}
