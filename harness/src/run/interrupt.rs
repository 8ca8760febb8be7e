//! Ctrl-C and its relatives: the first one heals, writes and ends; the second one ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Exit;
use crate::progress::Progress;

/// The signals by which somebody asks.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("listening for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("listening for SIGTERM")?,
            hang_up: signal(SignalKind::hangup()).context("listening for SIGHUP")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}

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
            "interrupted: healing and writing what there is; once more ends at once, then `harness clean` \
             removes what stays",
            at_the_end,
        )
    }

    /// The same, with other words for whoever interrupts.
    pub fn listen_and_say(
        progress: Progress,
        words: &'static str,
        at_the_end: impl Fn() + Send + 'static,
    ) -> anyhow::Result<Self> {
        let mut signals = Signals::listen()?;
        let (sender, asked) = watch::channel(false);
        let flag = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&flag);
        tokio::spawn(async move {
            loop {
                signals.next().await;
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

    /// Only notices that somebody asks: for who makes several runs, each of which listens and answers by
    /// itself. A signal between two of them is not lost.
    pub fn notice() -> anyhow::Result<Self> {
        let (sender, asked) = watch::channel(false);
        let flag = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&flag);
        let mut signals = Signals::listen()?;
        tokio::spawn(async move {
            signals.next().await;
            raised.store(true, Ordering::SeqCst);
            sender.send_replace(true);
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
