//! Flags as they are typed. What they mean together is [`NodeConfig`](crate::NodeConfig)'s business.

use std::path::PathBuf;

use node_wire::ids::ServerId;

use crate::address::{ById, DialLine, HostPort, ServerLine, server_id};

/// One member of a coordination ensemble that speaks ZooKeeper's protocols.
///
/// Flags win over the configuration file; in between, the variables of ZooKeeper's official image are
/// understood (ZOO_MY_ID, ZOO_SERVERS, ZOO_DATA_DIR, ZOO_TICK_TIME, ...). Without any server this is an
/// ensemble of one.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// A configuration file with ZooKeeper's keys
    #[arg(long, visible_alias = "zoo-cfg", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// A key of ZooKeeper's, as its own command line has them; Java's are let pass. `node keys` lists all
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    pub properties: Vec<String>,

    /// This member's number in the ensemble [default: the myid file in the data directory; 1 alone]
    #[arg(long, value_parser = parse_id)]
    pub id: Option<ServerId>,

    /// Where log, snapshots and epoch files are kept
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Where clients connect; port 0 lets the system choose [default, alone: 0.0.0.0:2181]
    #[arg(long, value_name = "HOST:PORT")]
    pub client_addr: Option<HostPort>,

    /// A member of the ensemble, this one included; once for each
    #[arg(long = "server", value_name = "ID=HOST:QUORUMPORT:ELECTIONPORT")]
    pub servers: Vec<ById<ServerLine>>,

    /// Where to dial a peer instead of where its --server says; once for each such peer
    #[arg(long, value_name = "ID=QUORUMADDR,ELECTIONADDR")]
    pub dial: Vec<ById<DialLine>>,

    /// Silence between members after which one gives up on another, in milliseconds [default: 250]
    #[arg(long, value_name = "MS")]
    pub peer_timeout_ms: Option<u64>,

    /// ZooKeeper's tickTime in milliseconds; sessions last 2 to 20 ticks [default: 2000]
    #[arg(long, value_name = "MS")]
    pub tick_time_ms: Option<u64>,

    /// Transactions between two snapshots [default: 100000]
    #[arg(long, value_name = "N")]
    pub snap_count: Option<u64>,

    /// Connections that one client host may have, 0 for any number [default: 60]
    #[arg(long, value_name = "N")]
    pub max_client_cnxns: Option<u32>,

    /// Print each transition as a line of JSON on stdout the moment it happens
    #[arg(long)]
    pub events: bool,
}

fn parse_id(text: &str) -> Result<ServerId, String> {
    server_id(text).ok_or_else(|| "a server's number is an integer, 0 or more".to_owned())
}
