//! Processes under way, each waited for in a task of its own.

use std::collections::HashMap;

use anyhow::Context;
use nights::outcome::Ended;
use tokio::task::JoinSet;

/// What is waited for. To be used within a `LocalSet`.
#[derive(Default)]
pub(super) struct Children {
    tasks: JoinSet<anyhow::Result<Ended>>,
    /// Which process each task waits for.
    processes: HashMap<tokio::task::Id, u64>,
}

impl Children {
    /// Waits for a process.
    pub(super) fn start(&mut self, id: u64, process: impl Future<Output = anyhow::Result<Ended>> + 'static) {
        let task = self.tasks.spawn_local(process);
        self.processes.insert(task.id(), id);
    }

    /// The next one that has ended, and how, a failure to wait for it included; none when none is under way.
    pub(super) async fn next(&mut self) -> Option<(u64, anyhow::Result<Ended>)> {
        loop {
            let (task, ended) = match self.tasks.join_next_with_id().await? {
                Ok((task, ended)) => (task, ended),
                Err(error) => (error.id(), Err(error).context("waiting for a process")),
            };
            if let Some(process) = self.processes.remove(&task) {
                return Some((process, ended));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_wait_that_panics_is_the_end_of_its_process_and_of_no_other() {
        let local = tokio::task::LocalSet::new();
        let both = async {
            let mut children = Children::default();
            children.start(7, async { panic!("as a bug would") });
            children.start(8, async { anyhow::bail!("it can't be started") });
            let mut ended = Vec::new();
            while let Some((id, end)) = children.next().await {
                ended.push((id, end.expect_err("neither ended").to_string()));
            }
            ended.sort();
            ended
        };
        let ended = local.run_until(both).await;
        assert_eq!(ended, [(7, "waiting for a process".to_owned()), (8, "it can't be started".to_owned())]);
    }
}
