//! Flags of the commands about clients of a system of one's own.

use clap::{Args, Subcommand};

/// Flags of `client`.
#[derive(Clone, Debug, Args)]
pub struct ClientArgs {
    /// What to do with it
    #[command(subcommand)]
    pub command: ClientCommand,
}

/// What is done with a client.
#[derive(Clone, Debug, Subcommand)]
pub enum ClientCommand {
    /// Play a conversation with it: ports that refuse, break off and stay silent, and what it must say then
    Check(ClientCheckArgs),
}

/// Flags of `client check`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "What a client is asked and answers: harness/docs/client-protocol.md.\n\nExit status: 0 it \
                  can be believed; 1 it can't; 2 no request for a change could be tried; 254 it does not \
                  start, or says no hello."
)]
pub struct ClientCheckArgs {
    /// The client of the system that this file describes
    #[arg(long, value_name = "FILE")]
    pub system: Option<String>,
    /// A member that runs: it answers what goes before a request, and never sees the request itself
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "greeting")]
    pub member: Option<String>,
    /// What a member says first, where it speaks first: `'INFO {}\r\n'`; `\x00` is the byte of that number
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub greeting: String,
    /// The client's command
    #[arg(last = true, value_name = "CMD", allow_hyphen_values = true)]
    pub command: Vec<String>,
}
