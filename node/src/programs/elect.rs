//! `node elect`: a command that runs on the leader.

use bytestring::ByteString;
use node_client::recipes::{Candidacy, Candidate, Election, Intent};

use super::held::{self, Ended};
use super::reach::{self, Reached};
use super::signals::Signals;
use super::{Common, FAILED, LOST, Names, UNGUARDED, path, say, waiting, who};

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
    #[arg(long, conflicts_with = "who")]
    create: bool,

    /// Exit with 75 when a term is over, and do not stand again
    #[arg(long)]
    once: bool,

    /// Whose names znodes get, to stand beside programs over another library
    #[arg(long, value_name = "LIBRARY", value_enum, default_value_t = Names::Own)]
    layout: Names,

    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: &ElectArgs) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let reached = tokio::select! {
        reached = args.common.connect() => reached?,
        status = signals.next() => return Ok(status),
    };
    let status = contend(args, &reached, &mut signals).await;
    tokio::select! {
        _ = reached.keeper.close() => {}
        _ = signals.next() => {}
    }
    status
}

async fn contend(args: &ElectArgs, reached: &Reached, signals: &mut Signals) -> anyhow::Result<u8> {
    if args.create {
        reached.make(&args.resource).await?;
    }
    let election = match Election::open(&reached.keeper, args.resource.clone()).await {
        Ok(election) => election,
        Err(error) => return Err(reached.of_recipe(error, &args.resource).await),
    };
    if args.common.who {
        return match election.candidates().await {
            Ok(candidates) => who::line(&candidates, "leads", |at| at == 0),
            Err(error) => Err(reached.of_recipe(error, &args.resource).await),
        };
    }
    reached.warn_of_open(&args.common, &args.resource).await;
    let mut candidacy = election.volunteer(Candidate {
        layout: args.layout.into(),
        again: !args.once,
        notice: reached.grace,
        ..Candidate::named(args.name.clone())
    });
    let status = serve(args, reached, &mut candidacy, signals).await;
    // A signal gives the wait up; then the end of the session ends it.
    tokio::select! {
        _ = candidacy.resign() => {}
        _ = signals.next() => {}
    }
    status
}

async fn serve(
    args: &ElectArgs,
    reached: &Reached,
    candidacy: &mut Candidacy,
    signals: &mut Signals,
) -> anyhow::Result<u8> {
    let _tells = waiting::tell(&reached.keeper, candidacy.behind());
    let _looks = waiting::look_out(&reached.keeper, &args.resource, args.layout.into(), Intent::Lead);
    loop {
        let term = tokio::select! {
            term = candidacy.elected() => match term {
                Ok(term) => term,
                Err(why) => {
                    say(format_args!("the candidacy is over: {}", reach::left(why, &args.resource)));
                    return Ok(FAILED);
                }
            },
            status = signals.next() => return Ok(status),
        };
        say(format_args!("leading with token {}", term.token()));
        let environment = [
            ("TOKEN", term.token().to_string()),
            ("RESOURCE", args.resource.to_string()),
            ("ZNODE", term.path().to_owned()),
        ];
        match held::run(&args.common.command, &environment, &term, reached.grace, signals).await? {
            Ended::Itself(status) | Ended::Signalled(status) => return Ok(status),
            Ended::Unguarded => {
                say(format_args!("{UNGUARDED}: resigning"));
                return Ok(LOST);
            }
            Ended::Lost(why) => {
                let next = if args.once { "leaving" } else { "standing again" };
                say(format_args!("the lead is lost: {why}. The command was ended: {next}"));
                if args.once {
                    return Ok(LOST);
                }
            }
        }
    }
}
