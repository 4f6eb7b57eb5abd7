//! The flags of `doorward-agent`, and what `--help` teaches.

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand};
use clap_complete::Shell;
use doorward_door::listener::Address;
use doorward_etcd::DocumentPlace;
use doorward_etcd::flags::{self as etcd_flags, ElectionFlags, EtcdFlags};

use crate::flags::bytes::Bytes;
use crate::flags::limits::LimitFlags;
use crate::flags::logs::LogFlags;
use crate::flags::parent::{ParentServers, parent_servers};
use crate::flags::security::SecurityFlags;
use crate::flags::{HttpListen, address, http_listen, node_name, with_variable};

const EXAMPLES: &str = "\
Examples:
  doorward-agent --rules limits.yaml
      Serves alone: Envoys, HTTP and Redis clients of this machine share the limits of the file.
  doorward-agent --parent quota.example.com:6970 --rules limits.yaml --redis-listen 127.0.0.1:6982
      Shares limits with the agents and services of other machines: rules with `scope: shared`.
  curl 127.0.0.1:6981/v1/check -H 'content-type: application/json' \\
      -d '{\"domain\": \"api\", \"entries\": {\"user\": \"ann\"}}'
      Asks an agent whether a request passes.

Every flag can be given as an environment variable; a flag wins over its variable.
More flags: --help-all.
Exit codes: 0 stopped by a signal; 1 failed; 2 wrong usage, or invalid rules.";

/// The arguments and variables of an agent.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "doorward-agent",
    version,
    about = "Limits for Envoy (RLS, RLQS), plain HTTP and Redis clients, shared fairly.",
    after_help = EXAMPLES,
    disable_help_flag = true,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    mut_arg("endpoints", |endpoints| endpoints.env(etcd_flags::SERVER_ENDPOINTS)),
    mut_args(with_variable),
    max_term_width = 100,
)]
pub struct AgentFlags {
    /// A command to run instead of serving.
    #[command(subcommand)]
    pub command: Option<AgentCommand>,

    /// Rules: a file with one document, a directory with a file for each domain, or etcd:PREFIX
    /// for keys below it. They are read again when they change.
    #[arg(
        long,
        required = true,
        value_name = "FILE|DIR|etcd:PREFIX",
        env = "DOORWARD_AGENT_RULES"
    )]
    pub rules: Option<DocumentPlace>,

    /// Servers that lease capacity to this agent: addresses separated by commas, or the address of
    /// their node in etcd, etcd://HOST:PORT/NODE [default: none; this agent has the whole limits].
    #[arg(long, value_name = "HOST:PORT|etcd://…", value_parser = parent_servers)]
    pub parent: Vec<ParentServers>,

    /// Name among the children of the parent [default: the name of this machine, with "/agent"].
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    pub node: Option<String>,

    /// Where to serve Envoy: RLS and RLQS. unix:PATH is a socket of the mode 0660.
    #[arg(
        long,
        value_name = "ADDRESS|unix:PATH",
        value_parser = address,
        default_value = "127.0.0.1:6980"
    )]
    pub listen: Address,

    /// Where to serve HTTP: /json, /v1/check, /v1/charge, /v1/lease, the status page, /metrics,
    /// /healthz and /readyz; "none" for nowhere.
    #[arg(
        long,
        value_name = "ADDRESS|unix:PATH|none",
        value_parser = http_listen,
        default_value = "127.0.0.1:6981"
    )]
    pub http_listen: HttpListen,

    /// Where to serve Redis clients: THROTTLE and CL.THROTTLE [default: nowhere].
    #[arg(long, value_name = "ADDRESS|unix:PATH", value_parser = address)]
    pub redis_listen: Option<Address>,

    /// Where the agent keeps what its next process must know, so that it goes on at once after a
    /// restart: a directory on a local disk, or "none" [default: one for this node and address in
    /// ~/.local/state/doorward, or in systemd's StateDirectory=].
    #[arg(long, value_name = "DIR|none")]
    pub state_dir: Option<PathBuf>,

    /// Estimated memory of leases, callers and buckets [default: half of what the machine or its
    /// control group has].
    #[arg(long, value_name = "BYTES")]
    memory_max: Option<Bytes>,

    /// Where etcd is, for rules or a parent that are found there.
    #[command(flatten)]
    pub etcd: EtcdFlags,

    /// Where nodes stand there.
    #[command(flatten)]
    pub election: ElectionFlags,

    /// TLS and identities.
    #[command(flatten)]
    pub security: SecurityFlags,

    /// Level and format of the log.
    #[command(flatten)]
    pub logs: LogFlags,

    /// Prints the flags that most agents need.
    #[arg(short = 'h', long = "help", action = ArgAction::HelpShort)]
    help: Option<bool>,

    /// Prints all flags.
    #[arg(long = "help-all", action = ArgAction::HelpLong)]
    help_all: Option<bool>,
}

/// A command that runs instead of serving.
#[derive(Clone, Debug, Subcommand)]
pub enum AgentCommand {
    /// Prints a completion script for a shell.
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

impl AgentFlags {
    /// Returns the limits: the defaults, with the memory of the flag.
    pub fn limits(&self) -> LimitFlags {
        LimitFlags::with_memory(self.memory_max)
    }
}
