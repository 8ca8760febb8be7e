//! `node elect`: a command that runs on the leader.

use bytestring::ByteString;
use node_client::Keeper;
use node_client::recipes::{Candidacy, Candidate, Election};

use super::held::{self, Ended};
use super::signals::Signals;
use super::{Common, FAILED, LOST, path};

/// Stands for election, and runs the command whenever this process leads.
///
/// The command finds TOKEN (the fencing token), RESOURCE and ZNODE in its environment. When its term is over
/// it is ended, and this process stands again. It exits when the command exits by itself.
#[derive(Clone, Debug, clap::Args)]
pub struct ElectArgs {
    /// The znode below which candidates stand
    #[arg(value_parser = path)]
    resource: ByteString,

    /// What others see of this candidate
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,

    /// Make the resource, and all above it, where it is not there
    #[arg(long)]
    create: bool,

    /// Exit with 75 when a term is over, and do not stand again
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: &ElectArgs) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let keeper = tokio::select! {
        keeper = args.common.connect() => keeper?,
        status = signals.next() => return Ok(status),
    };
    let election = if args.create {
        Election::create(&keeper, args.resource.clone()).await?
    } else {
        Election::open(&keeper, args.resource.clone())
            .await
            .map_err(|error| anyhow::anyhow!("{error}, or use --create"))?
    };
    let mut candidacy = election.volunteer(Candidate {
        layout: args.common.layout.into(),
        again: !args.once,
        notice: args.common.grace(),
        ..Candidate::named(args.name.clone())
    });
    let status = serve(args, &mut candidacy, &mut signals).await;
    leave(candidacy, &keeper, &mut signals).await;
    status
}

async fn serve(args: &ElectArgs, candidacy: &mut Candidacy, signals: &mut Signals) -> anyhow::Result<u8> {
    loop {
        let term = tokio::select! {
            term = candidacy.elected() => match term {
                Ok(term) => term,
                Err(why) => {
                    eprintln!("node: the candidacy is over: {why}");
                    return Ok(FAILED);
                }
            },
            status = signals.next() => return Ok(status),
        };
        tracing::info!(token = %term.token(), "elected");
        let environment = [
            ("TOKEN", term.token().to_string()),
            ("RESOURCE", args.resource.to_string()),
            ("ZNODE", term.path().to_owned()),
        ];
        let command = &args.common.command;
        match held::run(command, &environment, &term, args.common.grace(), signals).await? {
            Ended::Itself(status) | Ended::Told(status) => return Ok(status),
            Ended::Lost if args.once => return Ok(LOST),
            Ended::Lost => {}
        }
    }
}

/// Resigns and ends the session, so that nobody waits for its time-out; or gives that up at a signal.
async fn leave(candidacy: Candidacy, keeper: &Keeper, signals: &mut Signals) {
    tokio::select! {
        () = async {
            candidacy.resign().await;
            let _ = keeper.close().await;
        } => {}
        _ = signals.next() => {}
    }
}
