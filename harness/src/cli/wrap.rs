//! Flags of `wrap`: those of a run that are about members and faults, and a command.

use std::path::PathBuf;

use clap::{Args, FromArgMatches};

use super::{BroughtArgs, Format, RunArgs, names};
use crate::config::{ANY_TEMPLATE, Template, USUAL_TEMPLATE_LIMIT, USUAL_TEMPLATES, USUAL_WRAP_LIMIT};

/// Flags of `wrap`.
#[derive(Clone, Debug, Args)]
#[command(after_help = format!(
    "The command finds the members in HARNESS_MEMBERS (n1=127.0.0.1:10257,n2=...) and the run folder in \
     HARNESS_FOLDER. Its exit status decides: 0 passed, anything else failed.\n\nNemeses (`harness list \
     nemeses` says what each does):\n{}",
    names::nemeses()
))]
pub struct WrapArgs {
    /// Voting members [default: 5, or as many as the system's file names]
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// What members are made of.
    #[command(flatten)]
    pub brought: BroughtArgs,
    /// Members without a vote, beside them; faults hit them too
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub observers: u32,
    /// Where members run; auto takes containers where a Docker engine answers
    #[arg(long, value_name = "WHERE", default_value = "auto", value_parser = names::a_cluster())]
    pub cluster: String,
    /// The system under test: one that is built in, or a file of your own
    #[arg(long, value_name = "NAME", visible_alias = "compose", default_value = "node")]
    #[arg(value_parser = names::a_system())]
    pub system: String,
    /// A setting that only this system has, as `tick=1s`; `harness list settings` tells them
    #[arg(long, value_name = "NAME=VALUE", value_parser = names::a_setting(), hide_possible_values = true)]
    pub set: Vec<String>,
    /// What is broken: `none`, or a list of nemeses that take turns; see below
    #[arg(long, value_name = "LIST", default_value = "none", value_parser = names::a_nemesis())]
    #[arg(hide_possible_values = true)]
    pub nemesis: String,
    /// From the onset of one fault to that of the next; each is held for half of it [default: the system's
    /// own, which `harness list systems` tells; 4s for the bundled node]
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// For how long faults go on at most; the command goes on without them until it ends, and test commands
    /// have their last turn [default: 10m; 60s with --template]
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<String>,
    /// The faults are drawn from this; a fresh one is drawn and printed when it is left out
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub store: PathBuf,
    /// What the run is called in the store [default: command and nemeses]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Make the members a mutant: does the command find it?
    #[arg(long, value_name = "BUG", value_parser = names::a_mutant(), hide_possible_values = true)]
    pub mutant: Option<String>,
    /// Let the nemeses act at once, each in its own rhythm, instead of taking turns
    #[arg(long)]
    pub overlap: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// First of the ports to use on 127.0.0.1 by local processes [default: a free block is found]
    #[arg(long, value_name = "PORT")]
    pub base_port: Option<u16>,
    /// Silence between members after which one gives up on another [default: the system's own; 250ms for the
    /// bundled node]
    #[arg(long, value_name = "TIME")]
    pub peer_timeout: Option<String>,
    /// When killed members lose what they had not synced: kill-all, always, never [default: kill-all; never
    /// where nobody knows what they have synced]
    #[arg(long, value_name = "WHEN")]
    pub lose_unsynced: Option<String>,
    /// Run the test commands in the containers of a Compose file instead of a command: the template of this
    /// name, or one that is drawn
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = ANY_TEMPLATE)]
    pub template: Option<String>,
    /// Where templates are in the containers
    #[arg(long, value_name = "DIR", default_value = USUAL_TEMPLATES, requires = "template")]
    pub templates: String,
    /// Begin when all members serve, though no container says that the system is set up
    #[arg(long, requires = "template")]
    pub no_setup: bool,
    /// The command and its arguments, behind `--`
    #[arg(required_unless_present = "template", conflicts_with = "template", last = true)]
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl WrapArgs {
    /// The test commands that were asked for.
    pub fn test_commands(&self) -> Option<Template> {
        let name = self.template.clone()?;
        Some(Template {
            name: (name != ANY_TEMPLATE).then_some(name),
            folder: self.templates.clone(),
            awaits_setup: !self.no_setup,
        })
    }

    fn limit(&self) -> &str {
        let usual = if self.template.is_some() { USUAL_TEMPLATE_LIMIT } else { USUAL_WRAP_LIMIT };
        self.time_limit.as_deref().unwrap_or(usual)
    }

    /// The same members and faults as flags of a run; what is about clients is as usual, and means nothing.
    ///
    /// # Errors
    /// Never: a run has no flag that must be given.
    pub fn of_a_run(&self) -> Result<RunArgs, clap::Error> {
        let usual = RunArgs::augment_args(clap::Command::new("run")).try_get_matches_from(["run"])?;
        Ok(RunArgs {
            nodes: self.nodes,
            brought: self.brought.clone(),
            observers: self.observers,
            cluster: self.cluster.clone(),
            system: self.system.clone(),
            set: self.set.clone(),
            nemesis: self.nemesis.clone(),
            interval: self.interval.clone(),
            time_limit: self.limit().to_owned(),
            seed: self.seed,
            store: self.store.clone(),
            name: self.name.clone(),
            mutant: self.mutant.clone(),
            overlap: self.overlap,
            format: self.format,
            base_port: self.base_port,
            peer_timeout: self.peer_timeout.clone(),
            lose_unsynced: self.lose_unsynced.clone(),
            ..RunArgs::from_arg_matches(&usual)?
        })
    }
}
