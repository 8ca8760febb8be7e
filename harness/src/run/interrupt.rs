//! Ctrl-C and its relatives: the first one heals, writes and ends; the second one ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Exit;
use crate::progress::Progress;

/// Whether somebody asked the run to end.
pub struct Interrupt {
    asked: watch::Receiver<bool>,
    flag: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens to SIGINT, SIGTERM and SIGHUP from here on. Whoever insists has this done before the end.
    pub fn listen(progress: Progress, at_the_end: impl Fn() + Send + 'static) -> anyhow::Result<Self> {
        Self::listen_and_say(
            progress,
            "interrupted: healing and writing what there is; once more ends at once, then `harness clean` removes \
             what stays",
            at_the_end,
        )
    }

    /// The same, with other words for whoever interrupts.
    pub fn listen_and_say(
        progress: Progress,
        words: &'static str,
        at_the_end: impl Fn() + Send + 'static,
    ) -> anyhow::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
        let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        let mut hang_up = signal(SignalKind::hangup()).context("listening for SIGHUP")?;
        let (sender, asked) = watch::channel(false);
        let flag = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&flag);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hang_up.recv() => {}
                }
                if raised.swap(true, Ordering::SeqCst) {
                    // The members die with this process, the links heal by themselves, the next start
                    // closes the folder.
                    at_the_end();
                    std::process::exit(i32::from(Exit::Interrupted.status()));
                }
                progress.say(words);
                sender.send_replace(true);
            }
        });
        Ok(Self { asked, flag })
    }

    /// Completes when it was asked.
    pub async fn asked(&self) {
        let mut asked = self.asked.clone();
        if asked.wait_for(|asked| *asked).await.is_err() {
            std::future::pending().await
        }
    }

    /// Whether it was asked.
    pub fn was_asked(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }
}
