//! One module for each subcommand; here they are told apart, and what came of them becomes an exit status.

#[cfg(feature = "docker")]
pub mod agent;
pub mod app;
pub mod check;
pub mod clean;
pub mod client;
pub mod clock_target;
pub mod compare;
pub mod completions;
pub mod confirm;
pub mod doctor;
pub mod guard;
pub mod init;
pub mod links;
pub mod list;
pub mod man;
pub mod member;
pub mod merge;
pub mod night;
pub mod replay;
pub mod report;
pub mod run;
pub(crate) mod screen;
pub mod selftest;
pub mod serve;
pub mod shrink;
pub mod sim;
pub mod stand_in;
pub mod wrap;

use std::ffi::OsString;
use std::io::Write;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

/// Parses and runs.
pub fn dispatch(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    log_to_stderr(if matches!(cli.command, Command::Member(_)) { Level::INFO } else { Level::WARN });
    if starts_the_users(&cli.command) {
        guard::start();
    }
    let outcome = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Wrap(args) => wrap::wrap(&args),
        Command::Check(args) => check::check(&args),
        Command::Confirm(args) => confirm::confirm(&args),
        Command::Report(args) => report::report(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Merge(args) => merge::merge(&args),
        Command::Init(args) => init::init(&args),
        Command::Client(args) => client::client(&args),
        Command::Shrink(args) => shrink::shrink(&args),
        Command::Night(args) => night::night(&args),
        Command::Sim(args) => sim::sim(&args),
        Command::Selftest(args) => selftest::selftest(&args),
        Command::List(args) => list::list(args.what.as_deref()),
        Command::Serve(args) => serve::serve(&args),
        Command::Doctor(args) => doctor::doctor(&args.store),
        Command::Clean(args) => clean::clean(&args),
        Command::Completions(args) => completions::completions(args.shell),
        Command::Man(args) => man::man(args.folder.as_deref()),
        Command::Member(args) => member::member(&args),
        Command::Become(args) => stand_in::become_program(&args),
        Command::Guard(args) => guard::guard(&args),
        Command::Links => links::links(),
        Command::ClockTarget => clock_target::clock_target(),
        Command::App(args) => app::app(&args),
        #[cfg(feature = "docker")]
        Command::Agent => agent::agent(),
    };
    outcome.unwrap_or_else(|failure| {
        // A closed stderr is no reason for another status.
        let _ = writeln!(std::io::stderr(), "harness: {}", printable_lines(&failure.to_string()));
        failure.exit()
    })
}

/// Whether a command starts programs of the user's.
fn starts_the_users(command: &Command) -> bool {
    matches!(
        command,
        Command::Run(_)
            | Command::Wrap(_)
            | Command::Replay(_)
            | Command::Shrink(_)
            | Command::Night(_)
            | Command::Client(_)
    )
}

/// What a terminal would obey is replaced, line by line: what failed may quote what came from outside.
pub(crate) fn printable_lines(text: &str) -> String {
    text.split('\n').map(reports::terminal::printable).collect::<Vec<_>>().join("\n")
}

/// Help and version are answers; everything else is wrong usage, and its status is ours and not clap's 2.
fn usage(error: &clap::Error) -> Exit {
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
        _ => Exit::Usage,
    }
}

/// `RUST_LOG` says how much is logged; without it a member tells its story and the harness what went wrong.
fn log_to_stderr(usual: Level) {
    let wanted = std::env::var("RUST_LOG").ok().and_then(|wanted| wanted.parse::<Targets>().ok());
    let filter = wanted.unwrap_or_else(|| Targets::new().with_default(usual));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // A second start in one process, as in tests, keeps the first one's logger.
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
}

/// The command line as people see it: without the commands that only the harness itself starts.
pub(crate) fn visible() -> clap::Command {
    let whole = Cli::command();
    let seen = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("harness")
        .version(env!("CARGO_PKG_VERSION"))
        .about(whole.get_about().cloned().unwrap_or_default())
        .long_about(whole.get_long_about().cloned().unwrap_or_default())
        .subcommands(seen)
}
