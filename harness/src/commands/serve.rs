//! `harness serve`: the store in a browser.

use std::net::Ipv4Addr;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::screen::print;
use crate::cli::ServeArgs;
use crate::exit::{Exit, Failure};
use crate::serve::{self, Site};

/// Serves until somebody interrupts.
pub fn serve(args: &ServeArgs) -> Result<Exit, Failure> {
    let wrong = |why: &str| {
        let store = args.store.display();
        Failure::usage(format!("--store {store}: {why}; name the folder in which runs are kept"))
    };
    let store = args.store.canonicalize().map_err(|error| wrong(&error.to_string()))?;
    std::fs::read_dir(&store).map_err(|error| wrong(&error.to_string()))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    let outcome = runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await.map_err(|error| {
            Failure::usage(format!("--port {}: {error}; name another one, or 0 for a free one", args.port))
        })?;
        let port = listener.local_addr().context("asking for the port")?.port();
        let (mut interrupt, mut terminate) = (
            signal(SignalKind::interrupt()).context("listening for SIGINT")?,
            signal(SignalKind::terminate()).context("listening for SIGTERM")?,
        );
        print(&format!("http://127.0.0.1:{port}/ shows {}; Ctrl-C ends it\n", args.store.display()))?;
        let site = Site { store, name: args.store.display().to_string(), port };
        tokio::select! {
            never = serve::serve(listener, site) => match never {},
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(Exit::Done)
    });
    // A file that never answers keeps nobody from ending this.
    runtime.shutdown_background();
    outcome
}
